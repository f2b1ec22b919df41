-- pg_locks where it is too large to be read whole: advisory locks, locks that somebody waits for (with their holders),
-- and the transaction ids of prepared transactions, which give them their names. Of the advisory locks those of quiet sessions are left
-- out, as in locks.sql, whose columns and last row this has; that also holds in "relation" the number of rows there were. Awaited locks
-- are found by one number of theirs: a few rows more come with them, for a fraction of the time that all their columns take.
COPY (
WITH l AS MATERIALIZED (SELECT * FROM pg_catalog.pg_lock_status()),
quiet AS MATERIALIZED ($quiet)
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
 WHERE CASE WHEN locktype = 'advisory' THEN pid IS NULL OR pid NOT IN (SELECT pid FROM quiet)
            ELSE (pid IS NULL AND locktype = 'transactionid')
              OR coalesce(relation, objid, 0::pg_catalog.oid) IN
                 (SELECT coalesce(relation, objid, 0::pg_catalog.oid) FROM l WHERE NOT granted AND locktype <> 'advisory') END
UNION ALL
SELECT pg_catalog.current_setting('locktop.poll', true), NULL,
       (SELECT pg_catalog.count(*) FROM l)::pg_catalog.int4::pg_catalog.oid,
       (SELECT pg_catalog.string_agg(signed::pg_catalog.text, ',') FROM quiet),
       least(EXTRACT(epoch FROM pg_catalog.clock_timestamp() - pg_catalog.statement_timestamp()) * 1000000, 4000000000)::pg_catalog.int8::pg_catalog.oid,
       NULL, NULL, NULL, NULL,
       EXTRACT(epoch FROM pg_catalog.transaction_timestamp())::pg_catalog.text, NULL
) TO STDOUT (FORMAT binary)
