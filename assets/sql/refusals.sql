-- The last values of the sequences of one table's columns. NULL without the right to read it, and on a standby, where unlogged
-- sequences cannot be read.
SELECT pg_catalog.max(s.value) FILTER (WHERE s.attname OPERATOR(pg_catalog.=) 'rate_limit'),
       pg_catalog.max(s.value) FILTER (WHERE s.attname OPERATOR(pg_catalog.=) 'transfer'),
       pg_catalog.max(s.value) FILTER (WHERE s.attname OPERATOR(pg_catalog.=) 'lease'),
       pg_catalog.max(s.value) FILTER (WHERE s.attname OPERATOR(pg_catalog.=) 'task')
  FROM (SELECT a.attname,
               CASE WHEN NOT pg_catalog.pg_is_in_recovery()
                         AND pg_catalog.has_sequence_privilege(c.oid, 'SELECT, USAGE')
                    THEN coalesce(pg_catalog.pg_sequence_last_value(c.oid), 0)
               END AS value
          FROM pg_catalog.pg_depend AS d
          JOIN pg_catalog.pg_attribute AS a
            ON a.attrelid OPERATOR(pg_catalog.=) d.refobjid AND a.attnum OPERATOR(pg_catalog.=) d.refobjsubid
          JOIN pg_catalog.pg_class AS c
            ON c.oid OPERATOR(pg_catalog.=) d.objid AND c.relkind OPERATOR(pg_catalog.=) 'S'
         WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
           AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
           AND d.deptype OPERATOR(pg_catalog.=) 'a'
           AND d.refobjid OPERATOR(pg_catalog.=) '$oid'::pg_catalog.oid) AS s
