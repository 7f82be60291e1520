-- SmallBank: a bank with three tables (Alomari et al., ICDE 2008; the form of H-Store's benchmark, which names the
-- customer by number).
--
-- The same file runs on Kiln and on PostgreSQL. Every customer has one row in each table.

CREATE TABLE accounts (
    customer_id INTEGER     NOT NULL,
    name        VARCHAR(64) NOT NULL,
    PRIMARY KEY (customer_id)
);

CREATE TABLE savings (
    customer_id INTEGER        NOT NULL,
    balance     NUMERIC(18, 2) NOT NULL,
    PRIMARY KEY (customer_id)
);

CREATE TABLE checking (
    customer_id INTEGER        NOT NULL,
    balance     NUMERIC(18, 2) NOT NULL,
    PRIMARY KEY (customer_id)
);
