-- How much each lock of the server is waited for. The server keeps no such numbers: somebody has to look, again and again. That is
-- "locktop worker --observe-locks", or any other session, also a scheduler's:
--
--     SELECT cron.schedule('locktop', '5 seconds', 'SELECT locktop.observe_lock_waits()')
--
-- What is over between two looks is not seen: a wait that is shorter than their distance counts only if a look fell into it, and every
-- wait counts for as long as it had lasted at the last look that saw it. So the numbers are at least as large in truth. They are of
-- the whole server: one observer is enough for all its databases, and names are those of the database where it looks.

-- One row for each lock that somebody was seen to wait for. Whose id says nothing the next time are taken together: the rows of a
-- table, whose places change with every update, and the ends of transactions.
CREATE TABLE @schema@.contended_locks (
    -- As in pg_locks, with 0 for null. A wait for a transaction that has a row locked is one for the rows of the table: "tuple".
    locktype text NOT NULL,
    database oid NOT NULL,
    relation oid NOT NULL,
    classid oid NOT NULL,
    objid oid NOT NULL,
    objsubid smallint NOT NULL,
    waits_seen bigint NOT NULL,
    total_wait interval NOT NULL,
    longest_wait interval NOT NULL,
    -- Which mode the one that waited for the longest had asked for.
    longest_mode text NOT NULL,
    -- When the first wait began, and when the last one was last seen.
    first_seen timestamptz NOT NULL,
    last_seen timestamptz NOT NULL,
    PRIMARY KEY (locktype, database, relation, classid, objid, objsubid)
) WITH (fillfactor = 70);
COMMENT ON TABLE @schema@.contended_locks IS
    'locktop: locks that somebody was seen to wait for, how often and for how long; see lock_contention';

-- The waits that the last look has seen, and how much of each has been counted. A process waits for one lock at a time.
CREATE TABLE @schema@.observed_waits (
    pid integer NOT NULL,
    waitstart timestamptz NOT NULL,
    counted interval NOT NULL,
    PRIMARY KEY (pid, waitstart)
) WITH (fillfactor = 70);
COMMENT ON TABLE @schema@.observed_waits IS 'locktop: the waits that the last look at the locks has seen, each counted once';

-- Looks once, with one scan of pg_locks: how many waits there are, or null when another session is just looking. Of the locks beyond
-- p_keep those that were not waited for for the longest are forgotten. Commit at once: nobody else can look before.
CREATE FUNCTION @schema@.observe_lock_waits(p_keep integer DEFAULT 10000)
RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_now timestamptz;
    v_waits integer;
    v_new integer;
BEGIN
    -- 0x4C4F. One at a time, so that each wait is counted by one.
    IF NOT pg_try_advisory_xact_lock(lock_key(19535, 'contended_locks'::regclass::oid::bigint)) THEN
        RETURN NULL;
    END IF;
    -- Before the locks are read: who waits then has waited for at least as long.
    v_now := clock_timestamp();
    WITH locks AS MATERIALIZED (
        SELECT l.pid, l.locktype, coalesce(l.database, 0) AS database, coalesce(l.relation, 0) AS relation,
               coalesce(l.classid, 0) AS classid, coalesce(l.objid, 0) AS objid, coalesce(l.objsubid, 0::smallint) AS objsubid,
               l.mode, l.waitstart, l.granted
          FROM pg_locks l
         -- Whose time is not there yet has just begun to wait. Who waits for the one that has a row locked has the row's place locked.
         WHERE NOT l.granted AND l.waitstart IS NOT NULL OR l.granted AND l.locktype = 'tuple' AND l.mode <> 'SIReadLock'
    ), waits AS MATERIALIZED (
        SELECT w.pid, w.waitstart, w.mode, greatest(v_now - w.waitstart, interval '0') AS length,
               CASE WHEN r.pid IS NULL THEN w.locktype ELSE r.locktype END AS locktype,
               CASE WHEN r.pid IS NULL THEN w.database ELSE r.database END AS database,
               CASE WHEN r.pid IS NULL THEN w.relation ELSE r.relation END AS relation,
               -- Of a page and a row these are null; the number of a transaction is in none of them.
               w.classid, w.objid, w.objsubid
          FROM locks w
          LEFT JOIN LATERAL (
               SELECT t.* FROM locks t
                WHERE w.locktype = 'transactionid' AND t.granted AND t.pid = w.pid
                LIMIT 1) r ON true
         WHERE NOT w.granted
    ), grown AS (
        SELECT w.*, o.pid IS NULL AS is_new, greatest(w.length - coalesce(o.counted, interval '0'), interval '0') AS growth
          FROM waits w
          LEFT JOIN observed_waits o ON o.pid = w.pid AND o.waitstart = w.waitstart
    ), counted AS (
        INSERT INTO contended_locks AS c
        SELECT g.locktype, g.database, g.relation, g.classid, g.objid, g.objsubid,
               count(*) FILTER (WHERE g.is_new), sum(g.growth), max(g.length), (array_agg(g.mode ORDER BY g.length DESC))[1],
               min(g.waitstart), v_now
          FROM grown g
         GROUP BY g.locktype, g.database, g.relation, g.classid, g.objid, g.objsubid
            ON CONFLICT (locktype, database, relation, classid, objid, objsubid) DO UPDATE
           SET waits_seen = c.waits_seen + excluded.waits_seen,
               total_wait = c.total_wait + excluded.total_wait,
               longest_mode = CASE WHEN excluded.longest_wait > c.longest_wait THEN excluded.longest_mode ELSE c.longest_mode END,
               longest_wait = greatest(c.longest_wait, excluded.longest_wait),
               first_seen = least(c.first_seen, excluded.first_seen),
               last_seen = greatest(c.last_seen, excluded.last_seen)
        RETURNING c.xmax = 0 AS is_new
    ), kept AS (
        INSERT INTO observed_waits AS o (pid, waitstart, counted)
        SELECT w.pid, w.waitstart, w.length FROM waits w
            ON CONFLICT (pid, waitstart) DO UPDATE SET counted = greatest(o.counted, excluded.counted)
    ), ended AS (
        DELETE FROM observed_waits o
         WHERE NOT EXISTS (SELECT FROM waits w WHERE w.pid = o.pid AND w.waitstart = o.waitstart)
    )
    SELECT count(*), (SELECT count(*) FROM counted c WHERE c.is_new) INTO v_waits, v_new FROM waits;
    IF v_new > 0 THEN
        -- Not those that are waited for now: of these waits something was counted.
        DELETE FROM contended_locks c
         WHERE c.last_seen < v_now
           AND c.ctid = ANY (ARRAY(SELECT k.ctid FROM contended_locks k ORDER BY k.last_seen DESC OFFSET p_keep));
    END IF;
    RETURN v_waits;
END
$body$;
COMMENT ON FUNCTION @schema@.observe_lock_waits(integer) IS
    'Counts who waits for which lock now, for lock_contention: call it every few seconds; how many wait, null when another session looks';

-- A key has a name where the id in it is that of something that is there.
CREATE VIEW @schema@.lock_contention AS
SELECT coalesce(n.name, CASE
           WHEN k.lock_id IS NOT NULL THEN format('advisory %s', k.lock_id)
           WHEN k.key1 IS NOT NULL THEN format('advisory (%s, %s)', k.key1, k.key2)
           WHEN c.relation <> 0 THEN format(CASE c.locktype WHEN 'tuple' THEN 'rows of %s' WHEN 'relation' THEN '%s'
                                                            ELSE c.locktype || ' of %s' END,
                                            coalesce(t.name, format('relation %s', c.relation)))
           WHEN c.locktype = 'transactionid' THEN 'transactions'
           WHEN c.classid <> 0 THEN format('%s %s of catalog %s', c.locktype, c.objid, c.classid)
           ELSE c.locktype END) AS lock,
       c.locktype,
       d.datname AS database,
       k.lock_id,
       k.key1,
       k.key2,
       nullif(c.relation, 0) AS relation,
       c.waits_seen,
       c.total_wait,
       c.longest_wait,
       c.longest_mode,
       c.first_seen,
       c.last_seen
  FROM @schema@.contended_locks c
  LEFT JOIN pg_database d ON d.oid = c.database
 CROSS JOIN LATERAL (SELECT CASE c.locktype WHEN 'advisory' THEN c.objsubid END AS kind) a
 CROSS JOIN LATERAL (
       SELECT CASE a.kind WHEN 1 THEN c.classid::bigint << 32 | c.objid::bigint END AS lock_id,
              CASE a.kind WHEN 2 THEN (c.classid::bigint << 32 >> 32)::bit(32)::integer END AS key1,
              CASE a.kind WHEN 2 THEN c.objid::bigint::bit(32)::integer END AS key2) k
  LEFT JOIN LATERAL (
       SELECT 'task ' || t.task_name AS name FROM @schema@.scheduled_tasks t
        WHERE k.lock_id >> 48 = 19540 AND t.id = (k.lock_id & 281474976710655)
       UNION ALL
       SELECT 'queue item ' || q.id FROM @schema@.task_queue q
        WHERE k.lock_id >> 48 = 19537 AND q.id = (k.lock_id & 281474976710655)
       UNION ALL
       SELECT 'id generator ' || g.worker_id FROM @schema@.id_generator g
        WHERE k.lock_id >> 48 = 19529 AND g.worker_id = (k.lock_id & 281474976710655)) n
    ON d.datname = current_database()
  LEFT JOIN LATERAL (
       SELECT format('%I.%I', s.nspname, r.relname) AS name
         FROM pg_class r JOIN pg_namespace s ON s.oid = r.relnamespace
        WHERE r.oid = c.relation) t
    ON d.datname = current_database() OR c.database = 0
 ORDER BY c.total_wait DESC;
COMMENT ON VIEW @schema@.lock_contention IS
    'How often and for how long each lock was waited for, as far as observe_lock_waits() has seen it; the most first';
