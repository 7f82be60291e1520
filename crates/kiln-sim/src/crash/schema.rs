//! What the clients of a life work on: tables whose rows tell what came before what, and functions
//! that change them.
//!
//! | table | what its rows tell |
//! |---|---|
//! | `counter`, `entry`, `line` | an entry has the number that its transaction gave the counter, and a line says the same: the numbers of a counter's entries are 1 to its own |
//! | `account`, `transfer` | a transfer has the versions that it gave its accounts: those of an account's transfers are 1 to its own, and they add up to its balance |
//! | `badge` | names change places: each is there once |
//! | `stamp` | a renewal has a number of a sequence: each is there once |
//! | `mover`, `coming` | an owner has a row in one of the two, under changing keys |

/// Hot counters, from 1 on. Counter 0 counts all entries.
pub(super) const COUNTERS: i64 = 2;
/// Accounts, from 1 on.
pub(super) const ACCOUNTS: i64 = 4;
/// What each has at first.
pub(super) const BALANCE: i64 = 100;
/// Badges, from 1 on.
pub(super) const BADGES: i64 = 3;
/// Owners of movers, from 1 on.
pub(super) const OWNERS: i64 = 3;
/// Primary keys of movers, from 1 on.
pub(super) const SLOTS: i64 = 6;

/// The statements that make it, each acknowledged by itself.
pub(super) const STATEMENTS: [&str; 23] = [
    "CREATE TABLE counter (id INTEGER PRIMARY KEY, title TEXT, n BIGINT NOT NULL)",
    "INSERT INTO counter SELECT i, 'counter ' || i, 0 FROM generate_series(0, 2) i",
    "CREATE TABLE entry (counter INTEGER, n BIGINT, token BIGINT NOT NULL, body TEXT, PRIMARY KEY (counter, n), UNIQUE (token))",
    "CREATE TABLE line (token BIGINT, counter INTEGER, n BIGINT)",
    "CREATE INDEX line_token ON line (token)",
    "CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL, version BIGINT NOT NULL)",
    "CREATE INDEX account_balance ON account (balance)",
    "INSERT INTO account SELECT i, 100, 0 FROM generate_series(1, 4) i",
    "CREATE TABLE transfer (token BIGINT PRIMARY KEY, payer INTEGER, payer_version BIGINT, payee INTEGER, \
     payee_version BIGINT, amount BIGINT)",
    "CREATE TABLE badge (id INTEGER PRIMARY KEY, name TEXT, version BIGINT NOT NULL, UNIQUE (name))",
    "INSERT INTO badge SELECT i, 'name ' || i, 0 FROM generate_series(1, 3) i",
    "CREATE TABLE mover (slot INTEGER PRIMARY KEY, owner INTEGER NOT NULL, hops BIGINT NOT NULL, UNIQUE (owner))",
    "INSERT INTO mover SELECT i, i, 0 FROM generate_series(1, 3) i",
    "CREATE TABLE coming (owner INTEGER PRIMARY KEY, hops BIGINT NOT NULL)",
    "CREATE TABLE stamp (number BIGSERIAL, owner INTEGER NOT NULL, hops BIGINT NOT NULL)",
    "CREATE FUNCTION append(which INTEGER, mark BIGINT, content TEXT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE now BIGINT;
BEGIN
    UPDATE counter SET n = n + 1 WHERE id = which RETURNING n INTO now;
    UPDATE counter SET n = n + 1 WHERE id = 0;
    INSERT INTO entry VALUES (which, now, mark, content);
    INSERT INTO line VALUES (mark, which, now);
    RETURN now;
END $$",
    "CREATE FUNCTION pay(mark BIGINT, payer INTEGER, payee INTEGER, amount BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE left_over BIGINT; payer_at BIGINT; payee_at BIGINT;
BEGIN
    UPDATE account SET balance = balance - amount, version = version + 1 WHERE id = payer
        RETURNING balance, version INTO left_over, payer_at;
    IF left_over < 0 THEN RAISE EXCEPTION 'short at %', payer_at - 1; END IF;
    UPDATE account SET balance = balance + amount, version = version + 1 WHERE id = payee
        RETURNING version INTO payee_at;
    INSERT INTO transfer VALUES (mark, payer, payer_at, payee, payee_at, amount);
    RETURN payer_at;
END $$",
    "CREATE FUNCTION exchange(one INTEGER, other INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE first TEXT; second TEXT; now BIGINT;
BEGIN
    SELECT name INTO first FROM badge WHERE id = one;
    SELECT name INTO second FROM badge WHERE id = other;
    UPDATE badge SET name = NULL WHERE id = other;
    UPDATE badge SET name = second, version = version + 1 WHERE id = one RETURNING version INTO now;
    UPDATE badge SET name = first, version = version + 1 WHERE id = other;
    RETURN now;
END $$",
    "CREATE FUNCTION hop(who INTEGER, target INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE now BIGINT;
BEGIN
    UPDATE mover SET slot = target, hops = hops + 1 WHERE owner = who RETURNING hops INTO now;
    RETURN now;
END $$",
    "CREATE FUNCTION leave(who INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE now BIGINT;
BEGIN
    DELETE FROM mover WHERE owner = who RETURNING hops + 1 INTO now;
    IF now IS NOT NULL THEN INSERT INTO coming VALUES (who, now); END IF;
    RETURN now;
END $$",
    "CREATE FUNCTION arrive(who INTEGER, target INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE now BIGINT;
BEGIN
    DELETE FROM coming WHERE owner = who RETURNING hops + 1 INTO now;
    IF now IS NOT NULL THEN INSERT INTO mover VALUES (target, who, now); END IF;
    RETURN now;
END $$",
    "CREATE FUNCTION renew(who INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE place INTEGER; now BIGINT;
BEGIN
    DELETE FROM mover WHERE owner = who RETURNING slot, hops + 1 INTO place, now;
    IF now IS NOT NULL THEN
        INSERT INTO mover VALUES (place, who, now);
        INSERT INTO stamp (owner, hops) VALUES (who, now);
    END IF;
    RETURN now;
END $$",
    "CREATE FUNCTION look(which INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE now BIGINT;
BEGIN
    SELECT n INTO now FROM counter WHERE id = which;
    RETURN now;
END $$",
];

/// The text that an entry with this token has: of many lengths, some of several blocks of the log.
pub(super) fn body(token: i64) -> String {
    let lengths = [0, 3, 40, 700, 3_000, 9_000];
    let length = lengths[token as usize % lengths.len()];
    let mut text = String::new();
    while text.len() < length {
        text.push_str(&format!("{token}, "));
    }
    text
}
