//! NUMERICs with more digits than a slot has room for, NaN and the infinities: under every
//! protocol, in updates that are left to the commit, and over crashes.

#![cfg(not(kiln_sim))]

use crate::files;
use crate::image::Image;

use kiln_engine::Configuration;
use kiln_platform::random::Random;
use kiln_platform::thread;
use kiln_sql::{Database, Number, Options, Protocol, Session, SqlState, Value};

const SCHEMA: &str = "
CREATE TABLE account (id INTEGER PRIMARY KEY, balance NUMERIC NOT NULL, bounded NUMERIC(45, 3) NOT NULL);
INSERT INTO account SELECT i, 1e40, 1e40 FROM generate_series(0, 3) i;
CREATE TABLE digits (k NUMERIC PRIMARY KEY, v NUMERIC(60, 20), list NUMERIC[]);
CREATE PROCEDURE pay(a INTEGER, b INTEGER, amount NUMERIC) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE account SET balance = balance + amount, bounded = bounded + amount WHERE id = a;
    UPDATE account SET balance = balance - amount, bounded = bounded - amount WHERE id = b;
END $$;
CREATE FUNCTION balance_of(a INTEGER) RETURNS NUMERIC LANGUAGE plpgsql AS $$
DECLARE
    found_balance NUMERIC;
BEGIN
    SELECT balance INTO found_balance FROM account WHERE id = a;
    RETURN found_balance;
END $$;
";

/// What all statements of a text give, as text.
fn texts(session: &mut Session, sql: &str) -> Vec<String> {
    let result = session.run(sql, ());
    let result = result.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = result.result.expect("it gives rows").rows;
    let texts = rows.iter().map(|row| {
        let values = row.iter().map(Value::to_string);
        values.collect::<Vec<_>>().join(" ")
    });
    texts.collect()
}

/// An amount of up to sixty digits on both sides of what a slot has room for.
fn amount(random: &mut Random) -> String {
    let digits = random.between(1, 38);
    let digits: String = (0..digits).map(|_| random.below(10).to_string()).collect();
    format!("{digits}.{:03}", random.below(1_000))
}

/// Balances of forty digits keep their sum to the last one, whatever protocol and however many
/// sessions change them: no update rounds, and none is lost.
#[test]
fn balances_of_forty_digits_keep_their_sum_under_every_protocol() {
    for configuration in Configuration::serializable() {
        let options = Options::new().workers(2).pin_workers(false);
        let database = Database::open(options.protocol(configuration)).expect("it opens");
        database.execute(SCHEMA).expect("the schema is made");
        thread::scope(|scope| {
            for number in 0..3_u64 {
                let database = &database;
                scope.spawn(move || {
                    let mut random = Random::from_seed(number);
                    let mut session = database.session().expect("one is free");
                    for _ in 0..40 {
                        let (from, to) = (random.below(4), random.below(4));
                        let amount = amount(&mut random);
                        let call = format!("CALL pay({from}, {to}, {amount})");
                        let paid = session.execute(&call);
                        paid.unwrap_or_else(|error| panic!("{configuration}: {call}: {error}"));
                    }
                });
            }
        });
        let mut session = database.session().expect("one is free");
        let sums = "SELECT sum(balance) = 4e40, sum(bounded) = 4e40, sum(balance) - sum(bounded) = 0 FROM account";
        assert_eq!(texts(&mut session, sums), ["t t t"], "{configuration}");
        // From a long number to a short one, and back; NaN and infinities stay what they are.
        for (set, expected) in [
            ("balance - balance + 7", "7.000"),
            (
                "balance + 1e50",
                "100000000000000000000000000000000000000000000000007.000",
            ),
            (
                "balance * 1e-50",
                "1.00000000000000000000000000000000000000000000000007000",
            ),
            ("'Infinity'", "Infinity"),
            ("balance - 1e60", "Infinity"),
            ("balance - balance", "NaN"),
            ("balance + 1", "NaN"),
        ] {
            session
                .execute(&format!("UPDATE account SET balance = {set} WHERE id = 1"))
                .unwrap_or_else(|error| panic!("{configuration}: {set}: {error}"));
            let found = texts(&mut session, "SELECT balance_of(1)");
            assert_eq!(found, [expected], "{configuration}: {set}");
        }
        let overflow = session.execute("UPDATE account SET bounded = bounded + 1e42 WHERE id = 2");
        let error = overflow.expect_err("the column has 42 digits before the point");
        assert_eq!(
            error.state(),
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "{configuration}"
        );
    }
}

/// Keys, rows and arrays of long numbers, as the checks below read them.
fn state(session: &mut Session) -> Vec<String> {
    let mut state = texts(session, "SELECT * FROM digits ORDER BY k");
    state.extend(texts(session, "SELECT * FROM account ORDER BY id"));
    state
}

/// The rest of a life is lost: the files are taken while the database is open, as a kill leaves
/// them.
#[test]
fn long_numbers_survive_crashes() {
    for (seed, protocol) in Protocol::serializable().enumerate() {
        let mut random = Random::from_seed(seed as u64);
        let directory = files::temporary();
        let mut last: Option<(Image, Vec<String>)> = None;
        for life in 0..3 {
            let path = directory.path().join(format!("life-{life}"));
            if let Some((image, _)) = &last {
                image.put(&path);
            }
            let options = files::options(&path).protocol(protocol);
            let database = Database::open(options).expect("it can be recovered");
            let mut session = database.session().expect("one is free");
            match &last {
                None => drop(database.execute(SCHEMA).expect("the schema is made")),
                Some((_, former)) => {
                    assert_eq!(&state(&mut session), former, "{protocol}, life {life}");
                }
            }
            for _ in 0..12 {
                let (number, other) = (amount(&mut random), amount(&mut random));
                let special = ["NaN", "Infinity", "-Infinity"][random.below(3)];
                let statement = match random.below(7) {
                    0 => format!(
                        "INSERT INTO digits VALUES ({number}e30, -{other}, ARRAY[{number}e40, NULL, '{special}'])
                         ON CONFLICT (k) DO UPDATE SET v = excluded.v"
                    ),
                    1 => format!(
                        "INSERT INTO digits VALUES ('{special}', {other}, ARRAY[1.5, {other}])
                         ON CONFLICT (k) DO UPDATE SET v = 'NaN', list = array_append(digits.list, 1e60)"
                    ),
                    2 => format!("UPDATE digits SET k = k + {number}e35 WHERE k > 0 AND k < 1e60"),
                    3 => format!("UPDATE digits SET v = -v, list = NULL WHERE k < {number}e30"),
                    4 => format!("DELETE FROM digits WHERE k > {number}e32"),
                    5 => format!("CALL pay(0, 1, {number})"),
                    _ => format!("UPDATE account SET balance = balance * 1.5, bounded = {other} WHERE id = 2"),
                };
                match session.execute(&statement) {
                    Ok(_) => {}
                    // A key that moved onto another one.
                    Err(error) if error.state() == SqlState::UNIQUE_VIOLATION => {}
                    Err(error) => panic!("{protocol}: {statement}: {error}"),
                }
                if random.below(5) == 0 {
                    database.engine().checkpoint().expect("it is written");
                }
            }
            let now = state(&mut session);
            // The log has written that its last block is on disk, and nothing more.
            thread::sleep(60_000_000);
            last = Some((Image::of(&path), now));
        }
    }
}

/// A procedure that the log has as a call gets its arguments back with all digits.
#[test]
fn arguments_of_many_digits_come_through() {
    let options = Options::new().workers(1).pin_workers(false);
    let database = Database::open(options).expect("it opens");
    database.execute(SCHEMA).expect("the schema is made");
    let mut session = database.session().expect("one is free");
    for text in [
        "1e70",
        "NaN",
        "-Infinity",
        "3.25",
        "-12345678901234567890123456789012345678.9",
    ] {
        let number: Number = text.parse().expect("a number");
        let given = session.run("SELECT $1::numeric + 0, $1::numeric", (number.clone(),));
        let rows = given.expect("it runs").result.expect("it gives rows");
        let (sum, back) = rows.into_one::<(Number, Number)>().expect("two numbers");
        assert_eq!((&sum, &back), (&number, &number));
        assert_eq!(back.to_string(), number.to_string());
    }
}
