-- Items whose worker's session is gone.
--
-- The proof is the session's identity: a process id with its start, once gone from pg_stat_activity, is never there again, so what
-- was seen cannot become untrue. A free advisory key would prove less: a session can lose its locks (pg_advisory_unlock_all, DISCARD
-- ALL) and work on. Who looks must look after the row was read, and not at what the transaction saw of pg_stat_activity before:
-- a session that began since would seem to be gone.

-- Items that are being worked on, and whether the session is there.
--
-- state: running; slow, past its timeout and its session there; lost, the session is gone, and the last sign of life and up_since() are
-- both longer ago than orphan_grace(); settling, gone for less than that: its worker may not know it yet, and still be at it;
-- unknown, where this server cannot tell: a standby, an item without a session, or one whose process id is that of a session of which
-- this role may not see when it began.
CREATE VIEW @schema@.running_queue_items AS
WITH up AS MATERIALIZED (
    SELECT @schema@.up_since() AS since, @schema@.orphan_grace() AS grace
)
SELECT q.id AS task_id,
       q.task_name,
       q.worker_id,
       CASE WHEN pg_is_in_recovery() OR q.backend_pid IS NULL OR q.backend_start IS NULL THEN 'unknown'
            WHEN a.backend_start = q.backend_start AND q.started_at + q.timeout <= clock_timestamp() THEN 'slow'
            WHEN a.backend_start = q.backend_start THEN 'running'
            WHEN a.pid IS NOT NULL AND a.backend_start IS NULL THEN 'unknown'
            WHEN greatest(q.started_at, q.heartbeat_at, u.since) + u.grace <= clock_timestamp() THEN 'lost'
            ELSE 'settling' END AS state,
       q.created_at,
       q.started_at,
       clock_timestamp() - q.started_at AS duration,
       q.timeout,
       q.heartbeat_at,
       q.attempt,
       q.max_attempts,
       q.backend_pid,
       q.backend_start
  FROM @schema@.task_queue q
  LEFT JOIN pg_stat_get_activity(NULL) a ON a.pid = q.backend_pid
 CROSS JOIN up u
 WHERE q.status = 'processing';
COMMENT ON VIEW @schema@.running_queue_items IS
    'Items of the work queue that are being worked on: running, slow, settling, lost with their session, or unknown';

-- Takes an item from a session that is gone, or from nobody. In the caller's transaction, which should commit at once. The outcome is one of
--   requeued       pending again, and due at once: an attempt that was lost says nothing of the item, and has been waited for
--   gave_up        set aside as failed: it was the last attempt
--   set_aside      set aside as failed, because that was asked for
--   not_found      there is no such item
--   wrong_state    it is not in one of the states p_from
--   locked         somebody has its row locked
--   held           holder_pid has it
--   unknown        whether its session is there cannot be told
CREATE FUNCTION @schema@.settle_queue_item(p_task_id bigint, p_from text[], p_to text, p_actor text, p_reason text)
RETURNS TABLE (task_id bigint, worker_id varchar, attempt integer, outcome text, holder_pid integer, detail text)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
DECLARE
    v_row task_queue;
    v_locked boolean;
    v_there boolean;
    v_start timestamptz;
BEGIN
    task_id := p_task_id;
    SELECT * INTO v_row FROM task_queue q WHERE q.id = p_task_id AND q.status = ANY (p_from) FOR UPDATE SKIP LOCKED;
    v_locked := FOUND;
    IF NOT v_locked THEN
        SELECT * INTO v_row FROM task_queue q WHERE q.id = p_task_id;
    END IF;
    worker_id := v_row.worker_id;
    attempt := v_row.attempt;
    PERFORM pg_stat_clear_snapshot();
    SELECT a.backend_start INTO v_start FROM pg_stat_get_activity(v_row.backend_pid) a WHERE a.pid = v_row.backend_pid;
    v_there := FOUND;
    outcome := CASE
        WHEN v_row.id IS NULL THEN 'not_found'
        WHEN v_row.status <> ALL (p_from) THEN 'wrong_state'
        WHEN NOT v_locked THEN 'locked'
        WHEN v_row.status <> 'processing' THEN NULL
        WHEN v_row.backend_pid IS NULL OR v_row.backend_start IS NULL THEN 'unknown'
        WHEN v_there AND v_start = v_row.backend_start THEN 'held'
        WHEN v_there AND v_start IS NULL THEN 'unknown' END;
    detail := CASE outcome
        WHEN 'not_found' THEN format('there is no item %s', p_task_id)
        WHEN 'wrong_state' THEN format('it is %s', v_row.status)
        WHEN 'locked' THEN 'its row was locked by somebody'
        WHEN 'held' THEN format('worker %s has it in the session of pid %s', v_row.worker_id, v_row.backend_pid)
        WHEN 'unknown' THEN CASE WHEN v_there THEN format('when pid %s began is hidden from this role: grant it pg_read_all_stats',
                                                          v_row.backend_pid)
                                 ELSE 'its row names no session' END END;
    IF outcome IS NULL THEN
        outcome := CASE WHEN p_to = 'failed' THEN 'set_aside'
                        WHEN v_row.status = 'processing' AND v_row.attempt >= v_row.max_attempts THEN 'gave_up'
                        ELSE 'requeued' END;
        detail := CASE v_row.status
            WHEN 'processing' THEN
                format('attempt %s was lost with the session of pid %s of %s, last sign of life %s', v_row.attempt, v_row.backend_pid,
                       v_row.backend_start, coalesce(greatest(v_row.started_at, v_row.heartbeat_at)::text, '?'))
            ELSE format('it was %s after %s attempts', v_row.status, v_row.attempt) END;
        UPDATE task_queue q
           SET status = CASE outcome WHEN 'requeued' THEN 'pending' ELSE 'failed' END,
               completed_at = CASE WHEN outcome <> 'requeued' THEN clock_timestamp() END,
               not_before = NULL,
               -- The number of the attempt only grows, so one that is asked for is one more.
               max_attempts = CASE v_row.status WHEN 'failed' THEN greatest(q.max_attempts, q.attempt + 1) ELSE q.max_attempts END,
               error_message = CASE v_row.status WHEN 'failed' THEN q.error_message ELSE coalesce(p_reason || ': ', '') || detail END
         WHERE q.id = p_task_id;
        INSERT INTO locktop_audit (action, actor, worker_id, lock_id, target_pid, target_start, reason, detail)
        VALUES (outcome, p_actor, v_row.worker_id, queue_lock_key(p_task_id), v_row.backend_pid, v_row.backend_start, p_reason,
                format('item %s of the work queue: %s', p_task_id, detail));
    ELSIF outcome = 'held' THEN
        holder_pid := v_row.backend_pid;
    END IF;
    RETURN NEXT;
END
$body$;
COMMENT ON FUNCTION @schema@.settle_queue_item(bigint, text[], text, text, text) IS
    'Makes an item pending again that no session has, or sets it aside; says what it did or why not';

CREATE FUNCTION @schema@.requeue_queue_item(p_task_id bigint, p_actor text, p_reason text DEFAULT NULL)
RETURNS TABLE (task_id bigint, worker_id varchar, attempt integer, outcome text, holder_pid integer, detail text)
LANGUAGE sql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT s.* FROM settle_queue_item(p_task_id, '{processing}', 'pending', p_actor, p_reason) s
$body$;
COMMENT ON FUNCTION @schema@.requeue_queue_item(bigint, text, text) IS
    'Makes an item pending again whose session is gone, or fails it after its last attempt; says what it did or why not';

-- Not the same function: who brings lost items back must not bring back one that another has just given up.
CREATE FUNCTION @schema@.retry_queue_item(p_task_id bigint, p_actor text, p_reason text DEFAULT NULL)
RETURNS TABLE (task_id bigint, worker_id varchar, attempt integer, outcome text, holder_pid integer, detail text)
LANGUAGE sql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT s.* FROM settle_queue_item(p_task_id, '{failed}', 'pending', p_actor, p_reason) s
$body$;
COMMENT ON FUNCTION @schema@.retry_queue_item(bigint, text, text) IS
    'Makes an item pending again that has failed, for one attempt more if it had all of them; says what it did or why not';

CREATE FUNCTION @schema@.set_aside_queue_item(p_task_id bigint, p_actor text, p_reason text DEFAULT NULL)
RETURNS TABLE (task_id bigint, worker_id varchar, attempt integer, outcome text, holder_pid integer, detail text)
LANGUAGE sql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT s.* FROM settle_queue_item(p_task_id, '{processing,pending}', 'failed', p_actor, p_reason) s
$body$;
COMMENT ON FUNCTION @schema@.set_aside_queue_item(bigint, text, text) IS
    'Fails an item that is pending or whose session is gone, so that nobody claims it; says what it did or why not';

-- A session that is gone is not a process that is gone: its worker needs a while to notice, and to stop. So these are the items that are
-- lost by running_queue_items, after the grace; requeue_queue_item is for whoever knows that the worker has stopped.
CREATE FUNCTION @schema@.requeue_lost_items(p_actor text, p_limit integer DEFAULT 100)
RETURNS TABLE (task_id bigint, worker_id varchar, attempt integer, outcome text, holder_pid integer, detail text)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
AS $body$
#variable_conflict use_column
DECLARE
    v_oldest timestamptz := clock_timestamp() - orphan_grace();
    v_id bigint;
BEGIN
    -- Cheap, and the end of it wherever all workers live. To look at the sessions is not.
    IF NOT EXISTS (SELECT FROM task_queue q
                    WHERE q.status = 'processing' AND (greatest(q.started_at, q.heartbeat_at) > v_oldest) IS NOT TRUE) THEN
        RETURN;
    END IF;
    FOR v_id IN
        SELECT r.task_id FROM running_queue_items r WHERE r.state = 'lost' ORDER BY r.task_id LIMIT p_limit
    LOOP
        RETURN QUERY SELECT * FROM requeue_queue_item(v_id, p_actor);
    END LOOP;
END
$body$;
COMMENT ON FUNCTION @schema@.requeue_lost_items(text, integer) IS
    'requeue_queue_item for each item that is lost; for workers that found nothing to do, and for pg_cron';

-- The time when the next pending item is due, which may have come since; or when an item may be lost. Signs of life come every few
-- seconds: where the oldest is younger than the grace it is that item which may be lost next, and to look once more after the grace
-- costs less than to look for its session now.
CREATE FUNCTION @schema@.next_item_due_at()
RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_grace interval := orphan_grace();
    v_up timestamptz;
    v_due timestamptz;
    v_first timestamptz;
    v_old boolean;
BEGIN
    SELECT min(q.due_at) INTO v_due FROM task_queue q WHERE q.status = 'pending';
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
COMMENT ON FUNCTION @schema@.next_item_due_at() IS
    'When a worker that found nothing in the queue should look again, unless it is notified before; null when nothing is there';

-- Without SKIP LOCKED: an item that somebody has locked is there all the same. Each state is counted by its own small index.
CREATE VIEW @schema@.queue_depth AS
SELECT (SELECT count(*) FROM @schema@.task_queue q WHERE q.status = 'pending') AS pending,
       (SELECT count(*) FROM @schema@.task_queue q WHERE q.status = 'processing') AS processing,
       (SELECT count(*) FROM @schema@.task_queue q WHERE q.status = 'completed') AS completed,
       (SELECT count(*) FROM @schema@.task_queue q WHERE q.status = 'failed') AS failed,
       (SELECT min(q.due_at) FROM @schema@.task_queue q WHERE q.status = 'pending' AND q.due_at <= statement_timestamp()) AS oldest_pending_at,
       (SELECT count(*) FROM @schema@.task_queue q
         WHERE q.status = 'completed' AND q.completed_at > now() - interval '1 minute') AS completed_last_minute,
       (SELECT count(*) FROM @schema@.task_queue q WHERE q.status = 'pending' AND q.due_at > statement_timestamp()) AS resting;
COMMENT ON VIEW @schema@.queue_depth IS
    'Items of the work queue by state, since when the oldest is due and waits, and how many of the pending ones are not due yet';

-- The state is the worst of its items.
CREATE VIEW @schema@.queue_workers AS
SELECT r.worker_id,
       r.backend_pid,
       r.backend_start,
       -- Of one session the others are lost and settling, or slow; an item without one is unknown.
       coalesce(min(r.state) FILTER (WHERE r.state <> 'running'), 'running') AS state,
       count(*) AS items,
       min(r.started_at) AS oldest_started_at,
       max(greatest(r.started_at, r.heartbeat_at)) AS last_sign_at
  FROM @schema@.running_queue_items r
 GROUP BY r.worker_id, r.backend_pid, r.backend_start;
COMMENT ON VIEW @schema@.queue_workers IS 'Who works on how many items of the work queue, and whether the session is there';
