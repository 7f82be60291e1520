-- SmallBank: what must hold at any time.
--
-- Each query returns the rows that violate its condition: no rows, it holds. That money is conserved (the sum of all balances is the
-- population's plus the changes that the procedures returned) needs those changes, so the driver
-- checks it.

-- savings: every customer has a savings account
SELECT accounts.customer_id
FROM accounts
LEFT JOIN savings ON savings.customer_id = accounts.customer_id
WHERE savings.customer_id IS NULL;

-- checking: every customer has a checking account
SELECT accounts.customer_id
FROM accounts
LEFT JOIN checking ON checking.customer_id = accounts.customer_id
WHERE checking.customer_id IS NULL;

-- savings owner: every savings account has a customer
SELECT savings.customer_id
FROM savings
LEFT JOIN accounts ON accounts.customer_id = savings.customer_id
WHERE accounts.customer_id IS NULL;

-- checking owner: every checking account has a customer
SELECT checking.customer_id
FROM checking
LEFT JOIN accounts ON accounts.customer_id = checking.customer_id
WHERE accounts.customer_id IS NULL;

-- savings overdraft: no savings account is overdrawn
SELECT customer_id, balance
FROM savings
WHERE balance < 0;
