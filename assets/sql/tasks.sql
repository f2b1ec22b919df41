-- Schedules. $columns, $table and $limit are replaced: what the table has, and NULL for the rest. By id, through the
-- primary key, so that a table of millions costs no more than its first few thousand rows.
SELECT $columns
  FROM $table AS t
 ORDER BY t.id
 LIMIT $limit
