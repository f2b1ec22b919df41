-- pg_locks, from the function below the view: whole, but for the rows of quiet sessions ($quiet: quiet.sql, or nobody). They are looked
-- up after the locks: what is quiet then was quiet when the locks were read.
--
-- A NULL is sent and decoded for next to nothing, so that what most rows have in common is sent as one: an advisory
-- lock, in our own database, with an upper half and a class of the key as most have it, exclusive, granted. The columns
-- that only one kind of lock has share one: "3/17" is a virtualxid, "771" a transactionid, "4,2" a page and a tuple,
-- "4," a page. Who waits has a last column: since when, -infinity where the server does not know yet.
--
-- The last row has no virtualtransaction. It says what locktop.poll is, whose rows were left out (less than nothing: the session is
-- in no transaction), what locktop.since should be at the next poll, and in "classid" how many microseconds the statement took.
COPY (
WITH quiet AS MATERIALIZED ($quiet)
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
 WHERE pid IS NULL OR pid NOT IN (SELECT pid FROM quiet)
UNION ALL
SELECT pg_catalog.current_setting('locktop.poll', true), NULL, NULL,
       (SELECT pg_catalog.string_agg(signed::pg_catalog.text, ',') FROM quiet),
       least(EXTRACT(epoch FROM pg_catalog.clock_timestamp() - pg_catalog.statement_timestamp()) * 1000000, 4000000000)::pg_catalog.int8::pg_catalog.oid,
       NULL, NULL, NULL, NULL,
       EXTRACT(epoch FROM pg_catalog.transaction_timestamp())::pg_catalog.text, NULL
) TO STDOUT (FORMAT binary)
