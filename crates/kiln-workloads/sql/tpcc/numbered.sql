-- New-Order and Stock-Level when the terminals number the orders (fast order ids; Silo, STO section 3.3), to be run after
-- procedures.sql. An order's number is drawn before the transaction begins and is kept over all its attempts, so New-Orders of a
-- district do not conflict over d_next_o_id, which keeps the value that the population gave it. An order that rolls back leaves a
-- gap. Otherwise both are as in procedures.sql.

DROP PROCEDURE new_order;
DROP PROCEDURE stock_level;

CREATE PROCEDURE new_order(
    warehouse_id         SMALLINT,
    district_id          SMALLINT,
    customer_id          INTEGER,
    entry_date           TIMESTAMP,
    item_ids             INTEGER[],
    supply_warehouse_ids SMALLINT[],
    quantities           SMALLINT[],
    order_number         INTEGER,
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

    order_id := order_number;
    SELECT d_tax INTO district_tax
    FROM district
    WHERE d_w_id = warehouse_id AND d_id = district_id;

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

-- next_order_id is the number that the next order of the district would get.
CREATE PROCEDURE stock_level(
    warehouse_id  SMALLINT,
    district_id   SMALLINT,
    threshold     SMALLINT,
    next_order_id INTEGER,
    OUT low_stock BIGINT
)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT count(DISTINCT s_i_id) INTO low_stock
    FROM order_line
    JOIN stock ON s_w_id = warehouse_id AND s_i_id = ol_i_id
    WHERE ol_w_id = warehouse_id AND ol_d_id = district_id
        AND ol_o_id >= next_order_id - 20 AND ol_o_id < next_order_id
        AND s_quantity < threshold;
END
$$;
