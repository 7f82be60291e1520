-- Columns of the types of which PostgreSQL's catalogs are made.
-- compare: messages

-- snippet: columns-of-names
CREATE TABLE t (n NAME PRIMARY KEY, m NAME DEFAULT 'm', k "char", UNIQUE (m, n));
INSERT INTO t VALUES ('b', 'x', 'a'), ('a', DEFAULT, 'bc'), ('C', NULL, '');
SELECT * FROM t ORDER BY n;
SELECT n, pg_typeof(n), length(n), n || 'x', upper(n) FROM t WHERE n >= 'a' ORDER BY n DESC;
SELECT n FROM t WHERE n = 'a'::text;
SELECT n FROM t WHERE n LIKE 'b%';
SELECT max(n), min(n), count(DISTINCT m) FROM t;
INSERT INTO t (n) VALUES (repeat('long', 20));
SELECT length(n) FROM t WHERE n > 'k';
-- error: 23505
INSERT INTO t (n) VALUES ('a');
UPDATE t SET m = n WHERE k = 'a' RETURNING *;
CREATE INDEX ON t (k, n DESC);
SELECT n FROM t WHERE k = 'b' ORDER BY n;
SELECT attname, atttypid::regtype, attlen FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum;
SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position;

-- snippet: columns-of-oids
CREATE TABLE t (o OID PRIMARY KEY, x XID);
INSERT INTO t VALUES (1, '7'), (4294967295, NULL), (2147483648, '4294967295');
SELECT * FROM t ORDER BY o;
SELECT o FROM t WHERE o > 2147483647 ORDER BY o DESC;
SELECT o::BIGINT + 0 FROM t WHERE o = 1;
-- error: 22003
INSERT INTO t VALUES ('4294967296', NULL);
SELECT o, pg_typeof(o) FROM t WHERE o = '1';
SELECT max(o), min(o) FROM t;

-- snippet: columns-of-arrays-of-names
CREATE TABLE t (id INTEGER PRIMARY KEY, n NAME[], o OID[]);
INSERT INTO t VALUES (1, '{a,b}', '{1,4294967295}'), (2, NULL, '{}'), (3, ARRAY['x']::NAME[], ARRAY[5]::OID[]);
SELECT * FROM t ORDER BY id;
SELECT n[1], o[2] FROM t ORDER BY id;
SELECT id FROM t WHERE 'a' = ANY (n);

-- snippet: names-by-procedures
CREATE TABLE t (n NAME PRIMARY KEY, v INTEGER NOT NULL);
INSERT INTO t VALUES ('a', 1), ('b', 2);
CREATE FUNCTION add_to(key NAME, more INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE result INTEGER;
BEGIN
  UPDATE t SET v = v + more WHERE n = key RETURNING v INTO result;
  RETURN result;
END $$;
SELECT add_to('a', 5), add_to('c', 1);
SELECT add_to('b'::NAME, 5);
SELECT * FROM t ORDER BY n;
