SELECT oid, datname::pg_catalog.text, pg_catalog.pg_encoding_to_char(encoding)::pg_catalog.text FROM pg_catalog.pg_database
