-- Jobs of GoodJob that are not done, those that run first, in the versions that lock by the id of the Active Job.
SELECT ('x' || pg_catalog.substr(pg_catalog.md5('good_jobs-' || active_job_id::text), 1, 16))::bit(64)::bigint AS key,
       'GoodJob ' || coalesce(serialized_params ->> 'job_class', 'job') || ' ' || active_job_id::text AS name
FROM ONLY good_jobs
WHERE finished_at IS NULL
ORDER BY performed_at DESC NULLS LAST
LIMIT 10000
