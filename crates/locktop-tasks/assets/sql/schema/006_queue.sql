-- Items of some types: what an item is called is its type. Without p_types they are those of all, as ever.
--
-- A plan for the very types of a call would seem cheaper each time, and be made anew each time: hence plan_cache_mode.

-- Others' items may be many, and are not to be read for each of one's own. Where most items are of one type, the planner would take
-- the index of all and go through it for each type that has none: only this one has the order that those below ask for.
CREATE INDEX idx_queue_named ON @schema@.task_queue (task_name, due_at, id) WHERE status = 'pending';

-- Who has been due for the longest first. Commit at once; the work comes after.
CREATE FUNCTION @schema@.claim_queue_items(p_worker_id text, p_max_items integer DEFAULT 1, p_types text[] DEFAULT NULL)
RETURNS TABLE (task_id bigint, task_name varchar, payload jsonb, attempt integer, max_attempts integer, started_at timestamptz,
               timeout_seconds double precision)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
AS $body$
#variable_conflict use_column
DECLARE
    -- Too long a name is an error also where there is nothing to take.
    v_worker varchar(100) := p_worker_id;
    v_start timestamptz := own_backend_start();
    v_now timestamptz := clock_timestamp();
BEGIN
    IF p_worker_id IS NULL THEN
        RAISE EXCEPTION 'a worker that claims an item has a name' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    RETURN QUERY
    UPDATE task_queue q
       SET status = 'processing', worker_id = v_worker, backend_pid = pg_backend_pid(), backend_start = v_start,
           attempt = q.attempt + 1, started_at = v_now, heartbeat_at = v_now, completed_at = NULL
     -- An array, not a join: a session that planned it while the table was empty would go through all of it for each claim. It is
     -- made once, however the rest is planned.
     WHERE q.id = ANY (CASE WHEN p_types IS NULL THEN ARRAY(
        SELECT c.id
          FROM task_queue c
         WHERE c.status = 'pending' AND c.due_at <= v_now
         ORDER BY c.due_at, c.id
         LIMIT p_max_items
           FOR UPDATE SKIP LOCKED)
     ELSE ARRAY(
        -- The first of each type, and of those the first. What is locked and not taken is free again when this commits.
        SELECT c.id
          FROM (SELECT DISTINCT n.name FROM unnest(p_types) AS n (name)) n
         CROSS JOIN LATERAL (
               SELECT p.id, p.due_at
                 FROM task_queue p
                WHERE p.status = 'pending' AND p.task_name >= n.name AND (p.task_name, p.due_at) <= (n.name, v_now)
                ORDER BY p.task_name, p.due_at, p.id
                LIMIT p_max_items
                  FOR UPDATE SKIP LOCKED) c
         ORDER BY c.due_at, c.id
         LIMIT p_max_items) END)
    RETURNING q.id, q.task_name, q.payload, q.attempt, q.max_attempts, q.started_at, extract(epoch FROM q.timeout)::float8;
END
$body$;
COMMENT ON FUNCTION @schema@.claim_queue_items(text, integer, text[]) IS
    'Takes the pending items that have been due for the longest for this session; commit, work, then call finish_queue_item for each with its attempt';

CREATE FUNCTION @schema@.consume_task(p_types text[] DEFAULT NULL)
RETURNS TABLE (task_id bigint, task_name varchar, payload jsonb)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT c.task_id, c.task_name, c.payload FROM claim_queue_items(coalesce(host(inet_client_addr()), 'local'), 1, p_types) c;
END
$body$;
COMMENT ON FUNCTION @schema@.consume_task(text[]) IS
    'Takes the pending item that has been due for the longest for this session, in the name of its address; no row when there is none';

-- The time when the next pending item is due, which may have come since; or when an item may be lost. Signs of life come every few
-- seconds: where the oldest is younger than the grace it is that item which may be lost next, and to look once more after the grace
-- costs less than to look for its session now.
CREATE FUNCTION @schema@.next_item_due_at(p_types text[] DEFAULT NULL)
RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
AS $body$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_grace interval := orphan_grace();
    v_up timestamptz;
    v_due timestamptz;
    v_first timestamptz;
    v_old boolean;
BEGIN
    IF p_types IS NULL THEN
        SELECT min(q.due_at) INTO v_due FROM task_queue q WHERE q.status = 'pending';
    ELSE
        SELECT min(d.due_at) INTO v_due
          FROM (SELECT DISTINCT n.name FROM unnest(p_types) AS n (name)) n
         CROSS JOIN LATERAL (
               SELECT p.due_at FROM task_queue p
                WHERE p.status = 'pending' AND p.task_name >= n.name AND (p.task_name, p.due_at) <= (n.name, v_now)
                ORDER BY p.task_name, p.due_at
                LIMIT 1) d;
        IF v_due IS NULL THEN
            -- Of whatever type: announce_item tells nobody of one after that.
            SELECT min(q.due_at) INTO v_due FROM task_queue q WHERE q.status = 'pending' AND q.due_at > v_now;
        END IF;
    END IF;
    IF v_due <= v_now OR NOT EXISTS (SELECT FROM task_queue q WHERE q.status = 'processing') THEN
        RETURN v_due;
    END IF;
    v_up := up_since();
    SELECT min(s.sign) FILTER (WHERE s.sign > v_now - v_grace), bool_or(s.sign <= v_now - v_grace)
      INTO v_first, v_old
      FROM (SELECT greatest(q.started_at, q.heartbeat_at, v_up) AS sign FROM task_queue q WHERE q.status = 'processing') s;
    IF v_old AND EXISTS (SELECT FROM running_queue_items r WHERE r.state = 'lost') THEN
        RETURN v_now;
    END IF;
    RETURN least(v_due, v_first + v_grace);
END
$body$;
COMMENT ON FUNCTION @schema@.next_item_due_at(text[]) IS
    'When a worker that found nothing in the queue should look again, unless it is notified before; null when nothing is there';
