-- Leases. $columns, $end, $place, $table, $order and $limit are replaced: what the table has, and NULL for the rest. Where there is
-- an index, by id, so that a table of millions costs no more than its first thousand rows. The end is computed within bounds, so
-- that one odd row cannot fail the others.
SELECT $columns,
       $end AS ends,
       $place AS place
  FROM $table AS t
 $order
 LIMIT $limit
