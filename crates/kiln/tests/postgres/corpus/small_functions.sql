-- Functions that stand alone, and aggregates of pairs.

-- compare: messages

-- snippet: aggregates-of-pairs
CREATE TABLE p (x DOUBLE PRECISION, y INTEGER, g INTEGER);
INSERT INTO p VALUES (1, 2, 1), (2, 4, 1), (3, 7, 1), (4, NULL, 1), (NULL, 5, 2), (6, 6, 2);
SELECT corr(y, x), covar_pop(y, x), covar_samp(y, x) FROM p;
SELECT regr_count(y, x), regr_avgx(y, x), regr_avgy(y, x), regr_sxx(y, x), regr_syy(y, x), regr_sxy(y, x) FROM p;
SELECT regr_slope(y, x), regr_intercept(y, x), regr_r2(y, x) FROM p WHERE g = 1;
SELECT g, corr(y, x), covar_samp(y, x), regr_count(y, x) FROM p GROUP BY g ORDER BY g;
SELECT corr(y, x), regr_count(y, x), covar_pop(y, x) FROM p WHERE false;
SELECT corr(y, x) FILTER (WHERE g = 1), regr_r2(1, x), regr_slope(x, 1) FROM p;
SELECT corr(x, 'NaN'::double precision), regr_avgx(1, x) FROM p;
-- error: 42883
SELECT corr(x) FROM p;
-- error: 42883
SELECT corr(x, 'a'::text) FROM p;
DROP TABLE p;

-- snippet: names-and-escapes
SELECT parse_ident('a.b'), parse_ident(' "A b" . c '), parse_ident('X."y""z"'), parse_ident('foo.bar(1)', false);
-- error: 22023
SELECT parse_ident('foo.bar(1)');
-- error: 22023
SELECT parse_ident('a..b');
-- error: 22023
SELECT parse_ident('a.');
-- error: 22023
SELECT parse_ident('"open');
-- error: 22023
SELECT parse_ident('""');
-- error: 22023
SELECT parse_ident('1a');
SELECT parse_ident(NULL);
SELECT unistr('\0041b\\c \+01F600 \u00e9 \U0001F600 \d83d\de00');
-- error: 42601
SELECT unistr('\00');
-- error: 42601
SELECT unistr('\d83dx');
SELECT pg_size_bytes('1 MB'), pg_size_bytes('1.5kB'), pg_size_bytes(' -2 gb '), pg_size_bytes('1e3'), pg_size_bytes('7 bytes');
-- error: 22023
SELECT pg_size_bytes('1 xB');
-- error: 22023
SELECT pg_size_bytes('much');
-- error: 22023
SELECT pg_size_bytes('');

-- snippet: objects-of-lists
SELECT json_object('{a,1,b,2}'), json_object('{a,"x\"y",b,NULL}'::text[]), json_object('{}');
SELECT jsonb_object('{b,1,a,2,b,3}'), jsonb_object('{a,b}', '{1,NULL}'), json_object(ARRAY['k'], ARRAY['v']);
-- error: 2202E
SELECT json_object('{a,b,c}');
-- error: 22004
SELECT json_object(ARRAY[NULL, 'x']);
-- error: 2202E
SELECT jsonb_object('{a,b}', '{1}');

-- snippet: filled-arrays-and-times
SELECT array_fill(7, ARRAY[3]), array_fill('x'::text, ARRAY[0]), array_fill(NULL::integer, ARRAY[2]);
-- error: 22004
SELECT array_fill(7, NULL);
-- error: 42804
SELECT array_fill('x', ARRAY[1]);
-- refused: an array of more than one dimension
SELECT array_fill(7, ARRAY[2, 2]);

-- snippet: moments-of-parts
SELECT make_timestamptz(2024, 1, 2, 3, 4, 5.5), make_timestamptz(2024, 7, 2, 3, 4, 5, 'Europe/Berlin');
-- error: 22008
SELECT make_timestamptz(2024, 13, 1, 0, 0, 0);
