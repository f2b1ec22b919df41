-- Leases by name.

ALTER TABLE @schema@.distlock ADD COLUMN name text UNIQUE CHECK (length(name) BETWEEN 1 AND 200);
COMMENT ON COLUMN @schema@.distlock.name IS 'Null: a lease that is requested by its id';

-- Ids are random and negative: programs number their leases upwards, or by a hash.
CREATE FUNCTION @schema@.lease_id(p_name text)
RETURNS int
LANGUAGE plpgsql
AS $body$
DECLARE
    v_id int;
BEGIN
    IF (p_name OPERATOR(pg_catalog.<>) '') IS NOT TRUE THEN
        RAISE EXCEPTION 'a lease needs a name' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    LOOP
        SELECT d.id INTO v_id FROM @schema@.distlock d WHERE d.name OPERATOR(pg_catalog.=) p_name;
        IF v_id IS NOT NULL THEN
            RETURN v_id;
        END IF;
        INSERT INTO @schema@.distlock AS d (id, name)
        VALUES ((pg_catalog.floor(pg_catalog.random() OPERATOR(pg_catalog.*) 2147483647)
                 OPERATOR(pg_catalog.-) 2147483648)::pg_catalog.int4, p_name)
        ON CONFLICT DO NOTHING;
    END LOOP;
END
$body$;
COMMENT ON FUNCTION @schema@.lease_id(text) IS 'The id of the lease with this name; creates its row if there is none';

CREATE FUNCTION @schema@.lease_acquire_named(p_name text, p_owner text, p_term interval)
RETURNS bigint
LANGUAGE plpgsql
AS $body$
DECLARE
    v_id int;
    v_token bigint;
BEGIN
    LOOP
        v_id := @schema@.lease_id(p_name);
        v_token := @schema@.lease_acquire(v_id, p_owner, p_term);
        -- If its row was deleted in between, another row may have the name by now.
        IF v_token IS NULL
           OR EXISTS (SELECT FROM @schema@.distlock d
                       WHERE d.id OPERATOR(pg_catalog.=) v_id AND d.name OPERATOR(pg_catalog.=) p_name) THEN
            RETURN v_token;
        END IF;
        PERFORM @schema@.lease_release(v_id, v_token);
    END LOOP;
END
$body$;
COMMENT ON FUNCTION @schema@.lease_acquire_named(text, text, interval) IS
    'lease_acquire for a name. lease_id(name) is the id for the other functions.';

-- Unchanged but for the name in its errors.
CREATE OR REPLACE FUNCTION @schema@.assert_lease(p_id int, p_token bigint)
RETURNS void
LANGUAGE plpgsql
AS $body$
DECLARE
    v_lease @schema@.distlock;
BEGIN
    SELECT d.* INTO v_lease FROM @schema@.distlock d
     WHERE d.id OPERATOR(pg_catalog.=) p_id AND d.token OPERATOR(pg_catalog.=) p_token
       FOR KEY SHARE;
    IF NOT FOUND THEN
        SELECT d.* INTO v_lease FROM @schema@.distlock d WHERE d.id OPERATOR(pg_catalog.=) p_id;
        RAISE EXCEPTION 'lease % is not held with token %', coalesce(v_lease.name, p_id::pg_catalog.text), p_token
            USING ERRCODE = 'LT001',
                  DETAIL = pg_catalog.format('Its token is %s now.',
                               coalesce(v_lease.token::pg_catalog.text, 'unknown: there is no such lease'));
    END IF;
    IF v_lease.owner IS NULL
       OR (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) (v_lease.ts OPERATOR(pg_catalog.+) v_lease.expired_time)) IS NOT TRUE THEN
        RAISE EXCEPTION 'lease % with token % has ended', coalesce(v_lease.name, p_id::pg_catalog.text), p_token
            USING ERRCODE = 'LT001';
    END IF;
END
$body$;

CREATE OR REPLACE VIEW @schema@.leases AS
SELECT d.id,
       d.owner,
       CASE WHEN d.owner IS NULL THEN 'free'
            WHEN clock_timestamp() < d.ts + d.expired_time THEN 'held'
            WHEN d.released_at IS NOT NULL THEN 'released'
            ELSE 'expired' END AS state,
       d.token,
       d.acquired_at,
       d.ts AS renewed_at,
       d.ts + d.expired_time AS expires_at,
       -- Before 17 the difference to infinity is an error.
       CASE WHEN isfinite(d.ts + d.expired_time) THEN d.ts + d.expired_time - clock_timestamp() END AS time_left,
       d.expired_time,
       d.released_at,
       d.name
  FROM @schema@.distlock d;
