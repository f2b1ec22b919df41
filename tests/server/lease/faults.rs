//! Rounds with a fault each: the fenced effects of two holders never overlap, and the next holder follows. Prints how long that took.
//!
//! 10 rounds of each fault, and 100 with `LOCKTOP_LONG=1`; without a fault 200, and 10,000.

use std::time::Duration;

use futures_util::future::join_all;
use locktop::clock;
use locktop::demo::postgres::EmbeddedServer;
use locktop::locks::Error;
use locktop::locks::lease::{Lease, Request};
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};
use tokio_postgres::Client;

use super::holder::Holder;
use super::place::Session;
use super::support::{TIMEOUT, database, is_long, open, server, start};

const TERM: Duration = Duration::from_millis(500);
const TABLES: &str = "CREATE TABLE public.witness (token bigint NOT NULL, effects bigint NOT NULL);
    INSERT INTO public.witness VALUES (0, 0); CREATE TABLE public.overlaps (token bigint)";

fn rounds() -> usize {
    if is_long() { 100 } else { 10 }
}

/// An effect that only the holder may have. One with an older token than the last is an overlap.
async fn effect(client: &mut Client, lease: &Lease, pause: Duration) -> Result<(), Error> {
    let failed = |error: tokio_postgres::Error| Error::Disconnected {
        what: "effect".to_owned(),
        reason: error.to_string(),
    };
    let transaction = client.transaction().await.map_err(failed)?;
    lease.fence(&transaction).await?;
    if !pause.is_zero() {
        super::holder::print_line("inside");
        tokio::time::sleep(pause).await;
    }
    let token = lease.token();
    let write = format!(
        "WITH w AS (UPDATE public.witness SET token = {token}, effects = effects + 1 WHERE token <= {token} RETURNING 1)
         INSERT INTO public.overlaps SELECT {token} WHERE NOT EXISTS (SELECT FROM w)"
    );
    transaction.batch_execute(&write).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)
}

/// Effects until the lease is lost, over a new connection if one ends: the work of a [`Holder`] in these tests.
pub(super) async fn effects(info: &ConnInfo, lease: &Lease, pause: Duration) {
    loop {
        let Ok(connection) = locktop::pg::connect::connect(info).await else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let mut client = connection.client;
        while effect(&mut client, lease, pause).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        if client.is_closed() {
            continue;
        }
        // It is fenced: the loss is reported next.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

struct Place {
    info: ConnInfo,
    address: String,
}

impl Place {
    async fn on(server: &EmbeddedServer) -> Self {
        let info = database(server).await;
        let mut connection = open(&info).await;
        schema::install(&mut connection.client, &SchemaName::default()).await.unwrap();
        connection.client.batch_execute(TABLES).await.unwrap();
        let address = server.conninfo();
        let address = format!("{} dbname={}", address.replace("dbname=postgres ", ""), info.dbname());
        Self { info, address }
    }

    /// The lease of this test, which is requested again while the server is down.
    async fn next(&self) -> Lease {
        let request = Request::new(7, "next", TERM);
        loop {
            match Lease::acquire_within(&self.info, &request, TIMEOUT).await {
                Ok(lease) => return lease.expect("it is free in time"),
                Err(error) => {
                    assert!(error.is_transient(), "{error}");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
    }

    /// A process holds the lease, and has effects; the fault happens; the next holder has effects. `pause` is within a transaction.
    async fn rounds(&self, fault: &str, pause: Duration, mut happen: impl AsyncFnMut(&mut Holder)) {
        let mut longest = Duration::ZERO;
        for round in 0..rounds() {
            let mut holder = Holder::start_with_effects(&self.address, TERM, pause);
            assert!(holder.next_line().await.starts_with("held "));
            if pause.is_zero() {
                tokio::time::sleep(Duration::from_millis(5 * u64::try_from(round % 20).unwrap())).await;
            } else {
                assert_eq!(holder.next_line().await, "inside");
            }
            let start = clock::monotonic();
            happen(&mut holder).await;
            let lease = self.next().await;
            longest = longest.max(start.elapsed());
            let mut client = open(&self.info).await.client;
            for _ in 0..3 {
                effect(&mut client, &lease, Duration::ZERO).await.unwrap();
            }
            holder.wake();
            effect(&mut client, &lease, Duration::ZERO).await.unwrap();
            assert!(lease.release().await.unwrap(), "{fault}, round {round}");
        }
        self.judge(fault, rounds(), longest).await;
    }

    async fn judge(&self, fault: &str, rounds: usize, longest: Duration) {
        let session = Session::open(&self.info).await;
        assert_eq!(session.ask("SELECT count(*) FROM public.overlaps").await, "0", "{fault}");
        let effects = session.ask("SELECT effects FROM public.witness").await;
        assert!(effects.parse::<usize>().unwrap() >= rounds, "{fault}: {effects} effects");
        println!(
            "{fault}: {rounds} rounds, {effects} effects, the next holder after at most {} ms (0: not measured)",
            longest.as_millis()
        );
    }
}

#[tokio::test]
async fn a_holder_that_is_stopped() {
    let place = Place::on(server().await).await;
    place.rounds("SIGSTOP", Duration::ZERO, async |holder| holder.stop()).await;
}

#[tokio::test]
async fn a_holder_that_is_stopped_in_a_fenced_transaction() {
    let place = Place::on(server().await).await;
    place.rounds("SIGSTOP in a transaction", Duration::from_millis(50), async |holder| holder.stop()).await;
}

#[tokio::test]
async fn a_holder_that_is_killed() {
    let place = Place::on(server().await).await;
    place.rounds("SIGKILL", Duration::ZERO, async |holder| holder.kill()).await;
}

#[tokio::test]
async fn a_holder_with_terminated_connections() {
    let place = Place::on(server().await).await;
    let session = Session::open(&place.info).await;
    let terminate = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let happen = async |holder: &mut Holder| {
        session.ask(terminate).await;
        // It continues with new connections until it is asked to end.
        tokio::time::sleep(Duration::from_millis(20)).await;
        session.ask(terminate).await;
        holder.finish();
    };
    place.rounds("connections terminated", Duration::ZERO, happen).await;
}

#[tokio::test]
async fn a_clock_of_the_server_that_jumps() {
    let place = Place::on(server().await).await;
    let session = Session::open(&place.info).await;
    // Seen from the row, a jump forward.
    let happen = async |_: &mut Holder| session.let_pass(7, "1 hour").await;
    place.rounds("the clock jumps", Duration::ZERO, happen).await;
}

#[tokio::test]
async fn a_server_that_is_restarted() {
    let mut server = start(None).await;
    let place = Place::on(&server).await;
    let happen = async |holder: &mut Holder| {
        server.restart().await.unwrap();
        holder.finish();
    };
    place.rounds("server restarted", Duration::ZERO, happen).await;
}

#[tokio::test]
async fn a_waiter_that_is_cancelled() {
    let place = Place::on(server().await).await;
    let mut longest = Duration::ZERO;
    for round in 0..rounds() {
        let lease = place.next().await;
        let (info, request) = (place.info.clone(), Request::new(7, "cancelled", TERM));
        let waiter = tokio::spawn(async move { Lease::acquire_within(&info, &request, TIMEOUT).await });
        tokio::time::sleep(Duration::from_millis(u64::try_from(round % 30).unwrap())).await;
        waiter.abort();
        let mut client = open(&place.info).await.client;
        effect(&mut client, &lease, Duration::ZERO).await.unwrap();
        let start = clock::monotonic();
        assert!(lease.release().await.unwrap());
        let next = place.next().await;
        longest = longest.max(start.elapsed());
        assert!(next.release().await.unwrap(), "round {round}");
    }
    place.judge("waiter cancelled", rounds(), longest).await;
}

#[tokio::test]
async fn many_holders_without_a_fault() {
    let place = Place::on(server().await).await;
    let turns = if is_long() { 2_500 } else { 50 };
    let holders = (0..4).map(async |_| {
        for _ in 0..turns {
            let lease = place.next().await;
            let mut client = open(&place.info).await.client;
            effect(&mut client, &lease, Duration::ZERO).await.unwrap();
            assert!(lease.release().await.unwrap());
        }
    });
    join_all(holders).await;
    place.judge("no fault", 4 * turns, Duration::ZERO).await;
}
