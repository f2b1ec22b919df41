-- What a query of an adapter is sent behind, in one message, which is one transaction (SET LOCAL ends with it).
-- Without enable_bitmapscan = off a bitmap reads all matches before a LIMIT counts. With enable_seqscan = off a plan seems to cost 10^10 up to
-- PostgreSQL 17, and would be compiled with jit on. With row_security on a table with policies has no rows, and no error.
SET TRANSACTION READ ONLY;
SET LOCAL statement_timeout = 1000;
SET LOCAL lock_timeout = 100;
SET LOCAL search_path TO pg_catalog, pg_temp;
SET LOCAL TimeZone = 'UTC';
SET LOCAL row_security = off;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL cursor_tuple_fraction = 0.1;
SET LOCAL plan_cache_mode = force_generic_plan;
