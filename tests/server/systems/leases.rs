//! Leases.

use locktop::model::lease::LeaseState::{Expired, Free, Held, Released};
use locktop::model::view::View;
use locktop::pg::jobs::sources::TableLocations;
use serde_json::Value;

use super::stage::Stage;
use super::support;
use super::support::pid;
use super::{PRINTED, own};

/// The published statement that takes or renews a lease.
const TAKE: &str = "update distlock set owner='node1',ts=now(),expired_time=interval '20 second' \
                    where id=1 and (owner='node1' or owner is null or now() > ts + expired_time)";

/// Leases in the table that is installed: one that was not renewed, and one that was released.
const LEASES: &str = "INSERT INTO locktop.distlock (id, owner, ts, expired_time) VALUES
        (1, 'node7', clock_timestamp() - interval '41 seconds', interval '20 seconds');
    SELECT locktop.lease_release(2, locktop.lease_acquire(2, 'node8', '20 seconds'));";

fn states(view: &View) -> Vec<&'static str> {
    view.leases.rows.iter().map(|row| row.state.as_str()).collect()
}

fn errors(view: &View) -> Vec<Option<String>> {
    let tables = &view.snapshot.as_ref().unwrap().sources.leases;
    tables.iter().map(|table| table.section.error.as_ref().map(ToString::to_string)).collect()
}

#[tokio::test]
async fn the_printed_and_the_installed_table_are_shown_on_every_version() {
    for version in support::versions() {
        let server = support::server_of(version).await;
        let ddl = format!("{PRINTED}; insert into distlock(id) values(1),(2); {own}{LEASES}", own = own());
        let mut stage = Stage::on(server, &ddl).await;
        let node = stage.client().await;
        assert_eq!(node.execute(TAKE, &[]).await.unwrap(), 1);
        let view = stage.poll().await;
        assert_eq!(errors(&view), [None, None], "PostgreSQL {version}");
        let tables = &view.snapshot.as_ref().unwrap().sources.leases;
        let own: Vec<_> = tables.iter().map(|table| (&*table.source.name, table.source.own_keys)).collect();
        assert!(
            own.contains(&("public.distlock", false)) && own.contains(&("locktop.distlock", true)),
            "{own:?}"
        );
        assert_eq!(states(&view), ["held", "free", "expired", "released"], "PostgreSQL {version}");
        let tables = &view.snapshot.as_ref().unwrap().sources.leases;
        let kinds: Vec<_> =
            tables.iter().map(|table| (table.section.last_rows().len(), table.source.own_keys)).collect();
        assert_eq!(
            kinds,
            [(2, false), (2, true)],
            "one is ended by a function of its schema, the other row by row"
        );
        let [held, _, expired, _] = view.leases.rows.as_slice() else { panic!("four leases") };
        assert_eq!((held.owner.as_deref(), held.token, held.term), (Some("node1"), None, Some(20.0)));
        assert!(held.left.is_some_and(|left| left > 0.0 && left <= 20.0), "{held:?}");
        assert!(expired.token.is_some() && expired.acquired_at.is_some(), "{expired:?}");
        let findings: Vec<_> = view.findings.iter().filter(|one| one.check == "expired_lease").collect();
        let [finding] = findings.as_slice() else { panic!("{findings:?}") };
        assert!(finding.summary.starts_with("lease 1 of node7 expired 2"), "{}", finding.summary);
    }
}

#[tokio::test]
async fn the_end_is_that_of_the_servers_clock_and_a_release_empties_the_owner() {
    let mut stage = Stage::new(&format!("{PRINTED}; insert into distlock(id) values(1)")).await;
    let node = stage.client().await;
    node.execute(TAKE, &[]).await.unwrap();
    stage.poll().await;
    stage.later(19);
    assert_eq!(states(stage.view()), ["held"], "rows that were read then are judged as of then");
    let past = "update distlock set ts = ts - interval '20 seconds'";
    node.batch_execute(past).await.unwrap();
    assert_eq!(states(&*stage.poll().await), ["expired"]);
    let json = stage.json();
    let lease = &json["leases"][0];
    assert_eq!((&lease["source"], &lease["id"]), (&"public.distlock".into(), &"1".into()));
    assert_eq!((&lease["owner"], &lease["expired"]), (&"node1".into(), &true.into()));
    assert_eq!((&lease["token"], &lease["term"]), (&Value::Null, &20.0.into()));
    let ends = |lease: &Value, key: &str| {
        chrono::DateTime::parse_from_rfc3339(lease[key].as_str().unwrap()).unwrap()
    };
    assert_eq!((ends(lease, "expires_at") - ends(lease, "renewed_at")).num_seconds(), 20);
    let subject = json["findings"].as_array().unwrap().iter().find(|one| one["check"] == "expired_lease");
    let expected = serde_json::json!({"kind": "lease", "source": "public.distlock", "id": "1"});
    assert_eq!(subject.unwrap()["subject"], expected);
    assert!(stage.table().contains("Leases: 0 held · 1 expired"), "{}", stage.table());
    node.batch_execute("update distlock set owner=null,ts=now() where id=1 and owner='node1'").await.unwrap();
    assert_eq!(states(&*stage.poll().await), ["free"]);
}

#[tokio::test]
async fn a_locked_table_makes_only_its_section_old_and_names_the_holder() {
    let mut stage =
        Stage::new(&format!("{PRINTED}; insert into distlock(id) values(1); {own}{LEASES}", own = own()))
            .await;
    stage.poll().await;
    let migration = stage.client().await;
    let holder = pid(&migration).await;
    let lock = "BEGIN; LOCK TABLE locktop.distlock IN ACCESS EXCLUSIVE MODE";
    migration.batch_execute(lock).await.unwrap();
    let expected = format!("locktop.distlock is locked: {holder} holds AccessExclusiveLock");
    for _ in 0..2 {
        let view = stage.poll().await;
        assert_eq!(errors(&view), [None, Some(expected.clone())]);
        assert_eq!(states(&view), ["free", "expired", "released"], "the rows before stay");
        let snapshot = view.snapshot.as_ref().unwrap();
        assert_eq!((&snapshot.locks.error, &snapshot.backends.error), (&None, &None));
        let json = stage.json();
        assert_eq!(json["leases"].as_array().unwrap().len(), 1, "those of the other table");
        assert_eq!(json["sections"]["leases"]["error"], expected);
        assert!(stage.screen_of('5', 120, 35).contains(&format!("{holder} holds AccessExclusiveLock")));
        assert!(stage.table().contains(&format!(" old: {expected}")));
    }
    migration.batch_execute("ROLLBACK").await.unwrap();
    stage.poll_until("the table is read again", |view| errors(view) == [None, None]).await;
}

#[tokio::test]
async fn hostile_text_nulls_and_absurd_times_are_values() {
    let rows = r"CREATE TABLE distlock (id text PRIMARY KEY, expired_time interval, owner text, ts timestamptz);
        INSERT INTO distlock VALUES
        (E'evil\x1b[2J\nid', '20 s', E'\x1b]0;owned\x07', now()),
        ('a', NULL, 'no term', now()), ('b', '1 s', 'no start', NULL), ('c', '1 s', NULL, NULL),
        ('d', '178000000 years', 'long', now()), ('e', '1 s', 'late', 'infinity'), ('f', '1 s', 'early', '-infinity'),
        ('g', '-1 s', 'negative', now()), ('h', '-178000000 years', 'far', '4000-01-01 BC'),
        (repeat('宽', 3000), '1 hour', repeat('宽', 100000), now())";
    let mut stage = Stage::new(rows).await;
    let view = stage.poll().await;
    assert_eq!(errors(&view), [None]);
    let of = |id: &str| view.leases.rows.iter().find(|row| &*row.name == id).unwrap().state;
    let states = ["a", "b", "c", "d", "e", "f", "g", "h"].map(of);
    assert_eq!(states, [Held, Held, Free, Held, Held, Expired, Released, Released]);
    let wide = view.leases.rows.iter().find(|row| row.name.starts_with('宽')).unwrap();
    assert_eq!(wide.owner.as_ref().unwrap().chars().count(), 500, "cut");
    for (width, height) in [(80, 24), (120, 35), (200, 60)] {
        let screen = stage.screen_of('5', width, height);
        assert!(!screen.chars().any(|letter| letter.is_control() && letter != '\n'), "{screen}");
        assert!(screen.contains("no end") && screen.contains("evil␛"), "{screen}");
    }
    let table = stage.table();
    assert!(table.contains("\nLeases: ") && !table.contains('\u{1b}'), "{table}");
}

#[tokio::test]
async fn the_config_names_a_table_and_errors_of_its_name_are_reported() {
    let own = PRINTED.replace("distlock", "jobs.\"Leases\"");
    let mut stage =
        Stage::new(&format!("CREATE SCHEMA jobs; {own}; INSERT INTO jobs.\"Leases\" VALUES (4)")).await;
    assert!(
        stage.poll().await.snapshot.as_ref().unwrap().sources.leases.is_empty(),
        "not found automatically"
    );
    assert!(stage.screen_of('5', 80, 24).contains("no leases here"), "and it is reported");
    stage.places(TableLocations::default().with("distlock", "jobs.\"Leases\"")).await;
    let view = stage.poll().await;
    assert_eq!((errors(&view), &*view.leases.rows[0].source), (vec![None], "jobs.Leases"));
    for (name, error) in [
        ("jobs.nowhere", "the table jobs.nowhere of [tables] in the config does not exist"),
        ("pg_class", "pg_class has no columns id, owner and ts: not a table of leases"),
        (
            "a.b.c.d",
            "[tables] in the config: improper relation name (too many dotted names): a.b.c.d (SQLSTATE 42601)",
        ),
    ] {
        stage.places(TableLocations::default().with("distlock", name)).await;
        assert_eq!(errors(&*stage.poll().await), [Some(error.to_owned())]);
    }
}

#[tokio::test]
async fn sessions_that_wait_for_the_row_of_a_lease_are_counted_with_it() {
    let mut stage = Stage::new(&format!("{PRINTED}; insert into distlock(id) values(1),(2)")).await;
    let (first, second, third) = (stage.client().await, stage.client().await, stage.client().await);
    first.batch_execute(&format!("BEGIN; {TAKE}")).await.unwrap();
    let wait = async |client: tokio_postgres::Client| {
        client.batch_execute(TAKE).await.unwrap();
    };
    let waiting = [tokio::spawn(wait(second)), tokio::spawn(wait(third))];
    stage.poll_until("both wait", |view| view.leases.rows[0].waiting == 2).await;
    assert_eq!(stage.view().leases.rows[1].waiting, 0);
    first.batch_execute("COMMIT").await.unwrap();
    for waiter in waiting {
        waiter.await.unwrap();
    }
    stage.poll_until("no session waits", |view| view.leases.rows[0].waiting == 0).await;
}

#[tokio::test]
async fn a_table_of_a_million_leases_costs_its_first_thousand() {
    let rows = if support::is_long() { 1_000_000 } else { 100_000 };
    let fill =
        format!("INSERT INTO distlock SELECT n, '20 s', 'node', now() FROM generate_series(1, {rows}) AS n");
    let mut stage = Stage::new(&format!("{PRINTED}; {fill}")).await;
    let other = stage.client().await;
    other.batch_execute("SELECT pg_stat_reset()").await.unwrap();
    stage.reopen().await;
    let view = stage.poll().await;
    let table = &view.snapshot.as_ref().unwrap().sources.leases[0];
    assert_eq!((table.section.last_rows().len(), table.section.is_cut), (1000, true));
    assert!(stage.screen_of('5', 120, 35).contains("more are not read"));
    stage.close();
    let read = super::scans(&other, "distlock").await;
    assert_eq!((read.sequential, read.rows), (0, 0), "no scan of the whole table");
    assert!(read.by_index <= 2 * 1001, "{read:?}");
}
