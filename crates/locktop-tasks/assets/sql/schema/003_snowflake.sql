-- Ids of 64 bits that grow with time: 41 bits of milliseconds since 2021-01-01, 10 of a worker, 12 of a sequence.

CREATE TABLE @schema@.id_generator (
    worker_id integer PRIMARY KEY CHECK (worker_id BETWEEN 0 AND 1023),
    -- Of the last id.
    sequence integer NOT NULL DEFAULT 0 CHECK (sequence BETWEEN 0 AND 4095),
    last_timestamp bigint NOT NULL DEFAULT 0 CHECK (last_timestamp >= 0)
) WITH (fillfactor = 10);
COMMENT ON TABLE @schema@.id_generator IS 'locktop: the workers that generate ids, and the time and sequence of the last one of each';

-- Goes on over a rollback: an id that was given out and rolled back with its row is not given again in the same millisecond.
CREATE SEQUENCE @schema@.id_generator_sequence MINVALUE 0 MAXVALUE 4095 CYCLE OWNED BY @schema@.id_generator.sequence;

CREATE FUNCTION @schema@.snowflake_now()
RETURNS bigint
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    -- 2021-01-01 00:00 UTC
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1609459200000
$body$;
COMMENT ON FUNCTION @schema@.snowflake_now() IS 'Milliseconds since 2021-01-01 on the server''s clock';

CREATE FUNCTION @schema@.max_clock_wait()
RETURNS interval
LANGUAGE sql STABLE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT coalesce(nullif(current_setting('locktop.max_clock_wait', true), ''), '1 second')::interval
$body$;
COMMENT ON FUNCTION @schema@.max_clock_wait() IS
    'How far the clock may be behind the last id for the next one to be waited for: the setting locktop.max_clock_wait, or 1 second';

-- The key of the worker is held until the caller's transaction ends: whoever comes next reads what it committed. Others that ask for
-- ids of this worker wait meanwhile, so give each session a worker of its own, or commit soon.
CREATE FUNCTION @schema@.generate_snowflake_ids(p_worker_id int, p_count int)
RETURNS SETOF bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    c_last CONSTANT bigint := 2199023255551;
    v_limit double precision := extract(epoch FROM max_clock_wait()) * 1000;
    v_time bigint;
    v_last bigint;
    v_sequence integer;
    v_last_sequence integer;
BEGIN
    IF p_worker_id IS NULL OR p_worker_id NOT BETWEEN 0 AND 1023 THEN
        RAISE EXCEPTION 'worker % is outside 0 to 1023', coalesce(p_worker_id::text, 'null')
            USING ERRCODE = 'numeric_value_out_of_range';
    END IF;
    -- 0x4C49
    PERFORM pg_advisory_xact_lock(lock_key(19529, p_worker_id));
    SELECT g.last_timestamp, g.sequence INTO v_last, v_last_sequence FROM id_generator g WHERE g.worker_id = p_worker_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no id generator for worker %', p_worker_id
            USING ERRCODE = 'no_data_found', HINT = format('INSERT INTO id_generator (worker_id) VALUES (%s)', p_worker_id);
    END IF;
    FOR i IN 1 .. p_count LOOP
        v_sequence := nextval('id_generator_sequence');
        v_time := snowflake_now();
        -- The sequence is used up in this millisecond, or the clock went back.
        WHILE v_time < v_last OR v_time = v_last AND v_sequence <= v_last_sequence LOOP
            IF v_last - v_time > v_limit THEN
                RAISE EXCEPTION 'the clock is % ms behind the last id of worker %', v_last - v_time, p_worker_id
                    USING ERRCODE = 'object_not_in_prerequisite_state',
                          HINT = 'Set the clock right, or use another worker until it has caught up.';
            END IF;
            PERFORM pg_sleep(greatest(v_last - v_time, 1) / 1000.0);
            v_time := snowflake_now();
        END LOOP;
        IF v_time > c_last THEN
            RAISE EXCEPTION 'the 41 bits for the time are used up' USING ERRCODE = 'datetime_field_overflow';
        END IF;
        v_last := v_time;
        v_last_sequence := v_sequence;
        -- All these operators have one precedence.
        RETURN NEXT (v_time << 22) | (p_worker_id::bigint << 12) | v_sequence;
    END LOOP;
    UPDATE id_generator g SET last_timestamp = v_last, sequence = v_last_sequence WHERE g.worker_id = p_worker_id;
END
$body$;
COMMENT ON FUNCTION @schema@.generate_snowflake_ids(int, int) IS
    'So many ids of a worker, growing. Holds the worker''s key until the transaction ends';

CREATE FUNCTION @schema@.generate_snowflake_id(p_worker_id int)
RETURNS bigint
LANGUAGE sql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT g.id FROM generate_snowflake_ids(p_worker_id, 1) AS g (id)
$body$;
COMMENT ON FUNCTION @schema@.generate_snowflake_id(int) IS
    'An id above all that this worker has had. Holds the worker''s key until the transaction ends';

CREATE VIEW @schema@.id_generators AS
SELECT g.worker_id,
       g.last_timestamp,
       CASE WHEN g.last_timestamp > 0 THEN to_timestamp((g.last_timestamp + 1609459200000) / 1000.0) END AS last_id_at,
       g.sequence,
       h.pid AS holder_pid
  FROM @schema@.id_generator g
  LEFT JOIN @schema@.advisory_locks h
    ON h.lock_id = 19529::bigint << 48 | g.worker_id AND h.granted AND h.database = current_database();
COMMENT ON VIEW @schema@.id_generators IS 'The workers that generate ids, when each had its last one, and who is generating';
