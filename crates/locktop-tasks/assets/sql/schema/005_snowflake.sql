-- One id at a time, by one function. Without SET search_path, as 005_lease says: every name is in full.

-- Where time has passed since the last id, or the sequence has not gone round, that is all there is to it. The rest is left to
-- generate_snowflake_ids: another millisecond has to be waited for, the clock went back, or something is wrong.
CREATE OR REPLACE FUNCTION @schema@.generate_snowflake_id(p_worker_id int)
RETURNS bigint
LANGUAGE plpgsql
AS $body$
DECLARE
    v_locked pg_catalog.text;
    v_sequence integer;
    v_time bigint;
BEGIN
    IF p_worker_id OPERATOR(pg_catalog.>=) 0 AND p_worker_id OPERATOR(pg_catalog.<=) 1023 THEN
        -- 0x4C49 << 48, the key of the worker: whoever comes next reads what this transaction committed. As an expression, which costs
        -- less than a statement.
        v_locked := pg_catalog.pg_advisory_xact_lock(5496924820182401024 OPERATOR(pg_catalog.+) p_worker_id);
        v_sequence := pg_catalog.nextval(@literal:id_generator_sequence@::pg_catalog.regclass);
        -- Milliseconds since 2021-01-01 00:00 UTC. Microseconds since 1970 are a whole number that a double precision holds.
        v_time := (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint
                  OPERATOR(pg_catalog./) 1000 OPERATOR(pg_catalog.-) 1609459200000;
        UPDATE @schema@.id_generator g
           SET last_timestamp = v_time, sequence = v_sequence
         WHERE g.worker_id OPERATOR(pg_catalog.=) p_worker_id
           AND (g.last_timestamp OPERATOR(pg_catalog.<) v_time
                OR g.last_timestamp OPERATOR(pg_catalog.=) v_time AND g.sequence OPERATOR(pg_catalog.<) v_sequence)
           -- 41 bits.
           AND v_time OPERATOR(pg_catalog.<) 2199023255552;
        IF FOUND THEN
            -- Of operators that are written so none comes first.
            RETURN (v_time OPERATOR(pg_catalog.<<) 22) OPERATOR(pg_catalog.|) (p_worker_id::bigint OPERATOR(pg_catalog.<<) 12)
                   OPERATOR(pg_catalog.|) v_sequence;
        END IF;
    END IF;
    RETURN (SELECT g.id FROM @schema@.generate_snowflake_ids(p_worker_id, 1) AS g (id));
END
$body$;
