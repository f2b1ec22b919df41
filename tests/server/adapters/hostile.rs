//! Files and tables that are wrong or malicious.

use locktop::model::adapter::Part;

use super::{RIVER, adapter, all, client, database, found, one, refusal, run, used};
use crate::trust::ground::{Ground, one_version};
use locktop::pg::jobs::adapters::survey;
use locktop::pg::trust::TrustedOwners;

/// An adapter with this one query, over a table of its own.
fn with(query: &str) -> String {
    format!(
        "format = 1\nname = \"h\"\ntitle = \"H\"\nlicence = \"MIT\"\nseen = \"1\"\n[detect]\n\
         tables.jobs = {{ name = \"h_jobs\", columns = {{ id = \"int\", a = \"int\", b = \"text\" }} }}\n\
         [[jobs.running]]\nsql = \"\"\"{query}\"\"\"\n"
    )
}

const TABLE: &str = "CREATE TABLE h_jobs (id int PRIMARY KEY, a int, b text, t timestamptz); INSERT INTO h_jobs VALUES (1, 2, 'x', now());";

#[tokio::test]
async fn a_query_must_return_the_columns_of_its_part() {
    let info = database(&format!("{TABLE} CREATE TABLE secret (id int)")).await;
    for (query, expected) in [
        (
            "SELECT j.b AS id, 'x' AS state, j.a AS colour FROM {jobs} j",
            "it has a column \"colour\": expected some of id, state",
        ),
        ("SELECT j.b AS id FROM {jobs} j", "it has no column state"),
        ("SELECT j.b AS id, 'x' AS state, 'y' AS state FROM {jobs} j", "two columns \"state\""),
        ("SELECT j.id AS id, 'x' AS state FROM {jobs} j", "cannot be matched"),
        ("SELECT j.b AS id, 'x' AS state, j.b AS due_at FROM {jobs} j", "cannot be matched"),
        ("SELECT j.b AS id, 'x' AS state, j.t AS attempt FROM {jobs} j", "cannot be matched"),
        ("SELECT j.b AS id, 'x' AS state, j.nothing AS note FROM {jobs} j", "j.nothing does not exist"),
        ("SELECT j.b AS id, 'x' AS state FROM {jobs} j, secret s", "\"secret\" does not exist"),
        (
            "SELECT j.b AS id, 'x' AS state FROM {jobs} j, public.secret s",
            "the query names public.secret, which is none of the tables",
        ),
        (
            "SELECT j.b AS id, (TABLE public.secret)::text AS state FROM {jobs} j",
            "the query names public.secret",
        ),
        ("SELECT lower(j.id) AS id, 'x' AS state FROM {jobs} j", "does not exist"),
        (
            "SELECT j.id AS id, 'x' AS state FROM {jobs} j",
            "its column id is not of type text, as …::text is: UNION types",
        ),
        (
            "SELECT j.b AS id, 'x' AS state, j.b AS due_at FROM {jobs} j",
            "its column due_at is not of type timestamptz",
        ),
    ] {
        let found = one(&info, &adapter(&with(query))).await;
        let error = refusal(&found, Part::Running);
        assert!(error.contains(expected), "{query}: {error}");
    }
    let strange = one(&info, &adapter(&with("SELECT j.b AS id, 'x' AS state FROM {jobs} j"))).await;
    let read = strange.choice(Part::Running).unwrap().used().unwrap().read.clone().unwrap();
    assert!(
        read.is_err_and(
            |error| error.starts_with("it returned the state \"x\": expected one of running, due")
        )
    );
    let good = "SELECT j.b::varchar AS id, 'running' AS state, j.a::smallint AS attempt, j.a AS limit_s, j.t::date AS due_at FROM {jobs} j";
    assert_eq!(
        used(&one(&info, &adapter(&with(good))).await),
        [(Part::Running, 1, 1)],
        "a compatible type is accepted"
    );
}

#[tokio::test]
async fn a_query_without_end_costs_its_first_rows() {
    let info = database(TABLE).await;
    let many = "SELECT g::text AS id, 'running' AS state FROM {jobs} j, generate_series(1, 1000000000) AS g";
    let found = one(&info, &adapter(&with(many))).await;
    let used = found.choice(Part::Running).unwrap().used().unwrap();
    match used.read.as_ref().unwrap() {
        Ok(once) => assert_eq!(once.rows, 501),
        // A function in FROM is run to its end, for a second.
        Err(error) => assert!(error.contains("statement timeout"), "{error}"),
    }
    let slow = "SELECT (SELECT count(*) FROM generate_series(1, 1000000000))::text AS id, 'running' AS state FROM {jobs} j";
    let found = one(&info, &adapter(&with(slow))).await;
    let read = found.choice(Part::Running).unwrap().used().unwrap().read.clone().unwrap();
    assert!(read.is_err_and(|error| error.contains("statement timeout")));
}

#[tokio::test]
async fn the_sessions_settings_are_its_own_again() {
    let info = database(RIVER).await;
    let client = client(&info).await;
    let settings = "SELECT string_agg(name || '=' || setting, ',' ORDER BY name) FROM pg_settings WHERE name IN ('TimeZone', 'statement_timeout',
        'lock_timeout', 'search_path', 'row_security', 'jit', 'enable_seqscan', 'enable_bitmapscan', 'transaction_read_only', 'cursor_tuple_fraction')";
    let before: String = client.query_one(settings, &[]).await.unwrap().get(0);
    survey(&client, &TrustedOwners::default(), &all()).await.unwrap();
    survey(&client, &TrustedOwners::default(), &adapter(&with("SELECT 1"))).await.unwrap();
    let after: String = client.query_one(settings, &[]).await.unwrap().get(0);
    assert_eq!(before, after);
    let left: i64 = client
        .query_one("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'locktop%'", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(left, 0, "nothing stays prepared");
}

#[tokio::test]
async fn relations_that_are_not_plain_tables_are_refused() {
    let info = database(
        "CREATE VIEW river_job AS SELECT 1 AS id, 'a'::text AS kind;
         CREATE TABLE base (id int, a int, b text); CREATE VIEW h_jobs AS SELECT * FROM base;
         CREATE SCHEMA f; CREATE EXTENSION file_fdw; CREATE SERVER f FOREIGN DATA WRAPPER file_fdw;
         CREATE FOREIGN TABLE f.h_jobs (id int, a int, b text) SERVER f OPTIONS (filename '/nonexistent')",
    )
    .await;
    let reasons: Vec<_> = found(&info, &adapter(&with("SELECT j.b AS id, 'x' AS state FROM {jobs} j")))
        .await
        .into_iter()
        .map(|one| one.refused.unwrap().to_string())
        .collect();
    assert_eq!(
        reasons,
        ["f.h_jobs is a foreign table, which is not read", "public.h_jobs is a view, which is not read"]
    );
    let client = client(&info).await;
    client
        .batch_execute("DROP VIEW h_jobs; CREATE TEMPORARY TABLE h_jobs (id int, a int, b text)")
        .await
        .unwrap();
    let found = survey(&client, &TrustedOwners::default(), &adapter(&with("SELECT 1"))).await.unwrap();
    assert!(
        found.iter().any(|one| one.refused.as_ref().unwrap().contains("is a temporary table")),
        "{found:?}"
    );
    run(&info, "DROP SCHEMA f CASCADE").await;
}

/// A partition may belong to another role, or be stored elsewhere: then no row of the table is read.
#[tokio::test]
async fn partitions_of_a_table_are_checked_too() {
    const TABLES: &str = "CREATE TABLE h_jobs (id int, a int, b text) PARTITION BY LIST (a);
        CREATE TABLE h_jobs_1 PARTITION OF h_jobs FOR VALUES IN (1); CREATE INDEX ON h_jobs (id) WHERE b = 'x';
        INSERT INTO h_jobs VALUES (1, 1, 'x'); GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC; ALTER SCHEMA public OWNER TO postgres";
    let query = adapter(&with(
        "SELECT j.id::text AS id, 'running' AS state FROM {jobs} j WHERE j.b = 'x' LIMIT {limit}",
    ));
    for version in one_version() {
        let ground = Ground::new(version).await;
        ground.run("postgres", TABLES).await;
        let client = ground.client_as("boss", "locktop").await;
        let surveyed = async || survey(&client, &TrustedOwners::default(), &query).await.unwrap();
        assert_eq!(used(&surveyed().await[0]), [(Part::Running, 1, 1)]);
        ground
            .run(
                "mallory",
                "CREATE TABLE evil.part (id int, a int, b text); CREATE INDEX ON evil.part (evil.zero('part')); CREATE INDEX ON evil.part (id) WHERE evil.hit('part'); GRANT SELECT ON evil.part TO PUBLIC",
            )
            .await;
        ground.run("postgres", "ALTER TABLE h_jobs ATTACH PARTITION evil.part FOR VALUES IN (2)").await;
        let refused = surveyed().await[0].refused.clone().unwrap();
        assert!(
            refused.starts_with("evil.part, a part of public.h_jobs, belongs to mallory, who is not trusted"),
            "{refused}"
        );
        ground.is_clean("a partition of an untrusted role");
        ground
            .run(
                "postgres",
                "ALTER TABLE h_jobs DETACH PARTITION evil.part; CREATE EXTENSION file_fdw; CREATE SERVER f FOREIGN DATA WRAPPER file_fdw;
                 CREATE FOREIGN TABLE h_jobs_f PARTITION OF h_jobs FOR VALUES IN (3) SERVER f OPTIONS (filename '/nonexistent')",
            )
            .await;
        let refused = surveyed().await[0].refused.clone().unwrap();
        assert_eq!(*refused, *"h_jobs_f, a part of public.h_jobs, is a foreign table, which is not read");
    }
}

/// The tables of the three systems as mallory's, with everything in them that a server would evaluate.
async fn planted(ground: &Ground) {
    let tables = format!("{}{}{RIVER}", super::GOOD_JOB, super::SOLID_QUEUE);
    ground.run("mallory", &tables).await;
    let trap = "DO $$ DECLARE t regclass; BEGIN
        FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP CALL evil.trap(t); END LOOP; END $$;
        GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC";
    ground.run("mallory", trap).await;
}

#[tokio::test]
async fn queries_on_tables_of_an_untrusted_owner_are_not_planned() {
    for version in one_version() {
        let ground = Ground::new(version).await;
        planted(&ground).await;
        for role in ["boss", "monitor"] {
            let client = ground.client_as(role, "locktop").await;
            let found = survey(&client, &TrustedOwners::default(), &all()).await.unwrap();
            assert_eq!(found.len(), 3);
            for one in found {
                let refused = one.refused.unwrap();
                assert!(
                    refused.contains("belongs to mallory, who is not trusted; --trust-owner mallory"),
                    "{refused}"
                );
            }
            ground.is_clean(role);
        }
        let client = ground.client_as("boss", "locktop").await;
        let trusted: TrustedOwners = ["mallory".to_owned()].into_iter().collect();
        survey(&client, &trusted, &all()).await.unwrap();
        assert!(!ground.tags().is_empty(), "the traps work");
    }
}

#[tokio::test]
async fn a_query_that_names_a_strangers_table_is_not_planned() {
    for version in one_version() {
        let ground = Ground::new(version).await;
        ground.run("mallory", "CREATE TABLE evil.t (id int, b text); CALL evil.trap('evil.t'); GRANT SELECT ON evil.t TO PUBLIC").await;
        ground
            .run(
                "postgres",
                &format!("{TABLE} GRANT SELECT ON h_jobs TO PUBLIC; ALTER SCHEMA public OWNER TO postgres"),
            )
            .await;
        let client = ground.client_as("boss", "locktop").await;
        for query in [
            "SELECT j.b AS id, 'x' AS state FROM {jobs} j, evil.t e WHERE e.id = 1",
            "SELECT j.b AS id, (SELECT k.b FROM {jobs} k, evil.t LIMIT 1) AS state FROM {jobs} j",
        ] {
            let found = survey(&client, &TrustedOwners::default(), &adapter(&with(query))).await.unwrap();
            assert!(refusal(&found[0], Part::Running).contains("the query names evil.t"), "{found:?}");
        }
        ground.is_clean("a query that names it");
    }
}

/// Casts of a type are functions of its owner, and no search path avoids them: the types of a trusted table
/// must be trusted too.
#[tokio::test]
async fn nothing_is_read_that_has_a_column_of_a_strangers_type() {
    const TYPES: &str = "
        CREATE TYPE evil.prio AS ENUM ('1', '2');
        CREATE FUNCTION evil.as_int(evil.prio) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'PWNED'; END $$;
        CREATE CAST (evil.prio AS int) WITH FUNCTION evil.as_int(evil.prio) AS IMPLICIT;
        CREATE TYPE evil.words AS ENUM ('m');
        CREATE FUNCTION evil.as_text(evil.words) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'PWNED'; END $$;
        CREATE CAST (evil.words AS text) WITH FUNCTION evil.as_text(evil.words) AS IMPLICIT;
        GRANT USAGE ON SCHEMA evil TO PUBLIC;";
    const TABLES: &str = "
        CREATE DOMAIN important AS evil.prio;
        CREATE TYPE river_job_state AS ENUM ('available', 'scheduled', 'running', 'retryable', 'completed', 'discarded');
        CREATE TABLE river_job (id bigint PRIMARY KEY, state river_job_state, attempt smallint, attempted_at timestamptz, attempted_by text[],
            scheduled_at timestamptz, kind text, finalized_at timestamptz, queue text, priority important, max_attempts smallint,
            metadata jsonb DEFAULT '{}', errors jsonb[]);
        CREATE TABLE river_leader (leader_id text, elected_at timestamptz, expires_at timestamptz);
        INSERT INTO river_job VALUES (1, 'running', 1, now(), '{w}', now(), 'k', NULL, 'q', '1', 3);
        CREATE TABLE que_jobs (id bigint PRIMARY KEY, job_class text, run_at timestamptz, error_count int, queue text, finished_at timestamptz,
            expired_at timestamptz, priority int, last_error_message evil.words);
        CREATE TABLE que_lockers (pid int, worker_count int, ruby_pid int, ruby_hostname text);
        INSERT INTO que_jobs VALUES (1, 'c', now(), 0, 'q', NULL, NULL, 1, 'm');
        GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC; ALTER SCHEMA public OWNER TO postgres";
    for version in one_version() {
        let ground = Ground::new(version).await;
        ground.run("mallory", TYPES).await;
        ground.run("postgres", TABLES).await;
        for role in ["boss", "monitor"] {
            let client = ground.client_as(role, "locktop").await;
            let found = survey(&client, &TrustedOwners::default(), &all()).await.unwrap();
            let reasons: Vec<_> = found.iter().map(|one| one.refused.as_deref().unwrap_or("read")).collect();
            let expected = [("que_jobs", "words"), ("river_job", "prio")].map(|(table, name)| {
                format!(
                    "a column of public.{table} has the type {name} of mallory, who is not trusted; \
                     --trust-owner mallory, or trusted_owners = [\"mallory\"] in the config, permits it"
                )
            });
            assert_eq!(reasons, expected, "{role}");
            assert!(!format!("{found:?}").contains("PWNED"));
        }
        let client = ground.client_as("boss", "locktop").await;
        let trusted: TrustedOwners = ["mallory".to_owned()].into_iter().collect();
        let found = survey(&client, &trusted, &all()).await.unwrap();
        assert!(format!("{found:?}").contains("PWNED"), "the traps are good: {found:?}");
    }
}

/// A thousand tables of another role do not hide a good one, and the names in them do not make the answer large.
#[tokio::test]
async fn decoys_hide_nothing() {
    const DECOYS: &str = "
        DO $$ BEGIN
            EXECUTE 'CREATE TYPE evil.e AS ENUM (' || (SELECT string_agg(quote_literal(lpad(i::text, 63, 'x')), ',') FROM generate_series(1, 500) i) || ')';
            FOR i IN 1..1000 LOOP
                EXECUTE format('CREATE TABLE evil.%I (sched_name text, instance_name text, last_checkin_time int, checkin_interval int, a evil.e, b evil.e)',
                    i || 'scheduler_state');
            END LOOP;
        END $$";
    const GOOD: &str = "CREATE TABLE shedlock (name text PRIMARY KEY, lock_until timestamp, locked_at timestamp, locked_by text);
        ALTER SCHEMA public OWNER TO postgres";
    for version in one_version() {
        let ground = Ground::new(version).await;
        ground.run("mallory", DECOYS).await;
        ground.run("postgres", GOOD).await;
        let client = ground.client_as("boss", "locktop").await;
        let found = survey(&client, &TrustedOwners::default(), &all()).await.unwrap();
        let good: Vec<_> = found.iter().filter(|one| one.refused.is_none()).collect();
        assert!(good.len() == 1 && &*good[0].adapter.name == "shedlock", "{good:?}");
        // And the table that is left out is reported: the last of them.
        let left_out: Vec<_> = found.iter().filter(|one| !one.is_somewhere()).collect();
        let [left] = left_out[..] else { panic!("{left_out:?}") };
        let reason =
            "1 table left out, because at most 1,000 are checked in total, those of trusted owners first";
        assert_eq!((&*left.adapter.name, left.refused.as_deref()), ("quartz", Some(reason)));
        let text = locktop::output::table::adapters(&found, &all());
        assert!(text.contains(&format!("Quartz\n  not read: {reason}")), "{text}");
        ground.run("mallory", "DROP TABLE evil.\"1scheduler_state\"").await;
        let found = survey(&client, &TrustedOwners::default(), &all()).await.unwrap();
        assert!(found.iter().all(locktop::model::adapter::Installation::is_somewhere), "{found:?}");
    }
}
