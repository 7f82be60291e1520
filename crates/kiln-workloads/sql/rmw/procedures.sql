-- Read-modify-writes, or reads, of a list of records.
--
-- The same file runs on Kiln and on PostgreSQL. What was read is added up and returned, so that nobody may leave a read out.
-- Errors raised here:
--   RM001  no such record

-- Reads and increments each record.
CREATE PROCEDURE modify_records(partitions SMALLINT[], ids INTEGER[], OUT total BIGINT)
LANGUAGE plpgsql AS $$
DECLARE
    seen BIGINT;
BEGIN
    total := 0;
    FOR step IN 1 .. array_length(ids, 1) LOOP
        UPDATE records SET counter = counter + 1
        WHERE partition_id = partitions[step] AND record_id = ids[step]
        RETURNING counter INTO seen;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no record % in partition %', ids[step], partitions[step]
                USING ERRCODE = 'RM001';
        END IF;
        total := total + seen;
    END LOOP;
END
$$;

-- Reads each record.
CREATE PROCEDURE read_records(partitions SMALLINT[], ids INTEGER[], OUT total BIGINT)
LANGUAGE plpgsql AS $$
DECLARE
    seen BIGINT;
BEGIN
    total := 0;
    FOR step IN 1 .. array_length(ids, 1) LOOP
        SELECT counter INTO seen
        FROM records
        WHERE partition_id = partitions[step] AND record_id = ids[step];
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no record % in partition %', ids[step], partitions[step]
                USING ERRCODE = 'RM001';
        END IF;
        total := total + seen;
    END LOOP;
END
$$;

-- Increments those records whose place in modified is not 0, and reads the others.
CREATE PROCEDURE mix_records(
    partitions SMALLINT[],
    ids        INTEGER[],
    modified   SMALLINT[],
    OUT total  BIGINT
)
LANGUAGE plpgsql AS $$
DECLARE
    seen BIGINT;
BEGIN
    total := 0;
    FOR step IN 1 .. array_length(ids, 1) LOOP
        IF modified[step] = 0 THEN
            SELECT counter INTO seen
            FROM records
            WHERE partition_id = partitions[step] AND record_id = ids[step];
        ELSE
            UPDATE records SET counter = counter + 1
            WHERE partition_id = partitions[step] AND record_id = ids[step]
            RETURNING counter INTO seen;
        END IF;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no record % in partition %', ids[step], partitions[step]
                USING ERRCODE = 'RM001';
        END IF;
        total := total + seen;
    END LOOP;
END
$$;
