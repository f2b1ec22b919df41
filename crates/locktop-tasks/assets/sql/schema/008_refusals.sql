-- Requests that were refused instead of waiting are counted. A counter is a sequence: nextval() takes no row lock, survives a rollback and,
-- from PostgreSQL 15 on, writes no WAL here; there the counters start again from 0 after a crash. The table stays empty; a column is a
-- counter.

CREATE UNLOGGED TABLE @schema@.refusals (
    -- Requests over a rate limit.
    rate_limit bigserial,
    -- Transfers refused because the version of an account had changed.
    transfer bigserial,
    -- Leases that another owner has.
    lease bigserial,
    -- Tasks whose key another session holds.
    task bigserial
);
COMMENT ON TABLE @schema@.refusals IS
    'locktop: an empty table; the sequence of each column counts requests that were refused. Counting may start again after a crash';

-- Never fails: a read-only transaction, and a role without the right, are not counted.
CREATE FUNCTION @schema@.count_refusal(p_counter regclass)
RETURNS void
LANGUAGE plpgsql
AS $body$
BEGIN
    IF pg_catalog.current_setting('transaction_read_only') OPERATOR(pg_catalog.=) 'off'
       AND pg_catalog.has_sequence_privilege(p_counter, 'USAGE') THEN
        PERFORM pg_catalog.nextval(p_counter);
    END IF;
END
$body$;
COMMENT ON FUNCTION @schema@.count_refusal(regclass) IS
    'Adds 1 to a counter of refusals, if this transaction writes and the role has USAGE on it';
-- The functions that refuse call it with the rights of their caller, also if new functions are granted to no role by default.
GRANT EXECUTE ON FUNCTION @schema@.count_refusal(regclass) TO PUBLIC;

-- The functions that refuse, unchanged but for the counting.

CREATE OR REPLACE FUNCTION @schema@.take_rate_limit(p_key varchar, p_max_requests int, p_window_seconds int)
RETURNS TABLE (allowed boolean, count integer, window_start timestamptz, window_end timestamptz)
LANGUAGE plpgsql
AS $body$
#variable_conflict use_column
DECLARE
    v_window interval;
    v_now pg_catalog.timestamptz;
BEGIN
    IF (p_key IS NOT NULL AND p_max_requests OPERATOR(pg_catalog.>=) 0 AND p_window_seconds OPERATOR(pg_catalog.>=) 1) IS NOT TRUE THEN
        RAISE EXCEPTION 'a rate limit needs a key, 0 or more requests and 1 or more seconds, not (%, %, %)',
            coalesce(p_key, 'null'), coalesce(p_max_requests::pg_catalog.text, 'null'),
            coalesce(p_window_seconds::pg_catalog.text, 'null')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    v_window := pg_catalog.make_interval(secs => p_window_seconds);
    SELECT r.count, r.window_start, r.window_start OPERATOR(pg_catalog.+) v_window INTO count, window_start, window_end
      FROM @schema@.rate_limit r
     WHERE r.key OPERATOR(pg_catalog.=) p_key;
    IF p_max_requests OPERATOR(pg_catalog.=) 0
       OR count OPERATOR(pg_catalog.>=) p_max_requests
          AND pg_catalog.abs(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) window_start))
              OPERATOR(pg_catalog.<) p_window_seconds THEN
        allowed := false;
        PERFORM @schema@.count_refusal(@literal:refusals_rate_limit_seq@::pg_catalog.regclass);
        RETURN NEXT;
        RETURN;
    END IF;
    v_now := pg_catalog.clock_timestamp();
    INSERT INTO @schema@.rate_limit AS r (key, count, window_start, max_requests, expires_at)
    VALUES (p_key, 1, v_now, p_max_requests, v_now OPERATOR(pg_catalog.+) v_window)
    ON CONFLICT (key) DO UPDATE
       SET (count, window_start, max_requests, expires_at) = (
           SELECT CASE WHEN n.is_over THEN 1 ELSE r.count OPERATOR(pg_catalog.+) 1 END,
                  CASE WHEN n.is_over THEN n.now ELSE r.window_start END,
                  p_max_requests,
                  CASE WHEN n.is_over THEN n.now ELSE r.window_start END OPERATOR(pg_catalog.+) v_window
             FROM (SELECT c.now, r.count OPERATOR(pg_catalog.>=) p_max_requests
                          OR pg_catalog.abs(pg_catalog.date_part('epoch', c.now OPERATOR(pg_catalog.-) r.window_start))
                             OPERATOR(pg_catalog.>=) p_window_seconds AS is_over
                     FROM (SELECT pg_catalog.clock_timestamp() AS now OFFSET 0) c OFFSET 0) n)
     WHERE r.count OPERATOR(pg_catalog.<) p_max_requests
        OR pg_catalog.abs(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) r.window_start))
           OPERATOR(pg_catalog.>=) p_window_seconds
    RETURNING true, r.count, r.window_start, r.window_start OPERATOR(pg_catalog.+) v_window
    INTO allowed, count, window_start, window_end;
    IF allowed IS NULL THEN
        allowed := false;
        PERFORM @schema@.count_refusal(@literal:refusals_rate_limit_seq@::pg_catalog.regclass);
        SELECT r.count, r.window_start, r.window_start OPERATOR(pg_catalog.+) v_window INTO count, window_start, window_end
          FROM @schema@.rate_limit r
         WHERE r.key OPERATOR(pg_catalog.=) p_key;
    END IF;
    RETURN NEXT;
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.check_rate_limit(p_key varchar, p_max_requests int, p_window_seconds int)
RETURNS boolean
LANGUAGE plpgsql
AS $body$
DECLARE
    v_count integer;
    v_start pg_catalog.timestamptz;
BEGIN
    SELECT r.count, r.window_start INTO v_count, v_start
      FROM @schema@.rate_limit r
     WHERE r.key OPERATOR(pg_catalog.=) p_key;
    IF p_max_requests OPERATOR(pg_catalog.>) 0 AND p_window_seconds OPERATOR(pg_catalog.>) 0
       AND pg_catalog.abs(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) v_start))
           OPERATOR(pg_catalog.<) p_window_seconds THEN
        IF v_count OPERATOR(pg_catalog.>=) p_max_requests THEN
            PERFORM @schema@.count_refusal(@literal:refusals_rate_limit_seq@::pg_catalog.regclass);
            RETURN false;
        END IF;
        UPDATE @schema@.rate_limit r
           SET count = r.count OPERATOR(pg_catalog.+) 1, max_requests = p_max_requests,
               expires_at = r.window_start OPERATOR(pg_catalog.+) pg_catalog.make_interval(secs => p_window_seconds)
         WHERE r.key OPERATOR(pg_catalog.=) p_key AND r.count OPERATOR(pg_catalog.<) p_max_requests
           AND pg_catalog.abs(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) r.window_start))
               OPERATOR(pg_catalog.<) p_window_seconds;
        IF FOUND THEN
            RETURN true;
        END IF;
    END IF;
    RETURN (SELECT t.allowed FROM @schema@.take_rate_limit(p_key, p_max_requests, p_window_seconds) t);
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.transfer_at_versions(p_from_id int, p_from_version int, p_to_id int, p_to_version int, p_amount numeric)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_rows integer;
BEGIN
    IF p_amount IS NULL OR NOT (p_amount > 0 AND p_amount < 'Infinity') OR p_amount <> round(p_amount, 2) THEN
        RAISE EXCEPTION 'cannot transfer %: an amount is above 0 and has at most 2 decimals', coalesce(p_amount::text, 'null')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF p_from_id = p_to_id THEN
        RAISE EXCEPTION 'account % cannot transfer to itself', p_from_id USING ERRCODE = 'invalid_parameter_value';
    END IF;
    BEGIN
        PERFORM a.id
           FROM accounts a
          WHERE a.id = p_from_id AND a.version = p_from_version OR a.id = p_to_id AND a.version = p_to_version
          ORDER BY a.id
            FOR UPDATE;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        IF v_rows = 2 THEN
            UPDATE accounts a
               SET balance = a.balance + CASE a.id WHEN p_to_id THEN p_amount ELSE -p_amount END, version = a.version + 1
             WHERE a.id = p_from_id AND a.version = p_from_version OR a.id = p_to_id AND a.version = p_to_version;
            GET DIAGNOSTICS v_rows = ROW_COUNT;
        END IF;
        IF v_rows <> 2 THEN
            RAISE SQLSTATE 'LT002';
        END IF;
    EXCEPTION WHEN SQLSTATE 'LT002' THEN
        PERFORM @schema@.count_refusal(@literal:refusals_transfer_seq@::pg_catalog.regclass);
        RETURN false;
    END;
    RETURN true;
END
$body$;

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
        PERFORM @schema@.count_refusal(@literal:refusals_lease_seq@::pg_catalog.regclass);
        RETURN NULL;
    END IF;
    IF v_lives IS NULL THEN
        INSERT INTO @schema@.distlock (id, owner, ts, expired_time)
        VALUES (p_id, p_owner, pg_catalog.clock_timestamp(), p_term)
        ON CONFLICT (id) DO NOTHING
        RETURNING token INTO v_token;
        IF v_token IS NULL THEN
            PERFORM @schema@.count_refusal(@literal:refusals_lease_seq@::pg_catalog.regclass);
        END IF;
        RETURN v_token;
    END IF;
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
    IF v_token IS NULL THEN
        PERFORM @schema@.count_refusal(@literal:refusals_lease_seq@::pg_catalog.regclass);
    END IF;
    RETURN v_token;
END
$body$;

CREATE OR REPLACE FUNCTION @schema@.try_acquire_task_lock(p_task_id int, p_worker_id text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
AS $body$
DECLARE
    v_started record;
BEGIN
    IF p_task_id = ANY (held_task_ids()) THEN
        PERFORM @schema@.count_refusal(@literal:refusals_task_seq@::pg_catalog.regclass);
        RETURN false;
    END IF;
    v_started := start_execution(p_task_id, p_worker_id);
    RETURN v_started.execution_id IS NOT NULL;
END
$body$;

-- Roles that write a table may count its refusals, and roles that read it may read the counters.
DO $do$
DECLARE
    v_grant record;
BEGIN
    FOR v_grant IN
        SELECT DISTINCT x.counter, CASE WHEN a.privilege_type = 'SELECT' THEN 'SELECT' ELSE 'USAGE' END AS what,
               CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS role
          FROM (VALUES (@literal:rate_limit@::regclass, @literal:refusals_rate_limit_seq@::regclass),
                       (@literal:accounts@::regclass, @literal:refusals_transfer_seq@::regclass),
                       (@literal:distlock@::regclass, @literal:refusals_lease_seq@::regclass),
                       (@literal:task_execution_log@::regclass, @literal:refusals_task_seq@::regclass)) x (source, counter)
          JOIN pg_class c ON c.oid = x.source
         CROSS JOIN aclexplode(c.relacl) a
         WHERE a.grantee <> c.relowner AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE')
    LOOP
        EXECUTE format('GRANT %s ON SEQUENCE %s TO %s', v_grant.what, v_grant.counter, v_grant.role);
        IF v_grant.what = 'SELECT' THEN
            EXECUTE format('GRANT SELECT ON TABLE %s TO %s', @literal:refusals@::regclass, v_grant.role);
        END IF;
    END LOOP;
END
$do$;
