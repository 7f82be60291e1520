-- Arrays compare element by element, NULL after everything else, and then by length.

-- snippet: array-distinct
SELECT DISTINCT x FROM (VALUES (ARRAY[1, 2]), (ARRAY[1, 2]), (ARRAY[2, 1]), (NULL), (NULL), ('{}')) s(x) ORDER BY x;
SELECT DISTINCT x FROM (VALUES (ARRAY['a', NULL]), (ARRAY['a', NULL]), (ARRAY[NULL, 'a'])) s(x) ORDER BY x;
SELECT DISTINCT ON (x) x, y FROM (VALUES (ARRAY[1], 1), (ARRAY[1], 2), (ARRAY[2], 3)) s(x, y) ORDER BY x, y DESC;
SELECT count(DISTINCT x) FROM (VALUES (ARRAY[1.0]), (ARRAY[1.00]), (ARRAY[1.5])) s(x);
SELECT count(*) FROM (SELECT DISTINCT ARRAY[x % 3, x % 2] AS y FROM generate_series(1, 100) x) s;

-- snippet: array-order
SELECT x FROM (VALUES (ARRAY[2]), (ARRAY[1, 5]), (ARRAY[1]), ('{}'), (NULL), (ARRAY[1, NULL]), (ARRAY[NULL, 1]), (ARRAY[-1])) s(x) ORDER BY x;
SELECT x FROM (VALUES (ARRAY[2]), (ARRAY[1, 5]), (ARRAY[1]), ('{}'), (NULL), (ARRAY[1, NULL])) s(x) ORDER BY x DESC;
SELECT x FROM (VALUES (ARRAY['b']), (ARRAY['a', 'c']), (ARRAY['a']), (ARRAY['ab'])) s(x) ORDER BY x NULLS FIRST;
SELECT x FROM (VALUES (ARRAY[1.5]), (ARRAY[1.25, 1]), (ARRAY[-3]), (ARRAY[10])) s(x) ORDER BY x;
SELECT x FROM (VALUES (ARRAY[1.5::float8]), (ARRAY['NaN'::float8]), (ARRAY['-Infinity'::float8])) s(x) ORDER BY x;
SELECT x FROM (VALUES (ARRAY[true]), (ARRAY[false, true]), (ARRAY[false])) s(x) ORDER BY x;
SELECT x FROM (VALUES (ARRAY['2020-01-02'::date]), (ARRAY['2019-01-02'::date, NULL])) s(x) ORDER BY x;
SELECT count(*) FROM (VALUES (ARRAY['1 mon'::interval]), (ARRAY['30 days'::interval]), (ARRAY['29 days'::interval])) s(x) WHERE x < ARRAY['30 days'::interval];
SELECT count(*) FROM (SELECT DISTINCT x FROM (VALUES (ARRAY['1 mon'::interval]), (ARRAY['30 days'::interval])) s(x)) t;

-- snippet: array-group
SELECT x, count(*), sum(y) FROM (VALUES (ARRAY[1, 2], 1), (ARRAY[1, 2], 2), (NULL, 3), (NULL, 4), (ARRAY[1], 5)) s(x, y) GROUP BY x ORDER BY x;
SELECT x FROM (VALUES (ARRAY['a']), (ARRAY['a']), (ARRAY['b'])) s(x) GROUP BY x HAVING count(*) > 1;
SELECT min(y), max(y) FROM (VALUES (1), (2)) s(y) GROUP BY ARRAY[y > 0];
SELECT row_number() OVER (PARTITION BY x ORDER BY y), x, y FROM (VALUES (ARRAY[1], 3), (ARRAY[1], 2), (ARRAY[2], 1)) s(x, y) ORDER BY x, y;
SELECT rank() OVER (ORDER BY x), x FROM (VALUES (ARRAY[1]), (ARRAY[1]), (ARRAY[2])) s(x) ORDER BY x;

-- snippet: array-compare
SELECT ARRAY[1, 2] < ARRAY[1, 3], ARRAY[1] < ARRAY[1, 0], ARRAY[NULL::int] > ARRAY[1], ARRAY[1] = ARRAY[1, NULL];
SELECT ARRAY[1, NULL] IS DISTINCT FROM ARRAY[1, NULL], ARRAY[1] IS DISTINCT FROM NULL, NULL::int[] IS NOT DISTINCT FROM NULL;
SELECT GREATEST(ARRAY[1, 2], ARRAY[2], ARRAY[1]), LEAST(ARRAY['b'], ARRAY['a', 'z']);
SELECT max(x), min(x) FROM (VALUES (ARRAY[1, 2]), (ARRAY[1]), (NULL), (ARRAY[0, 9])) s(x);
SELECT ARRAY[1, 2] IN (ARRAY[1], ARRAY[1, 2]);
SELECT x FROM (VALUES (ARRAY[1]), (ARRAY[2])) s(x) WHERE x IN (SELECT ARRAY[y] FROM generate_series(2, 3) y);
SELECT a.x, b.x FROM (VALUES (ARRAY[1]), (ARRAY[2])) a(x) JOIN (VALUES (ARRAY[2]), (ARRAY[2])) b(x) ON a.x = b.x;
SELECT CASE ARRAY[1] WHEN ARRAY[1] THEN 'same' ELSE 'other' END, NULLIF(ARRAY[1], ARRAY[1]);
