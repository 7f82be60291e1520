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
