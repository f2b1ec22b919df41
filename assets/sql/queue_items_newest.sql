-- Items of the statuses that no index finds, among the newest (or those before the first pending ones), through the primary key.
(SELECT w.*
   FROM (SELECT $columns FROM $table AS t $where ORDER BY t.id DESC LIMIT $newest) AS w
  WHERE w.c2 OPERATOR(pg_catalog.=) ANY ($statuses::pg_catalog.text[])
  LIMIT $limit)
