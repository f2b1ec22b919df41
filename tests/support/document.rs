//! The JSON of `locktop snapshot` as types: a key that is missing or has another type is an error.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};

use locktop::demo::postgres::EmbeddedServer;
use locktop::model::Timestamp;
use locktop::pg::conninfo::ConnInfo;
use serde::Deserialize;

use crate::binary::{locktop, run_beside};

#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    pub(crate) taken_at: Timestamp,
    pub(crate) backends: Vec<Backend>,
    pub(crate) prepared: Vec<Prepared>,
    pub(crate) locks: Vec<Lock>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) edges_omitted: u64,
    pub(crate) roots: Vec<Root>,
    pub(crate) cycles: Vec<Vec<i32>>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) sections: BTreeMap<String, Section>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Backend {
    pub(crate) pid: i32,
    pub(crate) database: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) application: Option<String>,
    #[serde(rename = "backend_start")]
    pub(crate) start: Option<Timestamp>,
    pub(crate) query: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Prepared {
    pub(crate) gid: String,
    pub(crate) virtualtransaction: Option<String>,
    pub(crate) database: Option<String>,
    pub(crate) owner: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Lock {
    pub(crate) locktype: String,
    pub(crate) database: Option<u32>,
    pub(crate) relation: Option<u32>,
    pub(crate) relation_name: Option<String>,
    pub(crate) granted: bool,
    pub(crate) pid: Option<i32>,
    pub(crate) gid: Option<String>,
    pub(crate) virtualtransaction: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Queue {
    pub(crate) lock: usize,
    pub(crate) holders: Vec<i32>,
    pub(crate) waiters: Vec<i32>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Edge {
    pub(crate) waiter: i32,
    pub(crate) blocker: i32,
    pub(crate) gid: Option<String>,
    pub(crate) kind: String,
    pub(crate) lock: usize,
    pub(crate) inferred: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Root {
    pub(crate) pid: i32,
    pub(crate) gid: Option<String>,
    pub(crate) blocked: usize,
    pub(crate) frees: usize,
    pub(crate) longest_wait: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Finding {
    pub(crate) check: String,
    pub(crate) severity: String,
    pub(crate) summary: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Section {
    pub(crate) taken_at: Option<Timestamp>,
    pub(crate) error: Option<String>,
}

/// A blocker: a process id, or 0 and a gid.
pub(crate) type Party = (i32, Option<String>);

impl Document {
    /// All pairs (waiter, blocker) of one kind.
    pub(crate) fn pairs(&self, kind: &str) -> BTreeSet<(i32, Party)> {
        let of_kind = self.edges.iter().filter(|edge| edge.kind == kind);
        of_kind.map(|edge| (edge.waiter, (edge.blocker, edge.gid.clone()))).collect()
    }

    /// Process ids of all blockers of this waiter, as `pg_blocking_pids` returns them.
    pub(crate) fn blockers(&self, waiter: i32) -> BTreeSet<i32> {
        let edges = self.edges.iter().filter(|edge| edge.waiter == waiter);
        edges.map(|edge| edge.blocker).collect()
    }

    pub(crate) fn backend(&self, pid: i32) -> &Backend {
        self.backends.iter().find(|backend| backend.pid == pid).expect("a row for the backend")
    }

    /// Checks that every section was read.
    pub(crate) fn assert_whole(&self) {
        for name in ["server", "backends", "locks", "prepared"] {
            let section = &self.sections[name];
            assert_eq!(section.error, None, "section {name}");
            assert_eq!(section.taken_at, Some(self.taken_at), "section {name}");
        }
    }
}

/// The arguments for a connection to a server's database.
pub(crate) fn address(server: &EmbeddedServer, info: &ConnInfo) -> String {
    format!("{} dbname={}", server.conninfo().replace("dbname=postgres ", ""), info.dbname())
}

/// The output of the program.
pub(crate) async fn printed(server: &EmbeddedServer, info: &ConnInfo, format: &str) -> String {
    let target = address(server, info);
    // No cell of a table is cut.
    let left = run_beside(locktop(&["snapshot", "--width", "400", "--format", format, &target])).await;
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{}", left.out);
    left.out
}

/// Runs the program once.
pub(crate) async fn snapshot(server: &EmbeddedServer, info: &ConnInfo) -> Document {
    let text = printed(server, info, "json").await;
    let document: Document = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
    document.assert_whole();
    document
}
