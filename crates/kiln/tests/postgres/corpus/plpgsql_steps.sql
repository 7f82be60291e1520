-- Bodies that run commands of their own: EXECUTE, definitions, COMMIT and ROLLBACK.
-- compare: messages

-- snippet: execute-gives-rows-to-variables
CREATE TABLE t (a INT PRIMARY KEY, b TEXT);
INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL);
CREATE FUNCTION text_of(k INT) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    found_text TEXT;
BEGIN
    EXECUTE 'SELECT b FROM t WHERE a = $1' INTO found_text USING k;
    RETURN found_text;
END $$;
SELECT text_of(1);
SELECT text_of(2);
SELECT text_of(9);
SELECT * FROM text_of(1);
SELECT text_of(k => 2);
-- error: 22P02
SELECT text_of('x');
-- error: 42883
SELECT text_of(1, 2);
-- error: 42883
SELECT nothing_of(1);

-- snippet: execute-into-strict
CREATE TABLE said (n SERIAL, line TEXT);
CREATE TABLE t (a INT PRIMARY KEY, b TEXT);
INSERT INTO t VALUES (1, 'one'), (2, 'two');
-- error: P0003
DO $$ DECLARE x INT; BEGIN EXECUTE 'SELECT a FROM t' INTO STRICT x; END $$;
-- error: P0002
DO $$ DECLARE x INT; BEGIN EXECUTE 'SELECT a FROM t WHERE a > 5' INTO STRICT x; END $$;
DO $$ DECLARE x INT; BEGIN EXECUTE 'SELECT a FROM t WHERE a = 2' INTO STRICT x; INSERT INTO said (line) VALUES (format('x = %s', x)); END $$;
DO $$ DECLARE x INT; y TEXT; BEGIN EXECUTE 'SELECT a, b FROM t WHERE a = $1' INTO x, y USING 1; INSERT INTO said (line) VALUES (format('%s %s', x, y)); END $$;
DO $$ DECLARE r RECORD; BEGIN EXECUTE 'SELECT a, b FROM t WHERE a = $1' USING 1 INTO r; INSERT INTO said (line) VALUES (format('%s %s', r.a, r.b)); END $$;
DO $$ DECLARE r t%ROWTYPE; BEGIN EXECUTE 'SELECT * FROM t WHERE a = 2' INTO r; INSERT INTO said (line) VALUES (format('%s %s', r.a, r.b)); END $$;
DO $$ DECLARE x INT := 7; BEGIN EXECUTE 'SELECT a FROM t WHERE a = 9' INTO x; INSERT INTO said (line) VALUES (format('x = %s', x)); END $$;
-- error: 22004
DO $$ DECLARE x INT NOT NULL := 7; BEGIN EXECUTE 'SELECT a FROM t WHERE a = 9' INTO x; END $$;
-- error: 22003
DO $$ DECLARE x SMALLINT; BEGIN EXECUTE 'SELECT 70000' INTO x; END $$;
DO $$ DECLARE x INT; BEGIN EXECUTE 'SELECT ''12''::TEXT' INTO x; INSERT INTO said (line) VALUES (format('x = %s', x)); END $$;
-- error: 42601
DO $$ DECLARE x INT; BEGIN EXECUTE 'UPDATE t SET b = ''z''' INTO x; END $$;
DO $$ DECLARE x INT; BEGIN EXECUTE 'UPDATE t SET b = ''z'' WHERE a = 1 RETURNING a' INTO x; INSERT INTO said (line) VALUES (format('x = %s', x)); END $$;
SELECT line FROM said ORDER BY n;

-- snippet: execute-counts-its-rows-and-leaves-found
CREATE TABLE said (n SERIAL, line TEXT);
CREATE TABLE t (a INT PRIMARY KEY, b TEXT);
INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL);
DO $$
DECLARE n INT;
BEGIN
    PERFORM 1 FROM t WHERE a = 9;
    EXECUTE 'UPDATE t SET b = b WHERE a > 1';
    GET DIAGNOSTICS n = ROW_COUNT;
    INSERT INTO said (line) VALUES (format('changed %s, found %s', n, FOUND));
    PERFORM 1 FROM t WHERE a = 1;
    EXECUTE 'DELETE FROM t WHERE a > 7';
    GET DIAGNOSTICS n = ROW_COUNT;
    INSERT INTO said (line) VALUES (format('deleted %s, found %s', n, FOUND));
    EXECUTE 'SELECT a FROM t';
    GET DIAGNOSTICS n = ROW_COUNT;
    INSERT INTO said (line) VALUES (format('selected %s', n));
    UPDATE t SET b = 'x' WHERE a < 3;
    GET DIAGNOSTICS n = ROW_COUNT;
    INSERT INTO said (line) VALUES (format('changed %s', n));
END $$;
SELECT * FROM t ORDER BY a;
SELECT line FROM said ORDER BY n;

-- snippet: execute-of-what-cannot-be
CREATE TABLE t (a INT PRIMARY KEY);
-- error: 22004
DO $$ BEGIN EXECUTE NULL; END $$;
-- error: 42601
DO $$ BEGIN EXECUTE 'SELEC 1'; END $$;
-- error: 42P01
DO $$ BEGIN EXECUTE 'SELECT * FROM missing'; END $$;
-- error: 42P02
DO $$ BEGIN EXECUTE 'SELECT $1'; END $$;
DO $$ BEGIN EXECUTE 'INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)'; END $$;
DO $$ BEGIN EXECUTE 'INSERT INTO t VALUES ($1); INSERT INTO t VALUES (4)' USING 3; END $$;
-- error: 23505
DO $$ BEGIN EXECUTE 'INSERT INTO t VALUES (1)'; END $$;
-- error: 22012
DO $$ BEGIN EXECUTE 'SELECT 1 / 0'; END $$;
-- error: 42601
DO $$ BEGIN EXECUTE; END $$;
-- error: 42601
DO $$ BEGIN EXECUTE 'SELECT 1' USING; END $$;
-- error: 0A000
DO $$ BEGIN EXECUTE 'COMMIT'; END $$;
-- error: 0A000
DO $$ BEGIN EXECUTE 'SAVEPOINT s'; END $$;
SELECT * FROM t ORDER BY a;

-- snippet: loops-over-execute
CREATE TABLE said (n SERIAL, line TEXT);
CREATE TABLE t (a INT PRIMARY KEY, b TEXT);
INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three');
DO $$
DECLARE
    r RECORD;
    total INT := 0;
BEGIN
    FOR r IN EXECUTE 'SELECT a, b FROM t WHERE a >= $1 ORDER BY a' USING 2 LOOP
        total := total + r.a;
        INSERT INTO said (line) VALUES (format('%s %s (%s)', r.a, r.b, total));
    END LOOP;
    INSERT INTO said (line) VALUES (format('found %s', FOUND));
    FOR r IN EXECUTE 'SELECT b, a, 5 AS c FROM t WHERE a < 2' LOOP
        INSERT INTO said (line) VALUES (format('%s %s %s', r.b, r.a, r.c));
    END LOOP;
    FOR r IN EXECUTE 'SELECT a FROM t WHERE a > 9' LOOP
        INSERT INTO said (line) VALUES (format('never'));
    END LOOP;
    INSERT INTO said (line) VALUES (format('found %s', FOUND));
END $$;
DO $$
DECLARE x INT; y TEXT;
BEGIN
    <<outer>>
    FOR x, y IN EXECUTE 'SELECT a, b FROM t ORDER BY a' LOOP
        FOR i IN 1..3 LOOP
            CONTINUE outer WHEN x = 1;
            EXIT outer WHEN x = 3;
            EXECUTE 'UPDATE t SET b = b || $1 WHERE a = $2' USING i, x;
        END LOOP;
    END LOOP;
END $$;
SELECT * FROM t ORDER BY a;
-- error: 42P11
DO $$ DECLARE r RECORD; BEGIN FOR r IN EXECUTE 'UPDATE t SET b = b' LOOP NULL; END LOOP; END $$;
DO $$ DECLARE r RECORD; BEGIN FOR r IN EXECUTE 'UPDATE t SET b = upper(b) WHERE a > 1 RETURNING a, b' LOOP INSERT INTO said (line) VALUES (format('%s %s', r.a, r.b)); END LOOP; END $$;
SELECT line FROM said ORDER BY n;

-- snippet: functions-that-return-what-they-execute
CREATE TABLE t (a INT PRIMARY KEY, b TEXT);
INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three');
CREATE FUNCTION rows_of(name TEXT) RETURNS TABLE (a INT, b TEXT) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT a, b FROM %I ORDER BY a', name);
END $$;
SELECT * FROM rows_of('t');
-- error: 42P01
SELECT * FROM rows_of('missing');
CREATE FUNCTION numbers(n INT) RETURNS SETOF INT LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..n LOOP
        EXECUTE 'SELECT 1';
        RETURN NEXT i * i;
    END LOOP;
    RETURN QUERY SELECT t.a FROM t ORDER BY t.a;
    RETURN QUERY EXECUTE 'SELECT 100';
END $$;
SELECT * FROM numbers(2);
CREATE FUNCTION wrong() RETURNS SETOF INT LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'SELECT ''x''::TEXT'; END $$;
-- error: 42804
SELECT * FROM wrong();
CREATE FUNCTION no_end() RETURNS INT LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT 1'; END $$;
-- error: 2F005
SELECT no_end();
CREATE FUNCTION outs(x INT, OUT y INT, OUT z TEXT) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT $1 * 2' INTO y USING x;
    z := 'twice';
END $$;
SELECT * FROM outs(4);
CREATE FUNCTION careful(x INT) RETURNS INT STRICT LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT 1'; RETURN x; END $$;
SELECT careful(NULL);
SELECT careful(5);
CREATE FUNCTION silent() RETURNS VOID LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'INSERT INTO t VALUES (4, NULL)'; END $$;
SELECT silent();
SELECT count(*) FROM t;

-- snippet: definitions-in-bodies
CREATE TABLE said (n SERIAL, line TEXT);
DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'made') THEN
        CREATE TABLE made (a INT PRIMARY KEY, b TEXT);
    END IF;
    INSERT INTO made VALUES (1, 'first');
END $$;
SELECT * FROM made;
DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'made') THEN
        CREATE TABLE made (a INT PRIMARY KEY, b TEXT);
    END IF;
END $$;
DO $$
BEGIN
    ALTER TABLE made ADD COLUMN c INT DEFAULT 5;
    CREATE INDEX made_c ON made (c);
    UPDATE made SET c = c + 1;
    COMMENT ON TABLE made IS 'by a body';
END $$;
SELECT * FROM made;
DO $$ BEGIN CREATE TABLE made (x INT); EXCEPTION WHEN duplicate_table THEN INSERT INTO said (line) VALUES (format('there: %s', SQLERRM)); END $$;
DO $$ BEGIN ALTER TABLE made ADD COLUMN c INT; EXCEPTION WHEN duplicate_column THEN NULL; END $$;
-- error: 22012
DO $$ BEGIN CREATE TABLE other (a INT); INSERT INTO other VALUES (1 / 0); END $$;
-- error: 42P01
SELECT * FROM other;
DO $$ BEGIN TRUNCATE made; DROP TABLE made; END $$;
-- error: 42P01
SELECT * FROM made;
SELECT line FROM said ORDER BY n;

-- snippet: definitions-by-execute
CREATE TABLE said (n SERIAL, line TEXT);
DO $$
DECLARE name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['p1', 'p2', 'p3'] LOOP
        EXECUTE format('CREATE TABLE %I (id INT PRIMARY KEY, note TEXT DEFAULT %L)', name, 'of ' || name);
        EXECUTE format('INSERT INTO %I VALUES ($1)', name) USING length(name);
    END LOOP;
END $$;
SELECT * FROM p1;
SELECT * FROM p3;
DO $$
DECLARE r RECORD;
BEGIN
    FOR r IN SELECT tablename FROM pg_tables WHERE tablename LIKE 'p_' AND schemaname = current_schema() ORDER BY 1 LOOP
        EXECUTE 'DROP TABLE ' || quote_ident(r.tablename);
        INSERT INTO said (line) VALUES (format('dropped %s', r.tablename));
    END LOOP;
END $$;
-- error: 42P01
SELECT * FROM p1;
SELECT line FROM said ORDER BY n;

-- snippet: handlers-around-commands
CREATE TABLE said (n SERIAL, line TEXT);
CREATE TABLE t (a INT PRIMARY KEY, b TEXT);
DO $$
DECLARE n INT := 0; said TEXT; state TEXT;
BEGIN
    INSERT INTO t VALUES (1, 'kept');
    BEGIN
        n := 1;
        EXECUTE 'INSERT INTO t VALUES (2, ''undone'')';
        n := 2;
        FOR i IN 1..3 LOOP
            n := n + 10;
            IF i = 2 THEN
                INSERT INTO t VALUES (1, 'twice');
            END IF;
        END LOOP;
    EXCEPTION
        WHEN unique_violation THEN
            GET STACKED DIAGNOSTICS said = MESSAGE_TEXT, state = RETURNED_SQLSTATE;
            INSERT INTO said (line) VALUES (format('%s %s n = %s', state, said, n));
            INSERT INTO t VALUES (3, SQLSTATE);
    END;
    BEGIN
        EXECUTE 'SELECT 1 / 0';
    EXCEPTION
        WHEN OTHERS THEN
            INSERT INTO said (line) VALUES (format('others: %s %s', SQLSTATE, SQLERRM));
            BEGIN
                EXECUTE 'SELECT * FROM missing';
            EXCEPTION WHEN undefined_table THEN
                INSERT INTO said (line) VALUES (format('inner: %s', SQLERRM));
            END;
            INSERT INTO said (line) VALUES (format('again others: %s', SQLSTATE));
    END;
END $$;
SELECT * FROM t ORDER BY a;
-- error: 22012
DO $$ BEGIN BEGIN EXECUTE 'SELECT 1 / 0'; EXCEPTION WHEN OTHERS THEN RAISE; END; END $$;
-- error: 22012
DO $$ BEGIN BEGIN EXECUTE 'SELECT 1 / 0'; EXCEPTION WHEN unique_violation THEN NULL; END; END $$;
-- error: P0009
DO $$ BEGIN BEGIN EXECUTE 'SELECT 1 / 0'; EXCEPTION WHEN division_by_zero THEN RAISE EXCEPTION 'other %', SQLSTATE USING ERRCODE = 'P0009'; END; END $$;
SELECT line FROM said ORDER BY n;

-- snippet: control-around-commands
CREATE TABLE t (a INT PRIMARY KEY);
CREATE FUNCTION kind(x INT) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE doubled INT;
BEGIN
    EXECUTE 'SELECT $1 * 2' INTO doubled USING x;
    CASE x
        WHEN 1, 2 THEN RETURN 'small ' || doubled;
        WHEN 3 THEN RETURN 'three ' || doubled;
    END CASE;
END $$;
SELECT kind(2);
SELECT kind(3);
-- error: 20000
SELECT kind(4);
CREATE FUNCTION size_of(x INT) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT 1';
    IF x < 0 THEN RETURN 'negative'; ELSIF x = 0 THEN RETURN 'none'; ELSE NULL; END IF;
    CASE WHEN x > 100 THEN RETURN 'large'; WHEN x > 10 THEN RETURN 'middle'; ELSE RETURN 'small'; END CASE;
END $$;
SELECT size_of(-1);
SELECT size_of(0);
SELECT size_of(5);
SELECT size_of(50);
SELECT size_of(500);
SELECT size_of(NULL);
DO $$
DECLARE i INT := 0;
BEGIN
    WHILE i < 3 LOOP
        i := i + 1;
        EXECUTE 'INSERT INTO t VALUES ($1)' USING i;
    END LOOP;
    LOOP
        i := i - 1;
        EXIT WHEN i = 0;
        EXECUTE 'UPDATE t SET a = a + 10 WHERE a = $1' USING i;
    END LOOP;
    FOR j IN REVERSE 9..5 BY 2 LOOP
        EXECUTE 'INSERT INTO t VALUES ($1)' USING j;
    END LOOP;
    <<work>>
    BEGIN
        EXIT work WHEN i = 0;
        EXECUTE 'DELETE FROM t';
    END;
END $$;
SELECT * FROM t ORDER BY a;
-- error: 22004
DO $$ BEGIN FOR i IN 1..NULL LOOP EXECUTE 'SELECT 1'; END LOOP; END $$;
-- error: 22023
DO $$ BEGIN FOR i IN 1..2 BY 0 LOOP EXECUTE 'SELECT 1'; END LOOP; END $$;

-- snippet: variables-around-commands
CREATE TABLE said (n SERIAL, line TEXT);
DO $$
<<blk>>
DECLARE
    x INT := 1;
    y CONSTANT INT := x + 1;
    z NUMERIC(5, 2) := 1.005;
    a INT[] := ARRAY[1, 2];
BEGIN
    EXECUTE 'SELECT 1';
    DECLARE
        x TEXT := 'inner';
        like_z z%TYPE := 3.14159;
    BEGIN
        EXECUTE 'SELECT $1 || $2' INTO x USING x, blk.x::TEXT;
        blk.x := blk.x + y;
        INSERT INTO said (line) VALUES (format('%s %s %s %s', x, blk.x, z, like_z));
    END;
    a[2] := 5;
    INSERT INTO said (line) VALUES (format('%s %s', x, a));
END $$;
-- error: 22P02
DO $$ DECLARE x INT; BEGIN EXECUTE 'SELECT 1'; x := 'q'; END $$;
-- error: 55000
DO $$ DECLARE r RECORD; BEGIN EXECUTE 'SELECT 1'; INSERT INTO said (line) VALUES (format('%s', r.a)); END $$;
-- error: 22004
DO $$ DECLARE x INT NOT NULL := NULL; BEGIN EXECUTE 'SELECT 1'; END $$;
DO $$
DECLARE r RECORD;
BEGIN
    EXECUTE 'SELECT 1 AS a' INTO r;
    INSERT INTO said (line) VALUES (format('%s', r.a));
    SELECT 2 AS b, 'x' AS c INTO r;
    INSERT INTO said (line) VALUES (format('%s %s', r.b, r.c));
    EXECUTE 'SELECT ''last''::TEXT AS d' INTO r;
    INSERT INTO said (line) VALUES (format('%s', r.d));
END $$;
SELECT line FROM said ORDER BY n;

-- snippet: procedures-that-commit
CREATE TABLE said (n SERIAL, line TEXT);
CREATE TABLE t (a INT PRIMARY KEY);
CREATE PROCEDURE batches(n INT) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..n LOOP
        INSERT INTO t VALUES (i);
        IF i % 2 = 0 THEN
            COMMIT;
        ELSE
            ROLLBACK;
        END IF;
    END LOOP;
END $$;
CALL batches(5);
SELECT * FROM t ORDER BY a;
DO $$ BEGIN INSERT INTO t VALUES (100); COMMIT; INSERT INTO t VALUES (101); ROLLBACK; INSERT INTO t VALUES (102); END $$;
SELECT * FROM t ORDER BY a;
-- error: 23505
DO $$ BEGIN INSERT INTO t VALUES (200); COMMIT; INSERT INTO t VALUES (200); END $$;
SELECT count(*) FROM t WHERE a = 200;
BEGIN;
-- error: 2D000
CALL batches(2);
ROLLBACK;
DO $$ BEGIN BEGIN COMMIT; EXCEPTION WHEN OTHERS THEN INSERT INTO said (line) VALUES (format('%s %s', SQLSTATE, SQLERRM)); END; END $$;
CREATE PROCEDURE outer_one() LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t VALUES (300);
    CALL batches(1);
    INSERT INTO t VALUES (301);
    COMMIT;
END $$;
CALL outer_one();
SELECT a FROM t WHERE a >= 300 ORDER BY a;
CREATE PROCEDURE gives(INOUT x INT) LANGUAGE plpgsql AS $$ BEGIN x := x + 1; COMMIT; END $$;
CALL gives(4);
SELECT line FROM said ORDER BY n;

-- snippet: commands-in-blocks-of-clients
CREATE TABLE t (a INT PRIMARY KEY);
BEGIN;
DO $$ BEGIN EXECUTE 'INSERT INTO t VALUES (1)'; CREATE TABLE u (b INT); END $$;
INSERT INTO u VALUES (5);
SELECT * FROM t, u;
ROLLBACK;
SELECT * FROM t;
-- error: 42P01
SELECT * FROM u;
BEGIN;
INSERT INTO t VALUES (1);
SAVEPOINT s;
-- error: 23505
DO $$ BEGIN EXECUTE 'INSERT INTO t VALUES (1)'; END $$;
ROLLBACK TO s;
DO $$ BEGIN EXECUTE 'INSERT INTO t VALUES (2)'; END $$;
COMMIT;
SELECT * FROM t ORDER BY a;

-- snippet: syntax-of-commands-in-bodies
-- error: 42601
CREATE FUNCTION f() RETURNS INT LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'x' INTO; END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INT LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'x' INTO y; END $$;
-- error: 42601
CREATE FUNCTION f() RETURNS INT LANGUAGE plpgsql AS $$ BEGIN COMMIT now; END $$;
CREATE FUNCTION f() RETURNS INT LANGUAGE plpgsql AS $$ BEGIN COMMIT; RETURN 1; END $$;
-- error: 2D000
SELECT f();
CREATE FUNCTION g(x INT) RETURNS INT LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT 1'; RETURN x + 1; END $$;
SELECT g(1);
DROP FUNCTION g;
-- error: 42883
SELECT g(1);
