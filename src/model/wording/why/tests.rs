use super::*;
use crate::model::lock::LockTag;
use crate::sample::{self, Builder, advisory, relation};

fn explained(builder: Builder, pid: i32) -> String {
    why(&builder.view(), Party::Backend(pid)).join("\n")
}

/// Session 1 holds the lock, idle in transaction for a minute; session 2 waits for 30 seconds.
fn pair(has: (LockMode, &str), needs: (LockMode, &str), tag: LockTag) -> Builder {
    let mut b = Builder { relations: vec![(9, "accounts")], ..Builder::default() };
    b.session(1, "app@web", State::IdleInTransaction, 60.0, has.1);
    b.lock(1, tag, has.0, None);
    b.session(2, "ops@psql", State::Active, 30.0, needs.1);
    b.lock(2, tag, needs.0, Some(30.0));
    b
}

#[test]
fn a_migration_behind_an_idle_transaction() {
    assert_eq!(
        explained(sample::incident(0.0), 4410),
        "ALTER TABLE … ADD COLUMN takes AccessExclusive on accounts.\n\
         4312 app@web-3 holds RowExclusive on it, the lock of INSERT, UPDATE, DELETE, MERGE: others can read it, lock its rows (FOR UPDATE), \
         change its rows, and vacuum or analyze it, but not build an index on it, add triggers to it, or drop, truncate or alter it.\n\
         It holds that until its transaction ends, and has been idle in it for 3m12s: its client must end it.\n\
         16 more sessions wait behind it, without a conflict with 4312 app@web-3."
    );
    assert_eq!(
        explained(sample::incident(0.0), 4470),
        "SELECT takes AccessShare on accounts.\n\
         No session that holds it blocks the request. 4410 deploy@ci is ahead in the queue and requests AccessExclusive; requests that \
         conflict with that wait behind it."
    );
    assert_eq!(explained(sample::incident(0.0), 4312), "", "it does not wait");
    assert!(explained(sample::incident(0.0), 5001).contains(
        "the prepared transaction 'order-17' holds AccessExclusive on it, the lock of DROP TABLE, TRUNCATE, VACUUM FULL, most of ALTER TABLE: \
         others cannot even read it.\nIt has no process: its locks are held until COMMIT PREPARED or ROLLBACK PREPARED."
    ));
}

#[test]
fn the_statement_of_the_holder_is_named_if_it_takes_the_lock() {
    let index = (LockMode::Share, "CREATE INDEX ON accounts (x)");
    let update = (LockMode::RowExclusive, "UPDATE accounts SET x = 1");
    let text = explained(pair(index, update, relation(9)), 2);
    assert!(text.contains("UPDATE takes RowExclusive on accounts.\n1 app@web holds Share on it, which its last statement, CREATE INDEX, takes:"), "{text}");
    let text = explained(
        pair((LockMode::Share, "SELECT 1"), (LockMode::RowExclusive, "SELECT f()"), relation(9)),
        2,
    );
    assert!(text.starts_with("It requests RowExclusive on accounts, the lock of INSERT, UPDATE, DELETE, MERGE.\n1 app@web holds Share on it, the lock of CREATE INDEX:"), "{text}");
}

#[test]
fn each_pair_of_modes() {
    for need in crate::model::lock_words::MODES {
        for has in crate::model::lock_words::MODES {
            let text = explained(pair((has, ""), (need, ""), relation(9)), 2);
            let is_shown = text.contains(&format!("1 app@web holds {} on it", has.short()));
            assert_eq!(is_shown, need.conflicts_with(LockModes::of(has)), "{need:?} {has:?}: {text}");
            assert!(text.starts_with(&format!("It requests {} on accounts", need.short())), "{text}");
        }
    }
}

#[test]
fn waits_that_are_not_for_a_table() {
    let xid = LockTag::new(LockType::TransactionId).with_transactionid(771);
    let row = relation(9).with_page(0).with_tuple(7).with_locktype(LockType::Tuple);
    let vxid = LockTag::new(LockType::VirtualXid);
    let of = |kind| relation(9).with_locktype(kind);
    let (x, s) = (LockMode::Exclusive, LockMode::Share);
    let idle = "It holds that until its transaction ends, and has been idle in it for 1m00s: its client must end it.";
    for (tag, has, needs, expected) in [
        (xid, (x, ""), (s, "UPDATE accounts SET x = 1"), format!("UPDATE needs a row that 1 app@web has changed or locked: it waits for the end of that transaction.\n{idle}")),
        (xid, (x, ""), (s, "INSERT INTO accounts VALUES (1)"), format!("INSERT waits for the end of the transaction of 1 app@web, which has inserted the same key, or changed a row that a foreign key refers to.\n{idle}")),
        (xid, (x, ""), (s, "FLY"), format!("Its statement waits for the end of the transaction of 1 app@web.\n{idle}")),
        (row, (x, ""), (x, "DELETE FROM accounts"), "DELETE needs the row of accounts (0,7), as other sessions do. 1 app@web is next in the queue for it.".to_owned()),
        (vxid, (x, ""), (s, "CREATE INDEX CONCURRENTLY ON accounts (x)"), format!("CREATE INDEX CONCURRENTLY continues when all transactions that started before it have ended; now it waits for that of 1 app@web.\n{idle}")),
        (vxid, (x, ""), (s, "DROP TABLE a"), format!("DROP TABLE waits for the end of the transaction of 1 app@web.\n{idle}")),
        (advisory(42), (s, ""), (x, ""), "It requests advisory lock 42 exclusively.\n1 app@web holds it shared.\nIt holds that until it calls pg_advisory_unlock or its session ends; with pg_advisory_xact_lock, until its transaction ends.".to_owned()),
        (of(LockType::Extend), (x, ""), (x, ""), "It adds pages to accounts: one session at a time, for a moment: many waiting sessions mean many concurrent inserts.".to_owned()),
        (of(LockType::Page), (x, ""), (x, ""), "It waits for page ? of accounts: an index locks a page for a moment.".to_owned()),
        (of(LockType::Object), (x, ""), (x, ""), format!("It requests Exclusive on object.\n1 app@web holds Exclusive on it.\n{idle}")),
    ] {
        assert_eq!(explained(pair(has, needs, tag), 2), expected);
    }
    let mut b = pair((x, ""), (x, ""), advisory(42));
    b.backends[0].xact_start = None;
    assert!(explained(b, 2).ends_with(
        "It has no open transaction: it holds that until it calls pg_advisory_unlock or its session ends."
    ));
}

#[test]
fn a_wait_for_a_transaction_shows_the_row_and_the_other_waiters() {
    let xid = LockTag::new(LockType::TransactionId).with_transactionid(771);
    let row = relation(9).with_page(0).with_tuple(7).with_locktype(LockType::Tuple);
    let mut b = pair((LockMode::Exclusive, ""), (LockMode::Share, "UPDATE accounts SET x = 1"), xid);
    b.lock(2, row, LockMode::Exclusive, None);
    b.session(3, "app@web", State::Active, 5.0, "INSERT INTO b VALUES (1)");
    b.lock(3, xid, LockMode::Share, Some(5.0));
    let text = explained(b, 2);
    assert!(
        text.starts_with("UPDATE needs the row of accounts (0,7), which 1 app@web has changed or locked"),
        "{text}"
    );
    assert!(text.ends_with("1 more waits for the end of the same transaction."), "{text}");
}

#[test]
fn autovacuum_is_canceled_unless_it_prevents_wraparound() {
    for (query, expected) in [
        (
            "autovacuum: VACUUM public.accounts",
            "the server cancels it automatically when a session has waited for deadlock_timeout.",
        ),
        (
            "autovacuum: VACUUM public.accounts (to prevent wraparound)",
            "it is not canceled for other sessions, because it prevents wraparound.",
        ),
    ] {
        let mut b = pair((LockMode::ShareUpdateExclusive, query), (LockMode::Share, ""), relation(9));
        b.backends[0].backend_type = Some("autovacuum worker".into());
        assert!(explained(b, 2).ends_with(expected), "{query}");
    }
}
