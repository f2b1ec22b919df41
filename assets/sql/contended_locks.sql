-- The locks that were waited for the longest, of so many rows at most: the table has no more than the observer keeps.
SELECT $columns
  FROM (SELECT * FROM $table AS r LIMIT $rows) AS t
 ORDER BY t.total_wait DESC
 LIMIT $limit
