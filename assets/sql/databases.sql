SELECT oid, datname::pg_catalog.text FROM pg_catalog.pg_database
