-- The locks that were waited for the longest: an index has them in this order.
SELECT $columns
  FROM $table AS t
 ORDER BY t.total_wait DESC
 LIMIT $limit
