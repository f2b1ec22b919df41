-- Leases: locks that end by themselves. The table and its columns are those of "distlock" as published, and statements written for
-- it work here; what is new is a token that grows with every change of owner.
--
-- The server's clock decides, as it is at the moment and not as it was when the transaction began.

CREATE TABLE @schema@.distlock (
    id int PRIMARY KEY,
    -- Since ts. A lease lives while clock_timestamp() < ts + expired_time and it has an owner.
    expired_time interval,
    owner text,
    -- Of the last acquisition or renewal.
    ts timestamptz,
    -- Unique, so that a change of it is a change of a key: FOR KEY SHARE on the row keeps a new owner out and lets a renewal pass.
    -- From a sequence, so that it grows even where a row was deleted and made again.
    token bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    acquired_at timestamptz,
    released_at timestamptz
) WITH (fillfactor = 70);
COMMENT ON TABLE @schema@.distlock IS 'locktop: leases, one row each, which stays when the lease ends';

-- Whoever writes to the table, a new owner has a new token: another name, or a lease that had ended and lives again.
CREATE FUNCTION @schema@.fence_lease()
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
    IF TG_OP = 'INSERT' OR NEW.token <> OLD.token THEN
        NEW.acquired_at := CASE WHEN NEW.owner IS NOT NULL THEN v_now END;
        NEW.released_at := NULL;
    END IF;
    RETURN NEW;
END
$body$;
COMMENT ON FUNCTION @schema@.fence_lease() IS 'Gives a lease with a new owner a new token';

CREATE TRIGGER fence_lease
    BEFORE INSERT OR UPDATE ON @schema@.distlock
    FOR EACH ROW EXECUTE FUNCTION @schema@.fence_lease();

-- The token, or null when somebody has the lease: whatever the name, for two processes may have one name. Never waits: a row that
-- somebody is writing to is not to be had. (The first one ever to ask makes the row, and others wait for that.) Commit at once:
-- until then nobody sees it, and the term runs.
CREATE FUNCTION @schema@.lease_acquire(p_id int, p_owner text, p_term interval)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_lease distlock;
BEGIN
    IF p_id IS NULL OR coalesce(p_owner, '') = '' OR p_term IS NULL OR p_term <= interval '0' THEN
        RAISE EXCEPTION 'a lease needs an id, an owner and a term of more than 0'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT EXISTS (SELECT FROM distlock d WHERE d.id = p_id) THEN
        INSERT INTO distlock (id) VALUES (p_id) ON CONFLICT (id) DO NOTHING;
    END IF;
    -- FOR UPDATE: whoever writes under the old token, with the row shared, is let finish first.
    SELECT * INTO v_lease FROM distlock d WHERE d.id = p_id FOR UPDATE SKIP LOCKED;
    IF NOT FOUND OR v_lease.owner IS NOT NULL AND clock_timestamp() < v_lease.ts + v_lease.expired_time THEN
        RETURN NULL;
    END IF;
    UPDATE distlock d SET owner = p_owner, ts = clock_timestamp(), expired_time = p_term
     WHERE d.id = p_id
    RETURNING d.token INTO v_lease.token;
    RETURN v_lease.token;
END
$body$;
COMMENT ON FUNCTION @schema@.lease_acquire(int, text, interval) IS
    'Takes a lease that nobody has: its token, or null. Commit at once.';

-- Whether it is the token of a lease that lives. Only of the moment: see assert_lease.
CREATE FUNCTION @schema@.lease_check(p_id int, p_token bigint)
RETURNS boolean
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT EXISTS (
        SELECT FROM distlock d
         WHERE d.id = p_id AND d.token = p_token AND d.owner IS NOT NULL
           AND clock_timestamp() < d.ts + d.expired_time)
$body$;
COMMENT ON FUNCTION @schema@.lease_check(int, bigint) IS 'Whether it is the token of a lease that lives, at this moment';

-- Locks the row of a lease that is ours: true. False when it has ended or is another's: then it stays so. Null when somebody has the row
-- locked: ask again, in time.
CREATE FUNCTION @schema@.lock_own_lease(p_id int, p_token bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_lease distlock;
BEGIN
    SELECT * INTO v_lease FROM distlock d
     WHERE d.id = p_id AND d.token = p_token
       FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN CASE WHEN lease_check(p_id, p_token) THEN NULL ELSE false END;
    END IF;
    RETURN v_lease.owner IS NOT NULL AND (clock_timestamp() < v_lease.ts + v_lease.expired_time) IS TRUE;
END
$body$;
COMMENT ON FUNCTION @schema@.lock_own_lease(int, bigint) IS
    'Locks the row of a lease for whoever holds it; for use by lease_renew and lease_release';

-- What it answers is what lock_own_lease says.
CREATE FUNCTION @schema@.lease_renew(p_id int, p_token bigint, p_term interval DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_ours boolean;
BEGIN
    IF p_term <= interval '0' THEN
        RAISE EXCEPTION 'a lease needs a term of more than 0' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    v_ours := lock_own_lease(p_id, p_token);
    IF v_ours THEN
        UPDATE distlock d SET ts = clock_timestamp(), expired_time = coalesce(p_term, d.expired_time) WHERE d.id = p_id;
    END IF;
    RETURN v_ours;
END
$body$;
COMMENT ON FUNCTION @schema@.lease_renew(int, bigint, interval) IS
    'Begins the term anew: true, or false when the lease is not ours any more; null when its row is locked, so ask again';

-- The lease ends now. The row stays, with who had it.
CREATE FUNCTION @schema@.lease_release(p_id int, p_token bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_now timestamptz;
    v_ours boolean := lock_own_lease(p_id, p_token);
BEGIN
    IF v_ours THEN
        v_now := clock_timestamp();
        UPDATE distlock d SET ts = v_now, expired_time = interval '0', released_at = v_now WHERE d.id = p_id;
    END IF;
    RETURN v_ours;
END
$body$;
COMMENT ON FUNCTION @schema@.lease_release(int, bigint) IS
    'Ends a lease: true, or false when it is not ours any more; null when its row is locked, so ask again';

-- For the first statement of a transaction that may only write while the lease is ours. The row is shared to the end of the
-- transaction: no new owner before that, so do not leave one open. In REPEATABLE READ and SERIALIZABLE a renewal since the transaction began fails it (40001).
CREATE FUNCTION @schema@.assert_lease(p_id int, p_token bigint)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_lease distlock;
BEGIN
    SELECT * INTO v_lease FROM distlock d WHERE d.id = p_id AND d.token = p_token FOR KEY SHARE;
    IF NOT FOUND THEN
        SELECT * INTO v_lease FROM distlock d WHERE d.id = p_id;
        RAISE EXCEPTION 'lease % is not held with token %', p_id, p_token
            USING ERRCODE = 'LT001', DETAIL = format('Its token is %s now.', coalesce(v_lease.token::text, 'unknown: there is no such lease'));
    END IF;
    IF v_lease.owner IS NULL OR (clock_timestamp() < v_lease.ts + v_lease.expired_time) IS NOT TRUE THEN
        RAISE EXCEPTION 'lease % with token % has ended', p_id, p_token USING ERRCODE = 'LT001';
    END IF;
END
$body$;
COMMENT ON FUNCTION @schema@.assert_lease(int, bigint) IS
    'Fails (LT001) unless it is the token of a lease that lives; nobody else gets the lease before the transaction ends';

-- Ends the lease that somebody was shown, and no other one: false when anything in the row is not as it was shown, a renewal
-- included, and when it has ended by itself.
CREATE FUNCTION @schema@.lease_force_release(p_id int, p_owner text, p_ts timestamptz, p_expired_time interval, p_token bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_now timestamptz := clock_timestamp();
BEGIN
    UPDATE distlock d SET ts = v_now, expired_time = interval '0', released_at = v_now
     WHERE d.id = p_id
       AND d.owner = p_owner
       AND d.ts = p_ts
       AND d.expired_time = p_expired_time
       AND d.token = p_token
       AND v_now < d.ts + d.expired_time;
    RETURN FOUND;
END
$body$;
COMMENT ON FUNCTION @schema@.lease_force_release(int, text, timestamptz, interval, bigint) IS
    'Ends a lease of somebody else, if its row is still exactly as shown';

-- state: held; expired, its term over and nobody gave it back; released; free, never taken or given back the published way.
CREATE VIEW @schema@.leases AS
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
       d.released_at
  FROM @schema@.distlock d;
COMMENT ON VIEW @schema@.leases IS 'Leases: who has or had each, for how long, and with which token';
