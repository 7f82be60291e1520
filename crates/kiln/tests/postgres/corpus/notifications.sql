-- LISTEN, UNLISTEN, NOTIFY and their functions: what they answer.
-- compare: messages

-- snippet: listening
SELECT pg_listening_channels();
LISTEN a;
LISTEN "B";
LISTEN a;
SELECT count(*) FROM pg_listening_channels();
SELECT c FROM pg_listening_channels() AS c ORDER BY c COLLATE "C";
SELECT count(*) FROM (SELECT pg_listening_channels()) AS listed;
BEGIN;
LISTEN c;
UNLISTEN a;
SELECT c FROM pg_listening_channels() AS c ORDER BY c COLLATE "C";
COMMIT;
SELECT c FROM pg_listening_channels() AS c ORDER BY c COLLATE "C";
BEGIN;
UNLISTEN *;
ROLLBACK;
SELECT count(*) FROM pg_listening_channels();
UNLISTEN nothing;
UNLISTEN *;
SELECT count(*) FROM pg_listening_channels();
LISTEN a;
DISCARD ALL;
SELECT count(*) FROM pg_listening_channels();

-- snippet: notify
NOTIFY a;
NOTIFY a, 'text';
NOTIFY a, $$text$$;
SELECT pg_notify('a', 'b'), pg_typeof(pg_notify('a', 'b'));
SELECT pg_notify('a', NULL);
SELECT pg_notify('a', i::text) FROM generate_series(1, 2) AS i;
SELECT pg_notification_queue_usage();
SELECT * FROM pg_notify('a', 'b');
DO $$ BEGIN NOTIFY a, 'b'; PERFORM pg_notify('a', 'b'); END $$;
-- error: 22023
SELECT pg_notify('', 'b');
-- error: 22023
SELECT pg_notify(NULL, NULL);
-- error: 22023
SELECT pg_notify(repeat('a', 64), 'b');
-- error: 22023
SELECT pg_notify('a', repeat('b', 8000));
-- error: 42883
SELECT pg_notify('a');
-- error: 42883
SELECT pg_notify(1, 2);

-- snippet: syntax
-- error: 42601
LISTEN *;
-- error: 42601
LISTEN 'a';
-- error: 42601
LISTEN a.b;
-- error: 42601
UNLISTEN a, b;
-- error: 42601
NOTIFY a b;
-- error: 42601
NOTIFY a, 1;
-- error: 42601
NOTIFY a, 'b', 'c';
