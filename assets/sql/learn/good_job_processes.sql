-- Processes of GoodJob: each locks the first half of an md5 of table and id while it lives.
SELECT ('x' || pg_catalog.substr(pg_catalog.md5('good_job_processes-' || id::text), 1, 16))::bit(64)::bigint AS key,
       'GoodJob process ' || coalesce((state ->> 'hostname') || ':' || (state ->> 'pid'), id::text) AS name
FROM ONLY good_job_processes
LIMIT 10000
