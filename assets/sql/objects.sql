-- Names of the objects in $1 (catalogs) and $2 (OIDs), which are of this database or shared: `schema staging`, `function public.f(integer)`. What is
-- gone has none. The function reads the catalogs alone, and prints operators and types without calling anything of theirs.
SELECT a.classid, a.objid, o.type, o.identity
  FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.oid[])) AS a (classid, objid)
 CROSS JOIN LATERAL pg_catalog.pg_identify_object(a.classid, a.objid, 0) AS o
 WHERE o.identity IS NOT NULL
