//! The content of a snapshot, also of a single one.

use locktop::feed::once::once;
use locktop::model::backend::State;
use locktop::model::lock_key::LockKey;
use locktop::model::lock_name::LockNames;
use locktop::model::thresholds::Thresholds;
use locktop::pg::poll::PollLimits;

use super::helpers::{
    assert_fresh, client, info, on_every_version, patient, pid, poll_until, session, waits,
};

#[tokio::test]
async fn a_snapshot_shows_the_holder_and_the_waiter() {
    on_every_version(async |server| {
        let info = info(&server);
        let (holder, waiter) =
            (client(&info.clone().with_application_name("web-1")).await, client(&info).await);
        holder.batch_execute("SELECT pg_advisory_lock(7, -8)").await.unwrap();
        let (holder_pid, waiter_pid) = (pid(&holder).await, pid(&waiter).await);
        let waiting =
            tokio::spawn(async move { waiter.batch_execute("SELECT pg_advisory_lock(7, -8)").await });
        let mut session = session(&server).await;
        let first = poll_until(&mut session, |snapshot| waits(snapshot, waiter_pid)).await;
        let snapshot = session.poll(Some(&first)).await.unwrap();
        assert_fresh(&snapshot);
        let lock = snapshot.locks.last_rows().iter().find(|lock| !lock.granted).unwrap();
        assert_eq!(lock.tag.advisory_key(), Some(LockKey::Pair(7, -8)));
        let [answer] = &snapshot.answers[..] else { panic!("{:?}", snapshot.answers) };
        assert_eq!((answer.waiter, &answer.blockers[..]), (waiter_pid, &[holder_pid][..]));
        assert_eq!(answer.wait_start, lock.wait_start);
        let seen = snapshot.server().unwrap();
        assert_eq!(seen.version_num / 10_000, server.version());
        assert!(seen.version.starts_with(&server.version().to_string()), "{}", seen.version);
        assert_eq!((&*seen.database, &*seen.user, seen.sees_all), ("postgres", "postgres", true));
        assert_eq!((seen.connections, seen.max_connections, seen.query_size), (3, 100, 1024));
        assert!(seen.started_at.is_some() && !seen.in_recovery);
        let backend = snapshot.backend(holder_pid).unwrap();
        assert_eq!(backend.application.as_deref(), Some("web-1"));
        assert_eq!(backend.user.as_deref(), Some("postgres"));
        assert_eq!(backend.database.as_deref(), Some("postgres"));
        assert_eq!(backend.client.as_deref(), Some("[local]"));
        assert_eq!(backend.backend_type.as_deref(), Some("client backend"));
        assert_eq!(backend.state, Some(State::Idle));
        assert!(backend.backend_start.unwrap() < snapshot.taken_at);
        assert!(snapshot.backend(seen.own_pid).is_some());
        waiting.abort();
    })
    .await;
}

#[tokio::test]
async fn a_single_snapshot_has_the_blockers_and_names_of_its_waits() {
    on_every_version(async |server| {
        let info = info(&server);
        let holder = client(&info).await;
        holder.batch_execute("CREATE TABLE accounts ()").await.unwrap();
        holder.batch_execute("BEGIN; LOCK TABLE accounts").await.unwrap();
        let mut waiting = Vec::new();
        let mut pids = Vec::new();
        for _ in 0..5 {
            let waiter = client(&info).await;
            pids.push(pid(&waiter).await);
            waiting.push(tokio::spawn(async move { waiter.batch_execute("TABLE accounts").await }));
        }
        let mut session = session(&server).await;
        poll_until(&mut session, |snapshot| pids.iter().all(|pid| waits(snapshot, *pid))).await;
        let view =
            once(&info, PollLimits { ask: 3, ..patient() }, Thresholds::default(), LockNames::default())
                .await
                .unwrap();
        let snapshot = view.snapshot.as_deref().unwrap();
        assert_eq!(snapshot.answers.len(), 3, "the oldest three are asked about");
        assert_eq!(view.graph.roots.len(), 1);
        assert_eq!((view.graph.roots[0].blocked, view.graph.roots[0].frees), (5, 5));
        let lock = snapshot.locks.last_rows().iter().find(|lock| !lock.granted).unwrap();
        assert_eq!(snapshot.names.relation(&lock.tag).map(|name| &**name), Some("accounts"));
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    })
    .await;
}
