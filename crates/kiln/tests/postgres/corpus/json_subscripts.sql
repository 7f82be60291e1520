-- Subscripts of jsonb, and small things that were answered otherwise.

-- snippet: json-subscripts
SELECT ('{"a": {"b": [1, "two", null]}}'::jsonb)['a'];
SELECT ('{"a": {"b": [1, "two", null]}}'::jsonb)['a']['b'];
SELECT ('{"a": {"b": [1, "two", null]}}'::jsonb)['a']['b'][1];
SELECT ('{"a": {"b": [1, "two", null]}}'::jsonb)['a']['b'][2];
SELECT ('{"a": {"b": [1, "two", null]}}'::jsonb)['a']['b'][-3];
SELECT ('{"a": {"b": [1, "two", null]}}'::jsonb)['a']['b'][7] IS NULL;
SELECT ('{"a": 1}'::jsonb)['b'] IS NULL, ('{"a": 1}'::jsonb)[NULL] IS NULL, ('{"0": "zero"}'::jsonb)[0];
SELECT ('[1, 2]'::jsonb)['1'], ('[1, 2]'::jsonb)['x'] IS NULL, ('7'::jsonb)['x'] IS NULL;
SELECT (NULL::jsonb)['a'] IS NULL;
CREATE TABLE t (id INT PRIMARY KEY, j JSONB, k TEXT, n SMALLINT);
INSERT INTO t VALUES (1, '{"x": [10, 20], "y": {"z": true}}', 'x', 1), (2, '[]', 'y', 0), (3, NULL, NULL, NULL);
SELECT id, j[k], j[k][n], t.j['y']['z'] FROM t ORDER BY id;
SELECT id FROM t WHERE j['y']['z'] = 'true';
SELECT j['x'][0]::int + 1 FROM t WHERE id = 1;
SELECT count(*) FROM t GROUP BY j['nope'];
-- error: 42804
SELECT j[1:2] FROM t;
-- error: 42804
SELECT j[1.5] FROM t;
-- error: 42804
SELECT j[true] FROM t;
-- error: 42804
SELECT j[10000000000] FROM t;
-- error: 42804
SELECT ('{"a": 1}'::json)['a'];

-- snippet: small-errors
-- error: 42701
SELECT * FROM json_to_record('{"a": 1}') AS x (a int, a int);
-- error: 42701
SELECT * FROM jsonb_to_recordset('[{"a": 1}]') AS x (a int, b text, a int);
CREATE VIEW v AS SELECT 1 AS a;
-- error: 42601
ALTER VIEW v;

-- snippet: views-of-table
CREATE TABLE t (a INT, b TEXT);
INSERT INTO t VALUES (1, 'x');
CREATE VIEW v AS TABLE t;
CREATE VIEW w (c) AS (TABLE t) UNION ALL SELECT 2, 'y' ORDER BY 1;
CREATE VIEW x AS SELECT * FROM (TABLE t) AS q, (TABLE v) AS r (c, d);
ALTER TABLE t ADD COLUMN more INT;
SELECT * FROM v;
SELECT * FROM w;
SELECT * FROM x;
CREATE MATERIALIZED VIEW m AS TABLE t;
SELECT * FROM m;
