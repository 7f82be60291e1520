-- HOT's only transaction.
--
-- The same file runs on Kiln and on PostgreSQL. What was read is added up and returned, so that nobody may leave a read out.
-- Errors raised here:
--   SH001  no such record

-- Updates each record, in its first and its last number.
CREATE PROCEDURE update_hot(partitions SMALLINT[], ids INTEGER[], OUT total BIGINT)
LANGUAGE plpgsql AS $$
DECLARE
    seen BIGINT;
BEGIN
    total := 0;
    FOR step IN 1 .. array_length(ids, 1) LOOP
        UPDATE records SET value_01 = value_01 + 1, value_20 = value_20 - 1
        WHERE partition_id = partitions[step] AND record_id = ids[step]
        RETURNING value_01 INTO seen;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no record % in partition %', ids[step], partitions[step]
                USING ERRCODE = 'SH001';
        END IF;
        total := total + seen;
    END LOOP;
END
$$;
