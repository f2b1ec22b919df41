//! A client that connected over the network is compared by its address and port.

use std::net::TcpListener;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::feed::view_builder::ViewBuilder;
use locktop::model::lock_name::LockNames;
use locktop::model::plan::{self, Ask, Outcome, PlanContext, TargetKind, Verb};
use locktop::model::row_id::RowId;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::TargetId;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::{PollConnection as Poll, PollLimits};

use super::stage::{Hands, Session};

/// A server on a port that was free a moment before.
async fn server() -> (EmbeddedServer, ConnInfo) {
    for _ in 0..5 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let options = Options::default().with("listen_addresses", "127.0.0.1").with("port", port);
        if let Ok(server) = EmbeddedServer::start(options).await {
            let target = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=disable");
            return (server, ConnInfo::parse(&target).unwrap());
        }
    }
    panic!("no free port in five attempts");
}

#[tokio::test]
async fn a_session_with_another_client_address_is_left_alone() {
    let (_server, info) = server().await;
    let session = Session::open(&info).await;
    let mut view_builder = ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default());
    let mut poll = Poll::open(&info, PollLimits::default()).await.unwrap();
    let view = view_builder.snapshot_taken(poll.poll(None).await.unwrap());
    let id = view.snapshot.as_ref().unwrap().backend(session.pid).unwrap().id();
    let context = PlanContext { view: &view, rights: None, own_pids: &[], terminated: &[] };
    let plan = plan::sessions(&context, &Ask::new(Verb::Terminate, vec![RowId::Backend(id)]));
    let TargetKind::Session(target) = &plan.rows[0].target.what else { panic!("{plan:?}") };
    assert_eq!(target.client.address.as_deref(), Some("127.0.0.1"));
    assert!(target.client.port.unwrap() > 0);

    let mut hands = Hands::of(&info).await;
    let mut other = target.clone();
    other.client.address = Some("127.0.0.2".into());
    let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(other)).await;
    let words = "it now serves another client: its role or its address has changed";
    assert_eq!((outcome, detail.as_str()), (Outcome::Changed, words));
    let (outcome, detail) = hands.one(Verb::Terminate, TargetKind::Session(target.clone())).await;
    assert_eq!(outcome, Outcome::Done, "{detail}");
}
