use super::*;
use crate::output::sample;
use crate::text::width;

fn rendered(width: Option<usize>) -> String {
    render(&sample::view(), width).unwrap()
}

#[test]
fn the_whole_table() {
    let expected = "\
PostgreSQL 17.2 primary · 3 waiting · 4/100 connections · app@db.example.com:5432 as monitor · 2023-11-14 22:15:00 UTC
CRIT  prepared transaction 'order 7' blocks 1

Chains: 2 roots · 3 blocked
PID       BLOCKS  NOW  TURN  STILL   WAIT  STATE / WAITS FOR            WHO           CLIENT      XACT  QUERY
1              2    1     1      0         idle in transaction 1m10s    app@web␛[31m  [local]  1m30s w  SELECT pg_advisory_lock(72707369)
├2             1    0     0      1  1m00s  Prisma Migrate Exclusive     app@web␛[31m  [local]  1m30s w  SELECT 1 ;
└3                                    50s  Prisma Migrate Exclusive +1  app@web␛[31m  [local]  1m30s w  SELECT 2
prepared       1    1     0      0         prepared 1m35s 'order 7'     app                             gid order 7
└4                                    40s  accounts AccessShare         app@web␛[31m  [local]  1m30s w  TABLE accounts

Advisory: 1 held · 2 waiting
NAME            MODE       PID  OWNER         WAITERS  KEY       STATE
Prisma Migrate  Exclusive  1    app@web␛[31m        2  72707369  idle in transaction 1m10s
";
    let text = rendered(None);
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn nothing_of_the_server_reaches_the_terminal_as_a_command() {
    let text = rendered(None);
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(text.contains("SELECT 1 ;"), "a query is one line: {text}");
}

#[test]
fn lines_are_cut_to_the_width() {
    let narrow = rendered(Some(60));
    // A statement to copy stays on one line.
    let is_statement = |line: &str| line.contains("ROLLBACK PREPARED") || line.contains("SELECT pg_");
    assert!(narrow.lines().all(|line| width(line) <= 60 || is_statement(line)), "{narrow}");
    let incident = render(&crate::sample::incident(0.0).view(), Some(60)).unwrap();
    assert!(incident.lines().any(|line| line.contains('…')), "{incident}");
    // Sentences are complete: the words are those of the widest output, whatever the lines.
    let words = |text: &str| {
        let words = text.split_whitespace().filter(|word| *word != "·");
        words.take(20).map(str::to_owned).collect::<Vec<_>>()
    };
    // A separator does not end a line.
    assert!(narrow.lines().all(|line| !line.ends_with('·')), "{narrow}");
    assert_eq!(words(&narrow), words(&rendered(Some(1000))));
}

#[test]
fn tasks_are_listed_only_if_they_exist() {
    let text = render(&crate::sample::jobs(0.0).view(), Some(100)).unwrap();
    let at = text.find("Tasks: 1 running · 1 orphan · 1 slow · 2 overdue").unwrap();
    let lines: Vec<&str> = text[at..].lines().collect();
    assert!(lines[1].starts_with("STATE"), "{text}");
    assert!(lines[2].starts_with("orphan    报表生成任务"), "{text}");
    assert!(lines.iter().any(|line| line.starts_with("idle") && line.contains("  in 4m10s")), "{text}");
    let none = render(&sample::view(), None).unwrap();
    assert!(!none.contains("Tasks"), "{none}");
}

/// A table that cannot be read is not reported as empty, and is reported only once.
#[test]
fn a_table_that_may_not_be_read_is_one_line() {
    let error =
        "permission denied for table scheduled_tasks; GRANT SELECT ON locktop.scheduled_tasks is needed";
    let mut snapshot = crate::sample::systems::queue(0.0).snapshot();
    let set = snapshot.task_sets[0].clone();
    let tasks = crate::model::snapshot::Section::default().stale(error.into());
    let set = crate::model::task::TaskSet::new(set.tables, tasks, set.executions);
    snapshot.task_sets = std::sync::Arc::new(vec![set]);
    let mut systems = (*snapshot.sources).clone();
    for table in &mut systems.leases {
        table.section = crate::model::snapshot::Section::default().stale("no lease for you".into());
    }
    for table in &mut systems.counts {
        table.section = crate::model::snapshot::Section::default().stale("no queue for you".into());
    }
    for table in &mut systems.items {
        table.section = crate::model::snapshot::Section::default().stale("no queue for you".into());
    }
    snapshot.sources = std::sync::Arc::new(systems);
    let text = render(&crate::sample::view(snapshot, 1), None).unwrap();
    for (line, reason) in [
        (format!("Tasks: cannot be read: {error}"), error),
        ("Leases: cannot be read: no lease for you".to_owned(), "no lease for you"),
        ("Queue: cannot be read: no queue for you".to_owned(), "no queue for you"),
    ] {
        assert_eq!(text.lines().filter(|one| one.starts_with(&line)).count(), 1, "{line} in {text}");
        assert_eq!(text.matches(reason).count(), 1, "{reason} in {text}");
    }
    for words in ["no task", "no lease is", "pending"] {
        assert!(!text.contains(words), "{words} in {text}");
    }
}

#[test]
fn waits_are_left_out_if_the_locks_are_unreadable() {
    let mut snapshot = crate::sample::incident(0.0).snapshot();
    snapshot.locks = crate::model::snapshot::Section::default().stale("permission denied".into());
    let text = render(&crate::sample::view(snapshot, 1), None).unwrap();
    assert!(text.contains("Locks: not readable (permission denied)"), "{text}");
    assert!(!text.contains("Chains") && !text.contains("Advisory"), "{text}");
}

#[test]
fn alike_waiters_are_one_line_and_a_finding_has_its_statement() {
    let text = render(&crate::sample::incident(0.0).view(), Some(100)).unwrap();
    assert!(text.lines().all(|line| width(line) <= 100), "{text}");
    assert!(text.contains("\n      SELECT pg_terminate_backend(4312);\n"), "{text}");
    // A party that waits for that root is not a finding of its own.
    assert!(!text.contains("pg_cancel_backend"), "{text}");
    assert!(text.contains("\n      in app: ROLLBACK PREPARED 'order-17'\n"), "{text}");
    assert!(text.contains(" ci ") && text.contains("ALTER T"), "names and queries have room: {text}");
    assert!(text.lines().any(|line| line.starts_with(" └queue ") && line.contains(" ×16 ")), "{text}");
    assert!(!text.contains("  DB  "), "there is one: {text}");
}

#[test]
fn advisory_locks_of_several_databases_show_their_database() {
    let mut snapshot = crate::sample::incident(0.0).snapshot();
    let mut locks = snapshot.locks.last_rows().to_vec();
    let is_held = |lock: &&crate::model::lock::Lock| {
        lock.granted && lock.tag.locktype() == crate::model::lock::LockType::Advisory
    };
    let mut other = *locks.iter().find(is_held).unwrap();
    other.tag = other.tag.with_database(77);
    locks.push(other);
    snapshot.locks.set(locks);
    let mut names = (*snapshot.names).clone();
    names.databases.insert(77, "billing".into());
    snapshot.names = std::sync::Arc::new(names);
    let text = render(&crate::sample::view(snapshot, 1), None).unwrap();
    let at = text.find("Advisory: ").unwrap();
    let lines: Vec<&str> = text[at..].lines().collect();
    assert!(lines[1].contains("  DB  "), "{text}");
    assert_eq!(lines.iter().filter(|line| line.contains("  billing")).count(), 1, "{text}");
    assert!(lines[2..].iter().any(|line| line.contains("  app ")), "{text}");
}

/// A task that may be an orphan soon is shown as such, as on the screen.
#[test]
fn a_task_that_will_be_an_orphan_shows_when() {
    let mut view = crate::sample::jobs(0.0).view();
    let tasks = std::sync::Arc::make_mut(&mut view.tasks);
    let row = tasks.rows.iter_mut().find(|row| row.execution.is_some()).unwrap();
    row.orphan_in = Some(8.0);
    let text = render(&view, None).unwrap();
    assert_eq!(text.matches("  orphan 8.0s").count(), 1, "{text}");
}

/// Two schemas may each have a task of the same name.
#[test]
fn tasks_of_several_tables_show_their_table() {
    let mut snapshot = crate::sample::jobs(0.0).snapshot();
    let one = snapshot.task_sets[0].clone();
    let tables = crate::model::task::TaskTables {
        table: 4001,
        schedules: "jobs.scheduled_tasks".into(),
        ..(*one.tables).clone()
    };
    let other = crate::model::task::TaskSet::new(
        std::sync::Arc::new(tables),
        one.tasks.clone(),
        one.executions.clone(),
    );
    snapshot.task_sets = std::sync::Arc::new(vec![one.clone(), other]);
    let text = render(&crate::sample::view(snapshot, 1), None).unwrap();
    assert!(text.contains("TABLE") && text.contains("jobs.scheduled_tasks"), "{text}");
    assert!(text.contains(&*one.tables.schedules), "{text}");
}
