-- Leases by name.

DO $do$
BEGIN
    IF EXISTS (SELECT FROM pg_attribute a
                WHERE a.attrelid = @literal:distlock@::regclass AND a.attname = 'name' AND NOT a.attisdropped) THEN
        RAISE EXCEPTION 'the table distlock has a column "name" that locktop did not create: rename it before the upgrade'
            USING ERRCODE = 'duplicate_column';
    END IF;
END
$do$;
ALTER TABLE @schema@.distlock ADD COLUMN name text UNIQUE CHECK (length(name) BETWEEN 1 AND 200);
COMMENT ON COLUMN @schema@.distlock.name IS 'Null: a lease that is requested by its id';

-- Ids are random and negative: most programs number their leases from 1 on.
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
COMMENT ON FUNCTION @schema@.lease_id(text) IS 'The id of the lease with this name; creates its row if there is none. Commit at once: until then others who ask for a new name wait.';

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
    'Takes a lease by its name: its token, or null. Commit at once. lease_id(name) is the id for the other functions.';

-- A lease gets a new token with a new name, as with a new id; otherwise unchanged.
CREATE OR REPLACE FUNCTION @schema@.fence_lease()
RETURNS trigger
LANGUAGE plpgsql
AS $body$
BEGIN
    -- In hours: a day is 23 to 25 of them, as the time zone of each session has it.
    NEW.expired_time := pg_catalog.date_part('epoch', NEW.expired_time) OPERATOR(pg_catalog.*) interval '1 second';
    -- The owner is the same, and the lease has ended or had not ended before; or it has no owner. An end that is no timestamp is an
    -- error here, for the session that writes it, and not for those that read it.
    IF NEW.token OPERATOR(pg_catalog.=) OLD.token AND NEW.id OPERATOR(pg_catalog.=) OLD.id
       AND (NEW.name OPERATOR(pg_catalog.=) OLD.name OR NEW.name IS NULL AND OLD.name IS NULL)
       AND (NEW.owner OPERATOR(pg_catalog.=) OLD.owner
            AND (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) (OLD.ts OPERATOR(pg_catalog.+) OLD.expired_time)
                 OR (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) (NEW.ts OPERATOR(pg_catalog.+) NEW.expired_time)) IS NOT TRUE)
            OR NEW.owner IS NULL AND OLD.owner IS NULL) THEN
        RETURN NEW;
    END IF;
    IF NEW.token OPERATOR(pg_catalog.=) OLD.token THEN
        NEW.token := pg_catalog.nextval(@literal:distlock_token_seq@::pg_catalog.regclass);
    ELSIF OLD.acquired_at IS NULL AND NEW.acquired_at IS NOT NULL OR NEW.acquired_at OPERATOR(pg_catalog.<>) OLD.acquired_at THEN
        RETURN NEW;
    END IF;
    NEW.acquired_at := CASE WHEN NEW.owner IS NOT NULL THEN pg_catalog.clock_timestamp() END;
    NEW.released_at := NULL;
    RETURN NEW;
END
$body$;

-- Options set on the view are kept.
DO $do$
DECLARE
    v_options text[] := (SELECT c.reloptions FROM pg_class c WHERE c.oid = @literal:leases@::regclass);
BEGIN
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
    IF v_options IS NOT NULL THEN
        EXECUTE format('ALTER VIEW %s SET (%s)', @literal:leases@::regclass, array_to_string(v_options, ', '));
    END IF;
END
$do$;
