-- Jobs of GoodJob that are done, the last ones: one whose lock is still held has leaked it.
SELECT ('x' || pg_catalog.substr(pg_catalog.md5('good_jobs-' || id::text), 1, 16))::bit(64)::bigint AS key,
       'GoodJob ' || coalesce(serialized_params ->> 'job_class', 'job') || ' ' || id::text || ' (finished)' AS name
FROM ONLY good_jobs
WHERE finished_at IS NOT NULL
ORDER BY finished_at DESC
LIMIT 5000
