-- Locks with names, as the list of statements has them: those of a session, or those that are given.
--
-- Left out, because no other session can wait for them on their own, or only for a moment:
-- relations and objects that the session has just created; weak modes on catalogs; TOAST tables and their indexes, which are locked like
-- their table; parts of another object, which are locked with it (constraints, defaults, triggers, rules, policies, row and array types,
-- members of an operator family, statistics of a table that is locked in AccessExclusive, all objects with an internal dependency); a role as grantee or owner (only DROP ROLE waits for that);
-- temporary schemas.
SELECT l.mode, k.kind, k.name, i.indrelid::int8, l.objid::int8, c.relnamespace::int8
  FROM ($locks) AS l (classid, objid, mode, label)
  LEFT JOIN pg_class AS c ON l.classid = 1259 AND c.oid = l.objid
  LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
  CROSS JOIN LATERAL (
       SELECT CASE WHEN l.classid = 0 THEN 'advisory'
                   WHEN l.classid = 6000 THEN 'replication origin'
                   WHEN l.classid <> 1259 THEN (pg_identify_object(l.classid, l.objid, 0)).type
                   ELSE CASE c.relkind WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
                                       WHEN 'S' THEN 'sequence' WHEN 'c' THEN 'composite type' ELSE 'table' END END AS kind,
              CASE WHEN l.classid = 0 THEN l.label
                   WHEN l.classid = 6000 THEN 'of a subscription'
                   WHEN l.classid <> 1259 THEN (pg_identify_object(l.classid, l.objid, 0)).identity
                   ELSE l.objid::regclass::text END AS name) AS k
 WHERE k.name IS NOT NULL
   AND (l.classid <> 1259 OR c.oid IS NOT NULL)
   AND NOT (l.classid = 1259 AND c.relnamespace = 'pg_catalog'::regnamespace AND l.mode IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock'))
   AND (c.oid IS NULL OR c.relnamespace <> 'pg_toast'::regnamespace)
   AND l.classid NOT IN (2606, 2604, 2620, 2618, 3256, 2602, 2603)
   AND NOT (l.classid = 1260 AND l.mode = 'AccessShareLock')
   AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = l.classid AND d.objid = l.objid AND d.deptype = 'i' AND l.classid <> 1259)
   AND NOT (l.classid = 3381 AND EXISTS (SELECT FROM ($locks) AS o (classid, objid, mode, label) JOIN pg_statistic_ext AS s ON s.stxrelid = o.objid
                                          WHERE s.oid = l.objid AND o.classid = 1259 AND o.mode = 'AccessExclusiveLock'))
   AND NOT (l.classid = 2615 AND k.name ~ '^pg_(toast_)?temp_')
 ORDER BY 2, 3, 1
