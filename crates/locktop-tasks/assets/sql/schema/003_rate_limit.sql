-- Rate limits: at most so many requests of a key in a window. A window begins with the first request after the one before has ended.

CREATE TABLE @schema@.rate_limit (
    key varchar(100) PRIMARY KEY,
    count integer NOT NULL DEFAULT 0,
    window_start timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- As the last request that was let through had it.
    max_requests integer,
    expires_at timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE @schema@.rate_limit IS 'locktop: for each key its newest window and how many requests were let through in it';

CREATE INDEX idx_rate_limit_expires ON @schema@.rate_limit (expires_at);

-- One statement that locks the row decides, so the limit is exact whoever else asks. The lock lasts until the caller's transaction
-- ends, and others that ask for this key wait for that: call it in a transaction of its own. A rollback gives the request back. In
-- REPEATABLE READ and above a key that others asked for since is a serialization failure (40001): try again.
CREATE FUNCTION @schema@.take_rate_limit(p_key varchar, p_max_requests int, p_window_seconds int)
RETURNS TABLE (allowed boolean, count integer, window_start timestamptz, window_end timestamptz)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
DECLARE
    v_window interval := make_interval(secs => p_window_seconds);
    v_now timestamptz := clock_timestamp();
BEGIN
    IF p_key IS NULL OR p_max_requests IS NULL OR p_max_requests < 0 OR p_window_seconds IS NULL OR p_window_seconds < 1 THEN
        RAISE EXCEPTION 'a rate limit needs a key, 0 or more requests and 1 or more seconds, not (%, %, %)',
            coalesce(p_key, 'null'), coalesce(p_max_requests::text, 'null'), coalesce(p_window_seconds::text, 'null')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF p_max_requests > 0 THEN
        -- The clock is asked with the row locked. It is asked twice and may be put back in between: a window that is full was over
        -- if the condition let it pass. One that begins a window's length from now or later began on another clock.
        INSERT INTO rate_limit AS r (key, count, window_start, max_requests, expires_at)
        VALUES (p_key, 1, v_now, p_max_requests, v_now + v_window)
        ON CONFLICT (key) DO UPDATE
           SET (count, window_start, max_requests, expires_at) = (
               SELECT CASE WHEN n.is_over THEN 1 ELSE r.count + 1 END,
                      CASE WHEN n.is_over THEN n.now ELSE r.window_start END,
                      p_max_requests,
                      CASE WHEN n.is_over THEN n.now ELSE r.window_start END + v_window
                 FROM (SELECT c.now, r.count >= p_max_requests
                              OR abs(extract(epoch FROM c.now - r.window_start)) >= p_window_seconds AS is_over
                         FROM (SELECT clock_timestamp() AS now OFFSET 0) c OFFSET 0) n)
         WHERE r.count < p_max_requests
            OR abs(extract(epoch FROM clock_timestamp() - r.window_start)) >= p_window_seconds
        RETURNING true, r.count, r.window_start, r.window_start + v_window
        INTO allowed, count, window_start, window_end;
    END IF;
    IF allowed IS NULL THEN
        allowed := false;
        SELECT r.count, r.window_start, r.window_start + v_window INTO count, window_start, window_end
          FROM rate_limit r WHERE r.key = p_key;
    END IF;
    RETURN NEXT;
END
$body$;
COMMENT ON FUNCTION @schema@.take_rate_limit(varchar, int, int) IS
    'Counts a request if the window has room for it: whether it has, how many were let through, and when the window ends';

CREATE FUNCTION @schema@.check_rate_limit(p_key varchar, p_max_requests int, p_window_seconds int)
RETURNS boolean
LANGUAGE sql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT t.allowed FROM take_rate_limit(p_key, p_max_requests, p_window_seconds) t
$body$;
COMMENT ON FUNCTION @schema@.check_rate_limit(varchar, int, int) IS
    'True when the request is within the limit. Locks the key until the transaction ends; a rollback gives the request back';

-- Not done by the way while somebody asks: it would lock keys in a stranger's transaction.
CREATE FUNCTION @schema@.purge_rate_limits(p_limit integer DEFAULT 10000)
RETURNS bigint
LANGUAGE sql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    WITH old AS MATERIALIZED (
        SELECT r.key FROM rate_limit r
         WHERE r.expires_at < clock_timestamp()
         ORDER BY r.expires_at LIMIT p_limit
           FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM rate_limit r USING old o WHERE r.key = o.key RETURNING r.key
    )
    SELECT count(*) FROM gone
$body$;
COMMENT ON FUNCTION @schema@.purge_rate_limits(integer) IS
    'Removes windows that are over, which mean nothing any more, by an index; how many there were';

CREATE VIEW @schema@.rate_limits AS
SELECT r.key,
       r.count,
       r.max_requests,
       r.window_start,
       r.expires_at,
       r.expires_at > clock_timestamp() AS is_live,
       r.expires_at > clock_timestamp() AND r.count >= r.max_requests AS is_full
  FROM @schema@.rate_limit r;
COMMENT ON VIEW @schema@.rate_limits IS 'Keys with a rate limit, and how full their newest window is';
