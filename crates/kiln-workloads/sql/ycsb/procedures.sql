-- YCSB's operations, several in one transaction.
--
-- The same file runs on Kiln and on PostgreSQL. A transaction is a list of keys and, for each, of what to do there:
--     0 to 9   read this field
--    10 to 19  write field 0 to 9
--    20        read all fields
-- Every field has statements of its own, so that it is known of each which columns it touches. Errors raised here:
--   YC001  no such record

-- A transaction without writes.
CREATE PROCEDURE read_only(keys INTEGER[], operations INTEGER[], OUT last_read VARCHAR(100))
LANGUAGE plpgsql AS $$
DECLARE
    wanted    INTEGER;
    operation INTEGER;
    read1     VARCHAR(100);
    read2     VARCHAR(100);
    read3     VARCHAR(100);
    read4     VARCHAR(100);
    read5     VARCHAR(100);
    read6     VARCHAR(100);
    read7     VARCHAR(100);
    read8     VARCHAR(100);
    read9     VARCHAR(100);
BEGIN
    FOR step IN 1 .. array_length(keys, 1) LOOP
        wanted := keys[step];
        operation := operations[step];
        IF operation < 5 THEN
            IF operation = 0 THEN
                SELECT field0 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSIF operation = 1 THEN
                SELECT field1 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSIF operation = 2 THEN
                SELECT field2 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSIF operation = 3 THEN
                SELECT field3 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSE
                SELECT field4 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            END IF;
        ELSIF operation < 10 THEN
            IF operation = 5 THEN
                SELECT field5 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSIF operation = 6 THEN
                SELECT field6 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSIF operation = 7 THEN
                SELECT field7 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSIF operation = 8 THEN
                SELECT field8 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSE
                SELECT field9 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            END IF;
        ELSE
            SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9
            INTO last_read, read1, read2, read3, read4, read5, read6, read7, read8, read9
            FROM usertable
            WHERE ycsb_key = wanted;
        END IF;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no record %', wanted USING ERRCODE = 'YC001';
        END IF;
    END LOOP;
END
$$;

-- A transaction with writes, all of the same value.
CREATE PROCEDURE read_write(
    keys          INTEGER[],
    operations    INTEGER[],
    fresh         VARCHAR(100),
    OUT last_read VARCHAR(100)
)
LANGUAGE plpgsql AS $$
DECLARE
    wanted    INTEGER;
    operation INTEGER;
    read1     VARCHAR(100);
    read2     VARCHAR(100);
    read3     VARCHAR(100);
    read4     VARCHAR(100);
    read5     VARCHAR(100);
    read6     VARCHAR(100);
    read7     VARCHAR(100);
    read8     VARCHAR(100);
    read9     VARCHAR(100);
BEGIN
    FOR step IN 1 .. array_length(keys, 1) LOOP
        wanted := keys[step];
        operation := operations[step];
        IF operation < 5 THEN
            IF operation = 0 THEN
                SELECT field0 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSIF operation = 1 THEN
                SELECT field1 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSIF operation = 2 THEN
                SELECT field2 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSIF operation = 3 THEN
                SELECT field3 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSE
                SELECT field4 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            END IF;
        ELSIF operation < 10 THEN
            IF operation = 5 THEN
                SELECT field5 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSIF operation = 6 THEN
                SELECT field6 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSIF operation = 7 THEN
                SELECT field7 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSIF operation = 8 THEN
                SELECT field8 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            ELSE
                SELECT field9 INTO last_read FROM usertable WHERE ycsb_key = wanted;
            END IF;
        ELSIF operation < 15 THEN
            IF operation = 10 THEN
                UPDATE usertable SET field0 = fresh WHERE ycsb_key = wanted;
            ELSIF operation = 11 THEN
                UPDATE usertable SET field1 = fresh WHERE ycsb_key = wanted;
            ELSIF operation = 12 THEN
                UPDATE usertable SET field2 = fresh WHERE ycsb_key = wanted;
            ELSIF operation = 13 THEN
                UPDATE usertable SET field3 = fresh WHERE ycsb_key = wanted;
            ELSE
                UPDATE usertable SET field4 = fresh WHERE ycsb_key = wanted;
            END IF;
        ELSIF operation < 20 THEN
            IF operation = 15 THEN
                UPDATE usertable SET field5 = fresh WHERE ycsb_key = wanted;
            ELSIF operation = 16 THEN
                UPDATE usertable SET field6 = fresh WHERE ycsb_key = wanted;
            ELSIF operation = 17 THEN
                UPDATE usertable SET field7 = fresh WHERE ycsb_key = wanted;
            ELSIF operation = 18 THEN
                UPDATE usertable SET field8 = fresh WHERE ycsb_key = wanted;
            ELSE
                UPDATE usertable SET field9 = fresh WHERE ycsb_key = wanted;
            END IF;
        ELSE
            SELECT field0, field1, field2, field3, field4, field5, field6, field7, field8, field9
            INTO last_read, read1, read2, read3, read4, read5, read6, read7, read8, read9
            FROM usertable
            WHERE ycsb_key = wanted;
        END IF;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no record %', wanted USING ERRCODE = 'YC001';
        END IF;
    END LOOP;
END
$$;
