-- DATE, TIMESTAMP, TIMESTAMP WITH TIME ZONE (session time zone UTC), INTERVAL.

-- snippet: date-literals
SELECT DATE '2024-02-29', '2024-01-05'::date, '20240301'::date, date '1999-12-31';

-- snippet: date-bad-literals
-- error: 22008
SELECT '2023-02-29'::date;
-- error: 22008
SELECT '2024-13-01'::date;
-- error: 22007
SELECT 'yesterdayish'::date;

-- snippet: date-arithmetic
SELECT date '2024-02-28' + 2, date '2024-03-01' - 1, date '2024-03-01' - date '2024-02-01', 3 + date '2024-12-30';

-- snippet: date-comparison
SELECT date '2024-01-02' > date '2024-01-01', date '2024-01-02' = '2024-01-02', date '2024-01-01' < timestamp '2024-01-01 00:00:01';

-- snippet: date-column
CREATE TABLE t (d DATE PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES ('2024-03-01', 1), ('1970-01-01', 2), ('1969-12-31', 3), ('2100-06-15', 4);
SELECT d, v FROM t ORDER BY d;
SELECT v FROM t WHERE d BETWEEN '1969-12-31' AND '1970-01-01' ORDER BY d DESC;
SELECT min(d), max(d), max(d) - min(d) FROM t;

-- snippet: date-extract
SELECT extract(year FROM date '2024-07-04'), extract(month FROM date '2024-07-04'), extract(day FROM date '2024-07-04'), extract(dow FROM date '2024-07-04'), extract(doy FROM date '2024-07-04'), extract(quarter FROM date '2024-07-04');

-- snippet: date-extract-week-and-isodow
SELECT extract(week FROM date '2024-01-01'), extract(week FROM date '2023-01-01'), extract(isodow FROM date '2024-07-07'), extract(dow FROM date '2024-07-07');

-- snippet: date-to-timestamp
SELECT date '2024-01-01'::timestamp, timestamp '2024-05-06 23:59:59'::date, date '2024-01-01' + interval '1 hour';

-- snippet: date-far-years
SELECT date '0001-01-01', date '9999-12-31', date '9999-12-31' - date '0001-01-01';

-- snippet: timestamp-literals
SELECT timestamp '2024-01-02 03:04:05', timestamp '2024-01-02 03:04:05.678', '2024-01-02T03:04:05'::timestamp, '2024-01-02'::timestamp, timestamp '2024-01-02 03:04';

-- snippet: timestamp-microseconds
SELECT timestamp '2024-01-02 03:04:05.123456', timestamp '2024-01-02 03:04:05.100', timestamp '2024-01-02 03:04:05.000001', timestamp '2024-01-02 03:04:05.1234567';

-- snippet: timestamp-bad-literals
-- error: 22008
SELECT timestamp '2024-01-02 25:00:00';
-- error: 22007
SELECT timestamp 'noon';

-- snippet: timestamp-difference
SELECT timestamp '2024-01-03 12:00:00' - timestamp '2024-01-01 10:30:00', timestamp '2024-01-01 00:00:01' - timestamp '2024-01-01 00:00:02', timestamp '2024-01-01' - timestamp '2024-01-01';

-- snippet: timestamp-plus-interval
SELECT timestamp '2024-01-31 10:00:00' + interval '1 month', timestamp '2024-01-01' + interval '1 day 2 hours', timestamp '2024-03-01' - interval '1 day', timestamp '2024-02-29' + interval '1 year';

-- snippet: timestamp-extract
SELECT extract(hour FROM timestamp '2024-01-02 03:04:05.678'), extract(minute FROM timestamp '2024-01-02 03:04:05.678'), extract(second FROM timestamp '2024-01-02 03:04:05.678'), extract(milliseconds FROM timestamp '2024-01-02 03:04:05.678'), extract(microseconds FROM timestamp '2024-01-02 03:04:05.678');

-- snippet: timestamp-extract-epoch
SELECT extract(epoch FROM timestamp '2024-01-01 00:00:00'), extract(epoch FROM timestamp '1970-01-01 00:00:01.5'), extract(epoch FROM date '1970-01-02');

-- snippet: timestamp-date-part
SELECT date_part('year', timestamp '2024-07-04 10:20:30'), date_part('second', timestamp '2024-07-04 10:20:30.5'), date_part('dow', date '2024-07-04');

-- snippet: timestamp-date-trunc
SELECT date_trunc('hour', timestamp '2024-07-04 10:20:30.5'), date_trunc('day', timestamp '2024-07-04 10:20:30'), date_trunc('month', timestamp '2024-07-04 10:20:30'), date_trunc('year', timestamp '2024-07-04 10:20:30'), date_trunc('week', timestamp '2024-07-04 10:20:30'), date_trunc('minute', timestamp '2024-07-04 10:20:30');

-- snippet: timestamp-date-trunc-bad-unit
-- error: 22023
SELECT date_trunc('fortnight', timestamp '2024-07-04');

-- snippet: timestamp-column
CREATE TABLE t (id INTEGER PRIMARY KEY, at TIMESTAMP);
INSERT INTO t VALUES (1, '2024-01-01 10:00:00'), (2, '2024-01-01'), (3, NULL), (4, '2023-12-31 23:59:59.999999');
SELECT id, at FROM t ORDER BY at;
SELECT id FROM t WHERE at >= '2024-01-01' AND at < '2024-01-02' ORDER BY at;
SELECT id FROM t WHERE at::date = date '2024-01-01' ORDER BY id;
UPDATE t SET at = at + interval '90 minutes' WHERE id = 1;
SELECT at FROM t WHERE id = 1;

-- snippet: timestamp-before-epoch
SELECT timestamp '1969-12-31 23:59:59.5', timestamp '1900-01-01 00:00:00', extract(epoch FROM timestamp '1969-12-31 23:59:59.5');

-- snippet: timestamptz-output-in-utc
SELECT timestamptz '2024-01-02 03:04:05+00', timestamptz '2024-01-02 03:04:05+02', timestamptz '2024-01-02 03:04:05-05:30', timestamptz '2024-01-02 03:04:05Z', timestamptz '2024-01-02 03:04:05';

-- snippet: timestamptz-column
CREATE TABLE t (at TIMESTAMP WITH TIME ZONE PRIMARY KEY);
INSERT INTO t VALUES ('2024-01-01 12:00:00+01'), ('2024-01-01 12:00:00+00');
-- error: 23505
INSERT INTO t VALUES ('2024-01-01 11:00:00Z');
SELECT at FROM t ORDER BY at;
SELECT count(*) FROM t WHERE at = '2024-01-01 13:00:00+01';

-- snippet: timestamp-without-zone-ignores-offset
SELECT timestamp '2024-01-02 03:04:05+02', '2024-01-02 03:04:05+02'::timestamptz::timestamp;

-- snippet: interval-output
SELECT interval '1 day', interval '36 hours', interval '1 year 2 months 3 days 04:05:06', interval '90 seconds', interval '1.5 hours', interval '-1 day';

-- snippet: interval-arithmetic
SELECT interval '1 day' + interval '2 hours', interval '1 hour' * 3, interval '1 day' * 1.5, date '2024-01-01' - interval '1 month';

-- snippet: interval-comparison
SELECT interval '24 hours' = interval '1 day', interval '30 days' = interval '1 month', interval '1 hour' < interval '61 minutes';

-- snippet: interval-extract
SELECT extract(day FROM timestamp '2024-01-03 12:00:00' - timestamp '2024-01-01 10:30:00'), extract(hour FROM interval '26 hours'), extract(epoch FROM interval '1 day 1 second');

-- snippet: date-make-date
SELECT make_date(2024, 2, 29);
-- error: 22008
SELECT make_date(2023, 2, 29);

-- snippet: date-to-text
SELECT date '2024-01-05'::text || '!', timestamp '2024-01-05 01:02:03.40'::text, 'on ' || date '2024-01-05';

-- snippet: date-in-functions-compare-with-text
-- error: 42883
SELECT date '2024-01-01' = 'x'::text;
-- error: 42883
SELECT date '2024-01-01' + date '2024-01-01';
