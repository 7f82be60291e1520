-- Ways to break a TPC-C database, each with the conditions of audit.sql that must report it (others may as well).
-- They assume districts of 60 customers, of whose orders 1 to 42 are delivered, and 57 and later not yet.

-- breaks 1, 8: a payment that reached the district but not the warehouse
UPDATE warehouse SET w_ytd = w_ytd - 0.01 WHERE w_id = 1;

-- breaks 1, 9: a payment that reached the warehouse but not the district
UPDATE district SET d_ytd = d_ytd - 0.01 WHERE d_w_id = 1 AND d_id = 3;

-- breaks 2a, 2b: an order number handed out and never used
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 3;

-- breaks 2b: a new order that no order number covers
INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (2000000, 3, 1);

-- breaks 2a, 4b: the last orders lost, their lines left behind
DELETE FROM orders WHERE o_w_id = 1 AND o_d_id = 3 AND o_id >= 60;

-- breaks 3, 5, 11a: a new order lost from the middle of the queue
DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 3 AND no_o_id = 57;

-- breaks 4a, 6: a line lost
DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 5 AND ol_number = 2;

-- breaks 4a, 6: a first line lost
DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 5 AND ol_number = 1;

-- breaks 4a, 6: an order that lost all its lines
DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 5;

-- breaks 4b: a line of an order that does not exist
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)
VALUES (2000000, 3, 1, 1, 1, 1, NULL, 5, 1.00, 'nobody');

-- breaks 5, 7: an order delivered that is still queued
UPDATE orders SET o_carrier_id = 4 WHERE o_w_id = 1 AND o_d_id = 3 AND o_id = 59;

-- breaks 5, 7: a delivered order without its carrier
UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 3 AND o_id = 5;

-- breaks 6: lines moved from one order to its neighbour, the district's sum unchanged
UPDATE orders SET o_ol_cnt = o_ol_cnt + CASE WHEN o_id = 5 THEN 1 ELSE -1 END WHERE o_w_id = 1 AND o_d_id = 3 AND o_id BETWEEN 5 AND 6;

-- breaks 7: one line of a delivered order not marked
UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 5 AND ol_number = 2;

-- breaks 7, 12: one line delivered too early
UPDATE order_line SET ol_delivery_d = TIMESTAMP '2020-01-01 00:00:00' WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 59 AND ol_number = 2;

-- breaks 8, 9: a history row lost
DELETE FROM history WHERE h_w_id = 1 AND h_d_id = 3 AND h_c_w_id = 1 AND h_c_d_id = 3 AND h_c_id = 7;

-- breaks 8, 9, 10: a payment entered twice
INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
VALUES (7, 3, 1, 3, 1, TIMESTAMP '2020-01-01 00:00:00', 1.00, 'twice');

-- breaks 10: a payment credited to the wrong customer
UPDATE customer SET c_ytd_payment = c_ytd_payment + 5, c_balance = c_balance - 5 WHERE c_w_id = 1 AND c_d_id = 3 AND c_id = 7;

-- breaks 11a: a delivery that did not count
UPDATE customer SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = 1 AND c_d_id = 3 AND c_id = 7;

-- breaks 11b: an order of the population that looks undelivered
UPDATE order_line SET ol_amount = 1.00 WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 5 AND ol_number = 1;

-- breaks 12: a balance that missed a delivery
UPDATE customer SET c_balance = c_balance - 1.00 WHERE c_w_id = 1 AND c_d_id = 3 AND c_id = 7;
