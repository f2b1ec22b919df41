//! A holder that is stopped past its term, and wakes when another session has the lease.

use futures_util::future::join_all;
use locktop::locks::Held as _;
use locktop::locks::lease::{Lease, Request};

use super::holder::Holder;
use super::place::{LONG, Session, hold, installed};
use super::support::{TIMEOUT, server_of, versions};

#[tokio::test]
async fn it_finds_out_before_it_does_more_and_everything_it_tries_is_refused() {
    join_all(versions().into_iter().map(outlived)).await;
}

async fn outlived(version: u32) {
    let info = installed(version).await;
    let session = Session::open(&info).await;
    session.ask("CREATE TABLE public.steps (how text)").await;
    let server = server_of(version).await.conninfo();
    let mut holder =
        Holder::start(&format!("{} dbname={}", server.replace("dbname=postgres ", ""), info.dbname()));
    let line = holder.next_line().await;
    let first: i64 = line.strip_prefix("held ").unwrap().parse().unwrap();
    holder.step();
    assert_eq!(holder.next_line().await, "stepped", "{version}");

    holder.stop();
    let ends = session.ask("SELECT expires_at FROM leases").await;
    // The name is the same: it is another process.
    let request = Request::new(7, "one name", LONG);
    let second = Lease::acquire_within(&info, &request, TIMEOUT).await.unwrap().expect("its term ends");
    assert!(second.token() > first, "{version}");
    let after = format!("SELECT acquired_at >= '{ends}' FROM leases");
    assert_eq!(session.ask(&after).await, "t", "{version}: not before the end of the term");

    // There is something to do when it wakes.
    holder.step();
    holder.wake();
    let line = holder.next_line().await;
    assert!(
        line.starts_with("lease 7 may be lost") || line.starts_with("lease 7 is lost"),
        "{version}: {line}"
    );
    assert_eq!(holder.next_line().await, "renewed f", "{version}");
    assert_eq!(holder.next_line().await, "released false", "{version}");
    let refused = format!("write LT001 lease 7 is not held with token {first}");
    assert_eq!(holder.next_line().await, refused, "{version}");
    assert_eq!(
        session.ask("SELECT how FROM public.steps").await,
        "unfenced",
        "{version}: the step before, no other"
    );

    let row = session.ask("SELECT state, token FROM leases").await;
    assert_eq!(row, format!("held|{}", second.token()), "{version}: the second still has it");
    assert!(second.check().is_ok());
    let token = second.token();
    assert!(second.release().await.unwrap());
    let third = hold(&info, &request).await;
    assert!(third.token() > token, "{version}");
    assert!(third.release().await.unwrap());
}
