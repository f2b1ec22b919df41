use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::model::source_tables::TableRows;
use crate::model::view::View;
use crate::output::sample;

fn limits(warning: &[(&str, &str)], critical: &[(&str, &str)]) -> CheckLimits {
    let read = |list: &[(&str, &str)]| {
        list.iter().map(|(name, range)| ((*name).to_owned(), range.parse().unwrap())).collect()
    };
    CheckLimits { warning: read(warning), critical: read(critical), ..CheckLimits::default() }
}

fn report(views: &[Arc<View>], limits: &CheckLimits) -> CheckReport {
    CheckReport::of(views, Duration::from_millis(12), Duration::from_secs(2), limits)
}

fn of<'a>(report: &'a CheckReport, name: &str) -> &'a JudgedMeasure {
    report.checks.iter().find(|judged| judged.name == name).unwrap_or_else(|| panic!("{name} in {report:?}"))
}

fn stale(view: &View) -> Arc<View> {
    let mut snapshot = (**view.snapshot.as_ref().unwrap()).clone();
    snapshot.locks = snapshot.locks.stale("it is locked".into());
    Arc::new(View { snapshot: Some(Arc::new(snapshot)), ..view.clone() })
}

fn quiet(view: &View) -> Arc<View> {
    let graph = crate::model::wait_graph::WaitGraph::default();
    Arc::new(View { graph: Arc::new(graph), findings: Arc::default(), ..view.clone() })
}

#[test]
fn the_worst_range_that_is_left_counts() {
    let view = Arc::new(sample::view());
    let waiting = f64::from(view.graph.waiting);
    assert!(waiting > 0.0);
    for (limits, status) in [
        (limits(&[], &[]), Status::Ok),
        (limits(&[("waiting", "0")], &[]), Status::Warning),
        (limits(&[("waiting", "0")], &[("waiting", "0")]), Status::Critical),
        (limits(&[("waiting", "@1:100")], &[("waiting", "1000")]), Status::Warning),
        (limits(&[("waiting", "100")], &[]), Status::Ok),
    ] {
        let report = report(std::slice::from_ref(&view), &limits);
        let judged = of(&report, "waiting");
        assert_eq!((judged.status, judged.value), (status, Some(waiting)));
    }
}

#[test]
fn unread_measures_are_unknown_and_absent_systems_are_left_out() {
    let view = sample::view();
    let report = report(&[stale(&view)], &limits(&[], &[]));
    let judged = of(&report, "longest_wait");
    assert_eq!((judged.status, judged.value), (Status::Unknown, None));
    assert!(judged.about.contains("cannot read pg_locks: it is locked"), "{judged:?}");
    assert!(report.status() != Status::Ok);
    let no_redis = Arc::new(view);
    let report = |limits: &CheckLimits| self::report(std::slice::from_ref(&no_redis), limits);
    assert!(report(&CheckLimits::default()).checks.iter().all(|judged| judged.name != "redis_down"));
    let asked = CheckLimits { only: vec!["redis_down".to_owned()], ..CheckLimits::default() };
    assert_eq!(report(&asked).status(), Status::Unknown, "a check that is requested by name is reported");
}

#[test]
fn nothing_in_a_table_that_may_not_be_read_is_not_known() {
    fn denied<T>() -> crate::model::snapshot::Section<T> {
        crate::model::snapshot::Section::default().stale("permission denied".into())
    }
    let view = crate::sample::jobs(0.0).view();
    let mut snapshot = (**view.snapshot.as_ref().unwrap()).clone();
    for set in Arc::make_mut(&mut snapshot.task_sets) {
        set.executions = denied();
    }
    let systems = Arc::make_mut(&mut snapshot.sources);
    systems.leases = vec![TableRows { section: denied(), ..TableRows::default() }];
    let (tasks, leases) = (Arc::default(), Arc::default());
    let unread = Arc::new(View { snapshot: Some(Arc::new(snapshot)), tasks, leases, ..view });
    let report = report(&[unread], &limits(&[], &[]));
    for name in ["tasks_orphan", "tasks_overdue", "tasks_slow", "tasks_failed", "leases_expired"] {
        let judged = of(&report, name);
        assert_eq!((judged.status, judged.value), (Status::Unknown, None), "{judged:?}");
        assert!(
            judged.about.starts_with("cannot read ") && judged.about.ends_with(": permission denied"),
            "{judged:?}"
        );
    }
}

#[test]
fn a_measure_is_bad_only_if_it_is_bad_in_every_snapshot() {
    let view = Arc::new(sample::view());
    let quiet = quiet(&view);
    let limits = limits(&[("waiting", "0")], &[]);
    let status = |views: &[Arc<View>]| of(&report(views, &limits), "waiting").status;
    assert_eq!(status(&[Arc::clone(&view), Arc::clone(&view), Arc::clone(&view)]), Status::Warning);
    assert_eq!(status(&[Arc::clone(&view), Arc::clone(&quiet), Arc::clone(&view)]), Status::Ok);
    assert_eq!(status(&[Arc::clone(&view), stale(&view)]), Status::Unknown);
    let both = report(&[Arc::clone(&view), quiet], &limits);
    // The mean of two snapshots that are two seconds apart.
    assert_eq!(of(&both, "blocked_seconds").value, Some(f64::from(view.graph.waiting)));
}

#[test]
fn checks_are_chosen_by_name() {
    let view = Arc::new(sample::view());
    let names = |only: &[&str], not: &[&str]| {
        let own = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        let limits = CheckLimits { only: own(only), not: own(not), ..CheckLimits::default() };
        let report = report(std::slice::from_ref(&view), &limits);
        let mut names: Vec<_> = report.checks.iter().map(|judged| judged.name).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(&["waiting", "connect"], &[]), ["connect", "waiting"]);
    assert_eq!(names(&["waiting", "connect"], &["connect"]), ["waiting"]);
    assert!(names(&[], &["waiting"]).len() > 5);
}

#[test]
fn the_plugin_format_has_a_summary_line_and_performance_data() {
    let view = Arc::new(sample::view());
    let only = ["waiting", "worst_root", "connections"].map(str::to_owned).to_vec();
    let limits = CheckLimits { only, ..limits(&[("waiting", "0")], &[("worst_root", "0")]) };
    let mut report = report(&[view], &limits);
    let text = render(&report, CheckFormat::Plugin);
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("LOCKTOP CRITICAL - ") && first.len() <= 140, "{text}");
    assert!(text.contains("\n[CRITICAL] worst_root 2 > 0"), "{text}");
    assert!(text.contains("\n[WARNING] waiting "), "{text}");
    assert!(text.trim_end().lines().last().unwrap().starts_with("[OK] 1 more |worst_root="), "{text}");
    assert!(text.contains("waiting=") && text.contains(";0;;0") && text.is_ascii(), "{text}");
    // A name chosen by a client must not end the line or begin the performance data.
    if let Some(worst) = report.checks.first_mut() {
        worst.about = format!("ev|l\nname=1 \u{1b}[2J \u{202e} {}", "x".repeat(10_000));
    }
    let text = render(&report, CheckFormat::Plugin);
    assert_eq!((text.lines().count(), text.matches('|').count()), (4, 1), "{text}");
    assert!(text.len() < 8192 && text.is_ascii() && !text.contains('\u{1b}'), "{text}");
    // A name in another script is not lost.
    if let Some(worst) = report.checks.first_mut() {
        worst.about = "报表 late".to_owned();
    }
    let text = render(&report, CheckFormat::Plugin);
    assert!(text.contains("\\u62a5\\u8868 late"), "{text}");
}

#[test]
fn the_same_in_other_words() {
    let view = Arc::new(sample::view());
    let only = ["waiting", "connections", "deadlocks", "longest_wait"].map(str::to_owned).to_vec();
    let limits = CheckLimits { only, ..limits(&[("waiting", "0")], &[]) };
    let report = report(&[view], &limits);
    let json: serde_json::Value = serde_json::from_str(&render(&report, CheckFormat::Json)).unwrap();
    assert_eq!(json["format"], 1);
    assert_eq!(json["code"].as_u64(), Some(report.status().code().into()));
    assert_eq!(json["checks"].as_array().unwrap().len(), 4);
    let checkmk = render(&report, CheckFormat::Checkmk);
    assert_eq!(checkmk.lines().count(), 4);
    assert!(checkmk.lines().any(|line| line.starts_with("1 \"locktop_waiting\" waiting=")), "{checkmk}");
    // Without units; a limit of 0 is a limit, too.
    assert!(checkmk.contains(" longest_wait=60;30;300 "), "{checkmk}");
    let zero = CheckLimits { only: vec!["waiting".to_owned()], ..self::limits(&[], &[("waiting", "0")]) };
    let critical = render(&self::report(&[Arc::new(sample::view())], &zero), CheckFormat::Checkmk);
    assert!(critical.starts_with("2 \"locktop_waiting\" waiting=3;;0 "), "{critical}");
    let report = CheckReport { server: "db:5432".to_owned(), database: "a\"b".to_owned(), ..report };
    let metrics = render(&report, CheckFormat::Openmetrics);
    for part in [
        "# TYPE locktop_waiting gauge\nlocktop_waiting{server=\"db:5432\",database=\"a\\\"b\"} ",
        "# TYPE locktop_deadlocks counter\nlocktop_deadlocks_total{",
        "locktop_longest_wait_seconds{",
        "locktop_connections_ratio{",
        ",locktop_status=\"ok\"} ",
    ] {
        assert!(metrics.contains(part), "{part}: {metrics}");
    }
    assert!(metrics.ends_with("# EOF\n"));
}

#[test]
fn the_first_line_shows_the_problem_and_its_object() {
    let judged = |name: &'static str, about: &str| JudgedMeasure {
        name,
        unit: "",
        status: Status::Warning,
        value: Some(1.0),
        warning: Some(range::Range::above(0.0)),
        critical: None,
        about: about.to_owned(),
    };
    for (check, expected) in [
        (judged("tasks_orphan", "nightly"), "LOCKTOP WARNING - tasks_orphan 1 > 0: nightly"),
        (judged("leases_expired", "7"), "LOCKTOP WARNING - leases_expired 1 > 0: 7"),
        (
            judged("jobs_lost", "Solid Queue: job InvoiceJob is lost (heartbeat)"),
            "LOCKTOP WARNING - Solid Queue: job InvoiceJob is lost (heartbeat)",
        ),
        (
            judged("cycles", "deadlock: 1 and 2 wait for each other"),
            "LOCKTOP WARNING - deadlock: 1 and 2 wait for each other",
        ),
    ] {
        let report = CheckReport { checks: vec![check], server: String::new(), database: String::new() };
        let text = render(&report, CheckFormat::Plugin);
        assert_eq!(text.lines().next().unwrap().split(" |").next().unwrap(), expected);
    }
}

#[test]
fn jobs_of_other_systems_are_counted_if_such_a_system_exists() {
    use crate::model::adapter::sample as installations;
    let report_of = |rows: Vec<crate::model::adapter::InstallationRows>| {
        let mut snapshot = crate::sample::Builder::default().snapshot();
        snapshot.adapters = Arc::new(rows);
        report(&[Arc::new(crate::sample::view(snapshot, 1))], &CheckLimits::default())
    };
    let now = crate::sample::Builder::default().snapshot().taken_at;
    let found = report_of(vec![installations::beating(now)]);
    let lost = of(&found, "jobs_lost");
    assert_eq!((lost.status, lost.value), (Status::Warning, Some(1.0)));
    assert!(lost.about.starts_with("Solid Queue: job DunningJob is lost (heartbeat)"), "{}", lost.about);
    assert_eq!(
        (of(&found, "jobs_unserved").status, of(&found, "jobs_unserved").value),
        (Status::Ok, Some(0.0))
    );
    let mut silent = installations::beating(now);
    silent.workers = installations::read(now, Vec::new());
    assert_eq!(of(&report_of(vec![silent.clone()]), "jobs_unserved").status, Status::Warning);
    silent.workers = silent.workers.stale("it is locked".into());
    let running = silent.jobs.get_mut(&crate::model::adapter::Part::Running).unwrap();
    *running = crate::model::snapshot::Section::default().stale("it is locked".into());
    let found = report_of(vec![silent]);
    assert_eq!(of(&found, "jobs_lost").status, Status::Unknown);
    assert_eq!(of(&found, "jobs_unserved").status, Status::Unknown);
    let leases = report_of(vec![installations::leasing(now)]);
    assert!(leases.checks.iter().all(|judged| !judged.name.starts_with("jobs_")));
}

#[test]
fn the_worst_root_is_the_waiter_at_the_head_of_the_convoy() {
    use crate::model::backend::State;
    use crate::model::lock::LockMode;
    use crate::sample::{Builder, relation};
    let mut b = Builder::default();
    b.session(4312, "app@report", State::Active, 70.0, "SELECT sum(balance) FROM accounts");
    b.session(4410, "deploy@ci", State::Active, 60.0, "ALTER TABLE accounts ADD note text");
    b.lock(4312, relation(2001), LockMode::AccessShare, None);
    b.lock(4410, relation(2001), LockMode::AccessExclusive, Some(60.0));
    for pid in 5000..5008 {
        b.session(pid, "app@web", State::Active, 50.0, "SELECT 1 FROM accounts");
        b.lock(pid, relation(2001), LockMode::AccessShare, Some(50.0));
    }
    let report = report(&[Arc::new(b.view())], &limits(&[], &[]));
    let about = &of(&report, "worst_root").about;
    assert!(about.starts_with("4410 ") && about.contains("blocks 8: 8 now"), "{about}");
}

#[test]
fn the_task_that_is_in_a_state_for_longest_is_named() {
    let view = Arc::new(crate::sample::jobs(0.0).view());
    let report = report(&[view], &limits(&[], &[]));
    let about = &of(&report, "tasks_overdue").about;
    assert_eq!(about, "billing close and 1 more");
}

/// A job system that is not read, or a failed search, must not count as "no jobs".
#[test]
fn a_job_system_that_is_not_read_is_not_known() {
    use crate::model::adapter::{Installation, InstallationRows, sample as installations};
    use crate::model::snapshot::Section;
    let snapshot = || crate::sample::Builder::default().snapshot();
    let of_snapshot =
        |snapshot| report(&[Arc::new(crate::sample::view(snapshot, 1))], &CheckLimits::default());
    let now = snapshot().taken_at;
    // The owner is not trusted.
    let read = installations::beating(now);
    let refused =
        Installation { refused: Some("it belongs to mallory".into()), ..(*read.installation).clone() };
    let mut denied = snapshot();
    denied.adapters = Arc::new(vec![InstallationRows::new(Arc::new(refused))]);
    let found = of_snapshot(denied.clone());
    for name in ["jobs_lost", "jobs_unserved", "unread"] {
        let judged = of(&found, name);
        let value = (name == "unread").then_some(1.0);
        assert_eq!((judged.status, judged.value), (Status::Unknown, value), "{judged:?}");
        assert!(judged.about.contains("it belongs to mallory"), "{judged:?}");
    }
    assert_eq!(found.status(), Status::Unknown);
    // The config can exclude it.
    let label = denied.unread()[0].label();
    let limits = CheckLimits { excluded: vec![label], ..CheckLimits::default() };
    let view = || Arc::new(crate::sample::view(denied.clone(), 1));
    assert_eq!(report(&[view()], &limits).status(), Status::Ok);
    let all = CheckLimits { excluded: vec!["adapters".to_owned()], ..CheckLimits::default() };
    assert_eq!(report(&[view()], &all).status(), Status::Ok);
    let other =
        CheckLimits { excluded: vec!["adapt".to_owned(), "leases".to_owned()], ..CheckLimits::default() };
    assert_eq!(report(&[view()], &other).status(), Status::Unknown);
    // The search failed: a job system may exist.
    let mut unsearched = snapshot();
    unsearched.detection.adapters =
        Section::default().stale("canceling statement due to statement timeout".into());
    unsearched.detection.tables =
        Section::default().stale("canceling statement due to statement timeout".into());
    let found = of_snapshot(unsearched);
    for name in [
        "jobs_lost",
        "jobs_unserved",
        "tasks_orphan",
        "leases_expired",
        "queue_pending",
        "id_ahead",
        "unread",
    ] {
        assert_eq!(of(&found, name).status, Status::Unknown, "{name}");
    }
    // A job system that was read and has a problem keeps its status.
    let mut both = denied;
    let mut rows = vec![read];
    rows.extend(both.adapters.iter().cloned());
    both.adapters = Arc::new(rows);
    let found = of_snapshot(both);
    assert_eq!(of(&found, "jobs_lost").status, Status::Warning);
    assert_eq!(found.status(), Status::Warning);
}

#[test]
fn a_measure_is_unknown_only_if_the_last_snapshot_is_unread() {
    let view = Arc::new(sample::view());
    let limits = limits(&[("waiting", "0")], &[]);
    let status = |views: &[Arc<View>]| of(&report(views, &limits), "waiting").status;
    assert_eq!(status(&[stale(&view), Arc::clone(&view)]), Status::Warning);
    assert_eq!(status(&[Arc::clone(&view), stale(&view), Arc::clone(&view)]), Status::Warning);
    assert_eq!(status(&[Arc::clone(&view), stale(&view)]), Status::Unknown);
}

/// If only the sessions of workers prove their presence, and not all sessions are visible, it is not known whether a late
/// queue is served.
#[test]
fn whether_a_queue_is_served_is_not_known_without_the_sessions() {
    use crate::model::adapter::{Part, sample as installations};
    use crate::model::snapshot::Section;
    for (sessions, is_due, status) in [
        (None, true, Status::Unknown),
        (Some(0), true, Status::Warning),
        (Some(1), true, Status::Ok),
        (None, false, Status::Ok),
    ] {
        let mut snapshot = crate::sample::Builder::default().snapshot();
        let mut rows = installations::beating(snapshot.taken_at);
        let mut installation = (*rows.installation).clone();
        let mut adapter = (*installation.adapter).clone();
        (adapter.evidence.has_presence, adapter.evidence.lists_workers) = (true, false);
        installation.adapter = Arc::new(adapter);
        (rows.installation, rows.workers, rows.sessions) =
            (Arc::new(installation), Section::default(), sessions);
        if !is_due {
            rows.jobs.remove(&Part::Due);
        }
        snapshot.adapters = Arc::new(vec![rows]);
        let report = report(&[Arc::new(crate::sample::view(snapshot, 1))], &CheckLimits::default());
        assert_eq!(of(&report, "jobs_unserved").status, status, "{sessions:?} {is_due}");
    }
}
