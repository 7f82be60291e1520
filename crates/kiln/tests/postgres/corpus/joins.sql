-- Inner and left joins, of two and more tables.

-- snippet: join-inner-on-key
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, total NUMERIC(8, 2));
INSERT INTO customer VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cy');
INSERT INTO orders VALUES (10, 1, 5.00), (11, 1, 7.50), (12, 2, 1.25), (13, NULL, 9.99);
SELECT c.name, o.id, o.total FROM customer c JOIN orders o ON o.customer_id = c.id ORDER BY o.id;
SELECT c.name, o.id FROM orders o INNER JOIN customer AS c ON c.id = o.customer_id WHERE o.total > 2 ORDER BY o.id DESC;

-- snippet: join-left-keeps-unmatched
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER);
INSERT INTO customer VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cy');
INSERT INTO orders VALUES (10, 1), (11, 1), (12, 2);
SELECT c.name, o.id FROM customer c LEFT JOIN orders o ON o.customer_id = c.id ORDER BY c.id, o.id;
SELECT c.name FROM customer c LEFT OUTER JOIN orders o ON o.customer_id = c.id WHERE o.id IS NULL;
SELECT c.name, count(o.id) FROM customer c LEFT JOIN orders o ON o.customer_id = c.id GROUP BY c.name ORDER BY c.name;

-- snippet: join-left-condition-in-on-or-where
CREATE TABLE a (id INTEGER PRIMARY KEY);
CREATE TABLE b (id INTEGER PRIMARY KEY, a_id INTEGER, v INTEGER);
INSERT INTO a VALUES (1), (2), (3);
INSERT INTO b VALUES (1, 1, 10), (2, 1, 20), (3, 2, 10);
SELECT a.id, b.v FROM a LEFT JOIN b ON b.a_id = a.id AND b.v > 10 ORDER BY a.id;
SELECT a.id, b.v FROM a LEFT JOIN b ON b.a_id = a.id WHERE b.v > 10 ORDER BY a.id;

-- snippet: join-three-tables
CREATE TABLE a (id INTEGER PRIMARY KEY, n TEXT);
CREATE TABLE b (id INTEGER PRIMARY KEY, a_id INTEGER);
CREATE TABLE c (id INTEGER PRIMARY KEY, b_id INTEGER, v INTEGER);
INSERT INTO a VALUES (1, 'x'), (2, 'y');
INSERT INTO b VALUES (1, 1), (2, 1), (3, 2);
INSERT INTO c VALUES (1, 1, 100), (2, 2, 200), (3, 3, 300), (4, 3, 400), (5, 9, 500);
SELECT a.n, b.id, c.v FROM a JOIN b ON b.a_id = a.id JOIN c ON c.b_id = b.id ORDER BY c.id;
SELECT a.n, sum(c.v) FROM a JOIN b ON b.a_id = a.id JOIN c ON c.b_id = b.id GROUP BY a.n ORDER BY a.n;

-- snippet: join-left-chain
CREATE TABLE a (id INTEGER PRIMARY KEY);
CREATE TABLE b (id INTEGER PRIMARY KEY, a_id INTEGER);
CREATE TABLE c (id INTEGER PRIMARY KEY, b_id INTEGER);
INSERT INTO a VALUES (1), (2), (3);
INSERT INTO b VALUES (1, 1), (2, 2);
INSERT INTO c VALUES (1, 1);
SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON b.a_id = a.id LEFT JOIN c ON c.b_id = b.id ORDER BY a.id;
SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON b.a_id = a.id JOIN c ON c.b_id = b.id ORDER BY a.id;

-- snippet: join-comma-syntax
CREATE TABLE a (id INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE b (id INTEGER PRIMARY KEY, w INTEGER);
INSERT INTO a VALUES (1, 10), (2, 20);
INSERT INTO b VALUES (1, 100), (2, 200), (3, 300);
SELECT a.v, b.w FROM a, b WHERE a.id = b.id ORDER BY a.id;
SELECT count(*) FROM a, b;

-- snippet: join-cross
CREATE TABLE a (x INTEGER);
CREATE TABLE b (y TEXT);
INSERT INTO a VALUES (1), (2);
INSERT INTO b VALUES ('p'), ('q');
SELECT x, y FROM a CROSS JOIN b ORDER BY x, y;

-- snippet: join-self
CREATE TABLE employee (id INTEGER PRIMARY KEY, name TEXT, boss INTEGER);
INSERT INTO employee VALUES (1, 'Root', NULL), (2, 'Mid', 1), (3, 'Leaf', 2), (4, 'Other', 1);
SELECT e.name, b.name FROM employee e JOIN employee b ON e.boss = b.id ORDER BY e.id;
SELECT e.name, b.name AS boss FROM employee e LEFT JOIN employee b ON e.boss = b.id ORDER BY e.id;

-- snippet: join-using
CREATE TABLE a (id INTEGER PRIMARY KEY, v TEXT);
CREATE TABLE b (id INTEGER PRIMARY KEY, w TEXT);
INSERT INTO a VALUES (1, 'a1'), (2, 'a2');
INSERT INTO b VALUES (2, 'b2'), (3, 'b3');
SELECT id, v, w FROM a JOIN b USING (id) ORDER BY id;
SELECT * FROM a LEFT JOIN b USING (id) ORDER BY id;

-- snippet: join-star-and-qualified-star
CREATE TABLE a (id INTEGER PRIMARY KEY, v TEXT);
CREATE TABLE b (id INTEGER PRIMARY KEY, a_id INTEGER);
INSERT INTO a VALUES (1, 'one');
INSERT INTO b VALUES (7, 1);
SELECT * FROM a JOIN b ON a.id = b.a_id;
SELECT b.*, a.v FROM a JOIN b ON a.id = b.a_id;

-- snippet: join-non-equi
CREATE TABLE grade (low INTEGER, high INTEGER, name TEXT);
CREATE TABLE score (id INTEGER PRIMARY KEY, v INTEGER);
INSERT INTO grade VALUES (0, 49, 'F'), (50, 79, 'C'), (80, 100, 'A');
INSERT INTO score VALUES (1, 85), (2, 50), (3, 12), (4, 101);
SELECT s.id, g.name FROM score s JOIN grade g ON s.v BETWEEN g.low AND g.high ORDER BY s.id;
SELECT s.id, g.name FROM score s LEFT JOIN grade g ON s.v >= g.low AND s.v <= g.high ORDER BY s.id;

-- snippet: join-null-keys-never-match
CREATE TABLE a (k INTEGER);
CREATE TABLE b (k INTEGER);
INSERT INTO a VALUES (1), (NULL);
INSERT INTO b VALUES (1), (NULL);
SELECT a.k, b.k FROM a JOIN b ON a.k = b.k;
SELECT a.k, b.k FROM a LEFT JOIN b ON a.k = b.k ORDER BY a.k;

-- snippet: join-duplicates-multiply
CREATE TABLE a (k INTEGER, v TEXT);
CREATE TABLE b (k INTEGER, w TEXT);
INSERT INTO a VALUES (1, 'a'), (1, 'b'), (2, 'c');
INSERT INTO b VALUES (1, 'x'), (1, 'y'), (3, 'z');
SELECT a.v, b.w FROM a JOIN b ON a.k = b.k ORDER BY a.v, b.w;

-- snippet: join-on-composite-key
CREATE TABLE district (w INTEGER, d INTEGER, name TEXT, PRIMARY KEY (w, d));
CREATE TABLE orders (w INTEGER, d INTEGER, o INTEGER, PRIMARY KEY (w, d, o));
INSERT INTO district VALUES (1, 1, 'one'), (1, 2, 'two'), (2, 1, 'three');
INSERT INTO orders VALUES (1, 1, 5), (1, 1, 6), (2, 1, 5), (2, 2, 1);
SELECT d.name, o.o FROM orders o JOIN district d ON d.w = o.w AND d.d = o.d ORDER BY o.w, o.d, o.o;
SELECT count(DISTINCT o.o) FROM orders o, district d WHERE d.w = 1 AND d.d = 1 AND o.w = d.w AND o.d = d.d AND o.o >= 5 AND o.o < 7;

-- snippet: join-different-integer-types
CREATE TABLE a (id SMALLINT PRIMARY KEY);
CREATE TABLE b (id BIGINT PRIMARY KEY);
INSERT INTO a VALUES (1), (2);
INSERT INTO b VALUES (2), (9000000000);
SELECT a.id, b.id FROM b LEFT JOIN a ON a.id = b.id ORDER BY b.id;

-- snippet: join-ambiguous-and-missing-columns
CREATE TABLE a (id INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE b (id INTEGER PRIMARY KEY, w INTEGER);
-- error: 42702
SELECT id FROM a JOIN b ON a.id = b.id;
-- error: 42703
SELECT a.w FROM a JOIN b ON a.id = b.id;
-- error: 42P01
SELECT c.v FROM a JOIN b ON a.id = b.id;
-- error: 42712
SELECT 1 FROM a JOIN a ON true;

-- snippet: join-order-by-and-limit
CREATE TABLE a (id INTEGER PRIMARY KEY, v INTEGER);
CREATE TABLE b (a_id INTEGER, w INTEGER);
INSERT INTO a VALUES (1, 30), (2, 20), (3, 10);
INSERT INTO b VALUES (1, 1), (2, 2), (3, 3), (3, 4);
SELECT a.v, b.w FROM a JOIN b ON a.id = b.a_id ORDER BY a.v, b.w DESC LIMIT 2;
SELECT a.v, b.w FROM a JOIN b ON a.id = b.a_id ORDER BY b.w OFFSET 3;

-- snippet: join-copies-and-own-filters
CREATE TABLE a (id INTEGER PRIMARY KEY, x TEXT);
CREATE TABLE c (z INTEGER, t TEXT);
INSERT INTO a VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO c VALUES (1, 'x'), (2, 'y'), (5, NULL), (NULL, NULL);
SELECT a.x FROM a CROSS JOIN c WHERE c.t IS NOT NULL ORDER BY 1;
SELECT a.x, c.z FROM a, c WHERE c.t > a.x AND c.z < 5 ORDER BY 1, 2;
SELECT max(a.x) FROM c LEFT JOIN a ON a.x > c.t AND a.id < 3 HAVING count(*) > 1;

-- snippet: join-by-a-wider-key
CREATE TABLE a (id INTEGER PRIMARY KEY, k SMALLINT);
CREATE TABLE b (p INTEGER PRIMARY KEY, w BIGINT);
INSERT INTO a VALUES (1, 10), (2, 20), (3, 30);
INSERT INTO b VALUES (1, 3), (2, 1), (3, 9000000000), (4, NULL);
SELECT b.p, a.id, a.k FROM b JOIN a ON a.id = b.w ORDER BY 1;
SELECT b.p, (SELECT max(a.id) FROM a WHERE a.id = b.w) FROM b ORDER BY 1;
SELECT DISTINCT a.k, a.id FROM b JOIN a ON a.id = b.w ORDER BY 1 DESC;

-- snippet: join-order-after-a-single-row
CREATE TABLE a (id INTEGER PRIMARY KEY, x TEXT);
CREATE TABLE b (p INTEGER, q INTEGER, y TEXT, PRIMARY KEY (p, q));
INSERT INTO a VALUES (1, 'one'), (3, 'three');
INSERT INTO b VALUES (1, 1, 'z'), (1, 3, 'm'), (2, 2, 'a'), (2, 1, NULL);
SELECT b.y FROM b, a WHERE a.id = (SELECT max(q) FROM b) ORDER BY 1 NULLS FIRST;
SELECT b.y, a.x FROM b, a WHERE a.id = 1 ORDER BY b.y DESC;
SELECT b.p, b.q FROM a, b WHERE a.id = 1 ORDER BY b.p DESC, b.q DESC LIMIT 2;

-- snippet: distinct-subquery-ordered-by-position
CREATE TABLE a (id INTEGER PRIMARY KEY, g INTEGER);
INSERT INTO a VALUES (1, 1), (2, 1), (3, 2), (4, NULL);
SELECT DISTINCT g, (SELECT count(*) FROM a AS b WHERE b.g = a.g) FROM a ORDER BY 1 NULLS FIRST, 2;
SELECT DISTINCT CASE WHEN EXISTS (SELECT 1 FROM a AS b WHERE b.id = a.g + 2) THEN 'yes' ELSE 'no' END AS answer FROM a ORDER BY answer;
