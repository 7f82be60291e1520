-- Short and long transactions on a list of records.
--
-- The same file runs on Kiln and on PostgreSQL. The digest of a record is its counter times 7 modulo 10,007, so that it is known
-- whether both are of one write. Errors raised here:
--   SL001  no such record

-- Reads and updates each record.
CREATE PROCEDURE short_transaction(partitions SMALLINT[], ids INTEGER[], OUT total BIGINT)
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
                USING ERRCODE = 'SL001';
        END IF;
        seen := seen + 1;
        UPDATE records SET counter = seen, digest = seen * 7 % 10007
        WHERE partition_id = partitions[step] AND record_id = ids[step];
        total := total + seen;
    END LOOP;
END
$$;

-- Does the same, and computes for so many rounds between the read and the update of each record.
CREATE PROCEDURE long_transaction(
    partitions SMALLINT[],
    ids        INTEGER[],
    rounds     INTEGER,
    OUT total  BIGINT
)
LANGUAGE plpgsql AS $$
DECLARE
    seen     BIGINT;
    computed BIGINT;
BEGIN
    total := 0;
    FOR step IN 1 .. array_length(ids, 1) LOOP
        SELECT counter INTO seen
        FROM records
        WHERE partition_id = partitions[step] AND record_id = ids[step];
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no record % in partition %', ids[step], partitions[step]
                USING ERRCODE = 'SL001';
        END IF;
        computed := seen;
        FOR round_number IN 1 .. rounds LOOP
            computed := (computed * 1103 + round_number) % 1000003;
        END LOOP;
        seen := seen + 1;
        UPDATE records SET counter = seen, digest = seen * 7 % 10007
        WHERE partition_id = partitions[step] AND record_id = ids[step];
        total := total + computed;
    END LOOP;
END
$$;
