//! The running poll.

use std::sync::Arc;
use std::time::Duration;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::feed::acting::ActingConnection;
use locktop::feed::live::{FeedSettings, Live, PollControl};
use locktop::model::view::{ConnectionState, View};
use locktop::pg::poll::PollLimits;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::helpers::{beginning, client, info, on_every_version, pid};
use super::support::TIMEOUT;

/// A poll that runs, at an interval that only a test would choose.
struct Feed {
    interval: watch::Sender<Duration>,
    refresh: Arc<Notify>,
    views: watch::Receiver<Arc<View>>,
    running: JoinHandle<()>,
}

impl Feed {
    async fn start(server: &EmbeddedServer, interval: Duration) -> Self {
        let live = Live::connect(info(server), FeedSettings::default(), |_| {}).await.unwrap();
        let (sender, views) = watch::channel(live.view());
        let (interval, control) = PollControl::every(interval);
        let refresh = Arc::clone(&control.refresh);
        Self { interval, refresh, views, running: tokio::spawn(live.run(control, sender)) }
    }

    async fn until(&mut self, done: impl Fn(&View) -> bool) -> Arc<View> {
        let found = tokio::time::timeout(TIMEOUT, self.views.wait_for(|view| done(view))).await;
        Arc::clone(&found.expect("the awaited view did not arrive").unwrap())
    }
}

#[tokio::test]
async fn the_feed_publishes_reconnects_and_obeys() {
    on_every_version(async |server| {
        let info = info(&server);
        let mut feed = Feed::start(&server, Duration::from_secs(3600)).await;
        let first = feed.until(|view| view.snapshot.is_some()).await;
        assert_eq!(first.link, ConnectionState::Live);
        let admin = client(&info).await;
        admin.batch_execute("SELECT pg_advisory_lock(3)").await.unwrap();
        let admin_pid = pid(&admin).await;
        feed.refresh.notify_one();
        let second = feed.until(|view| view.id > first.id).await;
        let snapshot = second.snapshot.as_deref().unwrap();
        let lock = snapshot
            .locks
            .last_rows()
            .iter()
            .find(|lock| lock.pid == Some(admin_pid) && lock.tag.objid() == Some(3))
            .unwrap();
        // The lock has been held at the earliest since it was requested, and at the latest since the holder
        // became idle. The holder became idle once more after the answer, since the driver closes its
        // statement then.
        let taken = |view: &View| view.snapshot.as_deref().unwrap().taken_at;
        let since = second.held_since.get(&(admin_pid, lock.tag)).unwrap().proved;
        assert!((taken(&first)..=taken(&second)).contains(&since), "{since}");
        assert_eq!(second.series.samples.len(), 2);
        feed.interval.send_replace(Duration::from_millis(20));
        let third = feed.until(|view| view.id > second.id + 3).await;
        let since = third.held_since.get(&(admin_pid, lock.tag)).unwrap().proved;
        assert!((taken(&first)..=taken(&third)).contains(&since), "{since}");
        let third = feed.until(|view| view.id > third.id + 3).await;
        assert_eq!(third.held_since.get(&(admin_pid, lock.tag)).map(|held| held.proved), Some(since));
        let own = third.snapshot.as_deref().unwrap().server().unwrap().own_pid;
        admin.execute("SELECT pg_terminate_backend($1)", &[&own]).await.unwrap();
        let down = feed.until(|view| matches!(view.link, ConnectionState::Down { .. })).await;
        let ConnectionState::Down { reason, .. } = &down.link else { panic!() };
        assert!(reason.contains("terminating connection due to administrator command"), "{reason}");
        assert!(down.snapshot.is_some(), "the old data stays");
        let back = feed.until(|view| view.link == ConnectionState::Live && view.id > down.id).await;
        assert_ne!(back.snapshot.as_deref().unwrap().server().unwrap().own_pid, own);
        drop(feed.views);
        tokio::time::timeout(TIMEOUT, feed.running)
            .await
            .expect("no receiver is left, and it still polls")
            .unwrap();
    })
    .await;
}

/// If the server does not come back, the attempts continue at growing intervals, and the last rows stay.
#[tokio::test]
async fn a_server_that_was_killed_is_found_again() {
    let mut server = EmbeddedServer::start(Options::default()).await.unwrap();
    let holder = client(&info(&server)).await;
    holder.batch_execute("SELECT pg_advisory_lock(3)").await.unwrap();
    let mut feed = Feed::start(&server, Duration::from_millis(20)).await;
    let live = feed.until(|view| view.snapshot.is_some()).await;
    let own = live.snapshot.as_deref().unwrap().server().unwrap().own_pid;
    server.kill_hard().await.unwrap();
    let first = feed.until(|view| matches!(view.link, ConnectionState::Down { .. })).await;
    let ConnectionState::Down { reason, attempt, .. } = &first.link else { panic!() };
    assert!(*attempt == 1 && reason.starts_with("connection lost: "), "{attempt}: {reason}");
    let again = feed.until(|view| matches!(view.link, ConnectionState::Down { attempt: 2, .. })).await;
    let ConnectionState::Down { reason, .. } = &again.link else { panic!() };
    // By now the reason why there is no new connection is of more use than why the old one ended.
    assert!(reason.contains(&server.socket_dir().display().to_string()), "{reason}");
    let (before, after) = (first.snapshot.as_ref().unwrap(), again.snapshot.as_ref().unwrap());
    assert!(Arc::ptr_eq(before, after), "the old rows stay");
    assert_eq!(after.locks.taken_at, Some(after.taken_at));
    assert!(after.locks.last_rows().iter().any(|lock| lock.tag.objid() == Some(3)));
    assert!(again.series == first.series && again.id > first.id);
    server.restart().await.unwrap();
    let back = feed.until(|view| view.link == ConnectionState::Live && view.id > again.id).await;
    let snapshot = back.snapshot.as_deref().unwrap();
    assert!(snapshot.taken_at > after.taken_at);
    assert_ne!(snapshot.server().unwrap().own_pid, own);
    assert!(
        snapshot.locks.last_rows().iter().all(|lock| lock.tag.objid() != Some(3)),
        "the holder has ended"
    );
}

/// The poll's connection and the standby connection, whatever is polled, and neither is left at the end.
#[tokio::test]
async fn locktop_keeps_exactly_two_connections() {
    on_every_version(async |server| {
        let admin = client(&info(&server).with_application_name("admin")).await;
        let (_views_in, views) = watch::channel(beginning());
        let acting = ActingConnection::keep(info(&server), PollLimits::default(), views);
        let reserve = acting.client(TIMEOUT).await.unwrap();
        let mut feed = Feed::start(&server, Duration::from_millis(10)).await;
        let first = feed.until(|view| view.snapshot.is_some()).await.id;
        let mut expected = vec![pid(&reserve).await];
        for id in first..first + 5 {
            let view = feed.until(|view| view.id >= id).await;
            let snapshot = view.snapshot.as_deref().unwrap();
            let own = snapshot.server().unwrap().own_pid;
            expected.truncate(1);
            expected.push(own);
            let own_rows = snapshot
                .backends
                .last_rows()
                .iter()
                .filter(|row| row.application.as_deref() == Some("locktop"));
            let mut own_pids: Vec<i32> = own_rows.map(|row| row.pid).collect();
            own_pids.sort_unstable();
            let mut wanted = expected.clone();
            wanted.sort_unstable();
            assert_eq!(own_pids, wanted);
        }
        drop((acting, reserve, feed.views));
        feed.running.await.unwrap();
        let left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'locktop'";
        super::support::wait_until("the end of both connections", async || {
            admin.query_one(left, &[]).await.unwrap().get::<_, i64>(0) == 0
        })
        .await;
    })
    .await;
}
