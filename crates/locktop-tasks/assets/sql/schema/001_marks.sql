-- The schema itself, and the marks by which it is known again.

CREATE SCHEMA @schema@;
COMMENT ON SCHEMA @schema@ IS 'locktop: made and removed by "locktop schema"';

-- One row for each version that was applied, in order.
CREATE TABLE @schema@.locktop_schema (
    version integer PRIMARY KEY,
    installed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    installed_by name NOT NULL DEFAULT session_user
);
COMMENT ON TABLE @schema@.locktop_schema IS 'locktop: the versions of this schema that were applied';

-- What the versions made. Anything else in this schema is somebody else's and is left alone.
CREATE TABLE @schema@.locktop_objects (
    kind text NOT NULL,
    identity text NOT NULL,
    fingerprint text,
    PRIMARY KEY (kind, identity)
);
COMMENT ON TABLE @schema@.locktop_objects IS
    'locktop: what it made in this schema, with a hash of each function body as it was made';
