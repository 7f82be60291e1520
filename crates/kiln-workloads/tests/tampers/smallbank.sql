-- Ways to break a SmallBank database, each with the conditions of audit.sql that must report it ("money" is
-- the driver's own check of the total).

-- breaks savings: a savings account lost
DELETE FROM savings WHERE customer_id = 3;

-- breaks checking: a checking account lost
DELETE FROM checking WHERE customer_id = 3;

-- breaks savings owner, checking owner: a customer lost
DELETE FROM accounts WHERE customer_id = 3;

-- breaks savings overdraft, money: a withdrawal without funds
UPDATE savings SET balance = balance - 1000000 WHERE customer_id = 3;

-- breaks money: a deposit lost
UPDATE checking SET balance = balance - 0.01 WHERE customer_id = 3;
