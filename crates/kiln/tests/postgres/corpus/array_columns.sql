-- Columns of arrays, and what is done with arrays.
-- compare: messages

-- snippet: array-columns
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER[], b TEXT[] NOT NULL DEFAULT '{}', c NUMERIC(6,2)[] DEFAULT ARRAY[1.5, 2], d INT[3][3]);
INSERT INTO t VALUES (1, ARRAY[1, 2, 3], ARRAY['x', 'y z', NULL], '{1.005,NULL}', '{7}'), (2, NULL, '{}', NULL, NULL), (3, '{}', ARRAY[''], DEFAULT, DEFAULT);
INSERT INTO t (id, a) VALUES (4, '{2147483647,-2147483648,NULL,0}'), (5, ARRAY[]::int[]), (6, ARRAY[1::smallint, 2]);
SELECT * FROM t ORDER BY id;
SELECT id, a[1], a[2:3], a[:2], a[9], b[2], c[1], cardinality(a), array_length(a, 1), array_ndims(a), array_upper(b, 1), array_lower(b, 1), array_dims(a) FROM t ORDER BY id;
SELECT id FROM t WHERE a = '{1,2,3}' OR a = ARRAY[]::int[] ORDER BY id;
SELECT id FROM t WHERE 2 = ANY (a) ORDER BY id;
SELECT id FROM t WHERE 0 < ALL (a) ORDER BY id;
SELECT id FROM t WHERE a @> ARRAY[2, 1] ORDER BY id;
SELECT id FROM t WHERE a <@ '{1,2,3,4}' ORDER BY id;
SELECT id FROM t WHERE a && ARRAY[9, 3] ORDER BY id;
SELECT id, x FROM t, unnest(a) x ORDER BY id, x;
SELECT id, x, n FROM t CROSS JOIN LATERAL unnest(t.b) WITH ORDINALITY AS u(x, n) ORDER BY id, n;
SELECT a, count(*) FROM t GROUP BY a ORDER BY a;
SELECT DISTINCT a FROM t ORDER BY a DESC;
SELECT max(a), min(b) FROM t;
SELECT pg_typeof(a), pg_typeof(b), pg_typeof(c), pg_typeof(d), pg_typeof(a[1]), pg_typeof(a[1:2]) FROM t WHERE id = 1;
SELECT t1.id, t2.id FROM t t1 JOIN t t2 ON t1.a = t2.a ORDER BY 1, 2;
DELETE FROM t WHERE a IS NULL RETURNING *;
-- error: 23502
INSERT INTO t VALUES (9, NULL, NULL);
-- error: 22P02
INSERT INTO t VALUES (9, '{1,x}');
-- error: 22P02
INSERT INTO t VALUES (9, '{1,2');
-- error: 22003
INSERT INTO t VALUES (9, '{3000000000}');
-- error: 42804
INSERT INTO t VALUES (9, ARRAY['a']);
-- error: 42804
INSERT INTO t VALUES (9, 5);
-- error: 22003
INSERT INTO t (id, c) VALUES (9, '{123456}');

-- snippet: array-updates
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER[], b TEXT[]);
INSERT INTO t VALUES (1, '{1,2,3}', '{a,b}'), (2, '{}', '{}'), (3, NULL, NULL);
UPDATE t SET a[2] = 20 WHERE id = 1 RETURNING *;
UPDATE t SET a[1] = a[3], a[3] = a[1] + 10 WHERE id = 1 RETURNING a;
UPDATE t SET a[5] = 50, b[1] = 'x y' WHERE id = 1 RETURNING *;
UPDATE t SET a[1] = 1, b[1] = NULL WHERE id > 1 RETURNING *;
UPDATE t SET a = a || 7, b = b || ARRAY['p', 'q'] RETURNING *;
UPDATE t SET a = 0 || a, b = 'first'::text || b WHERE id = 2 RETURNING *;
UPDATE t SET a = array_append(a, id), b = array_remove(b, 'p');
UPDATE t SET a = array_replace(a, 7, 77), b = array_prepend('z', b);
UPDATE t SET a[id] = (SELECT max(id) FROM t);
SELECT * FROM t ORDER BY id;
UPDATE t SET a[1] = x.n, b = NULL FROM (VALUES (1, 100), (2, 200)) x(id, n) WHERE x.id = t.id AND a[1] IS DISTINCT FROM n RETURNING t.id, a, x.n, a[1] = x.n;
INSERT INTO t VALUES (1, '{5}', '{}') ON CONFLICT (id) DO UPDATE SET a[2] = excluded.a[1], b = excluded.b || '{k}' RETURNING *;
WITH u AS (UPDATE t SET a[1] = -1 WHERE id = 3 RETURNING *) SELECT a FROM u;
SELECT * FROM t ORDER BY id;
-- error: 42601
UPDATE t SET a[1] = 1, a = '{}';
-- error: 42601
UPDATE t SET a = '{}', a[1] = 1;
-- error: 42804
UPDATE t SET id[1] = 1;
-- error: 42804
UPDATE t SET a[1] = 'x'::text;
-- error: 42804
UPDATE t SET a['x'::text] = 1;
-- error: 22P02
UPDATE t SET a[1] = 'x';
-- error: 22004
UPDATE t SET a[NULL] = 1;
-- error: 42703
UPDATE t SET nosuch[1] = 1;
-- error: 0A000
UPDATE t SET a[1] = DEFAULT;

-- snippet: array-of-another-start
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER[]);
INSERT INTO t VALUES (1, '{}');
-- refused: an array that begins at another number than 1
UPDATE t SET a[3] = 1;

-- snippet: array-slice-assigned
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER[]);
UPDATE t SET a[1:2] = '{1,2}';

-- snippet: array-of-arrays
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER[][]);
INSERT INTO t VALUES (1, '{1}');
-- refused: dimension
INSERT INTO t VALUES (2, '{{1,2},{3,4}}');

-- snippet: array-element-types
CREATE TABLE e (
    b BOOLEAN[], s SMALLINT[], i BIGINT[], n NUMERIC[], f DOUBLE PRECISION[], r REAL[], v VARCHAR(3)[], c CHAR(3)[],
    y BYTEA[], d DATE[], ts TIMESTAMP[], tz TIMESTAMPTZ[], u UUID[], iv INTERVAL[], j JSON[], jb JSONB[]
);
INSERT INTO e VALUES (
    '{t,f,NULL}', '{-1,32767}', '{9223372036854775807,1}', '{1.50,-3,1e20}', '{0.1,NaN,-Infinity}', '{0.1,1e10}', '{abc,"d e"}', '{a,ab}',
    '{"\\x00ff",NULL}', '{2020-01-31}', '{"2020-01-31 10:00:00"}', '{"2020-01-31 10:00:00+02"}', '{00000000-0000-0000-0000-000000000001}',
    '{"1 mon 2 days","03:00:00"}', '{"{\"a\": 1}","[1,  2]"}', '{"{\"b\":1,\"a\":2}",null}'
);
SELECT * FROM e;
SELECT b[2], s[1], i[1], n[3], f[3], r[2], v[2], c[1] || '|', y[1], d[1] + 1, ts[1], tz[1], u[1], iv[1], j[1] ->> 'a', jb[1] -> 'a' FROM e;
SELECT b::text, s::text, i::text, n::text, f::text, r::text, v::text, c::text, y::text, d::text, ts::text, tz::text, u::text, iv::text, j::text, jb::text FROM e;
SELECT array_to_string(b, ','), array_to_string(n, ','), array_to_string(c, '|'), array_to_string(ts, ','), array_to_string(iv, ','), array_to_string(u, ',', '*'), array_to_string(r, ' ') FROM e;
SELECT to_json(b), to_json(n), to_json(v), to_json(d), to_json(jb) FROM e;
UPDATE e SET c[2] = 'x', v[1] = 'y', n[1] = 7, b[3] = true, iv[1] = '1 day' RETURNING c, v, n, b, iv;
-- error: 22001
INSERT INTO e (v) VALUES ('{abcd}');
-- error: 22001
INSERT INTO e (c) VALUES (ARRAY['abcd']);
-- error: 22001
UPDATE e SET v[1] = 'abcd';
INSERT INTO e (v, c) VALUES ('{"abc  "}', '{"a   "}') RETURNING v, c;
SELECT v @> '{y}', c @> '{x}', u && u, iv <@ iv FROM e;
SELECT DISTINCT v, n, iv FROM e WHERE v IS NOT NULL ORDER BY v, n, iv;
-- error: 42883
SELECT v @> ARRAY['y'] FROM e;
-- error: 42883
SELECT j @> j FROM e;
-- error: 42883
SELECT n @> s FROM e;

-- snippet: array-casts
SELECT ARRAY[1.5, 2.5]::int[], ARRAY[1, 2]::float8[], ARRAY[1, 2]::numeric(5,2)[], ARRAY['1', '2']::int[], ARRAY[1, NULL]::text[], ARRAY[true]::text[], ARRAY[1.5::float8]::numeric[];
SELECT ARRAY[1, 2]::varchar(1)[], ARRAY['abc']::varchar(2)[], ARRAY['abc']::char(2)[], '{abc}'::varchar(2)[], '{"ab"}'::char(5)[], ARRAY[1.255]::numeric(5,2)[], ARRAY[1, 2]::real[], ARRAY[0.1::real]::float8[];
SELECT ARRAY['2020-01-02'::date]::timestamp[], ARRAY['2020-01-02 10:00'::timestamp]::date[], ARRAY['2020-01-02']::date[], '{1 day,2 hours}'::interval[], ARRAY[1::bigint, 2]::smallint[], '{"a b",c}'::text[]::varchar(5)[];
SELECT '{1,2}'::text::int[], ('{2020-01-01}'::text)::date[], ('{1 day}'::text)::interval[];
-- error: 22003
SELECT ARRAY[100000]::smallint[];
-- error: 22003
SELECT ARRAY[1e10]::int[];
-- error: 22P02
SELECT ARRAY['x']::int[];
-- error: 42846
SELECT ARRAY[true]::date[];
-- error: 42846
SELECT '{t}'::boolean[]::date[];
-- error: 22003
SELECT ARRAY[1000]::numeric(3,2)[];

-- snippet: array-functions
SELECT array_position('{a,b,c}'::text[], 'b'), array_position(ARRAY[1, 2, 1], 1, 2), array_positions(ARRAY[1, 2, 1, NULL], 1), array_positions(ARRAY[1, NULL], NULL), array_position(ARRAY[1], 5), array_positions(ARRAY['x'], 'y');
SELECT array_remove(ARRAY[1, 2, NULL], NULL), array_replace(ARRAY[1, 2, 1], 1, 9), array_replace(ARRAY[1, NULL], NULL, 0), array_replace('{a}'::text[], 'a', NULL), array_remove(NULL::int[], 1);
SELECT array_cat(ARRAY[1], ARRAY[2, 3]), array_append(NULL::int[], 1), array_prepend(1, '{}'::int[]), ARRAY[1] || NULL, NULL || ARRAY['a'], ARRAY[1] || 2::smallint;
SELECT trim_array(ARRAY[1, 2, 3], 2), trim_array(ARRAY[1], 0), array_dims(ARRAY['a', 'b']), array_dims('{}'::int[]), cardinality('{}'::text[]), array_ndims('{}'::int[]);
SELECT ARRAY[1, 2] @> '{}', ARRAY[NULL::int] @> ARRAY[NULL::int], ARRAY[1, NULL] && ARRAY[NULL, 1], '{}'::int[] <@ ARRAY[1], ARRAY[1] && '{}', NULL::int[] @> ARRAY[1], ARRAY[1.0] @> ARRAY[1.00];
SELECT ARRAY['a', 'b'] <@ ARRAY['b', 'a', 'c'], ARRAY['x'] && '{x,y}', '{a}' @> ARRAY['a'];
SELECT 1 = ANY ('{1,2}'), 'a' = ANY (ARRAY['a']), 3 <> ALL (ARRAY[1, 2]), 1 = ANY (NULL::int[]), 1 > ANY ('{}'::int[]), 1 > ALL ('{}'::int[]);
SELECT (ARRAY[10, 20, 30])[2], (ARRAY[10, 20, 30])[2:], ('{a,b}'::text[])[1], (string_to_array('a,b', ','))[2], (array_agg(x ORDER BY x DESC))[1] FROM (VALUES (1), (2)) v(x);
-- error: 2202E
SELECT trim_array(ARRAY[1], 2);
-- error: 2202E
SELECT trim_array(ARRAY[1], -1);
-- error: 22004
SELECT array_position(ARRAY[1], 1, NULL);
-- error: 42883
SELECT ARRAY[1] @> ARRAY['a'];
-- error: 42883
SELECT ARRAY[1] && 1;
-- error: 42883
SELECT ARRAY[1] || ARRAY['a'];
-- error: 42883
SELECT array_append(ARRAY[1], 'a'::text);

-- snippet: array-columns-and-procedures
CREATE TABLE t (id INTEGER PRIMARY KEY, tags TEXT[] NOT NULL, n INTEGER[] CHECK (cardinality(n) < 4));
CREATE FUNCTION add_tag(i INTEGER, tag TEXT) RETURNS TEXT[] LANGUAGE plpgsql AS $$
DECLARE r t.tags%TYPE;
BEGIN
    SELECT tags INTO r FROM t WHERE id = i;
    IF NOT FOUND THEN
        INSERT INTO t VALUES (i, ARRAY[tag], '{}');
    ELSIF NOT tag = ANY (r) THEN
        r := r || tag;
        UPDATE t SET tags = r, n[1] = cardinality(r) WHERE id = i;
    END IF;
    RETURN (SELECT tags FROM t WHERE id = i);
END $$;
SELECT add_tag(1, 'a'), add_tag(1, 'b'), add_tag(1, 'a'), add_tag(2, 'z');
CREATE FUNCTION total(i INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE row t%ROWTYPE; s INTEGER := 0; x INTEGER;
BEGIN
    SELECT * INTO row FROM t WHERE id = i;
    FOREACH x IN ARRAY row.n LOOP s := s + x; END LOOP;
    row.n := row.n || s;
    UPDATE t SET n = row.n WHERE id = i;
    RETURN s + row.n[1];
END $$;
SELECT total(1);
SELECT * FROM t ORDER BY id;
-- error: 23514
UPDATE t SET n = '{1,2,3,4}' WHERE id = 1;
-- error: 23514
UPDATE t SET n[4] = 1 WHERE id = 1;
-- error: 23502
UPDATE t SET tags = NULL WHERE id = 1;

-- snippet: array-columns-altered
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER[], b TEXT);
INSERT INTO t VALUES (1, '{1,2}', '{x,y}'), (2, NULL, NULL), (3, '{}', '{}');
ALTER TABLE t ADD COLUMN c TEXT[] NOT NULL DEFAULT '{p,q}', ADD d INTEGER;
UPDATE t SET d = 5;
SELECT * FROM t ORDER BY id;
ALTER TABLE t ALTER a TYPE BIGINT[], ALTER b TYPE TEXT[] USING b::text[];
SELECT * FROM t ORDER BY id;
ALTER TABLE t ALTER a TYPE TEXT[], ALTER d TYPE INTEGER[] USING ARRAY[d, id];
SELECT *, pg_typeof(a), pg_typeof(d) FROM t ORDER BY id;
ALTER TABLE t ALTER a TYPE INTEGER USING cardinality(a);
ALTER TABLE t ADD CHECK (c @> '{p}');
SELECT * FROM t ORDER BY id;
-- error: 23514
INSERT INTO t (id, c) VALUES (4, '{q}');
-- error: 42804
ALTER TABLE t ALTER c TYPE INTEGER[];
ALTER TABLE t DROP c;
UPDATE t SET d[2] = d[2] * 2;
SELECT * FROM t ORDER BY id;
SELECT column_name, data_type, udt_name, column_default FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position;
SELECT attname, format_type(atttypid, atttypmod), attndims, attlen, attstorage FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum;

-- snippet: array-index-is-refused
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER[]);
-- refused: an index over a column of type integer[]
CREATE INDEX i ON t (a);

-- snippet: array-key-is-refused
-- refused: an index over a column of type text[]
CREATE TABLE t (a TEXT[] PRIMARY KEY);

-- snippet: array-views-and-queries
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER[]);
INSERT INTO t SELECT x, ARRAY(SELECT generate_series(1, x)) FROM generate_series(1, 4) x;
CREATE VIEW v AS SELECT id, a, a[1] AS first, cardinality(a) AS n FROM t WHERE a @> '{2}';
SELECT * FROM v ORDER BY id;
INSERT INTO t SELECT id + 10, a || a FROM v;
SELECT * FROM t ORDER BY id;
SELECT id, sum(x) FROM t, unnest(a) x GROUP BY id ORDER BY id;
SELECT array_agg(a[2] ORDER BY id), count(a[3]) FROM t;
SELECT id, (SELECT max(x) FROM unnest(a) x) FROM t WHERE EXISTS (SELECT 1 FROM unnest(a) x WHERE x > 2) ORDER BY id;
SELECT t.id FROM t WHERE id IN (SELECT unnest(a) FROM t WHERE id = 3) ORDER BY id;
SELECT a FROM t WHERE id < 3 UNION SELECT '{1}' ORDER BY 1;
SELECT id, unnest(a) FROM t WHERE id < 3 ORDER BY id, 2;
SELECT lag(a) OVER (ORDER BY id), first_value(a) OVER (ORDER BY id) FROM t ORDER BY id;
SELECT CASE WHEN id = 1 THEN a ELSE '{}' END, coalesce(a, '{0}'), nullif(a, '{1}'), greatest(a, '{1,2}') FROM t ORDER BY id;
