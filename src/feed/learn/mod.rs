//! Names of advisory lock keys that only the server knows, from queries of the config and tables of well-known software.
//!
//! They are queried soon after the start and then periodically, never on the poll's connection. Names stay until the same
//! source changes them, so that a temporarily locked table removes no names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::Client;

use super::acting::ActingConnection;
use crate::model::Text;
use crate::model::lock_key::LockKey;
use crate::model::lock_name::LockNames;
use crate::order::SortExt;
use crate::pg::learn::{self, LearnError, QueryNames, ROWS, SoftwareTable};
use crate::pg::poll::{OpenError, PollLimits, open_plain, take_back};
use pg_connect::connect::Connection;
use pg_connect::conninfo::ConnInfo;

/// Pause between two rounds.
pub const EVERY: Duration = Duration::from_secs(60);
/// Pause after a round without a connection.
const SOON: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameQuery {
    pub sql: String,
    /// The database to query. `None` is the connected one.
    pub database: Option<String>,
    /// Its position in the config, such as `config.toml:34:1`.
    pub place: String,
}

#[derive(Debug, Clone, Default)]
pub struct Learned {
    pub names: Arc<LockNames>,
    /// Reasons why names could not be learned, one line each.
    pub notes: Arc<[Text]>,
}

#[derive(Debug, Clone)]
pub enum Way {
    /// The connection that is open for actions.
    Acting(Arc<ActingConnection>),
    /// A new connection for each round. Used in read-only mode, which has no such connection.
    Own,
}

/// Repeats rounds until the receiver is dropped.
pub async fn keep(mut learner: Learner, way: Way, every: Duration, out: watch::Sender<Learned>) {
    loop {
        let connected = learner.round(&way).await;
        if out.send(learner.learned()).is_err() {
            return;
        }
        let pause = if connected { every } else { every.min(SOON) };
        tokio::select! {
            () = out.closed() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// One round on its own connection. Names not read within `timeout` are left out, with a note.
pub async fn once(mut learner: Learner, timeout: Duration) -> Learned {
    if tokio::time::timeout(timeout, learner.round(&Way::Own)).await.is_err() {
        learner.note(format!("lock names: not all were read within {} s", timeout.as_secs_f64()));
    }
    learner.learned()
}

const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time to close, so that a server that does not answer does not block forever.
const GOODBYE: Duration = Duration::from_secs(1);

/// The source of a name. If two sources name a key, the later one has precedence.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NameSource {
    /// A table of well-known software in this database.
    Software(SoftwareTable),
    /// A query of the config, by index.
    Query(usize),
}

#[derive(Debug)]
struct SourceNames {
    source: NameSource,
    database: Text,
    names: Vec<(LockKey, Text)>,
}

#[derive(Debug)]
enum NoSession {
    /// The pooler is in transaction mode.
    Pooled,
    Other(String),
}

#[derive(Debug)]
pub struct Learner {
    info: ConnInfo,
    limits: PollLimits,
    configured: LockNames,
    queries: Vec<NameQuery>,
    known: Vec<SourceNames>,
    notes: Vec<Text>,
}

impl Learner {
    pub fn new(info: ConnInfo, limits: PollLimits, configured: LockNames, queries: Vec<NameQuery>) -> Self {
        Self { info, limits, configured, queries, known: Vec::new(), notes: Vec::new() }
    }

    pub fn learned(&self) -> Learned {
        let mut names = self.configured.clone();
        for known in &self.known {
            let (origin, uncertain) = self.origin(&known.source);
            let learned = known.names.iter().map(|(key, name)| (*key, name.clone(), origin.clone()));
            names = names.with_learned_in(known.database.clone(), uncertain, learned);
        }
        Learned { names: Arc::new(names), notes: self.notes.as_slice().into() }
    }

    fn origin(&self, source: &NameSource) -> (Text, bool) {
        match source {
            NameSource::Software(SoftwareTable { software, schema, .. }) => {
                (format!("{}, schema {schema}", software.origin()).into(), software.is_small())
            }
            NameSource::Query(number) => {
                let place = self.queries.get(*number).map_or("", |query| &query.place);
                (format!("from the query at {place}").into(), false)
            }
        }
    }

    async fn round(&mut self, way: &Way) -> bool {
        self.notes.clear();
        match way {
            Way::Acting(acting) => match acting.client(TIMEOUT).await {
                Ok(_) if acting.is_pooled() => self.unlearned(),
                Ok(client) => self.ask_all(&client).await,
                Err(reason) => self.unconnected(&reason),
            },
            Way::Own => match self.open(None).await {
                Ok(connection) => {
                    let connected = self.ask_all(&connection.client).await;
                    close(connection).await;
                    connected
                }
                Err(NoSession::Pooled) => self.unlearned(),
                Err(NoSession::Other(reason)) => self.unconnected(&reason),
            },
        }
    }

    fn note(&mut self, note: String) {
        self.notes.push(note.into());
    }

    /// The pooler keeps no session. A note is added only if the config has queries.
    fn unlearned(&mut self) -> bool {
        if !self.queries.is_empty() {
            self.note("lock_name_queries: not run through a pooler in transaction mode".to_owned());
        }
        true
    }

    fn unconnected(&mut self, reason: &str) -> bool {
        self.note(format!("lock names: no connection to read them on: {reason}"));
        false
    }

    async fn ask_all(&mut self, client: &Client) -> bool {
        let here = match learn::installed_software(client, &self.limits).await {
            Ok((database, places)) => {
                self.ask_software(client, &database, places).await;
                database
            }
            Err(error) => {
                self.note(format!("lock names of well-known software: {error}"));
                self.info.dbname().into()
            }
        };
        self.ask_queries(client, &here).await;
        !client.is_closed()
    }

    async fn ask_software(&mut self, client: &Client, database: &Text, mut places: Vec<SoftwareTable>) {
        // Certain names have precedence over guesses.
        places.order_by_key(|place| !place.software.is_small());
        self.known.retain(|known| match &known.source {
            NameSource::Software(place) => places.contains(place),
            NameSource::Query(_) => true,
        });
        for place in places {
            let answer = learn::ask_software(client, &self.limits, &place).await;
            let what = format!("lock names by {}, schema {}", place.software.origin(), place.schema);
            self.take(NameSource::Software(place), database, &what, answer);
        }
    }

    async fn ask_queries(&mut self, client: &Client, here: &Text) {
        let mut elsewhere: BTreeMap<String, Result<Connection, NoSession>> = BTreeMap::new();
        for (number, query) in self.queries.clone().into_iter().enumerate() {
            let what = format!("lock_name_queries ({})", query.place);
            let database = query.database.filter(|database| **database != **here);
            let Some(database) = database else {
                let answer = learn::ask(client, &self.limits, &query.sql).await;
                self.take(NameSource::Query(number), here, &what, answer);
                continue;
            };
            if !elsewhere.contains_key(&database) {
                elsewhere.insert(database.clone(), self.open(Some(&database)).await);
            }
            match elsewhere.get(&database) {
                Some(Ok(connection)) => {
                    let answer = learn::ask(&connection.client, &self.limits, &query.sql).await;
                    self.take(NameSource::Query(number), &database.as_str().into(), &what, answer);
                }
                Some(Err(NoSession::Other(reason))) => self.note(format!("{what}: {reason}")),
                Some(Err(NoSession::Pooled)) => {
                    self.note(format!("{what}: not run through a pooler in transaction mode"));
                }
                None => {}
            }
        }
        for connection in elsewhere.into_values().flatten() {
            close(connection).await;
        }
    }

    /// Replaces the names of a source. On an error the old ones stay.
    fn take(
        &mut self,
        source: NameSource,
        database: &Text,
        what: &str,
        answer: Result<QueryNames, LearnError>,
    ) {
        match answer {
            Ok(QueryNames { names, cut }) => {
                if cut {
                    let rows = crate::text::count(ROWS as u64);
                    self.note(format!("{what}: more than {rows} rows, the others are not read"));
                }
                let known = SourceNames { source, database: database.clone(), names };
                // Keeps the order of sources: software first, then the queries of the config.
                self.known.retain(|other| other.source != known.source);
                let queries = |known: &SourceNames| matches!(known.source, NameSource::Query(_));
                let at = match &known.source {
                    NameSource::Software(_) => self.known.iter().position(queries),
                    NameSource::Query(number) => self.known.iter().position(
                        |other| matches!(&other.source, NameSource::Query(other) if other > number),
                    ),
                };
                self.known.insert(at.unwrap_or(self.known.len()), known);
            }
            Err(error) => self.note(format!("{what}: {error}")),
        }
    }

    async fn open(&self, database: Option<&str>) -> Result<Connection, NoSession> {
        let info = self.info.clone();
        let info = match database {
            Some(database) => info.with_dbname(database),
            None => info,
        };
        match tokio::time::timeout(TIMEOUT, open_plain(&info, &self.limits)).await {
            Ok(Err(OpenError::Pooler(_))) => Err(NoSession::Pooled),
            Ok(opened) => opened.map_err(|error| NoSession::Other(error.to_string())),
            Err(_) => Err(NoSession::Other(format!("no connection within {} s", TIMEOUT.as_secs()))),
        }
    }
}

async fn close(Connection { client, mut driver, .. }: Connection) {
    // Reset the session: there may be a pooler.
    take_back(&client).await;
    drop(client);
    if tokio::time::timeout(GOODBYE, &mut driver).await.is_err() {
        driver.abort();
    }
}
