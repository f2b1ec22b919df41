-- Relations that statements lock by way of one that they name: the number of that, how it leads there, and what is found there. With
-- the names of the constraint and the columns of a foreign key, or of the column that a view reads or that owns a sequence. Reads catalogs alone.
SELECT a.number, o.role, c.oid, n.nspname, c.relname, o.names
  FROM ($found) AS a
 CROSS JOIN LATERAL (
            WITH RECURSIVE below (oid) AS (
                    SELECT h.inhrelid FROM pg_catalog.pg_inherits AS h WHERE h.inhparent OPERATOR(pg_catalog.=) a.oid
                     UNION
                    SELECT h.inhrelid FROM pg_catalog.pg_inherits AS h, below AS b WHERE h.inhparent OPERATOR(pg_catalog.=) b.oid),
                 base (oid) AS (
                    SELECT a.oid
                     UNION
                    SELECT d.refobjid
                      FROM base AS b
                      JOIN pg_catalog.pg_class AS v ON v.oid OPERATOR(pg_catalog.=) b.oid
                       AND (v.relkind OPERATOR(pg_catalog.=) 'v' OR v.relkind OPERATOR(pg_catalog.=) 'm' AND v.oid OPERATOR(pg_catalog.=) a.oid)
                      JOIN pg_catalog.pg_rewrite AS r ON r.ev_class OPERATOR(pg_catalog.=) b.oid
                      JOIN pg_catalog.pg_depend AS d ON d.classid OPERATOR(pg_catalog.=) 2618 AND d.objid OPERATOR(pg_catalog.=) r.oid
                       AND d.refclassid OPERATOR(pg_catalog.=) 1259),
                 referenced (oid, names) AS (
                    SELECT k.confrelid, pg_catalog.array_append(
                               ARRAY(SELECT t.attname FROM pg_catalog.pg_attribute AS t
                                      WHERE t.attrelid OPERATOR(pg_catalog.=) k.conrelid AND t.attnum OPERATOR(pg_catalog.=) ANY (k.conkey)), k.conname)
                      FROM pg_catalog.pg_constraint AS k
                     WHERE k.contype OPERATOR(pg_catalog.=) 'f' AND k.conrelid OPERATOR(pg_catalog.=) a.oid
                     UNION
                    SELECT h.inhrelid, r.names
                      FROM referenced AS r JOIN pg_catalog.pg_inherits AS h ON h.inhparent OPERATOR(pg_catalog.=) r.oid
                      JOIN pg_catalog.pg_class AS p ON p.oid OPERATOR(pg_catalog.=) r.oid AND p.relkind OPERATOR(pg_catalog.=) 'p'),
                 views (oid, attname) AS (
                    SELECT a.oid, NULL::pg_catalog.name
                     UNION
                    SELECT r.ev_class, COALESCE(b.attname, t.attname)
                      FROM views AS b
                      JOIN pg_catalog.pg_depend AS d ON d.refclassid OPERATOR(pg_catalog.=) 1259 AND d.refobjid OPERATOR(pg_catalog.=) b.oid
                       AND d.classid OPERATOR(pg_catalog.=) 2618
                      JOIN pg_catalog.pg_rewrite AS r ON r.oid OPERATOR(pg_catalog.=) d.objid
                      LEFT JOIN pg_catalog.pg_attribute AS t ON t.attrelid OPERATOR(pg_catalog.=) d.refobjid
                       AND t.attnum OPERATOR(pg_catalog.=) d.refobjsubid AND d.refobjsubid OPERATOR(pg_catalog.>) 0)
            SELECT 'below' AS role, b.oid, NULL::pg_catalog.name[] AS names FROM below AS b
             UNION ALL
            SELECT 'below', i.indrelid, NULL
              FROM below AS b JOIN pg_catalog.pg_index AS i ON i.indexrelid OPERATOR(pg_catalog.=) b.oid
             UNION ALL
            SELECT CASE WHEN v.relkind OPERATOR(pg_catalog.=) 'm' THEN 'source' ELSE 'base' END, b.oid, NULL
              FROM base AS b JOIN pg_catalog.pg_class AS v ON v.oid OPERATOR(pg_catalog.=) a.oid
             UNION ALL
            SELECT 'views', b.oid, pg_catalog.array_append('{}'::pg_catalog.name[], b.attname)
              FROM views AS b WHERE b.attname IS NOT NULL OR NOT EXISTS (SELECT FROM views AS v WHERE v.oid OPERATOR(pg_catalog.=) b.oid AND v.attname IS NOT NULL)
             UNION ALL
            SELECT 'parent', h.inhparent, NULL
              FROM pg_catalog.pg_inherits AS h
              JOIN pg_catalog.pg_class AS p ON p.oid OPERATOR(pg_catalog.=) h.inhparent AND p.relkind OPERATOR(pg_catalog.=) 'p'
             WHERE h.inhrelid OPERATOR(pg_catalog.=) a.oid
             UNION ALL
            SELECT 'referenced', r.oid, r.names FROM referenced AS r
             UNION ALL
            SELECT 'referencing', k.conrelid, pg_catalog.array_cat(
                       ARRAY(SELECT t.attname FROM pg_catalog.pg_attribute AS t
                              WHERE t.attrelid OPERATOR(pg_catalog.=) k.confrelid AND t.attnum OPERATOR(pg_catalog.=) ANY (k.confkey)),
                       ARRAY(SELECT u.conname FROM pg_catalog.pg_constraint AS u
                              WHERE u.conrelid OPERATOR(pg_catalog.=) k.confrelid AND u.conindid OPERATOR(pg_catalog.=) k.conindid
                                AND u.contype OPERATOR(pg_catalog.<>) 'f'))
              FROM pg_catalog.pg_constraint AS k
             WHERE k.contype OPERATOR(pg_catalog.=) 'f' AND k.confrelid OPERATOR(pg_catalog.=) a.oid
             UNION ALL
            SELECT 'cascading', k.conrelid, NULL
              FROM pg_catalog.pg_constraint AS k
             WHERE k.contype OPERATOR(pg_catalog.=) 'f' AND k.confrelid OPERATOR(pg_catalog.=) a.oid
               AND (k.confdeltype OPERATOR(pg_catalog.=) ANY (ARRAY['c', 'n', 'd']::"char"[])
                    OR k.confupdtype OPERATOR(pg_catalog.=) ANY (ARRAY['c', 'n', 'd']::"char"[]))
             UNION ALL
            SELECT 'sequences', s.oid, ARRAY(SELECT t.attname FROM pg_catalog.pg_attribute AS t
                              WHERE t.attrelid OPERATOR(pg_catalog.=) a.oid AND t.attnum OPERATOR(pg_catalog.=) d.refobjsubid)
              FROM pg_catalog.pg_depend AS d
              JOIN pg_catalog.pg_class AS s ON s.oid OPERATOR(pg_catalog.=) d.objid AND s.relkind OPERATOR(pg_catalog.=) 'S'
             WHERE d.refclassid OPERATOR(pg_catalog.=) 1259 AND d.refobjid OPERATOR(pg_catalog.=) a.oid AND d.classid OPERATOR(pg_catalog.=) 1259
               AND d.deptype OPERATOR(pg_catalog.=) ANY (ARRAY['a', 'i']::"char"[])
             UNION ALL
            SELECT 'columns', t.oid, NULL
              FROM pg_catalog.pg_class AS v JOIN pg_catalog.pg_class AS t ON t.reloftype OPERATOR(pg_catalog.=) v.reltype
             WHERE v.oid OPERATOR(pg_catalog.=) a.oid AND v.relkind OPERATOR(pg_catalog.=) 'c'
             UNION ALL
            SELECT 'default', p.partdefid, NULL FROM pg_catalog.pg_partitioned_table AS p WHERE p.partrelid OPERATOR(pg_catalog.=) a.oid
             UNION ALL
            SELECT 'indexes', i.indexrelid, NULL FROM pg_catalog.pg_index AS i WHERE i.indrelid OPERATOR(pg_catalog.=) a.oid
             LIMIT 10000) AS o
  JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) o.oid AND c.oid OPERATOR(pg_catalog.<>) a.oid
  JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
