-- Aggregates that are functions of all values of a group.

-- snippet: statistics-deviations
CREATE TABLE t (g INTEGER, i INTEGER, n NUMERIC(10, 3), d DOUBLE PRECISION, r REAL);
INSERT INTO t VALUES (1, 1, 1.5, 0.25, 0.5), (1, 2, 2.25, 1e10, 1.5), (1, 4, -7.125, -3.75, 2.5), (1, NULL, NULL, NULL, NULL),
    (2, 7, 0.001, 1e-3, 8), (3, NULL, NULL, NULL, NULL), (4, 3, 3, 3, 3), (4, 3, 3, 3, 3), (5, 1000000, 99999.999, 'infinity', 1), (5, -1000000, 12.5, 1, 2);
SELECT g, stddev(i), stddev_samp(i), stddev_pop(i), variance(i), var_samp(i), var_pop(i) FROM t GROUP BY g ORDER BY g;
SELECT g, stddev(n), stddev_pop(n), variance(n), var_pop(n) FROM t GROUP BY g ORDER BY g;
SELECT g, stddev(d), stddev_pop(d), variance(d), var_pop(d) FROM t GROUP BY g ORDER BY g;
SELECT g, stddev(r), stddev_pop(r), variance(r), var_pop(r) FROM t GROUP BY g ORDER BY g;
SELECT stddev(i), variance(i) FROM t;
SELECT stddev(DISTINCT i), variance(i) FILTER (WHERE g < 4), count(*) FROM t;
SELECT stddev(i) FROM t WHERE false;
SELECT stddev(i::smallint), stddev(i::bigint) FROM t WHERE g = 1;
SELECT pg_typeof(stddev(i)), pg_typeof(stddev(d)), pg_typeof(stddev(r)), pg_typeof(var_pop(n)) FROM t;
-- error: 42883
SELECT stddev('x'::text) FROM t;
SELECT stddev('1') FROM t;
-- error: 42883
SELECT stddev(*) FROM t;
-- error: 42883
SELECT stddev(i, i) FROM t;
SELECT round(avg(i) / nullif(stddev(i), 0), 6) FROM t HAVING stddev(i) > 0;

-- snippet: statistics-bits
CREATE TABLE t (g INTEGER, s SMALLINT, i INTEGER, b BIGINT);
INSERT INTO t VALUES (1, 12, 12, 12), (1, 10, 10, 10), (2, NULL, NULL, NULL), (3, -1, 5, 1099511627776), (3, 7, 6, 3);
SELECT g, bit_and(s), bit_or(s), bit_xor(s) FROM t GROUP BY g ORDER BY g;
SELECT g, bit_and(i), bit_or(i), bit_xor(b) FROM t GROUP BY g ORDER BY g;
SELECT pg_typeof(bit_and(s)), pg_typeof(bit_or(b)) FROM t;
-- error: 42883
SELECT bit_and(1.5) FROM t;

-- snippet: statistics-intervals
CREATE TABLE t (g INTEGER, x INTERVAL);
INSERT INTO t VALUES (1, '1 day'), (1, '2 hours'), (1, '1 month'), (1, NULL), (2, NULL), (3, '-5 minutes'), (3, '1 day -3 hours');
SELECT g, sum(x), avg(x), count(x), min(x), max(x) FROM t GROUP BY g ORDER BY g;
SELECT sum(x), avg(x) FROM t WHERE false;
SELECT sum(DISTINCT x), avg(x) FILTER (WHERE g = 1) FROM t;

-- snippet: statistics-percentiles
CREATE TABLE t (g INTEGER, i INTEGER, n NUMERIC, d DOUBLE PRECISION, x TEXT);
INSERT INTO t VALUES (1, 10, 1.5, 1, 'b'), (1, 20, 2.5, 2, 'a'), (1, 40, 4.5, 7, 'b'), (1, 30, 3.5, 3, 'c'), (2, NULL, NULL, NULL, NULL), (3, 5, 5, 5, 'z');
SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY i), percentile_cont(0.25) WITHIN GROUP (ORDER BY d DESC),
       percentile_cont(0.9) WITHIN GROUP (ORDER BY n) FROM t GROUP BY g ORDER BY g;
SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY i), percentile_disc(0) WITHIN GROUP (ORDER BY x),
       percentile_disc(1) WITHIN GROUP (ORDER BY n DESC) FROM t GROUP BY g ORDER BY g;
SELECT g, mode() WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY i DESC) FROM t GROUP BY g ORDER BY g;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY i) FILTER (WHERE i > 10) FROM t;
SELECT percentile_cont(NULL) WITHIN GROUP (ORDER BY i) FROM t;
-- error: 22003
SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY i) FROM t;
-- error: 22003
SELECT percentile_disc(-0.1) WITHIN GROUP (ORDER BY i) FROM t;
-- error: 42883
SELECT percentile_cont(0.5) FROM t;
-- error: 42883
SELECT sum(1) WITHIN GROUP (ORDER BY i) FROM t;

-- snippet: statistics-zones-by-offset
CREATE TABLE t (z TEXT);
INSERT INTO t VALUES ('+02:00'), ('-3'), ('UTC-2'), ('UTC+2:30'), ('UTC-02:00:30'), ('FOO-2'), ('X5'), ('<+02>-2'), ('EST5EDT'),
    ('EST5EDT,M3.2.0,M11.1.0'), ('CET-1CEST,M3.5.0,M10.5.0/3'), ('UTC+25'), ('12:00'), ('utc-2');
SELECT z, '2020-07-01 12:00+00'::timestamptz AT TIME ZONE z, '2020-01-01 12:00'::timestamp AT TIME ZONE z = '2020-01-01 12:00+00' FROM t ORDER BY z;
-- error: 22023
SELECT '2020-07-01 12:00+00'::timestamptz AT TIME ZONE 'UTC+200';
-- error: 22023
SELECT '2020-07-01 12:00+00'::timestamptz AT TIME ZONE 'foo';
