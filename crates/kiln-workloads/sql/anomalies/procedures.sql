-- Anomalies: transactions that provoke every way in which isolation can fail.
--
-- The same file runs on Kiln and on PostgreSQL. Every value that is written to a stamp is written by one operation of one
-- call only, so that whoever reads it tells whom it read from. Errors raised here:
--   AN001  the call asked for it, or had no funds: expected
--   AN002  a state was seen that no serial order has: never

-- A list of operations, one after the other. Stamps count up from first_stamp. seen depends on all that was read.
--    1  read a register                       9  read items by a range of ids
--    2  write a register without reading it  10  read the items of a bucket
--    3  read and write a register twice      11  read the first item from a bucket on
--    4  move money                           12  read the last item up to an id
--    5  read an item, which may be missing   13  delete an item and insert it again
--    6  insert or change an item             14  change the items of a bucket
--    7  delete an item                       15  fail
--    8  move an item to another bucket
CREATE PROCEDURE mixed(
    kinds       INTEGER[],
    ids         INTEGER[],
    others      INTEGER[],
    first_stamp BIGINT,
    OUT seen    NUMERIC
)
LANGUAGE plpgsql AS $$
DECLARE
    kind         INTEGER;
    key          INTEGER;
    other        INTEGER;
    fresh        BIGINT;
    found_id     INTEGER;
    found_money  BIGINT;
    found_stamp  BIGINT;
    found_mirror BIGINT;
    rows_found   BIGINT;
    stamps       NUMERIC;
    difference   NUMERIC;
BEGIN
    seen := 0;
    FOR step IN 1 .. array_length(kinds, 1) LOOP
        kind := kinds[step];
        key := ids[step];
        other := others[step];
        fresh := first_stamp + 2 * step;
        IF kind = 1 THEN
            SELECT balance, stamp INTO found_money, found_stamp FROM registers WHERE id = key;
            seen := seen + found_money + found_stamp;
        ELSIF kind = 2 THEN
            UPDATE registers SET stamp = fresh WHERE id = key;
        ELSIF kind = 3 THEN
            SELECT stamp INTO found_stamp FROM registers WHERE id = key;
            seen := seen + found_stamp;
            UPDATE registers SET stamp = fresh WHERE id = key;
            SELECT stamp INTO found_stamp FROM registers WHERE id = key;
            IF found_stamp <> fresh THEN
                RAISE EXCEPTION 'register % lost its own write', key USING ERRCODE = 'AN002';
            END IF;
            UPDATE registers SET stamp = fresh + 1 WHERE id = key;
        ELSIF kind = 4 THEN
            UPDATE registers SET balance = balance - 1 WHERE id = key;
            UPDATE registers SET balance = balance + 1 WHERE id = other;
        ELSIF kind = 5 THEN
            SELECT stamp, mirror INTO found_stamp, found_mirror FROM items WHERE id = key;
            IF FOUND THEN
                IF found_stamp + found_mirror <> 0 THEN
                    RAISE EXCEPTION 'item % is torn', key USING ERRCODE = 'AN002';
                END IF;
                seen := seen + found_stamp;
            END IF;
        ELSIF kind = 6 THEN
            SELECT stamp INTO found_stamp FROM items WHERE id = key;
            IF FOUND THEN
                UPDATE items SET stamp = fresh, mirror = -fresh WHERE id = key;
            ELSE
                INSERT INTO items (id, bucket, stamp, mirror) VALUES (key, other, fresh, -fresh);
            END IF;
        ELSIF kind = 7 THEN
            DELETE FROM items WHERE id = key;
        ELSIF kind = 8 THEN
            UPDATE items SET bucket = other, stamp = fresh, mirror = -fresh WHERE id = key;
        ELSIF kind = 9 THEN
            SELECT count(*), coalesce(sum(stamp), 0), coalesce(sum(stamp + mirror), 0)
            INTO rows_found, stamps, difference
            FROM items
            WHERE id BETWEEN key AND key + other;
            IF difference <> 0 OR rows_found > other + 1 THEN
                RAISE EXCEPTION 'items from % are torn', key USING ERRCODE = 'AN002';
            END IF;
            seen := seen + stamps;
        ELSIF kind = 10 THEN
            SELECT count(*), coalesce(sum(stamp), 0), coalesce(sum(stamp + mirror), 0)
            INTO rows_found, stamps, difference
            FROM items
            WHERE bucket = other;
            IF difference <> 0 THEN
                RAISE EXCEPTION 'items of bucket % are torn', other USING ERRCODE = 'AN002';
            END IF;
            seen := seen + stamps + rows_found;
        ELSIF kind = 11 THEN
            SELECT id, stamp INTO found_id, found_stamp
            FROM items
            WHERE bucket >= other
            ORDER BY bucket, id
            LIMIT 1;
            IF FOUND THEN
                seen := seen + found_id + found_stamp;
            END IF;
        ELSIF kind = 12 THEN
            SELECT id, stamp INTO found_id, found_stamp
            FROM items
            WHERE id <= key
            ORDER BY id DESC
            LIMIT 1;
            IF FOUND THEN
                seen := seen + found_id + found_stamp;
            END IF;
        ELSIF kind = 13 THEN
            DELETE FROM items WHERE id = key;
            INSERT INTO items (id, bucket, stamp, mirror) VALUES (key, other, fresh, -fresh);
        ELSIF kind = 14 THEN
            UPDATE items SET stamp = fresh, mirror = -fresh WHERE bucket = other;
        ELSE
            RAISE EXCEPTION 'as asked' USING ERRCODE = 'AN001';
        END IF;
    END LOOP;
END
$$;

-- Moves money, unless there is not enough of it.
CREATE PROCEDURE transfer(from_id INTEGER, to_id INTEGER, amount BIGINT, OUT available BIGINT)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE registers SET balance = balance + amount WHERE id = to_id;
    SELECT balance INTO available FROM registers WHERE id = from_id;
    IF available < amount THEN
        RAISE EXCEPTION 'register % has only %', from_id, available USING ERRCODE = 'AN001';
    END IF;
    UPDATE registers SET balance = balance - amount WHERE id = from_id;
END
$$;

-- Moves one seat to a place that is free, and another one to where the first was.
CREATE PROCEDURE shift(first_id INTEGER, second_id INTEGER, to_place INTEGER, OUT moved INTEGER)
LANGUAGE plpgsql AS $$
DECLARE
    first_place INTEGER;
    holder      INTEGER;
BEGIN
    moved := 0;
    SELECT place INTO first_place FROM seats WHERE id = first_id;
    SELECT id INTO holder FROM seats WHERE place = to_place;
    IF NOT FOUND THEN
        UPDATE seats SET place = to_place WHERE id = first_id;
        UPDATE seats SET place = first_place WHERE id = second_id;
        moved := 1;
    END IF;
END
$$;

-- Takes the first item from a bucket on, and notes its stamp's owner in a register.
CREATE PROCEDURE take(from_bucket INTEGER, register_id INTEGER, fresh BIGINT, OUT taken INTEGER)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT id INTO taken
    FROM items
    WHERE bucket >= from_bucket
    ORDER BY bucket, id
    LIMIT 1;
    IF FOUND THEN
        DELETE FROM items WHERE id = taken;
        UPDATE registers SET stamp = fresh WHERE id = register_id;
    END IF;
END
$$;

-- Adds all money up.
CREATE PROCEDURE total(expected BIGINT, OUT money NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT sum(balance) INTO money FROM registers;
    IF money <> expected THEN
        RAISE EXCEPTION 'there are % and not %', money, expected USING ERRCODE = 'AN002';
    END IF;
END
$$;

-- A list of operations, one after the other, each of which catches its errors. Stamps count up from first_stamp. caught counts
-- errors; what an operation had written until then is as it was.
--    1  move money, and note that in a register, unless there is not enough of it
--    2  insert an item, or change the one that is in the way
--    3  move a seat to a place, unless another one is there
--    4  move an item to a bucket, delete it and insert it again, and then fail
--    5  write a register, and within that insert an item and delete others of its bucket; fail if the register's money is even
CREATE PROCEDURE protected(
    kinds       INTEGER[],
    ids         INTEGER[],
    others      INTEGER[],
    first_stamp BIGINT,
    OUT caught  INTEGER
)
LANGUAGE plpgsql AS $$
DECLARE
    kind        INTEGER;
    key         INTEGER;
    other       INTEGER;
    fresh       BIGINT;
    found_id    INTEGER;
    found_stamp BIGINT;
    later_stamp BIGINT;
    available   BIGINT;
BEGIN
    caught := 0;
    FOR step IN 1 .. array_length(kinds, 1) LOOP
        kind := kinds[step];
        key := ids[step];
        other := others[step];
        fresh := first_stamp + 2 * step;
        IF kind = 1 THEN
            BEGIN
                UPDATE registers SET balance = balance + 700, stamp = fresh WHERE id = other;
                SELECT balance INTO available FROM registers WHERE id = key;
                IF available < 700 THEN
                    RAISE EXCEPTION 'register % has only %', key, available USING ERRCODE = 'AN001';
                END IF;
                UPDATE registers SET balance = balance - 700 WHERE id = key;
            EXCEPTION WHEN SQLSTATE 'AN001' THEN
                caught := caught + 1;
            END;
        ELSIF kind = 2 THEN
            BEGIN
                INSERT INTO items (id, bucket, stamp, mirror) VALUES (key, other, fresh, -fresh);
            EXCEPTION WHEN unique_violation THEN
                caught := caught + 1;
                SELECT stamp INTO found_stamp FROM items WHERE id = key;
                IF NOT FOUND THEN
                    RAISE EXCEPTION 'item % is in the way and missing', key USING ERRCODE = 'AN002';
                END IF;
                UPDATE items SET stamp = fresh + 1, mirror = -fresh - 1 WHERE id = key;
            END;
        ELSIF kind = 3 THEN
            BEGIN
                UPDATE seats SET place = other WHERE id = key;
            EXCEPTION WHEN unique_violation THEN
                caught := caught + 1;
                SELECT id INTO found_id FROM seats WHERE place = other;
                IF NOT FOUND OR found_id = key THEN
                    RAISE EXCEPTION 'place % is taken by no other seat', other USING ERRCODE = 'AN002';
                END IF;
            END;
        ELSIF kind = 4 THEN
            SELECT stamp INTO found_stamp FROM items WHERE id = key;
            IF FOUND THEN
                BEGIN
                    UPDATE items SET bucket = other, stamp = fresh, mirror = -fresh WHERE id = key;
                    DELETE FROM items WHERE id = key;
                    INSERT INTO items (id, bucket, stamp, mirror)
                    VALUES (key, other, fresh + 1, -fresh - 1);
                    RAISE EXCEPTION 'as asked' USING ERRCODE = 'AN001';
                EXCEPTION WHEN SQLSTATE 'AN001' THEN
                    caught := caught + 1;
                END;
                SELECT stamp INTO later_stamp FROM items WHERE id = key;
                IF later_stamp IS DISTINCT FROM found_stamp THEN
                    RAISE EXCEPTION 'item % is not as it was', key USING ERRCODE = 'AN002';
                END IF;
            END IF;
        ELSE
            BEGIN
                UPDATE registers SET stamp = fresh WHERE id = key;
                BEGIN
                    INSERT INTO items (id, bucket, stamp, mirror) VALUES (key, other, fresh, -fresh);
                    DELETE FROM items WHERE bucket = other AND id <> key;
                    SELECT balance INTO available FROM registers WHERE id = key;
                    IF available % 2 = 0 THEN
                        RAISE EXCEPTION 'register % has %', key, available USING ERRCODE = 'AN001';
                    END IF;
                EXCEPTION WHEN unique_violation THEN
                    caught := caught + 1;
                END;
            EXCEPTION WHEN OTHERS THEN
                IF SQLSTATE <> 'AN001' THEN
                    RAISE;
                END IF;
                caught := caught + 1;
            END;
        END IF;
    END LOOP;
END
$$;
