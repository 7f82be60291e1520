-- Digests, and texts that are divided.
-- compare: messages

-- snippet: digests
SELECT md5('kiln'), md5(''), md5('\x00ff'::bytea), md5(NULL::text);
SELECT sha224('kiln'::bytea), sha256('\x'::bytea), sha384('kiln'), sha512('kiln');
SELECT encode(sha256('abc'::bytea), 'hex'), length(md5(repeat('x', 1000)));

-- snippet: parts-of-texts
SELECT string_to_array('a,b,,c', ','), string_to_array('abc', NULL), string_to_array('', ','), string_to_array('abc', ''), string_to_array(NULL, ',');
SELECT string_to_array('a,b,,c', ',', ''), string_to_array('a,NULL,c', ',', 'NULL'), string_to_array('abc', NULL, 'b'), string_to_array('é1', NULL);
SELECT * FROM string_to_table('a,b,,c', ',');
SELECT string_to_table('a b', ' '), 1;
SELECT count(*), count(x) FROM string_to_table('a,b,,c', ',', '') x;
SELECT regexp_split_to_array('hello  world', '\s+'), regexp_split_to_array('hello', ''), regexp_split_to_array('', 'x'), regexp_split_to_array('aXbxc', 'x', 'i');
SELECT regexp_split_to_array('abc', 'b*'), regexp_split_to_array('xaxbx', 'x'), regexp_split_to_array(NULL, 'x'), regexp_split_to_array('a1b22c', '\d*');
SELECT * FROM regexp_split_to_table('the quick  fox', '\s+');
SELECT w, count(*) FROM regexp_split_to_table('a b a c a', ' ') w GROUP BY w ORDER BY 2 DESC, 1;
-- error: 22023
SELECT regexp_split_to_array('a', 'b', 'g');
-- error: 2201B
SELECT regexp_split_to_array('a', '(');
