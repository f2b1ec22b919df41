//! Rate limits and id generators.

use locktop::model::view::View;
use locktop::model::{id_generator, rate_limit};
use serde_json::json;

use super::stage::Stage;
use super::{PRINTED, own, scans, support};

fn limits(view: &View) -> Vec<(String, &'static str)> {
    let rows = rate_limit::rows(view.snapshot.as_ref().unwrap());
    rows.map(|row| (row.limit.key.to_string(), row.state.as_str())).collect()
}

const ROWS: &str = "INSERT INTO rate_limit VALUES ('printed', 5, now());
    INSERT INTO locktop.rate_limit VALUES
        ('full', 100, now(), 100, now() + interval '1 h'), ('near', 85, now(), 100, now() + interval '1 h'),
        ('open', 3, now(), 100, now() + interval '1 h'), ('over', 100, now() - interval '2 h', 100, now() - interval '1 h');
    INSERT INTO locktop.id_generator VALUES
        (7, 17, (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1609459200000 + 300000),
        (8, 17, (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1609459200000 - 60000);";

#[tokio::test]
async fn limits_and_generators_of_both_kinds_are_shown_on_every_version() {
    for version in support::versions() {
        let server = support::server_of(version).await;
        let mut stage = Stage::on(server, &format!("{PRINTED}{own}{ROWS}", own = own())).await;
        let view = stage.poll().await;
        let snapshot = view.snapshot.as_ref().unwrap();
        let errors = (snapshot.sources.limits.iter().map(|table| &table.section.error))
            .chain(snapshot.sources.generators.iter().map(|table| &table.section.error));
        assert_eq!(errors.flatten().count(), 0, "PostgreSQL {version}");
        let mut found = limits(&view);
        found.sort();
        let expected = [("full", "full"), ("near", "near"), ("open", "open"), ("printed", "unknown")];
        assert_eq!(
            found,
            expected.map(|(key, state)| (key.to_owned(), state)),
            "windows that have ended are not read"
        );
        let ahead: Vec<_> = id_generator::rows(snapshot).map(|row| (row.id.worker, row.ahead)).collect();
        assert_eq!(ahead[..3], [(1, None), (2, None), (3, None)], "never used");
        assert!(ahead[3].1.is_some_and(|ahead| ahead > 290.0), "{ahead:?}");
        assert!(ahead[4].1.is_some_and(|ahead| ahead < -59.0), "{ahead:?}");
        let count = |check: &str| view.findings.iter().filter(|one| one.check == check).count();
        assert_eq!((count("id_ahead"), count("rate_limit")), (1, 1), "PostgreSQL {version}");
        let json = stage.json();
        assert_eq!(json["rate_limits"].as_array().unwrap().len(), 4);
        assert_eq!(json["id_generators"].as_array().unwrap().len(), 5);
        assert_eq!(json["sections"]["id_generators"]["error"], json!(null));
        let screen = stage.screen_of('6', 120, 35);
        for words in ["Rate limits · 4 keys · 1 full", "Id generators · 5 workers", "ahead"] {
            assert!(screen.contains(words), "{words} in {screen}");
        }
    }
}

#[tokio::test]
async fn a_million_windows_that_are_over_are_not_read() {
    let rows = if support::is_long() { 1_000_000 } else { 100_000 };
    let fill = format!(
        "INSERT INTO locktop.rate_limit SELECT 'user:' || n, 5, now() - interval '2 h', 100,
                now() + CASE WHEN n <= 10 THEN interval '1 h' ELSE interval '-1 h' END FROM generate_series(1, {rows}) AS n"
    );
    let mut stage = Stage::new(&format!("{own}{fill}", own = own())).await;
    let other = stage.client().await;
    other.batch_execute("SELECT pg_stat_reset()").await.unwrap();
    stage.reopen().await;
    assert_eq!(limits(&*stage.poll().await).len(), 10);
    stage.close();
    let read = scans(&other, "locktop.rate_limit").await;
    assert_eq!((read.sequential, read.by_index), (0, 10), "{read:?}");
}

#[tokio::test]
async fn only_existing_tables_have_a_pane() {
    let generators =
        "CREATE TABLE id_generator (worker_id int PRIMARY KEY, sequence int, last_timestamp bigint)";
    let mut stage = Stage::new(generators).await;
    stage.poll().await;
    let screen = stage.screen_of('6', 80, 24);
    assert!(screen.contains("Id generators · 0 workers") && !screen.contains("Queue · "), "{screen}");
    let mut stage = Stage::new("").await;
    stage.poll().await;
    assert!(stage.screen_of('6', 80, 24).contains("no table task_queue, rate_limit or id_generator"));
}

#[tokio::test]
async fn the_missing_grant_of_a_role_is_reported() {
    let grant = "CREATE ROLE systems_reader LOGIN; GRANT SELECT ON rate_limit TO systems_reader";
    let mut stage = Stage::new(&format!("{PRINTED}{grant}")).await;
    stage.as_role("systems_reader").await;
    let view = stage.poll().await;
    let systems = &view.snapshot.as_ref().unwrap().sources;
    assert_eq!(systems.limits[0].section.error, None);
    let errors = [
        &systems.leases[0].section.error,
        &systems.counts[0].section.error,
        &systems.generators[0].section.error,
    ];
    for (error, table) in errors.into_iter().zip(["distlock", "task_queue", "id_generator"]) {
        let error = error.as_deref().unwrap();
        assert!(error.contains("42501"), "{error}");
        assert!(error.ends_with(&format!("GRANT SELECT ON public.{table} is needed")), "{error}");
    }
    let screen = stage.screen_of('5', 120, 35);
    assert!(
        screen.contains("cannot be read: permission denied") && screen.contains("not read yet"),
        "{screen}"
    );
}
