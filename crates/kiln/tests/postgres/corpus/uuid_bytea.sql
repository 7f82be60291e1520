-- UUID and BYTEA.

-- snippet: uuid-input-forms
SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid, '{a0eebc999c0b4ef8bb6d6bb9bd380a11}'::uuid, 'a0eebc999c0b4ef8bb6d6bb9bd380a11'::uuid;

-- snippet: uuid-bad-input
-- error: 22P02
SELECT 'a0eebc99'::uuid;
-- error: 22P02
SELECT 'g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid;

-- snippet: uuid-comparison
SELECT '00000000-0000-0000-0000-000000000001'::uuid < '00000000-0000-0000-0000-000000000002'::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid > '7fffffff-ffff-ffff-ffff-ffffffffffff'::uuid;

-- snippet: uuid-key
CREATE TABLE t (id UUID PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES ('f47ac10b-58cc-4372-a567-0e02b2c3d479', 1), ('00000000-0000-0000-0000-000000000000', 2), ('80000000-0000-0000-0000-000000000000', 3);
-- error: 23505
INSERT INTO t VALUES ('F47AC10B-58CC-4372-A567-0E02B2C3D479', 4);
SELECT id, v FROM t ORDER BY id;
SELECT v FROM t WHERE id = 'f47ac10b-58cc-4372-a567-0e02b2c3d479';

-- snippet: uuid-to-text
SELECT 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid::text, length('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid::text);

-- snippet: bytea-hex-input-and-output
SELECT '\xDEADBEEF'::bytea, '\x'::bytea, '\x00ff'::bytea, ''::bytea;

-- snippet: bytea-escape-input
SELECT 'abc'::bytea, 'a\\b'::bytea, 'a\000b'::bytea;

-- snippet: bytea-bad-input
-- error: 22023
SELECT '\xabc'::bytea;
-- error: 22023
SELECT '\xzz'::bytea;

-- snippet: bytea-length-and-concatenation
SELECT length('\x010203'::bytea), octet_length('\x0102'::bytea), '\x01'::bytea || '\x02'::bytea;

-- snippet: bytea-comparison
SELECT '\x01'::bytea < '\x0100'::bytea, '\xff'::bytea > '\x7f'::bytea, '\x61'::bytea = 'a'::bytea;

-- snippet: bytea-column
CREATE TABLE t (id INTEGER PRIMARY KEY, b BYTEA);
INSERT INTO t VALUES (1, '\x00010203'), (2, 'text'), (3, NULL), (4, '\x');
SELECT id, b, length(b) FROM t ORDER BY b, id;
SELECT id FROM t WHERE b = '\x74657874';

-- snippet: bytea-key
CREATE TABLE t (b BYTEA PRIMARY KEY);
INSERT INTO t VALUES ('\x00'), ('\x0000'), ('\xff'), ('\x');
-- error: 23505
INSERT INTO t VALUES ('\x0000');
SELECT b FROM t ORDER BY b DESC;

-- snippet: bytea-encode-decode
SELECT encode('\x0102ff'::bytea, 'hex'), decode('0a0B', 'hex'), encode('abc'::bytea, 'base64');

-- snippet: bytea-substring
SELECT substring('\x01020304'::bytea, 2, 2);

-- snippet: bits-and-encodings
SELECT get_bit('\x1234567890'::bytea, 0), get_bit('\x1234567890'::bytea, 30), get_byte('\x1234567890'::bytea, 4), set_bit('\x1234567890'::bytea, 30, 0), set_bit('\x12'::bytea, 0, 1), set_byte('\x1234567890'::bytea, 4, 64), set_byte('\x12'::bytea, 0, 257), bit_count('\x1234567890'::bytea), bit_count(''::bytea);
SELECT get_bit(NULL::bytea, 0), set_byte('\x12', 0, NULL);
-- error: 2202E
SELECT get_bit('\x12'::bytea, 8);
-- error: 2202E
SELECT get_byte('\x12'::bytea, -1);
-- error: 2202E
SELECT set_bit(''::bytea, 0, 1);
-- error: 22023
SELECT set_bit('\x12'::bytea, 0, 2);
-- error: 2202E
SELECT set_byte('\x12'::bytea, 1, 2);
SELECT convert_from('\xc3a4'::bytea, 'UTF8'), convert_from('\xe4'::bytea, 'LATIN1'), convert_from('abc', 'sql_ascii'), convert_to('ä', 'utf-8'), convert_to('ä', 'latin1'), convert_to('abc', 'SQL_ASCII');
-- error: 22021
SELECT convert_from('\xff'::bytea, 'UTF8');
-- error: 22021
SELECT convert_from('\x6100'::bytea, 'UTF8');
-- error: 22P05
SELECT convert_to('€', 'LATIN1');
-- error: 22023
SELECT convert_from('a', 'no_such');
-- error: 22023
SELECT convert_to('a', 'no_such');
SELECT num_nulls(1, NULL, 'a'), num_nonnulls(1, NULL, 'a'), num_nulls(NULL), num_nonnulls(NULL::int, NULL::text), num_nulls(1);
CREATE TABLE either (a INTEGER, b TEXT, c DATE, CHECK (num_nonnulls(a, b, c) = 1));
INSERT INTO either VALUES (1, NULL, NULL), (NULL, 'b', NULL);
-- error: 23514
INSERT INTO either VALUES (1, 'b', NULL);
-- error: 23514
INSERT INTO either VALUES (NULL, NULL, NULL);
DROP TABLE either;
