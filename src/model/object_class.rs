//! Catalogs that a lock of type `object` may refer to. Their OIDs are fixed (`CATALOG(…)` in `src/include/catalog/*.h`).

/// `pg_database`, as `classid` of a lock.
pub(crate) const DATABASE: u32 = 1262;

const CLASSES: [(u32, &str); 37] = [
    (826, "default privileges"),
    (1213, "tablespace"),
    (1247, "type"),
    (1255, "function"),
    (1259, "relation"),
    (1260, "role"),
    (1261, "membership of a role"),
    (1262, "database"),
    (1417, "foreign server"),
    (1418, "user mapping"),
    (2328, "foreign-data wrapper"),
    (2601, "access method"),
    (2602, "operator of an access method"),
    (2603, "function of an access method"),
    (2604, "default value"),
    (2605, "cast"),
    (2606, "constraint"),
    (2607, "conversion"),
    (2612, "language"),
    (2613, "large object"),
    (2615, "schema"),
    (2616, "operator class"),
    (2617, "operator"),
    (2618, "rule"),
    (2620, "trigger"),
    (2753, "operator family"),
    (3079, "extension"),
    (3256, "policy"),
    (3381, "statistics object"),
    (3466, "event trigger"),
    (3576, "transform"),
    (3600, "text search dictionary"),
    (3601, "text search parser"),
    (3602, "text search configuration"),
    (3764, "text search template"),
    (6100, "subscription"),
    (6104, "publication"),
];

pub(crate) fn class(oid: u32) -> Option<&'static str> {
    CLASSES.iter().find(|(class, _)| *class == oid).map(|(_, words)| *words)
}

/// Whether the server can be asked for the name of such an object: it rejects catalogs that it does not know.
pub(crate) fn has_name(oid: u32) -> bool {
    oid != 2613 && class(oid).is_some()
}
