-- pg_prepared_xacts from the function below the view.
COPY (
SELECT transaction, gid, prepared, ownerid, dbid
  FROM pg_catalog.pg_prepared_xact()
) TO STDOUT (FORMAT binary)
