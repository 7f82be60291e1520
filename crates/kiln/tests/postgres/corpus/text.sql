-- TEXT: literals, comparison in the C collation, the usual string functions.

-- snippet: text-literals
SELECT 'it''s', E'tab\there', E'new\nline', '';

-- snippet: text-literal-continued
SELECT 'one'
  'two';

-- snippet: text-dollar-quoted-literal
SELECT $$it's$$, $tag$a $$ b$tag$;

-- snippet: text-concatenation
SELECT 'a' || 'b', 'a' || 1, 1 || 'a', 'x' || 1.50, 'b=' || true, '' || '';

-- snippet: text-concat-numbers-needs-text
-- error: 42883
SELECT 1 || 2;

-- snippet: text-comparison-c-collation
SELECT 'a' < 'b', 'B' < 'a', 'abc' < 'abd', 'ab' < 'abc', 'Z' < 'a', 'a' = 'A', '' < 'a', '10' < '9';

-- snippet: text-order-c-collation
CREATE TABLE t (v TEXT);
INSERT INTO t VALUES ('b'), ('A'), ('a'), ('B'), ('_'), ('1'), ('é'), (''), ('ab'), (' ');
SELECT v FROM t ORDER BY v;

-- snippet: text-length
SELECT length('abc'), length(''), char_length('héllo'), character_length('ab'), octet_length('héllo'), length('日本');

-- snippet: text-upper-lower
SELECT upper('abC1'), lower('ABc1'), initcap('hello big WORLD');

-- snippet: text-substring
SELECT substring('abcdef' FROM 2 FOR 3), substring('abcdef' FROM 4), substring('abcdef', 2, 2), substr('abcdef', 3), substr('abcdef', -1, 4), substring('abc' FROM 0 FOR 2), substring('abc', 10);
-- error: 22011
SELECT substring('abc', 1, -1);

-- snippet: text-substring-multibyte
SELECT substring('héllo', 2, 2), left('日本語', 2), right('日本語', 1), reverse('añb');

-- snippet: text-left-right
SELECT left('abcdef', 2), right('abcdef', 2), left('abc', 10), left('abcdef', -2), right('abcdef', -2), left('abc', 0);

-- snippet: text-trim
SELECT trim('  a b  '), ltrim('  a'), rtrim('a  ') || '|', trim(BOTH 'x' FROM 'xxaxx'), trim(LEADING 'x' FROM 'xxa'), trim(TRAILING 'x' FROM 'axx'), btrim('xyaxy', 'xy'), ltrim('xya', 'xy');

-- snippet: text-pad
SELECT lpad('5', 3, '0'), rpad('ab', 5, 'xy'), lpad('abcdef', 3), rpad('a', 3) || '|', lpad('x', 5, 'ab'), lpad('abc', 0);

-- snippet: text-replace-and-repeat
SELECT replace('banana', 'an', 'AN'), replace('abc', 'x', 'y'), replace('aaa', 'a', ''), repeat('ab', 3), repeat('x', 0), repeat('x', -1);

-- snippet: text-position
SELECT position('c' IN 'abcabc'), position('x' IN 'abc'), strpos('hello', 'l'), position('' IN 'abc');

-- snippet: text-reverse
SELECT reverse('abc'), reverse('');

-- snippet: text-split-part
SELECT split_part('a,b,c', ',', 2), split_part('a,b,c', ',', 9), split_part('abc', ',', 1), split_part('a,b,c', ',', -1);
-- error: 22023
SELECT split_part('a,b', ',', 0);

-- snippet: text-ascii-chr
SELECT ascii('A'), chr(66), ascii(''), chr(233);

-- snippet: text-concat-ws
SELECT concat_ws('-', 'a', NULL, 'b', 3), concat_ws(',', NULL, NULL);

-- snippet: text-cast-to-varchar-truncates
SELECT 'abcdef'::varchar(3), 'abcdef'::char(3), 'ab'::varchar(5), CAST('hello' AS varchar(2));

-- snippet: text-starts-with
SELECT starts_with('hello', 'he'), starts_with('hello', 'lo');

-- snippet: text-translate
SELECT translate('12345', '143', 'ax'), translate('abc', '', 'x');

-- snippet: text-min-max
CREATE TABLE t (v TEXT);
INSERT INTO t VALUES ('pear'), ('Apple'), ('fig'), (NULL);
SELECT min(v), max(v), count(v) FROM t;

-- snippet: text-long-values
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, repeat('abcdefghij', 50)), (2, repeat('é', 300));
SELECT id, length(v), octet_length(v), right(v, 3) FROM t ORDER BY id;
UPDATE t SET v = v || '!' WHERE id = 1;
SELECT length(v), right(v, 2) FROM t WHERE id = 1;

-- snippet: text-csv-quoting
SELECT 'a,b', 'say "hi"', E'two\nlines', 'plain', ' lead';

-- snippet: text-unknown-literal-resolves-by-context
SELECT '5' + 1, '2.5' * 2.0, 'a' = 'a', '1' = 1;
-- error: 22P02
SELECT 'x' + 1;

-- snippet: text-operator-mismatch
-- error: 42883
SELECT 'a'::text + 1;
-- error: 42883
SELECT 'a'::text = 1;

-- snippet: text-as-key
CREATE TABLE t (k TEXT PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES ('b', 1), ('a', 2), ('', 3), ('a ', 4), ('A', 5);
-- error: 23505
INSERT INTO t VALUES ('a', 6);
SELECT k, v FROM t ORDER BY k;
SELECT v FROM t WHERE k >= 'a' AND k < 'b' ORDER BY k;
