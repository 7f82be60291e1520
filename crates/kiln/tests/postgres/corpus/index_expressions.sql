-- CREATE INDEX over expressions.
-- compare: messages

-- snippet: unique-over-a-call
CREATE TABLE t (id INTEGER PRIMARY KEY, email TEXT, n INTEGER);
INSERT INTO t VALUES (1, 'Ann@x', 1), (2, NULL, 2), (3, NULL, 3);
CREATE UNIQUE INDEX ON t (lower(email));
-- error: 23505
INSERT INTO t VALUES (4, 'aNN@X', 4);
INSERT INTO t VALUES (4, 'bob@x', 4), (5, NULL, 5);
-- error: 23505
UPDATE t SET email = 'BOB@x' WHERE id = 1;
UPDATE t SET email = 'ANN@X' WHERE id = 1;
SELECT * FROM t ORDER BY id;
SELECT id FROM t WHERE lower(email) = 'ann@x';
SELECT id FROM t WHERE lower(email) IN ('bob@x', 'ann@x', 'none') ORDER BY id;
SELECT id FROM t WHERE lower(email) > 'ann@x' AND lower(email) < 'z' ORDER BY id;
SELECT id FROM t ORDER BY lower(email), id;
SELECT id FROM t ORDER BY lower(email) DESC NULLS LAST, id LIMIT 2;
DELETE FROM t WHERE lower(email) = 'bob@x' RETURNING *;
UPDATE t SET n = n + 1 WHERE lower(email) = 'ann@x' RETURNING *;
SELECT * FROM t ORDER BY 1;

-- snippet: names-and-definitions
CREATE TABLE t (a INTEGER, b INTEGER, c VARCHAR(10), d TEXT NOT NULL, f DOUBLE PRECISION);
CREATE INDEX ON t (lower(c));
CREATE INDEX ON t (lower(d), upper(d));
CREATE INDEX ON t ((a + b) DESC);
CREATE INDEX ON t ((a + b), (a - b), a);
CREATE INDEX ON t ((c || d));
CREATE INDEX ON t ((a::text));
CREATE INDEX ON t (coalesce(a, 0));
CREATE INDEX ON t ((CASE WHEN a > 1 THEN b END));
CREATE INDEX ON t ((a));
CREATE UNIQUE INDEX by_length ON t (length(d), a);
CREATE INDEX ON t (abs(a), lower(d), abs(b));
SELECT indexname FROM pg_indexes WHERE tablename = 't' ORDER BY indexname;
SELECT split_part(indexdef, ' USING ', 2) FROM pg_indexes WHERE tablename = 't' AND indexname IN ('t_lower_idx', 't_coalesce_idx', 'by_length', 't_expr_expr1_a_idx') ORDER BY indexname;
SELECT pg_get_indexdef('by_length'::regclass, 1, true), pg_get_indexdef('by_length'::regclass, 2, true);
SELECT c.relname, a.attname, a.attnum FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relname IN ('t', 'by_length', 't_expr_expr1_a_idx') AND a.attnum > 0 ORDER BY 1, 3;
SELECT c.relname, i.indkey, i.indnatts, i.indisunique, pg_get_expr(i.indexprs, i.indrelid), pg_get_expr(i.indpred, i.indrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname IN ('by_length', 't_lower_idx', 't_expr_expr1_a_idx', 't_a_idx') ORDER BY 1;
SELECT relnatts FROM pg_class WHERE relname = 't';
SELECT column_name, ordinal_position FROM information_schema.columns WHERE table_name = 't' ORDER BY 2;

-- snippet: rows-do-not-show-it
CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL CHECK (b <> 'no'));
CREATE INDEX i ON t (upper(b), (a * 2));
INSERT INTO t VALUES (1, 'x') RETURNING *;
-- error: 42601
INSERT INTO t VALUES (1, 'x', 'y');
INSERT INTO t SELECT 2, 'y' RETURNING t.*;
-- error: 23502
INSERT INTO t VALUES (3, NULL);
-- error: 23514
INSERT INTO t VALUES (3, 'no');
SELECT * FROM t ORDER BY a;
SELECT t.* FROM t ORDER BY a;
TABLE t;
SELECT * FROM t x (c, d) ORDER BY c;
-- error: 42P10
SELECT * FROM t x (c, d, e);
SELECT * FROM t JOIN t AS u USING (a) ORDER BY a;
SELECT * FROM t FULL JOIN (SELECT 5 AS a) s USING (a) ORDER BY a;
SELECT row_to_json(t) FROM t ORDER BY a;
CREATE VIEW v AS SELECT * FROM t;
INSERT INTO v VALUES (6, 'z');
SELECT * FROM v ORDER BY a;
UPDATE v SET b = 'w' WHERE upper(b) = 'Z' RETURNING *;
CREATE TABLE u AS SELECT * FROM t;
SELECT * FROM u ORDER BY a;
WITH gone AS (DELETE FROM t WHERE upper(b) = 'W' RETURNING *) SELECT * FROM gone;
ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 7;
SELECT * FROM t ORDER BY a;
SELECT a FROM t WHERE upper(b) = 'Y' AND a * 2 = 4;
INSERT INTO t VALUES (9, 'q', 10) ON CONFLICT DO NOTHING;
SELECT a, c FROM t WHERE upper(b) = 'Q';
SELECT attname, attnum FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum;

-- snippet: on-conflict-infers-it
CREATE TABLE t (id SERIAL, tenant INTEGER, email TEXT, n INTEGER DEFAULT 0);
CREATE UNIQUE INDEX ON t (tenant, lower(email));
CREATE UNIQUE INDEX ON t ((n * 10 + tenant)) WHERE n > 5;
INSERT INTO t (tenant, email) VALUES (1, 'A') ON CONFLICT (tenant, lower(email)) DO UPDATE SET n = t.n + 1 RETURNING *;
INSERT INTO t (tenant, email) VALUES (1, 'a') ON CONFLICT (tenant, lower(email)) DO UPDATE SET n = t.n + 1 RETURNING *;
INSERT INTO t (tenant, email) VALUES (1, 'a') ON CONFLICT (lower(email), tenant) DO NOTHING RETURNING *;
INSERT INTO t (tenant, email) VALUES (1, 'a') ON CONFLICT DO NOTHING RETURNING *;
-- error: 42P10
INSERT INTO t (tenant, email) VALUES (1, 'a') ON CONFLICT (lower(email)) DO NOTHING;
-- error: 42P10
INSERT INTO t (tenant, email) VALUES (1, 'a') ON CONFLICT (tenant, upper(email)) DO NOTHING;
-- error: 42703
INSERT INTO t (tenant, email) VALUES (1, 'a') ON CONFLICT (tenant, lower(nosuch)) DO NOTHING;
-- error: 42P10
INSERT INTO t (tenant, n) VALUES (1, 7) ON CONFLICT ((n * 10 + tenant)) DO NOTHING;
INSERT INTO t (tenant, n) VALUES (1, 7) ON CONFLICT ((n * 10 + tenant)) WHERE n > 5 DO NOTHING;
INSERT INTO t (tenant, n) VALUES (1, 7) ON CONFLICT ((n * 10 + tenant)) WHERE n > 5 DO UPDATE SET email = 'seven' RETURNING tenant, email, n;
INSERT INTO t (tenant, n) VALUES (1, 7) ON CONFLICT ((n * 10 + tenant)) WHERE n > 6 AND tenant = 1 DO UPDATE SET email = 'eight' RETURNING tenant, email, n;
SELECT tenant, email, n FROM t ORDER BY id;

-- snippet: what-is-refused
CREATE TABLE t (a INTEGER, b TEXT, c TIMESTAMPTZ, d JSON, g INTEGER GENERATED ALWAYS AS (a + 1) STORED);
-- error: 42P17
CREATE INDEX ON t ((random() * a));
-- error: 42P17
CREATE INDEX ON t ((now() - c));
-- error: 42P17
CREATE INDEX ON t ((c::date));
-- error: 42P17
CREATE INDEX ON t (date_trunc('day', c));
-- error: 0A000
CREATE INDEX ON t ((a + (SELECT 1)));
-- error: 42803
CREATE INDEX ON t (sum(a));
-- error: 42703
CREATE INDEX ON t (lower(nosuch));
-- error: 42883
CREATE INDEX ON t (lower(a));
-- error: 42601
CREATE INDEX ON t (a + 1);
-- error: 42601
CREATE INDEX ON t (a::text);
-- error: 42601
CREATE INDEX ON t (CASE WHEN a > 1 THEN 1 END);
-- error: 42704
CREATE INDEX ON t ((d -> 'a'));
CREATE INDEX ON t ((d ->> 'a'));
-- error: 42P17
CREATE INDEX ON t (a) WHERE now() > c;
-- error: 42804
CREATE INDEX ON t (a) WHERE a;
-- error: 0A000
CREATE INDEX ON t (a) WHERE a = (SELECT 1);
-- error: 42803
CREATE INDEX ON t (a) WHERE sum(a) > 1;
-- error: 42703
CREATE INDEX ON t (a) WHERE nosuch > 1;
CREATE FUNCTION twice(n INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN n * 2; END $$;
-- error: 42P17
CREATE INDEX ON t (twice(a));

-- snippet: rows-that-do-not-fit
CREATE TABLE t (a INTEGER, b TEXT);
INSERT INTO t VALUES (1, 'x'), (0, 'X');
-- error: 23505
CREATE UNIQUE INDEX i ON t (lower(b));
-- error: 22012
CREATE INDEX i ON t ((1 / a));
DELETE FROM t WHERE a = 0;
CREATE UNIQUE INDEX i ON t (lower(b), (10 / a));
-- error: 22012
INSERT INTO t VALUES (0, 'y');
-- error: 22012
UPDATE t SET a = 0;
INSERT INTO t VALUES (10, 'x'), (11, 'y');
SELECT * FROM t ORDER BY a;

-- snippet: columns-of-it-change
CREATE TABLE t (a INTEGER, b TEXT, c INTEGER);
INSERT INTO t VALUES (1, 'B', 5), (2, 'A', 6);
CREATE INDEX one ON t (lower(b));
CREATE INDEX two ON t ((a + c), a);
CREATE INDEX three ON t (a) WHERE c > 5;
ALTER TABLE t RENAME COLUMN b TO name;
SELECT split_part(indexdef, ' USING ', 2) FROM pg_indexes WHERE tablename = 't' AND indexname IN ('one', 'two') ORDER BY 1;
SELECT a FROM t WHERE lower(name) = 'a';
ALTER TABLE t ALTER COLUMN c TYPE BIGINT;
ALTER TABLE t ALTER COLUMN a TYPE NUMERIC(10, 2);
SELECT a FROM t WHERE a + c = 8;
SELECT a FROM t WHERE c > 5;
-- error: 42883
ALTER TABLE t ALTER COLUMN name TYPE INTEGER USING 1;
ALTER TABLE t DROP COLUMN c;
SELECT indexname FROM pg_indexes WHERE tablename = 't' ORDER BY 1;
SELECT * FROM t ORDER BY a;
ALTER TABLE t DROP COLUMN name, ADD COLUMN z INTEGER;
SELECT indexname FROM pg_indexes WHERE tablename = 't' ORDER BY 1;
SELECT * FROM t ORDER BY a;

-- snippet: dropped-and-shared
CREATE TABLE t (a INTEGER, b TEXT);
INSERT INTO t VALUES (1, 'B'), (2, 'A');
CREATE INDEX one ON t (lower(b));
CREATE INDEX two ON t (lower(b), a);
CREATE INDEX three ON t (a, lower(b));
DROP INDEX one;
SELECT a FROM t WHERE lower(b) = 'a';
SELECT a FROM t WHERE a = 1 AND lower(b) = 'b';
DROP INDEX two, three;
SELECT * FROM t WHERE lower(b) = 'a';
SELECT indexname FROM pg_indexes WHERE tablename = 't';
INSERT INTO t VALUES (3, 'c') RETURNING *;

-- snippet: in-transaction-blocks
CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT);
INSERT INTO t VALUES (1, 'B');
BEGIN;
INSERT INTO t VALUES (2, 'C');
CREATE UNIQUE INDEX i ON t (lower(b));
INSERT INTO t VALUES (3, 'D');
SELECT a FROM t WHERE lower(b) = 'c';
SAVEPOINT s;
-- error: 23505
INSERT INTO t VALUES (4, 'd');
ROLLBACK TO s;
COMMIT;
SELECT a FROM t WHERE lower(b) = 'd';
-- error: 23505
INSERT INTO t VALUES (4, 'd');
BEGIN;
DROP INDEX i;
INSERT INTO t VALUES (4, 'd');
ROLLBACK;
-- error: 23505
INSERT INTO t VALUES (4, 'd');
SELECT * FROM t ORDER BY a;

-- snippet: triggers-and-generated-columns-beside-it
CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, g TEXT GENERATED ALWAYS AS (b || '!') STORED);
CREATE INDEX i ON t (lower(b));
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.b := NEW.b || 'x'; RETURN NEW; END $$;
CREATE TRIGGER f BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO t VALUES (1, 'A') RETURNING *;
UPDATE t SET a = a + 1 WHERE lower(b) = 'ax' RETURNING *;
SELECT a FROM t WHERE lower(b) = 'axx';
CREATE TABLE log (a INTEGER, b TEXT, g TEXT);
CREATE FUNCTION after() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log SELECT OLD.*; RETURN NULL; END $$;
CREATE TRIGGER z AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION after();
DELETE FROM t WHERE lower(b) = 'axx';
SELECT * FROM log;

-- snippet: a-user-function
CREATE FUNCTION twice(n INTEGER) RETURNS INTEGER IMMUTABLE LANGUAGE sql AS 'SELECT n * 2';
CREATE TABLE t (a INTEGER);
INSERT INTO t VALUES (1), (2);
CREATE UNIQUE INDEX ON t (twice(a));
SELECT indexname FROM pg_indexes WHERE tablename = 't';
-- error: 23505
INSERT INTO t VALUES (2);
SELECT a FROM t WHERE twice(a) = 4;

-- snippet: like-copies-it
CREATE TABLE t (a INTEGER, b TEXT);
CREATE UNIQUE INDEX ON t (lower(b)) WHERE a > 0;
CREATE INDEX ON t (a, upper(b));
CREATE TABLE u (LIKE t INCLUDING ALL);
SELECT split_part(indexdef, ' USING ', 2) FROM pg_indexes WHERE tablename = 'u' ORDER BY 1;
INSERT INTO u VALUES (1, 'x');
-- error: 23505
INSERT INTO u VALUES (2, 'X');
INSERT INTO u VALUES (0, 'X');
SELECT * FROM u ORDER BY a;
CREATE TABLE w (LIKE t);
SELECT * FROM w;

-- snippet: keys-and-cascades-beside-it
CREATE TABLE p (a INTEGER PRIMARY KEY, b TEXT);
CREATE TABLE c (x INTEGER REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE, y TEXT);
CREATE INDEX ON p (lower(b));
CREATE INDEX ON c ((x * 2));
INSERT INTO p VALUES (1, 'A'), (2, 'B');
INSERT INTO c VALUES (1, 'one'), (2, 'two');
UPDATE p SET a = 10 WHERE lower(b) = 'a';
SELECT y FROM c WHERE x * 2 = 20;
DELETE FROM p WHERE lower(b) = 'a';
SELECT * FROM c WHERE x * 2 = 20;
SELECT * FROM c WHERE x * 2 = 4;
-- error: 42830
CREATE TABLE d (z TEXT REFERENCES p (b));

-- snippet: index-expressions-in-other-schemas
CREATE SCHEMA other;
CREATE TABLE other.t (a INT PRIMARY KEY, b TEXT);
INSERT INTO other.t VALUES (1, 'One'), (2, 'Two');
CREATE UNIQUE INDEX t_lower ON other.t (lower(b));
CREATE INDEX ON other.t (upper(b), (a + 1)) WHERE a > 1;
SELECT a FROM other.t WHERE lower(b) = 'two';
-- error: 23505
INSERT INTO other.t VALUES (3, 'ONE');
INSERT INTO other.t VALUES (3, 'ONE') ON CONFLICT (lower(b)) DO UPDATE SET b = 'one again';
SELECT a, b FROM other.t ORDER BY a;
SELECT indexdef FROM pg_indexes WHERE schemaname = 'other' ORDER BY indexname;
-- error: 42704
DROP INDEX t_lower;
DROP INDEX other.t_lower;
INSERT INTO other.t VALUES (3, 'TWO');
DROP SCHEMA other CASCADE;
