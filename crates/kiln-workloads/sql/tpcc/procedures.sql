-- TPC-C, standard specification revision 5.11, clause 2: the five transactions.
--
-- The same file runs on Kiln and on PostgreSQL. Identifiers and dates come from the caller, so that
-- a call has the same effect wherever it runs. Errors raised here:
--   TC001  an item number that no item has: the 1 % of New-Order that must roll back (clause 2.4.1.4)
--   TC002  no such customer

-- New-Order (clause 2.4). The three arrays hold one element per order line. brand_generic holds one letter per
-- line: B when both the item and its stock are marked ORIGINAL, G otherwise. An unused item number is met only when its
-- turn comes, after the lines before it have been processed in full, as clause 2.4.2.3 demands.
CREATE PROCEDURE new_order(
    warehouse_id         SMALLINT,
    district_id          SMALLINT,
    customer_id          INTEGER,
    entry_date           TIMESTAMP,
    item_ids             INTEGER[],
    supply_warehouse_ids SMALLINT[],
    quantities           SMALLINT[],
    OUT order_id          INTEGER,
    OUT customer_last     VARCHAR(16),
    OUT customer_credit   CHAR(2),
    OUT customer_discount NUMERIC,
    OUT warehouse_tax     NUMERIC,
    OUT district_tax      NUMERIC,
    OUT total             NUMERIC,
    OUT brand_generic     TEXT
)
LANGUAGE plpgsql AS $$
DECLARE
    line_count          INTEGER := array_length(item_ids, 1);
    all_local           SMALLINT := 1;
    remote              INTEGER;
    item_id             INTEGER;
    supply_warehouse_id SMALLINT;
    quantity            SMALLINT;
    item_price          NUMERIC(5, 2);
    item_name           VARCHAR(24);
    item_data           VARCHAR(50);
    stock_data          VARCHAR(50);
    district_info       CHAR(24);
    amount              NUMERIC(6, 2);
BEGIN
    total := 0;
    brand_generic := '';

    SELECT w_tax INTO warehouse_tax FROM warehouse WHERE w_id = warehouse_id;

    SELECT c_last, c_credit, c_discount
    INTO customer_last, customer_credit, customer_discount
    FROM customer
    WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_id = customer_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'district % of warehouse % has no customer %',
            district_id, warehouse_id, customer_id
            USING ERRCODE = 'TC002';
    END IF;

    UPDATE district SET d_next_o_id = d_next_o_id + 1
    WHERE d_w_id = warehouse_id AND d_id = district_id
    RETURNING d_next_o_id - 1, d_tax INTO order_id, district_tax;

    FOR line IN 1 .. line_count LOOP
        item_id := item_ids[line];
        supply_warehouse_id := supply_warehouse_ids[line];
        quantity := quantities[line];
        remote := 0;
        IF supply_warehouse_id <> warehouse_id THEN
            remote := 1;
            all_local := 0;
        END IF;

        SELECT i_price, i_name, i_data INTO item_price, item_name, item_data
        FROM item
        WHERE i_id = item_id;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'item number % is not valid', item_id USING ERRCODE = 'TC001';
        END IF;

        UPDATE stock
        SET s_quantity = CASE
                WHEN s_quantity >= quantity + 10 THEN s_quantity - quantity
                ELSE s_quantity - quantity + 91
            END,
            s_ytd = s_ytd + quantity,
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + remote
        WHERE s_w_id = supply_warehouse_id AND s_i_id = item_id
        RETURNING s_data,
            CASE district_id
                WHEN 1 THEN s_dist_01
                WHEN 2 THEN s_dist_02
                WHEN 3 THEN s_dist_03
                WHEN 4 THEN s_dist_04
                WHEN 5 THEN s_dist_05
                WHEN 6 THEN s_dist_06
                WHEN 7 THEN s_dist_07
                WHEN 8 THEN s_dist_08
                WHEN 9 THEN s_dist_09
                WHEN 10 THEN s_dist_10
            END
        INTO stock_data, district_info;

        amount := quantity * item_price;
        total := total + amount;
        IF item_data LIKE '%ORIGINAL%' AND stock_data LIKE '%ORIGINAL%' THEN
            brand_generic := brand_generic || 'B';
        ELSE
            brand_generic := brand_generic || 'G';
        END IF;

        INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id,
            ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)
        VALUES (order_id, district_id, warehouse_id, line, item_id, supply_warehouse_id,
            NULL, quantity, amount, district_info);
    END LOOP;

    INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
    VALUES (order_id, district_id, warehouse_id, customer_id, entry_date, NULL, line_count, all_local);
    INSERT INTO new_order (no_o_id, no_d_id, no_w_id)
    VALUES (order_id, district_id, warehouse_id);

    total := round(total * (1 - customer_discount) * (1 + warehouse_tax + district_tax), 2);
END
$$;

-- Payment (clause 2.5). The customer is given by number (by_id), or by last name (by_id is NULL): then it is the one
-- in the middle, at position ceil(n / 2), of the n customers of that name ordered by first name.
-- customer_data is NULL unless the customer's credit is bad.
CREATE PROCEDURE payment(
    warehouse_id          SMALLINT,
    district_id           SMALLINT,
    customer_warehouse_id SMALLINT,
    customer_district_id  SMALLINT,
    by_id                 INTEGER,
    by_last               VARCHAR(16),
    amount                NUMERIC,
    payment_date          TIMESTAMP,
    OUT warehouse_street_1    VARCHAR(20),
    OUT warehouse_street_2    VARCHAR(20),
    OUT warehouse_city        VARCHAR(20),
    OUT warehouse_state       CHAR(2),
    OUT warehouse_zip         CHAR(9),
    OUT district_street_1     VARCHAR(20),
    OUT district_street_2     VARCHAR(20),
    OUT district_city         VARCHAR(20),
    OUT district_state        CHAR(2),
    OUT district_zip          CHAR(9),
    OUT customer_id           INTEGER,
    OUT customer_first        VARCHAR(16),
    OUT customer_middle       CHAR(2),
    OUT customer_last         VARCHAR(16),
    OUT customer_street_1     VARCHAR(20),
    OUT customer_street_2     VARCHAR(20),
    OUT customer_city         VARCHAR(20),
    OUT customer_state        CHAR(2),
    OUT customer_zip          CHAR(9),
    OUT customer_phone        CHAR(16),
    OUT customer_since        TIMESTAMP,
    OUT customer_credit       CHAR(2),
    OUT customer_credit_limit NUMERIC,
    OUT customer_discount     NUMERIC,
    OUT customer_balance      NUMERIC,
    OUT customer_data         TEXT
)
LANGUAGE plpgsql AS $$
DECLARE
    namesakes      BIGINT;
    warehouse_name VARCHAR(10);
    district_name  VARCHAR(10);
BEGIN
    customer_id := by_id;
    IF by_id IS NULL THEN
        SELECT count(*) INTO namesakes
        FROM customer
        WHERE c_w_id = customer_warehouse_id AND c_d_id = customer_district_id AND c_last = by_last;

        SELECT c_id INTO customer_id
        FROM customer
        WHERE c_w_id = customer_warehouse_id AND c_d_id = customer_district_id AND c_last = by_last
        ORDER BY c_first, c_id
        LIMIT 1 OFFSET (namesakes - 1) / 2;
    END IF;

    UPDATE warehouse SET w_ytd = w_ytd + amount
    WHERE w_id = warehouse_id
    RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip
    INTO warehouse_name, warehouse_street_1, warehouse_street_2, warehouse_city,
        warehouse_state, warehouse_zip;

    UPDATE district SET d_ytd = d_ytd + amount
    WHERE d_w_id = warehouse_id AND d_id = district_id
    RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip
    INTO district_name, district_street_1, district_street_2, district_city,
        district_state, district_zip;

    UPDATE customer
    SET c_balance = c_balance - amount,
        c_ytd_payment = c_ytd_payment + amount,
        c_payment_cnt = c_payment_cnt + 1
    WHERE c_w_id = customer_warehouse_id AND c_d_id = customer_district_id AND c_id = customer_id
    RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone,
        c_since, c_credit, c_credit_lim, c_discount, c_balance
    INTO customer_first, customer_middle, customer_last, customer_street_1, customer_street_2,
        customer_city, customer_state, customer_zip, customer_phone,
        customer_since, customer_credit, customer_credit_limit, customer_discount, customer_balance;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'district % of warehouse % has no such customer',
            customer_district_id, customer_warehouse_id
            USING ERRCODE = 'TC002';
    END IF;

    -- A separate statement, so that the nine customers in ten of good credit do not rewrite
    -- their longest column.
    IF customer_credit = 'BC' THEN
        UPDATE customer
        SET c_data = left(customer_id || ' ' || customer_district_id || ' ' || customer_warehouse_id
            || ' ' || district_id || ' ' || warehouse_id || ' ' || amount || '|' || c_data, 500)
        WHERE c_w_id = customer_warehouse_id AND c_d_id = customer_district_id AND c_id = customer_id
        RETURNING left(c_data, 200) INTO customer_data;
    END IF;

    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (customer_id, customer_district_id, customer_warehouse_id, district_id, warehouse_id,
        payment_date, amount, warehouse_name || '    ' || district_name);
END
$$;

-- Order-Status (clause 2.6): the latest order of a customer, one row per order line. The customer is
-- given as in payment.
CREATE FUNCTION order_status(
    warehouse_id SMALLINT,
    district_id  SMALLINT,
    by_id        INTEGER,
    by_last      VARCHAR(16)
)
RETURNS TABLE (
    customer_id         INTEGER,
    customer_first      VARCHAR(16),
    customer_middle     CHAR(2),
    customer_last       VARCHAR(16),
    customer_balance    NUMERIC,
    order_id            INTEGER,
    entry_date          TIMESTAMP,
    carrier_id          SMALLINT,
    line_number         SMALLINT,
    item_id             INTEGER,
    supply_warehouse_id SMALLINT,
    quantity            SMALLINT,
    amount              NUMERIC,
    delivery_date       TIMESTAMP
)
LANGUAGE plpgsql AS $$
DECLARE
    namesakes BIGINT;
BEGIN
    IF by_id IS NULL THEN
        SELECT count(*) INTO namesakes
        FROM customer
        WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_last = by_last;

        SELECT c_id, c_first, c_middle, c_last, c_balance
        INTO customer_id, customer_first, customer_middle, customer_last, customer_balance
        FROM customer
        WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_last = by_last
        ORDER BY c_first, c_id
        LIMIT 1 OFFSET (namesakes - 1) / 2;
    ELSE
        SELECT c_id, c_first, c_middle, c_last, c_balance
        INTO customer_id, customer_first, customer_middle, customer_last, customer_balance
        FROM customer
        WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_id = by_id;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'district % of warehouse % has no such customer', district_id, warehouse_id
            USING ERRCODE = 'TC002';
    END IF;

    SELECT o_id, o_entry_d, o_carrier_id
    INTO order_id, entry_date, carrier_id
    FROM orders
    WHERE o_w_id = warehouse_id AND o_d_id = district_id AND o_c_id = customer_id
    ORDER BY o_id DESC
    LIMIT 1;

    RETURN QUERY
    SELECT customer_id, customer_first, customer_middle, customer_last, customer_balance,
        order_id, entry_date, carrier_id,
        ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
    FROM order_line
    WHERE ol_w_id = warehouse_id AND ol_d_id = district_id AND ol_o_id = order_id
    ORDER BY ol_number;
END
$$;

-- Delivery (clause 2.7): delivers the oldest undelivered order of each of the ten districts and returns
-- one row for each; a district without one is skipped and returns no row.
CREATE FUNCTION delivery(
    warehouse_id  SMALLINT,
    carrier       SMALLINT,
    delivery_date TIMESTAMP
)
RETURNS TABLE (
    district_id INTEGER,
    order_id    INTEGER
)
LANGUAGE plpgsql AS $$
DECLARE
    oldest_id   INTEGER;
    customer_id INTEGER;
    line_amount NUMERIC(6, 2);
    total       NUMERIC(12, 2);
BEGIN
    FOR district IN 1 .. 10 LOOP
        SELECT no_o_id INTO oldest_id
        FROM new_order
        WHERE no_w_id = warehouse_id AND no_d_id = district
        ORDER BY no_o_id
        LIMIT 1;
        CONTINUE WHEN NOT FOUND;

        DELETE FROM new_order
        WHERE no_w_id = warehouse_id AND no_d_id = district AND no_o_id = oldest_id;

        UPDATE orders SET o_carrier_id = carrier
        WHERE o_w_id = warehouse_id AND o_d_id = district AND o_id = oldest_id
        RETURNING o_c_id INTO customer_id;

        total := 0;
        FOR line_amount IN
            UPDATE order_line SET ol_delivery_d = delivery_date
            WHERE ol_w_id = warehouse_id AND ol_d_id = district AND ol_o_id = oldest_id
            RETURNING ol_amount
        LOOP
            total := total + line_amount;
        END LOOP;

        UPDATE customer
        SET c_balance = c_balance + total,
            c_delivery_cnt = c_delivery_cnt + 1
        WHERE c_w_id = warehouse_id AND c_d_id = district AND c_id = customer_id;

        RETURN QUERY SELECT district, oldest_id;
    END LOOP;
END
$$;

-- Stock-Level (clause 2.8): how many of the items in the district's last twenty orders are below the
-- threshold in the warehouse's stock.
CREATE PROCEDURE stock_level(
    warehouse_id SMALLINT,
    district_id  SMALLINT,
    threshold    SMALLINT,
    OUT low_stock BIGINT
)
LANGUAGE plpgsql AS $$
DECLARE
    next_order_id INTEGER;
BEGIN
    SELECT d_next_o_id INTO next_order_id
    FROM district
    WHERE d_w_id = warehouse_id AND d_id = district_id;

    SELECT count(DISTINCT s_i_id) INTO low_stock
    FROM order_line
    JOIN stock ON s_w_id = warehouse_id AND s_i_id = ol_i_id
    WHERE ol_w_id = warehouse_id AND ol_d_id = district_id
        AND ol_o_id >= next_order_id - 20 AND ol_o_id < next_order_id
        AND s_quantity < threshold;
END
$$;
