-- Regular expressions, SIMILAR TO, and operators by name.

-- snippet: patterns
SELECT 'foobar' ~ 'o+b', 'foobar' ~* 'O+B', 'foobar' !~ 'x', 'foobar' !~* 'FOO', 'a' ~ '', '' ~ '^$';
SELECT 'abc' ~ '^(a|b)', 'abc' ~ '^(b|c)$', 'ab' ~ 'a{1}b{0,2}$', 'a{,2}' ~ 'a{,2}', 'aaa' ~ '^a{2}$', 'aaa' ~ '^a{2,}$';
SELECT 'tab	x' ~ '\t', 'a1' ~ '\d', 'a1' ~ '^\w+$', 'a b' ~ '\s', 'ab' ~ '\S\S', 'ab' ~ '\D\W', 'x_y' ~ '\W';
SELECT 'foo bar' ~ '\mbar', 'foo bar' ~ 'foo\M', 'foobar' ~ '\mbar', 'foo bar' ~ '\ybar\y', 'foobar' ~ 'o\Yb', 'x' ~ '\Ax\Z';
SELECT 'foo bar' ~ '[[:<:]]bar[[:>:]]', 'x]y' ~ '[]]', 'x-y' ~ '[a-]', 'x^' ~ '[x^]{2}', 'X' ~* '[w-y]', 'é' ~ '^.$', 'É' ~* 'é';
SELECT 'a' ~ '[[:alpha:]]', '1' ~ '[[:alpha:]]', 'A' ~ '[[:upper:]]', 'a' ~* '[[:upper:]]', ' ' ~ '[[:space:]]', '!' ~ '[[:punct:]]', 'a' ~ '[^[:digit:]]';
SELECT E'a\nb' ~ 'a.b', E'a\nb' ~ '(?n)a.b', E'a\nb' ~ '^b', E'a\nb' ~ '(?n)^b', E'a\nb' ~ '(?w)^b$', E'a\nb' ~ '(?p)a[^x]b';
SELECT 'a.b' ~ '***=a.b', 'axb' ~ '***=a.b', 'aB' ~ '(?i)Ab', 'a b' ~ '(?x) a \s b # comment', 'ab' ~ 'a(?#note)b', 'a+' ~ '(?q)a+';
SELECT 'a\b' ~ 'a\\b', 'a.b' ~ 'a\.b', 'ab' ~ 'a\u0062', 'ab' ~ '\x61b', 'a$' ~ '\$', '{' ~ '{', 'a}' ~ '}';
SELECT NULL ~ 'a', 'a' ~ NULL, 'abc'::varchar ~ 'b', 'abc'::char(5) ~ 'c  $', 'abc'::char(5) ~ 'c$';
-- error: 2201B
SELECT 'a' ~ '*';
-- error: 2201B
SELECT 'a' ~ 'a**';
-- error: 2201B
SELECT 'a' ~ '(';
-- error: 2201B
SELECT 'a' ~ 'a)';
-- error: 2201B
SELECT 'a' ~ '[a';
-- error: 2201B
SELECT 'a' ~ 'a{2,1}';
-- error: 2201B
SELECT 'a' ~ 'a{256}';
-- error: 2201B
SELECT 'a' ~ '[[:nosuch:]]';
-- error: 2201B
SELECT 'a' ~ 'a\';
-- error: 42883
SELECT 1 ~ 'a';
SELECT x, x ~ p, x !~ p FROM (VALUES ('abc', 'b'), ('abc', '^b'), (NULL, 'x'), ('x', NULL)) v(x, p) ORDER BY 1, 2;
SELECT 'abc' SIMILAR TO 'a%', 'abc' SIMILAR TO '(b|c)%', 'abc' NOT SIMILAR TO '_b_', 'a.c' SIMILAR TO 'a.c', 'abc' SIMILAR TO 'a.c', 'abc' SIMILAR TO 'a[a-c]+', 'ab' SIMILAR TO 'a|b', 'b' SIMILAR TO 'a|b';
SELECT 'a%' SIMILAR TO 'a\%', 'ab' SIMILAR TO 'a\%', 'a%' SIMILAR TO 'a#%' ESCAPE '#', 'a' SIMILAR TO NULL, 'aaa' SIMILAR TO 'a{3}', 'a^' SIMILAR TO 'a^', 'x' SIMILAR TO '[^a-c]';
-- error: 22025
SELECT 'a' SIMILAR TO 'a' ESCAPE 'xy';
SELECT regexp_replace('abcd', 'a|ab|abc', 'X'), regexp_replace('aaa', 'a*?', 'X'), regexp_replace('Thomas', '.[mN]a.', 'M'), regexp_replace('x', 'y', 'z'), regexp_replace(NULL, 'y', 'z');
SELECT regexp_match('foobarbequebaz', '(bar)(beque)'), regexp_match('foobarbequebaz', 'barbeque'), regexp_match('abc', 'x'), regexp_match('ABC', 'b(x)?', 'i');
SELECT (regexp_match('a1b22', '([0-9]+)$'))[1], substring('foobar' from 'o.b'), substring('foobar' from 'o(.)b'), substring('foobar' from 'x'), regexp_like('abc', 'B', 'i');
-- error: 22023
SELECT regexp_match('a', 'a', 'g');
-- error: 22023
SELECT regexp_replace('a', 'a', 'b', 'z');
SELECT 'abc' LIKE ANY (ARRAY['x%', 'a%']), 'abc' ~ ANY (ARRAY['x', 'b']), 'abc' LIKE ALL (ARRAY['%c', 'a%']), 'abc' NOT LIKE ALL (ARRAY['%c', 'a%']), 'abc' !~ ALL (ARRAY['x', NULL]), 'abc' ILIKE ANY ('{A%,NULL}');
SELECT 'abc' LIKE ANY (SELECT 'a%' UNION SELECT 'x'), 'abc' !~ ALL (SELECT 'x');
SELECT 1 OPERATOR(pg_catalog.+) 2, 2 OPERATOR(pg_catalog.=) 2, 'a' OPERATOR(pg_catalog.||) 'b', 3 OPERATOR(pg_catalog.*) 2 + 1, 5 OPERATOR(+) 1, 3 OPERATOR(pg_catalog.<) 2 OR true;
SELECT 1 OPERATOR(pg_catalog.=) ANY (ARRAY[1]), 1 OPERATOR(pg_catalog.<>) ALL (ARRAY[1, 2]), 'a' OPERATOR(pg_catalog.~) '^(a)$' COLLATE pg_catalog.default, 'a' OPERATOR(pg_catalog.~~) 'A', 'a' COLLATE "C" < 'b' COLLATE "C";
SELECT -2 ^ 2, - 2 ^ 2, -2.0 ^ 2, 2 ^ -1, -(2) ^ 2, 2 - -1, -5 % 3, - 3 + 5, -9223372036854775808, +3 ^ 2;

-- snippet: matches-as-rows
SELECT regexp_matches('foobarbequebaz', 'ba.');
SELECT regexp_matches('foobarbequebaz', 'ba.', 'g');
SELECT * FROM regexp_matches('foobarbequebazilbarfbonk', '(b[^b]+)(b[^b]+)', 'g');
SELECT * FROM regexp_matches('foobarbequebaz', '(BAR)(x)?', 'i') AS m(parts);
SELECT m[1], m[2], array_length(m, 1) FROM regexp_matches('k1=v1;k2=v2', '(\w+)=(\w+)', 'g') AS m;
SELECT regexp_matches('abc', 'x'), 1;
SELECT * FROM regexp_matches('abc', '', 'g');
SELECT * FROM regexp_matches('', '', 'g');
SELECT * FROM regexp_matches(NULL, 'a');
SELECT t.id, m[1] FROM (VALUES (1, 'a1b22'), (2, 'x'), (3, '333')) t(id, v), regexp_matches(t.v, '\d+', 'g') m ORDER BY 1, 2;
SELECT (SELECT string_agg(m[1], '+') FROM regexp_matches('1 22 333', '\d+', 'g') m);
SELECT ARRAY(SELECT (regexp_matches('a1b2', '[0-9]', 'g'))[1]);
SELECT count(*) FROM regexp_matches(repeat('ab', 1000), 'a', 'g');
-- error: 2201B
SELECT regexp_matches('a', '(');
-- error: 22023
SELECT regexp_matches('a', 'a', 'z');

-- snippet: counted-and-placed-matches
SELECT regexp_count('123123123123123', '(12)3'), regexp_count('123123123123', '123', 1), regexp_count('123123123123', '123', 3), regexp_count('ABCABC', 'abc', 1, 'i'), regexp_count('abc', ''), regexp_count('', '');
SELECT regexp_count('abc', 'b', 33), regexp_count('abc', '', 4), regexp_count('äöä', 'ä', 2);
SELECT regexp_instr('abcdefghi', 'd.f'), regexp_instr('abcdefghi', 'd.q'), regexp_instr('abcabcabc', 'a.c'), regexp_instr('abcabcabc', 'a.c', 2), regexp_instr('abcabcabc', 'a.c', 1, 3), regexp_instr('abcabcabc', 'a.c', 1, 4), regexp_instr('abcabcabc', 'A.C', 1, 2, 0, 'i');
SELECT regexp_instr('1234567890', '(123)(4(56)(78))', 1, 1, 0, 'i', 0), regexp_instr('1234567890', '(123)(4(56)(78))', 1, 1, 0, 'i', 2), regexp_instr('1234567890', '(123)(4(56)(78))', 1, 1, 0, 'i', 4), regexp_instr('1234567890', '(123)(4(56)(78))', 1, 1, 0, 'i', 5);
SELECT regexp_instr('1234567890', '(123)(4(56)(78))', 1, 1, 1, 'i', 0), regexp_instr('1234567890', '(123)(4(56)(78))', 1, 1, 1, 'i', 1), regexp_instr('foo', 'foo(bar)?', 1, 1, 0, '', 1), regexp_instr('öäü', 'ü');
SELECT regexp_substr('abcdefghi', 'd.f'), regexp_substr('abcdefghi', 'd.q') IS NULL, regexp_substr('abcabcabc', 'a.c', 2, 2), regexp_substr('ABCabc', 'a.c', 1, 2, 'i'), regexp_substr('1234567890', '(123)(4(56)(78))', 1, 1, 'i', 4), regexp_substr('1234567890', '(123)(4(56)(78))', 1, 1, 'i', 7) IS NULL;
SELECT regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, 0, 'i'), regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, 3, 'i'), regexp_replace('A PostgreSQL function', 'e|o', 'X', 7), regexp_replace('aaaa', 'a', 'b', 2, 2), regexp_replace('aaaa', 'a', 'b', 3, 0), regexp_replace('aaaa', 'a', 'b', 9), regexp_replace('aaaa', 'x', 'b', 1, 0, 'g');
SELECT regexp_replace('abab', '(a)(b)', '[\2\1]', 2, 1);
SELECT regexp_count(NULL, 'a'), regexp_instr('a', NULL), regexp_substr('a', 'a', NULL);
-- error: 22023
SELECT regexp_count('a', 'a', 0);
-- error: 22023
SELECT regexp_count('a', 'a', 1, 'g');
-- error: 22023
SELECT regexp_instr('a', 'a', 0);
-- error: 22023
SELECT regexp_instr('a', 'a', 1, 0);
-- error: 22023
SELECT regexp_instr('a', 'a', 1, 1, 2);
-- error: 22023
SELECT regexp_instr('a', 'a', 1, 1, 0, '', -1);
-- error: 22023
SELECT regexp_substr('a', 'a', 1, 1, 'g');
-- error: 22023
SELECT regexp_replace('a', 'a', 'b', 0);
-- error: 22023
SELECT regexp_replace('a', 'a', 'b', 1, -1);
