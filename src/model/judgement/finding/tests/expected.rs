use super::*;
use crate::model::lock::Prepared;
use crate::model::thresholds::ExpectedBlocker;

fn entry(change: impl FnOnce(&mut ExpectedBlocker)) -> ExpectedBlocker {
    let mut entry = ExpectedBlocker { reason: Some("nightly migration".into()), ..Default::default() };
    change(&mut entry);
    entry
}

fn blocking(entries: Vec<ExpectedBlocker>) -> Finding {
    let row = Backend {
        application: Some("migrate".into()),
        user: Some("ci".into()),
        database: Some("app".into()),
        state_change: ago(192),
        ..backend(4312, State::IdleInTransaction)
    };
    let waiters = vec![waiter(5000, LockMode::AccessShare, ago(171))];
    let mut stage = Stage::new().backends(vec![row]).root(Party::Backend(4312), 17, 1, ago(171)).queue(
        accounts(),
        &[(4312, LockMode::AccessExclusive)],
        waiters,
    );
    stage.thresholds.expected = entries;
    let mut found = stage.find();
    found.retain(|finding| finding.check == "root_blocker");
    found.remove(0)
}

#[test]
fn a_blocker_that_meets_all_conditions_is_info_with_the_reason() {
    let finding = blocking(vec![entry(|entry| {
        entry.application = Some("migrate".into());
        entry.user = Some("ci".into());
        entry.database = Some("app".into());
        entry.lock = Some("accounts".into());
    })]);
    assert_eq!((finding.severity, finding.help, finding.blocked), (Severity::Info, None, 17));
    let summary =
        "4312 idle in transaction 3m12s, blocks 17: 1 continues now, 16 in turn, expected: nightly migration";
    assert_eq!(&*finding.summary, summary);
    assert!(finding.short.ends_with(", expected: nightly migration"));
}

#[test]
fn one_condition_that_is_not_met_is_enough() {
    let others: [fn(&mut ExpectedBlocker); 4] = [
        |entry| entry.application = Some("web".into()),
        |entry| entry.user = Some("CI".into()),
        |entry| entry.database = Some("other".into()),
        |entry| entry.lock = Some("orders".into()),
    ];
    for other in others {
        let finding = blocking(vec![entry(|entry| {
            entry.application = Some("migrate".into());
            other(entry);
        })]);
        assert_eq!((finding.severity, finding.help), (Severity::Critical, Some("terminate")));
    }
    assert_eq!(blocking(vec![entry(|_| {})]).severity, Severity::Critical, "an entry without a condition");
}

#[test]
fn an_expected_lock_is_the_only_one_that_is_awaited() {
    let mut stage = Stage::new()
        .backends(vec![Backend { state_change: ago(192), ..backend(9, State::IdleInTransaction) }])
        .root(Party::Backend(9), 2, 2, ago(3))
        .queue(accounts(), &[(9, LockMode::Exclusive)], vec![waiter(10, LockMode::Exclusive, ago(3))]);
    stage.thresholds.expected = vec![entry(|entry| entry.lock = Some("accounts".into()))];
    let severity = |stage: &Stage| {
        stage.find().into_iter().find(|finding| finding.check == "root_blocker").unwrap().severity
    };
    assert_eq!(severity(&stage), Severity::Info);
    let stage = stage.queue(
        advisory(72_707_369),
        &[(9, LockMode::Exclusive)],
        vec![waiter(11, LockMode::Exclusive, ago(2))],
    );
    assert_eq!(severity(&stage), Severity::Critical);
}

#[test]
fn a_prepared_transaction_is_met_by_its_owner() {
    let vxid = VirtualTransaction { proc_number: 3, local_xid: 12 };
    let mut stage = Stage::new().root(Party::Prepared(vxid), 20, 1, ago(3));
    stage.snapshot.prepared = Section::fresh(
        vec![Prepared {
            transaction: 771,
            gid: "order-17".into(),
            prepared: ago(600),
            owner: Some("xa".into()),
            database: Some("app".into()),
        }],
        now(),
    );
    let own = LockTag::new(LockType::TransactionId).with_transactionid(771);
    stage.snapshot.locks = Section::fresh(vec![lock(own, None, (3, 12))], now());
    assert_eq!(stage.only().severity, Severity::Critical);
    stage.thresholds.expected = vec![entry(|entry| entry.user = Some("xa".into()))];
    let finding = stage.only();
    assert_eq!(finding.severity, Severity::Info);
    assert!(finding.summary.ends_with(", expected: nightly migration"), "{}", finding.summary);
}

#[test]
fn in_a_convoy_the_waiting_request_is_compared() {
    let mut waiters = vec![waiter(4410, LockMode::AccessExclusive, ago(20))];
    waiters.extend((0..5).map(|n| waiter(5000 + n, LockMode::AccessShare, ago(10))));
    let row = Backend { application: Some("migrate".into()), ..backend(4410, State::Active) };
    let mut stage =
        Stage::new().backends(vec![row]).queue(accounts(), &[(4312, LockMode::AccessShare)], waiters);
    assert_eq!(stage.only().severity, Severity::Warning);
    stage.thresholds.expected = vec![entry(|entry| {
        entry.application = Some("migrate".into());
        entry.lock = Some("accounts".into());
    })];
    let finding = stage.only();
    assert_eq!((finding.severity, finding.help), (Severity::Info, None));
    assert!(finding.summary.ends_with(", expected: nightly migration"), "{}", finding.summary);
}
