//! Listeners that are not PostgreSQL servers, or not correct ones.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use locktop::pg::error::ConnectErrorKind;

use super::refused;
use super::server::info;

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn to(address: SocketAddr, more: &str) -> locktop::pg::conninfo::ConnInfo {
    info(&format!("host={} port={} user=u connect_timeout=1 {more}", address.ip(), address.port()))
}

#[tokio::test]
async fn it_accepts_and_never_answers() {
    let (_listener, address) = listen().await;
    for mode in ["disable", "prefer", "require"] {
        let error = refused(&to(address, &format!("sslmode={mode}"))).await;
        assert_eq!(
            error.to_string(),
            format!(
                "{address} accepted the connection but did not answer within 1 s: the server is stuck \
                 or overloaded, or it is not a PostgreSQL server"
            )
        );
    }
}

#[tokio::test]
async fn it_cannot_be_reached() {
    // A full backlog drops new connections, as a firewall does.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    loop {
        assert!(held.len() < 64, "the backlog is never full");
        let limit = std::time::Duration::from_millis(500);
        match tokio::time::timeout(limit, TcpStream::connect(address)).await {
            Ok(stream) => held.push(stream.unwrap()),
            Err(_) => break,
        }
    }
    let error = refused(&to(address, "")).await;
    assert!(matches!(error.kind, ConnectErrorKind::TimedOut { seconds: 1, .. }), "{error}");
    assert!(error.to_string().starts_with(&format!("could not reach {address} within 1 s")), "{error}");
}

#[tokio::test]
async fn it_hangs_up() {
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 8]).await;
        }
    });
    for mode in ["disable", "require"] {
        let error = refused(&to(address, &format!("sslmode={mode}"))).await;
        assert!(error.kind == ConnectErrorKind::Closed, "{mode}: {error}");
    }
}

#[tokio::test]
async fn it_speaks_another_protocol() {
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n").await;
            let _ = stream.read(&mut [0; 1024]).await;
        }
    });
    // "S" even looks like an answer to the request for TLS.
    for mode in ["disable", "prefer", "require"] {
        let error = refused(&to(address, &format!("sslmode={mode}"))).await.to_string();
        assert!(error.contains(&address.to_string()) && !error.contains('\n'), "{mode}: {error}");
    }
}

/// What a connection to the fake begins with: the request for TLS, or the version of the protocol.
async fn first_word(stream: &mut TcpStream) -> u32 {
    let mut head = [0; 8];
    stream.read_exact(&mut head).await.unwrap();
    u32::from_be_bytes([head[4], head[5], head[6], head[7]])
}

#[tokio::test]
async fn its_tls_does_not_work() {
    const TLS_REQUEST: u32 = 80_877_103;
    const PROTOCOL_3_0: u32 = 196_608;
    let (listener, address) = listen().await;
    let (saw, mut seen) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let word = first_word(&mut stream).await;
            saw.send(word).unwrap();
            if word == TLS_REQUEST {
                stream.write_all(b"S").await.unwrap();
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream.write_all(b"this is no TLS at all, whatever was said").await;
            }
        }
    });
    let strict = refused(&to(address, "sslmode=require")).await;
    assert!(strict.kind == ConnectErrorKind::TlsFailed, "{strict}");
    assert_eq!(seen.recv().await, Some(TLS_REQUEST));
    let lax = refused(&to(address, "sslmode=prefer")).await;
    assert!(matches!(&lax.kind, ConnectErrorKind::Several(all) if all.len() == 2), "{lax}");
    assert_eq!((seen.recv().await, seen.recv().await), (Some(TLS_REQUEST), Some(PROTOCOL_3_0)));
    assert!(seen.try_recv().is_err(), "require never continued without TLS");
}
