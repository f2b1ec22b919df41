SELECT oid, rolname::pg_catalog.text FROM pg_catalog.pg_roles
