//! All connections are taken: the connection opened before is used, or that of the poll if no other could be opened.

use std::sync::Arc;
use std::time::Duration;

use locktop::action::Executor;
use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::feed::acting::{ActingConnection, ActionConnections};
use locktop::feed::live::{FeedSettings, Live, PollControl};
use locktop::model::plan::{Outcome, SessionTarget, TargetKind, Verb};
use locktop::model::view::View;
use locktop::pg::connect::{Connection, connect};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::error::ConnectError;
use locktop::pg::poll::PollLimits;
use tokio::sync::watch;

use super::stage::{Hands, Notes, Session, is_connected, seen, settings};
use super::support::{self, conninfo};

/// A small server with a blocked session, and a dashboard's poll.
struct Small {
    _server: EmbeddedServer,
    info: ConnInfo,
    observer: tokio_postgres::Client,
    holder: Session,
    live: Option<Live>,
    views: watch::Receiver<Arc<View>>,
    views_in: Option<watch::Sender<Arc<View>>>,
    lines: watch::Receiver<Option<locktop::feed::acting::OpenConnection>>,
}

impl Small {
    async fn start() -> Self {
        let options =
            Options::default().with("max_connections", 12).with("superuser_reserved_connections", 0);
        let server = EmbeddedServer::start(options.with("max_wal_senders", 0)).await.unwrap();
        let info = conninfo(&server);
        let observer = support::open(&info).await.client;
        observer.batch_execute("CREATE TABLE t (id int)").await.unwrap();
        let holder = Session::open(&info).await;
        holder.run("BEGIN; LOCK TABLE t").await;
        let waiter = Session::open(&info).await;
        drop(waiter.begin("SELECT FROM t", &observer, "Lock").await);
        let live = Live::connect(info.clone(), FeedSettings::default(), |_| {}).await.unwrap();
        let (views_in, views) = watch::channel(live.view());
        let lines = live.open_connection();
        Self {
            _server: server,
            info,
            observer,
            holder,
            live: Some(live),
            views,
            views_in: Some(views_in),
            lines,
        }
    }

    /// Lets the poll run.
    fn run(&mut self) -> tokio::task::JoinHandle<()> {
        let (_, control) = PollControl::every(Duration::from_millis(100));
        let (live, views_in) = (self.live.take().unwrap(), self.views_in.take().unwrap());
        tokio::spawn(live.run(control, views_in))
    }

    fn acting(&self) -> Arc<ActingConnection> {
        Arc::new(ActingConnection::keep(self.info.clone(), PollLimits::default(), self.views.clone()))
    }

    /// Takes every connection that is left.
    async fn fill(&self) -> Vec<Connection> {
        let mut crowd = Vec::new();
        loop {
            match connect(&self.info).await {
                Ok(connection) => crowd.push(connection),
                Err(error) => {
                    assert!(is_full(&error), "{error}");
                    return crowd;
                }
            }
        }
    }

    async fn ends_the_root(&self, acting: Arc<ActingConnection>) -> Vec<i32> {
        let lines = ActionConnections { acting, poll: self.lines.clone() };
        let notes = Notes::default();
        let executor = Executor::start(lines, notes.clone(), settings());
        let pids = executor.own_pids();
        let mut hands = Hands { executor, notes, progress: 0 };
        let target = SessionTarget { blocks: true, ..seen(&self.observer, self.holder.pid).await };
        let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(target)).await;
        assert_eq!(outcome, Outcome::Done, "{detail}");
        assert!(!is_connected(&self.observer, self.holder.pid).await);
        pids
    }
}

fn is_full(error: &ConnectError) -> bool {
    error.is_waitable()
}

#[tokio::test]
async fn the_acting_connection_serves_when_all_slots_are_taken() {
    let mut small = Small::start().await;
    let poll = small.run();
    let acting = small.acting();
    acting.client(support::TIMEOUT).await.unwrap();
    let crowd = small.fill().await;
    let pids = small.ends_the_root(acting).await;
    assert_eq!(pids.len(), 2, "those of the poll and of the acting connection: {pids:?}");
    drop(crowd);
    poll.abort();
}

#[tokio::test]
async fn without_a_standby_connection_the_poll_connection_is_used() {
    let mut small = Small::start().await;
    let crowd = small.fill().await;
    let acting = small.acting();
    let refused = acting.client(Duration::from_secs(1)).await.unwrap_err();
    let poll = small.run();
    let pids = small.ends_the_root(Arc::clone(&acting)).await;
    assert_eq!(pids.len(), 1, "that of the poll: {pids:?}; {refused}");
    assert!(acting.ready(Duration::ZERO).await.is_err() || crowd.is_empty(), "{refused}");
    // The poll continues.
    let mut views = small.views.clone();
    let holder = small.holder.pid;
    let without = views.wait_for(|view| {
        view.snapshot.as_ref().is_some_and(|snapshot| {
            !snapshot.backends.last_rows().is_empty()
                && snapshot.backends.last_rows().iter().all(|backend| backend.pid != holder)
        })
    });
    tokio::time::timeout(support::TIMEOUT, without).await.unwrap().unwrap();
    drop(crowd);
    poll.abort();
}
