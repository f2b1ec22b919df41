-- Fails where this transaction has locked a relation beside those in $oids, their parts and the catalogs: a query that was only understood has named it.
-- Its error repeats the reason; without one it has no row.
SELECT ('$mark' || w.reason)::pg_catalog.int4 AS guard
  FROM (SELECT pg_catalog.format('the query names %s.%s, which is none of the tables of the adapter', n.nspname, c.relname) AS reason
          FROM pg_catalog.pg_locks AS l
          JOIN pg_catalog.pg_class AS c ON c.oid = l.relation AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
          JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname <> 'pg_catalog'
         WHERE l.locktype = 'relation' AND l.pid = pg_catalog.pg_backend_pid()
           AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
           AND NOT c.oid = ANY (ARRAY[$oids]::pg_catalog.oid[])
           AND NOT (c.relispartition AND EXISTS (SELECT FROM pg_catalog.unnest(ARRAY[$oids]::pg_catalog.oid[]) AS o (oid)
                                                   CROSS JOIN LATERAL pg_catalog.pg_partition_tree(o.oid) AS p WHERE p.relid = c.oid))
         LIMIT 1) AS w
