-- Results of all kinds. The files beside this one are what PostgreSQL 15's psql prints: the .csv
-- with -q --csv, the .txt without options.
CREATE TABLE item (
    id    INTEGER PRIMARY KEY,
    name  VARCHAR(20),
    code  CHAR(4),
    price NUMERIC(8, 2),
    ratio DOUBLE PRECISION,
    sold  BOOLEAN,
    since DATE
);
INSERT INTO item VALUES
    (1, 'plain', 'ab', 1.5, 0.1, true, '2024-02-29'),
    (2, 'comma, "quote"', NULL, -1234.567, 1e100, false, NULL),
    (3, E'two\nlines', 'abcd', NULL, 'NaN', NULL, '0099-12-31'),
    (4, '', '', 0, -0.0, true, '2000-01-01');
SELECT * FROM item ORDER BY id;
SELECT id, name AS "the, name" FROM item WHERE id > 9;
UPDATE item SET price = price * 2 WHERE id <= 2 RETURNING id, price;
SELECT 1 / 0;
SELECT count(*), sum(price) FROM item;
DELETE FROM item WHERE id = 4;
SELECT name FROM item WHERE id = 1;
