//! Keys that well-known software always uses: one number, or a number and the id of an object.

use super::hash::{FLYWAY_BASE, fnv1_32, fnv1a_64, java_hash_code};
use super::{Context, LockName};
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

const FLYWAY: i64 = FLYWAY_BASE + java_hash_code(b"\"public\".\"flyway_schema_history\"") as i64;
const ATLAS_EXECUTE: i64 = fnv1_32(b"atlas_migrate_execute") as i64;
const ATLAS_DIFF: i64 = fnv1_32(b"atlas_migrate_diff") as i64;
const HATCHET: i64 = fnv1a_64(b"analyze-task-tables");

/// First half of every `pg_repack` lock (`REPACK_LOCK_PREFIX_STR` in `bin/pg_repack.c`).
const REPACK: i32 = 16_185_446;

pub(super) fn resolve(key: LockKey, context: Context<'_>) -> Option<LockName> {
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
fn worker(context: Context<'_>) -> LockName {
    const ORIGIN: &str =
        "locktop worker holds 0x4C4E << 48 | hashtextextended('\"schema\".name', 0) & 0xFFFFFFFFFFFF";
    let name = context.application.and_then(|application| application.strip_prefix("locktop worker "));
    match name {
        Some(name) => LockName::new(format!("worker name {name}"), false, ORIGIN),
        // No other software would choose such a number; the session does not show the name.
        None => LockName::new("worker name", false, ORIGIN),
    }
}

fn bigint(key: i64) -> Option<(&'static str, Trust, &'static str)> {
    const FIXED: &str = "the fixed key of this software";
    const SMALL: &str =
        "a small or round number that is the key of this software, but other software may use it too";
    Some(match key {
        72_707_369 => ("Prisma Migrate", Certain, FIXED),
        FLYWAY => {
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
        ATLAS_EXECUTE => ("Atlas migrations", Certain, "FNV-1 of \"atlas_migrate_execute\""),
        ATLAS_DIFF => ("Atlas diff", Certain, "FNV-1 of \"atlas_migrate_diff\""),
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
        HATCHET => ("Hatchet analyze-task-tables", Certain, "FNV-1a of \"analyze-task-tables\""),
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
fn repack(relation: i32, context: Context<'_>) -> LockName {
    const ORIGIN: &str = "pg_repack locks (16185446, oid - 2147483648)";
    let oid = relation.cast_unsigned() ^ 0x8000_0000;
    let name = context.names.zip(context.datid).and_then(|(names, datid)| names.relations.get(&(datid, oid)));
    match name {
        Some(table) => LockName::new(format!("pg_repack {table}"), false, ORIGIN),
        None => LockName::new(format!("pg_repack table {oid}"), false, ORIGIN),
    }
}
