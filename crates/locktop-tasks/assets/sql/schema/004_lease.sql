-- A lease that is read from a dump was acquired and given back when it says so.

CREATE OR REPLACE FUNCTION @schema@.fence_lease()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_lives boolean;
    v_lived boolean;
BEGIN
    -- In hours: a day is 23 to 25 of them, as the time zone of each session has it.
    NEW.expired_time := extract(epoch FROM NEW.expired_time)::float8 * interval '1 second';
    -- An end that is no timestamp fails the one who writes it, and not those who read it.
    v_lives := coalesce(NEW.owner IS NOT NULL AND v_now < NEW.ts + NEW.expired_time, false);
    IF TG_OP = 'UPDATE' THEN
        v_lived := coalesce(OLD.owner IS NOT NULL AND v_now < OLD.ts + OLD.expired_time, false);
        IF NEW.owner IS DISTINCT FROM OLD.owner OR v_lives AND NOT v_lived OR NEW.id <> OLD.id THEN
            NEW.token := nextval('distlock_token_seq');
        END IF;
    END IF;
    IF TG_OP = 'INSERT' AND NEW.acquired_at <= v_now
       AND pg_has_role(session_user, (SELECT c.relowner FROM pg_class c WHERE c.oid = TG_RELID), 'MEMBER') THEN
        -- Only who reads a dump knows of this column when the row is new.
        RETURN NEW;
    END IF;
    IF TG_OP = 'INSERT' OR NEW.token <> OLD.token THEN
        NEW.acquired_at := CASE WHEN NEW.owner IS NOT NULL THEN v_now END;
        NEW.released_at := NULL;
    END IF;
    RETURN NEW;
END
$body$;
