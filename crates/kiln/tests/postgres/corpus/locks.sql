-- Advisory locks, LOCK TABLE, and where FOR UPDATE may stand.
-- compare: messages

-- snippet: advisory-session
SELECT pg_advisory_lock(1);
SELECT pg_advisory_lock(1);
SELECT pg_try_advisory_lock(1), pg_try_advisory_lock(2);
SELECT pg_advisory_unlock(1), pg_advisory_unlock(2), pg_advisory_unlock(3);
SELECT pg_advisory_unlock(1);
SELECT pg_advisory_unlock(1);
SELECT pg_advisory_unlock(1);
SELECT pg_advisory_lock_shared(1), pg_try_advisory_lock_shared(1);
SELECT pg_advisory_unlock(1), pg_advisory_unlock_shared(1), pg_advisory_unlock_shared(1), pg_advisory_unlock_shared(1);
SELECT pg_advisory_unlock_all();

-- snippet: advisory-keys
SELECT pg_advisory_lock(1, 2), pg_try_advisory_lock(-1, -2);
SELECT pg_advisory_unlock(2, 1), pg_advisory_unlock(1, 2), pg_advisory_unlock(-1, -2);
SELECT pg_advisory_lock(9223372036854775807);
SELECT pg_advisory_unlock(9223372036854775807);
SELECT pg_try_advisory_lock('5'), pg_try_advisory_lock(2 + 3), pg_advisory_unlock(abs(-5));
SELECT pg_advisory_unlock(5), pg_advisory_unlock(5);
SELECT pg_advisory_lock(NULL), pg_try_advisory_lock(1, NULL), pg_advisory_unlock(NULL);
SELECT pg_typeof(pg_try_advisory_lock(3)), pg_advisory_unlock(3);
-- error: 42883
SELECT pg_advisory_lock();
-- error: 42883
SELECT pg_advisory_lock(1.5);
-- error: 42883
SELECT pg_advisory_lock(1, 2, 3);
-- error: 42883
SELECT pg_advisory_lock(1::bigint, 2);
-- error: 22P02
SELECT pg_advisory_lock('x');
-- error: 42883
SELECT pg_advisory_unlock_all(1);

-- snippet: advisory-transaction
SELECT pg_advisory_xact_lock(1);
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
BEGIN;
SELECT pg_advisory_xact_lock(1), pg_advisory_xact_lock_shared(2, 3), pg_try_advisory_xact_lock(-4), pg_try_advisory_xact_lock_shared(5);
SELECT classid, objid, objsubid, mode, granted, fastpath, waitstart, relation FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1, 2;
SELECT pg_advisory_unlock(1);
SAVEPOINT s;
SELECT pg_advisory_xact_lock(6);
SELECT pg_advisory_lock(7);
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
ROLLBACK TO s;
SELECT objid FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1;
COMMIT;
SELECT objid FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1;
BEGIN;
SELECT pg_advisory_xact_lock(8);
SELECT pg_advisory_lock(9);
-- error: 22012
SELECT 1 / 0;
ROLLBACK;
SELECT objid FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1;
DISCARD ALL;
SELECT objid FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1;

-- snippet: advisory-in-statements
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2);
SELECT v FROM t WHERE pg_try_advisory_lock(11) ORDER BY id;
UPDATE t SET v = v + 1 WHERE id = 1 AND pg_advisory_unlock(11);
SELECT id, v FROM t ORDER BY id;
-- refused: an argument of a function of the session
SELECT pg_try_advisory_lock(id) FROM t;
SELECT pg_advisory_unlock_all();

-- snippet: lock-table
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE TABLE u (id INTEGER PRIMARY KEY);
CREATE SEQUENCE s;
-- error: 25P01
LOCK TABLE t;
-- error: 25P01
LOCK nosuch;
BEGIN;
LOCK TABLE t;
LOCK t IN ACCESS SHARE MODE;
LOCK TABLE ONLY t, u * IN SHARE ROW EXCLUSIVE MODE NOWAIT;
LOCK TABLE t IN ROW SHARE MODE;
LOCK TABLE t IN ROW EXCLUSIVE MODE;
LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE t IN SHARE MODE;
LOCK TABLE t IN EXCLUSIVE MODE;
LOCK TABLE t IN ACCESS EXCLUSIVE MODE NOWAIT;
SELECT mode, granted FROM pg_locks WHERE relation = 't'::regclass ORDER BY mode;
INSERT INTO t VALUES (1);
SAVEPOINT a;
-- error: 42P01
LOCK TABLE nosuch;
ROLLBACK TO a;
-- error: 42809
LOCK TABLE s;
ROLLBACK TO a;
-- error: 42601
LOCK TABLE t IN NO MODE;
ROLLBACK TO a;
COMMIT;
SELECT id FROM t;

-- snippet: lock-table-that-was-made
BEGIN;
CREATE TABLE t (id INTEGER PRIMARY KEY);
LOCK TABLE t IN EXCLUSIVE MODE;
INSERT INTO t VALUES (1);
COMMIT;
SELECT id FROM t;

-- snippet: lock-table-that-is-altered
CREATE TABLE t (id INTEGER PRIMARY KEY);
BEGIN;
LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE;
ALTER TABLE t ADD v INTEGER DEFAULT 7;
INSERT INTO t (id) VALUES (1);
LOCK TABLE t;
COMMIT;
SELECT id, v FROM t;

-- snippet: lock-table-of-a-view
CREATE TABLE t (id INTEGER PRIMARY KEY);
CREATE VIEW v AS SELECT id FROM t;
BEGIN;
-- refused: LOCK TABLE of a view
LOCK TABLE v;
COMMIT;

-- snippet: for-update-forms
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE u (id INTEGER PRIMARY KEY, t_id INTEGER);
INSERT INTO t VALUES (1, 1), (2, 2);
INSERT INTO u VALUES (5, 1);
SELECT * FROM t ORDER BY id FOR UPDATE;
SELECT * FROM t ORDER BY id FOR NO KEY UPDATE;
SELECT * FROM t ORDER BY id FOR SHARE;
SELECT * FROM t ORDER BY id FOR KEY SHARE;
SELECT * FROM t JOIN u ON t.id = u.t_id FOR UPDATE OF t, u;
SELECT * FROM t x JOIN u ON x.id = u.t_id FOR NO KEY UPDATE OF x FOR KEY SHARE OF u;
SELECT * FROM (SELECT id FROM t WHERE v = 2 FOR UPDATE OF t) AS s;
SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE;
SELECT id FROM t ORDER BY id FOR UPDATE LIMIT 1;
UPDATE t SET v = 9 WHERE id = (SELECT id FROM t WHERE v = 1 FOR NO KEY UPDATE);
DELETE FROM t WHERE id IN (SELECT id FROM t WHERE v = 9 ORDER BY id FOR UPDATE) RETURNING id;

-- snippet: for-update-misplaced
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
-- error: 42P01
SELECT * FROM t FOR UPDATE OF u;
-- error: 42P01
SELECT * FROM t x FOR UPDATE OF t;
-- error: 42601
SELECT * FROM t FOR UPDATE OF public.t;
-- error: 0A000
SELECT DISTINCT v FROM t FOR UPDATE;
-- error: 0A000
SELECT v FROM t GROUP BY v FOR SHARE;
-- error: 0A000
SELECT 1 FROM t HAVING true FOR UPDATE;
-- error: 0A000
SELECT id FROM t UNION SELECT v FROM t FOR UPDATE;

-- snippet: skip-locked-alone
-- protocols: silo occ tictoc mvcc
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE u (a INTEGER, b TEXT, PRIMARY KEY (a, b));
INSERT INTO t SELECT i, 10 - i FROM generate_series(1, 6) i;
INSERT INTO u VALUES (1, 'x'), (2, 'y'), (2, 'z');
SELECT * FROM t ORDER BY id FOR UPDATE SKIP LOCKED;
SELECT id AS number, v + 1 FROM t ORDER BY v LIMIT 2 FOR NO KEY UPDATE SKIP LOCKED;
SELECT * FROM t ORDER BY v OFFSET 1 LIMIT 2 FOR SHARE NOWAIT;
SELECT t.*, b FROM t JOIN u ON a = id ORDER BY id, b FOR UPDATE OF t NOWAIT;
SELECT t.*, b FROM t LEFT JOIN u ON a = id ORDER BY id, b FOR UPDATE OF t SKIP LOCKED;
SELECT x.id FROM t x, t y WHERE x.id = y.v ORDER BY 1 FOR UPDATE OF x SKIP LOCKED FOR SHARE OF y NOWAIT;
WITH w AS (SELECT id FROM t ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED) UPDATE t SET v = 0 FROM w WHERE t.id = w.id RETURNING t.id;
DELETE FROM t WHERE id IN (SELECT id FROM t WHERE v > 0 ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING *;
BEGIN;
SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED;
SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED;
DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id FOR UPDATE NOWAIT;
FETCH 2 c;
COMMIT;
SELECT count(*) FROM pg_locks WHERE locktype = 'tuple';
PREPARE q (INTEGER) AS SELECT id FROM t WHERE v = $1 ORDER BY id FOR UPDATE SKIP LOCKED;
EXECUTE q(0);

-- snippet: advisory-keys-of-texts
SELECT hashtext(''), hashtext('a'), hashtext('migrations'), hashtext('twelve bytes'), hashtext('a text of more than two blocks of it'), hashtext(NULL);
SELECT hashtextextended('', 0), hashtextextended('migrations', 0), hashtextextended('a text of more than two blocks of it', -5), hashtextextended('x', 4294967296);
SELECT sum(hashtext(repeat('é', i)) % 1000), sum(hashtextextended(repeat('z', i), i) % 1000) FROM generate_series(0, 40) i;
SELECT pg_advisory_lock(hashtext('migrations')), pg_advisory_unlock(hashtext('migrations')::bigint);
BEGIN;
SELECT pg_advisory_xact_lock(hashtext('a'), hashtext('b')), pg_advisory_xact_lock(hashtextextended('migrations', 0));
SELECT classid, objid, objsubid FROM pg_locks WHERE locktype = 'advisory' ORDER BY 3, 2;
COMMIT;
