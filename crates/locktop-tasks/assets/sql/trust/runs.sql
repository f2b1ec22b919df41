-- Who owns what a trigger tg runs: its function, and what its condition calls. What is the server's own is not listed in pg_depend. A foreign key
-- is a trigger of the server's own, which reads or changes the table at its other end: what is there is planned, and what is queued there runs, as us.
(SELECT f.proowner AS owner FROM pg_catalog.pg_proc AS f WHERE f.oid = tg.tgfoid
  UNION ALL
 SELECT k.relowner FROM pg_catalog.pg_class AS k WHERE k.oid = tg.tgconstrrelid
  UNION ALL
 SELECT coalesce(f.proowner, o.oprowner, y.typowner)
   FROM pg_catalog.pg_depend AS d
   LEFT JOIN pg_catalog.pg_proc AS f ON d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND f.oid = d.refobjid
   LEFT JOIN pg_catalog.pg_operator AS o ON d.refclassid = 'pg_catalog.pg_operator'::pg_catalog.regclass AND o.oid = d.refobjid
   LEFT JOIN pg_catalog.pg_type AS y ON d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass AND y.oid = d.refobjid
  WHERE d.classid = 'pg_catalog.pg_trigger'::pg_catalog.regclass AND d.objid = tg.oid
    AND coalesce(f.proowner, o.oprowner, y.typowner) IS NOT NULL)
