-- Transactions on one range of entries each.
--
-- The same file runs on Kiln and on PostgreSQL. Each computes for so many rounds before it ends. The digest of an entry is its counter
-- times 7 modulo 10,007, so that it is known whether both are of one write. All entries of a range are there whenever a
-- transaction looks. Errors raised here:
--   RG001  the range has not as many entries as it should

-- Adds one to each counter in a range.
CREATE PROCEDURE update_range(
    low          INTEGER,
    high         INTEGER,
    rounds       INTEGER,
    OUT changed  BIGINT,
    OUT computed BIGINT
)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE entries SET counter = counter + 1, digest = (counter + 1) * 7 % 10007
    WHERE entry_id BETWEEN low AND high;
    -- The driver's check finds out when there are fewer.
    changed := high - low + 1;
    computed := changed;
    FOR round_number IN 1 .. rounds LOOP
        computed := (computed * 1103 + round_number) % 1000003;
    END LOOP;
END
$$;

-- Adds the counters in a range up.
CREATE PROCEDURE read_range(
    low          INTEGER,
    high         INTEGER,
    rounds       INTEGER,
    OUT changed  BIGINT,
    OUT computed BIGINT
)
LANGUAGE plpgsql AS $$
DECLARE
    found_entries BIGINT;
BEGIN
    changed := 0;
    SELECT count(*), sum(counter) INTO found_entries, computed
    FROM entries
    WHERE entry_id BETWEEN low AND high;
    IF found_entries <> high - low + 1 THEN
        RAISE EXCEPTION 'there are % entries from % to %', found_entries, low, high
            USING ERRCODE = 'RG001';
    END IF;
    FOR round_number IN 1 .. rounds LOOP
        computed := (computed * 1103 + round_number) % 1000003;
    END LOOP;
END
$$;

-- Deletes the entries of a range and makes them anew: the first one with the sum of the counters and one more, the others with one.
CREATE PROCEDURE replace_range(
    low          INTEGER,
    high         INTEGER,
    rounds       INTEGER,
    OUT changed  BIGINT,
    OUT computed BIGINT
)
LANGUAGE plpgsql AS $$
DECLARE
    total BIGINT;
BEGIN
    SELECT count(*), sum(counter) INTO changed, total
    FROM entries
    WHERE entry_id BETWEEN low AND high;
    IF changed <> high - low + 1 THEN
        RAISE EXCEPTION 'there are % entries from % to %', changed, low, high
            USING ERRCODE = 'RG001';
    END IF;
    DELETE FROM entries WHERE entry_id BETWEEN low AND high;
    total := total + 1;
    FOR id IN low .. high LOOP
        INSERT INTO entries (entry_id, counter, digest) VALUES (id, total, total * 7 % 10007);
        total := 1;
    END LOOP;
    computed := changed;
    FOR round_number IN 1 .. rounds LOOP
        computed := (computed * 1103 + round_number) % 1000003;
    END LOOP;
END
$$;
