use super::*;
use crate::model::lock::LockType;

const APP: NameContext<'static> =
    NameContext { database: Some("app"), application: None, datid: Some(5), names: None };

fn name(key: i64) -> Option<String> {
    LockNames::default().resolve(LockKey::Bigint(key), APP).map(|name| name.to_string())
}

fn pair(high: i32, low: i32) -> Option<String> {
    LockNames::default().resolve(LockKey::Pair(high, low), APP).map(|name| name.to_string())
}

fn pack(name: &str) -> u64 {
    let bits = name.bytes().fold(0, |bits: u64, byte| bits << 7 | u64::from(byte)) << 1;
    (name.len()..9).fold(bits, |bits, _| bits << 7 | 0x7f)
}

#[expect(clippy::cast_possible_truncation, reason = "the halves are wanted")]
fn halves(bits: u64) -> LockKey {
    LockKey::Pair((bits >> 32) as i32, bits as i32)
}

#[test]
fn the_name_of_a_worker_is_known_by_its_namespace_and_its_session() {
    let key = LockKey::Bigint((0x4C4E << 48) + 12_345);
    let named = |application| {
        let context = NameContext { application, ..APP };
        LockNames::default().resolve(key, context).map(|name| name.to_string())
    };
    assert_eq!(named(Some("locktop worker w1")).as_deref(), Some("worker name w1"));
    assert_eq!(named(Some("psql")).as_deref(), Some("worker name"));
    assert_eq!(name((0x4C4F << 48) + 12_345), None);
}

#[test]
fn every_key_that_needs_nothing_else() {
    for (key, expected) in [
        (6_939_591_962_871_035_475, "Rails migrations"),
        (3_469_795_979_745_788_610, "sqlx migrate"),
        (8_318_549_251_334_697_844, "sqlx test"),
        (1_787_120_056, "golang-migrate"),
        (77_433_833_903_597, "Flyway"),
        (72_707_369, "Prisma Migrate"),
        (7_241_865_325_823_964, "node-pg-migrate"),
        (3_853_314_791_062_309_107, "Kysely migrations"),
        (9_628_173_550_095_224, "tern migrations"),
        (4_097_083_626, "goose migrations"),
        (4_727_445_306_447_283, "graphile-migrate"),
        (2_686_470_616, "Atlas migrations"),
        (361_947_982, "Atlas diff"),
        (12_388_221_127_840_347, "pgroll"),
        (1_234_567_890, "DBOS?"),
        (4004, "Marten migrations?"),
        (4006, "Wolverine migrations?"),
        (-8_525_285_245_963_000_605, "postgres-migrations?"),
        (5_887_940_537_704_921_958, "goose migrations"),
        (75_474_063, "Sqitch"),
        (1_149_979_440_242_868_003, "Oban plugin"),
        (1_149_979_440_242_868_330, "Oban plugin"),
        (1000, "authentik migrations?"),
        (200, "Immich migrations?"),
        (112_233, "Langflow?"),
        (8_675_309, "mockforge migrations?"),
        (-8_575_985_245_963_000_605, "Supabase storage"),
        (1_571_543_679_778_230_000, "pgwatch"),
        (12_340_078_987_004_321, "pgBackRest"),
        (7_994_014_188_390_416_643, "Hatchet analyze-task-tables"),
        (-1, "Terraform state creation?"),
    ] {
        assert_eq!(name(key).as_deref(), Some(expected), "{key}");
    }
}

#[test]
fn an_unknown_key_has_no_name() {
    for key in [0, 1, 2, 3, 42, 815, 4005, 1 << 40, i64::MAX, i64::MIN, -2] {
        assert_eq!(name(key), None, "{key}");
    }
    for (high, low) in [(0, 0), (1, 100), (7, 0), (-1, -1), (i32::MAX, i32::MAX), (16_185_447, 1)] {
        assert_eq!(pair(high, low), None, "({high}, {low})");
    }
}

#[test]
fn a_key_that_is_computed_belongs_to_its_database() {
    let names = LockNames::default();
    let rails = LockKey::Bigint(6_939_591_962_871_035_475);
    let elsewhere = NameContext { database: Some("shop"), ..APP };
    assert!(names.resolve(rails, APP).is_some());
    assert_eq!(names.resolve(rails, elsewhere), None);
    assert_eq!(names.resolve(rails, NameContext::default()), None);
    assert_eq!(names.resolve(LockKey::Bigint(PG_BOSS_APP), APP).unwrap().to_string(), "pg-boss");
}

/// `('x' || encode(sha224('app.pgboss.pgboss'), 'hex'))::bit(64)::bigint`.
const PG_BOSS_APP: i64 = -9_218_828_629_118_414_586;

#[test]
fn an_application_corroborates_a_small_number() {
    let names = LockNames::default();
    for (key, application) in [(1, "Airflow scheduler"), (1_234_567_890, "dbos-worker"), (-1, "terraform")] {
        let by = NameContext { application: Some(application), ..APP };
        assert!(!names.resolve(LockKey::Bigint(key), by).unwrap().uncertain, "{key}");
    }
}

#[test]
fn pairs() {
    assert_eq!(pair(0x7a1b_2c3d, 0).as_deref(), Some("with_advisory_lock?"));
    assert_eq!(pair(16_185_446, -2_147_467_264).as_deref(), Some("pg_repack table 16384"));

    let mut known = Names::default();
    known.relations.insert((5, 3_000_000_000), "accounts".into());
    let key = LockKey::Pair(16_185_446, 852_516_352);
    let name = LockNames::default().resolve(key, NameContext { names: Some(&known), ..APP }).unwrap();
    assert_eq!(name.to_string(), "pg_repack accounts");

    let concourse = NameContext { application: Some("concourse-web"), ..APP };
    let name = LockNames::default().resolve(LockKey::Pair(1, 100), concourse).unwrap();
    assert_eq!(name.to_string(), "Concourse lock type 1 of 100?");
}

#[test]
fn a_name_in_the_key_is_read() {
    for word in ["job", "MyLock", "report-42", "a.b:c/d_e"] {
        let bits = pack(word);
        let expected = format!("{word}?");
        let found = LockNames::default().resolve(halves(bits), APP).map(|name| name.to_string());
        assert_eq!(found, Some(expected.clone()));
        let expected = (word.len() <= 7).then_some(expected);
        assert_eq!(name(bits.cast_signed()), expected, "a bigint is believed when it is padded");
    }
}

/// The name `learned` of a key in all databases.
fn learned_everywhere(names: LockNames, key: LockKey) -> LockNames {
    let entry = LockName { name: "learned".into(), origin: "from jobs".into(), uncertain: false };
    let everywhere = [(key, entry)].into_iter().collect();
    LockNames { learned: Layer { everywhere, ..Layer::default() }.into(), ..names }
}

#[test]
fn a_running_job_names_its_key_in_its_database_until_it_ends() {
    let key = LockKey::Bigint(7);
    let learned = learned_everywhere(LockNames::default(), key);
    let row = || [(key, Text::from("GoodJob A 1"), Text::from("a job"))];
    let running = learned.with_running("app", row()).unwrap();
    let name = |names: &LockNames, database| {
        let context = NameContext { database: Some(database), ..NameContext::default() };
        names.resolve(key, context).map(|name| name.name.to_string())
    };
    assert_eq!(name(&running, "app").as_deref(), Some("GoodJob A 1"));
    assert_eq!(name(&running, "other").as_deref(), Some("learned"));
    assert!(running.with_running("app", row()).is_none(), "the same names are the same value");
    let over = running.with_running("app", []).unwrap();
    assert_eq!(name(&over, "app").as_deref(), Some("learned"));
    assert!(LockNames::default().with_running("app", []).is_none());
    let configured = LockNames::new([(key, "mine".into())]).with_running("app", row()).unwrap();
    assert_eq!(name(&configured, "app").as_deref(), Some("mine"));
}

#[test]
fn a_configured_name_precedes_a_learned_one() {
    let key = LockKey::Bigint(72_707_369);
    let learned = learned_everywhere(LockNames::default(), key);
    assert_eq!(learned.resolve(key, APP), Some(LockName::new("learned", false, "from jobs")));

    let here =
        learned.clone().with_learned_in("app".into(), false, [(key, "here".into(), "from app.jobs".into())]);
    assert_eq!(here.resolve(key, APP).unwrap().to_string(), "here");
    assert_eq!(here.resolve(key, NameContext::default()).unwrap().to_string(), "learned");

    let perhaps = learned.clone().with_learned_in("app".into(), true, [(key, "job 7".into(), "ids".into())]);
    assert_eq!(perhaps.resolve(key, APP).unwrap().to_string(), "job 7?");

    let names = learned_everywhere(LockNames::new([(key, "mine".into())]), key)
        .with_database("app".into(), [(key, "mine in app".into())]);
    let name = names.resolve(key, APP).unwrap();
    assert_eq!((&*name.name, &*name.origin), ("mine in app", "named in the config for database app"));
    assert_eq!(&*names.resolve(key, NameContext::default()).unwrap().origin, "named in the config");
}

#[test]
fn tags_of_citus_have_names_of_their_own() {
    let tag = |objsubid| {
        LockTag::new(LockType::Advisory)
            .with_database(5)
            .with_classid(0)
            .with_objid(102_008)
            .with_objsubid(objsubid)
    };
    let names = LockNames::default();
    let name = |objsubid| names.resolve_tag(&tag(objsubid), APP).map(|name| name.to_string());
    assert_eq!(name(5).as_deref(), Some("Citus shard 102008"));
    assert_eq!(name(14).as_deref(), Some("Citus background task 102008"));
    assert_eq!(name(99).as_deref(), Some("extension lock of class 99"));
    let job = tag(29_749).with_classid(1005).with_objid(0);
    assert_eq!(names.resolve_tag(&job, APP).unwrap().to_string(), "TimescaleDB job 1005");
    assert_eq!(name(3), None);
    assert_eq!(names.resolve_tag(&tag(1).with_objid(72_707_369), APP).unwrap().to_string(), "Prisma Migrate");
    assert_eq!(names.resolve_tag(&LockTag::new(LockType::Relation), APP), None);
}

/// Keys as the program itself computes them, for database postgres and schema app.
#[test]
fn keys_of_other_schemas_and_tables() {
    assert_eq!(flyway("\"public\".\"flyway_schema_history\""), 77_433_833_903_597);
    assert_eq!(flyway("\"app\".\"flyway_schema_history\""), 77_431_436_970_681);
    assert_eq!(flyway("\"public\".\"schema_version\""), 77_430_801_598_678);
    assert_eq!(golang_migrate("app\0schema_migrations\0postgres"), 1_679_318_560);
    let context = NameContext { database: Some("postgres"), ..APP };
    let shared = LockNames::default().resolve(LockKey::Bigint(golang_migrate("postgres")), context).unwrap();
    assert_eq!(shared.to_string(), "Grafana or golang-migrate?");
}

proptest::proptest! {
    #[test]
    fn any_key_can_be_asked_about(key in proptest::prelude::any::<i64>(), high: i32, low: i32, database in ".{0,20}") {
        let names = LockNames::default();
        let context = NameContext { database: Some(&database), application: Some(&database), ..APP };
        for key in [LockKey::Bigint(key), LockKey::Pair(high, low), LockKey::Pair(high, 0)] {
            // The second call is answered from the cache.
            proptest::prop_assert_eq!(names.resolve(key, context), names.resolve(key, context));
        }
    }

    #[test]
    fn every_packed_name_is_read(word in "[a-zA-Z0-9_.:/ #-]{3,9}") {
        let name = LockNames::default().resolve(halves(pack(&word)), NameContext::default()).map(|name| name.to_string());
        proptest::prop_assert_eq!(name, Some(word + "?"));
    }
}
