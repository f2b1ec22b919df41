-- Rate limits: a request that is refused only looks. Without SET search_path, as 005_lease says: every name is in full.

-- What is not told by a look, or is more than yes and no. One statement that locks the row decides, so the limit is exact whoever else asks. The
-- lock lasts until the caller's transaction ends, and others that ask for this key wait for that: call it in a transaction of its
-- own. A rollback gives the request back. In REPEATABLE READ and above a key that others asked for since is a serialization failure
-- (40001): try again.
--
-- A window that is full stays so until it ends: what was counted and committed is never taken back. So who sees one is refused without
-- having locked it.
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
        RETURN NEXT;
        RETURN;
    END IF;
    -- The clock is asked with the row locked. It is asked twice and may be put back in between: a window that is full was over
    -- if the condition let it pass. One that begins a window's length from now or later began on another clock.
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
        -- The last ones of the window were counted since the look.
        allowed := false;
        SELECT r.count, r.window_start, r.window_start OPERATOR(pg_catalog.+) v_window INTO count, window_start, window_end
          FROM @schema@.rate_limit r
         WHERE r.key OPERATOR(pg_catalog.=) p_key;
    END IF;
    RETURN NEXT;
END
$body$;

-- The two usual cases are decided here. What is counted is counted by the row as it is when it is locked: the condition is that of
-- the row which the statement has waited for.
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
