-- Assignments to parts of columns: fields of rows, elements and slices of arrays, places in JSON.
-- compare: messages

-- snippet: a-field-of-a-row
CREATE TYPE address AS (street TEXT, town VARCHAR(5));
CREATE TABLE customer (id INTEGER PRIMARY KEY, home address, n INTEGER);
INSERT INTO customer VALUES (1, ROW('Main St 1', 'Ulm'), 1), (2, NULL, 2);
UPDATE customer SET home.town = 'Kiel';
SELECT id, home, (home).street, (home).town FROM customer ORDER BY id;
UPDATE customer SET home.town = upper((home).town), home.street = (home).town || id, n = n + 1 WHERE id = 1 RETURNING home, n;
UPDATE customer SET (home.street, n) = ('x', 7) WHERE id = 2;
SELECT * FROM customer ORDER BY id;
-- error: 22001
UPDATE customer SET home.town = 'Greifswald';
-- error: 42804
UPDATE customer SET n.town = 'Kiel';
-- error: 42703
UPDATE customer SET home.zip = 'Kiel';
-- error: 42804
UPDATE customer SET id = 1, n.x.y = now();
-- error: 42601
UPDATE customer SET home = NULL, home.town = 'Kiel';
-- error: 0A000
UPDATE customer SET home.town = DEFAULT;
-- error: 42703
UPDATE customer SET customer.n = 1;
INSERT INTO customer (id, home.town) VALUES (3, 'Kiel');
INSERT INTO customer (home.street, id, home.town) VALUES ('a', 4, 'b'), ('c', 5, NULL);
INSERT INTO customer (id, home.town) SELECT id + 10, (home).town FROM customer WHERE id < 3;
SELECT * FROM customer ORDER BY id;
-- error: 42701
INSERT INTO customer (id, home, home.town) VALUES (6, NULL, 'Kiel');
-- error: 42703
INSERT INTO customer (id, home.zip) VALUES (6, 'Kiel');
INSERT INTO customer VALUES (1, ROW('y', 'z'), 9) ON CONFLICT (id) DO UPDATE SET home.town = (excluded.home).town;
SELECT * FROM customer WHERE id = 1;
MERGE INTO customer c USING (VALUES (1, 'm'), (20, 'n')) AS v (id, town) ON v.id = c.id
    WHEN MATCHED THEN UPDATE SET home.town = v.town WHEN NOT MATCHED THEN INSERT (id, home.town) VALUES (v.id, v.town);
SELECT * FROM customer WHERE id IN (1, 20) ORDER BY id;

-- snippet: rows-within-rows-and-arrays
CREATE TYPE point2 AS (x INTEGER, y INTEGER);
CREATE TYPE line2 AS (a point2, b point2, name TEXT);
CREATE TABLE t (id INTEGER PRIMARY KEY, l line2, ps point2[]);
INSERT INTO t VALUES (1, NULL, NULL), (2, ROW(ROW(1, 2), ROW(3, 4), 'l'), ARRAY[ROW(1, 2)::point2]);
UPDATE t SET l.a.x = 10, l.name = 'n';
SELECT id, l FROM t ORDER BY id;
UPDATE t SET ps[1].y = 7, ps[2] = ROW(8, 9);
SELECT id, ps FROM t ORDER BY id;
-- error: 42804
UPDATE t SET l.name.x = 1;

-- snippet: places-in-json
CREATE TABLE t (id INTEGER PRIMARY KEY, j JSONB, k JSONB NOT NULL DEFAULT '{}');
INSERT INTO t VALUES (1, '{"a": 1, "b": [1, 2, {"c": 3}]}'), (2, NULL), (3, '[1, 2]'), (4, '{}');
UPDATE t SET j['a'] = '"x"' WHERE id IN (1, 2, 4) RETURNING id, j;
UPDATE t SET j['b'][2]['c'] = '{"d": null}' WHERE id = 1 RETURNING j;
UPDATE t SET j['b'][5] = '6' WHERE id IN (1, 4) RETURNING id, j;
UPDATE t SET j['x']['y'][2]['z'] = to_jsonb(id) WHERE id IN (1, 4) RETURNING id, j;
UPDATE t SET j[0] = '0' WHERE id = 3 RETURNING j;
UPDATE t SET j[-1] = '"last"' WHERE id = 3 RETURNING j;
UPDATE t SET j[4] = to_jsonb('five'::text) WHERE id = 3 RETURNING j;
UPDATE t SET k['n'] = NULL, k['m'] = 'true' WHERE id = 3 RETURNING k;
UPDATE t SET j = NULL;
UPDATE t SET j[2] = '1' WHERE id = 1 RETURNING j;
UPDATE t SET j['2'] = '1' WHERE id = 2 RETURNING j;
UPDATE t SET j['a'][1]['b'] = '1' WHERE id = 3 RETURNING j;
-- error: 22P02
UPDATE t SET j['x'] = '1' WHERE id = 1;
-- error: 22023
UPDATE t SET j[-5] = '1' WHERE id = 1;
-- error: 22023
UPDATE t SET j[2]['a'] = '1' WHERE id = 1;
UPDATE t SET j = '5';
-- error: 22023
UPDATE t SET j['a'] = '1';
-- error: 22004
UPDATE t SET j[NULL::text] = '1';
-- error: 42804
UPDATE t SET k[1.5] = '1';
-- error: 42804
UPDATE t SET k['a'] = 1;
-- error: 22P02
UPDATE t SET k['a'] = 'x';
-- error: 42804
UPDATE t SET k['a':'b'] = '1';
-- error: 42601
UPDATE t SET k = '{}', k['a'] = '1';
SELECT * FROM t ORDER BY id;

-- snippet: slices-of-arrays
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER[], b TEXT[]);
INSERT INTO t VALUES (1, '{1,2,3,4,5}', '{a,b}');
UPDATE t SET a[2:3] = '{20,30}' RETURNING a;
UPDATE t SET a[:2] = ARRAY[7, 8, 9], b[2:] = '{c}' RETURNING a, b;
UPDATE t SET a[:] = '{1,1,1,1,1}' RETURNING a;
UPDATE t SET a[4:7] = '{4,5,6,7}' RETURNING a;
UPDATE t SET a[9:9] = '{9}' RETURNING a;
UPDATE t SET a[1:id] = a[2:2], a[2] = 5 RETURNING a;
UPDATE t SET a[2:3] = NULL RETURNING a;
-- error: 2202E
UPDATE t SET a[1:3] = '{1}';
-- error: 2202E
UPDATE t SET a[3:2] = '{1}';
-- error: 22004
UPDATE t SET a[NULL:2] = '{1}';
-- error: 22P02
UPDATE t SET a['x':2] = 5;
-- error: 42804
UPDATE t SET a[now():2] = '{5}';
-- error: 42804
UPDATE t SET a[1:2] = 5;
-- error: 42804
UPDATE t SET id[1:2] = '{1}';
UPDATE t SET a = NULL;
-- error: 2202E
UPDATE t SET a[:2] = '{1,2}';
UPDATE t SET a[1:2] = '{1,2}' RETURNING a;
UPDATE t SET a = '{}';
UPDATE t SET a[1:2] = NULL RETURNING a;
-- refused: begins at another number
UPDATE t SET a[2:3] = '{1,2}';
