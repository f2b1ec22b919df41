//! The content of the server's views, line by line, and that of a snapshot in the same format.

use std::fmt::Display;
use std::time::Duration;

use locktop::clock;
use locktop::model::Timestamp;
use locktop::model::backend::Backend;
use locktop::model::lock::{Lock, Prepared};
use locktop::model::snapshot::Snapshot;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::PollConnection;
use tokio_postgres::Client;

use super::helpers::{assert_fresh, client, pid};

/// Every column but `fastpath`, which locktop does not read.
const LOCKS: &str =
    "SELECT concat_ws('|', locktype, coalesce(database::text, '-'), coalesce(relation::text, '-'),
        coalesce(page::text, '-'), coalesce(tuple::text, '-'), coalesce(virtualxid, '-'),
        coalesce(transactionid::text, '-'), coalesce(classid::text, '-'), coalesce(objid::text, '-'),
        coalesce(objsubid::text, '-'), virtualtransaction, coalesce(pid::text, '-'), mode, granted,
        coalesce((extract(epoch FROM waitstart) * 1000000)::int8::text, '-'))
    FROM pg_locks WHERE pid IS NULL OR pid <> ALL ($1)";

/// The columns that locktop reads.
const BACKENDS: &str = "SELECT concat_ws('|', pid, coalesce((extract(epoch FROM backend_start) * 1000000)::int8::text, '-'),
        coalesce(leader_pid::text, '-'), coalesce(datid::text, '-'), coalesce(datname, '-'), coalesce(usename, '-'),
        coalesce(application_name, '-'),
        coalesce(host(client_addr), CASE client_port WHEN -1 THEN '[local]' END, '-'), coalesce(backend_type, '-'),
        coalesce(state, '-'), coalesce(wait_event_type, '-'), coalesce(wait_event, '-'),
        coalesce((extract(epoch FROM xact_start) * 1000000)::int8::text, '-'),
        coalesce((extract(epoch FROM query_start) * 1000000)::int8::text, '-'),
        coalesce((extract(epoch FROM state_change) * 1000000)::int8::text, '-'),
        coalesce(backend_xid::text, '-'), coalesce(backend_xmin::text, '-'), coalesce(query_id::text, '-'),
        coalesce(query, '-'))
    FROM pg_stat_activity WHERE pid <> ALL ($1)";

const PREPARED: &str =
    "SELECT concat_ws('|', transaction, gid, (extract(epoch FROM prepared) * 1000000)::int8, owner, database)
    FROM pg_prepared_xacts WHERE cardinality($1::int[]) > 0";

/// How long a snapshot and the views may differ: a change between the two reads is no mistake.
const UNREST: Duration = Duration::from_secs(10);

/// Lines of locks, of backends and of prepared transactions, each in order.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Lines {
    pub(crate) locks: Vec<String>,
    pub(crate) backends: Vec<String>,
    pub(crate) prepared: Vec<String>,
}

impl Lines {
    fn sorted(mut self) -> Self {
        for lines in [&mut self.locks, &mut self.backends, &mut self.prepared] {
            lines.sort();
        }
        self
    }

    /// The content of a snapshot, except for some processes.
    pub(crate) fn of(snapshot: &Snapshot, without: &[i32]) -> Self {
        let other = |pid: i32| !without.contains(&pid);
        let locks = snapshot.locks.last_rows().iter().filter(|lock| lock.pid.is_none_or(other));
        let backends = snapshot.backends.last_rows().iter().filter(|backend| other(backend.pid));
        Self {
            locks: locks.map(lock).collect(),
            backends: backends.map(backend).collect(),
            prepared: snapshot.prepared.last_rows().iter().map(prepared).collect(),
        }
        .sorted()
    }
}

/// A connection that queries the views.
pub(crate) struct Views {
    client: Client,
    pid: i32,
}

impl Views {
    pub(crate) async fn open(info: &ConnInfo) -> Self {
        let client = client(info).await;
        Self { pid: pid(&client).await, client }
    }

    async fn lines(&self, without: &[i32]) -> Lines {
        let ask = async |sql: &str| -> Vec<String> {
            self.client.query(sql, &[&without]).await.unwrap().iter().map(|row| row.get(0)).collect()
        };
        Lines { locks: ask(LOCKS).await, backends: ask(BACKENDS).await, prepared: ask(PREPARED).await }
            .sorted()
    }

    /// Polls until a snapshot agrees with the views, and fails with the difference if none does.
    pub(crate) async fn agree(&self, session: &mut PollConnection) -> (Snapshot, Lines) {
        let without = [self.pid, session.server().own_pid];
        let started = clock::monotonic();
        let mut before = None;
        loop {
            let snapshot = session.poll(before.as_ref()).await.unwrap();
            assert_fresh(&snapshot);
            let (polled, viewed) = (Lines::of(&snapshot, &without), self.lines(&without).await);
            if polled == viewed {
                return (snapshot, viewed);
            }
            if started.elapsed() > UNREST {
                assert_eq!(polled.locks, viewed.locks);
                assert_eq!(polled.backends, viewed.backends);
                assert_eq!(polled.prepared, viewed.prepared);
            }
            before = Some(snapshot);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn shown<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn micros(at: Option<Timestamp>) -> String {
    shown(at.map(|at| at.timestamp_micros()))
}

fn lock(lock: &Lock) -> String {
    let tag = lock.tag;
    [
        tag.locktype().as_str().to_owned(),
        shown(tag.database()),
        shown(tag.relation()),
        shown(tag.page()),
        shown(tag.tuple()),
        shown(tag.virtualxid()),
        shown(tag.transactionid()),
        shown(tag.classid()),
        shown(tag.objid()),
        shown(tag.objsubid()),
        lock.virtualtransaction.to_string(),
        shown(lock.pid),
        lock.mode.as_str().to_owned(),
        if lock.granted { "t" } else { "f" }.to_owned(),
        micros(lock.wait_start),
    ]
    .join("|")
}

fn backend(row: &Backend) -> String {
    [
        row.pid.to_string(),
        micros(row.backend_start),
        shown(row.leader_pid),
        shown(row.datid),
        shown(row.database.as_deref()),
        shown(row.user.as_deref()),
        shown(row.application.as_deref()),
        shown(row.client.as_deref()),
        shown(row.backend_type.as_deref()),
        shown(row.state.map(locktop::model::backend::State::as_str)),
        shown(row.wait_event_type.as_deref()),
        shown(row.wait_event.as_deref()),
        micros(row.xact_start),
        micros(row.query_start),
        micros(row.state_change),
        shown(row.backend_xid),
        shown(row.backend_xmin),
        shown(row.query_id),
        shown(row.query.as_ref().map(|query| &**query.unredacted())),
    ]
    .join("|")
}

fn prepared(row: &Prepared) -> String {
    [
        row.transaction.to_string(),
        row.gid.to_string(),
        micros(row.prepared),
        shown(row.owner.as_deref()),
        shown(row.database.as_deref()),
    ]
    .join("|")
}
