//! Keys of well-known software: fixed numbers, a number and the id of an object, numbers computed from the name of the connected
//! database, numbers that encode their name, and locks of extensions outside the two key spaces of the SQL functions.

use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use sha2::{Digest, Sha224};

use super::statement::golang_migrate;
use super::{LockName, NameContext};
use crate::model::lock::{LockTag, LockType};
use crate::model::lock_key::LockKey;
use crate::model::namespace;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// No other software would choose it.
    Certain,
    /// Small or round: certain only if the application's name contains one of these words.
    If(&'static [&'static str]),
}

use Trust::{Certain, If};

/// First half of every `pg_repack` lock (`REPACK_LOCK_PREFIX_STR` in `bin/pg_repack.c`).
const REPACK: i32 = 16_185_446;

pub(super) fn resolve(key: LockKey, context: NameContext<'_>) -> Option<LockName> {
    match key {
        LockKey::Bigint(key) if namespace::id_in(namespace::WORKERS, key).is_some() => Some(worker(context)),
        LockKey::Bigint(key) => {
            let (name, trust, origin) = bigint(key)?;
            let uncertain = match trust {
                Certain => false,
                // Numbers below ten are used by much software, and identify none.
                If(words) if (0..10).contains(&key) && !context.is_by(words) => return None,
                If(words) => !context.is_by(words),
            };
            Some(LockName::new(name, uncertain, origin))
        }
        LockKey::Pair(REPACK, relation) => Some(repack(relation, context)),
        LockKey::Pair(kind @ 0..=10, id) if context.is_by(&["concourse", "atc"]) => Some(LockName::new(
            format!("Concourse lock type {kind} of {id}"),
            true,
            "the application_name is Concourse, which locks (type 0 to 10, id)",
        )),
        // The name behind the hash is not known; the second half, which is always 0, identifies the library.
        LockKey::Pair(crc @ 0x0010_0000..=i32::MAX, 0) => Some(LockName::new(
            "with_advisory_lock",
            true,
            format!(
                "the pair (crc32(name) & 0x7fffffff, 0) is the form of keys of Ruby's with_advisory_lock; here {crc}"
            ),
        )),
        LockKey::Pair(..) => None,
    }
}

/// The lock on the name of a locktop worker, which its session holds so that no other worker takes the name.
fn worker(context: NameContext<'_>) -> LockName {
    const ORIGIN: &str =
        "locktop worker holds 0x4C4E << 48 | hashtextextended('\"schema\".name', 0) & 0xFFFFFFFFFFFF";
    let name = context.application.and_then(|application| application.strip_prefix("locktop worker "));
    // No other software would choose such a number, even if the session does not show the name.
    let name = name.map_or_else(|| "worker name".to_owned(), |name| format!("worker name {name}"));
    LockName::new(name, false, ORIGIN)
}

fn bigint(key: i64) -> Option<(&'static str, Trust, &'static str)> {
    const FIXED: &str = "the fixed key of this software";
    const SMALL: &str =
        "a small or round number that is the key of this software, but other software may use it too";
    Some(match key {
        72_707_369 => ("Prisma Migrate", Certain, FIXED),
        77_433_833_903_597 => {
            ("Flyway", Certain, "0x466C79776179 and the hash code of \"public\".\"flyway_schema_history\"")
        }
        7_241_865_325_823_964 => ("node-pg-migrate", Certain, FIXED),
        3_853_314_791_062_309_107 => ("Kysely migrations", Certain, FIXED),
        9_628_173_550_095_224 => ("tern migrations", Certain, FIXED),
        4_097_083_626 => ("goose migrations", Certain, FIXED),
        5_887_940_537_704_921_958 => {
            ("goose migrations", Certain, "CRC-64 of \"goose\", the fixed key of goose")
        }
        75_474_063 => ("Sqitch", Certain, FIXED),
        1_149_979_440_242_868_001..=1_149_979_440_242_868_003 | 1_149_979_440_242_868_330 => {
            ("Oban plugin", Certain, "the fixed key of a plugin of older Oban versions")
        }
        -2_951_315_222_741_241_874 => ("DBOS upgrade", Certain, FIXED),
        4_727_445_306_447_283 => ("graphile-migrate", Certain, FIXED),
        2_686_470_616 => ("Atlas migrations", Certain, "FNV-1 of \"atlas_migrate_execute\""),
        361_947_982 => ("Atlas diff", Certain, "FNV-1 of \"atlas_migrate_diff\""),
        0x002c_0305_7fb9_525b => ("pgroll", Certain, FIXED),
        8_318_549_251_334_697_844 => ("sqlx test", Certain, FIXED),
        -8_525_285_245_963_000_605 => (
            "postgres-migrations",
            If(&["supabase", "postgres-migrations"]),
            "the fixed key of the npm library postgres-migrations, which Supabase storage and other programs use",
        ),
        -8_575_985_245_963_000_605 => ("Supabase storage", Certain, FIXED),
        1_571_543_679_778_230_000 => ("pgwatch", Certain, FIXED),
        12_340_078_987_004_321 => ("pgBackRest", Certain, FIXED),
        7_994_014_188_390_416_643 => {
            ("Hatchet analyze-task-tables", Certain, "FNV-1a of \"analyze-task-tables\"")
        }
        1_234_567_890 => ("DBOS", If(&["dbos"]), SMALL),
        1 => ("Airflow migrations", If(&["airflow"]), SMALL),
        2 => ("Airflow scheduler", If(&["airflow"]), SMALL),
        1000 => ("authentik migrations", If(&["authentik"]), SMALL),
        200 => ("Immich migrations", If(&["immich"]), SMALL),
        112_233 => ("Langflow", If(&["langflow"]), SMALL),
        8_675_309 => ("mockforge migrations", If(&["mockforge"]), SMALL),
        4004 => ("Marten migrations", If(&["marten"]), SMALL),
        4006 => ("Wolverine migrations", If(&["wolverine"]), SMALL),
        -1 => ("Terraform state creation", If(&["terraform", "tofu"]), SMALL),
        _ => return None,
    })
}

/// `pg_repack` locks `(16185446, oid - 2147483648)` while it works on a table.
fn repack(relation: i32, context: NameContext<'_>) -> LockName {
    const ORIGIN: &str = "pg_repack locks (16185446, oid - 2147483648)";
    let oid = relation.cast_unsigned() ^ 0x8000_0000;
    let name = context.names.zip(context.datid).and_then(|(names, datid)| names.relations.get(&(datid, oid)));
    let name = name.map_or_else(|| format!("pg_repack table {oid}"), |table| format!("pg_repack {table}"));
    LockName::new(name, false, ORIGIN)
}

/// Number of databases whose keys are cached; with more, keys are computed again.
const LIMIT: usize = 4096;

/// Both programs use the same code, so that it is a guess.
const SHARED: &str = "Grafana or golang-migrate";

/// The keys of programs for one database, each with its name and origin.
type ProgramKeys = [(i64, &'static str, &'static str); 5];

fn keys_of(database: &str) -> ProgramKeys {
    let crc = i64::from(crc32fast::hash(database.as_bytes()));
    let with_tables = golang_migrate(&format!("public\0schema_migrations\0{database}"));
    [
        // Neither product of two 32-bit numbers overflows an i64: the factors are below 2^31.
        (crc * 2_053_462_845, "Rails migrations", "2053462845 * crc32 of the database's name"),
        (crc * 0x3d32_ad9e, "sqlx migrate", "0x3d32ad9e * crc32 of the database's name"),
        (
            with_tables,
            "golang-migrate",
            "1486364155 * crc32 of public, schema_migrations and the database's name",
        ),
        // Without schema and table: Grafana, and golang-migrate versions that did not include them.
        (
            golang_migrate(database),
            SHARED,
            "1486364155 * crc32 of the database's name, as Grafana and golang-migrate compute it",
        ),
        (pg_boss(database), "pg-boss", "sha224 of the database's name, \".pgboss.\" and the schema pgboss"),
    ]
}

/// pg-boss with its default schema: the first 64 bits of SHA-224.
fn pg_boss(database: &str) -> i64 {
    let digest = Sha224::new().chain_update(database).chain_update(".pgboss.pgboss").finalize();
    digest.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

#[derive(Debug, Clone, Default)]
pub(super) struct Cache(Arc<RwLock<FxHashMap<Box<str>, ProgramKeys>>>);

impl Cache {
    pub(super) fn resolve(&self, key: LockKey, database: &str) -> Option<LockName> {
        let LockKey::Bigint(key) = key else { return None };
        let (_, name, origin) = self.keys(database).into_iter().find(|(known, ..)| *known == key)?;
        Some(LockName::new(name, name == SHARED, origin))
    }

    fn keys(&self, database: &str) -> ProgramKeys {
        if let Some(keys) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(database) {
            return *keys;
        }
        let keys = keys_of(database);
        let mut cache = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if cache.len() < LIMIT {
            cache.insert(database.into(), keys);
        }
        keys
    }
}

/// Number of 7-bit characters that fit in a key.
const MAX_LENGTH: u32 = 9;

/// A shorter name would be found in unrelated numbers.
const MIN_LENGTH: usize = 3;

/// .NET's `DistributedLock` packs a name of up to nine ASCII characters, 7 bits each, then a 0 and as many 1s as there is
/// room left (`PostgresAdvisoryLockKey.cs`). It is the pair of the two halves; a bigint is accepted only if it ends in so
/// many 1s that chance is excluded.
pub(super) fn decoded(key: LockKey, context: NameContext<'_>) -> Option<LockName> {
    let (bits, longest) = match key {
        LockKey::Bigint(key) => (key.cast_unsigned(), 7),
        LockKey::Pair(high, low) => {
            (u64::from(high.cast_unsigned()) << 32 | u64::from(low.cast_unsigned()), 9)
        }
    };
    let mut buffer = [0; MAX_LENGTH as usize];
    let name = decode(bits, &mut buffer)?;
    if !(MIN_LENGTH..=longest).contains(&name.len()) {
        return None;
    }
    let uncertain = !context.is_by(&["distributedlock", ".net"]);
    Some(LockName::new(name, uncertain, "decodes to a name in the encoding of .NET's DistributedLock"))
}

/// The name in `bits`, if it consists of characters that are usual in a name.
fn decode(bits: u64, buffer: &mut [u8; MAX_LENGTH as usize]) -> Option<&str> {
    let missing = bits.trailing_ones() / 7;
    let length = MAX_LENGTH.checked_sub(missing)?;
    let rest = bits >> (7 * missing);
    if rest & 1 == 1 {
        return None;
    }
    let rest = rest >> 1;
    let name = buffer.get_mut(..length as usize)?;
    for (index, byte) in (0_u32..).zip(name.iter_mut().rev()) {
        *byte = (rest >> (7 * index) & 0x7f) as u8;
        if !byte.is_ascii_alphanumeric() && !b"_-.:/ #".contains(byte) {
            return None;
        }
    }
    std::str::from_utf8(name).ok()
}

/// The fourth field of the locks of `TimescaleDB`'s jobs (its `src/utils.h`): the first two are the database and the job.
const TIMESCALE_JOB: u16 = 29_749;

/// The locks of `TimescaleDB` and Citus, by `objsubid` (`AdvisoryLocktagClass` in
/// `src/include/distributed/resource_lock.h`). Most are `(classid << 32) | objid`; if both halves have a meaning they are
/// shown separately.
pub(super) fn of_extension(tag: &LockTag) -> Option<LockName> {
    if tag.locktype() != LockType::Advisory {
        return None;
    }
    let (class, high, low) = (tag.objsubid()?, tag.classid()?, tag.objid()?);
    let id = u64::from(high) << 32 | u64::from(low);
    let name = match class {
        4 => format!("Citus metadata of shard {id}"),
        5 => format!("Citus shard {id}"),
        6 => format!("Citus job {id}"),
        7 => format!("Citus rebalance of colocation group {id}"),
        8 => format!("Citus metadata of shards {high} in colocation group {low}"),
        9 => format!("Citus {}", operation(low)),
        10 => format!("Citus cleanup {id}"),
        12 => format!("Citus logical replication {id}"),
        13 => format!("Citus placement of colocation group {id}"),
        14 => format!("Citus background task {id}"),
        15 => format!("Citus DDL {id}"),
        TIMESCALE_JOB if low == 0 => {
            let origin = "an advisory lock of class 29749, known only from TimescaleDB";
            return Some(LockName::new(format!("TimescaleDB job {high}"), false, origin));
        }
        _ if class > 3 => {
            let origin = "an extension took it: SQL functions use the classes 1 and 2";
            return Some(LockName::new(format!("extension lock of class {class}"), false, origin));
        }
        _ => return None,
    };
    let origin = format!("an advisory lock of class {class}, known only from Citus");
    Some(LockName::new(name, false, origin))
}

/// The operation of a `CitusOperations` lock, by its number in the same file.
fn operation(number: u32) -> String {
    match number {
        0 => "transaction recovery".to_owned(),
        1 => "split without blocking".to_owned(),
        2 => "create_distributed_table_concurrently".to_owned(),
        3 => "creation of the default colocation group".to_owned(),
        4 => "background task monitor".to_owned(),
        _ => format!("operation {number}"),
    }
}
