//! Keys that software computes from the name of the connected database.

use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use sha2::{Digest, Sha224};

use super::LockName;
use super::hash::golang_migrate;
use crate::model::lock_key::LockKey;

/// Number of databases whose keys are cached; with more, keys are computed again.
const LIMIT: usize = 4096;

/// Both programs use the same code.
const SHARED: &str = "Grafana or golang-migrate";

#[derive(Debug, Clone, Copy)]
struct Keys {
    rails: i64,
    sqlx: i64,
    golang_migrate: i64,
    /// Without schema and table: Grafana, and golang-migrate versions that did not include them.
    plain: i64,
    pg_boss: i64,
}

impl Keys {
    fn of(database: &str) -> Self {
        let crc = i64::from(crc32fast::hash(database.as_bytes()));
        Self {
            // Neither product of two 32-bit numbers overflows an i64: the factors are below 2^31.
            rails: crc * 2_053_462_845,
            sqlx: crc * 0x3d32_ad9e,
            golang_migrate: golang_migrate(&format!("public\0schema_migrations\0{database}")),
            plain: golang_migrate(database),
            pg_boss: pg_boss(database),
        }
    }

    /// Name and origin; a key shared by two programs is a guess.
    fn name_of(self, key: i64) -> Option<(&'static str, &'static str)> {
        Some(match key {
            _ if key == self.rails => ("Rails migrations", "2053462845 * crc32 of the database's name"),
            _ if key == self.sqlx => ("sqlx migrate", "0x3d32ad9e * crc32 of the database's name"),
            _ if key == self.golang_migrate => {
                ("golang-migrate", "1486364155 * crc32 of public, schema_migrations and the database's name")
            }
            _ if key == self.plain => (
                SHARED,
                "1486364155 * crc32 of the database's name, as Grafana and golang-migrate compute it",
            ),
            _ if key == self.pg_boss => {
                ("pg-boss", "sha224 of the database's name, \".pgboss.\" and the schema pgboss")
            }
            _ => return None,
        })
    }
}

/// pg-boss with its default schema: the first 64 bits of SHA-224.
fn pg_boss(database: &str) -> i64 {
    let digest = Sha224::new().chain_update(database).chain_update(".pgboss.pgboss").finalize();
    digest.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

#[derive(Debug, Clone, Default)]
pub(super) struct Cache(Arc<RwLock<FxHashMap<Box<str>, Keys>>>);

impl Cache {
    pub(super) fn resolve(&self, key: LockKey, database: &str) -> Option<LockName> {
        let LockKey::Bigint(key) = key else { return None };
        let (name, origin) = self.keys(database).name_of(key)?;
        Some(LockName::new(name, name == SHARED, origin))
    }

    fn keys(&self, database: &str) -> Keys {
        if let Some(keys) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(database) {
            return *keys;
        }
        let keys = Keys::of(database);
        let mut cache = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if cache.len() < LIMIT {
            cache.insert(database.into(), keys);
        }
        keys
    }
}
