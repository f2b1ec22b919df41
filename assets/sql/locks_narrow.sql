-- pg_locks where it is too large to be read whole: advisory locks, locks that somebody waits for (with their holders),
-- and the transaction ids of prepared transactions, which give them their names. The columns are those of locks.sql. The
-- last row has no virtualtransaction and holds in "relation" the number of rows there were.
COPY (
WITH l AS MATERIALIZED (SELECT * FROM pg_catalog.pg_lock_status())
SELECT nullif(locktype, 'advisory'),
       nullif(database, (SELECT pg_catalog.current_setting('locktop.datid', true)::pg_catalog.oid)),
       relation,
       coalesce(virtualxid, transactionid::pg_catalog.text,
                page::pg_catalog.text || ',' || coalesce(tuple::pg_catalog.text, '')),
       nullif(classid, 0::pg_catalog.oid),
       objid,
       nullif(objsubid, 1::pg_catalog.int2),
       virtualtransaction,
       pid,
       nullif(mode, 'ExclusiveLock'),
       CASE WHEN NOT granted THEN coalesce(waitstart, '-infinity') END
  FROM l
 WHERE locktype = 'advisory'
    OR NOT granted
    OR (pid IS NULL AND locktype = 'transactionid')
    OR (locktype, coalesce(database, 0), coalesce(relation, 0), coalesce(page, -1), coalesce(tuple, -1),
        coalesce(virtualxid, ''), coalesce(transactionid::pg_catalog.text, ''), coalesce(classid, 0),
        coalesce(objid, 0), coalesce(objsubid, -1))
       IN (SELECT locktype, coalesce(database, 0), coalesce(relation, 0), coalesce(page, -1), coalesce(tuple, -1),
                  coalesce(virtualxid, ''), coalesce(transactionid::pg_catalog.text, ''), coalesce(classid, 0),
                  coalesce(objid, 0), coalesce(objsubid, -1)
             FROM l WHERE NOT granted)
UNION ALL
SELECT NULL, NULL, count(*)::pg_catalog.int4::pg_catalog.oid, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM l
) TO STDOUT (FORMAT binary)
