//! A task that is an HTTP request.
//!
//! HTTP/1.1 on a connection of its own. Certificates are verified by the system's authorities (or those that `SSL_CERT_FILE` and
//! `SSL_CERT_DIR` name); redirects are not followed, and no proxy is asked.

mod request;

use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::Response;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

pub(super) use self::request::Request;
use locktop_base::text::{fit, one_line, one_line_prefix};

/// So much of an answer is read.
const READ: usize = 16 * 1024;
/// So much of it is told.
const TOLD: usize = 500;

/// Sends it: what the server answered, in one line. The error is for the job's row. Dropped, it closes the connection.
pub(super) async fn send(request: &Request) -> Result<String, String> {
    let (host, port) = request.place();
    let stream = TcpStream::connect((host.as_str(), port)).await;
    let stream = stream.map_err(|error| format!("no connection to {host} port {port}: {error}"))?;
    if !request.is_encrypted() {
        return exchange(request, stream).await;
    }
    let config = tokio::task::spawn_blocking(config).await.map_err(|error| error.to_string())??;
    let name = ServerName::try_from(host.clone()).map_err(|error| format!("no TLS to {host}: {error}"))?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    exchange(request, stream.map_err(|error| format!("no TLS to {host}: {error}"))?).await
}

/// What is trusted. Read for each request: a certificate may be renewed while we run.
fn config() -> Result<ClientConfig, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        return Err(format!("no certificates of authorities are to be found on this host{why}"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// What drives a connection; dropped, it stops.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn exchange<S>(request: &Request, stream: S) -> Result<String, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let failed = |error: hyper::Error| format!("the request failed: {}", causes(&error));
    let (mut sender, connection) =
        http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.map_err(failed)?;
    let _driver = Driver(tokio::spawn(connection).abort_handle());
    let response = sender.send_request(request.message()?).await.map_err(failed)?;
    let status = response.status();
    let said = body(response).await;
    let line = format!("{status}{}", if said.is_empty() { said } else { format!(": {said}") });
    if request.expects(status.as_u16()) { Ok(line) } else { Err(format!("the server answered {line}")) }
}

/// The beginning of an answer, in one line.
async fn body(response: Response<Incoming>) -> String {
    let (mut body, mut read) = (response.into_body(), Vec::new());
    while read.len() < READ {
        // The status has come: what is missing of the rest is no failure.
        let Some(Ok(frame)) = body.frame().await else { break };
        if let Some(data) = frame.data_ref() {
            read.extend_from_slice(data);
        }
    }
    fit(&one_line_prefix(&String::from_utf8_lossy(&read), TOLD), TOLD).into_owned()
}

/// An error with what is behind it: the outermost says little.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    one_line(&text).into_owned()
}

#[cfg(test)]
mod tests;
