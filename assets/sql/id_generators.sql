-- Id generators, by worker. There are 1024 workers at most.
SELECT $columns
  FROM $table AS t
 $order
 LIMIT $limit
