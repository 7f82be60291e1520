-- SEARCH and CYCLE of WITH RECURSIVE.

-- snippet: search-and-cycle
CREATE TABLE tree (id INTEGER, parent INTEGER, v VARCHAR(3));
INSERT INTO tree VALUES (1, NULL, 'a'), (2, 1, 'b'), (3, 1, 'c'), (4, 2, 'd'), (5, 3, 'e');
WITH RECURSIVE t (id, parent) AS (SELECT id, parent FROM tree WHERE parent IS NULL UNION ALL SELECT e.id, e.parent FROM tree e, t WHERE e.parent = t.id)
    SEARCH DEPTH FIRST BY id SET o SELECT * FROM t ORDER BY o;
WITH RECURSIVE t (id, parent, v) AS (SELECT id, parent, v FROM tree WHERE parent IS NULL UNION ALL SELECT e.id, e.parent, e.v FROM tree e, t x WHERE e.parent = x.id)
    SEARCH BREADTH FIRST BY v, id SET o SELECT id, o FROM t ORDER BY o;
INSERT INTO tree VALUES (1, 5, 'a');
WITH RECURSIVE t AS (SELECT id, parent FROM tree WHERE parent IS NULL UNION ALL SELECT e.id, e.parent FROM tree e JOIN t ON e.parent = t.id)
    SEARCH DEPTH FIRST BY id SET o CYCLE id SET c USING p SELECT * FROM t ORDER BY o;
WITH RECURSIVE t (id, parent) AS (SELECT id, parent FROM tree WHERE parent IS NULL UNION ALL SELECT e.id, e.parent FROM tree e, t x WHERE e.parent = x.id OR false)
    CYCLE id, parent SET c TO 'Y' DEFAULT 'N' USING p SELECT * FROM t ORDER BY p;
WITH RECURSIVE t (id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM t WHERE id < 3) SEARCH DEPTH FIRST BY id SET s, u AS (SELECT 1 AS one) SELECT id, s, one FROM t, u ORDER BY s;
WITH RECURSIVE t (id) AS (SELECT 1 UNION ALL SELECT id % 3 + 1 FROM t) CYCLE id SET looped TO 1 DEFAULT 0 USING way SELECT id, looped, cardinality(way) FROM t;
CREATE VIEW looped AS WITH RECURSIVE t (id) AS (SELECT 1 UNION ALL SELECT id % 3 + 1 FROM t) CYCLE id SET again USING way SELECT id, again FROM t;
SELECT * FROM looped ORDER BY id, again;

-- snippet: search-and-cycle-refused
-- error: 42601
WITH RECURSIVE t AS (SELECT 1 AS id) SEARCH BREADTH FIRST BY id SET o SELECT * FROM t;
-- error: 42601
WITH t (id) AS (SELECT 1) CYCLE id SET m USING q SELECT * FROM t;
-- error: 42601
WITH RECURSIVE t (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM t WHERE id < 3) SEARCH BREADTH FIRST BY x SET o SELECT * FROM t;
-- error: 42601
WITH RECURSIVE t (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM t WHERE id < 3) CYCLE x SET m USING p SELECT * FROM t;
-- error: 42601
WITH RECURSIVE t (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM t WHERE id < 3) CYCLE id SET m USING m SELECT * FROM t;
-- error: 42601
WITH RECURSIVE t (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM t WHERE id < 3) SEARCH DEPTH FIRST BY id SET m CYCLE id SET m USING q SELECT * FROM t;
-- error: 0A000
WITH RECURSIVE t (id) AS (SELECT 1 UNION SELECT id + 1 FROM (SELECT * FROM t) q WHERE id < 3) SEARCH DEPTH FIRST BY id SET s SELECT * FROM t;
