use crate::model::Timestamp;
use crate::model::backend::{Backend, BackendId, State};
use crate::model::finding::Subject;
use crate::model::lock::{LockMode, LockTag};
use crate::model::plan::*;
use crate::model::row_id::{LockOwner, RowId};
use crate::model::task::TaskKey;
use crate::model::view::TargetId;
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::sample::{Builder, advisory, at, incident, jobs, relation};

pub(super) fn context(view: &View) -> PlanContext<'_> {
    PlanContext { view, rights: None, own_pids: &[], terminated: &[] }
}

pub(super) fn id(pid: i32) -> BackendId {
    BackendId { pid, backend_start: Some(at(-3600.0)) }
}

pub(super) fn one(view: &View, verb: Verb, chosen: RowId) -> ActionPlan {
    sessions(&context(view), &Ask::new(verb, vec![chosen]))
}

pub(super) fn identity(plan: &ActionPlan) -> SessionTarget {
    assert_eq!((plan.rows.len(), plan.refused.as_slice()), (1, [].as_slice()), "{plan:?}");
    let TargetKind::Session(target) = &plan.rows[0].target.what else { panic!("{plan:?}") };
    target.clone()
}

pub(super) fn reason(plan: &ActionPlan) -> &str {
    assert_eq!((plan.rows.len(), plan.refused.len()), (0, 1), "{plan:?}");
    assert_eq!(plan.confirm, Confirm::Nothing);
    assert!(plan.is_over() && plan.why_over().unwrap().ends_with(&plan.refused[0].reason));
    &plan.refused[0].reason
}

#[expect(clippy::unnecessary_wraps, reason = "every time in a row may be missing")]
pub(super) fn ago(seconds: f64) -> Option<Timestamp> {
    Some(at(-seconds))
}

pub(super) fn session(state: State, change: impl FnOnce(&mut Backend)) -> View {
    let mut b = Builder::default();
    let backend = b.session(7, "app@web", state, 60.0, "SELECT 1");
    change(backend);
    b.view()
}

#[test]
fn the_identity_is_that_of_the_situation() {
    let view = incident(0.0).view();
    let end = identity(&one(&view, Verb::Terminate, RowId::Backend(id(4312))));
    let whole = SessionTarget {
        pid: 4312,
        backend_start: at(-3600.0),
        client: Client {
            application: Some("web-3".into()),
            usesysid: Some(10),
            address: Some("10.0.3.17".into()),
            port: Some(44_312),
        },
        xact_start: ExpectedTime::Same(ago(192.0)),
        query_start: ExpectedTime::Any,
        state_change: ExpectedTime::Any,
        holds: None,
        keeps: false,
        blocks: false,
    };
    assert_eq!(end, whole);
    let cancel = identity(&one(&view, Verb::Cancel, RowId::Backend(id(4410))));
    let seen = (cancel.xact_start, cancel.query_start, cancel.holds, cancel.blocks);
    assert_eq!(seen, (ExpectedTime::Same(ago(171.0)), ExpectedTime::Same(ago(171.0)), None, false));
    let idle = identity(&one(&view, Verb::Terminate, RowId::Backend(id(5100))));
    assert_eq!(idle.xact_start, ExpectedTime::Same(None), "in no transaction, and so it has to stay");
}

#[test]
fn the_holder_of_a_lock_has_to_hold_it_still() {
    let view = incident(0.0).view();
    let (key, accounts) = (advisory(72_707_369), relation(2001));
    let plan =
        one(&view, Verb::Terminate, RowId::Lock(key, LockOwner::Backend(id(4977)), LockMode::Exclusive));
    let holder = identity(&plan);
    // No statement may have been run in its session since.
    let seen = (holder.xact_start, holder.query_start, holder.state_change, holder.holds);
    let since = ExpectedTime::Same(ago(41.0));
    assert_eq!(seen, (ExpectedTime::Same(None), since, since, Some((key, LockMode::Exclusive))));
    let in_transaction = identity(&one(
        &view,
        Verb::Terminate,
        RowId::Lock(accounts, LockOwner::Backend(id(4312)), LockMode::RowExclusive),
    ));
    let seen = (in_transaction.xact_start, in_transaction.holds);
    assert_eq!(seen, (ExpectedTime::Same(ago(192.0)), Some((accounts, LockMode::RowExclusive))));
}

#[test]
fn the_holder_of_a_tasks_key_is_found_by_the_task() {
    let view = jobs(0.0).view();
    let task = |id: i64| view.tasks.rows.iter().find(|row| row.task.id == id).unwrap().task;
    let runs = one(&view, Verb::Terminate, RowId::Task(task(3), None));
    let key = advisory(TaskKey::Own(3).number());
    let target = identity(&runs);
    assert_eq!(
        (target.pid, target.holds, target.xact_start),
        (
            6103,
            Some((key, LockMode::Exclusive)),
            ExpectedTime::Same(view.snapshot.as_ref().unwrap().backend(6103).unwrap().xact_start)
        )
    );
    assert_eq!(runs.confirm, Confirm::Owner("6103".to_owned()), "it is the living owner of a task");
    assert_eq!(runs.rows[0].cautions[0].kind, CautionKind::Task);
    assert!(runs.rows[0].cautions[0].words.starts_with("runs 数据清理任务: "));
    let leaked = one(&view, Verb::Terminate, RowId::Task(task(6), None));
    assert_eq!((identity(&leaked).pid, leaked.confirm.clone()), (6106, Confirm::Yes));
    let orphan = one(&view, Verb::Terminate, RowId::Task(task(7), None));
    assert_eq!(reason(&orphan), "no session holds its key: nothing to terminate");
    // By its session the owner is the same, and its query can still be cancelled.
    let plan = one(&view, Verb::Terminate, RowId::Backend(id(6103)));
    assert_eq!(plan.confirm, Confirm::Owner("6103".to_owned()));
}

#[test]
fn a_session_without_identity_is_not_a_target() {
    let hidden = session(State::Active, |backend| backend.backend_start = None);
    let unseen = BackendId { pid: 7, backend_start: None };
    let plan = one(&hidden, Verb::Terminate, RowId::Backend(unseen));
    assert_eq!(
        reason(&plan),
        "its start is hidden from this role, so it cannot be distinguished from the next session with \
         its pid: GRANT pg_read_all_stats TO \"locktop\""
    );
    let view = session(State::Active, |_| {});
    let other = BackendId { pid: 7, backend_start: Some(at(-10.0)) };
    let plan = one(&view, Verb::Terminate, RowId::Backend(other));
    assert_eq!(reason(&plan), "has ended; another session has its pid now");
    assert_eq!(reason(&one(&view, Verb::Terminate, RowId::Backend(id(8)))), "has ended");
    assert_eq!(reason(&one(&view, Verb::Terminate, RowId::Episode(1))), "is not a session");
    let none = sessions(&context(&view), &Ask::new(Verb::Terminate, Vec::new()));
    assert_eq!(none.why_over().unwrap(), "nothing selected");
}

#[test]
fn own_sessions_are_never_targets() {
    let mut b = Builder::default();
    for pid in [1, 2, 3] {
        b.session(pid, "locktop@locktop", State::Active, 1.0, "SELECT 1");
    }
    let view = b.view();
    let own = PlanContext { own_pids: &[2], ..context(&view) };
    let ask = Ask::new(Verb::Terminate, [1, 2, 3].map(|pid| RowId::Backend(id(pid))).to_vec());
    let plan = sessions(&own, &ask);
    // The session of the poll is known from its own `own_pid`.
    let left: Vec<_> = plan.refused.iter().map(|refused| (&*refused.name, &*refused.reason)).collect();
    let expected = "this is locktop's own session";
    assert_eq!(left, [("1 locktop@locktop", expected), ("2 locktop@locktop", expected)]);
    assert_eq!(plan.rows[0].cautions[0].kind, CautionKind::Locktop, "another locktop only gets a caution");
    assert_eq!(plan.confirm, Confirm::Yes);
}

#[test]
fn a_prepared_transaction_is_ended_by_a_statement() {
    let view = incident(0.0).view();
    let root = view.graph.roots.iter().find(|root| matches!(root.party, Party::Prepared(_))).unwrap();
    let Party::Prepared(xact) = root.party else { unreachable!() };
    let plan = one(&view, Verb::Terminate, RowId::Prepared(xact));
    let words =
        "has no process to terminate. Run in app as billing or a superuser: ROLLBACK PREPARED 'order-17'";
    assert_eq!(reason(&plan), words);
    assert_eq!(plan.refused[0].subject, Subject::Party(root.party));
}

#[test]
fn a_parallel_worker_is_replaced_by_its_leader() {
    let mut b = Builder::default();
    b.session(7, "app@web", State::Active, 60.0, "SELECT count(*) FROM t");
    let worker = b.session(8, "app@web", State::Active, 60.0, "SELECT count(*) FROM t");
    (worker.leader_pid, worker.backend_type) = (Some(7), Some("parallel worker".into()));
    let view = b.view();
    let both = Ask::new(Verb::Terminate, vec![RowId::Backend(id(8)), RowId::Backend(id(7))]);
    let plan = sessions(&context(&view), &both);
    assert_eq!(identity(&plan).pid, 7, "once");
    assert_eq!(plan.rows[0].cautions[0].words, "8 is a parallel worker; its leader is 7");
    let later = plan.refreshed(&context(&view));
    assert_eq!(later.rows[0].cautions, plan.rows[0].cautions, "the refreshed plan has the caution, too");
}

#[test]
fn a_missing_right_is_named_before_anything_is_asked() {
    let view = session(State::Active, |_| {});
    let rights =
        Rights { role: "ops".into(), version_num: 170_000, read_all_stats: true, ..Rights::default() };
    let with = |rights: &Rights| {
        let context = PlanContext { rights: Some(rights), ..context(&view) };
        let plan = sessions(&context, &Ask::new(Verb::Terminate, vec![RowId::Backend(id(7))]));
        plan.refused.first().map(|refused| refused.reason.clone())
    };
    let lacks =
        "role \"ops\" is not permitted to terminate sessions of \"app\": GRANT pg_signal_backend TO \"ops\"";
    assert_eq!(with(&rights).as_deref(), Some(lacks));
    assert_eq!(with(&Rights { signal_backend: true, ..rights.clone() }), None);
    let superuser = Rights { signal_backend: true, superusers: vec!["app".into()], ..rights };
    assert!(with(&superuser).unwrap().ends_with("only a superuser is"));
}

#[test]
fn the_facts_show_the_state_the_locks_the_client_and_the_query() {
    let view = incident(0.0).view();
    let plan = one(&view, Verb::Terminate, RowId::Backend(id(4312)));
    let row = &plan.rows[0];
    assert_eq!((&*row.target.name, &*row.does), ("4312 app@web-3", "pg_terminate_backend(4312)"));
    assert_eq!(
        row.facts,
        [
            "idle in transaction for 3m12s",
            "holds 1 lock: RowExclusive on accounts (17 wait)",
            "in app, from 10.0.3.17, connected 1h00m ago",
            "last query: SELECT * FROM accounts WHERE id = 7 FOR UPDATE",
        ]
    );
    let waits = one(&view, Verb::Cancel, RowId::Backend(id(4410)));
    assert_eq!(waits.rows[0].does, "pg_cancel_backend(4410)");
    assert_eq!(waits.rows[0].facts[0], "waits 2m51s for AccessExclusive on accounts");
    assert_eq!(waits.rows[0].facts[1], "holds no lock");
}

fn without_the_first(b: &mut Builder) {
    b.backends.remove(0);
}

#[test]
fn a_refreshed_plan_shows_how_its_target_changed() {
    let plan = one(&incident(0.0).view(), Verb::Terminate, RowId::Backend(id(4312)));
    let later = |change: fn(&mut Builder)| {
        let mut b = incident(5.0);
        change(&mut b);
        b.view()
    };
    let same = plan.refreshed(&context(&later(|_| {})));
    assert_eq!(same.rows[0].change, None);
    assert_eq!(same.rows[0].facts[0], "idle in transaction for 3m17s");
    assert_eq!((same.why_over(), same.rows[0].target.clone()), (None, plan.rows[0].target.clone()));
    let changed = |change: fn(&mut Builder)| still_there(&plan, &context(&later(change)))[0];
    assert_eq!(changed(without_the_first), Some(TargetChange::Gone));
    assert_eq!(changed(|b| b.backends[0].backend_start = Some(at(-1.0))), Some(TargetChange::Gone));
    assert_eq!(changed(|b| b.backends[0].xact_start = Some(at(-1.0))), Some(TargetChange::OtherTransaction));
    assert_eq!(changed(|b| b.backends[0].backend_start = None), Some(TargetChange::Hidden));
    assert_eq!(changed(|b| b.backends[0].query_start = Some(at(-1.0))), None);
    let ended = plan.refreshed(&context(&later(without_the_first)));
    assert_eq!(ended.why_over().unwrap(), "4312 app@web-3: has ended");
    assert_eq!(ended.effect, None);
    assert_eq!(
        ended.refreshed(&context(&later(|_| {}))).rows[0].change,
        Some(TargetChange::Gone),
        "once is enough"
    );
    let command = ended.command(TargetId(0), 3, std::time::Duration::from_secs(5));
    assert_eq!((command.number, command.targets.len(), command.verb), (3, 1, Verb::Terminate));
}

#[test]
fn a_query_that_ended_is_not_cancelled() {
    let plan = one(&incident(0.0).view(), Verb::Cancel, RowId::Backend(id(4410)));
    let after = |change: fn(&mut Backend)| {
        let mut b = incident(0.0);
        change(b.backends.iter_mut().find(|backend| backend.pid == 4410).unwrap());
        still_there(&plan, &context(&b.view()))[0]
    };
    assert_eq!(after(|_| {}), None);
    assert_eq!(after(|backend| backend.query_start = Some(at(-1.0))), Some(TargetChange::OtherQuery));
    assert_eq!(
        after(|backend| backend.state = Some(State::IdleInTransaction)),
        Some(TargetChange::NotActive)
    );
}

#[test]
fn a_key_that_was_given_up_is_a_change() {
    let key = advisory(72_707_369);
    let chosen = RowId::Lock(key, LockOwner::Backend(id(4977)), LockMode::Exclusive);
    let plan = one(&incident(0.0).view(), Verb::Terminate, chosen);
    let mut b = incident(0.0);
    b.locks.retain(|lock| (lock.pid, lock.tag) != (Some(4977), key));
    assert_eq!(still_there(&plan, &context(&b.view())), [Some(TargetChange::HoldsNotAnyMore)]);
}

#[test]
fn a_session_of_which_nothing_is_shown_is_left_alone() {
    let off = session(State::Disabled, |backend| {
        (backend.xact_start, backend.query_start, backend.state_change) = (None, None, None);
    });
    let plan = one(&off, Verb::Terminate, RowId::Backend(id(7)));
    assert!(reason(&plan).starts_with("its activity is not known (track_activities is off for it)"));
}

#[test]
fn sessions_that_cannot_be_read_are_no_change_of_the_target() {
    let plan = one(&incident(0.0).view(), Verb::Terminate, RowId::Backend(id(4312)));
    let mut view = incident(0.0).view();
    let mut snapshot = (**view.snapshot.as_ref().unwrap()).clone();
    snapshot.backends = crate::model::snapshot::Section::fresh(Vec::new(), at(0.0)).stale("time-out".into());
    view.snapshot = Some(std::sync::Arc::new(snapshot));
    assert_eq!(still_there(&plan, &context(&view)), [None]);
}

#[test]
fn only_the_word_that_is_asked_for_confirms() {
    let owner = Confirm::Owner("4312".to_owned());
    for (confirm, typed, accepted) in [
        (Confirm::Yes, "y", true),
        (Confirm::Yes, "Y", false),
        (Confirm::Yes, "", false),
        (Confirm::Yes, "yy", false),
        (Confirm::Count(3), "3", true),
        (Confirm::Count(3), "y", false),
        (Confirm::Count(3), "33", false),
        (owner.clone(), "4312", true),
        (owner.clone(), "y", false),
        (owner, "431", false),
        (Confirm::Nothing, "", false),
        (Confirm::Nothing, "y", false),
    ] {
        assert_eq!(confirm.accepts(typed), accepted, "{confirm:?} {typed}");
    }
}

pub(super) fn table(oid: u32) -> LockTag {
    relation(oid)
}
