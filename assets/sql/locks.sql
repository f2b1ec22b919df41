-- pg_locks, read whole from the function below the view.
--
-- A NULL is sent and decoded for next to nothing, so that what most rows have in common is sent as one: an advisory
-- lock, in our own database, with an upper half and a class of the key as most have it, exclusive, granted. The columns
-- that only one kind of lock has share one: "3/17" is a virtualxid, "771" a transactionid, "4,2" a page and a tuple,
-- "4," a page. Who waits has a last column: since when, -infinity where the server does not know yet.
COPY (
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
  FROM pg_catalog.pg_lock_status()
) TO STDOUT (FORMAT binary)
