-- Jobs of Que, which locks their ids: those that are locked now, and the newest.
(SELECT id::bigint AS key, 'Que ' || job_class || ' ' || id::text AS name
 FROM ONLY que_jobs
 WHERE id IN (SELECT (l.classid::bigint << 32) | l.objid::bigint
              FROM pg_catalog.pg_locks l
              WHERE l.locktype = 'advisory' AND l.objsubid = 1
                AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d
                                  WHERE d.datname = pg_catalog.current_database()))
 LIMIT 5000)
UNION ALL
(SELECT id::bigint, 'Que ' || job_class || ' ' || id::text
 FROM ONLY que_jobs
 ORDER BY id DESC
 LIMIT 5000)
