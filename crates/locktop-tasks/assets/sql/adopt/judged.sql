-- How many rows there are of each verdict, and what the first of them are called.
SELECT j.verdict, pg_catalog.count(*), (pg_catalog.array_agg(j.label ORDER BY j.id))[1:10]
  FROM judged AS j
 GROUP BY j.verdict
 ORDER BY j.verdict
