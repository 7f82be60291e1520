-- SmallBank's six transactions (Alomari et al., ICDE 2008).
--
-- The same file runs on Kiln and on PostgreSQL. Procedures that bring money into the bank or take it out return the
-- change of the bank's total, so that a driver can tell what the total must be. Errors raised here:
--   SB001  no such customer
--   SB002  an amount that is negative
--   SB003  insufficient funds

-- Moves all of one customer's money to the checking account of another.
CREATE PROCEDURE amalgamate(from_id INTEGER, to_id INTEGER, OUT moved NUMERIC)
LANGUAGE plpgsql AS $$
DECLARE
    from_name        VARCHAR(64);
    to_name          VARCHAR(64);
    savings_balance  NUMERIC(18, 2);
    checking_balance NUMERIC(18, 2);
BEGIN
    SELECT name INTO from_name FROM accounts WHERE customer_id = from_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no customer %', from_id USING ERRCODE = 'SB001';
    END IF;
    SELECT name INTO to_name FROM accounts WHERE customer_id = to_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no customer %', to_id USING ERRCODE = 'SB001';
    END IF;

    SELECT balance INTO savings_balance FROM savings WHERE customer_id = from_id;
    SELECT balance INTO checking_balance FROM checking WHERE customer_id = from_id;
    moved := savings_balance + checking_balance;

    UPDATE savings SET balance = 0 WHERE customer_id = from_id;
    UPDATE checking SET balance = 0 WHERE customer_id = from_id;
    UPDATE checking SET balance = balance + moved WHERE customer_id = to_id;
END
$$;

-- The sum of a customer's two balances.
CREATE PROCEDURE balance(id INTEGER, OUT total NUMERIC)
LANGUAGE plpgsql AS $$
DECLARE
    customer_name    VARCHAR(64);
    savings_balance  NUMERIC(18, 2);
    checking_balance NUMERIC(18, 2);
BEGIN
    SELECT name INTO customer_name FROM accounts WHERE customer_id = id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no customer %', id USING ERRCODE = 'SB001';
    END IF;
    SELECT savings.balance INTO savings_balance FROM savings WHERE customer_id = id;
    SELECT checking.balance INTO checking_balance FROM checking WHERE customer_id = id;
    total := savings_balance + checking_balance;
END
$$;

-- Pays an amount into a checking account.
CREATE PROCEDURE deposit_checking(id INTEGER, amount NUMERIC, OUT change NUMERIC)
LANGUAGE plpgsql AS $$
DECLARE
    customer_name VARCHAR(64);
BEGIN
    IF amount < 0 THEN
        RAISE EXCEPTION 'cannot deposit %', amount USING ERRCODE = 'SB002';
    END IF;
    SELECT name INTO customer_name FROM accounts WHERE customer_id = id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no customer %', id USING ERRCODE = 'SB001';
    END IF;
    UPDATE checking SET balance = balance + amount WHERE customer_id = id;
    change := amount;
END
$$;

-- Moves an amount from one checking account to another.
CREATE PROCEDURE send_payment(from_id INTEGER, to_id INTEGER, amount NUMERIC)
LANGUAGE plpgsql AS $$
DECLARE
    from_name VARCHAR(64);
    to_name   VARCHAR(64);
    available NUMERIC(18, 2);
BEGIN
    SELECT name INTO from_name FROM accounts WHERE customer_id = from_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no customer %', from_id USING ERRCODE = 'SB001';
    END IF;
    SELECT name INTO to_name FROM accounts WHERE customer_id = to_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no customer %', to_id USING ERRCODE = 'SB001';
    END IF;

    SELECT balance INTO available FROM checking WHERE customer_id = from_id;
    IF available < amount THEN
        RAISE EXCEPTION 'customer % has % and cannot send %', from_id, available, amount
            USING ERRCODE = 'SB003';
    END IF;
    UPDATE checking SET balance = balance - amount WHERE customer_id = from_id;
    UPDATE checking SET balance = balance + amount WHERE customer_id = to_id;
END
$$;

-- Adds an amount, which may be negative, to a savings account.
CREATE PROCEDURE transact_savings(id INTEGER, amount NUMERIC, OUT change NUMERIC)
LANGUAGE plpgsql AS $$
DECLARE
    customer_name VARCHAR(64);
    available     NUMERIC(18, 2);
BEGIN
    SELECT name INTO customer_name FROM accounts WHERE customer_id = id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no customer %', id USING ERRCODE = 'SB001';
    END IF;
    SELECT balance INTO available FROM savings WHERE customer_id = id;
    IF available + amount < 0 THEN
        RAISE EXCEPTION 'customer % has % and cannot withdraw %', id, available, -amount
            USING ERRCODE = 'SB003';
    END IF;
    UPDATE savings SET balance = balance + amount WHERE customer_id = id;
    change := amount;
END
$$;

-- Draws a check on the checking account; an overdraft costs a penalty of one.
CREATE PROCEDURE write_check(id INTEGER, amount NUMERIC, OUT change NUMERIC)
LANGUAGE plpgsql AS $$
DECLARE
    customer_name    VARCHAR(64);
    savings_balance  NUMERIC(18, 2);
    checking_balance NUMERIC(18, 2);
BEGIN
    SELECT name INTO customer_name FROM accounts WHERE customer_id = id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no customer %', id USING ERRCODE = 'SB001';
    END IF;
    SELECT balance INTO savings_balance FROM savings WHERE customer_id = id;
    SELECT balance INTO checking_balance FROM checking WHERE customer_id = id;
    change := -amount;
    IF savings_balance + checking_balance < amount THEN
        change := change - 1;
    END IF;
    UPDATE checking SET balance = balance + change WHERE customer_id = id;
END
$$;
