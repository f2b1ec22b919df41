-- Items of the statuses that no index finds, and of any other status: among the newest, through the primary key. Where these are
-- all there are, the numbers are exact; else there may be more of each, also where none was seen.
(WITH w AS MATERIALIZED (
      SELECT pg_catalog.left(t.status::pg_catalog.text, 100) AS status, $created AS created, $completed AS completed
        FROM $table AS t ORDER BY t.id DESC LIMIT $most + 1),
     n AS (SELECT pg_catalog.count(*) > $most AS more FROM w)
 SELECT s.status, pg_catalog.count(w.status), n.more, pg_catalog.min(w.created),
        CASE WHEN NOT n.more THEN
             pg_catalog.count(*) FILTER (WHERE w.completed OPERATOR(pg_catalog.>) (pg_catalog.now() OPERATOR(pg_catalog.-) interval '1 minute')) END
   FROM pg_catalog.unnest($rest::pg_catalog.text[]) AS s (status)
  CROSS JOIN n
   LEFT JOIN w ON w.status OPERATOR(pg_catalog.=) s.status
  GROUP BY s.status, n.more
 UNION ALL
 SELECT NULL, pg_catalog.count(*), n.more, NULL, NULL
   FROM w CROSS JOIN n
  WHERE (w.status OPERATOR(pg_catalog.=) ANY ($known::pg_catalog.text[])) IS NOT TRUE
  GROUP BY n.more)
