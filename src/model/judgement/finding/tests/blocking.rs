use super::*;
use crate::model::disclosure::Channel;
use crate::model::lock::Prepared;
use crate::sample::{Builder, relation};

#[test]
fn an_idle_transaction_as_root() {
    let idle = Backend { state_change: ago(192), ..backend(4312, State::IdleInTransaction) };
    let finding =
        Stage::new().backends(vec![idle.clone()]).root(Party::Backend(4312), 17, 1, ago(171)).only();
    assert_eq!((finding.check, finding.severity), ("root_blocker", Severity::Critical));
    assert_eq!(&*finding.summary, "4312 idle in transaction 3m12s, blocks 17: 1 continues now, 16 in turn");
    assert_eq!(&*finding.short, "4312 idle in xact 3m12s, blocks 17: 1 now, 16 in turn");
    assert_eq!(finding.subject, Subject::Backend(idle.id()));
    assert_eq!((finding.blocked, finding.since, finding.help), (17, ago(171), Some("terminate")));
}

#[test]
fn an_idle_session_with_a_named_lock_as_root() {
    let stage = Stage::new()
        .backends(vec![backend(4977, State::Idle)])
        .root(Party::Backend(4977), 2, 1, ago(3))
        .queue(
            advisory(72_707_369),
            &[(4977, LockMode::Exclusive)],
            vec![waiter(5000, LockMode::Exclusive, ago(3)), waiter(5001, LockMode::Exclusive, ago(2))],
        );
    let finding = stage.only();
    assert_eq!(finding.severity, Severity::Critical);
    assert_eq!(
        &*finding.summary,
        "4977 idle, holds \"Prisma Migrate\", blocks 2: 1 continues now, 1 in turn"
    );
    assert_eq!(&*finding.short, "4977 idle, blocks 2: 1 now, 1 in turn, holds \"Prisma Migrate\"");
    assert_eq!(finding.help, Some("terminate"));
}

#[test]
fn the_summary_of_a_root_shows_its_kind_of_process() {
    let of = |kind: &str, query: &str, state| Backend {
        backend_type: Some(kind.into()),
        query: Some(query.into()),
        xact_start: ago(60),
        query_start: ago(41),
        ..backend(9, state)
    };
    let vacuum = "autovacuum: VACUUM public.accounts (to prevent wraparound)";
    for (row, words, help) in [
        (of("autovacuum worker", vacuum, State::Active), "autovacuum to prevent wraparound 1m00s", None),
        (of("autovacuum worker", "autovacuum: ANALYZE a", State::Active), "autovacuum 1m00s", Some("cancel")),
        (of("startup", "", State::Other), "startup process (the cause is on the primary)", None),
        (of("walsender", "", State::Active), "walsender active 41s (Client ClientRead)", Some("terminate")),
        (
            of("client backend", "COPY t FROM STDIN", State::Active),
            "active 41s (Client ClientRead)",
            Some("terminate"),
        ),
        (
            of("client backend", "", State::IdleInTransactionAborted),
            "idle in transaction (aborted)",
            Some("terminate"),
        ),
    ] {
        let finding = Stage::new().backends(vec![row]).root(Party::Backend(9), 1, 1, None).only();
        assert_eq!(*finding.summary, format!("9 {words}, blocks 1: 1 continues now"));
        assert_eq!(finding.help, help, "{words}");
    }
}

#[test]
fn a_root_that_blocks_10_is_critical_and_a_30_s_wait_is_a_warning() {
    for (blocked, wait, severity) in [
        (10, 1, Severity::Critical),
        (9, 1, Severity::Info),
        (9, 29, Severity::Info),
        (9, 30, Severity::Warning),
    ] {
        let finding = Stage::new().root(Party::Backend(9), blocked, 1, ago(wait)).only();
        assert_eq!(finding.severity, severity, "{blocked} {wait}");
        assert_eq!((finding.subject, finding.help), (Subject::Party(Party::Backend(9)), None));
    }
}

#[test]
fn a_prepared_transaction_is_found_by_its_own_lock() {
    let vxid = VirtualTransaction { proc_number: 3, local_xid: 12 };
    let own = LockTag::new(LockType::TransactionId).with_transactionid(771);
    let other = LockTag::new(LockType::TransactionId).with_transactionid(772);
    let mut stage = Stage::new().locks(vec![lock(other, None, (3, 13)), lock(own, None, (3, 12))]).root(
        Party::Prepared(vxid),
        4,
        4,
        ago(9),
    );
    let row = |transaction, gid: &str| Prepared {
        transaction,
        gid: gid.into(),
        prepared: ago(10_920),
        owner: Some("app".into()),
        database: Some("shop".into()),
    };
    stage.snapshot.prepared = Section::fresh(vec![row(772, "other"), row(771, "two\nphase")], now());
    let finding = stage.only();
    assert_eq!((finding.check, finding.severity), ("prepared_transaction", Severity::Critical));
    assert_eq!(
        &*finding.summary,
        "prepared transaction 'two phase' of app in shop 3h02m, blocks 4: 4 continue now"
    );
    assert_eq!(&*finding.short, "prepared 'two phase' 3h02m, blocks 4: 4 now");
    assert_eq!(finding.subject, Subject::Party(Party::Prepared(vxid)));

    stage.snapshot.prepared = Section::fresh(vec![row(771, &"long ".repeat(40))], now());
    assert_eq!(&*stage.only().short, "prepared 'long long long long lo… 3h02m, blocks 4: 4 now");

    stage.snapshot.prepared = Section::default();
    let finding = stage.only();
    assert_eq!(&*finding.summary, "prepared transaction 3/12, blocks 4: 4 continue now");
    assert_eq!(finding.severity, Severity::Warning);
}

#[test]
fn a_convoy_has_the_sessions_that_only_a_waiter_blocks() {
    let mut b = Builder::default();
    b.session(4312, "app@report", State::Active, 60.0, "SELECT sum(balance) FROM accounts");
    b.session(4410, "deploy@ci", State::Active, 20.0, "ALTER TABLE accounts ADD note text");
    b.lock(4312, relation(2001), LockMode::AccessShare, None);
    b.lock(4410, relation(2001), LockMode::AccessExclusive, Some(20.0));
    for pid in 5000..5005 {
        b.session(pid, "app@web", State::Active, 10.0, "SELECT 1 FROM accounts");
        b.lock(pid, relation(2001), LockMode::AccessShare, Some(10.0));
    }
    let view = b.view();
    let finding = view.findings.iter().find(|finding| finding.check == "convoy").unwrap();
    assert_eq!((finding.blocked, finding.help), (5, Some("cancel")));
    let about = finding.about_in(Channel::Screen);
    assert!(
        about.starts_with("root 4312: ") && about.ends_with("ALTER TABLE accounts ADD note text"),
        "{about}"
    );
    let numbers = "blocks 5: 5 continue now";
    assert_eq!(
        *finding.summary,
        format!("4410 ALTER TABLE waits 20s for 4312 for AccessExclusive on relation 2001, {numbers}")
    );
    assert_eq!(&*finding.short, "4410 ALTER TABLE waits 20s for 4312, blocks 5: 5 now · relation 2001");
}

/// The findings about a report that reads, an ALTER that waits for it, readers that wait for the ALTER, and others that
/// wait for another lock of the report.
fn report(state: State, readers: i32, began: f64, others: i32) -> Vec<(&'static str, Severity)> {
    let mut b = Builder::default();
    b.session(4312, "app@report", state, began + 60.0, "SELECT sum(balance) FROM accounts");
    b.session(4410, "deploy@ci", State::Active, began, "ALTER TABLE accounts ADD note text");
    b.lock(4312, relation(1), LockMode::AccessShare, None);
    b.lock(4410, relation(1), LockMode::AccessExclusive, Some(began));
    b.lock(4312, relation(2), LockMode::Exclusive, None);
    for (pids, table, mode) in
        [(5000..5000 + readers, 1, LockMode::AccessShare), (7000..7000 + others, 2, LockMode::Exclusive)]
    {
        for pid in pids {
            b.session(pid, "app@web", State::Active, began - 1.0, "SELECT 1 FROM accounts");
            b.lock(pid, relation(table), mode, Some(began - 1.0));
        }
    }
    let view = b.view();
    let are_of_it = |one: &&Finding| ["convoy", "root_blocker"].contains(&one.check);
    view.findings.iter().filter(are_of_it).map(|one| (one.check, one.severity)).collect()
}

#[test]
fn a_convoy_and_the_work_that_it_waits_for_are_one_finding() {
    let (convoy, root) = ("convoy", "root_blocker");
    let (warning, critical) = (Severity::Warning, Severity::Critical);
    assert_eq!(report(State::Active, 8, 10.0, 0), [(convoy, warning)]);
    assert_eq!(report(State::Active, 8, 40.0, 0), [(convoy, warning)], "whatever the time");
    assert_eq!(report(State::Active, 300, 40.0, 0), [(convoy, critical)]);
    // A root that is idle in transaction is the one to terminate, independent of the convoy.
    assert_eq!(report(State::IdleInTransaction, 8, 10.0, 0), [(root, critical)]);
    // Most wait for another lock of the root.
    assert_eq!(report(State::Active, 8, 40.0, 20), [(root, critical)]);
}

#[test]
fn sessions_that_wait_for_the_holder_are_in_no_convoy() {
    let mut waiters = vec![waiter(4410, LockMode::AccessExclusive, None)];
    waiters.extend((0..50).map(|n| waiter(5000 + n, LockMode::Exclusive, None)));
    let stage = Stage::new().queue(accounts(), &[(4312, LockMode::Exclusive)], waiters);
    assert_eq!(stage.find(), []);
}

#[test]
fn the_longest_wait_for_each_lock() {
    let stage = Stage::new().queue(
        accounts(),
        &[(4312, LockMode::Exclusive)],
        vec![
            waiter(1, LockMode::Exclusive, None),
            waiter(2, LockMode::Exclusive, ago(31)),
            waiter(3, LockMode::RowShare, ago(171)),
            waiter(4, LockMode::RowShare, ago(29)),
        ],
    );
    let finding = stage.only();
    assert_eq!((finding.check, finding.severity, finding.since), ("long_wait", Severity::Info, ago(171)));
    assert_eq!(&*finding.summary, "3 waits 2m51s for RowShare on accounts, and 1 more");
}

/// Too few wait for a convoy; the finding still shows that a cancel frees them, with the shortcut.
#[test]
fn a_long_wait_that_blocks_others_shows_how_many_a_cancel_frees() {
    let mut b = Builder::default();
    b.session(4312, "app@web", State::IdleInTransaction, 60.0, "UPDATE accounts SET balance = 0");
    b.session(4410, "deploy@ci", State::Active, 50.0, "ALTER TABLE accounts ADD note text");
    b.lock(4312, relation(2001), LockMode::RowExclusive, None);
    b.lock(4410, relation(2001), LockMode::AccessExclusive, Some(50.0));
    for pid in 5000..5003 {
        b.session(pid, "app@web", State::Active, 40.0, "SELECT 1 FROM accounts");
        b.lock(pid, relation(2001), LockMode::AccessShare, Some(40.0));
    }
    let view = b.view();
    let reported = view.findings.iter().find(|finding| finding.check == "long_wait").unwrap();
    assert!(reported.summary.ends_with(", blocks 3: 3 continue now"), "{}", reported.summary);
    assert_eq!(reported.help, Some("cancel"));
}

#[test]
fn only_the_wait_for_the_root_of_a_chain_is_reported() {
    let mut stage = Stage::new()
        .queue(accounts(), &[(1, LockMode::Exclusive)], vec![waiter(2, LockMode::Exclusive, ago(60))])
        .queue(advisory(42), &[(2, LockMode::Exclusive)], vec![waiter(3, LockMode::Exclusive, ago(50))]);
    let node = |pid, waits| TreeNode {
        party: Party::Backend(pid),
        parent: None,
        children: Vec::new(),
        waits,
        edge: None,
        more_blockers: 0,
        below: 0,
        cycle: None,
    };
    stage.graph.tree.nodes = vec![node(1, None), node(2, Some((0, 0))), node(3, Some((1, 0)))];
    assert_eq!(&*stage.only().summary, "2 waits 1m00s for Exclusive on accounts");
    // While 2 has not waited for long it is not reported, and so 3 is.
    stage.graph.queues[0].waiters[0].wait_start = ago(5);
    assert_eq!(&*stage.only().summary, "3 waits 50s for Exclusive on advisory lock 42");
    stage.graph.queues[0].waiters[0].wait_start = ago(60);
    // A holder that does not wait has the lock as well: 3 has to wait for this one, too.
    let other = Holder { party: Party::Backend(4), modes: LockModes::of(LockMode::Share) };
    stage.graph.queues[1].holders.push(other);
    assert_eq!(stage.find().len(), 2);
}

#[test]
fn cycles_name_their_parties() {
    for (parties, text) in [
        (vec![4410, 4466], "deadlock: 4410 and 4466 wait for each other"),
        (vec![1, 2, 3], "deadlock: 1, 2 and 3 wait for each other"),
        (vec![1, 2, 3, 4], "deadlock: 1, 2 and 2 more wait for each other"),
    ] {
        let mut stage = Stage::new();
        stage.graph.cycles = vec![parties.iter().map(|pid| Party::Backend(*pid)).collect()];
        let finding = stage.only();
        assert_eq!((&*finding.summary, finding.severity), (text, Severity::Critical));
        assert_eq!(finding.blocked as usize, parties.len());
    }
}

#[test]
fn a_wait_for_a_transaction_names_the_row() {
    let row = accounts().with_locktype(LockType::Tuple).with_page(0).with_tuple(7);
    let xid = LockTag::new(LockType::TransactionId).with_transactionid(771);
    let stage = Stage::new().locks(vec![lock(row, Some(2), (3, 12))]).queue(
        xid,
        &[],
        vec![waiter(2, LockMode::Share, ago(60)), waiter(3, LockMode::Share, ago(50))],
    );
    let finding = stage.only();
    assert_eq!(finding.severity, Severity::Warning, "no holder is reported");
    assert_eq!(*finding.summary, *"2 waits 1m00s for row of accounts (0,7), and 1 more");
}

#[test]
fn the_summary_of_a_wait_names_the_lock() {
    let vxid = VirtualTransaction { proc_number: 3, local_xid: 12 };
    for (tag, words) in [
        (accounts().with_relation(99), "Share on relation 99"),
        (accounts().with_locktype(LockType::Tuple), "row of accounts"),
        (LockTag::new(LockType::TransactionId).with_transactionid(771), "transaction 771"),
        (LockTag::new(LockType::VirtualXid).with_virtualxid(vxid), "virtual transaction 3/12"),
        (LockTag::new(LockType::Object), "Share on object"),
        (advisory(42), "Share on advisory lock 42"),
        (advisory(1), "Share on advisory lock 1"),
        (advisory(4004), "Share on advisory lock 4004 (Marten migrations?)"),
        (advisory(42).with_objsubid(3), "Share on advisory lock 0/42/3"),
    ] {
        let stage = Stage::new().queue(tag, &[], vec![waiter(2, LockMode::Share, ago(60))]);
        assert_eq!(*stage.only().summary, format!("2 waits 1m00s for {words}"));
    }
}

/// A pid alone is not sufficient to contact the owner of the session.
#[test]
fn a_finding_shows_its_session_its_object_and_its_query() {
    let findings = crate::sample::incident(0.0).view().findings;
    let about = |check: &str, pid: &str| {
        let mut all = findings.iter().filter(|one| one.check == check);
        all.find(|one| one.summary.contains(pid)).unwrap().about_in(Channel::Screen).into_owned()
    };
    assert_eq!(
        about("root_blocker", "4312"),
        "app@web-3 · accounts · SELECT * FROM accounts WHERE id = 7 FOR UPDATE"
    );
    assert_eq!(about("root_blocker", "4977"), "deploy@prisma · SELECT pg_advisory_lock(72707369)");
    // The wait for that root is not a separate finding.
    assert!(!findings.iter().any(|one| one.summary.starts_with("4410 ")), "{findings:?}");
    assert_eq!(about("prepared_transaction", "order-17"), "in app: ROLLBACK PREPARED 'order-17'");
}

/// An informational finding is omitted if the session has a more severe one.
#[test]
fn a_session_is_reported_once() {
    let findings = crate::sample::jobs(0.0).view().findings;
    let pids = |bad: bool| -> Vec<i32> {
        let wanted = findings.iter().filter(|one| (one.severity > Severity::Info) == bad);
        wanted.filter_map(Finding::pid).collect()
    };
    let bad = pids(true);
    assert!(bad.contains(&4312), "{bad:?}");
    assert!(pids(false).iter().all(|pid| !bad.contains(pid)), "{findings:?}");
}
