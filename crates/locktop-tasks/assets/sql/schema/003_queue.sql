-- The work queue: items that each go to one worker at a time.
--
-- A worker claims an item and commits; then it works, and ends the item in another transaction. Whose an item is says its row: the
-- worker, its session and the number of the attempt, which only grows. The advisory key of an item, held by that session meanwhile,
-- is there to be seen by who looks at locks; no decision rests on it.
--
-- Each session keeps the plans that it made at first, when the table may have been empty: hence enable_seqscan.

CREATE TABLE @schema@.task_queue (
    id bigserial PRIMARY KEY,
    task_name varchar(100),
    payload jsonb,
    status varchar(20) NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
    worker_id varchar(100),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at timestamptz,
    completed_at timestamptz,
    -- How often it was claimed.
    attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    max_attempts integer NOT NULL DEFAULT 3 CHECK (max_attempts > 0),
    -- How long an attempt may take: past it the attempt is slow, and its worker ends it.
    timeout interval NOT NULL DEFAULT '30 minutes' CHECK (timeout > interval '0'),
    -- After the first attempt that failed; it doubles with each further one.
    retry_delay interval NOT NULL DEFAULT '10 seconds' CHECK (retry_delay >= interval '0'),
    -- Attempts that failed. Those that were lost or given back are not among them.
    failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    -- Nobody claims it before: written when an attempt failed, and by whoever adds an item for later.
    not_before timestamptz,
    -- Who has been due for the longest is claimed first.
    due_at timestamptz GENERATED ALWAYS AS (greatest(created_at, not_before)) STORED,
    -- The session that claimed it.
    backend_pid integer,
    backend_start timestamptz,
    heartbeat_at timestamptz,
    -- What the last attempt that failed said, or what is known of one that was lost.
    error_message text
) WITH (fillfactor = 80);
COMMENT ON TABLE @schema@.task_queue IS 'locktop: items of work, who has each and what became of it';

CREATE INDEX idx_queue_pending ON @schema@.task_queue (due_at, id) WHERE status = 'pending';
CREATE INDEX idx_queue_processing ON @schema@.task_queue (backend_pid) WHERE status = 'processing';
CREATE INDEX idx_queue_completed ON @schema@.task_queue (completed_at) WHERE status = 'completed';
CREATE INDEX idx_queue_failed ON @schema@.task_queue (completed_at) WHERE status = 'failed';

CREATE FUNCTION @schema@.queue_lock_key(p_task_id bigint)
RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    -- 0x4C51
    SELECT lock_key(19537, p_task_id)
$body$;
COMMENT ON FUNCTION @schema@.queue_lock_key(bigint) IS 'The advisory lock key of an item of the work queue';

-- Wakes idle workers when items are added, always: whether there are any cannot be told before this commits. The same words each
-- time, so that a transaction that adds a thousand items is heard once.
CREATE FUNCTION @schema@.announce_queue()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    PERFORM pg_notify('locktop_queue', TG_TABLE_SCHEMA);
    RETURN NULL;
END
$body$;
COMMENT ON FUNCTION @schema@.announce_queue() IS 'NOTIFY locktop_queue, ''<schema>'' when items were added';

-- The same for an item that is pending again. Idle workers sleep until the next one is due: one that is due after another that is
-- still to come is no news.
CREATE FUNCTION @schema@.announce_item()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
    v_now timestamptz := clock_timestamp();
BEGIN
    IF NEW.due_at > v_now AND EXISTS (
        SELECT FROM task_queue q
         WHERE q.status = 'pending' AND q.due_at > v_now AND q.due_at <= NEW.due_at AND q.id <> NEW.id
    ) THEN
        RETURN NULL;
    END IF;
    PERFORM pg_notify('locktop_queue', TG_TABLE_SCHEMA);
    RETURN NULL;
END
$body$;
COMMENT ON FUNCTION @schema@.announce_item() IS
    'NOTIFY locktop_queue, ''<schema>'' when an item is pending again and due, or will be before any other';

CREATE TRIGGER announce_new_items
    AFTER INSERT ON @schema@.task_queue
    FOR EACH STATEMENT EXECUTE FUNCTION @schema@.announce_queue();
CREATE TRIGGER announce_returned_item
    AFTER UPDATE OF status, not_before, created_at ON @schema@.task_queue
    FOR EACH ROW WHEN (NEW.status = 'pending' AND (OLD.status <> 'pending' OR NEW.due_at < OLD.due_at))
    EXECUTE FUNCTION @schema@.announce_item();

-- The session that has an item has its key: taken and given back at the commit, since a session's locks outlive a rollback.
CREATE FUNCTION @schema@.show_queue_key()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    IF OLD.status = 'processing' THEN
        IF OLD.backend_pid = pg_backend_pid() THEN
            PERFORM pg_advisory_unlock(queue_lock_key(OLD.id));
        END IF;
    ELSIF NEW.backend_pid = pg_backend_pid() THEN
        -- False when somebody else has it: then it is not shown, and the item is ours all the same.
        PERFORM pg_try_advisory_lock(queue_lock_key(NEW.id));
    END IF;
    RETURN NULL;
END
$body$;
COMMENT ON FUNCTION @schema@.show_queue_key() IS 'Holds the advisory key of an item in the session that works on it';

CREATE CONSTRAINT TRIGGER show_key
    AFTER UPDATE ON @schema@.task_queue
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN ((OLD.status = 'processing') <> (NEW.status = 'processing'))
    EXECUTE FUNCTION @schema@.show_queue_key();
CREATE CONSTRAINT TRIGGER show_key_no_more
    AFTER DELETE ON @schema@.task_queue
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.status = 'processing')
    EXECUTE FUNCTION @schema@.show_queue_key();

-- Who has been due for the longest first. Commit at once; the work comes after.
CREATE FUNCTION @schema@.claim_queue_items(p_worker_id text, p_max_items integer DEFAULT 1)
RETURNS TABLE (task_id bigint, task_name varchar, payload jsonb, attempt integer, max_attempts integer, started_at timestamptz,
               timeout_seconds double precision)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
AS $body$
#variable_conflict use_column
DECLARE
    v_start timestamptz := own_backend_start();
    v_now timestamptz := clock_timestamp();
BEGIN
    IF p_worker_id IS NULL THEN
        RAISE EXCEPTION 'a worker that claims an item has a name' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    RETURN QUERY
    UPDATE task_queue q
       SET status = 'processing', worker_id = p_worker_id, backend_pid = pg_backend_pid(), backend_start = v_start,
           attempt = q.attempt + 1, started_at = v_now, heartbeat_at = v_now, completed_at = NULL
     -- An array, not a join: a session that planned it while the table was empty would go through all of it for each claim. It is
     -- made once, however the rest is planned.
     WHERE q.id = ANY (ARRAY(
        SELECT c.id
          FROM task_queue c
         WHERE c.status = 'pending' AND c.due_at <= v_now
         ORDER BY c.due_at, c.id
         LIMIT p_max_items
           FOR UPDATE SKIP LOCKED))
    RETURNING q.id, q.task_name, q.payload, q.attempt, q.max_attempts, q.started_at, extract(epoch FROM q.timeout)::float8;
END
$body$;
COMMENT ON FUNCTION @schema@.claim_queue_items(text, integer) IS
    'Takes the pending items that have been due for the longest for this session; commit, work, then call finish_queue_item for each with its attempt';

CREATE FUNCTION @schema@.consume_task()
RETURNS TABLE (task_id bigint, task_name varchar, payload jsonb)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT c.task_id, c.task_name, c.payload FROM claim_queue_items(coalesce(host(inet_client_addr()), 'local'), 1) c;
END
$body$;
COMMENT ON FUNCTION @schema@.consume_task() IS
    'Takes the pending item that has been due for the longest for this session, in the name of its address; no row when there is none';

-- p_status is completed; failed, for good; or pending, to be tried again after a pause, unless this was the last attempt.
CREATE FUNCTION @schema@.finish_queue_item(p_task_id bigint, p_worker_id text, p_attempt integer, p_status text,
                                           p_error_message text DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
    IF p_status IS NULL OR p_status NOT IN ('completed', 'failed', 'pending') THEN
        RAISE EXCEPTION 'status is "%": an item ends as completed or failed, or is pending again', p_status
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE task_queue q
       SET status = CASE WHEN p_status = 'pending' AND q.attempt >= q.max_attempts THEN 'failed' ELSE p_status END,
           completed_at = CASE WHEN p_status <> 'pending' OR q.attempt >= q.max_attempts THEN clock_timestamp() END,
           failures = CASE p_status WHEN 'completed' THEN q.failures ELSE q.failures + 1 END,
           not_before = CASE WHEN p_status = 'pending' AND q.attempt < q.max_attempts
                             THEN clock_timestamp() + retry_pause(q.retry_delay, q.failures + 1) END,
           error_message = p_error_message
     WHERE q.id = p_task_id AND q.status = 'processing' AND q.worker_id = p_worker_id AND q.attempt = p_attempt
       AND q.backend_pid = pg_backend_pid();
    RETURN FOUND;
END
$body$;
COMMENT ON FUNCTION @schema@.finish_queue_item(bigint, text, integer, text, text) IS
    'Ends an item that this worker has in this session, in this attempt; false when it has not, and nothing was changed';

-- What was begun and not done is pending again at once, and the attempt does not count. Its number only grows, so there may be one
-- more.
CREATE FUNCTION @schema@.give_back_queue_item(p_task_id bigint, p_worker_id text, p_attempt integer)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
    UPDATE task_queue q
       SET status = 'pending', max_attempts = q.max_attempts + 1
     WHERE q.id = p_task_id AND q.status = 'processing' AND q.worker_id = p_worker_id AND q.attempt = p_attempt
       AND q.backend_pid = pg_backend_pid();
    RETURN FOUND;
END
$body$;
COMMENT ON FUNCTION @schema@.give_back_queue_item(bigint, text, integer) IS
    'Makes an item pending again that this worker has in this session and has not done, without counting the attempt; false when it has not';

CREATE FUNCTION @schema@.heartbeat_queue_items(p_worker_id text)
RETURNS TABLE (task_id bigint, attempt integer)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
AS $body$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    UPDATE task_queue q
       SET heartbeat_at = clock_timestamp()
     WHERE q.status = 'processing' AND q.worker_id = p_worker_id AND q.backend_pid = pg_backend_pid()
       AND q.backend_start = own_backend_start()
    RETURNING q.id, q.attempt;
END
$body$;
COMMENT ON FUNCTION @schema@.heartbeat_queue_items(text) IS
    'A sign of life for all that a worker has in this session: the items that are still its own; it stops the others';
