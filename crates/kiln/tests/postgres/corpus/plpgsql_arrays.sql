-- PL/pgSQL: arrays as arguments and variables, subscripts, FOREACH.

-- snippet: array-argument-and-subscript
CREATE FUNCTION f(a INTEGER[], i INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN a[i]; END $$;
SELECT f(ARRAY[10, 20, 30], 1), f(ARRAY[10, 20, 30], 3), f(ARRAY[10, 20, 30], 0), f(ARRAY[10, 20, 30], 4), f(ARRAY[10], NULL);

-- snippet: array-literal-argument
CREATE FUNCTION f(a INTEGER[]) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN a[2]; END $$;
SELECT f('{1,2,3}'), f('{}'), f(NULL), f('{5,NULL}');

-- snippet: array-length
CREATE FUNCTION f(a INTEGER[]) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce(array_length(a, 1)::text, 'null') || ' ' || coalesce(cardinality(a)::text, 'null');
END $$;
SELECT f(ARRAY[1, 2, 3]), f('{}'), f(NULL);

-- snippet: array-loop-with-index
CREATE FUNCTION f(ids INTEGER[], amounts NUMERIC[]) RETURNS NUMERIC LANGUAGE plpgsql AS $$
DECLARE total NUMERIC := 0;
BEGIN
  FOR i IN 1..array_length(ids, 1) LOOP
    total := total + ids[i] * amounts[i];
  END LOOP;
  RETURN total;
END $$;
SELECT f(ARRAY[1, 2, 3], ARRAY[0.5, 1.25, 2]);

-- snippet: array-loop-over-empty-fails
CREATE FUNCTION f(a INTEGER[]) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE s INTEGER := 0;
BEGIN
  FOR i IN 1..array_length(a, 1) LOOP s := s + a[i]; END LOOP;
  RETURN s;
END $$;
SELECT f(ARRAY[4, 5]);
-- error: 22004
SELECT f('{}');

-- snippet: foreach
CREATE FUNCTION f(a INTEGER[]) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x INTEGER; s TEXT := '';
BEGIN
  FOREACH x IN ARRAY a LOOP
    s := s || coalesce(x::text, 'null') || ' ';
  END LOOP;
  RETURN s || FOUND;
END $$;
SELECT f(ARRAY[3, 1, 2]), f('{}'), f(ARRAY[1, NULL]);
-- error: 22004
SELECT f(NULL);

-- snippet: foreach-text-with-exit
CREATE FUNCTION f(a TEXT[]) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE x TEXT; s TEXT := '';
BEGIN
  FOREACH x IN ARRAY a LOOP
    CONTINUE WHEN x = 'skip';
    EXIT WHEN x = 'stop';
    s := s || x;
  END LOOP;
  RETURN s;
END $$;
SELECT f(ARRAY['a', 'skip', 'b', 'stop', 'c']);

-- snippet: foreach-not-an-array
CREATE FUNCTION f(a INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE x INTEGER;
BEGIN
  FOREACH x IN ARRAY a LOOP NULL; END LOOP;
  RETURN 1;
END $$;
-- error: 42804
SELECT f(1);

-- snippet: array-assign-element
CREATE FUNCTION f(a INTEGER[]) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
  a[2] := 99;
  a[1] := a[1] + 1;
  RETURN a[1] * 1000 + a[2];
END $$;
SELECT f(ARRAY[1, 2, 3]);

-- snippet: array-grow-by-assignment
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a INTEGER[] := '{}';
BEGIN
  a[1] := 10;
  a[2] := 20;
  a[4] := 40;
  RETURN array_length(a, 1) || ' ' || coalesce(a[3]::text, 'null') || ' ' || a[4];
END $$;
SELECT f();

-- snippet: array-append
CREATE FUNCTION f(n INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE a INTEGER[]; s TEXT := ''; x INTEGER;
BEGIN
  FOR i IN 1..n LOOP a := array_append(a, i * i); END LOOP;
  a := a || 7;
  FOREACH x IN ARRAY a LOOP s := s || x || ','; END LOOP;
  RETURN s;
END $$;
SELECT f(3), f(0);

-- snippet: array-used-in-queries
CREATE TABLE item (id INTEGER PRIMARY KEY, price NUMERIC(5, 2));
INSERT INTO item VALUES (1, 1.50), (2, 2.25), (3, 10.00);
CREATE FUNCTION total(ids INTEGER[]) RETURNS NUMERIC LANGUAGE plpgsql AS $$
DECLARE p NUMERIC(5, 2); t NUMERIC(8, 2) := 0;
BEGIN
  FOR i IN 1..cardinality(ids) LOOP
    SELECT price INTO p FROM item WHERE id = ids[i];
    IF NOT FOUND THEN RAISE EXCEPTION 'item % is unknown', ids[i]; END IF;
    t := t + p;
  END LOOP;
  RETURN t;
END $$;
SELECT total(ARRAY[1, 2]), total(ARRAY[3, 3]), total('{}');
-- error: P0001
SELECT total(ARRAY[1, 9]);

-- snippet: array-any
CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
CREATE FUNCTION f(ids INTEGER[]) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE s BIGINT;
BEGIN
  SELECT sum(v) INTO s FROM t WHERE id = ANY (ids);
  RETURN s;
END $$;
SELECT f(ARRAY[1, 3]), f(ARRAY[9]), f('{}');
SELECT 2 = ANY (ARRAY[1, 2]), 5 = ANY (ARRAY[1, NULL]), 5 <> ALL (ARRAY[1, 2]);

-- snippet: array-of-text-and-null
CREATE FUNCTION f(a TEXT[]) RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN a[1] || '-' || coalesce(a[2], 'none'); END $$;
SELECT f(ARRAY['x', NULL]), f('{"with, comma",plain}'), f('{a,NULL}'), f('{a,"NULL"}');

-- snippet: array-bad-literal
CREATE FUNCTION f(a INTEGER[]) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN a[1]; END $$;
-- error: 22P02
SELECT f('1,2');
-- error: 22P02
SELECT f('{1,x}');
-- error: 42883
SELECT f(5);

-- snippet: array-sort-swap
CREATE FUNCTION f(a INTEGER[]) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE t INTEGER; s TEXT := ''; x INTEGER;
BEGIN
  FOR i IN 1..cardinality(a) - 1 LOOP
    FOR j IN 1..cardinality(a) - i LOOP
      IF a[j] > a[j + 1] THEN
        t := a[j];
        a[j] := a[j + 1];
        a[j + 1] := t;
      END IF;
    END LOOP;
  END LOOP;
  FOREACH x IN ARRAY a LOOP s := s || x || ' '; END LOOP;
  RETURN s;
END $$;
SELECT f(ARRAY[5, 2, 9, 1, 5]), f(ARRAY[1]);
