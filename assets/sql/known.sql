-- What is known from the last poll, for the statements of this one: $1 is the number of the poll, which they repeat, $2 the time of which
-- locks.sql speaks ('0' for all rows), $3 the digests of backends.sql.
SELECT pg_catalog.set_config('locktop.poll', $1, false), pg_catalog.set_config('locktop.since', $2, false),
       pg_catalog.set_config('locktop.digests', $3, false)
