-- Items of the statuses that no index finds: among the newest, through the primary key. Where these are all there are, the
-- numbers are exact.
(WITH w AS MATERIALIZED (
      SELECT pg_catalog.left(t.status::pg_catalog.text, 100) AS status, $created AS created, $completed AS completed
        FROM $table AS t ORDER BY t.id DESC LIMIT $most + 1)
 SELECT w.status, pg_catalog.count(*), (SELECT pg_catalog.count(*) FROM w) > $most, pg_catalog.min(w.created),
        CASE WHEN (SELECT pg_catalog.count(*) FROM w) <= $most THEN
             pg_catalog.count(*) FILTER (WHERE w.completed OPERATOR(pg_catalog.>) pg_catalog.now() OPERATOR(pg_catalog.-) interval '1 minute') END
   FROM w
  WHERE (w.status OPERATOR(pg_catalog.=) ANY ($counted::pg_catalog.text[])) IS NOT TRUE
  GROUP BY w.status)
