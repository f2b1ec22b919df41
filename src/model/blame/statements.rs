//! The statements seen in the transactions of sessions. The server keeps only the last one; the one that took a lock was
//! often replaced by the time others wait for it.

use rustc_hash::FxHashMap;

use super::table::STATEMENTS;
use crate::model::backend::Backend;
use crate::model::output::{Channel, shown, without_literals};
use crate::model::{QueryText, Text, Timestamp};

/// Bytes of a statement that are kept. A server can be configured to keep a megabyte of each.
const LENGTH: usize = 2_000;

/// Columns of a statement that are shown.
const TOLD: usize = 500;

#[derive(Debug)]
struct Transaction {
    backend_start: Option<Timestamp>,
    xact_start: Timestamp,
    look: u64,
    statements: Vec<(Option<Timestamp>, QueryText)>,
}

#[derive(Debug, Default)]
pub(super) struct Statements {
    open: FxHashMap<i32, Transaction>,
    looks: u64,
}

impl Statements {
    pub(super) fn look(&mut self, backends: &[Backend]) {
        self.looks += 1;
        let look = self.looks;
        for backend in backends {
            let Some(xact_start) = backend.xact_start else { continue };
            let transaction =
                self.open.entry(backend.pid).or_insert_with(|| Transaction::new(backend, xact_start));
            if (transaction.backend_start, transaction.xact_start) != (backend.backend_start, xact_start) {
                *transaction = Transaction::new(backend, xact_start);
            }
            transaction.look = look;
            transaction.see(backend);
        }
        self.open.retain(|_, transaction| transaction.look == look);
    }

    /// Statements of a session's transaction that began after a point in time, oldest first, each as one printable line.
    pub(super) fn after(
        &self,
        pid: i32,
        moment: Option<Timestamp>,
    ) -> impl Iterator<Item = (Option<Timestamp>, Text)> {
        let statements = self.open.get(&pid).map(|transaction| transaction.statements.as_slice());
        let later =
            statements.unwrap_or_default().iter().filter(move |(at, _)| moment.is_none() || *at > moment);
        later.map(|(at, query)| (*at, statement(query)))
    }
}

pub(super) fn statement(query: &QueryText) -> Text {
    crate::text::one_line_prefix(&shown(Channel::Blame, query), TOLD).into()
}

impl Transaction {
    fn new(backend: &Backend, xact_start: Timestamp) -> Self {
        Self { backend_start: backend.backend_start, xact_start, look: 0, statements: Vec::new() }
    }

    fn see(&mut self, backend: &Backend) {
        let Some(query) = backend.query.as_ref().filter(|query| query.bytes() > 0) else { return };
        if self.statements.last().is_some_and(|(at, _)| *at == backend.query_start) {
            return;
        }
        // The beginning of a long statement does not show whether it contains a secret: it is kept without literals.
        let text = if query.bytes() <= LENGTH {
            query.clone()
        } else {
            let end = (0..=LENGTH).rev().find(|end| query.unredacted().is_char_boundary(*end));
            without_literals(query.unredacted().get(..end.unwrap_or_default()).unwrap_or_default()).into()
        };
        if self.statements.len() >= STATEMENTS {
            self.statements.remove(STATEMENTS / 2);
        }
        self.statements.push((backend.query_start, text));
    }
}
