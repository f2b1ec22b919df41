-- Leases: who asks is in nobody's way, and no name is looked up on the way.
--
-- A setting of a function costs more than all that these do, so they have no SET search_path, and run with the path of whoever calls them.
-- Therefore nothing in them is looked up there: each function, type, table and operator is written with its schema. What looks up
-- an operator by its bare name must not be there either: IN, BETWEEN, LIKE, NULLIF, IS DISTINCT FROM, and CASE with a value after it.

-- A row with a new owner has a new token, whoever writes it. What lease_acquire does by itself is not done twice.
CREATE OR REPLACE FUNCTION @schema@.fence_lease()
RETURNS trigger
LANGUAGE plpgsql
AS $body$
BEGIN
    -- In hours: a day is 23 to 25 of them, as the time zone of each session has it.
    NEW.expired_time := pg_catalog.date_part('epoch', NEW.expired_time) OPERATOR(pg_catalog.*) interval '1 second';
    -- The same owner, of a lease that does not live or that did before, or nobody. An end that is no timestamp fails the one who
    -- writes it, and not those who read it.
    IF NEW.token OPERATOR(pg_catalog.=) OLD.token AND NEW.id OPERATOR(pg_catalog.=) OLD.id
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

CREATE FUNCTION @schema@.fence_new_lease()
RETURNS trigger
LANGUAGE plpgsql
AS $body$
BEGIN
    NEW.expired_time := pg_catalog.date_part('epoch', NEW.expired_time) OPERATOR(pg_catalog.*) interval '1 second';
    -- Only who reads a dump knows of this column when the row is new.
    IF NEW.acquired_at OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp()
       AND pg_catalog.pg_has_role(session_user,
               (SELECT c.relowner FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) TG_RELID), 'MEMBER') THEN
        RETURN NEW;
    END IF;
    NEW.acquired_at := CASE WHEN NEW.owner IS NOT NULL THEN pg_catalog.clock_timestamp() END;
    NEW.released_at := NULL;
    RETURN NEW;
END
$body$;
COMMENT ON FUNCTION @schema@.fence_new_lease() IS 'Says since when somebody has a new lease';

DROP TRIGGER fence_lease ON @schema@.distlock;
CREATE TRIGGER fence_lease
    BEFORE UPDATE ON @schema@.distlock
    FOR EACH ROW EXECUTE FUNCTION @schema@.fence_lease();
CREATE TRIGGER fence_new_lease
    BEFORE INSERT ON @schema@.distlock
    FOR EACH ROW EXECUTE FUNCTION @schema@.fence_new_lease();

-- The token, or null when somebody has the lease: whatever the name, for two processes may have one name. A lease that lives is only
-- looked at: its row is not locked. One that has ended and that somebody has locked is not to be had, and not waited for; but of two that
-- come at the same moment the second waits for the first, and so do those that are the first ever to ask, while one makes the row.
-- Commit at once: until then nobody sees it, and the term runs.
CREATE OR REPLACE FUNCTION @schema@.lease_acquire(p_id int, p_owner text, p_term interval)
RETURNS bigint
LANGUAGE plpgsql
AS $body$
DECLARE
    v_token bigint;
    v_lives boolean;
BEGIN
    IF (p_id IS NOT NULL AND p_owner OPERATOR(pg_catalog.<>) '' AND p_term OPERATOR(pg_catalog.>) interval '0') IS NOT TRUE THEN
        RAISE EXCEPTION 'a lease needs an id, an owner and a term of more than 0'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The condition is that of the row as it is seen, before it is locked, and again of a row that was waited for. Nobody
    -- has locked the row since it was written where xmax is 0, or whoever wrote it, whose trigger locked it.
    UPDATE @schema@.distlock d
       SET owner = p_owner, ts = pg_catalog.clock_timestamp(), expired_time = p_term, token = DEFAULT,
           acquired_at = pg_catalog.clock_timestamp(), released_at = NULL
     WHERE d.id OPERATOR(pg_catalog.=) p_id
       AND (d.xmax OPERATOR(pg_catalog.=) d.xmin OR d.xmax OPERATOR(pg_catalog.=) '0'::pg_catalog.xid)
       AND (d.owner IS NOT NULL
            AND pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) (d.ts OPERATOR(pg_catalog.+) d.expired_time)) IS NOT TRUE
    RETURNING d.token INTO v_token;
    IF v_token IS NOT NULL THEN
        RETURN v_token;
    END IF;
    SELECT (d.owner IS NOT NULL
            AND pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) (d.ts OPERATOR(pg_catalog.+) d.expired_time)) IS TRUE INTO v_lives
      FROM @schema@.distlock d
     WHERE d.id OPERATOR(pg_catalog.=) p_id;
    IF v_lives THEN
        RETURN NULL;
    END IF;
    IF v_lives IS NULL THEN
        INSERT INTO @schema@.distlock (id, owner, ts, expired_time)
        VALUES (p_id, p_owner, pg_catalog.clock_timestamp(), p_term)
        ON CONFLICT (id) DO NOTHING
        RETURNING token INTO v_token;
        RETURN v_token;
    END IF;
    -- Somebody has it locked, or had. FOR UPDATE: whoever writes under the old token, with the row shared, is let finish first.
    UPDATE @schema@.distlock d
       SET owner = p_owner, ts = pg_catalog.clock_timestamp(), expired_time = p_term, token = DEFAULT,
           acquired_at = pg_catalog.clock_timestamp(), released_at = NULL
      FROM (SELECT l.id FROM @schema@.distlock l
             WHERE l.id OPERATOR(pg_catalog.=) p_id
               AND (l.owner IS NOT NULL
                    AND pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) (l.ts OPERATOR(pg_catalog.+) l.expired_time)) IS NOT TRUE
               FOR UPDATE SKIP LOCKED) f
     WHERE d.id OPERATOR(pg_catalog.=) f.id
    RETURNING d.token INTO v_token;
    RETURN v_token;
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.lease_check(p_id int, p_token bigint)
RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $body$
BEGIN
    RETURN EXISTS (
        SELECT FROM @schema@.distlock d
         WHERE d.id OPERATOR(pg_catalog.=) p_id AND d.token OPERATOR(pg_catalog.=) p_token AND d.owner IS NOT NULL
           AND pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) (d.ts OPERATOR(pg_catalog.+) d.expired_time));
END
$body$;

-- The row is written if the lease is ours: true. False when it has ended or is another's: then it stays so. Who has the row locked is
-- waited for, for at most a second and no longer than the lease lives; null when that was not enough: ask again, in time.
DROP FUNCTION @schema@.lock_own_lease(int, bigint);
DELETE FROM @schema@.locktop_objects WHERE kind = 'function' AND identity = 'lock_own_lease(integer, bigint)';
CREATE FUNCTION @schema@.write_own_lease(p_id int, p_token bigint, p_term interval, p_is_released boolean)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET lock_timeout = '1s'
AS $body$
DECLARE
    v_left double precision;
BEGIN
    -- The difference to infinity is an error before 17.
    SELECT date_part('epoch', d.ts + d.expired_time - clock_timestamp()) * 1000 INTO v_left
      FROM distlock d
     WHERE d.id = p_id AND d.token = p_token AND isfinite(d.ts);
    IF v_left < 1000 THEN
        -- Ends with the function, as what stands at its head.
        PERFORM set_config('lock_timeout', greatest(v_left, 1)::integer::text, true);
    END IF;
    UPDATE distlock d
       SET ts = clock_timestamp(), expired_time = coalesce(p_term, d.expired_time),
           released_at = CASE WHEN p_is_released THEN clock_timestamp() END
     WHERE d.id = p_id AND d.token = p_token AND d.owner IS NOT NULL AND clock_timestamp() < d.ts + d.expired_time;
    RETURN FOUND;
EXCEPTION WHEN lock_not_available THEN
    RETURN CASE WHEN lease_check(p_id, p_token) THEN NULL ELSE false END;
END
$body$;
COMMENT ON FUNCTION @schema@.write_own_lease(int, bigint, interval, boolean) IS
    'Renews or ends a lease for whoever holds it, and waits shortly for its row; for use by lease_renew and lease_release';

-- What it answers is what write_own_lease says.
CREATE OR REPLACE FUNCTION @schema@.lease_renew(p_id int, p_token bigint, p_term interval DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql
AS $body$
BEGIN
    IF p_term OPERATOR(pg_catalog.<=) interval '0' THEN
        RAISE EXCEPTION 'a lease needs a term of more than 0' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE @schema@.distlock d
       SET ts = pg_catalog.clock_timestamp(), expired_time = coalesce(p_term, d.expired_time)
     WHERE d.id OPERATOR(pg_catalog.=) p_id AND d.token OPERATOR(pg_catalog.=) p_token AND d.owner IS NOT NULL
       AND pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) (d.ts OPERATOR(pg_catalog.+) d.expired_time)
       -- Nobody has locked the row since it was written: as in lease_acquire.
       AND (d.xmax OPERATOR(pg_catalog.=) d.xmin OR d.xmax OPERATOR(pg_catalog.=) '0'::pg_catalog.xid);
    IF FOUND THEN
        RETURN true;
    END IF;
    -- It is not ours, or somebody has the row locked, or had.
    RETURN @schema@.lease_check(p_id, p_token) AND @schema@.write_own_lease(p_id, p_token, p_term, false);
END
$body$;
COMMENT ON FUNCTION @schema@.lease_renew(int, bigint, interval) IS
    'Begins the term anew: true, or false when the lease is not ours any more; null when its row stays locked, so ask again';

-- The lease ends now. The row stays, with who had it.
CREATE OR REPLACE FUNCTION @schema@.lease_release(p_id int, p_token bigint)
RETURNS boolean
LANGUAGE plpgsql
AS $body$
BEGIN
    UPDATE @schema@.distlock d
       SET ts = pg_catalog.clock_timestamp(), expired_time = interval '0', released_at = pg_catalog.clock_timestamp()
     WHERE d.id OPERATOR(pg_catalog.=) p_id AND d.token OPERATOR(pg_catalog.=) p_token AND d.owner IS NOT NULL
       AND pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) (d.ts OPERATOR(pg_catalog.+) d.expired_time)
       -- Nobody has locked the row since it was written: as in lease_acquire.
       AND (d.xmax OPERATOR(pg_catalog.=) d.xmin OR d.xmax OPERATOR(pg_catalog.=) '0'::pg_catalog.xid);
    IF FOUND THEN
        RETURN true;
    END IF;
    RETURN @schema@.lease_check(p_id, p_token) AND @schema@.write_own_lease(p_id, p_token, interval '0', true);
END
$body$;
COMMENT ON FUNCTION @schema@.lease_release(int, bigint) IS
    'Ends a lease: true, or false when it is not ours any more; null when its row stays locked, so ask again';

-- For the first statement of a transaction that may only write while the lease is ours. The row is shared to the end of the
-- transaction: no new owner before that, so do not leave one open. In REPEATABLE READ and SERIALIZABLE a renewal since the transaction began fails it (40001).
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
        RAISE EXCEPTION 'lease % is not held with token %', p_id, p_token
            USING ERRCODE = 'LT001',
                  DETAIL = pg_catalog.format('Its token is %s now.',
                               coalesce(v_lease.token::pg_catalog.text, 'unknown: there is no such lease'));
    END IF;
    IF v_lease.owner IS NULL
       OR (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) (v_lease.ts OPERATOR(pg_catalog.+) v_lease.expired_time)) IS NOT TRUE THEN
        RAISE EXCEPTION 'lease % with token % has ended', p_id, p_token USING ERRCODE = 'LT001';
    END IF;
END
$body$;
