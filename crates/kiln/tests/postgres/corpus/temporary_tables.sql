-- Temporary tables, sequences and views: what they are, what hides what, and when they end.
-- compare: messages

-- snippet: temporary-tables
CREATE TEMP TABLE t (id INTEGER PRIMARY KEY, v TEXT NOT NULL DEFAULT 'none', CHECK (id > 0));
INSERT INTO t VALUES (1, 'one'), (2, 'two');
INSERT INTO t (id) VALUES (3) RETURNING *;
SELECT * FROM t ORDER BY id;
SELECT * FROM pg_temp.t ORDER BY id DESC;
UPDATE t SET v = upper(v) WHERE id < 3 RETURNING id, v;
DELETE FROM pg_temp.t WHERE id = 2;
SELECT count(*) FROM t;
-- error: 23505
INSERT INTO t VALUES (1, 'again');
-- error: 23514
INSERT INTO t VALUES (-1);
-- error: 23502
INSERT INTO t VALUES (7, NULL);
-- error: 42P07
CREATE TEMP TABLE t (a INTEGER);
CREATE TEMPORARY TABLE IF NOT EXISTS t (a INTEGER);
SELECT id FROM t ORDER BY id;
TRUNCATE t;
SELECT count(*) FROM t;
DROP TABLE t;
-- error: 42P01
SELECT * FROM t;
-- error: 42P01
SELECT * FROM pg_temp.t;
CREATE LOCAL TEMP TABLE t (a INTEGER);
CREATE TABLE pg_temp.u (a INTEGER);
INSERT INTO u SELECT 1;
SELECT * FROM pg_temp.u, t;
DROP TABLE t, u;
-- error: 42P01
DROP TABLE t;
DROP TABLE IF EXISTS t, pg_temp.u;

-- snippet: temporary-tables-hide-permanent-ones
CREATE TABLE t (a INTEGER);
INSERT INTO t VALUES (1);
CREATE TEMP TABLE t (a INTEGER, b INTEGER);
SELECT * FROM t;
INSERT INTO t VALUES (2, 3);
SELECT * FROM t;
SELECT relpersistence, relkind FROM pg_class WHERE relname = 't' AND pg_table_is_visible(oid);
SELECT relpersistence, relkind FROM pg_class WHERE relname = 't' ORDER BY 1;
SELECT table_type, table_name FROM information_schema.tables WHERE table_name = 't' ORDER BY 1;
SELECT column_name FROM information_schema.columns WHERE table_name = 't' AND table_schema LIKE 'pg!_temp!_%' ESCAPE '!' ORDER BY ordinal_position;
SELECT 't'::regclass::oid = (SELECT oid FROM pg_class WHERE relname = 't' AND relpersistence = 't');
SELECT pg_my_temp_schema() = (SELECT relnamespace FROM pg_class WHERE relname = 't' AND relpersistence = 't'), pg_my_temp_schema() > 0;
SELECT nspname = 'pg_temp_' || substr(nspname, 9) FROM pg_namespace WHERE oid = pg_my_temp_schema();
SELECT current_schema() = 'public' OR current_schema() LIKE 'kiln%', array_length(current_schemas(true), 1), array_length(current_schemas(false), 1);
ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 5;
SELECT * FROM t;
DROP TABLE t;
SELECT * FROM t;
DROP TABLE t;
-- error: 42P01
DROP TABLE t;

-- snippet: temporary-tables-in-blocks
BEGIN;
CREATE TEMP TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1), (2);
SELECT count(*) FROM t;
ROLLBACK;
-- error: 42P01
SELECT count(*) FROM t;
BEGIN;
CREATE TEMP TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (1), (2);
CREATE INDEX i ON t ((id * 2));
SELECT id FROM t WHERE id * 2 = 4;
ALTER TABLE t ADD COLUMN v TEXT DEFAULT 'x';
INSERT INTO t VALUES (3, 'y');
SELECT * FROM t ORDER BY id;
COMMIT;
SELECT * FROM t ORDER BY id;
BEGIN;
SAVEPOINT s;
DROP TABLE t;
-- error: 42P01
SELECT * FROM t;
ROLLBACK TO s;
SELECT count(*) FROM t;
SAVEPOINT s2;
TRUNCATE t;
SELECT count(*) FROM t;
ROLLBACK TO s2;
SELECT count(*) FROM t;
CREATE TEMP TABLE u AS SELECT id FROM t;
SELECT count(*) FROM u;
ROLLBACK;
SELECT count(*) FROM t;
-- error: 42P01
SELECT count(*) FROM u;
BEGIN;
DELETE FROM t WHERE id = 1;
CREATE UNIQUE INDEX v ON t (v);
INSERT INTO t VALUES (4, 'z');
-- error: 23505
INSERT INTO t VALUES (5, 'z');
ROLLBACK;
INSERT INTO t VALUES (6, 'x');
SELECT * FROM t ORDER BY id;
BEGIN;
TRUNCATE t;
INSERT INTO t VALUES (9);
COMMIT;
SELECT * FROM t;
BEGIN;
DROP TABLE t;
CREATE TEMP TABLE t (other TEXT);
INSERT INTO t VALUES ('other');
COMMIT;
SELECT * FROM t;

-- snippet: temporary-beside-permanent-definitions
BEGIN;
CREATE TEMP TABLE t (a INTEGER);
INSERT INTO t VALUES (1), (2);
CREATE TABLE p AS SELECT a * 10 AS b FROM t;
CREATE TEMP TABLE u AS SELECT b FROM p;
INSERT INTO p VALUES (5);
SELECT * FROM p ORDER BY b;
COMMIT;
SELECT * FROM p ORDER BY b;
SELECT * FROM u ORDER BY b;
SELECT * FROM t ORDER BY a;
SELECT t.a, p.b FROM t JOIN p ON p.b = t.a * 10 ORDER BY 1;
INSERT INTO p SELECT a FROM t;
SELECT relname, relpersistence FROM pg_class WHERE relname IN ('p', 't', 'u') ORDER BY 1;

-- snippet: temporary-on-commit
CREATE TEMP TABLE keeps (a INTEGER) ON COMMIT PRESERVE ROWS;
CREATE TEMP TABLE loses (a SERIAL, b INTEGER) ON COMMIT DELETE ROWS;
INSERT INTO keeps VALUES (1);
INSERT INTO loses (b) VALUES (1);
SELECT * FROM keeps;
SELECT * FROM loses;
BEGIN;
INSERT INTO keeps VALUES (2);
INSERT INTO loses (b) VALUES (2), (3);
SELECT * FROM loses ORDER BY a;
CREATE TEMP TABLE goes (a INTEGER) ON COMMIT DROP;
INSERT INTO goes VALUES (1);
SELECT * FROM goes;
COMMIT;
SELECT * FROM keeps ORDER BY a;
SELECT * FROM loses;
-- error: 42P01
SELECT * FROM goes;
CREATE TEMP TABLE goes (a INTEGER) ON COMMIT DROP;
-- error: 42P01
SELECT * FROM goes;
BEGIN;
CREATE TEMP TABLE goes ON COMMIT DROP AS SELECT 1 AS a;
SELECT * FROM goes;
ALTER TABLE goes RENAME TO went;
COMMIT;
-- error: 42P01
SELECT * FROM went;
BEGIN;
INSERT INTO loses (b) VALUES (4);
ROLLBACK;
SELECT * FROM loses;
-- error: 42P16
CREATE TABLE t (a INTEGER) ON COMMIT DROP;
-- error: 42P16
CREATE TABLE t ON COMMIT DROP AS SELECT 1 AS a;
DROP TABLE keeps, loses;

-- snippet: temporary-tables-from-queries
CREATE TABLE p (a INTEGER, b TEXT);
INSERT INTO p VALUES (1, 'one'), (2, 'two'), (3, 'three');
CREATE TEMP TABLE t AS SELECT a, b FROM p WHERE a > 1;
SELECT * FROM t ORDER BY a;
SELECT a INTO TEMP u FROM p;
SELECT a + 1 AS c INTO TEMPORARY TABLE w FROM p WHERE a = 1;
SELECT * FROM u ORDER BY a;
SELECT * FROM w;
CREATE TEMP TABLE t2 (x) AS VALUES (1), (2);
SELECT * FROM t2 ORDER BY x;
CREATE TEMP TABLE t3 AS SELECT 1 AS a WITH NO DATA;
SELECT * FROM t3;
CREATE TEMP TABLE IF NOT EXISTS t3 AS SELECT 2 AS a;
SELECT * FROM t3;
CREATE TEMP TABLE t4 (LIKE p);
INSERT INTO t4 SELECT * FROM p WHERE a = 1;
SELECT * FROM t4;
-- error: 42P07
CREATE TEMP TABLE t4 AS SELECT 1 AS a;
-- error: 42P16
CREATE TEMP TABLE public.t5 (a INTEGER);
-- error: 42P16
CREATE TEMP TABLE public.t5 AS SELECT 1 AS a;
SELECT relname FROM pg_class WHERE relpersistence = 't' AND relkind = 'r' ORDER BY 1;

-- snippet: temporary-keys
CREATE TABLE p (a INTEGER PRIMARY KEY);
CREATE TEMP TABLE t (a INTEGER PRIMARY KEY, b INTEGER UNIQUE);
-- error: 42P16
CREATE TABLE q (a INTEGER REFERENCES t);
-- error: 42P16
CREATE TABLE q (a INTEGER, FOREIGN KEY (a) REFERENCES pg_temp.t (b));
-- error: 42P16
CREATE TEMP TABLE u (a INTEGER REFERENCES p);
-- error: 42P16
ALTER TABLE p ADD FOREIGN KEY (a) REFERENCES t;
CREATE TEMP TABLE u (a INTEGER REFERENCES t ON DELETE CASCADE, c INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20);
INSERT INTO u VALUES (1, 1), (2, 1);
-- error: 23503
INSERT INTO u VALUES (3, 1);
DELETE FROM t WHERE a = 1;
SELECT * FROM u;
-- error: 2BP01
DROP TABLE t;
DROP TABLE t CASCADE;
SELECT * FROM u;
INSERT INTO u VALUES (3, 1);
CREATE TEMP TABLE self (id INTEGER PRIMARY KEY, up INTEGER REFERENCES self);
INSERT INTO self VALUES (1, NULL), (2, 1);
-- error: 23503
INSERT INTO self VALUES (3, 4);

-- snippet: temporary-sequences
CREATE TEMP SEQUENCE s START 5;
SELECT nextval('s'), nextval('pg_temp.s'), currval('s');
CREATE TEMP TABLE t (id SERIAL PRIMARY KEY, v TEXT, n INTEGER GENERATED ALWAYS AS IDENTITY);
INSERT INTO t (v) VALUES ('a'), ('b') RETURNING id, n;
TRUNCATE t RESTART IDENTITY;
INSERT INTO t (v) VALUES ('c') RETURNING id, n;
ALTER SEQUENCE s RESTART WITH 100;
SELECT nextval('s');
SELECT relname, relpersistence FROM pg_class WHERE relkind = 'S' ORDER BY 1;
DROP TABLE t;
-- error: 42P01
SELECT nextval('t_id_seq');
DROP SEQUENCE s;
-- error: 42P01
SELECT nextval('s');

-- snippet: temporary-views
CREATE TABLE p (a INTEGER);
INSERT INTO p VALUES (1), (2);
CREATE TEMP VIEW v AS SELECT a * 2 AS b FROM p;
SELECT * FROM v ORDER BY b;
CREATE TEMP TABLE t AS SELECT 7 AS a;
CREATE VIEW w AS SELECT a FROM t;
SELECT * FROM w;
SELECT relname, relpersistence FROM pg_class WHERE relname IN ('v', 'w', 't', 'p') ORDER BY 1;
CREATE OR REPLACE TEMP VIEW v AS SELECT a * 3 AS b FROM p;
SELECT * FROM v ORDER BY b;
-- error: 2BP01
DROP TABLE t;
DROP TABLE t CASCADE;
-- error: 42P01
SELECT * FROM w;

-- snippet: temporary-altered
CREATE TEMP TABLE t (a INTEGER, b TEXT);
INSERT INTO t VALUES (1, '1'), (2, '2');
ALTER TABLE t RENAME TO u;
ALTER TABLE u RENAME COLUMN b TO c;
ALTER TABLE u ALTER COLUMN c TYPE INTEGER USING c::INTEGER;
ALTER TABLE u ADD PRIMARY KEY (a);
ALTER TABLE u ADD CONSTRAINT positive CHECK (c > 0);
-- error: 23514
INSERT INTO u VALUES (3, -1);
-- error: 23505
INSERT INTO u VALUES (1, 1);
ALTER TABLE u DROP CONSTRAINT positive;
INSERT INTO u VALUES (3, -1);
CREATE INDEX u_c ON u (c) WHERE c > 0;
SELECT * FROM u WHERE c > 0 ORDER BY c;
DROP INDEX u_c;
COMMENT ON TABLE u IS 'of this session';
COMMENT ON COLUMN u.c IS 'a number';
SELECT obj_description('u'::regclass, 'pg_class'), col_description('u'::regclass, 2);
ALTER TABLE u DROP COLUMN c;
SELECT * FROM u ORDER BY a;
DISCARD TEMP;
-- error: 42P01
SELECT * FROM u;
CREATE TEMP TABLE u (a INTEGER);
DISCARD ALL;
-- error: 42P01
SELECT * FROM u;

-- snippet: temporary-tables-and-read-only
CREATE TEMP TABLE t (a INTEGER);
CREATE TABLE p (a INTEGER);
BEGIN READ ONLY;
INSERT INTO t VALUES (1);
SELECT * FROM t;
-- error: 25006
INSERT INTO p SELECT a FROM t;
ROLLBACK;
BEGIN READ ONLY;
-- error: 25006
CREATE TEMP TABLE u (a INTEGER);
ROLLBACK;

-- snippet: temporary-tables-in-prepared-statements
CREATE TABLE t (a INTEGER);
INSERT INTO t VALUES (1);
PREPARE q AS SELECT a FROM t;
EXECUTE q;
CREATE TEMP TABLE t (a INTEGER);
INSERT INTO t VALUES (2);
DROP TABLE t;
EXECUTE q;
CREATE TEMP TABLE u (a INTEGER);
PREPARE p AS INSERT INTO u VALUES ($1) RETURNING a;
EXECUTE p (5);
ALTER TABLE u ADD COLUMN b INTEGER;
EXECUTE p (6);
SELECT a, b FROM u ORDER BY a;
BEGIN;
DECLARE c CURSOR FOR SELECT a FROM t;
CREATE TEMP TABLE t (a INTEGER);
FETCH c;
ROLLBACK;

-- snippet: temporary-tables-in-bodies
CREATE PROCEDURE fill(n INTEGER) LANGUAGE plpgsql AS $$
BEGIN
    CREATE TEMP TABLE IF NOT EXISTS scratch (i INTEGER);
    DELETE FROM scratch;
    INSERT INTO scratch SELECT generate_series(1, n);
END $$;
CALL fill(3);
SELECT sum(i) FROM scratch;
CALL fill(5);
SELECT sum(i) FROM scratch;
CREATE FUNCTION total() RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE s INTEGER;
BEGIN
    EXECUTE 'SELECT sum(i) FROM scratch' INTO s;
    RETURN s;
END $$;
SELECT total();
DROP TABLE scratch;
-- error: 42P01
SELECT total();
DO $$
DECLARE s INTEGER;
BEGIN
    CREATE TEMP TABLE once ON COMMIT DROP AS SELECT generate_series(1, 4) AS i;
    SELECT sum(i) INTO s FROM once;
    RAISE NOTICE 'sum %', s;
END $$;
-- error: 42P01
SELECT * FROM once;
DO $$
BEGIN
    BEGIN
        CREATE TEMP TABLE tried (i INTEGER);
        INSERT INTO tried VALUES (1 / 0);
    EXCEPTION WHEN division_by_zero THEN
        RAISE NOTICE 'caught';
    END;
    CREATE TEMP TABLE tried (other TEXT);
    INSERT INTO tried VALUES ('x');
END $$;
SELECT * FROM tried;

-- snippet: temporary-refusals
CREATE TEMP TABLE t (a INTEGER);
CREATE TABLE p (a INTEGER);
-- refused: a privilege for a temporary relation
GRANT SELECT ON t TO PUBLIC;
-- refused: a statement of temporary and permanent relations
DROP TABLE t, p;
-- error: 42601
CREATE OR REPLACE TEMP TABLE t (a INTEGER);
