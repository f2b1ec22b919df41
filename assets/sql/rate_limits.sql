-- Rate limits: the windows that end last, where there is an index for that.
SELECT $columns
  FROM $table AS t
 $where
 $order
 LIMIT $limit
