use crate::model::backend::State;
use crate::model::finding::{Finding, Severity, Subject};
use crate::model::lock::LockMode;
use crate::model::namespace;
use crate::model::table_rows::TaskWorker;
use crate::sample::{Builder, advisory, at};

fn worker(b: &mut Builder, pid: i32, types: Option<&str>) {
    b.session(pid, "worker@locktop worker", State::Idle, 60.0, "");
    let start = b.backends.last().and_then(|backend| backend.backend_start);
    b.workers.push(TaskWorker {
        pid,
        start,
        name: Some(format!("w{pid}").into()),
        takes_tasks: true,
        takes_items: true,
        types: types.map(Into::into),
        announced_at: Some(at(-60.0)),
    });
}

/// Two tasks that no worker takes and one that is only late; an item of each kind.
fn stage() -> Builder {
    let mut b = Builder::default();
    b.task(1, "weekly mail", "mail", 60.0, 120.0);
    b.task(2, "daily mail", "mail", 60.0, 240.0);
    b.task(3, "report", "sql", 60.0, 180.0);
    b.task(4, "digest", "mail", 60.0, 5.0);
    b.item(7, "push", "pending", 90.0);
    b.item(8, "sql", "pending", 95.0);
    b
}

fn reported(builder: Builder) -> Vec<(&'static str, String, String)> {
    let view = builder.view();
    let matching = view.findings.iter().filter(|it| ["unserved_type", "overdue_task"].contains(&it.check));
    // For items it is informational: an idle worker of the application's own may take the type.
    let severity =
        |it: &Finding| if it.summary.contains("queue item") { Severity::Info } else { Severity::Warning };
    assert!(matching.clone().all(|it| it.severity == severity(it)));
    matching.map(|it| (it.check, it.summary.to_string(), it.about.to_string())).collect()
}

#[test]
fn work_of_a_type_that_no_worker_takes_is_reported_by_type() {
    let mut b = stage();
    worker(&mut b, 11, Some(r#"["sql"]"#));
    worker(&mut b, 12, Some(r#"["sleep","sql"]"#));
    let about = "2 workers take sleep, sql".to_owned();
    let tasks = "2 tasks of type mail overdue, the first, daily mail, 4m00s: no worker takes them";
    let item = "queue item 7 of type push due 1m30s: no worker takes it";
    assert_eq!(
        reported(b),
        [
            ("unserved_type", tasks.to_owned(), about.clone()),
            ("overdue_task", "report overdue 3m00s, no worker runs it".to_owned(), String::new()),
            ("unserved_type", item.to_owned(), about),
        ]
    );
}

#[test]
fn for_the_removed_type_http_the_remedy_is_named() {
    let mut b = stage();
    worker(&mut b, 11, Some(r#"["sql","push","mail"]"#));
    b.task(5, "hook", "http", 60.0, 240.0);
    b.item(9, "http", "pending", 90.0);
    let about: Vec<_> = reported(b).into_iter().filter(|(check, ..)| *check == "unserved_type").collect();
    assert_eq!(about.len(), 2, "{about:?}");
    assert!(about.iter().all(|(.., about)| about.ends_with("http was removed: use type command with curl")));
}

#[test]
fn it_is_about_the_first_row_of_the_type() {
    let mut b = stage();
    worker(&mut b, 11, Some(r#"["sql","push"]"#));
    let view = b.view();
    let finding = view.findings.iter().find(|it| it.check == "unserved_type").unwrap();
    assert!(matches!(&finding.subject, Subject::Task(task) if task.id == 2), "{finding:?}");
    assert_eq!(finding.since, Some(at(-240.0)));
    assert_eq!(&*finding.about, "the one worker takes push, sql");
}

#[test]
fn a_type_is_unserved_only_if_every_worker_announced_its_types() {
    let unserved = |change: &dyn Fn(&mut Builder)| {
        let mut b = stage();
        worker(&mut b, 11, Some(r#"["sql"]"#));
        change(&mut b);
        reported(b).iter().filter(|(check, ..)| *check == "unserved_type").count()
    };
    assert_eq!(unserved(&|_| {}), 2);
    assert_eq!(unserved(&|b| b.workers.clear()), 0, "no worker is connected: that is another finding");
    assert_eq!(unserved(&|b| worker(b, 12, None)), 0, "one takes everything");
    let disconnected = |b: &mut Builder| {
        worker(b, 12, None);
        b.backends.retain(|backend| backend.pid != 12);
    };
    assert_eq!(unserved(&disconnected), 2, "one that has disconnected takes nothing");
    let another = |b: &mut Builder| {
        worker(b, 12, None);
        b.workers[1].start = Some(at(-9999.0));
    };
    assert_eq!(unserved(&another), 2, "its pid has been reused");
    let silent = |b: &mut Builder| {
        b.session(13, "old@worker", State::Idle, 60.0, "");
        b.lock(
            13,
            advisory(namespace::number_of(namespace::WORKERS, 77).unwrap()),
            LockMode::Exclusive,
            None,
        );
    };
    assert_eq!(unserved(&silent), 0, "a worker of an older version does not announce its types");
    let own = |b: &mut Builder| {
        b.session(14, "py@jobs", State::Idle, 60.0, "");
        b.item(9, "push", "processing", 1.0).backend_pid = Some(14);
    };
    assert_eq!(unserved(&own), 0, "nor does the application's own worker, which processes an item");
    let tasks_only = |b: &mut Builder| b.workers[0].takes_items = false;
    assert_eq!(unserved(&tasks_only), 1, "no worker takes queue items");
}

#[test]
fn the_count_of_partly_read_items_is_a_lower_bound() {
    let items = |pending: u64| {
        let mut b = Builder::default();
        worker(&mut b, 11, Some(r#"["sql"]"#));
        b.item(7, "push", "pending", 90.0);
        b.item(8, "push", "pending", 70.0);
        b.count("pending", pending, false);
        reported(b).remove(0).1
    };
    let all = "2 queue items of type push due, the first 1m30s: no worker takes them";
    assert_eq!(items(2), all);
    assert_eq!(items(3), all.replace("2 queue", "2 or more queue"));
}
