-- Calls of builtin functions with arguments by name, and with an array behind VARIADIC.

-- compare: messages

-- snippet: arguments-by-name
SELECT make_interval(days => 10), make_interval(years => 1, mins => 5), make_interval(1, weeks => 2), make_interval(secs => 1.5);
SELECT make_date(year => 2024, month => 2, day => 29), make_date(2024, day => 1, month => 3), make_date(day := 5, year := 2020, month := 1);
SELECT make_time(hour => 1, min => 2, sec => 3.5), make_timestamp(year => 2024, month => 1, mday => 2, hour => 3, min => 4, sec => 5);
SELECT make_time(1, 2, sec => 0), make_timestamp(2024, 1, 2, sec => 5, min => 4, hour => 3);
SELECT jsonb_set(jsonb_in => '{"a": 1}', path => '{a}', replacement => '2');
SELECT jsonb_set('{"a": 1}', '{b}', replacement => '2', create_if_missing => false);
SELECT jsonb_set('{"a": 1}', '{b}', '2', create_if_missing => true);
SELECT jsonb_insert('{"a": [1, 2]}', '{a, 0}', replacement => '9', insert_after => true);
SELECT jsonb_insert(jsonb_in => '{"a": [1, 2]}', path => '{a, 0}', replacement => '9');
SELECT jsonb_path_query_array('[1, 2, 3]', '$[*] ? (@ > $x)', vars => '{"x": 1}');
SELECT jsonb_path_exists(target => '[1, 2, 3]', path => '$[*] ? (@ > 2)');
SELECT jsonb_path_exists('{"a": 1}', 'strict $.b', silent => true);
SELECT jsonb_path_query_first('{"a": 1}', '$.a', silent => true);
-- error: 42883
SELECT make_date(year => 2024, month => 2);
-- error: 42883
SELECT make_date(year => 2024, month => 2, no_such => 1);
-- error: 42601
SELECT make_date(year => 2024, year => 2025, day => 1);
-- error: 42883
SELECT make_date(2024, year => 2025, month => 1);
-- error: 42601
SELECT make_date(year => 2024, 2, 3);
-- error: 22P02
SELECT make_date(year => 'x', month => 1, day => 1);
-- error: 42883
SELECT make_interval(day => 1);
-- error: 42601
SELECT make_interval(days => 1, days => 2);
-- error: 42883
SELECT abs(x => 1);
-- error: 42883
SELECT no_such(a => 1);
SELECT make_date(year => y, month => m, day => d) FROM (VALUES (2024, 1, 2), (2023, 3, 4)) v (y, m, d) ORDER BY 1;
SELECT count(*) FROM generate_series(1, 3) g WHERE make_date(year => 2000, month => g, day => 1) > DATE '2000-01-15';

-- snippet: concatenations-of-arrays
SELECT concat(VARIADIC ARRAY['a', 'b', NULL, 'c']), concat(VARIADIC ARRAY[1, 2]), concat(VARIADIC ARRAY[true, false]);
SELECT concat(VARIADIC '{}'::text[]), concat(VARIADIC NULL::text[]), concat(VARIADIC '{1.50,2}'::numeric[]);
SELECT concat_ws(',', VARIADIC ARRAY['a', NULL, 'b']), concat_ws('-', VARIADIC ARRAY[1, 2, 3]), concat_ws(NULL, VARIADIC ARRAY['a']);
SELECT concat_ws(',', VARIADIC '{}'::int[]), concat_ws(',', VARIADIC NULL::int[]);
SELECT concat(VARIADIC string_to_array('a b c', ' ')), concat_ws('+', VARIADIC array_agg(g)) FROM generate_series(1, 3) g;
SELECT concat_ws(', ', VARIADIC a) FROM (VALUES (ARRAY['x', 'y']), (ARRAY[]::text[]), (NULL)) v (a);
SELECT concat(VARIADIC ARRAY[DATE '2024-01-02', NULL]), concat_ws('/', VARIADIC ARRAY[INTERVAL '1 day', '2 hours']);
-- error: 42804
SELECT concat(VARIADIC 'a');
-- error: 42804
SELECT concat(VARIADIC NULL);
-- error: 42804
SELECT concat(VARIADIC 1);
-- error: 42883
SELECT concat('a', VARIADIC ARRAY['b']);
-- error: 42883
SELECT concat_ws(VARIADIC ARRAY['a', 'b']);
-- error: 42883
SELECT concat_ws(',', 'a', VARIADIC ARRAY['b']);
-- error: 42601
SELECT concat(VARIADIC ARRAY['a'], 'b');

-- snippet: templates-of-arrays
SELECT format('%s and %s', VARIADIC ARRAY['a', 'b']), format('%2$s %1$s', VARIADIC ARRAY[1, 2]), format('%I = %L', VARIADIC ARRAY['A b', 'it''s']);
SELECT format('none', VARIADIC NULL::text[]), format('none', VARIADIC '{}'::text[]), format(NULL, VARIADIC ARRAY['a']);
SELECT format('%s %s', VARIADIC ARRAY['a', NULL]), format('%L', VARIADIC ARRAY[NULL]::text[]);
-- error: 22023
SELECT format('%s', VARIADIC NULL::text[]);
-- error: 22023
SELECT format('%s %s %s', VARIADIC ARRAY['a', 'b']);
-- error: 22004
SELECT format('%I', VARIADIC ARRAY[NULL]::text[]);
-- error: 42804
SELECT format('%s', VARIADIC 'a');
-- error: 42883
SELECT format(VARIADIC ARRAY['%s', 'a']);
-- error: 42883
SELECT format('%s', 'a', VARIADIC ARRAY['b']);

-- snippet: counts-and-json-of-arrays
SELECT num_nulls(VARIADIC ARRAY[1, NULL, 3]), num_nonnulls(VARIADIC ARRAY[1, NULL, 3]), num_nulls(VARIADIC '{}'::int[]), num_nulls(VARIADIC NULL::int[]);
SELECT num_nonnulls(VARIADIC ARRAY['a', 'b']), num_nonnulls(VARIADIC NULL::text[]), num_nulls(VARIADIC ARRAY[NULL, NULL]::date[]);
SELECT num_nulls(VARIADIC a), num_nonnulls(VARIADIC a) FROM (VALUES (ARRAY[1, NULL]), (NULL)) v (a);
-- error: 42804
SELECT num_nulls(VARIADIC 1);
-- error: 42883
SELECT num_nulls(1, VARIADIC ARRAY[2]);
SELECT json_build_array(VARIADIC ARRAY[1, 2, NULL]), jsonb_build_array(VARIADIC ARRAY['a', 'b']), json_build_array(VARIADIC ARRAY[1, 2.5]);
SELECT json_build_object(VARIADIC ARRAY['a', 'b', 'c', NULL]), jsonb_build_object(VARIADIC ARRAY['a', 'b']);
-- error: 22023
SELECT json_build_object(VARIADIC ARRAY['a', 'b', 'c']);
-- error: 42804
SELECT json_build_array(VARIADIC 'a');
SELECT jsonb_extract_path('{"a": {"b": 1}}'::jsonb, VARIADIC ARRAY['a', 'b']), jsonb_extract_path_text('{"a": {"b": "x"}}'::jsonb, VARIADIC ARRAY['a', 'b']);
SELECT json_extract_path('{"a": [5, 6]}'::json, VARIADIC ARRAY['a', '1']), json_extract_path_text('{"a": [5, 6]}'::json, VARIADIC '{a,0}'::text[]);
-- error: 42883
SELECT abs(VARIADIC ARRAY[1]);
-- error: 42883
SELECT upper(VARIADIC ARRAY['a']);
-- error: 42883
SELECT no_such(VARIADIC ARRAY[1]);
