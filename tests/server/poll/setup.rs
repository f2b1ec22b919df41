//! Sessions that cannot be set up, and requests to the standby connection while the server is down.

use std::sync::Arc;
use std::time::Duration;

use locktop::feed::acting::ActingConnection;
use locktop::feed::live::{FeedSettings, Live, PollControl};
use locktop::model::view::{ConnectionState, View};
use locktop::pg::poll::{OpenError, PollConnection, PollLimits, open_plain};
use tokio::sync::watch;
use tokio_postgres::{Client, Statement};

use super::helpers::{beginning, client, info, server};
use super::support::TIMEOUT;

async fn until(views: &mut watch::Receiver<Arc<View>>, done: impl Fn(&View) -> bool) -> Arc<View> {
    let found = tokio::time::timeout(TIMEOUT, views.wait_for(|view| done(view))).await;
    Arc::clone(&found.expect("the awaited view did not arrive").unwrap())
}

/// The number of locktop's backends, read with a statement that was prepared before and needs no catalog now.
async fn own_backends(admin: &Client, query: &Statement) -> usize {
    let rows = admin.query(query, &[]).await.unwrap();
    rows.iter().filter(|row| row.get::<_, Option<&str>>(0) == Some("locktop")).count()
}

#[tokio::test]
async fn a_failed_setup_leaves_nothing_behind() {
    let server = server().await;
    let info = info(&server).with_application_name("locktop");
    let other = info.clone().with_application_name("admin");
    // Not the same: in a transaction the server shows the same activity all the time.
    let (admin, observer) = (client(&other).await, client(&other).await);
    let query = observer.prepare("SELECT application_name FROM pg_stat_get_activity(NULL)").await.unwrap();
    assert_eq!(own_backends(&observer, &query).await, 0);
    admin.batch_execute("BEGIN; LOCK pg_proc IN ACCESS EXCLUSIVE MODE").await.unwrap();
    // The first limit holds on the server, the second only here.
    let refused = PollConnection::open(&info, PollLimits::default()).await.unwrap_err();
    assert!(refused.to_string().contains("lock timeout"), "{refused}");
    let endless = PollLimits {
        statement_timeout: Duration::ZERO,
        lock_timeout: Duration::ZERO,
        // Long enough for the statement to be running when it is cancelled.
        poll_timeout: Duration::from_secs(2),
        ..PollLimits::default()
    };
    assert!(matches!(open_plain(&info, &endless).await.unwrap_err(), OpenError::Silent));
    let ended = tokio::time::timeout(TIMEOUT, async {
        while own_backends(&observer, &query).await > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    ended.await.expect("a backend stays and waits for the lock");
    admin.batch_execute("ROLLBACK").await.unwrap();
    PollConnection::open(&info, PollLimits::default()).await.unwrap();
}

#[tokio::test]
async fn the_second_connection_rests_while_the_poll_has_none() {
    let server = server().await;
    let (views_in, views) = watch::channel(beginning());
    let down = ConnectionState::Down { reason: "gone".into(), attempt: 1, wait: Duration::ZERO };
    views_in.send_replace(Arc::new(View { link: down, ..View::clone(&beginning()) }));
    let acting = ActingConnection::keep(info(&server), PollLimits::default(), views);
    let refused = acting.client(Duration::from_millis(300)).await;
    assert!(refused.is_err(), "no connection is even requested");
    views_in.send_replace(beginning());
    acting.client(TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn wishes_hold_while_the_server_is_away() {
    let server = server().await;
    let info = info(&server);
    let live = Live::connect(info.clone(), FeedSettings::default(), |_| {}).await.unwrap();
    let (sender, mut views) = watch::channel(live.view());
    let (interval, control) = PollControl::every(Duration::from_secs(3600));
    let refresh = Arc::clone(&control.refresh);
    let running = tokio::spawn(live.run(control, sender));
    let first = until(&mut views, |view| view.snapshot.is_some()).await;
    let own = first.snapshot.as_deref().unwrap().server().unwrap().own_pid;
    let admin = client(&info).await;
    admin.execute("SELECT pg_terminate_backend($1)", &[&own]).await.unwrap();
    let down = until(&mut views, |view| matches!(view.link, ConnectionState::Down { .. })).await;
    for _ in 0..100 {
        interval.send_replace(Duration::from_millis(30));
        refresh.notify_one();
    }
    let back = until(&mut views, |view| view.link == ConnectionState::Live && view.id > down.id).await;
    until(&mut views, |view| view.id > back.id + 3).await;
    running.abort();
}
