-- Above which number ids are free, the sequence included, and how many of the new rows need one of those.
SELECT greatest(q.last_value, (SELECT pg_catalog.max(o.id) FROM $into AS o), r.top)::pg_catalog.int8, r.clashing
  FROM $sequence AS q
 CROSS JOIN (SELECT pg_catalog.max(f.id) FILTER (WHERE NOT f.clashes) AS top, pg_catalog.count(*) FILTER (WHERE f.clashes) AS clashing
               FROM fresh AS f) AS r
