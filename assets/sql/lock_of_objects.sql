-- Objects of one kind that names lead to (a number, its schema or NULL, the name): their OIDs, and tables of the type or with a column of it. An empty name is that
-- of the schema in which the role creates. Reads catalogs alone.
SELECT a.number, 'object' AS role, c.oid, NULL AS nspname, NULL AS relname, NULL AS names
  FROM (VALUES $asked) AS a (number, schema, name)
  JOIN pg_catalog.$catalog AS c ON c.$name::pg_catalog.text OPERATOR(pg_catalog.=)
       CASE WHEN a.name OPERATOR(pg_catalog.=) '' THEN pg_catalog.current_schema()::pg_catalog.text ELSE a.name END
 WHERE $in_schema
 UNION ALL
SELECT a.number, 'columns', t.oid, n.nspname, t.relname, NULL
  FROM (VALUES $asked) AS a (number, schema, name)
  JOIN pg_catalog.$catalog AS c ON c.$name::pg_catalog.text OPERATOR(pg_catalog.=) a.name
  JOIN pg_catalog.pg_depend AS d ON d.refclassid OPERATOR(pg_catalog.=) 1247 AND d.refobjid OPERATOR(pg_catalog.=) c.oid
   AND d.classid OPERATOR(pg_catalog.=) 1259
  JOIN pg_catalog.pg_class AS t ON t.oid OPERATOR(pg_catalog.=) d.objid
   AND (d.objsubid OPERATOR(pg_catalog.>) 0 OR t.reloftype OPERATOR(pg_catalog.=) c.oid)
  JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) t.relnamespace
 WHERE 'pg_type'::pg_catalog.text OPERATOR(pg_catalog.=) '$catalog' AND $in_schema
