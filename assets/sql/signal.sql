-- Looks whether a session is still the one that was seen, in the situation it was seen in, and signals it then: one statement.
--
-- What is looked at comes from the functions below the views, so that no catalog has to be opened that somebody has locked. Each
-- step reads what the step before it made, and all are MATERIALIZED: the planner can neither merge nor reorder them. So the sessions
-- are read first, where locks are needed at all, and then the locks; then what this transaction saw of pg_stat_activity is thrown away,
-- because it is frozen; then the session is read again; and CASE evaluates the signal, which is volatile and depends on that row,
-- only after the verdict. Who was idle before the locks were read, and has done nothing since, has kept its key.
WITH members AS MATERIALIZED (
-- A parallel worker counts as its leader.
SELECT a.pid, coalesce(a.leader_pid, a.pid) AS leader, a.xact_start, a.query_start, a.state_change
  FROM pg_stat_get_activity(NULL) AS a
 WHERE $reads_locks
),
own AS MATERIALIZED (
SELECT m.pid, m.leader
  FROM members AS m
 WHERE m.leader = (SELECT t.leader FROM members AS t WHERE t.pid = $pid)
),
locks AS MATERIALIZED (
-- As text, which can be hashed; NULL is nothing. Which columns are NULL depends on the type alone.
SELECT concat(l.locktype, '/', l.database, '/', l.relation, '/', l.page, '/', l.tuple, '/', l.virtualxid, '/', l.transactionid, '/',
              l.classid, '/', l.objid, '/', l.objsubid) AS tag,
       l.mode, l.granted, l.pid, l.virtualtransaction, l.waitstart
  FROM pg_lock_status() AS l
 -- A condition that depends on no row of it is looked at before it: the sessions have been read by then.
 WHERE $reads_locks AND EXISTS (SELECT FROM own AS o)
),
conflicts (asked, held) AS (
VALUES $conflicts
),
-- What the session and its parallel workers have or wait for, and whom that may keep waiting.
behind AS MATERIALIZED (
SELECT h.granted, w.pid
  FROM locks AS h
  JOIN conflicts AS c ON c.held = h.mode
  JOIN locks AS w ON w.tag = h.tag AND w.mode = c.asked
 WHERE h.pid IN (SELECT o.pid FROM own AS o)
   AND NOT w.granted
   AND w.pid NOT IN (SELECT o.pid FROM own AS o)
),
-- Who is before whom in a queue, the server alone knows. It is asked about no more than a few.
queued AS MATERIALIZED (
SELECT DISTINCT b.pid FROM behind AS b WHERE NOT b.granted ORDER BY b.pid LIMIT 100
),
found AS MATERIALIZED (
SELECT $holds AS holds, $keeps AS keeps,
       CASE WHEN NOT $blocks THEN true
            WHEN EXISTS (SELECT FROM behind AS b WHERE b.granted) THEN true
            ELSE EXISTS (SELECT FROM queued AS q
                          WHERE (SELECT o.leader FROM own AS o LIMIT 1) = ANY (pg_blocking_pids(q.pid))) END AS blocks,
       (SELECT m.query_start FROM members AS m WHERE m.pid = $pid) AS query_before,
       (SELECT m.state_change FROM members AS m WHERE m.pid = $pid) AS state_before
),
cleared AS MATERIALIZED (
SELECT f.holds, f.keeps, f.blocks, f.query_before, f.state_before, pg_stat_clear_snapshot()::text AS done FROM found AS f
),
target AS MATERIALIZED (
SELECT c.holds, c.keeps, c.blocks, c.query_before, c.state_before, a.pid, a.backend_start, a.xact_start, a.query_start, a.state_change, a.state,
       a.application_name, a.usesysid, a.client_addr, a.client_port
  FROM cleared AS c
  LEFT JOIN LATERAL pg_stat_get_activity(CASE WHEN c.done IS NOT NULL THEN $pid END) AS a ON a.pid = $pid
),
verdict AS MATERIALIZED (
SELECT t.*,
       CASE WHEN t.pid IS NULL THEN 'gone'
            WHEN t.pid = pg_backend_pid() THEN 'own'
            WHEN t.backend_start IS NULL THEN 'hidden'
            WHEN t.backend_start <> $backend_start THEN 'session'
            WHEN $other_client THEN 'client'
            WHEN $other_transaction THEN 'transaction'
            WHEN $other_query THEN 'query'
            WHEN $other_state THEN 'state'
            WHEN $other_work THEN 'work'
            WHEN $not_active THEN 'not_active'
            WHEN t.holds IS NOT TRUE THEN 'released'
            WHEN t.keeps IS NOT TRUE THEN 'in_transaction'
            WHEN t.blocks IS NOT TRUE THEN 'blocks_nobody'
            WHEN $holds_key AND (t.query_before IS DISTINCT FROM t.query_start
                                 OR t.state_before IS DISTINCT FROM t.state_change) THEN 'moved'
            ELSE 'same' END AS word
  FROM target AS t
)
SELECT json_build_object(
         'word', v.word,
         'sent', CASE WHEN v.word = 'same' THEN $signal(v.pid) END,
         'backend_start', v.backend_start,
         'xact_start', v.xact_start,
         'query_start', v.query_start,
         'state_change', v.state_change,
         'state', v.state,
         'application', v.application_name)
  FROM verdict AS v
