-- What the queries beside this file are asked about. It is made in both systems.
CREATE TABLE items (
    id integer PRIMARY KEY,
    name varchar(40) NOT NULL,
    price numeric(10, 2) DEFAULT 0 CHECK (price >= 0),
    code char(3) DEFAULT 'abc',
    stock bigint DEFAULT -1,
    added timestamp DEFAULT now(),
    seen timestamptz DEFAULT CURRENT_TIMESTAMP,
    active boolean DEFAULT true,
    note text DEFAULT 'it''s none',
    nothing text DEFAULT NULL,
    UNIQUE (name),
    CONSTRAINT named CHECK (length(name) > 2 AND name <> 'bad' OR note IS NULL)
);
CREATE INDEX items_code ON items (code, price);
CREATE TABLE orders (
    id bigint PRIMARY KEY,
    item integer NOT NULL REFERENCES items,
    quantity smallint CHECK (quantity BETWEEN 1 AND 100),
    "Odd Name" uuid,
    kind text CHECK (kind IN ('a', 'b')),
    day date,
    ratio double precision DEFAULT 1.5 CHECK (ratio > 0 AND NOT (ratio = 3)),
    data bytea,
    "order" integer CHECK ("order" <> -5),
    UNIQUE (item, "order")
);
CREATE UNIQUE INDEX orders_day ON orders (day, item);
CREATE TABLE lines (
    order_id bigint,
    number smallint,
    item integer,
    "position" integer,
    PRIMARY KEY (order_id, number),
    CONSTRAINT lines_of FOREIGN KEY (order_id) REFERENCES orders,
    FOREIGN KEY (item, "position") REFERENCES orders (item, "order")
);
CREATE TABLE plain (a integer, b text);
CREATE FUNCTION total(a integer, b integer DEFAULT 2) RETURNS integer LANGUAGE sql IMMUTABLE STRICT AS 'SELECT a + b';
CREATE FUNCTION rows_of(n integer) RETURNS TABLE (x integer, y text) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT id, name::text FROM items WHERE id < n; END $$;
CREATE FUNCTION item_of(integer) RETURNS SETOF items LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT * FROM items WHERE id = $1 $$;
CREATE FUNCTION nothing(word text DEFAULT 'x') RETURNS void LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
CREATE PROCEDURE buy(item integer, INOUT rest bigint) LANGUAGE plpgsql AS $$ BEGIN UPDATE items SET stock = stock - 1 WHERE id = item RETURNING stock INTO rest; END $$;
CREATE ROLE kiln_catalogs_shop LOGIN;
GRANT SELECT, INSERT ON items TO kiln_catalogs_shop;
GRANT SELECT ON orders TO PUBLIC;
REVOKE EXECUTE ON FUNCTION total FROM PUBLIC;
GRANT EXECUTE ON FUNCTION total TO kiln_catalogs_shop;
