//! Requests and holders of a lease do not block each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::place::{Session, installed};
use super::support::versions;

#[tokio::test]
async fn a_holder_renews_while_others_request_the_lease_without_a_pause() {
    for version in versions() {
        let info = installed(version).await;
        let holder = Session::open(&info).await;
        let token = holder.token("SELECT lease_acquire(7, 'node1', '1 hour')").await;
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut crowd = Vec::new();
        for _ in 0..4 {
            let session = Session::open(&info).await;
            let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
            crowd.push(tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(session.ask("SELECT lease_acquire(7, 'node2', '1 hour')").await, "-");
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        let renew = format!("SELECT lease_renew(7, {token}, '1 hour')");
        let (mut renewals, mut failed) = (0, 0);
        while renewals < 100 || asked.load(Ordering::Relaxed) < 100 {
            renewals += 1;
            failed += usize::from(holder.ask(&renew).await != "t");
        }
        stop.store(true, Ordering::Relaxed);
        for one in crowd {
            one.await.unwrap();
        }
        assert_eq!(failed, 0, "{version}: of {renewals}");
    }
}

/// Two sessions with one lease, in no fixed order: each release succeeds, no two hold it at a time, and the tokens grow.
#[tokio::test]
async fn two_take_a_lease_in_turns() {
    for version in versions() {
        let info = installed(version).await;
        let (held, last) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut two = Vec::new();
        for name in ["node1", "node2"] {
            let session = Session::open(&info).await;
            let (held, last) = (Arc::clone(&held), Arc::clone(&last));
            two.push(tokio::spawn(async move {
                let acquire = format!("SELECT lease_acquire(7, '{name}', '1 hour')");
                let mut cycles = 0;
                while cycles < 50 {
                    let answer = session.ask(&acquire).await;
                    if answer == "-" {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    assert!(!held.swap(true, Ordering::SeqCst), "both hold it");
                    let token: usize = answer.parse().unwrap();
                    assert!(last.swap(token, Ordering::SeqCst) < token);
                    held.store(false, Ordering::SeqCst);
                    assert_eq!(session.ask(&format!("SELECT lease_release(7, {token})")).await, "t");
                    cycles += 1;
                }
            }));
        }
        for one in two {
            one.await.unwrap();
        }
    }
}
