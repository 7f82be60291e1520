-- Where statements are rare and answers are easily wrong: outputs that wait for the sort, windows that no
-- call uses, offsets of frames, infinities, Julian days, `"char"`.

-- compare: messages

-- snippet: functions-of-rows-behind-distinct-on
CREATE TABLE t (a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 1), (1, 2), (2, 1), (2, 3), (3, 0);
SELECT DISTINCT ON (a) a, b, generate_series(1, 3) FROM t ORDER BY a, b;
SELECT DISTINCT ON (a) a, b, generate_series(1, 3) AS g FROM t ORDER BY a, b, g DESC;
SELECT DISTINCT ON (a) a, b, generate_series(1, 3) AS g FROM t ORDER BY a, g DESC, b DESC;
SELECT DISTINCT ON (g) a, b, generate_series(1, 3) AS g FROM t ORDER BY g, a DESC, b;
SELECT DISTINCT ON (a) a, generate_series(1, b) AS g FROM t ORDER BY a;
SELECT DISTINCT ON (a) a, generate_series(1, b) AS g, b FROM t ORDER BY a, b DESC LIMIT 4 OFFSET 1;
SELECT DISTINCT ON (a) a, unnest(ARRAY[b, b + 1]) AS g FROM t ORDER BY a, b DESC LIMIT 2 OFFSET 1;
SELECT DISTINCT ON (a) a, count(*) OVER (ORDER BY a), generate_series(1, 2) AS g FROM t ORDER BY a, b;
SELECT DISTINCT ON (a) a, count(*), generate_series(1, 2) AS g FROM t GROUP BY a, b ORDER BY a, b;
SELECT DISTINCT ON (a) a, (SELECT max(b) FROM t AS u WHERE u.a = t.a) + generate_series(1, 2) FROM t ORDER BY a;
SELECT DISTINCT ON (a) a, generate_series(1, 2), generate_series(1, 3) * b FROM t ORDER BY a, b DESC;
SELECT DISTINCT a, generate_series(1, 2) AS g FROM t ORDER BY a, g;

-- snippet: sequences-count-in-the-order-of-rows
CREATE TABLE t (a INTEGER, b INTEGER);
CREATE TABLE n (id BIGINT, a INTEGER, rest BIGINT);
INSERT INTO t VALUES (1, 1), (1, 2), (2, 1), (2, 3), (3, 0);
CREATE SEQUENCE s;
SELECT a, nextval('s') FROM t ORDER BY a DESC, b;
SELECT a, nextval('s') FROM t ORDER BY a DESC, b LIMIT 2;
SELECT nextval('s');
SELECT DISTINCT ON (a) a, nextval('s') FROM t ORDER BY a DESC, b;
SELECT DISTINCT ON (a) a, nextval('s') AS n FROM t ORDER BY a, n DESC;
SELECT sum(b), nextval('s') FROM t GROUP BY a ORDER BY 1 DESC LIMIT 2;
SELECT a, sum(b) OVER (ORDER BY a), nextval('s') FROM t ORDER BY a DESC, b LIMIT 2;
SELECT nextval('s');
INSERT INTO n SELECT nextval('s'), a, (SELECT count(*) FROM n WHERE n.a < t.a) FROM t ORDER BY a DESC, b DESC;
SELECT * FROM n ORDER BY id;

-- snippet: constants-in-the-order-of-windows
CREATE TABLE t (a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 1), (1, 2), (2, 1), (2, 3), (3, 0);
SELECT a, sum(b) OVER (ORDER BY 1 RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ORDER BY 1, 2;
-- error: 0A000
SELECT sum(b) OVER (ORDER BY 'x' RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t;
-- error: 0A000
SELECT sum(b) OVER (ORDER BY NULL RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t;
SELECT a, sum(b) OVER (ORDER BY 1.5 RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ORDER BY 1, 2;
SELECT a, sum(b) OVER (ORDER BY a, a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ORDER BY 1, 2;
SELECT a, sum(b) OVER (ORDER BY a, a DESC RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ORDER BY 1, 2;
-- error: 42P20
SELECT sum(b) OVER (ORDER BY 1, a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t;
-- error: 42P20
SELECT sum(b) OVER (ORDER BY a, 2 RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t;
SELECT a, sum(b) OVER (ORDER BY 1 GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ORDER BY 1, 2;
SELECT a, rank() OVER (ORDER BY 1) FROM t ORDER BY 1;

-- snippet: windows-that-no-call-uses
CREATE TABLE t (a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 1), (1, 2), (2, 1);
-- error: 42703
SELECT a FROM t WINDOW w AS (ORDER BY nosuch);
-- error: 42703
SELECT a FROM t WINDOW w AS (PARTITION BY nosuch);
-- error: 42803
SELECT a FROM t WINDOW w AS (ORDER BY sum(a));
-- error: 42803
SELECT count(*) FROM t WINDOW w AS (ORDER BY a);
SELECT count(*) FROM t WINDOW w AS (ORDER BY count(*));
-- error: 42803
SELECT a FROM t GROUP BY a WINDOW w AS (ORDER BY b);
SELECT a FROM t GROUP BY a WINDOW w AS (ORDER BY a) ORDER BY a;
SELECT a, count(*) FROM t GROUP BY ROLLUP (a) WINDOW w AS (ORDER BY a) ORDER BY a;
-- error: 22P02
SELECT a FROM t WINDOW w AS (ROWS BETWEEN 'x' PRECEDING AND CURRENT ROW);
-- error: 42P10
SELECT a FROM t WINDOW w AS (ROWS BETWEEN a PRECEDING AND CURRENT ROW);
-- error: 42803
SELECT a FROM t WINDOW w AS (ROWS BETWEEN sum(1) PRECEDING AND CURRENT ROW);
SELECT a FROM t WINDOW w AS (ROWS BETWEEN NULL PRECEDING AND CURRENT ROW) ORDER BY a;
-- error: 42P20
SELECT a FROM t WINDOW w AS (RANGE BETWEEN 1 PRECEDING AND CURRENT ROW);
-- error: 42P20
SELECT a FROM t WINDOW w AS (GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW);
-- error: 42P20
SELECT a FROM t WINDOW w AS (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING);
-- error: 42P20
SELECT a FROM t WINDOW w AS (ORDER BY a RANGE BETWEEN nosuch FOLLOWING AND 'x' PRECEDING);
-- error: 42704
SELECT a FROM t WINDOW w AS (x);
-- error: 42704
SELECT a FROM t WINDOW w AS (w2), w2 AS (ORDER BY a);
-- error: 42P20
SELECT a FROM t WINDOW w2 AS (ORDER BY a), w AS (w2 ORDER BY b);
-- error: 42P20
SELECT a FROM t WINDOW w2 AS (ROWS 1 PRECEDING), w AS (w2 ORDER BY a);
SELECT a, rank() OVER w FROM t WINDOW v AS (PARTITION BY a), w AS (v ORDER BY b) ORDER BY a, 2;

-- snippet: offsets-of-frames-are-computed-once
CREATE TABLE t (a INTEGER, b INTEGER);
INSERT INTO t VALUES (1, 1), (1, 2), (2, 1), (2, 3), (3, 0);
CREATE SEQUENCE s;
SELECT a, b, count(*) OVER (ORDER BY a, b ROWS nextval('s') PRECEDING) FROM t ORDER BY 1, 2;
SELECT currval('s');
SELECT a, b, count(*) OVER (PARTITION BY a ORDER BY b ROWS nextval('s') PRECEDING) FROM t ORDER BY 1, 2;
SELECT currval('s');
SELECT count(*) OVER w, sum(b) OVER w FROM t WINDOW w AS (ORDER BY a, b ROWS BETWEEN nextval('s') PRECEDING AND nextval('s') FOLLOWING) ORDER BY 1, 2;
SELECT currval('s');
SELECT count(*) OVER (ORDER BY a RANGE nextval('s') PRECEDING) FROM t WHERE false;
SELECT currval('s');
-- error: 22004
SELECT count(*) OVER (ORDER BY a ROWS NULL PRECEDING) FROM t WHERE false;
-- error: 22013
SELECT row_number() OVER (ORDER BY a ROWS -1 PRECEDING) FROM t WHERE false;
-- error: 22013
SELECT count(*) OVER (ORDER BY a GROUPS BETWEEN 1 PRECEDING AND -1 FOLLOWING) FROM t;
SELECT x, ARRAY(SELECT sum(b) OVER (ORDER BY a, b ROWS x PRECEDING) FROM t ORDER BY a, b) FROM generate_series(0, 2) AS x ORDER BY x;
SELECT a, count(*) OVER (ORDER BY a, b ROWS (SELECT min(a) FROM t) PRECEDING) FROM t ORDER BY a, b;

-- snippet: one-expression-by-two-aliases-in-grouping-sets
CREATE TABLE t (a INTEGER, b INTEGER, c TEXT);
INSERT INTO t VALUES (1, 1, 'x'), (1, 2, 'y'), (2, 1, 'x'), (2, 3, 'y'), (3, 0, 'x');
SELECT * FROM (SELECT a AS x, a AS y, count(*) AS n FROM t GROUP BY ROLLUP (x, y)) AS q ORDER BY x, y, n;
SELECT * FROM (SELECT a AS x, a AS y, count(*) AS n FROM t GROUP BY ROLLUP (x), ROLLUP (y)) AS q ORDER BY x, y, n;
SELECT * FROM (SELECT a AS x, a AS y, count(*) AS n, grouping(a) FROM t GROUP BY ROLLUP (x, y)) AS q ORDER BY x, y, n;
SELECT * FROM (SELECT a AS x, a AS y, count(*) AS n FROM t GROUP BY x, ROLLUP (y)) AS q ORDER BY x, y, n;
SELECT * FROM (SELECT a AS x, a AS y, count(*) AS n FROM t GROUP BY CUBE (x, y)) AS q ORDER BY x, y, n;
SELECT * FROM (SELECT a AS x, a AS y, count(*) AS n FROM t GROUP BY GROUPING SETS ((a), (2))) AS q ORDER BY x, y, n;
SELECT * FROM (SELECT a + 1 AS x, a + 1 AS y, a + 1 AS z, count(*) AS n, grouping(a + 1) FROM t GROUP BY ROLLUP (x, y)) AS q ORDER BY x, y, n;
SELECT * FROM (SELECT a AS x, a AS y, count(*) AS n FROM t GROUP BY ROLLUP (1, 2)) AS q ORDER BY x, y, n;
SELECT * FROM (SELECT a AS x, a AS y, count(*) AS n FROM t GROUP BY ROLLUP (a)) AS q ORDER BY x, y, n;
SELECT * FROM (SELECT a, a AS y, count(*) AS n FROM t GROUP BY ROLLUP (y, a)) AS q ORDER BY a, y, n;
SELECT * FROM (SELECT a AS x, a AS y, count(*) AS n FROM t GROUP BY ROLLUP (x, y) HAVING a IS NOT NULL) AS q ORDER BY x, y, n;
SELECT * FROM (SELECT c AS x, c AS y, sum(a) AS n FROM t GROUP BY GROUPING SETS ((x, a), (y, b))) AS q ORDER BY x, y, n;
SELECT * FROM (SELECT 1 AS x, 1 AS y, count(*) AS n FROM t GROUP BY ROLLUP (x, y)) AS q ORDER BY x, y, n;

-- snippet: fields-of-infinities
SELECT extract(doy FROM DATE 'infinity'), extract(month FROM DATE '-infinity'), extract(dow FROM DATE 'infinity'), extract(week FROM DATE 'infinity');
SELECT extract(year FROM DATE 'infinity'), extract(year FROM DATE '-infinity'), extract(epoch FROM DATE 'infinity'), extract(century FROM DATE '-infinity'), extract(decade FROM DATE 'infinity'), extract(millennium FROM DATE 'infinity'), extract(julian FROM DATE 'infinity'), extract(isoyear FROM DATE '-infinity');
-- error: 0A000
SELECT extract(hour FROM DATE 'infinity');
-- error: 22023
SELECT extract(nosuch FROM DATE 'infinity');
SELECT date_part('doy', DATE 'infinity'), date_part('year', DATE '-infinity'), date_part('hour', DATE '-infinity'), date_part('hour', DATE '2020-01-01');
SELECT extract(hour FROM TIMESTAMP 'infinity'), extract(second FROM TIMESTAMP '-infinity'), extract(timezone FROM TIMESTAMP 'infinity'), extract(epoch FROM TIMESTAMP '-infinity');
SELECT extract(timezone FROM TIMESTAMPTZ 'infinity'), extract(julian FROM TIMESTAMPTZ '-infinity'), date_part('isoyear', TIMESTAMPTZ '-infinity'), date_part('week', TIMESTAMPTZ 'infinity');
-- error: 22023
SELECT extract(nosuch FROM TIMESTAMPTZ 'infinity');
SELECT date_trunc('day', TIMESTAMP 'infinity'), date_trunc('nosuch', TIMESTAMP '-infinity'), date_trunc('day', TIMESTAMPTZ '-infinity', 'nosuch');
-- error: 0A000
SELECT date_trunc('timezone', TIMESTAMP '2020-01-01');
SELECT isfinite(INTERVAL '1 day'), isfinite(DATE 'infinity'), isfinite(TIMESTAMP '2020-01-01');

-- snippet: julian-days
SELECT DATE 'J2451187', DATE 'J0', DATE 'j1', DATE 'Julian 2451187', DATE 'J2451187 BC', DATE 'J2451187-05', DATE 'Monday J2451187';
SELECT TIMESTAMP 'J2451187', TIMESTAMP 'J2451187.5', TIMESTAMP 'J2451187.123456', TIMESTAMP 'J2451187 10:00', TIMESTAMP '10:00 J2451187', TIMESTAMP 'J2451187T10:00', TIMESTAMP 'J2451187 1000';
SELECT TIMESTAMPTZ 'J2451187 10:00:00+02', 'J2451187'::text::date;
SELECT DATE '2020-01-02 T1000', DATE 'y2020m01d02', TIMESTAMP 'y2020m01d02 h04m05s06.5', DATE '2020-002', TIMESTAMP '2020-01-02 04:05.5', TIMESTAMP '2020-01-02 allballs', TIMESTAMP 'Jan 8 04:05:06 1999 PST';
SELECT TIMESTAMPTZ '2020-01-02 100000-05', TIMESTAMPTZ 'epoch 10:00', TIMESTAMPTZ '2020-01-02 10:00 est dst', DATE '2020.002 z', DATE '08-Jan-99 at 10:00';
-- error: 22007
SELECT DATE 'J';
-- error: 22007
SELECT DATE 'J-1';
-- error: 22007
SELECT DATE 'J2451187 2020-01-01';
-- error: 22007
SELECT DATE '2020-01-01 J2451187';
-- error: 22008
SELECT DATE 'J2147483647';
-- error: 22008
SELECT DATE 'J99999999999';

-- snippet: zones-of-times
-- error: 22007
SELECT TIME '10:00 America/New_York';
-- error: 22007
SELECT '10:00 Europe/Berlin'::time;
-- error: 22007
SELECT '10:00 Europe/Berlin'::text::time;
SELECT TIME '2020-01-01 10:00 America/New_York', TIME '10:00 EST', TIME '10:00 +02', TIME '10:00 GMT+2', TIME '10:00 J2451187';
SELECT TIME 'T10:00', TIME 't100000', TIME '10:00 est dst', TIME '200102 y', TIME '04:05.5', TIME '08-01-1999 10:00';
-- error: 22007
SELECT TIME '10:00 Monday';
-- error: 22007
SELECT TIME 'today';
-- error: 22023
SELECT TIME '10:00 foo/bar';
SELECT TIMESTAMPTZ '2020-01-01 10:00 GMT+2', TIMESTAMPTZ '2020-07-01 10:00 EST5EDT', TIMESTAMPTZ '2020-01-01 10:00 UTC-3', TIMESTAMPTZ '2020-01-01 1000 EST';

-- snippet: extremes-of-intervals
SELECT INTERVAL '-9223372036854775808 microseconds', INTERVAL '2562047788:00:54.775807', INTERVAL '-178956970 years -8 months', INTERVAL '-2147483648 days';
-- error: 22007
SELECT INTERVAL '-2562047788:00:54.775808';
-- error: 22015
SELECT INTERVAL '178956970-8';
-- error: 22008
SELECT INTERVAL '178956970 years 8 months';
-- error: 22015
SELECT INTERVAL '9223372036854775808 microseconds';

-- snippet: dates-beside-timestamps
CREATE TABLE d (d DATE, ts TIMESTAMP, tz TIMESTAMPTZ);
INSERT INTO d VALUES ('5874897-12-31', '2020-01-01', '2020-01-01'), ('infinity', 'infinity', 'infinity'), ('-infinity', '-infinity', '-infinity'), ('2020-01-01', '2020-01-01', '2020-01-01');
SELECT TIMESTAMPTZ '2020-01-01' < DATE '5874897-12-31', TIMESTAMP '2020-01-01' = DATE '5874897-12-31', TIMESTAMP 'infinity' > DATE '5874897-12-31', TIMESTAMPTZ 'infinity' = DATE 'infinity', DATE '5874897-12-31' IS DISTINCT FROM TIMESTAMPTZ '2020-01-01';
SELECT * FROM d WHERE d > tz ORDER BY d;
SELECT * FROM d WHERE d = tz ORDER BY d;
SELECT a.d, b.d FROM d AS a JOIN d AS b ON a.d = b.tz ORDER BY 1, 2;
SELECT d FROM d WHERE d BETWEEN tz AND ts ORDER BY 1;
SELECT d FROM d WHERE d IN (SELECT tz FROM d) ORDER BY 1;
CREATE INDEX ON d (tz);
CREATE INDEX ON d (ts);
SELECT d FROM d WHERE tz < DATE '5874897-12-31' ORDER BY 1;
SELECT d FROM d WHERE ts < DATE '5874897-12-31' ORDER BY 1;
SELECT d FROM d WHERE tz = DATE '2020-01-01' ORDER BY 1;
SELECT CASE DATE '5874897-12-31' WHEN TIMESTAMPTZ '2020-01-01' THEN 1 ELSE 2 END, nullif(DATE '5874897-12-31', TIMESTAMP '2020-01-01'), nullif(TIMESTAMP '2020-01-01', TIMESTAMPTZ '2020-01-01'), nullif(DATE '2020-01-01', '2020-01-02');
-- error: 22008
SELECT DATE '5874897-12-31'::timestamp;
-- error: 22008
SELECT greatest(DATE '5874897-12-31', TIMESTAMP '2021-01-01');

-- snippet: escapes-of-char
SELECT '\101'::"char", '\000'::"char" = ''::"char", '\7'::"char", '\78'::"char", '\1011'::"char", 'ab'::"char", '\101'::text::"char", '{a,"\\101"}'::"char"[];
SELECT 'A'::"char"::int, ''::"char"::int, 65::"char", 0::"char" = '';
-- error: 22003
SELECT 128::"char";
-- refused: a "char" of a byte above 127
SELECT '\377'::"char";

-- snippet: keys-of-json-that-are-null
-- error: 22023
SELECT jsonb_build_object(VARIADIC ARRAY[NULL, 'b']);
-- error: 22023
SELECT jsonb_build_object('a', 1, NULL, 2);
-- error: 22023
SELECT json_build_object(NULL, 'b');
SELECT '[]'::jsonb #- '{a}', '{}'::jsonb #- '{a}', '[1]'::jsonb #- '{5}', jsonb_set('[]', '{a}', '1', false), '[]'::jsonb #- ARRAY[NULL];
-- error: 22P02
SELECT '[1]'::jsonb #- '{a}';
-- error: 22P02
SELECT '{"a": []}'::jsonb #- '{a,b}';
-- error: 22P02
SELECT jsonb_set('[]', '{a}', '1');

-- snippet: locks-of-materialized-views
CREATE TABLE t (a INTEGER PRIMARY KEY);
CREATE MATERIALIZED VIEW m AS SELECT * FROM t;
CREATE VIEW v AS SELECT * FROM m;
CREATE SEQUENCE s;
-- error: 42809
SELECT * FROM m FOR UPDATE;
-- error: 42809
SELECT * FROM m, t FOR SHARE OF m;
SELECT * FROM m, t FOR UPDATE OF t;
-- error: 42809
SELECT * FROM v FOR UPDATE;
-- error: 42809
SELECT * FROM (SELECT * FROM m) AS x FOR UPDATE SKIP LOCKED;
-- error: 42809
SELECT 1 WHERE EXISTS (SELECT FROM m FOR KEY SHARE);
-- error: 42809
SELECT last_value FROM s FOR UPDATE;

-- snippet: on-conflict-by-way-of-views
CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER DEFAULT 5, c TEXT, UNIQUE (b, c));
INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y');
CREATE VIEW v AS SELECT a, b AS bb, c FROM t;
INSERT INTO v VALUES (1, 9, 'z') ON CONFLICT (a) DO UPDATE SET bb = excluded.bb + 1 RETURNING *;
INSERT INTO v VALUES (1, 9, 'z') ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO v VALUES (1, 9, 'z'), (5, 5, 'five') ON CONFLICT (a) DO NOTHING RETURNING *;
INSERT INTO v (a, bb, c) VALUES (3, 2, 'y') ON CONFLICT (bb, c) DO UPDATE SET a = excluded.a RETURNING *;
-- error: 42703
INSERT INTO v VALUES (3, 7, 'q') ON CONFLICT (b, c) DO NOTHING;
-- error: 42704
INSERT INTO v VALUES (1, 9, 'z') ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING;
INSERT INTO v AS w VALUES (1, 9, 'z'), (3, 9, 'q') ON CONFLICT (a) DO UPDATE SET c = w.c || excluded.c WHERE w.a = 1 RETURNING *;
-- error: 42703
INSERT INTO v VALUES (1, 9, 'z') ON CONFLICT (a) DO UPDATE SET bb = excluded.b;
-- error: 42P01
INSERT INTO v VALUES (1, 9, 'z') ON CONFLICT (a) DO UPDATE SET bb = t.b;
INSERT INTO v (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET (bb, c) = (excluded.bb, 'k') RETURNING *;
CREATE VIEW narrow AS SELECT * FROM t WHERE b < 100;
INSERT INTO narrow VALUES (1, 200, 'big') ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING *;
INSERT INTO narrow VALUES (1, 3, 'small') ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING *;
CREATE VIEW checked AS SELECT * FROM t WHERE b < 100 WITH CHECK OPTION;
-- error: 44000
INSERT INTO checked VALUES (7, 200, 'big') ON CONFLICT (a) DO NOTHING;
INSERT INTO checked VALUES (1, 200, 'big') ON CONFLICT (a) DO NOTHING;
-- error: 44000
INSERT INTO checked VALUES (3, 50, 'big') ON CONFLICT (a) DO UPDATE SET b = 300;
INSERT INTO checked VALUES (3, 50, 'big') ON CONFLICT (a) DO UPDATE SET b = 70 RETURNING *;
CREATE VIEW computed AS SELECT a, b + 1 AS b1, c FROM t;
INSERT INTO computed (a, c) VALUES (1, 'z') ON CONFLICT (a) DO UPDATE SET c = excluded.b1::text RETURNING *;
-- error: 42P10
INSERT INTO computed (a, c) VALUES (1, 'z') ON CONFLICT (b1) DO NOTHING;
CREATE VIEW outer_view AS SELECT bb, a FROM v;
INSERT INTO outer_view VALUES (4, 1) ON CONFLICT (a) DO UPDATE SET bb = excluded.bb * 10 RETURNING *;
CREATE UNIQUE INDEX ON t (lower(c)) WHERE a > 0;
INSERT INTO v VALUES (9, 9, 'FIVE') ON CONFLICT (lower(c)) WHERE a > 0 DO UPDATE SET c = 'low' RETURNING *;
SELECT * FROM t ORDER BY a;

-- snippet: merge-puts-a-key-back
CREATE TABLE p (k INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE c (id INTEGER PRIMARY KEY, k INTEGER REFERENCES p);
INSERT INTO p VALUES (1, 1), (2, 2);
INSERT INTO c VALUES (1, 1);
MERGE INTO p USING (VALUES (1, 10), (3, 30)) AS s (k, v) ON p.k = s.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (1, s.v);
SELECT * FROM p ORDER BY k;
MERGE INTO p USING (VALUES (1, 10), (2, 20)) AS s (k, v) ON p.k = s.k WHEN MATCHED AND p.k = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET k = 1;
SELECT * FROM p ORDER BY k;
-- error: 23503
MERGE INTO p USING (VALUES (1, 10), (3, 30)) AS s (k, v) ON p.k = s.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (5, s.v);
CREATE TABLE r (id INTEGER PRIMARY KEY, k INTEGER REFERENCES p ON DELETE RESTRICT);
INSERT INTO r VALUES (1, 1);
-- error: 23503
MERGE INTO p USING (VALUES (1, 10), (3, 30)) AS s (k, v) ON p.k = s.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (1, s.v);

-- snippet: merge-puts-a-key-back-beside-a-trigger
CREATE TABLE p (k INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE c (id INTEGER PRIMARY KEY, k INTEGER REFERENCES p);
CREATE TABLE log (what TEXT);
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (TG_OP); RETURN NULL; END $$;
CREATE TRIGGER noted AFTER INSERT OR DELETE ON p FOR EACH ROW EXECUTE FUNCTION noted();
INSERT INTO p VALUES (1, 1);
INSERT INTO c VALUES (1, 1);
MERGE INTO p USING (VALUES (1, 10), (3, 30)) AS s (k, v) ON p.k = s.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (1, s.v);
SELECT * FROM p;
SELECT what, count(*) FROM log GROUP BY what ORDER BY what;

-- snippet: modes-of-transactions-after-queries
CREATE TABLE t (a INTEGER);
BEGIN;
SELECT 1;
SET TRANSACTION READ WRITE;
SET TRANSACTION READ ONLY;
-- error: 25006
INSERT INTO t VALUES (1);
ROLLBACK;
BEGIN READ ONLY;
SET TRANSACTION READ WRITE;
INSERT INTO t VALUES (2);
COMMIT;
BEGIN READ ONLY;
SELECT 1;
-- error: 25001
SET TRANSACTION READ WRITE;
ROLLBACK;
BEGIN READ ONLY;
SAVEPOINT s;
-- error: 25001
SET transaction_read_only = off;
ROLLBACK;
BEGIN;
SAVEPOINT s;
SET TRANSACTION READ ONLY;
-- error: 25006
INSERT INTO t VALUES (3);
ROLLBACK TO s;
INSERT INTO t VALUES (4);
SET TRANSACTION READ ONLY;
RELEASE s;
INSERT INTO t VALUES (5);
COMMIT;
SET transaction_read_only = on;
SHOW transaction_read_only;
INSERT INTO t VALUES (6);
SELECT * FROM t ORDER BY a;

-- snippet: isolation-after-queries
BEGIN;
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
SELECT 1;
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
-- error: 25001
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
ROLLBACK;
BEGIN;
SELECT 1;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
-- error: 25001
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
ROLLBACK;
BEGIN;
SAVEPOINT s;
-- error: 25001
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
ROLLBACK;
BEGIN;
SHOW timezone;
SET LOCAL timezone = 'UTC';
SET TRANSACTION DEFERRABLE;
SELECT 1;
-- error: 25001
SET TRANSACTION NOT DEFERRABLE;
ROLLBACK;
-- error: 22023
SET transaction_isolation = 'nonsense';
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE;
BEGIN;
SELECT 1;
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
COMMIT;
RESET default_transaction_isolation;

-- snippet: defaults-of-modes-within-a-block
CREATE TABLE t (a INTEGER);
BEGIN;
SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY;
INSERT INTO t VALUES (1);
COMMIT;
BEGIN;
SHOW transaction_read_only;
SET default_transaction_read_only = off;
-- error: 25006
INSERT INTO t VALUES (2);
ROLLBACK;
SET default_transaction_read_only = off;
SELECT * FROM t;

-- snippet: operators-of-one-operand-and-powers-of-real
SELECT - '1.5'::real, + '1.5'::real, + '1'::smallint, pg_typeof(+ '1.5'::real), pg_typeof(- '1.5'::real);
SELECT '1.5'::real ^ 2, 2 ^ '1.5'::real, pg_typeof(2.0 ^ '1.5'::real), '2'::real ^ '2'::real;
SELECT + '1', + NULL;
-- error: 42725
SELECT - NULL;
-- error: 42725
SELECT - '1';
-- error: 42883
SELECT + interval '1 day';
SELECT sum(+ r), sum(- r) FROM (VALUES ('1.5'::real), ('2'::real)) t (r);

-- snippet: clocks-in-the-west-before-the-first-day
SELECT '4714-11-23 16:00:00-08 BC'::timestamptz, '294277-01-01 00:00:00+01'::timestamptz;
-- error: 22008
SELECT '4714-11-24 00:00:00+01 BC'::timestamptz;
SELECT '4714-11-24 BC'::timestamp < '2020-10-05'::timestamptz;

-- snippet: templates-of-times
SELECT to_char('infinity'::timestamp, 'YYYY'), to_char('-infinity'::timestamptz, 'HH24') IS NULL, to_char('infinity'::date, 'DD');
SELECT i, to_timestamp('2018-11-02 12:34:56.123556', 'YYYY-MM-DD HH24:MI:SS.FF' || i) FROM generate_series(1, 6) i;
SELECT to_timestamp('12:34:56.96', 'HH24:MI:SS.FF1')::time, to_timestamp('1 TMMON', '"x" "TMMON"') IS NULL;
SELECT to_char(date '2010-02-01', 'DD TMMON YYYY'), to_char(date '2010-02-01', 'TMMonth|TMDay|TMDy'), to_date('1 feb 2010', 'DD TMMON YYYY');

-- snippet: zones-of-make-timestamptz
SET TimeZone = 'America/New_York';
SELECT make_timestamptz(1973, 07, 15, 08, 15, 55.33, '+2'), make_timestamptz(1973, 07, 15, 08, 15, 55.33, '-2'), make_timestamptz(1973, 07, 15, 08, 15, 55.33, '+02:30');
SELECT make_timestamptz(1973, 07, 15, 08, 15, 55.33, '+0230'), make_timestamptz(1973, 07, 15, 08, 15, 55.33, 'Europe/Prague'), make_timestamptz(1973, 07, 15, 08, 15, 55.33, NULL);
-- error: 22023
SELECT make_timestamptz(1973, 07, 15, 08, 15, 55.33, '2');
-- error: 22023
SELECT make_timestamptz(2014, 12, 10, 10, 10, 10, '+16');
-- error: 22023
SELECT make_timestamptz(2014, 12, 10, 10, 10, 10, 'Nehwon/Lankhmar');
SELECT timestamp '1973-07-15 08:15:55' AT TIME ZONE '+2';

-- snippet: rows-of-a-recursion-have-one-type
-- error: 42804
WITH RECURSIVE foo(i) AS (SELECT i::numeric(3,0) FROM (VALUES (1), (2)) t(i) UNION ALL SELECT (i + 1)::numeric(10,0) FROM foo WHERE i < 10) SELECT * FROM foo;
WITH RECURSIVE foo(i) AS (SELECT i::numeric(3,0) FROM (VALUES (1), (2)) t(i) UNION ALL SELECT (i + 1)::numeric(3,0) FROM foo WHERE i < 4) SELECT * FROM foo;
-- error: 42804
WITH RECURSIVE foo(i) AS (SELECT i::numeric(3,0) FROM (VALUES (1), (2)) t(i) UNION ALL SELECT i + 1 FROM foo WHERE i < 4) SELECT * FROM foo;

-- snippet: partitions-by-range
-- refused: PARTITION BY RANGE
CREATE TABLE by_range (a INTEGER, b TEXT) PARTITION BY RANGE (a);
-- refused: PARTITION BY LIST
CREATE TABLE by_list (a INTEGER, b TEXT) PARTITION BY LIST (a);

-- snippet: calls-in-words-and-collations
SELECT TRIM(TRAILING FROM 'a  ') || '|', TRIM(LEADING FROM '  b'), TRIM(BOTH FROM ' c ') || '|', TRIM(FROM ' d ') || '|', TRIM(' e ') || '|', TRIM(LEADING 'x' FROM 'xf');
SELECT 'x'::text COLLATE "C", ('b'::text COLLATE "C") < 'a', 'a'::varchar(3) COLLATE pg_catalog."default" || 'b', 'a' || 'b'::text COLLATE "C" || 'c';
CREATE TABLE words (w VARCHAR(9));
INSERT INTO words VALUES ('b'), ('B'), ('a');
SELECT w FROM words ORDER BY w::text COLLATE "C" DESC;
SELECT w FROM words WHERE w::text COLLATE "C" > 'A' ORDER BY w COLLATE "C";
VACUUM ANALYZE words (w);
-- error: 0A000
VACUUM words, words (w);

-- snippet: parameters-and-columns-of-one-name
CREATE TABLE item (id INTEGER PRIMARY KEY, price INTEGER);
INSERT INTO item VALUES (1, 10), (2, 20);
CREATE FUNCTION first_five() RETURNS TABLE (a INTEGER) LANGUAGE sql AS 'SELECT a FROM generate_series(1, 5) a(a)';
SELECT * FROM first_five();
CREATE FUNCTION counted(price INTEGER) RETURNS BIGINT LANGUAGE sql AS 'SELECT count(*) FROM item WHERE price = counted.price OR price = 20';
SELECT counted(10), counted(5), counted(price => 20);
CREATE FUNCTION plain(id INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT id';
SELECT plain(7);
CREATE FUNCTION ambiguous(price INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM item WHERE price = 1); END $$;
-- error: 42702
SELECT ambiguous(1);
-- error: 42P13
CREATE OR REPLACE FUNCTION plain(number INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT number';
CREATE OR REPLACE FUNCTION plain(id INTEGER = 3) RETURNS INTEGER LANGUAGE sql AS 'SELECT id + 1';
SELECT plain(), plain(id => 1);
-- error: 42P13
CREATE OR REPLACE FUNCTION plain(id INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT id';

-- snippet: values-of-execute
PREPARE whole (INTEGER, BIGINT, SMALLINT) AS SELECT $1, $2, $3;
EXECUTE whole (10.5::float8, 11.5::float8, 2.5);
EXECUTE whole (10.5, -11.5, 2.4::float8);
EXECUTE whole ('12', NULL, 3);
-- error: 22003
EXECUTE whole (1e12, 1, 1);

-- snippet: columns-and-roles-that-cannot-be
-- error: 42701
CREATE TABLE t (xmin INTEGER);
CREATE TABLE t (a INTEGER);
-- error: 42701
ALTER TABLE t ADD COLUMN ctid INTEGER;
CREATE VIEW twice AS SELECT a, a AS aa FROM t;
-- error: 42601
INSERT INTO twice VALUES (3, 3);
-- error: 0A000
SELECT max(a) FROM t FOR UPDATE;
-- error: 0A000
SELECT row_number() OVER () FROM t FOR UPDATE;
-- error: 0A000
SELECT generate_series(1, 2) FROM t FOR UPDATE;
SELECT a FROM t FOR UPDATE;
SELECT to_timestamp('Infinity'::float8), to_timestamp('-Infinity'::float8), '4 millenniums 5 centuries 4 decades 1 year'::interval;
DROP ROLE IF EXISTS kiln_doomed;
CREATE ROLE kiln_doomed SUPERUSER;
SET ROLE kiln_doomed;
-- error: 55006
DROP ROLE kiln_doomed;
RESET ROLE;
DROP ROLE kiln_doomed;

-- snippet: a-trigger-below-a-function-of-sql
CREATE TABLE watched (price INTEGER);
CREATE TABLE seen (price INTEGER);
CREATE FUNCTION look() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE price INTEGER := 1;
BEGIN
    INSERT INTO seen SELECT price FROM watched;
    RETURN NEW;
END $$;
CREATE TRIGGER looks BEFORE INSERT ON watched FOR EACH ROW EXECUTE FUNCTION look();
CREATE FUNCTION put(price INTEGER) RETURNS VOID LANGUAGE sql AS 'INSERT INTO watched VALUES ($1)';
-- error: 42702
SELECT put(3);
