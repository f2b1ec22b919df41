//! The work queue.

use locktop::model::namespace;
use locktop::model::view::View;
use locktop::pg::jobs::sources::TableLocations;
use serde_json::json;
use tokio_postgres::Client;

use super::stage::Stage;
use super::support::pid;
use super::{PRINTED, own, scans, support};

fn states(view: &View) -> Vec<(i64, &'static str)> {
    let snapshot = view.snapshot.as_ref().unwrap();
    let mut rows: Vec<_> = view.queue.rows.iter().collect();
    rows.sort_by_key(|row| row.urgency(snapshot));
    rows.iter().map(|row| (row.id.id, row.state.as_str())).collect()
}

/// The errors of the counts and the items of each table.
fn errors(view: &View) -> Vec<Option<String>> {
    let systems = &view.snapshot.as_ref().unwrap().sources;
    let counts = systems.counts.iter().map(|table| &table.section.error);
    let items = systems.items.iter().map(|table| &table.section.error);
    counts.chain(items).map(|error| error.as_ref().map(ToString::to_string)).collect()
}

/// `4 pending, 2 processing, 10,000+ completed, 1 failed`
fn depth(view: &View) -> String {
    let depth = &view.queue.depth;
    let (pending, processing) = (depth.pending, depth.processing);
    format!("{pending} {processing} {} {}", depth.completed, depth.failed)
}

/// Takes an item as a worker of locktop's own queue does, `seconds` ago.
async fn take(client: &Client, id: i64, seconds: u32) {
    let text = format!(
        "UPDATE locktop.task_queue SET status = 'processing', worker_id = 'worker-' || {id}, attempt = 1,
                started_at = clock_timestamp() - interval '{seconds} s', heartbeat_at = clock_timestamp(),
                backend_pid = pg_backend_pid(), backend_start = (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid())
          WHERE id = {id}"
    );
    client.batch_execute(&text).await.unwrap();
}

const ITEMS: &str = "INSERT INTO locktop.task_queue (task_name, created_at) SELECT 'mail ' || n, clock_timestamp() - interval '1 h'
      FROM generate_series(1, 6) AS n;
    UPDATE locktop.task_queue SET status = 'failed', completed_at = clock_timestamp(), attempt = 3, error_message = E'no\\nuser' WHERE id = 4;
    UPDATE locktop.task_queue SET status = 'completed', completed_at = clock_timestamp() WHERE id = 5;";

#[tokio::test]
async fn an_item_is_lost_with_the_session_that_took_it_on_every_version() {
    for version in support::versions() {
        let server = support::server_of(version).await;
        let mut stage = Stage::on(server, &format!("{PRINTED}{own}{ITEMS}", own = own())).await;
        let (living, dying) = (stage.client().await, stage.client().await);
        take(&living, 1, 60).await;
        take(&dying, 2, 60).await;
        let view = stage.poll().await;
        assert_eq!(errors(&view), [None, None, None, None], "PostgreSQL {version}");
        let expected = [(1, "running"), (2, "running"), (4, "failed"), (3, "pending"), (6, "pending")];
        assert_eq!(states(&view), expected, "PostgreSQL {version}");
        assert_eq!(depth(&view), "2 2 1 1", "PostgreSQL {version}");
        assert_eq!(view.queue.depth.per_minute, Some(1));
        assert_eq!(view.queue.rows[0].pid, Some(pid(&living).await));
        let waits = view.findings.iter().find(|one| one.check == "queue_pending").unwrap();
        assert_eq!(&*waits.summary, "work queue: 2 pending, oldest 1h00m; 2 in progress");
        drop(dying);
        stage.poll_until("its session ended", |view| states(view)[0] == (2, "settling")).await;
        assert!(
            stage.view().findings.iter().all(|one| one.check != "lost_item"),
            "its worker may not know it"
        );
        stage.later(31);
        assert_eq!(states(stage.view())[0], (2, "lost"), "PostgreSQL {version}");
        let lost = stage.view().findings.iter().find(|one| one.check == "lost_item").unwrap();
        assert!(
            lost.summary.starts_with("queue item 2 (mail 2) lost, worker-2 last seen"),
            "{}",
            lost.summary
        );
    }
}

#[tokio::test]
async fn an_item_that_was_claimed_is_seen_with_its_key_and_is_lost_with_its_session() {
    let add = "INSERT INTO locktop.task_queue (task_name) VALUES ('first'), ('second')";
    let mut stage = Stage::new(&format!("{own}{add}", own = own())).await;
    let worker = stage.client().await;
    worker.execute("SELECT locktop.claim_queue_items('worker-1', 1)", &[]).await.unwrap();
    let view = stage.poll().await;
    assert_eq!(states(&view), [(1, "running"), (2, "pending")]);
    let (row, locks) = (&view.queue.rows, view.snapshot.as_ref().unwrap().locks.last_rows());
    let row = row.iter().find(|row| row.id.id == 1).unwrap();
    let held = locks.iter().find(|lock| Some(lock.tag) == row.tag).unwrap();
    assert_eq!((held.pid, row.pid), (Some(pid(&worker).await), Some(pid(&worker).await)));
    assert_eq!(
        stage.name(namespace::number_of(namespace::QUEUE, 1).unwrap()),
        Some("queue item 1".to_owned())
    );
    drop(worker);
    stage.poll_until("its session ended", |view| states(view)[0] == (1, "settling")).await;
    let admin = stage.client().await;
    let sql = "SELECT state FROM locktop.running_queue_items";
    let seen: String = admin.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(seen, "settling", "the server agrees");
    stage.later(31);
    assert_eq!(states(stage.view())[0], (1, "lost"));
    let requeue = "SELECT outcome FROM locktop.requeue_queue_item(1, 'test')";
    let outcome: String = stage.client().await.query_one(requeue, &[]).await.unwrap().get(0);
    assert_eq!(outcome, "requeued", "the server agrees");
    assert_eq!(states(&*stage.poll().await), [(1, "pending"), (2, "pending")]);
}

#[tokio::test]
async fn an_item_that_failed_rests_until_it_is_due_and_one_past_its_time_is_slow() {
    for version in support::versions() {
        let add = "INSERT INTO locktop.task_queue (task_name, timeout) VALUES ('first', '1 hour'), ('second', '1 minute')";
        let server = support::server_of(version).await;
        let mut stage = Stage::on(server, &format!("{own}{add}", own = own())).await;
        let worker = stage.client().await;
        worker.execute("SELECT locktop.claim_queue_items('worker-1', 2)", &[]).await.unwrap();
        worker
            .execute("SELECT locktop.finish_queue_item(1, 'worker-1', 1, 'pending', 'no answer')", &[])
            .await
            .unwrap();
        let view = stage.poll().await;
        assert_eq!(states(&view), [(2, "running"), (1, "resting")], "PostgreSQL {version}");
        assert_eq!((depth(&view), view.queue.depth.oldest_pending_at), ("1 1 0 0".to_owned(), None));
        let snapshot = view.snapshot.as_ref().unwrap();
        let left = view.queue.rows.iter().find(|row| row.id.id == 1).unwrap().due_in(snapshot).unwrap();
        assert!(left > 0.0 && left <= 10.0, "{left}");
        let json = stage.json();
        let item = json["queue_items"].as_array().unwrap().iter().find(|item| item["id"] == 1).unwrap();
        assert!(item["due_at"].is_string() && item["timeout"] == json!(3600.0), "{item}");
        assert_eq!(item["failures"], 1);
        let screen = stage.screen_of('6', 160, 40);
        assert!(screen.contains("resting") && screen.contains("DUE"), "{screen}");
        stage.later(61);
        let view = stage.view();
        assert_eq!(states(view), [(2, "slow"), (1, "pending")], "PostgreSQL {version}");
        assert!(view.queue.depth.oldest_pending_at.is_none(), "the counts are older");
        assert!(stage.screen_of('6', 160, 40).contains("1 slow"));
    }
}

#[tokio::test]
async fn keys_have_the_names_of_existing_items_and_generators() {
    let mut stage = Stage::new(&format!(
        "{PRINTED}{own}{ITEMS}; INSERT INTO locktop.id_generator VALUES (9)",
        own = own()
    ))
    .await;
    let worker = stage.client().await;
    take(&worker, 1, 5).await;
    let printed = "INSERT INTO task_queue (task_name, status) VALUES ('a', 'processing')";
    worker.batch_execute(&format!("SELECT pg_advisory_lock(1); {printed}")).await.unwrap();
    let view = stage.poll().await;
    let key = |namespace, id| namespace::number_of(namespace, id).unwrap();
    for (number, expected) in [
        (key(namespace::QUEUE, 1), Some("queue item 1")),
        (key(namespace::QUEUE, 99), None),
        (key(namespace::GENERATORS, 9), Some("id generator 9")),
        (key(namespace::GENERATORS, 99), None),
        (1, Some("queue item 1?")),
        (2, Some("id generator 2?")),
    ] {
        assert_eq!(stage.name(number).as_deref(), expected, "{number}");
    }
    let printed = view.queue.rows.iter().find(|row| row.table == 0).unwrap();
    assert_eq!(
        (printed.state.as_str(), printed.pid),
        ("running?", Some(pid(&worker).await)),
        "its raw key is held, and the row names no session"
    );
    worker.batch_execute("SELECT pg_advisory_unlock(1)").await.unwrap();
    let view = stage.poll().await;
    let printed = view.queue.rows.iter().find(|row| row.table == 0).unwrap();
    assert_eq!(printed.state.as_str(), "lost?", "no session holds the number that its key should be");
}

#[tokio::test]
async fn the_json_and_the_table_show_the_depth_of_the_queue() {
    let mut stage = Stage::new(&format!("{own}{ITEMS}", own = own())).await;
    let worker = stage.client().await;
    take(&worker, 1, 5).await;
    stage.poll().await;
    let json = stage.json();
    let queue = &json["queue"];
    let numbers = ["pending", "processing", "completed", "failed"].map(|key| queue[key].as_u64().unwrap());
    assert_eq!(numbers, [3, 1, 1, 1]);
    assert_eq!((&queue["more"], &queue["completed_per_minute"]), (&json!([]), &json!(1)));
    assert!(queue["oldest_pending_at"].is_string());
    let item = &json["queue_items"].as_array().unwrap().iter().find(|item| item["id"] == 1).unwrap();
    assert_eq!((&item["state"], &item["worker_id"]), (&json!("running"), &json!("worker-1")));
    assert_eq!(json["sections"]["queue"]["error"], json!(null));
    let table = stage.table();
    assert!(table.contains("Queue: 3 pending · 1 processing · 1 failed · oldest "), "{table}");
}

#[tokio::test]
async fn a_locked_queue_is_old_and_the_rest_is_not() {
    let mut stage = Stage::new(&format!("{PRINTED}{own}{ITEMS}", own = own())).await;
    stage.poll().await;
    let migration = stage.client().await;
    let holder = pid(&migration).await;
    let lock = "BEGIN; LOCK TABLE locktop.task_queue IN ACCESS EXCLUSIVE MODE";
    migration.batch_execute(lock).await.unwrap();
    let expected = Some(format!("locktop.task_queue is locked: {holder} holds AccessExclusiveLock"));
    for _ in 0..2 {
        let view = stage.poll().await;
        assert_eq!(errors(&view), [None, expected.clone(), None, expected.clone()]);
        assert_eq!(depth(&view), "4 0 1 1", "the numbers before stay");
        let systems = &view.snapshot.as_ref().unwrap().sources;
        assert!(systems.limits.iter().all(|table| table.section.error.is_none()));
        assert!(systems.leases.iter().all(|table| table.section.error.is_none()));
        let json = stage.json();
        assert_eq!(json["queue"]["pending"], json!(null), "the number of all tables is not known");
        assert_eq!(json["sections"]["queue"]["error"], json!(expected));
        assert_eq!(json["sections"]["rate_limits"]["error"], json!(null));
        assert!(stage.screen_of('6', 120, 35).contains(&format!("{holder} holds AccessExclusiveLock")));
    }
    migration.batch_execute("ROLLBACK").await.unwrap();
    stage.poll_until("it is read again", |view| errors(view) == [None, None, None, None]).await;
}

#[tokio::test]
async fn hostile_text_and_nulls_are_values() {
    let rows = r"INSERT INTO task_queue (task_name, status, worker_id, created_at, started_at) VALUES
            (NULL, NULL, NULL, NULL, NULL), (E'\x1b[2Jevil\nname', 'processing', E'\x1b]0;owned\x07', 'infinity', '-infinity'),
            (repeat('宽', 100), 'failed', repeat('宽', 50), '-infinity', NULL), ('x', E'odd\x1bstatus', NULL, now(), now());
        INSERT INTO rate_limit VALUES (E'\x1b[31mkey\n', NULL, NULL), (repeat('宽', 100), 2147483647, 'infinity');
        UPDATE id_generator SET last_timestamp = NULL, sequence = NULL WHERE worker_id = 1;
        UPDATE id_generator SET last_timestamp = 9223372036854775807 WHERE worker_id = 2;
        UPDATE id_generator SET last_timestamp = -9223372036854775808 WHERE worker_id = 3";
    let mut stage = Stage::new(&format!("{PRINTED}{rows}")).await;
    let view = stage.poll().await;
    assert_eq!(errors(&view), [None, None]);
    assert_eq!(states(&view), [(2, "lost?"), (3, "failed")]);
    assert_eq!((depth(&view), view.queue.depth.other.number), ("0 1 0 1".to_owned(), 2));
    for (width, height) in [(80, 24), (120, 35), (200, 60)] {
        let screen = stage.screen_of('6', width, height);
        assert!(!screen.chars().any(|letter| letter.is_control() && letter != '\n'), "{screen}");
        assert!(screen.contains("␛[2Jevil") && screen.contains("␛[31mkey"), "{screen}");
    }
    assert!(!stage.table().contains('\u{1b}'), "{}", stage.table());
}

/// Many items that are done, some that wait, and one that is in progress just before those.
fn fill(table: &str, rows: u32, pending: u32) -> String {
    format!(
        "INSERT INTO {table} (task_name, status, created_at, started_at, completed_at)
         SELECT 'job', CASE WHEN n <= {rows} THEN 'completed' WHEN n = {rows} + 1 THEN 'processing' ELSE 'pending' END,
                now() - interval '1 hour', now() - interval '50 minutes',
                CASE WHEN n <= {rows} THEN now() - interval '40 minutes' END
           FROM generate_series(1, {rows} + 1 + {pending}) AS n"
    )
}

#[tokio::test]
async fn a_queue_of_a_million_is_counted_by_its_indexes_and_up_to_a_limit() {
    let rows = if support::is_long() { 1_000_000 } else { 100_000 };
    let ddl = format!("{PRINTED}{own}", own = own());
    let mut stage = Stage::new(&ddl).await;
    let other = stage.client().await;
    for (table, pending, expected) in
        [("locktop.task_queue", 20_000, "10,000+ 1 10,000+ 0"), ("task_queue", 20_000, "10,000+ 0+ 0+ 0+")]
    {
        let drop = if table == "task_queue" { "DROP SCHEMA locktop CASCADE;" } else { "" };
        other.batch_execute(&format!("{drop} {}", fill(table, rows, pending))).await.unwrap();
        for analyzed in [false, true] {
            if analyzed {
                other.batch_execute("VACUUM ANALYZE").await.unwrap();
            }
            other.batch_execute("SELECT pg_stat_reset()").await.unwrap();
            stage.reopen().await;
            let view = stage.poll().await;
            assert!(errors(&view).iter().all(Option::is_none), "{:?}", errors(&view));
            let what = format!("{table}, analyzed: {analyzed}");
            assert_eq!(depth(&view), expected, "{what}");
            let working =
                view.queue.rows.iter().filter(|row| row.run(view.snapshot.as_ref().unwrap()).is_some());
            assert_eq!(working.count(), 1, "the item before the pending ones is seen: {what}");
            stage.close();
            let read = scans(&other, table).await;
            assert_eq!((read.sequential, read.rows), (0, 0), "no scan of the whole table: {what}");
            assert!(read.by_index < 60_000, "{what}: {read:?}");
        }
    }
}

#[tokio::test]
async fn after_ten_thousand_rows_the_counts_are_not_read_in_every_poll() {
    let mut stage = Stage::new(&format!("{own}{}", fill("locktop.task_queue", 20_000, 5), own = own())).await;
    let first = stage.poll().await;
    let read = |view: &View| view.snapshot.as_ref().unwrap().sources.counts[0].section.taken_at;
    let second = stage.poll().await;
    assert_eq!(read(&first), read(&second), "not read again at once");
    stage.poll_until("they are read again", |view| read(view) != read(&first)).await;
}

#[tokio::test]
async fn a_queue_without_an_index_is_not_read_whole() {
    let bare =
        "CREATE TABLE task_queue (id bigint, status text); INSERT INTO task_queue VALUES (1, 'pending')";
    let mut stage = Stage::new(bare).await;
    let error = errors(&*stage.poll().await)[0].clone().unwrap();
    assert!(error.contains("has no index on status nor on id"), "{error}");
    let other = stage.client().await;
    other.batch_execute("CREATE INDEX ON task_queue (status)").await.unwrap();
    stage.reopen().await;
    let view = stage.poll().await;
    assert_eq!((errors(&view), depth(&view)), (vec![None, None], "1 0 0 0".to_owned()));
}

#[tokio::test]
async fn one_bad_name_in_the_config_leaves_the_others() {
    let mut stage = Stage::new(&format!("CREATE SCHEMA jobs; SET search_path = jobs; {PRINTED}")).await;
    let places = [
        ("task_queue", "a.b.c.d"),
        ("distlock", "jobs.distlock"),
        ("rate_limit", "jobs.rate_limit"),
        ("id_generator", "jobs.task_queue"),
    ];
    stage.places(TableLocations(places.map(|(name, place)| (name, place.to_owned())).into())).await;
    let view = stage.poll().await;
    let systems = &view.snapshot.as_ref().unwrap().sources;
    assert!(
        errors(&view)[0].as_ref().unwrap().starts_with("[tables] in the config: improper"),
        "{:?}",
        errors(&view)
    );
    assert_eq!((&systems.leases[0].section.error, &systems.limits[0].section.error), (&None, &None));
    let error = systems.generators[0].section.error.as_deref();
    let expected =
        "jobs.task_queue has no columns worker_id and last_timestamp: not a table of id generators";
    assert_eq!(error, Some(expected));
}
