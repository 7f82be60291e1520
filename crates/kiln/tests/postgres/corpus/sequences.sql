-- Sequences: what they are, and the values that sessions draw from them.
-- compare: messages

-- snippet: sequence-values
CREATE SEQUENCE s;
SELECT last_value, log_cnt, is_called FROM s;
SELECT nextval('s');
SELECT last_value, log_cnt, is_called FROM s;
SELECT nextval('s'), nextval('s'), currval('s');
SELECT last_value, log_cnt, is_called FROM s;
SELECT currval('s'), lastval();
SELECT * FROM s;
SELECT q.last_value + 1 FROM s AS q WHERE q.is_called;
SELECT count(*) FROM (SELECT nextval('s') FROM generate_series(1, 30)) q;
SELECT * FROM s;
SELECT nextval('s');
SELECT last_value, is_called FROM s;

-- snippet: sequence-by-regclass
CREATE SEQUENCE s;
SELECT nextval('s'::regclass), nextval('S'), nextval('"s"'), nextval(' s ');
SELECT nextval('s'::text::regclass), pg_catalog.nextval('s');
SELECT nextval(NULL), currval(NULL), setval(NULL, 1), setval('s', NULL), setval('s', 1, NULL);
SELECT 's'::regclass, 's'::regclass::oid > 0;
SELECT pg_typeof(nextval('s')), pg_typeof(lastval());

-- snippet: sequence-that-is-none
CREATE TABLE t (a INTEGER PRIMARY KEY);
-- error: 42P01
SELECT nextval('nosuch');
-- error: 42P01
SELECT currval('nosuch');
-- error: 42P01
SELECT setval('nosuch', 1);
-- error: 42809
SELECT nextval('t');
-- error: 42809
SELECT nextval('t_pkey');
-- error: 42883
SELECT nextval(1, 2);
-- error: 42883
SELECT lastval(1);

-- snippet: sequence-not-drawn-yet
CREATE SEQUENCE s;
CREATE SEQUENCE other;
-- error: 55000
SELECT currval('s');
SELECT nextval('other');
-- error: 55000
SELECT currval('s');
SELECT lastval();
SELECT setval('s', 5);
SELECT currval('s'), lastval();

-- snippet: sequence-lastval-of-a-dropped-one
CREATE SEQUENCE s;
SELECT nextval('s');
SELECT lastval();
DROP SEQUENCE s;
-- error: 55000
SELECT lastval();
CREATE SEQUENCE s;
-- error: 55000
SELECT currval('s');

-- snippet: sequence-setval
CREATE SEQUENCE s;
SELECT setval('s', 10);
SELECT * FROM s;
SELECT nextval('s');
SELECT setval('s', 20, false);
SELECT * FROM s;
SELECT currval('s');
SELECT nextval('s'), nextval('s');
SELECT setval('s', 30, true), nextval('s');
SELECT setval('s', 9223372036854775807);
-- error: 2200H
SELECT nextval('s');
SELECT * FROM s;
-- error: 22003
SELECT setval('s', 0);
-- error: 22003
SELECT setval('s', -5, false);
SELECT * FROM s;

-- snippet: sequence-end
CREATE SEQUENCE s MAXVALUE 3;
SELECT nextval('s');
SELECT * FROM s;
SELECT nextval('s'), nextval('s');
-- error: 2200H
SELECT nextval('s');
-- error: 2200H
SELECT nextval('s');
SELECT currval('s');
SELECT * FROM s;
ALTER SEQUENCE s MAXVALUE 4;
SELECT nextval('s');
-- error: 2200H
SELECT nextval('s');

-- snippet: sequence-end-downwards
CREATE SEQUENCE s INCREMENT -2 MINVALUE -5;
SELECT * FROM s;
SELECT nextval('s'), nextval('s'), nextval('s');
-- error: 2200H
SELECT nextval('s');
SELECT start_value, min_value, max_value, increment_by, cycle, cache_size, last_value FROM pg_sequences WHERE sequencename = 's';

-- snippet: sequence-cycle
CREATE SEQUENCE s MINVALUE 5 MAXVALUE 7 START 6 CYCLE;
SELECT nextval('s') FROM generate_series(1, 7);
SELECT * FROM s;
CREATE SEQUENCE down INCREMENT BY -1 MINVALUE -2 MAXVALUE 0 CYCLE;
SELECT nextval('down') FROM generate_series(1, 7);
ALTER SEQUENCE s NO CYCLE;
SELECT nextval('s');
-- error: 2200H
SELECT nextval('s') FROM generate_series(1, 4);

-- snippet: sequence-big-steps
CREATE SEQUENCE s INCREMENT 4611686018427387904;
SELECT nextval('s'), nextval('s');
-- error: 2200H
SELECT nextval('s');
CREATE SEQUENCE r INCREMENT -9223372036854775808 MAXVALUE 9223372036854775807 START 9223372036854775807;
SELECT nextval('r'), nextval('r');
-- error: 2200H
SELECT nextval('r');

-- snippet: sequence-cache
CREATE SEQUENCE s CACHE 5;
SELECT nextval('s');
SELECT * FROM s;
SELECT nextval('s'), nextval('s'), nextval('s'), nextval('s'), nextval('s');
SELECT * FROM s;
SELECT currval('s');
SELECT setval('s', 100);
SELECT nextval('s');
SELECT * FROM s;
CREATE SEQUENCE short CACHE 10 MAXVALUE 13;
SELECT nextval('short') FROM generate_series(1, 13);
-- error: 2200H
SELECT nextval('short');

-- snippet: sequence-types
CREATE SEQUENCE a AS smallint;
CREATE SEQUENCE b AS integer INCREMENT -1;
CREATE SEQUENCE c AS bigint START 5;
CREATE SEQUENCE d AS int2 MAXVALUE 10 MINVALUE -10;
SELECT sequencename, data_type, start_value, min_value, max_value, increment_by, cycle, cache_size, last_value FROM pg_sequences WHERE sequencename IN ('a', 'b', 'c', 'd') ORDER BY 1;
SELECT nextval('a'), nextval('b'), nextval('c'), nextval('d');
SELECT setval('a', 32767);
-- error: 2200H
SELECT nextval('a');
ALTER SEQUENCE a AS integer;
SELECT nextval('a');
SELECT max_value, min_value FROM pg_sequences WHERE sequencename = 'a';
ALTER SEQUENCE d AS integer;
SELECT max_value, min_value FROM pg_sequences WHERE sequencename = 'd';
-- error: 22023
ALTER SEQUENCE a AS smallint;
-- error: 22023
ALTER SEQUENCE a AS text;

-- snippet: sequence-refused
-- error: 22023
CREATE SEQUENCE q INCREMENT 0;
-- error: 22023
CREATE SEQUENCE q AS text;
-- error: 22023
CREATE SEQUENCE q AS smallint MAXVALUE 100000;
-- error: 22023
CREATE SEQUENCE q AS smallint MINVALUE -100000;
-- error: 22023
CREATE SEQUENCE q MINVALUE 5 MAXVALUE 3;
-- error: 22023
CREATE SEQUENCE q MINVALUE 5 MAXVALUE 5;
-- error: 22023
CREATE SEQUENCE q START 0;
-- error: 22023
CREATE SEQUENCE q MAXVALUE 10 START 11;
-- error: 22023
CREATE SEQUENCE q RESTART 0;
-- error: 22023
CREATE SEQUENCE q CACHE 0;
-- error: 42601
CREATE SEQUENCE q CYCLE NO CYCLE;
-- error: 42601
CREATE SEQUENCE q INCREMENT 2 INCREMENT BY 2;
-- error: 42601
CREATE SEQUENCE q MINVALUE 1 NO MINVALUE;
-- error: 22003
CREATE SEQUENCE q MAXVALUE 99999999999999999999;
-- error: 42704
CREATE SEQUENCE q AS serial;
-- error: 42P01
SELECT nextval('q');

-- snippet: sequence-names
CREATE SEQUENCE s;
CREATE TABLE t (a INTEGER PRIMARY KEY);
-- error: 42P07
CREATE SEQUENCE s;
CREATE SEQUENCE IF NOT EXISTS s START 100;
SELECT nextval('s');
-- error: 42P07
CREATE SEQUENCE t;
-- error: 42P07
CREATE SEQUENCE t_pkey;
-- error: 42P07
CREATE TABLE s (a INTEGER);
CREATE TABLE IF NOT EXISTS s (a INTEGER);
-- error: 42P07
CREATE INDEX s ON t (a);
CREATE SEQUENCE "Odd name";
SELECT nextval('"Odd name"');
-- error: 42P01
SELECT nextval('Odd');
DROP SEQUENCE "Odd name";

-- snippet: sequence-alter
CREATE SEQUENCE s;
SELECT nextval('s'), nextval('s'), nextval('s');
ALTER SEQUENCE s INCREMENT 10;
SELECT * FROM s;
SELECT nextval('s'), currval('s');
ALTER SEQUENCE s RESTART;
SELECT * FROM s;
SELECT currval('s');
SELECT nextval('s');
ALTER SEQUENCE s RESTART WITH 50;
SELECT nextval('s'), nextval('s');
ALTER SEQUENCE s START WITH 7;
SELECT nextval('s');
ALTER SEQUENCE s RESTART;
SELECT nextval('s');
ALTER SEQUENCE s INCREMENT BY -1 MINVALUE -3 MAXVALUE 10 CACHE 1;
SELECT nextval('s');
ALTER SEQUENCE s RESTART 2 START 3 CYCLE;
SELECT nextval('s') FROM generate_series(1, 8);
-- error: 22023
ALTER SEQUENCE s MAXVALUE 5 RESTART 6;
-- error: 22023
ALTER SEQUENCE s MINVALUE 9;
-- error: 22023
ALTER SEQUENCE s INCREMENT 0;
-- error: 42P01
ALTER SEQUENCE nosuch RESTART;
ALTER SEQUENCE IF EXISTS nosuch RESTART;

-- snippet: sequence-drop
CREATE SEQUENCE a;
CREATE SEQUENCE b;
CREATE TABLE t (x INTEGER PRIMARY KEY);
DROP SEQUENCE a, b;
-- error: 42P01
DROP SEQUENCE a;
DROP SEQUENCE IF EXISTS a, b;
-- error: 42809
DROP SEQUENCE t;
-- error: 42809
DROP SEQUENCE t_pkey;
CREATE SEQUENCE a;
-- error: 42809
DROP TABLE a;
-- error: 42809
DROP INDEX a;
-- error: 42P01
DROP SEQUENCE a, nosuch;
SELECT nextval('a');
DROP SEQUENCE a RESTRICT;
-- error: 42P01
SELECT nextval('a');

-- snippet: sequence-not-transactional
CREATE SEQUENCE s;
CREATE TABLE t (a BIGINT);
BEGIN;
SELECT nextval('s');
INSERT INTO t VALUES (nextval('s'));
ROLLBACK;
SELECT nextval('s'), currval('s');
BEGIN;
SELECT setval('s', 100);
ROLLBACK;
SELECT nextval('s');
BEGIN;
SELECT nextval('s');
SAVEPOINT a;
SELECT nextval('s');
ROLLBACK TO a;
SELECT currval('s');
SELECT nextval('s');
COMMIT;
SELECT count(*) FROM t;

-- snippet: sequence-in-statements
CREATE SEQUENCE s;
CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (nextval('s'), 'a'), (nextval('s'), 'b'), (nextval('s'), 'c') RETURNING id, v;
INSERT INTO t SELECT nextval('s'), 'x' FROM generate_series(1, 3) RETURNING id;
UPDATE t SET v = v || nextval('s') WHERE id = 2 RETURNING v;
SELECT id FROM t WHERE id = currval('s') - 4;
SELECT max(id), currval('s') FROM t;
SELECT CASE WHEN false THEN nextval('s') ELSE 0 END, currval('s');
SELECT coalesce(1, nextval('s')), currval('s');
WITH w AS (SELECT nextval('s') AS n) SELECT a.n = b.n FROM w a, w b;
SELECT currval('s');
SELECT nextval('s') WHERE false;
SELECT currval('s');
SELECT (SELECT nextval('s')) FROM generate_series(1, 3);
SELECT setval('s', (SELECT max(id) FROM t)), nextval('s');
SELECT setval('s', max(id), false) FROM t;
SELECT nextval('s');

-- snippet: sequence-in-functions
CREATE SEQUENCE s;
CREATE TABLE t (id BIGINT PRIMARY KEY);
CREATE FUNCTION draw() RETURNS BIGINT LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('s'); END $$;
CREATE FUNCTION fill(n INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    id BIGINT;
BEGIN
    FOR i IN 1..n LOOP
        id := nextval('s');
        INSERT INTO t VALUES (id);
    END LOOP;
    PERFORM nextval('s');
    RETURN currval('s');
END $$;
SELECT draw(), draw();
SELECT fill(3);
SELECT id FROM t ORDER BY id;
SELECT lastval();
CREATE PROCEDURE add() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (nextval('s')); END $$;
CALL add();
CALL add();
SELECT id FROM t ORDER BY id;
ALTER SEQUENCE s INCREMENT 100;
SELECT draw();
ALTER SEQUENCE s RESTART 1000;
SELECT draw();
CALL add();
SELECT max(id) FROM t;

-- snippet: sequence-as-default
CREATE SEQUENCE s START 10;
CREATE TABLE t (id BIGINT PRIMARY KEY DEFAULT nextval('s'), small SMALLINT DEFAULT nextval('s'::regclass), v TEXT);
INSERT INTO t (v) VALUES ('a'), ('b') RETURNING id, small;
INSERT INTO t VALUES (DEFAULT, 5, 'c') RETURNING id;
INSERT INTO t (id) VALUES (100);
INSERT INTO t DEFAULT VALUES RETURNING id, small;
UPDATE t SET small = DEFAULT WHERE id = 100 RETURNING small;
-- error: 2BP01
DROP SEQUENCE s;
SELECT setval('s', 40000);
-- error: 22003
INSERT INTO t (id) VALUES (200);
DROP SEQUENCE s CASCADE;
INSERT INTO t (id, v) VALUES (300, 'd') RETURNING small;
-- error: 23502
INSERT INTO t (v) VALUES ('e');
-- error: 42P01
CREATE TABLE u (id BIGINT DEFAULT nextval('s'));
CREATE SEQUENCE s;
ALTER TABLE t ALTER COLUMN id SET DEFAULT nextval('s');
INSERT INTO t (v) VALUES ('f') RETURNING id;
ALTER TABLE t ALTER id DROP DEFAULT;
-- error: 23502
INSERT INTO t (v) VALUES ('g');
DROP SEQUENCE s;

-- snippet: sequence-owned-by
CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT);
CREATE SEQUENCE s OWNED BY t.id;
CREATE SEQUENCE u;
ALTER SEQUENCE u OWNED BY t.v;
CREATE SEQUENCE free OWNED BY t.v;
ALTER SEQUENCE free OWNED BY NONE;
-- error: 42601
ALTER SEQUENCE free OWNED BY t;
-- error: 42703
ALTER SEQUENCE free OWNED BY t.nosuch;
-- error: 42P01
ALTER SEQUENCE free OWNED BY nosuch.v;
DROP TABLE t;
-- error: 42P01
SELECT nextval('s');
-- error: 42P01
SELECT nextval('u');
SELECT nextval('free');

-- snippet: sequence-script-of-a-dump
CREATE TABLE item (id integer NOT NULL, name text);
CREATE SEQUENCE item_id_seq AS integer START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1;
ALTER SEQUENCE item_id_seq OWNED BY item.id;
CREATE TABLE part (id bigint NOT NULL, name text);
ALTER TABLE part ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME part_numbers START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1);
ALTER TABLE ONLY item ALTER COLUMN id SET DEFAULT nextval('item_id_seq'::regclass);
INSERT INTO item VALUES (1, 'a'), (2, 'b');
SELECT pg_catalog.setval('item_id_seq', 2, true);
SELECT pg_catalog.setval('part_numbers', 5, false);
ALTER TABLE ONLY item ADD CONSTRAINT item_pkey PRIMARY KEY (id);
INSERT INTO item (name) VALUES ('c') RETURNING id;
INSERT INTO part (name) VALUES ('p') RETURNING id;
DROP TABLE item;
-- error: 42P01
SELECT nextval('item_id_seq');

-- snippet: sequence-when-reading-only
CREATE SEQUENCE s;
SELECT nextval('s');
BEGIN READ ONLY;
SELECT currval('s'), lastval(), (SELECT last_value FROM s);
COMMIT;
