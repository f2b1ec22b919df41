-- What runs by the published tables, and who holds its key. The numbers that may be the key of a task: what its row says, its id, and what the
-- published functions make of its name and type. Held by whomever, a number stands for its task: nobody can tell.
--
-- settling: the key is free, and for all that is known it was held until now: the worker may still be at it.
WITH claimed AS (
$claimed
), held AS MATERIALIZED (
SELECT l.classid::pg_catalog.int8 << 32 | l.objid::pg_catalog.int8 AS key, l.pid
  FROM pg_catalog.pg_locks AS l
 WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
   AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
), busy AS MATERIALIZED (
SELECT DISTINCT ON (c.kind, c.id) c.kind, c.id, c.runs, h.key, h.pid
  FROM claimed AS c
  JOIN held AS h ON h.key = c.key
 ORDER BY c.kind, c.id, c.runs DESC, c.place
), settling AS (
SELECT c.kind, c.id, true AS runs, (pg_catalog.array_agg(c.key ORDER BY c.place))[1] AS key
  FROM claimed AS c
 WHERE c.runs AND NOT EXISTS (SELECT FROM busy AS b WHERE b.kind = c.kind AND b.id = c.id)
   AND greatest(c.started_at, $schema.up_since()) + $schema.orphan_grace() > pg_catalog.clock_timestamp()
 GROUP BY c.kind, c.id
)
SELECT CASE WHEN b.pid IS NULL AND NOT b.is_settling
            THEN pg_catalog.format('%s %s%s: a prepared transaction holds key %s', b.kind, b.id, b.does, b.key)
            WHEN b.is_settling
            THEN pg_catalog.format('%s %s may still run: key %s is free, but not surely for longer than orphan_grace (%s)',
                                   b.kind, b.id, b.key, $schema.orphan_grace())
            ELSE pg_catalog.format('%s %s%s: %s holds key %s', b.kind, b.id, b.does, b.pid, b.key) END
  FROM (SELECT b.kind, b.id, b.key, b.pid, false AS is_settling, CASE WHEN b.runs THEN ' runs' ELSE '' END AS does FROM busy AS b
         UNION ALL
        SELECT s.kind, s.id, s.key, NULL, true, '' FROM settling AS s) AS b
 ORDER BY b.is_settling, b.kind DESC, b.id
 LIMIT 1000
