use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::sessions::context;
use super::{orphan, slow};
use crate::model::lease::LeaseId;
use crate::model::lock::LockMode;
use crate::model::plan::executions::{Recovery, place};
use crate::model::plan::*;
use crate::model::redis_lease::{Expiry, KeyReading, LockValue, ServerReading, merge};
use crate::model::row_id::RowId;
use crate::model::snapshot::Snapshot;
use crate::model::task::{TaskId, TaskKey};
use crate::model::view::View;
use crate::model::work_queue::ItemId;
use crate::sample::systems::{leases as some_leases, queue};
use crate::sample::{Builder, advisory, at, jobs, view as view_of};

fn changed(view: &View, change: impl FnOnce(&mut Snapshot)) -> View {
    let mut snapshot = (**view.snapshot.as_ref().unwrap()).clone();
    change(&mut snapshot);
    view_of(snapshot, 2)
}

fn standby(view: &View) -> View {
    changed(view, |snapshot| {
        let mut server = snapshot.server().unwrap().clone();
        server.in_recovery = true;
        snapshot.server = crate::model::snapshot::Section::fresh(vec![server], at(0.0));
    })
}

fn reasons(plan: &ActionPlan) -> Vec<&str> {
    plan.refused.iter().map(|refused| &*refused.reason).collect()
}

fn lease(view: &View, name: &str) -> LeaseId {
    view.leases.rows.iter().find(|row| &*row.name == name).unwrap().id
}

fn unlock(view: &View, name: &str) -> ActionPlan {
    rows(&context(view), Verb::Unlock, &[RowId::Lease(lease(view, name))])
}

#[test]
fn a_lease_is_compared_with_its_whole_row() {
    let view = some_leases(0.0).view();
    let plan = unlock(&view, "1");
    let TargetKind::Lease(target) = &plan.rows[0].target.what else { panic!("{plan:?}") };
    let seen = (&*target.id, target.owner.as_deref(), target.renewed_at, target.term);
    assert_eq!(seen, ("1", Some("node2"), Some(at(-8.0)), Some(20.0)));
    assert!(target.token == Some(12) && !target.is_own);
    assert_eq!(plan.confirm, Confirm::Owner("1".to_owned()), "its owner may be alive");
    let kinds: Vec<_> = plan.rows[0].cautions.iter().map(|caution| caution.kind).collect();
    assert_eq!(
        kinds,
        [CautionKind::Futile, CautionKind::Owner],
        "a client can renew a lease of a published table"
    );
    assert_eq!(
        plan.rows[0].facts,
        ["owner node2", "whether its owner is alive is not known", "expires 20s after its last renewal"]
    );
    for (name, reason) in [
        ("7", "has expired: the next request gets it; nothing to end"),
        ("9", "was released: nothing to end"),
        ("10", "it is not held"),
    ] {
        let plan = unlock(&view, name);
        assert_eq!((plan.rows.len(), reasons(&plan)), (0, vec![reason]), "{name}");
    }
    let several = rows(
        &context(&view),
        Verb::Unlock,
        &["1", "4", "7", "4"].map(|name| RowId::Lease(lease(&view, name))),
    );
    assert_eq!((several.rows.len(), several.refused.len(), several.confirm), (2, 1, Confirm::Count(2)));
    let plan = rows(&context(&view), Verb::Unlock, &["7", "1"].map(|name| RowId::Lease(lease(&view, name))));
    assert_eq!(plan.confirm, Confirm::Owner("1".to_owned()), "of the one that remains");
    let standby = standby(&view);
    assert!(reasons(&unlock(&standby, "1"))[0].starts_with("this is a standby"));
}

#[test]
fn a_lease_of_a_dead_owner_takes_a_key_only() {
    let mut b = Builder::default();
    for (id, pid) in [("a", 77), ("b", 78), ("报表", 78)] {
        let lease = b.lease(id, "node1", 60.0, 1.0);
        (lease.backend_pid, lease.backend_start) = (Some(pid), Some(at(-3600.0)));
    }
    b.session(78, "app@node1", crate::model::backend::State::Idle, 1.0, "SELECT 1");
    let view = b.view();
    assert_eq!(unlock(&view, "a").confirm, Confirm::Yes);
    assert_eq!(unlock(&view, "b").confirm, Confirm::Owner("b".to_owned()));
    assert_eq!(unlock(&view, "报表").confirm, Confirm::Owner("78".to_owned()), "the pid can be typed");
}

#[test]
fn a_lease_that_cannot_be_compared_is_left_alone() {
    let mut b = Builder::default();
    b.lease("1", "node1", 60.0, 1.0).term = None;
    let plan = unlock(&b.view(), "1");
    assert_eq!(reasons(&plan), ["its table has no term, so nothing can be compared"]);
}

#[test]
fn a_renewal_is_followed_and_a_new_owner_is_not() {
    let plan = unlock(&some_leases(0.0).view(), "4");
    let again = |change: fn(&mut Builder)| {
        let mut b = some_leases(0.0);
        change(&mut b);
        plan.refreshed(&context(&b.view()))
    };
    let renewed = again(|b| b.leases[2].renewed_at = Some(at(-1.0)));
    let TargetKind::Lease(target) = &renewed.rows[0].target.what else { panic!() };
    assert_eq!(
        (renewed.rows[0].change, target.renewed_at),
        (None, Some(at(-1.0))),
        "the shown values are compared"
    );
    let change = |change: fn(&mut Builder)| again(change).rows[0].change;
    assert_eq!(change(|b| b.leases[2].owner = Some("node9".into())), Some(TargetChange::OtherRow));
    assert_eq!(change(|b| b.leases[2].token = Some(1)), Some(TargetChange::OtherRow));
    assert_eq!(
        change(|b| b.leases[2].expires_at = Some(at(-1.0))),
        Some(TargetChange::OtherRow),
        "it has expired"
    );
    assert_eq!(change(|b| drop(b.leases.remove(2))), Some(TargetChange::Gone));
}

/// A view with a lock on two of three servers; the third does not answer.
fn redis(value: LockValue) -> View {
    let has = |server: &str, value: LockValue| ServerReading {
        server: server.into(),
        keys: Ok(vec![KeyReading { key: b"job:7".as_slice().into(), value, expiry: Expiry::Never }]),
    };
    let silent = ServerReading { server: "c".into(), keys: Err("no answer".into()) };
    let leases = merge(&[has("a", value.clone()), has("b", value), silent]);
    changed(&Builder::default().view(), |snapshot| {
        Arc::make_mut(&mut snapshot.sources).redis = Arc::new(leases);
    })
}

#[test]
fn a_lock_in_redis_is_compared_with_its_value() {
    let view = redis(LockValue::text(b"host-1:abc"));
    let id = view.leases.rows[0].id;
    let plan = rows(&context(&view), Verb::Unlock, &[RowId::Lease(id)]);
    let TargetKind::RedisLease(lease) = &plan.rows[0].target.what else { panic!("{plan:?}") };
    assert_eq!(
        (&*lease.key, plan.confirm.clone()),
        (b"job:7".as_slice(), Confirm::Owner("job:7".to_owned()))
    );
    assert_eq!(plan.rows[0].does, "delete job:7 on 3 servers if its value is the one shown");
    assert_eq!(plan.rows[0].cautions[0].words, "1 of 3 servers do not answer: it may remain there");
    assert_eq!(plan.rows[0].facts[2..], ["never expires".to_owned(), "on 2 of 3 servers".to_owned()]);
    assert_eq!(still_there(&plan, &context(&view)), [None]);
    let other = redis(LockValue::text(b"host-2:def"));
    assert_eq!(still_there(&plan, &context(&other)), [Some(TargetChange::OtherRow)]);
    let unseen = changed(&view, |snapshot| Arc::make_mut(&mut snapshot.sources).redis = Arc::default());
    assert_eq!(still_there(&plan, &context(&unseen)), [Some(TargetChange::Gone)]);
    let long = redis(LockValue::Text { bytes: b"host".as_slice().into(), whole: false });
    let plan = rows(&context(&long), Verb::Unlock, &[RowId::Lease(id)]);
    assert_eq!(reasons(&plan), ["its value is too long to be read, so it cannot be compared"]);
}

fn item(view: &View, verb: Verb, id: i64) -> ActionPlan {
    let id = ItemId { table: view.queue.rows[0].id.table, id };
    rows(&context(view), verb, &[RowId::Item(id)])
}

#[test]
fn an_item_that_may_be_running_is_not_requeued_or_set_aside() {
    let view = queue(0.0).view();
    let works = "6101 is working on it: terminate that session first, or it runs twice";
    let unknown = "it may be running, and might run twice";
    let (put_back, set_aside) = (Verb::Requeue, Verb::SetAside);
    for (id, verb, reason) in [
        (41_207, put_back, None),
        (41_207, set_aside, None),
        (41_211, put_back, Some(works)),
        (41_211, set_aside, Some(works)),
        (41_213, put_back, Some(unknown)),
        (41_213, set_aside, Some(unknown)),
        (41_100, put_back, None),
        (41_100, set_aside, Some("has been set aside already; R requeues it")),
        (41_214, put_back, Some("it is pending already")),
        (41_214, set_aside, None),
        (1, put_back, Some("was removed, or is done")),
    ] {
        let plan = item(&view, verb, id);
        assert_eq!(plan.refused.first().map(|refused| &*refused.reason), reason, "{id} {verb:?}");
        assert_eq!(plan.rows.len(), usize::from(reason.is_none()), "{id} {verb:?}");
    }
    let plan = item(&view, put_back, 41_100);
    let TargetKind::Item(target) = &plan.rows[0].target.what else { panic!() };
    let seen = (target.id, target.status.as_deref(), target.attempt, target.is_own);
    assert_eq!(seen, (41_100, Some("failed"), Some(3), true));
    assert_eq!(plan.rows[0].does, "requeue_queue_item(41100)");
    assert!(plan.rows[0].facts.iter().any(|fact| fact == "error: smtp: 550 no such user ␛[2J"));
    let mut b = queue(0.0);
    b.items.iter_mut().find(|item| item.id == 41_100).unwrap().attempt = Some(4);
    assert_eq!(still_there(&plan, &context(&b.view())), [Some(TargetChange::OtherRow)]);
    let standby = standby(&view);
    assert!(reasons(&item(&standby, put_back, 41_100))[0].starts_with("this is a standby"));
}

fn task_id(view: &View, id: i64) -> TaskId {
    view.tasks.rows.iter().find(|row| row.task.id == id).unwrap().task
}

fn task(view: &View, verb: Verb, id: i64) -> ActionPlan {
    rows(&context(view), verb, &[RowId::Task(task_id(view, id), None)])
}

#[test]
fn a_task_is_switched_and_made_due() {
    let view = jobs(0.0).view();
    for (id, verb, reason) in [
        (9, Verb::Enable, None),
        (9, Verb::Disable, Some("is disabled already")),
        (6, Verb::Disable, None),
        (6, Verb::Enable, Some("is enabled already")),
        (6, Verb::MakeDue, None),
        (5, Verb::MakeDue, Some("is due already")),
        (3, Verb::MakeDue, Some("is running: its next due time is set when it ends")),
        (3, Verb::Disable, None),
    ] {
        let plan = task(&view, verb, id);
        assert_eq!(plan.refused.first().map(|refused| &*refused.reason), reason, "{id} {verb:?}");
        assert_eq!(plan.rows.len(), usize::from(reason.is_none()), "{id} {verb:?}");
    }
    let plan = task(&view, Verb::Disable, 3);
    assert_eq!(plan.rows[0].does, "UPDATE locktop.scheduled_tasks SET is_enabled = false WHERE id = 3");
    assert_eq!(plan.rows[0].cautions[0].kind, CautionKind::Futile, "its execution continues");
    let TargetKind::Task(target) = &plan.rows[0].target.what else { panic!() };
    assert_eq!((target.id, target.enabled, target.is_own), (3, Some(true), true));
    let mut b = jobs(0.0);
    b.tasks.iter_mut().find(|task| task.id == 3).unwrap().enabled = Some(false);
    assert_eq!(still_there(&plan, &context(&b.view())), [Some(TargetChange::OtherRow)]);
    let toggled = |id: i64| {
        let row = RowId::Task(task_id(&view, id), None);
        (CommandId::Enable.definition().choose)(&context(&view), &[row]).unwrap().0
    };
    assert_eq!((toggled(3), toggled(9)), (Verb::Disable, Verb::Enable));
    let standby = standby(&view);
    assert!(reasons(&task(&standby, Verb::Disable, 3))[0].starts_with("this is a standby"));
    let mut b = jobs(0.0);
    b.tasks.iter_mut().find(|task| task.id == 6).unwrap().enabled = None;
    let plan = task(&b.view(), Verb::Disable, 6);
    assert_eq!(reasons(&plan), ["its table has no column is_enabled: it cannot be enabled or disabled"]);
}

fn these(view: &View, ids: &[i64]) -> Recovery {
    let chosen = ids.iter().map(|id| (task_id(view, *id), None)).collect();
    RecoverySearch::new(chosen).executions(&context(view))
}

/// Those of a table: `o` all orphans, `p` all past their timeout; of those that a filter shows.
fn all(
    context: &PlanContext<'_>,
    (letter, table): (char, u32),
    shown: Option<FxHashSet<(u32, i64)>>,
) -> Recovery {
    let mut search = RecoverySearch::new(vec![(TaskId { table, id: 0 }, None)]);
    search.shown = shown;
    assert!(search.choose(letter));
    search.executions(context)
}

#[test]
fn only_recoverable_executions_are_requested() {
    let view = jobs(0.0).view();
    let asked = |recovery: &Recovery| {
        recovery.request.clone().map(|(schema, request)| (schema, request.select, request.terminate))
    };
    let running = |id: i64| {
        view.tasks
            .rows
            .iter()
            .find(|row| row.task.id == id)
            .unwrap()
            .execution(view.snapshot.as_ref().unwrap())
            .unwrap()
            .id
    };
    let own = "locktop".to_owned();
    let orphan = these(&view, &[7]);
    assert_eq!(asked(&orphan), Some((own.clone(), Selection::Executions(vec![running(7)]), false)));
    let slow = these(&view, &[7, 3, 7]);
    assert_eq!(asked(&slow), Some((own.clone(), Selection::Executions(vec![running(7), running(3)]), true)));
    for (id, reason) in [
        (1, "runs, within its timeout of 10m00s"),
        (5, "it is not running"),
        (6, "it is not running; 6106 holds its key without an execution: K terminates that session"),
    ] {
        let recovery = these(&view, &[id]);
        assert_eq!((asked(&recovery), &*recovery.refused[0].reason), (None, reason), "{id}");
    }
    let table = task_id(&view, 7).table;
    let found = |letter, shown| asked(&all(&context(&view), (letter, table), shown));
    assert_eq!(found('o', None), Some((own.clone(), Selection::Orphans, false)));
    assert_eq!(found('p', None), Some((own.clone(), Selection::Longer(None), true)));
    // A filter hides the others, although the server would find them.
    let shown = |ids: &[i64]| Some(ids.iter().map(|id| (table, running(*id))).collect());
    let only = |id: i64, terminate| Some((own.clone(), Selection::Executions(vec![running(id)]), terminate));
    assert_eq!(found('o', shown(&[1, 3, 7])), only(7, false));
    assert_eq!(found('p', shown(&[1, 3, 7])), only(3, true));
    let hidden = all(&context(&view), ('o', table), shown(&[1, 3]));
    assert_eq!((asked(&hidden), hidden.hidden), (None, 1));
    assert!(hidden.refused[0].reason.starts_with("the filter hides all of them"));
    let refused = all(&context(&standby(&view)), ('o', 0), None).refused;
    assert!(refused[0].reason.starts_with("this is a standby"));
    let none = all(&context(&Builder::default().view()), ('o', table), None);
    assert!(none.request.is_none() && none.refused[0].reason.contains("locktop schema install"));
}

#[test]
fn all_are_those_of_the_tables_of_the_chosen_row() {
    let first = jobs(0.0).view();
    let table = task_id(&first, 7).table;
    assert_eq!(place(&context(&first), table), None, "there are no other tables");
    let view = changed(&first, |snapshot| {
        let set = snapshot.task_sets[0].clone();
        let mut tables = (*set.tables).clone();
        (tables.table, tables.schedules) = (table + 1, "aaa.scheduled_tasks".into());
        let other =
            crate::model::task::TaskSet::new(Arc::new(tables), set.tasks.clone(), set.executions.clone());
        snapshot.task_sets = Arc::new(vec![other, set]);
    });
    for (table, schema) in [(table, "locktop"), (table + 1, "aaa")] {
        let recovery = all(&context(&view), ('o', table), None);
        assert_eq!(recovery.request.map(|(schema, _)| schema).as_deref(), Some(schema));
        assert_eq!(place(&context(&view), table).as_deref(), Some(schema), "it is named");
    }
}

#[test]
fn tables_as_printed_are_not_recovered() {
    let mut b = Builder::default();
    b.task(7, "report", "sql", 10.0, 60.0);
    b.execution(7, "worker-7", "running", 900.0, None).lock_id = Some(7);
    b.session(50, "app@worker", crate::model::backend::State::Idle, 1.0, "SELECT 1");
    b.lock(50, advisory(TaskKey::Raw(7).number()), LockMode::Exclusive, None);
    let view = changed(&b.view(), |snapshot| {
        let set = &snapshot.task_sets[0];
        let mut tables = (*set.tables).clone();
        (tables.own_keys, tables.schedules) = (false, "public.scheduled_tasks".into());
        let set =
            crate::model::task::TaskSet::new(Arc::new(tables), set.tasks.clone(), set.executions.clone());
        snapshot.task_sets = Arc::new(vec![set]);
    });
    let recovery = these(&view, &[7]);
    assert!(recovery.request.is_none());
    assert!(recovery.refused[0].reason.starts_with("its tables are not those of locktop schema install"));
    let table = task_id(&view, 7).table;
    assert!(all(&context(&view), ('p', table), None).request.is_none());
    // Its session can be terminated for the key that it holds, like any other session.
    let ask = Ask::new(Verb::Terminate, vec![RowId::Task(task_id(&view, 7), None)]);
    assert_eq!(sessions(&context(&view), &ask).rows.len(), 1);
}

#[test]
fn a_plan_of_the_server_becomes_one_of_targets() {
    let view = jobs(0.0).view();
    let other =
        RunningExecution { execution_id: 8, task_id: 3, task_name: "clean\nup".to_owned(), ..orphan() };
    let plan = |running: &[RunningExecution], terminate: bool| {
        let select = Selection::Executions(vec![7, 8]);
        let request = Request { select, task: None, terminate };
        recovery(&context(&view), &Arc::new(RecoveryPlan::of("locktop", at(0.0), 30.0, running, &request)))
    };
    let one = plan(std::slice::from_ref(&other), true);
    assert_eq!(
        (one.rows.len(), one.confirm.clone(), &*one.rows[0].target.name),
        (1, Confirm::Yes, "clean up (execution 8)")
    );
    let TargetKind::Execution(target) = &one.rows[0].target.what else { panic!("{one:?}") };
    let subject = crate::model::finding::Subject::Task(task_id(&view, 3));
    assert_eq!(one.rows[0].target.subject, subject);
    assert_eq!(target.row.seen.execution_id, 8);
    let alive = plan(&[slow()], true);
    assert_eq!(alive.confirm, Confirm::Owner("4312".to_owned()), "a living owner");
    assert_eq!(alive.rows[0].does, "pg_terminate_backend(4312), then recover_seen_execution(7)");
    let both = plan(&[slow(), other.clone()], true);
    assert_eq!((both.rows.len(), both.confirm), (2, Confirm::Count(2)));
    let left = plan(&[slow(), other], false);
    assert_eq!((left.rows.len(), left.refused.len(), left.confirm), (1, 1, Confirm::Yes));
    assert!(left.refused[0].reason.starts_with("skipped: pid 4312 holds its key"));
    assert_eq!(plan(&[], true).confirm, Confirm::Nothing);
    // The worker is a session of a superuser: that is known before the server answers.
    let rights = Rights {
        role: "ops".into(),
        version_num: 170_000,
        read_all_stats: true,
        signal_backend: true,
        superusers: vec!["app".into(), "jobs".into()],
        ..Rights::default()
    };
    let request = Request { select: Selection::Executions(vec![7]), task: None, terminate: true };
    let found = RecoveryPlan::of("locktop", at(0.0), 30.0, &[slow()], &request);
    let mut b = jobs(0.0);
    b.session(4312, "jobs@worker-1", crate::model::backend::State::Idle, 1.0, "SELECT 1");
    let view_of_worker = b.view();
    let context = PlanContext { rights: Some(&rights), ..context(&view_of_worker) };
    let refused = recovery(&context, &Arc::new(found));
    assert_eq!((refused.rows.len(), refused.confirm), (0, Confirm::Nothing));
    let reason = &refused.refused[0].reason;
    assert!(reason.ends_with("only a superuser is; or stop its worker, then R"), "{reason}");
    let gives_up = |running: RunningExecution| {
        let kinds = plan(&[running], false).rows.remove(0).cautions;
        kinds.iter().any(|caution| caution.kind == CautionKind::GivesUp)
    };
    let last = RunningExecution { attempt: 3, max_attempts: 3, ..orphan() };
    assert!(
        gives_up(last.clone()) && !gives_up(RunningExecution { attempt: 2, ..last }),
        "the caution precedes the action"
    );
}
