-- YCSB: one table of records with ten fields of a hundred bytes (Cooper et al., SoCC 2010).
--
-- The same file runs on Kiln and on PostgreSQL. A field is a text of twenty characters, which every write draws anew, five times over.

CREATE TABLE usertable (
    ycsb_key INTEGER NOT NULL,
    field0    VARCHAR(100) NOT NULL,
    field1    VARCHAR(100) NOT NULL,
    field2    VARCHAR(100) NOT NULL,
    field3    VARCHAR(100) NOT NULL,
    field4    VARCHAR(100) NOT NULL,
    field5    VARCHAR(100) NOT NULL,
    field6    VARCHAR(100) NOT NULL,
    field7    VARCHAR(100) NOT NULL,
    field8    VARCHAR(100) NOT NULL,
    field9    VARCHAR(100) NOT NULL,
    PRIMARY KEY (ycsb_key)
);
