use tokio_postgres::error::SqlState;

use super::names::Used;
use super::sections::{Blocking, Tick};
use crate::model::backend::Backend;
use crate::model::lock::LockType;
use crate::model::snapshot::{Server, Snapshot};
use crate::model::words::class_has_names;
use crate::pg::decode::backends::PreparedRows;
use crate::pg::decode::locks::KnownLocks;
use crate::pg::scope::SectionError;
use crate::pg::sources;

pub(super) struct Scan {
    pub(super) blocking: Result<Blocking, SectionError>,
    /// Whether the known data was sent. If that failed, the next two answers are not from this poll, and report so.
    pub(super) told: Result<(), SectionError>,
    pub(super) locks: Result<KnownLocks, SectionError>,
    pub(super) backends: Result<(Vec<Backend>, String), SectionError>,
    pub(super) prepared: Result<PreparedRows, SectionError>,
    pub(super) sources: sources::Answers,
    pub(super) tick: Result<Tick, SectionError>,
}

impl Scan {
    /// Whether another session than `own` answered, or one without the prepared statements: then the session is shared.
    pub(super) fn is_lent(&self, own: i32) -> bool {
        self.errors().any(|error| error.code() == Some(&SqlState::INVALID_SQL_STATEMENT_NAME))
            || self.tick.as_ref().is_ok_and(|tick| tick.pid.is_some_and(|pid| pid != own))
    }

    /// The error of the connection, if more than a statement failed; a last message of the server comes first.
    pub(super) fn fatal(&self) -> Option<&SectionError> {
        let fatal = self.sources.fatal().into_iter().chain(self.errors());
        fatal.filter(|error| error.is_fatal()).min_by_key(|error| !error.is_last_word())
    }

    /// The errors of the prepared statements.
    fn errors(&self) -> impl Iterator<Item = &SectionError> {
        [
            self.blocking.as_ref().err(),
            self.told.as_ref().err(),
            self.locks.as_ref().err(),
            self.backends.as_ref().err(),
            self.prepared.as_ref().err(),
            self.tick.as_ref().err(),
        ]
        .into_iter()
        .flatten()
    }

    pub(super) fn used(&self, before: Option<&Snapshot>, server: &Server) -> Used {
        let mut used = Used::default();
        if let Ok(locks) = &self.locks {
            let relations = used.relations.get_or_insert_default();
            // Counted locks are read rarely.
            let counted = before.into_iter().flat_map(|before| &before.systems.contended);
            let counted = counted.flat_map(|table| table.section.last_rows().iter().map(|row| row.tag));
            let tags = locks.rows.iter().map(|lock| lock.tag).chain(counted).chain(self.sources.counted());
            for tag in tags {
                let Some(database) = tag.database() else { continue };
                if database != 0 && database != server.datid {
                    used.databases.insert(database);
                } else if let Some(relation) = tag.relation() {
                    relations.insert(relation);
                } else if tag.locktype() == LockType::Object
                    && let Some((class, id)) = tag.classid().zip(tag.objid())
                    && id != 0
                    && class_has_names(class)
                {
                    used.objects.insert((database, class, id));
                }
            }
        }
        if let Ok((backends, _)) = &self.backends {
            used.databases.extend(backends.iter().filter_map(|backend| backend.datid));
            used.roles.extend(backends.iter().filter_map(|backend| backend.usesysid));
        }
        if let Ok(prepared) = &self.prepared {
            used.databases.extend(prepared.databases());
            used.roles.extend(prepared.owners());
        }
        used
    }
}
