-- pg_locks, read whole from the function below the view.
COPY (
SELECT locktype, database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid,
       virtualtransaction, pid, mode, granted, waitstart
  FROM pg_catalog.pg_lock_status()
) TO STDOUT (FORMAT binary)
