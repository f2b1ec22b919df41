use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

fn read(payload: &Value) -> Result<Request, String> {
    Request::read(payload.as_object().unwrap())
}

/// A server that answers one request with that: where it is, and what it was asked.
async fn server(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        let is_whole = |asked: &[u8]| {
            let text = String::from_utf8_lossy(asked).to_lowercase();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            length.is_none_or(|length| body.len() >= length.parse().unwrap())
        };
        while !is_whole(&asked) {
            let mut buffer = [0; 4096];
            let count = client.read(&mut buffer).await.unwrap();
            assert!(count > 0, "{:?}", String::from_utf8_lossy(&asked));
            asked.extend(&buffer[..count]);
        }
        client.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(asked).unwrap()
    });
    (url, asked)
}

#[test]
fn what_cannot_be_sent_is_said() {
    for (payload, said) in [
        (json!({}), "has no \"url\""),
        (json!({"url": "ftp://a"}), "http:// or https://"),
        (json!({"url": "/a"}), "http:// or https://"),
        (json!({"url": "http://u:p@a/"}), "a user in it"),
        (json!({"url": "http://a", "method": "a b"}), "\"method\""),
        (json!({"url": "http://a", "method": "CONNECT"}), "tunnel"),
        (json!({"url": "http://a", "headers": {"a b": "c"}}), "cannot be sent"),
        (json!({"url": "http://a", "headers": {"a": "b\r\nc: d"}}), "cannot be sent"),
        (json!({"url": "http://a", "headers": {"Content-Length": "1"}}), "cannot be sent"),
        (json!({"url": "http://a", "headers": ["a"]}), "no object of texts"),
        (json!({"url": "http://a", "status": "200"}), "\"status\""),
        (json!({"url": "http://a", "status": []}), "\"status\""),
        (json!({"url": "http://a", "status": [99]}), "\"status\""),
    ] {
        let error = read(&payload).unwrap_err();
        assert!(error.contains(said), "{payload}: {error}");
    }
    let place = |url: &str| read(&json!({"url": url})).unwrap().place();
    assert_eq!(place("https://a/b?c"), ("a".to_owned(), 443));
    assert_eq!(place("http://[::1]:8080"), ("::1".to_owned(), 8080));
}

#[tokio::test]
async fn a_request_is_sent_as_it_was_asked_for() {
    let (url, asked) = server("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\ndone\n").await;
    let payload = json!({"url": format!("{url}/a/b?c=d"), "headers": {"X-Key": "k"}, "body": {"n": 1}});
    assert_eq!(send(&read(&payload).unwrap()).await, Ok("200 OK: done".to_owned()));
    let asked = asked.await.unwrap();
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    let mut head: Vec<&str> = head.lines().collect();
    assert_eq!((head.remove(0), body), ("POST /a/b?c=d HTTP/1.1", "{\"n\":1}"));
    head.sort_unstable();
    let host = format!("host: {}", url.strip_prefix("http://").unwrap());
    let agent = concat!("user-agent: locktop/", env!("CARGO_PKG_VERSION"));
    let expected =
        ["accept: */*", "content-length: 7", "content-type: application/json", &host, agent, "x-key: k"];
    assert_eq!(head, expected);
}

#[tokio::test]
async fn an_answer_is_good_or_the_error_has_it() {
    let not_found = "HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nno\x1b[2Jway";
    for (status, good) in [(None, false), (Some(json!(404)), true), (Some(json!([200, 404])), true)] {
        let (url, asked) = server(not_found).await;
        let mut payload = json!({"url": url});
        if let Some(status) = status {
            payload["status"] = status;
        }
        let said = send(&read(&payload).unwrap()).await;
        assert!(asked.await.unwrap().starts_with("GET / HTTP/1.1\r\n"));
        assert_eq!(said.is_ok(), good, "{said:?}");
        let said = said.unwrap_or_else(|error| error);
        assert!(said.contains("404 Not Found: no") && !said.contains('\u{1b}'), "{said:?}");
    }
    // Not followed.
    let (url, _) =
        server("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n").await;
    let said = send(&read(&json!({"url": url})).unwrap()).await;
    assert_eq!(said, Err("the server answered 302 Found".to_owned()));
}

#[tokio::test]
async fn no_answer_is_a_failure() {
    let (url, _) = server("").await;
    let error = send(&read(&json!({"url": url})).unwrap()).await.unwrap_err();
    assert!(error.starts_with("the request failed: "), "{error}");
    let (url, _) = server("what?\r\n\r\n").await;
    let error = send(&read(&json!({"url": url})).unwrap()).await.unwrap_err();
    assert!(error.starts_with("the request failed: "), "{error}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = send(&read(&json!({"url": format!("http://127.0.0.1:{port}")})).unwrap()).await.unwrap_err();
    assert!(error.starts_with(&format!("no connection to 127.0.0.1 port {port}: ")), "{error}");
    // Nobody speaks TLS there.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let said = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        client.write_all(b"what?\r\n\r\n").await.unwrap();
        client.read_to_end(&mut Vec::new()).await
    });
    let error = send(&read(&json!({"url": url})).unwrap()).await.unwrap_err();
    said.abort();
    assert!(error.starts_with("no TLS to 127.0.0.1: ") || error.starts_with("no certificates"), "{error}");
}
