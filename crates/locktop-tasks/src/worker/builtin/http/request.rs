//! What is asked of whom.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Uri};
use serde_json::{Map, Value};

use super::super::fields;

const AGENT: &str = concat!("locktop/", env!("CARGO_PKG_VERSION"));

/// A request, and which answers are good.
#[derive(Debug, PartialEq)]
pub(in super::super) struct Request {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
    /// Statuses that are good; none: 200 to 299.
    expected: Vec<u16>,
}

impl Request {
    /// From a payload; the error says what is wrong with it.
    pub(in super::super) fn read(payload: &Map<String, Value>) -> Result<Self, String> {
        let uri = uri(&fields::filled(payload, "url")?)?;
        let mut headers = headers(payload)?;
        let body = match payload.get("body") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(json) => {
                headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
                Some(json.to_string())
            }
        };
        let method = match fields::text(payload, "method")? {
            Some(method) => method.parse().map_err(|_| "has a \"method\" that is none".to_owned())?,
            None if body.is_some() => Method::POST,
            None => Method::GET,
        };
        if method == Method::CONNECT {
            return Err("has a \"method\" that makes a tunnel".to_owned());
        }
        let body = Bytes::from(body.unwrap_or_default());
        Ok(Self { method, uri, headers, body, expected: statuses(payload)? })
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// Host and port to connect to: without brackets around an IPv6 address, and with the scheme's own port
    /// where none is named.
    pub(super) fn place(&self) -> (String, u16) {
        let host = self.uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        (host.to_owned(), self.uri.port_u16().unwrap_or(if self.is_encrypted() { 443 } else { 80 }))
    }

    pub(super) fn expects(&self, status: u16) -> bool {
        if self.expected.is_empty() { (200..300).contains(&status) } else { self.expected.contains(&status) }
    }

    pub(super) fn message(&self) -> Result<hyper::Request<Full<Bytes>>, String> {
        let path = self.uri.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str);
        let mut request = hyper::Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = path.parse().map_err(|error| format!("the path is no path: {error}"))?;
        *request.headers_mut() = self.headers.clone();
        Ok(request)
    }
}

fn uri(text: &str) -> Result<Uri, String> {
    let wrong = || "has a \"url\" that does not begin with http:// or https:// and a host".to_owned();
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
        return Err(wrong());
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("has a \"url\" with a user in it: that goes into \"headers\"".to_owned());
    }
    Ok(uri)
}

fn headers(payload: &Map<String, Value>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields::texts(payload, "headers")? {
        let wrong = || {
            let name = locktop_base::text::one_line_prefix(&name, 60);
            format!("has \"headers\" with \"{name}\", which cannot be sent")
        };
        let key: HeaderName = name.parse().map_err(|_| wrong())?;
        // Those are ours: the length is what it is.
        if matches!(key.as_str(), "content-length" | "transfer-encoding" | "connection" | "upgrade") {
            return Err(wrong());
        }
        headers.append(key, HeaderValue::from_str(&value).map_err(|_| wrong())?);
    }
    let uri = uri(&fields::filled(payload, "url")?)?;
    let host = uri.authority().map_or("", hyper::http::uri::Authority::as_str);
    let host = HeaderValue::from_str(host).map_err(|error| error.to_string())?;
    headers.entry(HOST).or_insert(host);
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    Ok(headers)
}

fn statuses(payload: &Map<String, Value>) -> Result<Vec<u16>, String> {
    let wrong = || "has a \"status\" that is no number from 100 to 599, nor a list of them".to_owned();
    let one = |value: &Value| {
        let status = value.as_u64().and_then(|status| u16::try_from(status).ok());
        status.filter(|status| (100..600).contains(status)).ok_or_else(wrong)
    };
    match payload.get("status") {
        None => Ok(Vec::new()),
        Some(Value::Array(all)) if all.is_empty() => Err(wrong()),
        Some(Value::Array(all)) => all.iter().map(one).collect(),
        Some(value) => Ok(vec![one(value)?]),
    }
}
