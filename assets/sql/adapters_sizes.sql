-- How large the tables in $oids are, their parts with them, and which of their indexes are partial: an object of JSON. The tables are locked
-- by now. Rows are as the planner has them: by the density of the last count, and the pages that there are.
SELECT pg_catalog.jsonb_build_object(
         'relations', (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('schema', n.nspname, 'name', c.relname, 'rows',
                         pg_catalog.round((CASE WHEN c.reltuples >= 0 AND c.relpages > 0 THEN c.reltuples / c.relpages ELSE 100 END
                           * (pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::pg_catalog.int4))::pg_catalog.numeric))), '[]')
                         FROM (SELECT DISTINCT coalesce(p.relid, o.oid) AS oid
                                 FROM pg_catalog.unnest(ARRAY[$oids]::pg_catalog.oid[]) AS o (oid)
                                 LEFT JOIN LATERAL pg_catalog.pg_partition_tree(o.oid) AS p ON p.isleaf) AS t
                         JOIN pg_catalog.pg_class AS c ON c.oid = t.oid
                         JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace),
         'partial', (SELECT coalesce(pg_catalog.jsonb_agg(x.relname), '[]')
                       FROM pg_catalog.pg_index AS i
                       JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
                      WHERE i.indpred IS NOT NULL
                        AND i.indrelid IN (SELECT o.oid FROM pg_catalog.unnest(ARRAY[$oids]::pg_catalog.oid[]) AS o (oid)
                                            UNION
                                           SELECT p.relid FROM pg_catalog.unnest(ARRAY[$oids]::pg_catalog.oid[]) AS o (oid)
                                            CROSS JOIN LATERAL pg_catalog.pg_partition_tree(o.oid) AS p)))::pg_catalog.text AS sizes
