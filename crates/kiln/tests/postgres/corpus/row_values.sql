-- Rows as values: ROW, rows of tables and variables, fields, comparisons.

-- snippet: rows-are-printed
SELECT ROW(1, 2);
SELECT ROW(1, 'a', NULL, 2.50, true, DATE '2026-01-02');
SELECT (1, 'a b');
SELECT ROW('', 'a"b', 'a\b', '(x)', ',', NULL);
SELECT ROW();
SELECT ROW(NULL);
SELECT ROW(ROW(1, 'x y'), ARRAY[1, 2], ARRAY['a b']);
SELECT ROW(1, 2)::text || '!';
SELECT 'r: ' || ROW(1, 2)::text;
SELECT ROW(1, 2) AS pair, pg_typeof(ROW(1, 2));
SELECT ROW('a'::char(4), 1.5::real, '\x01'::bytea, INTERVAL '1 day', '{"a": 1}'::json, '{"a": 1}'::jsonb);

-- snippet: rows-are-compared-by-their-fields
SELECT ROW(1, 2) = ROW(1, 2), ROW(1, 2) <> ROW(1, 3), ROW(1, 2) < ROW(1, 3), ROW(2, 1) >= ROW(1, 3);
SELECT ROW(1, NULL) = ROW(1, NULL), ROW(1, NULL) = ROW(2, NULL), ROW(1, NULL) < ROW(2, NULL);
SELECT ROW(1, NULL) IS DISTINCT FROM ROW(1, NULL), ROW(1, NULL) IS NOT DISTINCT FROM ROW(1, 2);
SELECT ROW(1, NULL) IS NULL, ROW(NULL, NULL) IS NULL, ROW(1, NULL) IS NOT NULL, ROW(1, 2) IS NOT NULL;
SELECT ROW(ROW(NULL)) IS NULL, ROW(ROW(NULL)) IS NOT NULL;
SELECT (1, 2) IN ((1, 2), (3, 4)), (5, 6) NOT IN ((1, 2), (3, 4));
SELECT ROW(1, 'a') = ROW(1, 'a');
-- error: 42601
SELECT ROW(1, 2) = ROW(1, 2, 3);

-- snippet: whole-rows-of-tables
CREATE TABLE shop (id INT PRIMARY KEY, name TEXT, rank NUMERIC(6, 2));
INSERT INTO shop VALUES (1, 'a', 1.5), (2, 'b c', NULL), (3, NULL, 3);
SELECT shop FROM shop ORDER BY id;
SELECT s FROM shop s ORDER BY s;
SELECT s FROM shop s ORDER BY s DESC;
SELECT s::text, pg_typeof(s) FROM shop s ORDER BY id;
SELECT s IS NULL, s IS NOT NULL FROM shop s ORDER BY id;
SELECT count(s), count(DISTINCT s), count(s.*) FROM shop s;
SELECT array_agg(s ORDER BY id) FROM shop s;
SELECT (array_agg(s ORDER BY id))[2] FROM shop s;
SELECT ((array_agg(s ORDER BY id))[2]).name FROM shop s;
SELECT ROW(s.*, 7) FROM shop s ORDER BY id;
SELECT ROW(s, 7) FROM shop s ORDER BY id;
SELECT a.id FROM shop a, shop b WHERE a = b ORDER BY 1;
SELECT a.id, b.id FROM shop a, shop b WHERE a < b ORDER BY 1, 2;
SELECT a.id FROM shop a JOIN shop b ON a.id = b.id WHERE a IS DISTINCT FROM b;
SELECT a.id FROM shop a JOIN shop b ON a.id = b.id WHERE a.* = b.* ORDER BY 1;
SELECT a.id FROM shop a JOIN shop b ON a.id = b.id WHERE a IS NOT DISTINCT FROM b ORDER BY 1;
SELECT s FROM shop s WHERE s = ROW(1, 'a'::text, 1.5::numeric);
SELECT s FROM shop s GROUP BY s ORDER BY s;
SELECT DISTINCT s FROM shop s ORDER BY s;
SELECT s FROM shop s UNION SELECT s FROM shop s ORDER BY 1;
SELECT s FROM shop s WHERE s IN (SELECT t FROM shop t WHERE id > 1) ORDER BY id;
SELECT (SELECT s FROM shop s WHERE id = 1);
SELECT (SELECT s FROM shop s WHERE id = 9);
SELECT ((SELECT s FROM shop s WHERE id = 2)).name;
SELECT a.id, b FROM shop a LEFT JOIN shop b ON b.id = a.id + 1 ORDER BY 1;
SELECT a.id, b IS NULL, b IS DISTINCT FROM NULL FROM shop a LEFT JOIN shop b ON b.id = a.id + 1 ORDER BY 1;
SELECT NULL::shop, NULL::shop IS NULL, (NULL::shop).name;
SELECT '(7,"x y",)'::shop, ('(7,"x y",)'::shop).name, ('(7,"x y",)'::shop).*;
SELECT ROW(1, 'q', 2)::shop, (ROW(1, 'q', 2)::shop).rank;
SELECT (ROW(1, 'q', 2)::shop).*;
SELECT '{"(1,a,2)"}'::shop[];
SELECT COALESCE(NULL::shop, s) FROM shop s ORDER BY id;
SELECT CASE WHEN id = 1 THEN s END FROM shop s ORDER BY id;
SELECT sub FROM (SELECT id, name FROM shop) sub ORDER BY id;
SELECT sub.r, (sub.r).id FROM (SELECT s AS r FROM shop s) sub ORDER BY 2;
SELECT (sub.r).* FROM (SELECT s AS r FROM shop s) sub ORDER BY 1;
WITH w AS (SELECT s AS r FROM shop s) SELECT (r).name FROM w ORDER BY 1;
SELECT v FROM (VALUES (1, 'a'), (2, 'b')) v(x, y) ORDER BY x;

-- snippet: rows-that-cannot-be
CREATE TABLE shop (id INT PRIMARY KEY, note JSON);
INSERT INTO shop VALUES (1, '{}');
-- error: 42883
SELECT s FROM shop s ORDER BY s;
-- error: 42883
SELECT DISTINCT s FROM shop s;
-- error: 42846
SELECT ROW(1)::shop;
-- error: 42846
SELECT ROW(1, '{}', 3)::shop;
-- error: 42846
SELECT ROW(DATE '2026-01-01', '{}')::shop;
-- error: 22P02
SELECT '1,2'::shop;
-- error: 22P02
SELECT '(1)'::shop;
-- error: 22P02
SELECT '(x,{})'::shop;
-- error: 42703
SELECT (s).nothing FROM shop s;
-- error: 42809
SELECT (id).nothing FROM shop s;
-- error: 42804
SELECT s = ROW(1) FROM shop s;
-- error: 42703
SELECT nothing FROM shop;
-- error: 42846
SELECT ROW(1, 2)::int;
-- error: 0A000
SELECT '(1,2)'::record;

-- snippet: rows-and-json
CREATE TABLE shop (id INT PRIMARY KEY, name TEXT, tags TEXT[]);
INSERT INTO shop VALUES (1, 'a', '{x,y}'), (2, NULL, NULL);
SELECT to_json(s), row_to_json(s), to_jsonb(s) FROM shop s ORDER BY id;
SELECT json_agg(s ORDER BY id), jsonb_agg(s ORDER BY id) FROM shop s;
SELECT json_agg(sub) FROM (SELECT id, name FROM shop ORDER BY id) sub;
SELECT row_to_json(ROW(1, 'a')), to_json(ROW(1, ROW(2, 'b'))), to_json((1, 2));
SELECT json_build_object('s', s) FROM shop s ORDER BY id;
SELECT to_json(array_agg(s ORDER BY id)) FROM shop s;
SELECT to_json(r) FROM (SELECT s AS r FROM shop s) sub ORDER BY (r).id;
SELECT row_to_json(sub) FROM (SELECT s AS r, 1 AS n FROM shop s ORDER BY id) sub;
SELECT a.id, to_json(b), row_to_json(b) FROM shop a LEFT JOIN shop b ON b.id = a.id + 1 ORDER BY 1;
SELECT to_json(COALESCE(b, a)) FROM shop a LEFT JOIN shop b ON b.id = a.id + 1 ORDER BY a.id;
-- error: 42883
SELECT row_to_json(1);

-- snippet: records-in-plpgsql
CREATE TABLE shop (id INT PRIMARY KEY, name TEXT);
INSERT INTO shop VALUES (1, 'a'), (2, 'b');
CREATE FUNCTION f() RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
  r RECORD;
  s shop%ROWTYPE;
  t TEXT := '';
BEGIN
  FOR r IN SELECT * FROM shop ORDER BY id LOOP
    t := t || r::text;
  END LOOP;
  SELECT * INTO s FROM shop WHERE id = 2;
  t := t || s::text || to_json(s)::text;
  IF s = r THEN t := t || 'same'; END IF;
  IF s IS NOT DISTINCT FROM r THEN t := t || 'same'; END IF;
  RETURN t;
END $$;
SELECT f();

-- snippet: triggers-compare-rows
CREATE TABLE shop (id INT PRIMARY KEY, name TEXT, n INT);
CREATE TABLE log (id INT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what TEXT);
CREATE FUNCTION note() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF NEW = OLD THEN
      INSERT INTO log (what) VALUES ('same ' || NEW::text);
    ELSIF NEW IS DISTINCT FROM OLD THEN
      INSERT INTO log (what) VALUES (OLD::text || ' to ' || NEW::text);
    END IF;
    IF NEW.* IS DISTINCT FROM OLD.* THEN NEW.n := COALESCE(NEW.n, 0) + 1; END IF;
  ELSE
    INSERT INTO log (what) VALUES (TG_OP || COALESCE(OLD::text, '-'));
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER t BEFORE INSERT OR UPDATE ON shop FOR EACH ROW EXECUTE FUNCTION note();
INSERT INTO shop VALUES (1, 'a', 1), (2, NULL, NULL);
UPDATE shop SET name = name;
UPDATE shop SET name = 'z' WHERE id = 2;
SELECT shop FROM shop ORDER BY id;
SELECT what FROM log ORDER BY id;
CREATE TRIGGER u AFTER UPDATE ON shop FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION note();
UPDATE shop SET name = name WHERE id = 1;
SELECT count(*) FROM log;

-- snippet: rows-in-expressions
CREATE TABLE shop (id INT PRIMARY KEY, name TEXT);
INSERT INTO shop VALUES (1, 'a'), (2, 'b'), (3, 'b');
SELECT ARRAY[ROW(1, 2), ROW(3, 4)];
SELECT ROW(1, 2) = ANY (ARRAY[ROW(1, 2), ROW(3, 4)]);
SELECT concat(ROW(1, 2), '-', s) FROM shop s ORDER BY id;
SELECT format('%s', s) FROM shop s ORDER BY id;
SELECT CASE WHEN true THEN ROW(1, 'a') ELSE ROW(2, NULL) END;
SELECT COALESCE(NULL, ROW(1, 2));
SELECT NULLIF(ROW(1, 2), ROW(1, 2)), NULLIF(ROW(1, 2), ROW(1, 3));
SELECT (ROW(1, 'x'::text)).f2, (ROW(1, 2)).*;
SELECT ROW(id, name) FROM shop ORDER BY ROW(name, id) DESC;
SELECT ROW(name, 1), count(*) FROM shop GROUP BY ROW(name, 1) ORDER BY 1;
SELECT DISTINCT ROW(name, 1) FROM shop ORDER BY 1;
SELECT max(id), ROW(max(id), min(name)) FROM shop;
SELECT name, array_agg(ROW(id, name) ORDER BY id) FROM shop GROUP BY name ORDER BY name;
SELECT s FROM shop s WHERE ROW(id, name) > ROW(1, 'z') ORDER BY id;
SELECT s FROM shop s WHERE (id, name) IN (SELECT id, name FROM shop WHERE id > 1) ORDER BY id;
SELECT lag(s) OVER (ORDER BY id), first_value(s) OVER (ORDER BY id) FROM shop s;
SELECT row_number() OVER (ORDER BY s DESC), s FROM shop s ORDER BY 1;
DELETE FROM shop s WHERE s = ROW(3, 'b'::text) RETURNING s;
UPDATE shop s SET name = 'q' WHERE id = 1 RETURNING s, (s).name;
INSERT INTO shop VALUES (9, 'n') RETURNING shop;
