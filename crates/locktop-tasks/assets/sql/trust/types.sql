-- For WITH RECURSIVE: the types of the columns of the relations in $of, a table with a column oid, and all that those are made of (elements,
-- bases of domains, ranges, attributes), without the server's own: those are below FirstNormalObjectId (src/include/access/transam.h). Who
-- owns a type may make casts of it, which are functions of that role and run wherever a statement casts the column, whatever its search
-- path. What a type of a role that is not trusted is made of does not matter any more: that role could make it as long as it likes.
types (relation, oid) AS (
SELECT w.oid, a.atttypid
  FROM $of AS w
  JOIN pg_catalog.pg_attribute AS a ON a.attrelid = w.oid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE a.atttypid >= 16384::pg_catalog.oid
 UNION
SELECT t.relation, x.oid
  FROM types AS t
  JOIN pg_catalog.pg_type AS y ON y.oid = t.oid
 CROSS JOIN LATERAL (SELECT y.typelem UNION ALL SELECT y.typbasetype
                      UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range AS r WHERE r.rngtypid = y.oid
                      UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute AS a
                                 WHERE a.attrelid = y.typrelid AND a.attnum > 0 AND NOT a.attisdropped) AS x (oid)
 WHERE x.oid >= 16384::pg_catalog.oid AND $trusts(y.typowner)
)
