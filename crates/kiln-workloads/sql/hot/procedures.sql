-- The hot-record microbenchmark's only transaction.
--
-- The same file runs on Kiln and on PostgreSQL. Errors raised here:
--   HR001  no such counter

-- Adds one to a counter.
CREATE PROCEDURE increment(id INTEGER)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE counters SET count = count + 1 WHERE counter_id = id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no counter %', id USING ERRCODE = 'HR001';
    END IF;
END
$$;
