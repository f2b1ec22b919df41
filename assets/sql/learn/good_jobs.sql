-- Jobs of GoodJob that are not done, those that run first: it locks the first half of an md5 of table and id.
SELECT ('x' || pg_catalog.substr(pg_catalog.md5('good_jobs-' || id::text), 1, 16))::bit(64)::bigint AS key,
       'GoodJob ' || coalesce(serialized_params ->> 'job_class', 'job') || ' ' || id::text AS name
FROM ONLY good_jobs
WHERE finished_at IS NULL
ORDER BY performed_at DESC NULLS LAST
LIMIT 10000
