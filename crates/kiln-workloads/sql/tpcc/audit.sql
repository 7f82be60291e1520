-- TPC-C, standard specification revision 5.11, clause 3.3.2: the twelve consistency conditions.
--
-- Each query returns the rows that violate its condition: no rows, it holds. The specification asks for conditions
-- 1 to 4 after a run and for all twelve on the population; they are written here so that all of them hold
-- at any time. Joins start at the table whose rows drive them and follow indexes.
-- The population gives every warehouse, district and customer a history row and nothing deletes one, so
-- joins that start at history miss nobody; a row lost all the same would show in conditions 8 and 9.

-- condition 1: w_ytd is the sum of d_ytd over the warehouse's districts
SELECT w_id, w_ytd, sum(d_ytd) AS districts_ytd
FROM warehouse
LEFT JOIN district ON d_w_id = w_id
GROUP BY w_id, w_ytd
HAVING w_ytd <> coalesce(sum(d_ytd), 0);

-- condition 2a: d_next_o_id - 1 is the district's greatest order number
SELECT d_w_id, d_id, d_next_o_id, max(o_id) AS last_order
FROM district
LEFT JOIN orders ON o_w_id = d_w_id AND o_d_id = d_id
GROUP BY d_w_id, d_id, d_next_o_id
HAVING d_next_o_id - 1 <> coalesce(max(o_id), 0);

-- condition 2b: and its greatest new-order number, when it has new orders
SELECT d_w_id, d_id, d_next_o_id, max(no_o_id) AS last_new_order
FROM district
JOIN new_order ON no_w_id = d_w_id AND no_d_id = d_id
GROUP BY d_w_id, d_id, d_next_o_id
HAVING d_next_o_id - 1 <> max(no_o_id);

-- condition 3: the new orders of a district are numbered without gaps
SELECT no_w_id, no_d_id, min(no_o_id) AS oldest, max(no_o_id) AS newest, count(*) AS new_orders
FROM new_order
GROUP BY no_w_id, no_d_id
HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*);

-- condition 4a: a district's orders have as many lines as the sum of their o_ol_cnt says
-- (line 1 stands for its order in the sum; an order without lines counts all the same)
SELECT o_w_id, o_d_id, count(ol_number) AS line_count
FROM orders
LEFT JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
GROUP BY o_w_id, o_d_id
HAVING count(ol_number) <> sum(CASE WHEN ol_number IS NULL OR ol_number = 1 THEN o_ol_cnt ELSE 0 END);

-- condition 4b: and the district has no lines besides those
SELECT ol_w_id, ol_d_id, ol_o_id, ol_number
FROM order_line
LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
WHERE o_id IS NULL;

-- condition 5: an order has no carrier if and only if it is a new order
SELECT o_w_id, o_d_id, o_id, o_carrier_id
FROM orders
LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
WHERE (o_carrier_id IS NULL AND no_o_id IS NULL)
    OR (o_carrier_id IS NOT NULL AND no_o_id IS NOT NULL);

-- condition 6: an order has o_ol_cnt lines
SELECT o_w_id, o_d_id, o_id, o_ol_cnt, count(ol_number) AS line_count
FROM orders
LEFT JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
GROUP BY o_w_id, o_d_id, o_id, o_ol_cnt
HAVING count(ol_number) <> o_ol_cnt;

-- condition 7: a line has no delivery date if and only if its order has no carrier
SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id
FROM order_line
JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
WHERE (ol_delivery_d IS NULL AND o_carrier_id IS NOT NULL)
    OR (ol_delivery_d IS NOT NULL AND o_carrier_id IS NULL);

-- condition 8: w_ytd is the sum of the payments to the warehouse
SELECT w_id, w_ytd, sum(h_amount) AS payments
FROM history
JOIN warehouse ON w_id = h_w_id
GROUP BY w_id, w_ytd
HAVING w_ytd <> sum(h_amount);

-- condition 9: d_ytd is the sum of the payments to the district
SELECT d_w_id, d_id, d_ytd, sum(h_amount) AS payments
FROM history
JOIN district ON d_w_id = h_w_id AND d_id = h_d_id
GROUP BY d_w_id, d_id, d_ytd
HAVING d_ytd <> sum(h_amount);

-- condition 10: c_balance is what was delivered to the customer less what the customer paid
-- (delivered is c_balance + c_ytd_payment by condition 12, so this says that c_ytd_payment is what was paid)
SELECT c_w_id, c_d_id, c_id, c_ytd_payment, sum(h_amount) AS payments
FROM history
JOIN customer ON c_w_id = h_c_w_id AND c_d_id = h_c_d_id AND c_id = h_c_id
GROUP BY c_w_id, c_d_id, c_id, c_ytd_payment
HAVING c_ytd_payment <> sum(h_amount);

-- condition 11a: a customer's orders that are not new orders were delivered by the population or by
-- c_delivery_cnt deliveries since (only lines that the population delivered have an amount of zero)
SELECT c_w_id, c_d_id, c_id, c_delivery_cnt, count(o_id) AS orders, count(no_o_id) AS new_orders,
    count(ol_number) AS delivered_by_population
FROM customer
LEFT JOIN orders ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
LEFT JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    AND ol_number = 1 AND ol_amount = 0
GROUP BY c_w_id, c_d_id, c_id, c_delivery_cnt
HAVING count(o_id) - count(no_o_id) - count(ol_number) <> c_delivery_cnt;

-- condition 11b: the population delivered 2,100 orders for the 3,000 customers of a district
SELECT c_w_id, c_d_id, count(DISTINCT c_id) AS customers, count(ol_number) AS delivered_by_population
FROM customer
LEFT JOIN orders ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
LEFT JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    AND ol_number = 1 AND ol_amount = 0
GROUP BY c_w_id, c_d_id
HAVING count(DISTINCT c_id) * 7 / 10 <> count(ol_number);

-- condition 12: c_balance + c_ytd_payment is what was delivered to the customer
SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, sum(ol_amount) AS delivered
FROM customer
LEFT JOIN orders ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
LEFT JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    AND ol_delivery_d IS NOT NULL
GROUP BY c_w_id, c_d_id, c_id, c_balance, c_ytd_payment
HAVING c_balance + c_ytd_payment <> coalesce(sum(ol_amount), 0);
