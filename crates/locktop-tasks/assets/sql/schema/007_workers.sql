-- Which types of work the workers take: who looks can tell a task that nobody takes from one that is late.

-- A row for each worker that has said so, while its session lives. Rows of sessions that are gone stay until another worker takes them over:
-- nobody needs the right to delete.
CREATE TABLE @schema@.locktop_workers (
    backend_pid integer PRIMARY KEY,
    -- With the process id, what tells the session from every other one.
    backend_start timestamptz NOT NULL,
    worker_id varchar(100) NOT NULL,
    -- Whether it works on scheduled_tasks, and on task_queue.
    takes_tasks boolean NOT NULL,
    takes_items boolean NOT NULL,
    -- task_type of tasks, task_name of items; null: all of them.
    types text[] CHECK (cardinality(types) <= 1000 AND pg_column_size(types) <= 8000),
    announced_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE @schema@.locktop_workers IS
    'locktop: which types of work each connected worker takes; see announce_worker()';

CREATE FUNCTION @schema@.announce_worker(p_worker_id text, p_types text[] DEFAULT NULL, p_tasks boolean DEFAULT true,
                                         p_items boolean DEFAULT true)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_worker varchar(100) := p_worker_id;
    v_start timestamptz := own_backend_start();
BEGIN
    UPDATE locktop_workers w
       SET backend_start = v_start, worker_id = v_worker, takes_tasks = p_tasks, takes_items = p_items, types = p_types,
           announced_at = clock_timestamp()
     WHERE w.backend_pid = pg_backend_pid();
    IF NOT FOUND THEN
        -- The row of somebody who is gone. Who takes the same at the same time is passed over.
        UPDATE locktop_workers w
           SET backend_pid = pg_backend_pid(), backend_start = v_start, worker_id = v_worker, takes_tasks = p_tasks, takes_items = p_items,
               types = p_types, announced_at = clock_timestamp()
         WHERE w.backend_pid = (
               SELECT g.backend_pid FROM locktop_workers g
                WHERE NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = g.backend_pid)
                LIMIT 1
                  FOR UPDATE SKIP LOCKED);
    END IF;
    IF NOT FOUND THEN
        INSERT INTO locktop_workers (backend_pid, backend_start, worker_id, takes_tasks, takes_items, types)
        VALUES (pg_backend_pid(), v_start, v_worker, p_tasks, p_items, p_types);
    END IF;
END
$body$;
COMMENT ON FUNCTION @schema@.announce_worker(text, text[], boolean, boolean) IS
    'Says which types of work this session takes, as long as it lives: locktop then tells which tasks nobody takes; without p_types of all';

-- Whoever may write what runs may say what he takes, and whoever may read that may read this. The waits that were counted are
-- for the readers of the log.
DO $do$
DECLARE
    v_grant record;
BEGIN
    FOR v_grant IN
        SELECT g.privilege_type AS what, g.grantee, g.is_grantable, c.relnamespace::regnamespace AS place,
               c.oid = @literal:task_execution_log@::regclass AS is_log
          FROM pg_class c CROSS JOIN aclexplode(c.relacl) g
         WHERE c.oid IN (@literal:task_execution_log@::regclass, @literal:task_queue@::regclass) AND g.grantee <> c.relowner
           AND g.privilege_type IN ('SELECT', 'INSERT', 'UPDATE')
    LOOP
        EXECUTE format('GRANT %s ON %s.locktop_workers%s TO %s%s', v_grant.what, v_grant.place,
                       CASE WHEN v_grant.what = 'SELECT' AND v_grant.is_log THEN format(', %s.contended_locks', v_grant.place) ELSE '' END,
                       CASE WHEN v_grant.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(v_grant.grantee)) END,
                       CASE WHEN v_grant.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
    END LOOP;
END
$do$;
