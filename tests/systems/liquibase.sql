--liquibase formatted sql

--changeset locktop:1
CREATE TABLE orders (id int);

--changeset locktop:2
SELECT pg_advisory_xact_lock(7);

--changeset locktop:3
ALTER TABLE orders ADD amount numeric;
