-- LIKE, ILIKE and ESCAPE.

-- snippet: like-wildcards
SELECT 'abc' LIKE 'abc', 'abc' LIKE 'a%', 'abc' LIKE '_b_', 'abc' LIKE 'c', 'abc' LIKE '%c', 'abc' LIKE '%b%', '' LIKE '%', '' LIKE '_';

-- snippet: like-percent-runs
SELECT 'abcabc' LIKE 'a%c', 'abcabd' LIKE 'a%c', 'aaa' LIKE '%a%a%a%', 'aa' LIKE '%a%a%a%', 'mississippi' LIKE '%iss%ip%';

-- snippet: like-not
SELECT 'abc' NOT LIKE 'a%', 'abc' NOT LIKE 'b%', NULL NOT LIKE 'a', 'a' LIKE NULL;

-- snippet: like-case-sensitive
SELECT 'ABC' LIKE 'abc', 'ABC' ILIKE 'abc', 'aBc' ILIKE 'A_C', 'abc' NOT ILIKE 'AB%';

-- snippet: like-backslash-escape
SELECT '50%' LIKE '50\%', '500' LIKE '50\%', 'a_b' LIKE 'a\_b', 'axb' LIKE 'a\_b', 'a\b' LIKE 'a\\b';

-- snippet: like-custom-escape
SELECT '50%' LIKE '50!%' ESCAPE '!', 'a!b' LIKE 'a!!b' ESCAPE '!', '50x' LIKE '50!%' ESCAPE '!';

-- snippet: like-empty-escape
SELECT 'a\b' LIKE 'a\b' ESCAPE '', 'a\%' LIKE 'a\%' ESCAPE '';

-- snippet: like-bad-escape
-- error: 22025
SELECT 'a' LIKE 'a!' ESCAPE '!!';
-- error: 22025
SELECT 'ab' LIKE 'a\';

-- snippet: like-multibyte
SELECT 'é' LIKE '_', '日本' LIKE '日_', 'éa' LIKE '%a';

-- snippet: like-column-pattern
CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, pattern TEXT);
INSERT INTO t VALUES (1, 'BARBARBAR', 'BAR%'), (2, 'OUGHTABLE', '%ABLE'), (3, 'PRIPRES', '_RI%'), (4, NULL, '%'), (5, 'x', NULL);
SELECT id FROM t WHERE name LIKE pattern ORDER BY id;
SELECT id FROM t WHERE name LIKE 'BAR%' OR name LIKE '%P%' ORDER BY id;

-- snippet: like-prefix-on-key
CREATE TABLE t (k TEXT PRIMARY KEY);
INSERT INTO t VALUES ('apple'), ('apply'), ('banana'), ('app'), ('Apple');
SELECT k FROM t WHERE k LIKE 'app%' ORDER BY k;
SELECT k FROM t WHERE k LIKE 'appl_' ORDER BY k DESC;

-- snippet: like-type-mismatch
-- error: 42883
SELECT 5 LIKE '5';
