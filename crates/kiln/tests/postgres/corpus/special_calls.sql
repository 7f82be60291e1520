-- Calls in words, and functions around them.
-- compare: messages

-- snippet: substring-similar
SELECT substring('foobar' SIMILAR '%#"o_b#"%' ESCAPE '#'), substring('foobar', '%#"o_b#"%', '#'), substring('foobar' FROM '%#"o_b#"%' FOR '#');
SELECT substring('abc' SIMILAR 'a' ESCAPE '#'), substring('abc' SIMILAR 'a#"%' ESCAPE '#'), substring('abc' SIMILAR 'abc' ESCAPE '#');
SELECT substring('abcabc' SIMILAR '%#"b%#"c' ESCAPE '#'), substring('abcabc' SIMILAR '#"a_#"%' ESCAPE '#'), substring('abc', 'x#"b#"c', '#'), substring('abc', '%', '#'), substring('abc' SIMILAR '%' ESCAPE NULL);
SELECT substring('abcdefg' SIMILAR 'a#"%#"g' ESCAPE '#'), substring('abcdefg' SIMILAR 'a#"(b_d)#"%' ESCAPE '#'), substring('abcdefg' SIMILAR '(a|ab)#"%#"(g|fg)' ESCAPE '#'), substring('aaa' SIMILAR 'a*#"a*#"a*' ESCAPE '#');
SELECT substring('äöü' SIMILAR '_#"_#"_' ESCAPE '#'), substring('' SIMILAR '#"%#"' ESCAPE '#'), 'abc' SIMILAR TO 'a#"b#"c' ESCAPE '#';
SELECT substring(v SIMILAR '%#"[0-9]+#"%' ESCAPE '#') FROM (VALUES ('a12b'), ('b'), (NULL)) AS t (v);
-- error: 2200C
SELECT substring('abcdefg' SIMILAR 'a#"%#"g#"x' ESCAPE '#');
-- error: 22025
SELECT substring('abc' SIMILAR 'abc' ESCAPE '##');
SELECT substring('abc' FROM 2 FOR 1), substring('abc', 2, 1), substring('abc' FROM 'b.');

-- snippet: collation-for
CREATE TABLE t (a TEXT, b VARCHAR(3), c CHAR(3), n NAME, x TEXT[]);
INSERT INTO t VALUES ('a', 'b', 'c', 'n', '{x}');
SELECT COLLATION FOR (a), COLLATION FOR (b), COLLATION FOR (c), COLLATION FOR (n), COLLATION FOR (x) FROM t;
SELECT COLLATION FOR ('foo'), COLLATION FOR ('foo'::text), COLLATION FOR ('a' COLLATE "C"), COLLATION FOR (('a' COLLATE ucs_basic)), COLLATION FOR (NULL), pg_collation_for(upper('a'));
-- error: 42804
SELECT COLLATION FOR (1);

-- snippet: normal-forms
SELECT normalize(U&'\0061\0308') = U&'\00e4', normalize(U&'\00e4', NFD) = U&'\0061\0308', length(normalize(U&'\fb01', NFKC)), normalize(U&'\fb01', nfkd), normalize(''), normalize(NULL, NFC);
SELECT U&'\0061\0308' IS NORMALIZED, U&'\0061\0308' IS NFD NORMALIZED, U&'\00e4' IS NOT NFC NORMALIZED, 'a' IS NFKC NORMALIZED, NULL IS NORMALIZED, is_normalized('x', 'nfkd');
SELECT v IS NORMALIZED FROM (VALUES ('a'), (U&'\0061\0308')) AS t (v) WHERE v IS NOT NFD NORMALIZED OR true;
-- error: 42601
SELECT normalize('a', nfx);
-- error: 22023
SELECT is_normalized('a', 'x');
CREATE TABLE n (a TEXT CHECK (a IS NORMALIZED), b TEXT GENERATED ALWAYS AS (normalize(a, NFD)) STORED);
INSERT INTO n VALUES (U&'\00e4');
SELECT length(a), length(b) FROM n;
-- error: 23514
INSERT INTO n VALUES (U&'a\0308');

-- snippet: time-of-day
SELECT pg_typeof(timeofday()), timeofday() ~ '^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d\.\d{6} \d{4} UTC$';
SELECT timeofday()::timestamptz - now() < interval '1 min';
SET timezone = 'Europe/Berlin';
SELECT timeofday() ~ 'CES?T$';

-- snippet: checkpoint
CHECKPOINT;
-- refused: setseed
SELECT setseed(0.5);
