-- SQL/JSON paths over JSONB.
-- compare: messages

-- snippet: paths-are-read-and-printed
SELECT '$'::jsonpath, 'strict $'::jsonpath, 'lax $.a[*].b'::jsonpath, '$.a.**{1 to 3}.b'::jsonpath, '$[0, $.n to last - 1]'::jsonpath;
SELECT '$.a ? (@.b > 1 && !(@.c == null) || exists(@.d))'::jsonpath, '$ ? (@ like_regex "^a" flag "i")'::jsonpath, '$ ? (@ starts with "x")'::jsonpath, '$ ? ((@ > 1) is unknown)'::jsonpath;
SELECT '1 + 2 * -$.a'::jsonpath, '($.a + 1).abs().type()'::jsonpath, '$.a.size().floor().ceiling().double()'::jsonpath, '"a\nb".type()'::jsonpath, '$"x y" + $z'::jsonpath;
SELECT '.5 + 1. + 1e2 - 10.50'::jsonpath, 'true'::jsonpath, 'null'::jsonpath, '$.null.true.last.type'::jsonpath;
SELECT ('$.a' || '.b')::jsonpath;
-- error: 22P02
SELECT ''::jsonpath;
-- error: 42601
SELECT '$ ? (1)'::jsonpath;
-- error: 42601
SELECT '@ > 1'::jsonpath;
-- error: 42601
SELECT 'last'::jsonpath;
-- error: 42601
SELECT '1a'::jsonpath;
-- error: 42601
SELECT '$[1'::jsonpath;

-- snippet: paths-find-items
SELECT jsonb_path_query('{"a": [1, 2, {"b": "x"}]}', '$.a[*]');
SELECT jsonb '{"a": 12}' @? '$', jsonb '{"a": 12}' @? '$.a.b', jsonb '{"a": {"b": 12}}' @? '$.a.b', jsonb '[{"a": 1}, {"a": 2}]' @? '$[*].a', jsonb '[1, 2]' @? '$[2]', jsonb '[1, 2]' @? 'strict $[2]', jsonb '{"a": 1}' @? 'strict $.b';
SELECT jsonb '[{"a": 1}, {"a": 2}]' @@ '$[*].a > 1', jsonb '[1]' @@ '$', jsonb '[true]' @@ '$[*]', jsonb '1' @@ '$ == "x"', jsonb '"x"' @@ '$ starts with "x"', jsonb 'null' @@ 'strict $[*] > 1';
SELECT jsonb_path_exists('[{"a": 1}, {"a": 2}, 3]', 'lax $[*].a'), jsonb_path_exists('[{"a": 1}, {"a": 2}, 3]', 'strict $[*].a', '{}', true) IS NULL;
SELECT jsonb_path_query_array('[1, 2, 3, 4]', '$[*] ? (@ > $min && @ < $max)', '{"min": 1, "max": 4}'), jsonb_path_query_first('[1, 2]', '$[*] ? (@ > 5)'), jsonb_path_query_first('[1, 2]', '$[last]'), jsonb_path_query_array('[1, 2]', '$[5]');
SELECT * FROM jsonb_path_query('{"a": {"b": [1, {"c": 2}]}, "d": 3}', '$.**') AS q;
SELECT * FROM jsonb_path_query('{"a": {"b": [1, {"c": 2}]}, "d": 3}', '$.**{2}') AS q;
SELECT * FROM jsonb_path_query('{"a": {"b": [1, {"c": 2}]}, "d": 3}', '$.**{last}') AS q;
SELECT * FROM jsonb_path_query('{"a": {"b": [1, {"c": 2}]}, "d": 3}', '$.**{1 to 2}.b') AS q;
SELECT * FROM jsonb_path_query('{"a": 1, "b": [2, 3]}', '$.*') AS q;
SELECT * FROM jsonb_path_query('{"a": 1, "b": [2, 3]}', '$.*[*]') AS q;
SELECT * FROM jsonb_path_query('[1, [2, 3], {"a": 4}]', '$[*].type()') AS q;
SELECT * FROM jsonb_path_query('[[1], [2, 3], 4]', '$[*].size()') AS q;
SELECT * FROM jsonb_path_query('[-1.7, 2, 0.5]', '$[0].abs() + $[0].floor() * $[2].ceiling()') AS q;
SELECT jsonb_path_query('["1.5", 2, "1e3"]', '$[*].double()');
SELECT jsonb_path_query('{"a": [2]}', '3 * $.a + 1'), jsonb_path_query('[1, 2]', '-$[*]'), jsonb_path_query('7', '$ / 2'), jsonb_path_query('7', '$ % 4'), jsonb_path_query('2', '1.5 - $');
SELECT jsonb_path_query('["abc", "Abd", "a\nb"]', '$[*] ? (@ like_regex "^ab" flag "i")');
SELECT jsonb_path_query('["a.c", "abc"]', '$[*] ? (@ like_regex "a.c" flag "q")');
SELECT jsonb_path_query('["a\nb", "ab"]', '$[*] ? (@ like_regex "a.b" flag "s")');
SELECT jsonb_path_query('[{"a": 1, "b": "x"}, {"a": null}, {"c": 1}]', '$[*] ? (@.a == null)');
SELECT jsonb_path_query('[{"a": 1, "b": "x"}, {"a": "y"}, {"c": 1}]', '$[*] ? ((@.a > 0) is unknown)');
SELECT jsonb_path_query('[{"a": [1, 2]}, {"a": 5}]', '$[*] ? (exists(@.a[*] ? (@ >= 2)))');
SELECT jsonb_path_query('[1, 2, 3, 4]', '$[0, last, 1 to 2]'), jsonb_path_query('[1, 2, 3]', '$[last - 1]'), jsonb_path_query('{"a": 1}', '$[0].a'), jsonb_path_query('[1.9]', '$[0.7]');
SELECT jsonb_path_query('{"a": 1}', '$.a == 1'), jsonb_path_query('[1, "a"]', '$[*] == 1'), jsonb_path_query('[]', '$[*] > 1'), jsonb_path_query('[1, 2]', 'strict $[*] == "a"');
SELECT jsonb_path_match('{"a": 1}', '$.a == 1'), jsonb_path_match('{"a": 1}', '$.a == "x"') IS NULL, jsonb_path_match('{"a": 1}', '$.a', '{}', true) IS NULL;
CREATE TABLE docs (id INTEGER PRIMARY KEY, doc JSONB);
INSERT INTO docs VALUES (1, '{"tags": ["a", "b"], "n": 1}'), (2, '{"tags": ["c"], "n": 20}'), (3, '{"n": "x"}'), (4, NULL);
SELECT id FROM docs WHERE doc @? '$.tags[*] ? (@ == "a")' ORDER BY id;
SELECT id FROM docs WHERE doc @@ '$.n > 5' ORDER BY id;
SELECT id, q FROM docs, jsonb_path_query(doc, '$.tags[*]') AS q ORDER BY 1, 2;
SELECT id, jsonb_path_query_array(doc, '$.tags[*] ? (@ != $x)', jsonb_build_object('x', 'a')) FROM docs ORDER BY id;
UPDATE docs SET doc = jsonb_set(doc, '{first}', jsonb_path_query_first(doc, '$.tags[0]')) WHERE doc @? '$.tags';
SELECT id, doc -> 'first' FROM docs ORDER BY id;
SELECT jsonb_path_query(NULL, '$'), jsonb_path_exists('1', NULL);

-- snippet: paths-that-do-not-fit
-- error: 2203A
SELECT jsonb_path_query('{"a": 1}', 'strict $.b');
-- error: 2203A
SELECT jsonb_path_query('[1]', 'strict $.b');
-- error: 22039
SELECT jsonb_path_query('1', 'strict $[*]');
-- error: 22039
SELECT jsonb_path_query('1', 'strict $[0]');
-- error: 2203C
SELECT jsonb_path_query('1', 'strict $.*');
-- error: 22033
SELECT jsonb_path_query('[1]', 'strict $[1]');
-- error: 22033
SELECT jsonb_path_query('[1]', '$["a"]');
-- error: 22033
SELECT jsonb_path_query('[1]', '$[10000000000]');
-- error: 22038
SELECT jsonb_path_query('["a"]', '$[0] + 1');
-- error: 22038
SELECT jsonb_path_query('[1, 2]', '1 + $[*]');
-- error: 2203B
SELECT jsonb_path_query('["a"]', '-$[0]');
-- error: 22012
SELECT jsonb_path_query('0', '1 / $');
-- error: 22036
SELECT jsonb_path_query('"a"', '$.abs()');
-- error: 22036
SELECT jsonb_path_query('"a"', '$.double()');
-- error: 22036
SELECT jsonb_path_query('null', '$.double()');
-- error: 22039
SELECT jsonb_path_query('1', 'strict $.size()');
-- error: 42704
SELECT jsonb_path_query('1', '$x');
SELECT jsonb '1' @? '$x', jsonb '1' @@ '$x == null';
-- error: 22023
SELECT jsonb_path_query('1', '$', '1');
-- error: 22038
SELECT jsonb_path_match('1', '$');
-- error: 2201B
SELECT jsonb_path_query('"a"', '$ ? (@ like_regex "(")');
SELECT jsonb_path_query('{"a": 1}', 'strict $.b', '{}', true), jsonb_path_query_array('[1, "a"]', '-$[*]', '{}', true), jsonb_path_query_first('0', '1 / $', '{}', true);
