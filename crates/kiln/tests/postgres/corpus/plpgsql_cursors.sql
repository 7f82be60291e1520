-- Cursors in PL/pgSQL: bound ones and refcursors, OPEN, FETCH, MOVE, CLOSE, and loops over them.
-- compare: messages

-- snippet: cursor-bound
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four');
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    c CURSOR FOR SELECT id, v FROM t ORDER BY id;
    r RECORD;
    n INTEGER;
    s TEXT := '';
BEGIN
    OPEN c;
    FETCH c INTO r;
    s := s || r.id || r.v;
    FETCH NEXT FROM c INTO n, s;
    s := s || n || ' ' || found;
    FETCH LAST FROM c INTO r;
    s := s || ' ' || r.v;
    FETCH PRIOR FROM c INTO r;
    s := s || ' ' || r.v;
    FETCH FIRST FROM c INTO r;
    s := s || ' ' || r.v;
    FETCH ABSOLUTE 2 FROM c INTO r;
    s := s || ' ' || r.v;
    FETCH RELATIVE 2 FROM c INTO r;
    s := s || ' ' || r.v;
    FETCH RELATIVE -n FROM c INTO r;
    s := s || ' ' || r.v;
    FETCH FORWARD FROM c INTO r;
    s := s || ' ' || r.v;
    FETCH BACKWARD FROM c INTO r;
    s := s || ' ' || r.v;
    CLOSE c;
    RETURN s;
END $$;
SELECT f();
CREATE FUNCTION g() RETURNS SETOF TEXT LANGUAGE plpgsql AS $$
DECLARE
    c NO SCROLL CURSOR IS SELECT v FROM t ORDER BY id;
    x TEXT;
BEGIN
    OPEN c;
    LOOP
        FETCH c INTO x;
        EXIT WHEN NOT found;
        RETURN NEXT x;
    END LOOP;
    RETURN NEXT coalesce(x, 'null');
    CLOSE c;
    RETURN NEXT c;
END $$;
SELECT * FROM g();
CREATE FUNCTION h() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    c NO SCROLL CURSOR FOR SELECT v FROM t ORDER BY id;
    x TEXT;
BEGIN
    OPEN c;
    FETCH c INTO x;
    FETCH c INTO x;
    FETCH PRIOR FROM c INTO x;
    RETURN x;
END $$;
-- error: 55000
SELECT h();

-- snippet: cursor-arguments
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 9) i;
CREATE FUNCTION f(a INTEGER, b INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    c CURSOR (lo INTEGER, hi INTEGER) FOR SELECT id, v FROM t WHERE id BETWEEN lo AND hi ORDER BY id;
    r RECORD;
    s TEXT := '';
BEGIN
    OPEN c(a, b);
    LOOP
        FETCH c INTO r;
        EXIT WHEN NOT FOUND;
        s := s || r.id;
    END LOOP;
    CLOSE c;
    OPEN c(hi := b + 1, lo := a + 1);
    FETCH c INTO r;
    s := s || ' ' || r.v;
    MOVE FORWARD 2 FROM c;
    FETCH c INTO r;
    s := s || ' ' || coalesce(r.v, 'none');
    CLOSE c;
    FOR x IN c(b, b) LOOP
        s := s || ' loop ' || x.v;
    END LOOP;
    FOR x IN c(lo := 1, hi := 2) LOOP
        s := s || ' ' || x.id;
    END LOOP;
    RETURN s || ' ' || found;
END $$;
SELECT f(2, 4);
SELECT f(5, 9);
-- error: 42601
CREATE FUNCTION g() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE c CURSOR (a INTEGER) FOR SELECT a;
BEGIN
    OPEN c;
END $$;
-- error: 42601
CREATE FUNCTION g() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE c CURSOR (a INTEGER) FOR SELECT a;
BEGIN
    OPEN c(1, 2);
END $$;
-- error: 42601
CREATE FUNCTION g() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE c CURSOR FOR SELECT 1;
BEGIN
    OPEN c(1);
END $$;
-- error: 42601
CREATE FUNCTION g() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE c CURSOR (a INTEGER, b INTEGER) FOR SELECT a;
BEGIN
    OPEN c(1);
END $$;
-- error: 42601
CREATE FUNCTION g() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE c CURSOR (a INTEGER) FOR SELECT a;
BEGIN
    OPEN c(b := 1);
END $$;
-- error: 42601
CREATE FUNCTION g() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE c CURSOR (a INTEGER) FOR SELECT a;
BEGIN
    OPEN c(1, a := 2);
END $$;
-- error: 42601
CREATE FUNCTION g() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE c CURSOR (a INTEGER, b INTEGER) FOR SELECT a;
BEGIN
    OPEN c(a := 1, a := 2);
END $$;

-- snippet: cursor-references
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three');
CREATE FUNCTION opened(name REFCURSOR) RETURNS REFCURSOR LANGUAGE plpgsql AS $$
BEGIN
    OPEN name FOR SELECT id, v FROM t ORDER BY id DESC;
    RETURN name;
END $$;
BEGIN;
SELECT opened('mine');
FETCH 2 FROM mine;
FETCH ALL FROM mine;
FETCH BACKWARD 1 FROM mine;
CLOSE mine;
SELECT opened('mine');
-- error: 42P03
SELECT opened('mine');
ROLLBACK;
BEGIN;
SELECT opened('mine');
COMMIT;
-- error: 34000
FETCH mine;
CREATE FUNCTION text_of(command TEXT, n INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    c REFCURSOR;
    d REFCURSOR := 'other';
    r RECORD;
    s TEXT := '';
BEGIN
    OPEN c FOR EXECUTE command USING n;
    LOOP
        FETCH FROM c INTO r;
        EXIT WHEN NOT FOUND;
        s := s || r.v || ',';
    END LOOP;
    CLOSE c;
    OPEN d SCROLL FOR SELECT v FROM t WHERE id <> n ORDER BY id;
    MOVE d;
    MOVE NEXT FROM d;
    s := s || found;
    MOVE LAST FROM d;
    FETCH RELATIVE 0 FROM d INTO r;
    s := s || d || r.v;
    MOVE ALL FROM d;
    FETCH d INTO r;
    s := s || found || coalesce(r.v, 'none');
    RETURN s;
END $$;
SELECT text_of('SELECT v FROM t WHERE id >= $1 ORDER BY id', 2);
CREATE FUNCTION closed() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    c REFCURSOR;
    n INTEGER;
BEGIN
    OPEN c FOR SELECT 1;
    CLOSE c;
    FETCH c INTO n;
END $$;
-- error: 34000
DO $$
DECLARE
    c REFCURSOR := 'gone';
    n INTEGER;
BEGIN
    FETCH c INTO n;
END $$;
-- error: 22004
DO $$
DECLARE
    c REFCURSOR;
    n INTEGER;
BEGIN
    FETCH c INTO n;
END $$;
-- error: 22004
DO $$
DECLARE c REFCURSOR;
BEGIN
    CLOSE c;
END $$;
-- error: 34000
DO $$
DECLARE c CURSOR FOR SELECT 1;
BEGIN
    CLOSE c;
END $$;
-- error: 42P03
DO $$
DECLARE c CURSOR FOR SELECT 1;
BEGIN
    OPEN c;
    OPEN c;
END $$;
-- error: 22004
DO $$
DECLARE
    c CURSOR FOR SELECT 1;
    n INTEGER;
BEGIN
    OPEN c;
    FETCH ABSOLUTE n FROM c INTO n;
END $$;

-- snippet: cursor-loops
CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER);
INSERT INTO t SELECT i, i * i FROM generate_series(1, 6) i;
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    c CURSOR FOR SELECT id, n FROM t ORDER BY id;
    s TEXT := '';
    total INTEGER := 0;
BEGIN
    <<outer>>
    FOR r IN c LOOP
        CONTINUE WHEN r.id = 2;
        EXIT WHEN r.id = 5;
        s := s || r.id || '=' || r.n || ' ';
        total := total + r.n;
        UPDATE t SET n = 0 WHERE id = r.id;
        FOR i IN 1..3 LOOP
            CONTINUE outer WHEN i = 2;
            s := s || i;
        END LOOP;
    END LOOP;
    s := s || total || found;
    FOR r IN c LOOP
        total := total + r.n;
    END LOOP;
    RETURN s || ' ' || total;
END $$;
SELECT f();
DO $$
DECLARE
    c CURSOR FOR SELECT id FROM t WHERE id > 100;
BEGIN
    FOR r IN c LOOP
        RAISE NOTICE 'row %', r.id;
    END LOOP;
    RAISE NOTICE 'found %', found;
END $$;
-- error: 42P03
DO $$
DECLARE c CURSOR FOR SELECT 1 AS a;
BEGIN
    OPEN c;
    FOR r IN c LOOP
        NULL;
    END LOOP;
END $$;
-- error: 42601
CREATE FUNCTION g() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE c REFCURSOR;
BEGIN
    FOR r IN c LOOP
        NULL;
    END LOOP;
END $$;
CREATE FUNCTION caught() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    c CURSOR FOR SELECT id FROM t ORDER BY id;
    n INTEGER;
BEGIN
    BEGIN
        OPEN c;
        FETCH c INTO n;
        n := 1 / 0;
    EXCEPTION WHEN division_by_zero THEN
        n := n * 10;
    END;
    OPEN c;
    MOVE 3 FROM c;
    FETCH c INTO n;
    RETURN n;
END $$;
SELECT caught();

-- snippet: cursor-refusals
CREATE TABLE t (id INTEGER PRIMARY KEY);
-- error: 0A000
CREATE FUNCTION g() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    c CURSOR FOR SELECT 1;
    n INTEGER;
BEGIN
    FETCH ALL FROM c INTO n;
END $$;
-- error: 42601
CREATE FUNCTION g() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE c CURSOR FOR SELECT 1;
BEGIN
    FETCH c;
END $$;
-- error: 42601
CREATE FUNCTION g() RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    CLOSE unknown_cursor;
END $$;
-- refused: WHERE CURRENT OF
CREATE FUNCTION g() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE c CURSOR FOR SELECT id FROM t;
BEGIN
    OPEN c;
    DELETE FROM t WHERE CURRENT OF c;
END $$;
