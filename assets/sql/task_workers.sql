-- Workers that have said which types of work they take; as many as there were at once, some of them gone.
SELECT $columns,
       pg_catalog.left(pg_catalog.array_to_json(t.types)::pg_catalog.text, 8000) AS types
  FROM $table AS t
 LIMIT $limit
