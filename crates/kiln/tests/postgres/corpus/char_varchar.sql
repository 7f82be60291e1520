-- CHAR(n) pads with blanks that do not count; VARCHAR(n) refuses what is too long.

-- snippet: char-pads-on-output
CREATE TABLE t (c CHAR(5));
INSERT INTO t VALUES ('ab'), (''), ('abcde');
SELECT c, length(c), octet_length(c) FROM t ORDER BY c;

-- snippet: char-comparison-ignores-trailing-blanks
CREATE TABLE t (c CHAR(4));
INSERT INTO t VALUES ('ab');
SELECT c = 'ab', c = 'ab  ', c = 'ab   '::char(6), c = 'abc', c = 'ab'::char(10) FROM t;
SELECT count(*) FROM t WHERE c = 'ab';

-- snippet: char-compared-with-text-counts-blanks
CREATE TABLE t (c CHAR(4), x TEXT);
INSERT INTO t VALUES ('ab', 'ab'), ('cd', 'cd  ');
SELECT c = x FROM t ORDER BY c;

-- snippet: char-concatenation-strips-blanks
CREATE TABLE t (c CHAR(4));
INSERT INTO t VALUES ('ab');
SELECT c || '|', '[' || c || ']', c::text || '|' FROM t;

-- snippet: char-too-long
CREATE TABLE t (c CHAR(3));
-- error: 22001
INSERT INTO t VALUES ('abcd');
INSERT INTO t VALUES ('abc   ');
SELECT c, length(c) FROM t;

-- snippet: varchar-too-long
CREATE TABLE t (v VARCHAR(3));
-- error: 22001
INSERT INTO t VALUES ('abcd');
INSERT INTO t VALUES ('abc  '), ('a');
SELECT v, length(v) FROM t ORDER BY v;

-- snippet: varchar-keeps-blanks
CREATE TABLE t (v VARCHAR(5));
INSERT INTO t VALUES ('a '), ('a');
SELECT v || '|', length(v) FROM t ORDER BY v;
SELECT count(*) FROM t WHERE v = 'a';

-- snippet: varchar-counts-characters-not-bytes
CREATE TABLE t (v VARCHAR(3), c CHAR(3));
INSERT INTO t VALUES ('éèê', 'é');
-- error: 22001
INSERT INTO t VALUES ('éèêë', 'x');
SELECT v, octet_length(v), c, octet_length(c) FROM t;

-- snippet: varchar-update-too-long
CREATE TABLE t (id INTEGER PRIMARY KEY, v VARCHAR(4));
INSERT INTO t VALUES (1, 'ab');
-- error: 22001
UPDATE t SET v = v || 'cde';
SELECT v FROM t;

-- snippet: varchar-unlimited
CREATE TABLE t (v VARCHAR);
INSERT INTO t VALUES (repeat('x', 200));
SELECT length(v) FROM t;

-- snippet: char-default-length-one
CREATE TABLE t (c CHAR);
INSERT INTO t VALUES ('y');
-- error: 22001
INSERT INTO t VALUES ('no');
SELECT c FROM t;

-- snippet: char-order-and-unique
CREATE TABLE t (c CHAR(3) PRIMARY KEY);
INSERT INTO t VALUES ('b'), ('a'), ('ab');
-- error: 23505
INSERT INTO t VALUES ('a  ');
SELECT c FROM t ORDER BY c;

-- snippet: char-functions
CREATE TABLE t (c CHAR(6));
INSERT INTO t VALUES ('aBc');
SELECT upper(c), lower(c) || '|', substring(c, 1, 5) || '|', trim(c) || '|' FROM t;

-- snippet: char-like-sees-blanks
CREATE TABLE t (c CHAR(5));
INSERT INTO t VALUES ('abc');
SELECT c LIKE 'abc', c LIKE 'abc  ', c LIKE 'abc%' FROM t;

-- snippet: char-cast-explicit-truncates-silently
SELECT 'abcdef'::char(2), 'abcdef'::varchar(2), 12345::varchar(3), 12345::char(3);

-- snippet: char-group-by
CREATE TABLE t (c CHAR(3), n INTEGER);
INSERT INTO t VALUES ('a', 1), ('a  ', 2), ('b', 3);
SELECT c, sum(n) FROM t GROUP BY c ORDER BY c;
SELECT DISTINCT c FROM t ORDER BY c;
