-- Items of one status, through the index on them, up to a limit.
(SELECT $status::pg_catalog.text AS c0, pg_catalog.count(*) AS c1, pg_catalog.count(*) > $most AS c2,
        $oldest AS c3,
        $recent AS c4
   FROM (SELECT t.$created AS created FROM $table AS t WHERE t.status OPERATOR(pg_catalog.=) $status LIMIT $most + 1) AS q)
