//! The states that the first screens were designed for, each whole at the sizes of its drawing: one root, several kinds of
//! roots, a convoy, a thousand waiters, a quiet server, and their questions.

use super::kept::check_whole;
use super::{SIZES, Stage};
use crate::model::backend::State;
use crate::model::lock::{LockMode, LockTag, LockType};
use crate::sample::{Builder, advisory, at, incident, relation};

const ACCOUNTS: u32 = 2001;
const ORDERS: u32 = 2003;
const RUN: u32 = 2004;

fn builder() -> Builder {
    let relations = vec![(ACCOUNTS, "accounts"), (ORDERS, "orders"), (RUN, "run")];
    Builder { relations, ..Builder::default() }
}

fn row(table: u32, item: u16) -> LockTag {
    relation(table).with_locktype(LockType::Tuple).with_page(0).with_tuple(item)
}

fn transaction(xid: u32) -> LockTag {
    LockTag::new(LockType::TransactionId).with_transactionid(xid)
}

fn queue(
    b: &mut Builder,
    pids: std::ops::Range<i32>,
    web: i32,
    query: &str,
    tag: LockTag,
    mode: LockMode,
    since: f64,
) {
    for (place, pid) in (0..).zip(pids) {
        let since = since - 0.02 * f64::from(place);
        b.session(pid, &format!("app_rw@web-{}", web + place % 9), State::Active, since, query);
        b.lock(pid, tag, mode, Some(since));
    }
}

fn convoy(b: &mut Builder, report: f64, migration: f64, readers: i32, writers: i32) {
    let orders = relation(ORDERS);
    b.session(2053, "report@metabase", State::Active, report, "SELECT count(*) FROM orders");
    b.lock(2053, orders, LockMode::AccessShare, None);
    let alter = "ALTER TABLE orders ADD COLUMN note text";
    b.session(2091, "migrator@flyway", State::Active, migration, alter).client = Some("10.0.3.20".into());
    b.lock(2091, orders, LockMode::AccessExclusive, Some(migration));
    let select = "SELECT * FROM orders WHERE id = $1";
    queue(b, 2100..2100 + readers, 1, select, orders, LockMode::AccessShare, migration - 0.5);
    let insert = "INSERT INTO orders(customer, total) VALUES ($1, $2)";
    queue(b, 2200..2200 + writers, 3, insert, orders, LockMode::RowExclusive, migration - 0.5);
}

fn mixed() -> Builder {
    let mut b = builder();
    convoy(&mut b, 34.0, 34.0, 30, 15);
    let update = "UPDATE accounts SET balance = balance - 100 WHERE id = 1";
    b.session(2993, "alice@django admin", State::IdleInTransaction, 15.0, update).backend_xid = Some(881);
    b.lock(2993, transaction(881), LockMode::Exclusive, None);
    b.session(3019, "app_rw@web-0", State::Active, 13.9, update);
    b.lock(3019, row(ACCOUNTS, 1), LockMode::Exclusive, None);
    b.lock(3019, transaction(881), LockMode::Share, Some(13.9));
    queue(&mut b, 3020..3031, 2, update, row(ACCOUNTS, 1), LockMode::Exclusive, 13.5);
    let lock = "SELECT pg_advisory_lock(hashtext('nightly-export'))";
    let key = advisory(4711);
    b.session(3042, "export@nightly-export", State::Idle, 15.0, lock);
    b.lock(3042, key, LockMode::Exclusive, None);
    for pid in 3043..3046 {
        b.session(pid, &format!("export@export-{}", pid - 3043), State::Active, 14.5, lock);
        b.lock(pid, key, LockMode::Exclusive, Some(14.5));
    }
    b.prepare(900, "xa-4711-payment", relation(ACCOUNTS), LockMode::RowExclusive);
    b.prepared[0].prepared = Some(at(-14.0));
    queue(&mut b, 3060..3062, 4, update, row(ACCOUNTS, 2), LockMode::Exclusive, 13.8);
    let first = b.locks.iter_mut().find(|lock| lock.pid == Some(3060)).unwrap();
    (first.granted, first.wait_start) = (true, None);
    b.lock(3060, transaction(900), LockMode::Share, Some(13.8));
    b.task(7, "报表生成任务", "report_gen", 1800.0, 2462.0);
    b.task(4, "billing close", "sql", 300.0, 720.0);
    b.task(6, "send digests", "sql", 300.0, -12.0);
    b.execution(7, "worker-7", "running", 2462.0, Some(6107)).heartbeat_at = Some(at(-2462.0));
    b.lease("7", "node1", 20.0, 61.0).token = Some(12);
    b.lease("8", "node2", 20.0, 12.0).token = Some(13);
    b
}

fn thousand() -> Builder {
    let mut b = Builder { relations: vec![(ACCOUNTS, "storm_t")], ..Builder::default() };
    let insert = "insert into storm_t select g, 0 from generate_series(1, 1000) g";
    b.session(9507, "postgres@storm-holder", State::Idle, 41.0, insert);
    b.lock(9507, advisory(1), LockMode::Exclusive, None);
    for place in 0..1000 {
        b.session(
            9555 + place,
            &format!("postgres@storm-w{}", place + 1),
            State::Active,
            41.0,
            "select pg_advisory_lock(1)",
        );
        b.lock(9555 + place, advisory(1), LockMode::Exclusive, Some(41.0 - 0.001 * f64::from(place)));
    }
    let update = "update storm_t set v = v + 1 where id = $1";
    b.session(9510, "postgres@storm-root", State::IdleInTransaction, 41.0, update).backend_xid = Some(700);
    b.lock(9510, transaction(700), LockMode::Exclusive, None);
    for place in 0..10_u16 {
        let (pid, xid) = (9512 + i32::from(place), 700 + u32::from(place));
        b.session(pid, &format!("postgres@storm-c{place}"), State::Active, 41.0, update).backend_xid =
            Some(xid + 1);
        b.lock(pid, transaction(xid + 1), LockMode::Exclusive, None);
        b.lock(pid, row(ACCOUNTS, place + 1), LockMode::Exclusive, None);
        b.lock(pid, transaction(xid), LockMode::Share, Some(41.0));
    }
    b
}

fn quiet() -> Builder {
    let mut b = builder();
    let copy = "COPY public.orders TO stdout";
    b.session(7731, "backup@pg_dump", State::Active, 7800.0, copy).backend_xmin = Some(1000);
    b.lock(7731, relation(ORDERS), LockMode::AccessShare, None);
    b.session(8120, "app@web-1", State::IdleInTransaction, 12.0, "SELECT 1");
    let tries = "SELECT pg_try_advisory_lock(hashtext('nightly-export'))";
    for (pid, since) in [(8140, 5.0), (8141, 8.0), (8142, 300.0)] {
        b.session(pid, "export@cron", State::Idle, since, tries);
    }
    b.session(8133, "report@metabase", State::Active, 0.8, "SELECT count(*) FROM orders");
    b.task(6, "send digests", "sql", 300.0, -12.0);
    b.lease("7", "node1", 20.0, 12.0);
    b
}

fn shared_row() -> Builder {
    let mut b = builder();
    for pid in 27524..27528 {
        b.session(
            pid,
            &format!("app@worker-{}", pid - 27523),
            State::IdleInTransaction,
            60.0,
            "INSERT INTO step VALUES (1, $1)",
        );
        b.lock(pid, relation(RUN), LockMode::Share, None);
    }
    for (pid, name) in [(27565, "app@api-stop"), (27573, "app@api-stop-2")] {
        b.session(pid, name, State::Active, 20.0, "UPDATE run SET state = 'stopped' WHERE id = 1");
        b.lock(pid, relation(RUN), LockMode::RowExclusive, Some(20.0));
    }
    b
}

fn stage(builder: Builder, (width, height): (u16, u16)) -> Stage {
    Stage::new(width, height).view(builder.view())
}

#[test]
fn the_first_screen_of_each_state() {
    for size in SIZES {
        check_whole("drawn_one_root", &mut stage(incident(0.0), size));
        check_whole("drawn_mixed", &mut stage(mixed(), size));
        check_whole("drawn_thousand", &mut stage(thousand(), size));
        check_whole("drawn_quiet", &mut stage(quiet(), size));
        let mut b = builder();
        convoy(&mut b, 14.0, 13.0, 20, 10);
        check_whole("drawn_convoy", &mut stage(b, size));
    }
}

#[test]
fn chains_and_locks_of_several_roots() {
    for size in &SIZES[..2] {
        check_whole("drawn_chains", &mut stage(mixed(), *size).keys("2"));
        check_whole("drawn_locks", &mut stage(mixed(), *size).keys("3"));
    }
}

#[test]
fn the_questions_of_a_root_of_one_of_several_and_of_one_in_the_middle() {
    let size = SIZES[0];
    check_whole("drawn_ask_root", &mut stage(incident(0.0), size).keys("K"));
    check_whole("drawn_ask_shared", &mut stage(shared_row(), size).keys("K"));
    check_whole("drawn_ask_middle", &mut stage(mixed(), size).keys("2/pid:3019<enter>K"));
}
