-- Queues of pgmq: it locks the hash of a queue's name.
SELECT pg_catalog.hashtext('pgmq.queue_' || queue_name)::bigint AS key, 'pgmq queue ' || queue_name AS name
FROM ONLY meta
LIMIT 10000
