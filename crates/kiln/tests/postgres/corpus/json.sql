-- JSON and JSONB: values, operators, functions, and columns of such types.
-- compare: messages

-- snippet: json-input
SELECT '{"a": 1,  "b":[1, 2]}'::json, ' [1 , 2 ] '::json, '"x"'::json, '12.50'::json, 'null'::json;
SELECT '{"a":1,"a":2}'::json, JSON '{"a": true}';
SELECT '{"bb":1,"a":2,"bb":3}'::jsonb, '[1,2,  3]'::jsonb, '"\u00e9"'::jsonb, '1.50e2'::jsonb, ' null '::jsonb;
SELECT '-0'::jsonb, '1e-5'::jsonb, '123456789012345678901234567890.5'::jsonb, '[]'::jsonb, '{}'::jsonb;
SELECT NULL::json, NULL::jsonb, pg_typeof('1'::json), pg_typeof('1'::jsonb);
SELECT '{"a":{"b":{"c":[1,{"d":null}]}}}'::jsonb;
SELECT '"a\tb\\c\"d\/e"'::jsonb, '"\u0001"'::jsonb;

-- snippet: json-input-errors
-- error: 22P02
SELECT ''::json;
-- error: 22P02
SELECT '{"a":1'::json;
-- error: 22P02
SELECT '{a:1}'::json;
-- error: 22P02
SELECT '[1,]'::jsonb;
-- error: 22P02
SELECT '{"a":1}}'::jsonb;
-- error: 22P02
SELECT 'tru'::jsonb;
-- error: 22P02
SELECT '01'::json;
-- error: 22P02
SELECT '"\x"'::json;
-- error: 22P05
SELECT '"\u0000"'::jsonb;
-- error: 22P02
SELECT '"\ud800"'::jsonb;
SELECT '"\u0000"'::json;
-- error: 22P05
SELECT '["\u0000"]'::json ->> 0;

-- snippet: json-fields
SELECT '{"a":1,"b":"x"}'::json -> 'a', '{"a":1,"b":"x"}'::json -> 'b', '{"a":1,"b":"x"}'::json -> 'c';
SELECT '{"a":1,"b":"x"}'::jsonb ->> 'a', '{"a":1,"b":"x"}'::jsonb ->> 'b', '{"a":null}'::jsonb ->> 'a';
SELECT '{"a":null}'::jsonb -> 'a', '{"a":null}'::jsonb -> 'a' IS NULL, '{"a":null}'::jsonb ->> 'a' IS NULL;
SELECT '[1,"b",{"c":3}]'::json -> 0, '[1,"b",{"c":3}]'::json -> 1, '[1,"b",{"c":3}]'::json -> -1;
SELECT '[1,"b",{"c":3}]'::jsonb ->> 1, '[1,"b",{"c":3}]'::jsonb ->> 2, '[1,"b",{"c":3}]'::jsonb ->> 9;
SELECT '[1,2]'::jsonb -> 'a', '{"a":1}'::jsonb -> 0, '1'::jsonb -> 'a', '1'::jsonb -> 0;
SELECT '{"a":1,"a":2}'::json -> 'a', '{"a" : [ 1 ] }'::json -> 'a';
SELECT '{"a":{"b":[10,20]}}'::jsonb -> 'a' -> 'b' -> 1, '{"a":{"b":[10,20]}}'::jsonb -> 'a' -> 'b' ->> -1;
SELECT '{"a":{"b":[10,20]}}'::jsonb #> '{a,b,1}', '{"a":{"b":[10,20]}}'::jsonb #>> '{a,b,-2}', '{"a":1}'::json #> '{}';
SELECT '{"a":{"b":[10,20]}}'::json #>> ARRAY['a','b'], '{"a":{"b":"x"}}'::json #>> ARRAY['a','b'], '{"a":1}'::json #> ARRAY['a','b'];
SELECT '{"a":{"b":1}}'::jsonb #> ARRAY['a',NULL], '[[1,2],[3]]'::jsonb #>> '{0,1}', '[1]'::jsonb #> '{x}';
SELECT NULL::jsonb -> 'a', '{"a":1}'::jsonb -> NULL::text, '{"a":1}'::jsonb #> NULL;
SELECT '{"\u00e9":1}'::json -> 'é', '{"a\"b":1}'::jsonb -> 'a"b';
SELECT json_extract_path('{"a":{"b":5}}', 'a', 'b'), jsonb_extract_path('{"a":[1,2]}', 'a', '1');
SELECT json_extract_path_text('{"a":{"b":"5"}}', 'a', 'b'), jsonb_extract_path_text('{"a":[1,null]}', 'a', '1');
-- error: 42883
SELECT '{"a":1}'::text -> 'a';

-- snippet: jsonb-tests
SELECT '{"a":1,"b":2}'::jsonb @> '{"a":1}', '{"a":1}'::jsonb <@ '{"a":1,"b":2}', '[1,2,3]'::jsonb @> '[3,1]';
SELECT '[1,[2]]'::jsonb @> '[2]', '[1,2]'::jsonb @> '1', '1'::jsonb @> '[1]', '{"a":{"b":1,"c":2}}'::jsonb @> '{"a":{"b":1}}';
SELECT '{"a":1}'::jsonb ? 'a', '{"a":1}'::jsonb ? 'b', '["a","b"]'::jsonb ? 'b', '"a"'::jsonb ? 'a', '[1]'::jsonb ? '1';
SELECT '{"a":1,"b":2}'::jsonb ?| ARRAY['x','b'], '{"a":1,"b":2}'::jsonb ?& ARRAY['a','b'], '{"a":1}'::jsonb ?& ARRAY['a','b'];
SELECT '{"a":1}'::jsonb ?| '{}', '{"a":1}'::jsonb ?& '{}', '["a"]'::jsonb ?| '{b,a}';
SELECT '1.0'::jsonb = '1.00'::jsonb, '{"a":1}'::jsonb = '{"a":2}', '{"a":1}'::jsonb <> '{"a":2}', '[1,2]'::jsonb < '[1,3]';
SELECT '{}'::jsonb > '[]', '[]'::jsonb < 'null', 'true'::jsonb > '1', '"b"'::jsonb > '"a"', '2'::jsonb > '10', 'null'::jsonb < '"a"';
SELECT '1'::jsonb IS DISTINCT FROM '1.0', NULL::jsonb IS DISTINCT FROM '1', NULL::jsonb IS NOT DISTINCT FROM NULL;
SELECT '1'::jsonb IN ('2', '1.0'), CASE '{"a":1}'::jsonb WHEN '{"a": 1.0}' THEN 'yes' END, nullif('1'::jsonb, '1.0');
SELECT '{"a":1}'::jsonb BETWEEN '{"a":0}' AND '{"a":2}';
-- error: 42883
SELECT '1'::json = '1'::json;
-- error: 42883
SELECT '{"a":1}'::json @> '{"a":1}'::json;

-- snippet: jsonb-changes
SELECT '{"a":1}'::jsonb || '{"b":2}', '{"a":1}'::jsonb || '{"a":3}', '[1]'::jsonb || '[2]', '[1]'::jsonb || '2', '1'::jsonb || '[2]';
SELECT '1'::jsonb || '2', '{"a":1}'::jsonb || '[2]', '[2]'::jsonb || '{"a":1}', NULL::jsonb || '1', '{}'::jsonb || '{"a":1}';
SELECT '{"a":1,"b":2}'::jsonb - 'a', '["a","b","a"]'::jsonb - 'a', '[1,2,3]'::jsonb - 1, '[1,2,3]'::jsonb - -1, '[1,2]'::jsonb - 5;
SELECT '{"a":1,"b":2,"c":3}'::jsonb - ARRAY['a','c'], '["a","b"]'::jsonb - '{b}'::text[], '{"a":1}'::jsonb - 'x';
SELECT '{"a":{"b":1,"c":2}}'::jsonb #- '{a,b}', '[1,[2,3]]'::jsonb #- '{1,0}', '{"a":1}'::jsonb #- '{x}', '{"a":1}'::jsonb #- '{}';
SELECT jsonb_set('{"a":1}', '{a}', '2'), jsonb_set('{"a":1}', '{b}', '2'), jsonb_set('{"a":1}', '{b}', '2', false), jsonb_set('{"a":{"b":1}}', '{a,b}', '"x"');
SELECT jsonb_set('[1,2]', '{0}', '9'), jsonb_set('[1,2]', '{5}', '9'), jsonb_set('[1,2]', '{-5}', '9'), jsonb_set('[1,2]', '{-1}', '9'), jsonb_set('{"a":1}', '{a,b}', '2');
SELECT jsonb_set('{"a":1}', '{}', '2'), jsonb_set(NULL, '{a}', '1'), jsonb_set('{"a":[1,{"b":2}]}', '{a,1,b}', '[3]'), jsonb_set('{}', '{a,b}', '1');
SELECT jsonb_insert('{"a":[0,1,2]}', '{a,1}', '"new"'), jsonb_insert('{"a":[0,1,2]}', '{a,1}', '"new"', true), jsonb_insert('{"a":1}', '{b}', '2');
SELECT jsonb_insert('[1,2]', '{-1}', '9'), jsonb_insert('[1,2]', '{-1}', '9', true), jsonb_insert('[1,2]', '{7}', '9'), jsonb_insert('[1,2]', '{-7}', '9');
SELECT json_strip_nulls('{"a":null,"b":[null,{"c":null}], "d":1}'), jsonb_strip_nulls('{"a":null,"b":[null,{"c":null}],"d":1}');
SELECT jsonb_pretty('{"a":[1,{"b":null}],"c":{}}');
-- error: 22023
SELECT '1'::jsonb - 'a';
-- error: 22023
SELECT '{"a":1}'::jsonb - 1;
-- error: 22023
SELECT jsonb_set('1', '{a}', '2');
-- error: 22P02
SELECT jsonb_set('[1]', '{a}', '2');
-- error: 22004
SELECT jsonb_set('{"a":1}', ARRAY[NULL], '2');
-- error: 22023
SELECT jsonb_insert('{"a":1}', '{a}', '2');
-- error: 22023
SELECT '1'::jsonb #- '{a}';

-- snippet: json-about
SELECT json_typeof('1'), json_typeof('"a"'), json_typeof('null'), json_typeof('true'), json_typeof('[]'), json_typeof('{}');
SELECT jsonb_typeof('1'), jsonb_typeof('"a"'), jsonb_typeof('null'), jsonb_typeof(NULL);
SELECT json_array_length('[1,2,[3]]'), jsonb_array_length('[]'), jsonb_array_length(NULL);
-- error: 22023
SELECT json_array_length('{}');
-- error: 22023
SELECT jsonb_array_length('1');

-- snippet: json-casts
SELECT '12'::jsonb::int, '12.5'::jsonb::numeric, '12.5'::jsonb::int, 'true'::jsonb::boolean, '1e2'::jsonb::float8, '7'::jsonb::smallint, '7'::jsonb::bigint;
SELECT '{"a": 1}'::json::jsonb, '{"b":1,"a":2}'::jsonb::json, '"x"'::jsonb::text, '[1]'::json::text, '{"a":1}'::text::jsonb, '{ }'::varchar::json;
SELECT '{"a":"7"}'::jsonb ->> 'a', ('{"a":"7"}'::jsonb ->> 'a')::int + 1, ('{"a":7}'::jsonb -> 'a')::int + 1;
-- error: 22023
SELECT '"a"'::jsonb::int;
-- error: 22023
SELECT 'null'::jsonb::int;
-- error: 22023
SELECT '[1]'::jsonb::numeric;
-- error: 22023
SELECT '1'::jsonb::boolean;
-- error: 22023
SELECT '{}'::jsonb::float8;
-- error: 22003
SELECT '100000'::jsonb::smallint;
-- error: 42846
SELECT '1'::json::int;
-- error: 42846
SELECT 1::jsonb;

-- snippet: json-made-of-values
SELECT to_json(1), to_json('a"b'::text), to_json(true), to_json(1.50), to_json(NULL::int), to_json(1.5::float8), to_json('NaN'::float8);
SELECT to_json(date '2020-01-02'), to_json(timestamp '2020-01-02 03:04:05.6'), to_json(timestamptz '2020-01-02 03:04:05+00'), to_json(interval '1 day');
SELECT to_json('{"a" : 1}'::json), to_json('{"a" : 1}'::jsonb), to_jsonb('{"a" : 1}'::json), to_json('x'::char(3)), to_json('\x00ff'::bytea);
SELECT to_json(ARRAY[1,2,NULL]), to_json(ARRAY['a','b"c','d,e']), to_json(ARRAY[true,false]), to_json(ARRAY[1.5,2.50]), to_json('{}'::int[]);
SELECT to_json(ARRAY[timestamp '2020-01-02 03:04:05']), to_jsonb(ARRAY['a',NULL]), to_jsonb(1.50), to_jsonb('a'::text);
SELECT json_build_array(1, 'a', true, NULL, 1.5, '{"x":1}'::json), jsonb_build_array(1, 'a', true, NULL, '{"x":1}'::jsonb), json_build_array(), jsonb_build_array();
SELECT json_build_object('a', 1, 'b', 'x', 3, NULL), jsonb_build_object('b', 1, 'a', ARRAY[1,2]), json_build_object(), jsonb_build_object('a', 1, 'a', 2);
SELECT json_build_object('a', json_build_object('b', json_build_array(1,2))), json_build_object(1, 2, true, false, date '2020-01-01', 1);
SELECT row_to_json(ROW(1, 'a', NULL)), to_json(ROW(1, 2)), json_build_object('r', ROW(1, 'x'));
-- error: 22023
SELECT json_build_object(NULL, 1);
-- error: 22023
SELECT json_build_object('a');
-- error: 22023
SELECT json_build_object(ARRAY[1], 1);

-- snippet: json-of-rows
CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price NUMERIC(6,2), at TIMESTAMP);
INSERT INTO t VALUES (1, 'a', 1.50, '2020-01-02 03:04:05'), (2, NULL, 20, NULL), (3, 'c"d', NULL, '2021-01-01');
SELECT row_to_json(t) FROM t ORDER BY id;
SELECT to_json(t), to_jsonb(t) FROM t WHERE id = 1;
SELECT row_to_json(q) FROM (SELECT id, name AS n FROM t) q ORDER BY q.id;
SELECT json_agg(t ORDER BY t.id) FROM t;
SELECT jsonb_agg(q ORDER BY q.id DESC) FROM (SELECT id, price FROM t) q;
SELECT json_agg(id ORDER BY id DESC), json_agg(name ORDER BY id), jsonb_agg(price ORDER BY id) FROM t;
SELECT json_agg(id) FROM t WHERE id > 10;
SELECT coalesce(json_agg(id), '[]') FROM t WHERE id > 10;
SELECT json_object_agg(id, name ORDER BY id), jsonb_object_agg(id, price ORDER BY id) FROM t;
SELECT json_agg(id) FILTER (WHERE id > 1), count(*) FROM t WHERE id < 3;
SELECT price IS NULL AS p, json_agg(id ORDER BY id) FROM t GROUP BY price IS NULL ORDER BY 1;
SELECT json_build_object('id', id, 'tags', (SELECT json_agg(o.id ORDER BY o.id) FROM t o WHERE o.id >= t.id)) FROM t ORDER BY id;
SELECT t.id, json_agg(o ORDER BY o.id) FROM t LEFT JOIN t o ON o.id = t.id + 1 GROUP BY t.id ORDER BY t.id;
-- error: 22023
SELECT json_object_agg(name, id) FROM t;

-- snippet: json-rows
SELECT * FROM json_array_elements('[1, "a", {"b":2}, null]');
SELECT * FROM jsonb_array_elements('[1, "a", {"b":2}, null]') AS x;
SELECT value FROM jsonb_array_elements_text('["a", 1, null, [2]]');
SELECT * FROM json_each('{"a":1,"b":"x","a":2}');
SELECT * FROM jsonb_each('{"b":1,"a":"x","b":2}') AS e (k, v) ORDER BY k;
SELECT key, value FROM jsonb_each_text('{"a":1,"b":"x","c":null}');
SELECT * FROM json_object_keys('{"a":1,"b":2}');
SELECT jsonb_object_keys('{"b":1,"a":2}');
SELECT json_array_elements('[1,2]'), 'x';
SELECT e.value -> 'id' AS id, e.ordinality FROM jsonb_array_elements('[{"id":7},{"id":8}]') WITH ORDINALITY e;
SELECT sum((e ->> 'n')::int) FROM jsonb_array_elements('[{"n":1},{"n":2}]') e;
SELECT count(*) FROM jsonb_array_elements('[]');
SELECT count(*) FROM json_each(NULL);
-- error: 22023
SELECT * FROM json_array_elements('{"a":1}');
-- error: 22023
SELECT * FROM jsonb_array_elements('{"a":1}');
-- error: 22023
SELECT * FROM json_array_elements('1');
-- error: 22023
SELECT * FROM jsonb_array_elements('1');
-- error: 22023
SELECT * FROM json_each('[1]');
-- error: 22023
SELECT * FROM jsonb_each('[1]');
-- error: 22023
SELECT * FROM json_each('1');
-- error: 22023
SELECT json_object_keys('[1]');
-- error: 22023
SELECT jsonb_object_keys('1');

-- snippet: json-columns
CREATE TABLE d (id INTEGER PRIMARY KEY, j JSON, b JSONB NOT NULL DEFAULT '{}');
INSERT INTO d VALUES (1, '{"a" : 1}', '{"z":1, "a": [1,2]}');
INSERT INTO d (id, j) VALUES (2, '[1 ,2]');
INSERT INTO d (id, b) VALUES (3, '{"a":[3]}'), (4, '"text"');
SELECT * FROM d ORDER BY id;
SELECT id FROM d WHERE b @> '{"a":[1]}' ORDER BY id;
SELECT id, b -> 'a' ->> 0 FROM d WHERE b ? 'a' ORDER BY id;
UPDATE d SET b = b || '{"n":5}' WHERE id = 3;
UPDATE d SET b = jsonb_set(b, '{a,0}', '"first"') WHERE id = 1 RETURNING b;
UPDATE d SET j = json_build_object('was', j) WHERE id = 2 RETURNING j;
SELECT id, b FROM d WHERE b = '{"n": 5, "a": [3]}';
SELECT id, e.key, e.value FROM d, jsonb_each(d.b) e WHERE d.id = 3 ORDER BY e.key;
SELECT count(b), count(j) FROM d;
DELETE FROM d WHERE b = '"text"';
SELECT id FROM d ORDER BY id;
-- error: 23502
INSERT INTO d VALUES (5, NULL, NULL);
-- error: 22P02
INSERT INTO d VALUES (5, '{', '1');
-- error: 42804
INSERT INTO d VALUES (5, 1, '1');
INSERT INTO d SELECT 6, '1'::jsonb, '{"b":1}'::json;
SELECT j, b FROM d WHERE id = 6;
-- error: 42883
SELECT DISTINCT j FROM d;
-- error: 42883
SELECT j FROM d GROUP BY j;
-- error: 42883
SELECT id FROM d ORDER BY j;
-- error: 42883
SELECT j FROM d UNION SELECT j FROM d;
SELECT count(*) FROM (SELECT j FROM d UNION ALL SELECT j FROM d) q;
-- error: 42883
SELECT min(b) FROM d;
-- error: 42704
CREATE INDEX i ON d (j);
-- error: 42704
CREATE TABLE e (j JSON PRIMARY KEY);

-- snippet: jsonb-order-and-equality
CREATE TABLE d (id INTEGER PRIMARY KEY, b JSONB);
INSERT INTO d VALUES (1, '{"a": 1.0}'), (2, '{"a": 1}'), (3, '[1, 2]'), (4, '[]'), (5, 'null'), (6, '"x"'), (7, '1.50'), (8, '1.5'), (9, 'true'),
    (10, '{}'), (11, '[1.0, 2.00]'), (12, '{"b": 1}'), (13, '{"aa": [1.10, {"c": "1.0"}]}'), (14, '{"aa": [1.1, {"c": "1.0"}]}'), (15, '-0.0'), (16, '0'),
    (17, '"1.0"'), (18, '"1"'), (19, NULL), (20, '{"a": 1, "b": 2}'), (21, 'false'), (22, '[[]]'), (23, '-1.5'), (24, '100.00'), (25, '100');
SELECT id FROM d ORDER BY b, id;
SELECT id FROM d ORDER BY b DESC NULLS LAST, id LIMIT 5;
SELECT count(DISTINCT b), count(b) FROM d;
SELECT count(*) FROM (SELECT DISTINCT b FROM d) q;
SELECT min(id), count(*) FROM d GROUP BY b ORDER BY 1;
SELECT count(*) FROM (SELECT b FROM d UNION SELECT b FROM d WHERE id > 3) q;
SELECT count(*) FROM (SELECT b FROM d WHERE id < 9 INTERSECT SELECT b FROM d WHERE id > 7) q;
SELECT count(*) FROM (SELECT b FROM d EXCEPT SELECT b FROM d WHERE id > 7) q;
SELECT DISTINCT ON (b) id FROM d ORDER BY b, id DESC;
SELECT x.id, y.id FROM d x JOIN d y ON x.b = y.b WHERE x.id < y.id ORDER BY 1, 2;
SELECT id, rank() OVER (ORDER BY b) FROM d ORDER BY id;
SELECT id FROM d WHERE b IN (SELECT b FROM d WHERE id = 8) ORDER BY id;
SELECT id FROM d WHERE b IS NOT DISTINCT FROM '{"a": 1.00}' ORDER BY id;
SELECT id FROM d WHERE b = ANY (ARRAY['1.5', '[]']::jsonb[]) ORDER BY id;
SELECT greatest('1'::jsonb, '[]', '"x"'), least('1'::jsonb, '"x"', 'null');
SELECT array_position(ARRAY['1', '2.0']::jsonb[], '2');
-- error: 42883
SELECT max(b) FROM d;

-- snippet: json-in-routines
CREATE TABLE log (id INTEGER PRIMARY KEY, entry JSONB);
CREATE PROCEDURE note(id INTEGER, entry JSONB) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log VALUES (id, entry || jsonb_build_object('n', id));
END $$;
CALL note(1, '{"a":1}');
CALL note(2, '{}');
CREATE FUNCTION total(doc JSONB) RETURNS NUMERIC LANGUAGE plpgsql AS $$
DECLARE
  line JSONB;
  sum NUMERIC := 0;
BEGIN
  FOR line IN SELECT value FROM jsonb_array_elements(doc -> 'lines') LOOP
    sum := sum + (line ->> 'price')::numeric * (line ->> 'count')::int;
  END LOOP;
  RETURN sum;
END $$;
SELECT total('{"lines":[{"price":1.50,"count":2},{"price":"10","count":1}]}'), total('{}'), total('{"lines":[]}');
SELECT * FROM log ORDER BY id;
CREATE FUNCTION has(doc JSON, key TEXT) RETURNS BOOLEAN LANGUAGE sql AS $$ SELECT doc -> key IS NOT NULL $$;
SELECT has('{"a":1}', 'a'), has('{"a":1}', 'b');

-- snippet: arrays-as-json
SELECT array_to_json(ARRAY[1, 2, NULL]), array_to_json('{a,"b c"}'::text[]), array_to_json(NULL::int[]);
-- error: 42883
SELECT array_to_json(1);

-- snippet: json-records
SELECT * FROM json_to_record('{"a":1,"b":"two","c":null,"d":true}') AS x(a int, b text, c text, d boolean);
SELECT * FROM jsonb_to_record('{"a":1.5,"b":{"k":[1]},"e":"x"}') AS x(a numeric, b jsonb, e varchar(3), f date);
SELECT * FROM json_to_recordset('[{"a":1,"b":"foo"},{"a":"2","c":"bar"},{}]') AS x(a int, b text, c text);
SELECT x.a, x.b FROM jsonb_to_recordset('[{"a":1,"b":"foo"},{"a":2,"b":null}]') AS x(a int, b text) WHERE x.a > 1;
SELECT * FROM json_to_recordset('[]') AS x(a int);
SELECT * FROM json_to_recordset(NULL) AS x(a int);
SELECT * FROM json_to_recordset('[{"a":1,"a":2}]') AS x(a int);
SELECT * FROM json_to_recordset('[{"t":"2024-02-29 10:00","n":"7.255"}]') AS x(t timestamp, n numeric(5, 2));
SELECT * FROM json_to_recordset('[{"j":"text"},{"j":null},{"j":[1,{"k":2}]}]') AS x(j json);
SELECT * FROM jsonb_to_recordset('[{"j":"text"},{"j":null},{"j":[1,{"k":2}]}]') AS x(j jsonb);
SELECT * FROM json_to_recordset('[{"a":{"k":1}},{"a":[1, 2]},{"a":false}]') AS x(a text);
SELECT sum(a), count(*) FROM json_to_recordset('[{"a":1},{"a":2},{"b":3}]') AS x(a int);
-- error: 22P02
SELECT * FROM json_to_recordset('[{"a":"x"}]') AS x(a int);
-- error: 22003
SELECT * FROM json_to_recordset('[{"a":70000}]') AS x(a smallint);
-- error: 22001
SELECT * FROM json_to_recordset('[{"a":"long"}]') AS x(a varchar(3));
-- error: 22023
SELECT * FROM json_to_recordset('{"a":1}') AS x(a int);
-- error: 22023
SELECT * FROM json_to_recordset('1') AS x(a int);
-- error: 22023
SELECT * FROM json_to_recordset('[1]') AS x(a int);
-- error: 22023
SELECT * FROM jsonb_to_recordset('{"a":1}') AS x(a int);
-- error: 22023
SELECT * FROM jsonb_to_recordset('"a"') AS x(a int);
-- error: 22023
SELECT * FROM jsonb_to_recordset('[[1]]') AS x(a int);
-- error: 22023
SELECT * FROM json_to_record('[1]') AS x(a int);
-- error: 22023
SELECT * FROM jsonb_to_record('3') AS x(a int);
-- error: 42601
SELECT * FROM json_to_record('{"a":1}') AS x;
-- error: 42601
SELECT * FROM json_to_recordset('[]') AS x(a);
CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR(5) NOT NULL, tags JSONB, price NUMERIC(6, 2));
INSERT INTO item SELECT * FROM jsonb_to_recordset('[{"id":1,"name":"one","tags":["x"]},{"id":2,"name":"two","price":"2.345"}]') AS x(id int, name text, tags jsonb, price numeric);
SELECT * FROM item ORDER BY id;
SELECT * FROM json_populate_recordset(NULL::item, '[{"id":3,"name":"three","price":1},{"id":4,"other":5}]');
SELECT id, name FROM jsonb_populate_recordset(NULL::item, '[{"id":3,"name":"three","price":1}]');
SELECT * FROM json_populate_record(NULL::item, '{"id":7,"name":"seven"}');
INSERT INTO item SELECT * FROM json_populate_recordset(NULL::item, '[{"id":8,"name":"eight","tags":{"a":1}}]') RETURNING *;
-- error: 22001
SELECT * FROM json_populate_recordset(NULL::item, '[{"name":"sixsix"}]');
UPDATE item SET price = x.price FROM jsonb_to_recordset('[{"id":1,"price":10},{"id":2,"price":20}]') AS x(id int, price numeric) WHERE item.id = x.id;
SELECT id, price FROM item ORDER BY id;
SELECT i.id, r.k FROM item i, jsonb_to_record(jsonb_build_object('k', i.id * 2)) AS r(k int) ORDER BY 1;
DROP TABLE item;
