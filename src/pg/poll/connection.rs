use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join5};
use tokio_postgres::Client;

use super::known::LastResults;
use super::link::PollLink;
use super::names::{NameCache, ReferencedNames};
use super::opening::Opening;
use super::prepare::{self, PollStatements, PooledTransaction, prepare};
use super::sections::{self, Blocking, PollTick, Scan};
use super::{OpenError, PollError, PollLimits, link, waiters};
use crate::clock;
use crate::model::Timestamp;
use crate::model::adapter::{self, Parts};
use crate::model::backend::Backend;
use crate::model::plan::Rights;
use crate::model::snapshot::{Detection, Pooling, Section, Server, Snapshot, Tls};
use crate::pg::Scope;
use crate::pg::SectionError;
use crate::pg::decode::Texts;
use crate::pg::decode::backends::{BackendsDecoder, KnownBackends};
use crate::pg::decode::locks::ReadingSession;
use crate::pg::jobs::adapters::Adapters;
use crate::pg::jobs::sources::Sources;
use pg_connect::connect::Connection;
use pg_connect::conninfo::ConnInfo;
use pg_connect::message;

#[derive(Debug)]
enum SessionStatements {
    /// A dedicated session, with its prepared statements.
    Own(PollStatements),
    Pooled(Box<PooledTransaction>),
}

#[derive(Debug)]
pub struct PollConnection {
    client: Arc<Client>,
    link: PollLink,
    session_statements: SessionStatements,
    /// Does not change, except for the counters of the last poll.
    server: Server,
    names: NameCache,
    sources: Sources,
    adapters: Adapters,
    texts: Texts,
    limits: PollLimits,
    known: LastResults,
    /// The server's clock when it was last read, and locktop's.
    clock: Option<(Timestamp, std::time::Instant)>,
}

impl PollConnection {
    /// Connects and prepares: three round trips after the handshake before the first snapshot.
    pub async fn open(info: &ConnInfo, limits: PollLimits) -> Result<Self, OpenError> {
        Self::open_behind(info, limits, None).await
    }

    /// The same if it may already be `known` how the pooler in between shares its sessions.
    pub async fn open_behind(
        info: &ConnInfo,
        limits: PollLimits,
        known: Option<Pooling>,
    ) -> Result<Self, OpenError> {
        let opening = Box::pin(Opening::connect(info)).await?;
        let pooling = Box::pin(opening.pooling(info, &limits, std::future::ready(known))).await?;
        // A statement of the driver is large, and there are many of them at once.
        let setup = Box::pin(async {
            if pooling == Pooling::Transactions {
                prepare::prepare_pooled(opening.client(), &limits).await
            } else {
                prepare(opening.client(), &limits, Scope::Own).await
            }
        });
        let ready = opening.within(limits.poll_timeout, setup).await?;
        let place = &opening.place;
        let server = Server {
            host: place.host.as_str().into(),
            port: place.port,
            pooling,
            tls: Tls::of(place.tls),
            ..ready.server
        };
        let session_statements = match ready.statements {
            Some(statements) => SessionStatements::Own(statements),
            None => SessionStatements::Pooled(Box::new(PooledTransaction::new(ready.own_path, &limits))),
        };
        let Connection { client, driver, .. } = opening.ready();
        Ok(Self {
            client: Arc::new(client),
            link: PollLink::watch(driver),
            session_statements,
            server,
            names: ready.names,
            sources: ready.sources,
            adapters: ready.adapters,
            texts: Texts::default(),
            limits,
            known: LastResults::default(),
            clock: ready.clock,
        })
    }

    fn scope(&self) -> Scope {
        match self.session_statements {
            SessionStatements::Own(_) => Scope::Own,
            SessionStatements::Pooled(_) => Scope::Open,
        }
    }

    /// The connection, for callers without one; None if a transaction may be open in it. Only whole transactions may be sent
    /// on it, each in one message: the statements of a poll come before and after, and wait for them at most for their
    /// time-outs.
    pub fn client(&self) -> Option<Arc<Client>> {
        (self.scope() == Scope::Own).then(|| Arc::clone(&self.client))
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    /// How long the server took to read `pg_locks`, at the last poll that did.
    pub fn locks_cost(&self) -> Duration {
        self.known.locks.cost
    }

    pub fn rights(&self) -> Option<Arc<Rights>> {
        self.names.rights()
    }

    /// Takes a snapshot. `before` is the last one, of this session or an earlier one: its rows are kept if a section fails,
    /// and the server is asked about its waiters.
    ///
    /// # Errors
    /// If the connection is lost or the server does not answer in time. The session is then no longer usable.
    pub async fn poll(&mut self, before: Option<&Snapshot>) -> Result<Snapshot, PollError> {
        // Rows read since the last poll are taken over before its locks and sessions, which then show what has changed since.
        if let Some(before) = before {
            let timeout = self.limits.adapter_timeout;
            self.adapters.collect((&before.locks, before.taken_at), timeout).await;
        }
        let started = clock::monotonic();
        let timeout = self.limits.poll_timeout;
        // A poll has many statements, and each is large.
        let read = Box::pin(async {
            let statements = self.statements().await?;
            let scan = Box::pin(self.scan(before, &statements)).await;
            Ok((scan, statements))
        });
        let (scan, statements) =
            tokio::time::timeout(timeout, read).await.map_err(|_| PollError::Timeout(timeout))??;
        if let Some(error) = scan.fatal() {
            // The last message of the server goes to the statement in progress.
            if error.is_last_word() {
                return Err(PollError::Lost(error.to_string()));
            }
            // The connection knows better than its statements why it ended, if it did.
            let closed = tokio::time::timeout(Duration::from_secs(1), self.closed()).await;
            return Err(closed.unwrap_or_else(|_| PollError::Lost(error.to_string())));
        }
        if self.scope() == Scope::Own && scan.is_pooled(self.server.own_pid) {
            return Err(PollError::Pooled);
        }
        let taken_at = self.time(&scan.tick)?;
        let answered = clock::monotonic().duration_since(started).as_secs_f64();
        let used = scan.used(before, &self.server);
        let name_timeout = self.limits.name_timeout;
        if let SessionStatements::Own(_) = self.session_statements {
            self.names.resolve(&self.client, used, name_timeout).await;
            let snapshot = self.assemble(scan, before, taken_at, answered);
            self.sources.search_again(&self.client, name_timeout).await;
            self.adapters.begin(&self.client, &snapshot.locks);
            return Ok(snapshot);
        }
        // Nothing can be deferred here: it is part of the poll, and with a distant server takes as long as its round trips.
        let back = Box::pin(async {
            // As at the start: tables found now are read from the next poll on.
            let reads = self.reads();
            self.resolve_pooled(used).await.map_err(|error| lost(&error))?;
            let snapshot = self.assemble(scan, before, taken_at, answered);
            self.adapters.begin(&self.client, &snapshot.locks);
            self.adapters.collect((&snapshot.locks, taken_at), name_timeout).await;
            prepare::give_back(&self.client, Some(statements), reads).await.map_err(|error| lost(&error))?;
            Ok(snapshot)
        });
        tokio::time::timeout(timeout, back).await.map_err(|_| PollError::Timeout(timeout))?
    }

    /// The statements of one poll. A shared session is borrowed from here on, until it is returned.
    async fn statements(&mut self) -> Result<PollStatements, PollError> {
        match &self.session_statements {
            SessionStatements::Own(statements) => Ok(statements.clone()),
            SessionStatements::Pooled(transaction) => {
                let reads = self.reads();
                let (own_pid, statements) = transaction.begin(&self.client, reads).await?;
                self.server.own_pid = own_pid;
                Ok(statements)
            }
        }
    }

    fn reads(&self) -> bool {
        self.sources.reads() || self.adapters.are_known()
    }

    /// Looks up what a dedicated session looks up next to the poll.
    async fn resolve_pooled(&mut self, used: ReferencedNames) -> Result<(), tokio_postgres::Error> {
        let Self { client, names, sources, .. } = self;
        let timeout = self.limits.poll_timeout;
        Scope::Open.apart(client, names.resolve(client, used, timeout)).await?;
        Scope::Open.apart(client, sources.search_again(client, timeout)).await
    }

    pub fn watch(&mut self, shown: Parts) {
        self.adapters.watch(shown);
    }

    /// Resets the session if the next client of a pooler gets it.
    pub async fn leave(&self) {
        if self.server.pooling == Pooling::Sessions {
            link::take_back(&self.client).await;
        }
    }

    pub fn close(&self) {
        self.link.close();
    }

    /// Waits for the end of the connection, and returns its reason.
    pub async fn closed(&self) -> PollError {
        let mut ended = self.link.ended.clone();
        let reason = ended.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        PollError::Lost(reason.unwrap_or_default())
    }

    /// Waits, between two polls, until the server no longer answers.
    pub async fn silence(&self) -> PollError {
        // One reference is the session's, and one is kept for callers without a connection: [`crate::feed::acting`].
        let mine = || 2 + self.lookups();
        link::silence(&self.client, || Arc::strong_count(&self.client) > mine()).await
    }

    /// Look-ups in progress next to the poll. If the server is silent, they wait as well.
    fn lookups(&self) -> usize {
        let Self { names, sources, adapters, .. } = self;
        [names.is_asking(), sources.is_searching(), adapters.is_reading()].into_iter().map(usize::from).sum()
    }

    async fn scan(&mut self, before: Option<&Snapshot>, statements: &PollStatements) -> Scan {
        let asked = before.map_or_else(Vec::new, |before| waiters(before, &self.limits));
        let safe = before.map_or_else(Vec::new, |before| sections::waiters(before, self.limits.ask));
        let databases = self.names.database_oids();
        let changes = self.known.changes_to_send(&self.limits);
        let (client, scope) = (&*self.client, self.scope());
        let encodings = self.names.encodings();
        let reader = ReadingSession { datid: self.server.datid, pid: self.server.own_pid };
        let LastResults { locks: known_locks, backends: known_backends, .. } = &self.known;
        let activity =
            BackendsDecoder::new(&mut self.texts, known_backends, &changes.poll, encodings.clone());
        let (blocking, told, locks, (backends, prepared), (sources, tick)) = join5(
            scope.alone(client, sections::blocking(client, statements.blocking.as_ref(), &asked, &safe)),
            sections::send_changes(client, &statements.known, &changes),
            scope.alone(
                client,
                sections::locks(client, statements.locks.of(&changes), reader, known_locks, &changes.poll),
            ),
            join(
                scope.alone(client, sections::backends(client, &statements.backends, activity)),
                scope.alone(client, sections::prepared(client, &statements.prepared, encodings)),
            ),
            join(
                Box::pin(self.sources.read(client, before)),
                scope.alone(client, sections::tick(client, &statements.tick, &databases)),
            ),
        )
        .await;
        let answers = blocking.as_ref().map_or(&[][..], |blocking| &blocking.answers);
        self.known.learn(&changes, (&locks, answers), &self.limits);
        Scan { blocking, sent: told, locks, backends, prepared, sources, tick }
    }

    /// The server's clock; if it could not be read, its last time plus the time passed here.
    fn time(&mut self, tick: &Result<PollTick, SectionError>) -> Result<Timestamp, PollError> {
        let here = clock::monotonic();
        match tick {
            Ok(PollTick { at: Some(at), .. }) => {
                self.clock = Some((*at, here));
                Ok(*at)
            }
            Ok(_) => Err(PollError::Lost("the server has no clock".into())),
            Err(error) => {
                let (at, then) = self.clock.ok_or_else(|| PollError::Lost(error.to_string()))?;
                Ok(chrono::TimeDelta::from_std(here - then).map_or(at, |passed| at + passed))
            }
        }
    }

    fn assemble(
        &mut self,
        scan: Scan,
        before: Option<&Snapshot>,
        taken_at: Timestamp,
        poll_seconds: f64,
    ) -> Snapshot {
        let backends = match scan.backends {
            Ok((rows, digests)) => {
                let section = Section::fresh(self.named(rows), taken_at);
                self.known.backends = KnownBackends { rows: Arc::clone(section.last_rows()), digests };
                section
            }
            Err(error) => stale(before.map(|before| &before.backends), &error),
        };
        let (locks, locks_omitted, answers) = match scan.locks {
            // Without answers every queue edge is an inferred one, and marked so.
            Ok(known) => {
                let Blocking { answers, safe_snapshots } = scan.blocking.unwrap_or_default();
                let rows = sections::with_waits(known.rows, &safe_snapshots, backends.last_rows());
                (Section::shared(rows, taken_at), known.omitted, answers)
            }
            Err(error) => (
                stale(before.map(|before| &before.locks), &error),
                before.map_or(0, |before| before.locks_omitted),
                before.map_or_else(Vec::new, |before| before.answers.clone()),
            ),
        };
        let prepared = match scan.prepared {
            Ok(rows) => Section::fresh(
                rows.finish(|oid| self.names.role(oid), |oid| self.names.database(oid)),
                taken_at,
            ),
            Err(error) => stale(before.map(|before| &before.prepared), &error),
        };
        self.server.connections = connections(backends.last_rows());
        let server = match scan.tick {
            Ok(tick) => {
                self.server.in_recovery = tick.in_recovery;
                self.server.replayed_at = tick.replayed_at;
                self.server.replay = tick.replay;
                if let Some((deadlocks, databases)) = tick.deadlocks {
                    self.server.deadlocks_of = databases;
                    self.server.deadlocks = u64::try_from(deadlocks).unwrap_or_default();
                }
                Section::fresh(vec![self.server.clone()], taken_at)
            }
            Err(error) => stale(before.map(|before| &before.server), &error),
        };
        let (task_sets, systems) = self.sources.sections(scan.sources, before, &locks, taken_at);
        let adapters = adapter::counted(self.adapters.rows(), &backends, &self.server);
        Snapshot {
            taken_at,
            server,
            backends,
            locks,
            locks_omitted,
            prepared,
            detection: Detection {
                tables: self.sources.detection(taken_at, before),
                adapters: self.adapters.detection(taken_at, before),
            },
            task_sets,
            sources: systems,
            adapters,
            answers,
            names: self.names.names(),
            poll_seconds,
        }
    }

    fn named(&self, mut rows: Vec<Backend>) -> Vec<Backend> {
        for backend in &mut rows {
            backend.database = backend.datid.and_then(|oid| self.names.database(oid));
            backend.user = backend.usesysid.and_then(|oid| self.names.role(oid));
        }
        rows
    }
}

fn lost(error: &tokio_postgres::Error) -> PollError {
    PollError::Lost(message(error))
}

fn stale<T>(before: Option<&Section<T>>, error: &SectionError) -> Section<T> {
    before.map_or_else(|| Section::default().stale(error.text()), |before| before.stale(error.text()))
}

/// Client backends. Without `pg_read_all_stats` the role does not see the type of other processes: then those in a
/// database with a role are counted.
fn connections(backends: &[Backend]) -> u32 {
    let client = |backend: &&Backend| match &backend.backend_type {
        Some(kind) => &**kind == "client backend",
        None => backend.datid.is_some() && backend.user.is_some(),
    };
    u32::try_from(backends.iter().filter(client).count()).unwrap_or(u32::MAX)
}
