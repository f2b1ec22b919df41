-- Workers that have said which types of work they take; as many as there were at once, some of them gone. A list that is large as it is
-- stored, before anything unpacks it, is not read: its worker may take anything.
SELECT $columns,
       CASE WHEN pg_catalog.pg_column_size(t.types) <= 4000
            THEN pg_catalog.left(pg_catalog.array_to_json(t.types)::pg_catalog.text, 8000) END AS types
  FROM $table AS t
 LIMIT $limit
