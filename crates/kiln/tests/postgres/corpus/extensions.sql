-- CREATE EXTENSION, and the functions that extensions bring.
-- compare: messages

-- snippet: created-and-dropped
CREATE EXTENSION pgcrypto;
-- error: 42710
CREATE EXTENSION pgcrypto;
CREATE EXTENSION IF NOT EXISTS pgcrypto WITH SCHEMA public CASCADE;
CREATE EXTENSION IF NOT EXISTS "uuid-ossp";
CREATE EXTENSION IF NOT EXISTS plpgsql;
SELECT extname, extversion, nspname IN (current_schema(), 'public') AS is_own FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace ORDER BY 1;
SELECT name, default_version, installed_version, comment FROM pg_available_extensions WHERE name IN ('pgcrypto', 'uuid-ossp', 'plpgsql') ORDER BY 1;
SELECT extname, obj_description(oid, 'pg_extension') FROM pg_extension ORDER BY 1;
COMMENT ON EXTENSION pgcrypto IS 'hashes';
SELECT obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'pgcrypto';
ALTER EXTENSION pgcrypto UPDATE;
ALTER EXTENSION pgcrypto UPDATE TO '1.3';
DROP EXTENSION pgcrypto;
-- error: 42704
DROP EXTENSION pgcrypto;
DROP EXTENSION IF EXISTS pgcrypto, "uuid-ossp" CASCADE;
-- error: 42704
ALTER EXTENSION pgcrypto UPDATE;
-- error: 0A000
CREATE EXTENSION nosuch;
-- error: 42601
CREATE EXTENSION pgcrypto WITHOUT schema;
-- error: 3F000
CREATE EXTENSION pgcrypto SCHEMA nosuch;

-- snippet: in-a-schema
CREATE SCHEMA extensions;
CREATE EXTENSION pgcrypto WITH SCHEMA extensions;
SELECT encode(extensions.digest('abc', 'sha1'), 'hex');
-- error: 2BP01
DROP SCHEMA extensions;
DROP SCHEMA extensions CASCADE;
SELECT count(*) FROM pg_extension WHERE extname = 'pgcrypto';

-- snippet: rolled-back
BEGIN;
CREATE EXTENSION pgcrypto;
SELECT encode(digest('abc', 'md5'), 'hex');
ROLLBACK;
SELECT count(*) FROM pg_extension WHERE extname = 'pgcrypto';

-- snippet: hashes
CREATE EXTENSION pgcrypto;
SELECT encode(digest('abc', 'md5'), 'hex'), encode(digest('abc', 'SHA1'), 'hex');
SELECT encode(digest('abc', 'sha224'), 'hex'), encode(digest('\x616263'::bytea, 'sha256'), 'hex');
SELECT encode(digest('', 'sha384'), 'hex'), encode(digest('abc', 'sha512'), 'hex');
SELECT digest(NULL::text, 'md5');
-- error: 22023
SELECT digest('abc', 'crc32');
SELECT encode(hmac('data', 'key', 'sha256'), 'hex'), encode(hmac('data'::bytea, 'key'::bytea, 'md5'), 'hex');
SELECT encode(hmac('data', repeat('k', 200), 'sha512'), 'hex'), encode(hmac('', '', 'sha1'), 'hex');
-- error: 22023
SELECT hmac('data', 'key', 'nosuch');
SELECT length(gen_random_bytes(16)), length(gen_random_bytes(1024)), gen_random_bytes(8) = gen_random_bytes(8);
-- error: 39000
SELECT gen_random_bytes(0);
-- error: 39000
SELECT gen_random_bytes(1025);

-- snippet: passwords
CREATE EXTENSION pgcrypto;
SELECT crypt('password', '$2a$06$DCq7YPn5Rq63x1Lad4cll.');
SELECT crypt('', '$2a$06$DCq7YPn5Rq63x1Lad4cll.');
SELECT crypt(repeat('x', 100), '$2a$04$DCq7YPn5Rq63x1Lad4cllz');
SELECT crypt(repeat('y', 71), '$2a$04$DCq7YPn5Rq63x1Lad4cll.'), crypt(repeat('y', 72), '$2a$04$DCq7YPn5Rq63x1Lad4cll.');
SELECT crypt('pässword', '$2a$05$abcdefghijklmnopqrstuv');
SELECT crypt('password', crypt('password', gen_salt('bf'))) = crypt('password', gen_salt('bf'));
SELECT hash = crypt('secret', hash), hash = crypt('Secret', hash) FROM (SELECT crypt('secret', gen_salt('bf', 4)) AS hash OFFSET 0) h;
SELECT substr(gen_salt('bf'), 1, 7), substr(gen_salt('bf', 12), 1, 7), length(gen_salt('bf'));
-- error: 22023
SELECT gen_salt('nosuch');
-- error: 22023
SELECT gen_salt('bf', 3);
-- error: 22023
SELECT crypt('password', '$2a$06$short');

-- snippet: passwords-of-other-kinds
CREATE EXTENSION pgcrypto;
-- refused: gen_salt('md5')
SELECT length(gen_salt('md5'));
-- refused: bcrypt with 2^14 rounds
SELECT length(gen_salt('bf', 14));

-- snippet: uuids
CREATE EXTENSION "uuid-ossp";
SELECT uuid_generate_v3(uuid_ns_dns(), 'www.widgets.com'), uuid_generate_v5(uuid_ns_url(), 'http://www.widgets.com/');
SELECT uuid_nil(), uuid_ns_dns(), uuid_ns_url(), uuid_ns_oid(), uuid_ns_x500();
SELECT substr(uuid_generate_v4()::text, 15, 1), substr(uuid_generate_v1()::text, 15, 1), substr(uuid_generate_v1mc()::text, 15, 1);
SELECT uuid_generate_v4() = uuid_generate_v4();
CREATE TABLE t (id UUID PRIMARY KEY DEFAULT uuid_generate_v4(), v INTEGER);
INSERT INTO t (v) VALUES (1), (2), (3);
SELECT count(DISTINCT id) FROM t;

-- snippet: tables-of-other-kinds
CREATE UNLOGGED TABLE cache (k TEXT PRIMARY KEY, v TEXT);
INSERT INTO cache VALUES ('a', 'b');
SELECT * FROM cache;
CREATE TABLE u (a INTEGER) USING heap WITH (fillfactor = 70);
CREATE UNLOGGED TABLE IF NOT EXISTS v USING heap AS SELECT 1 AS a;
SELECT * FROM v;
-- error: 42704
CREATE TABLE w (a INTEGER) USING nosuch;
CREATE INDEX ON cache (v) INCLUDE (k);
-- error: 42703
CREATE INDEX ON cache (v) INCLUDE (z);
CREATE INDEX ON u USING brin (a);
-- error: 0A000
CREATE UNIQUE INDEX ON u USING brin (a);
