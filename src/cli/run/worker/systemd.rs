//! Notifications for a systemd service of type `notify`, see `sd_notify(3)`: one datagram per message to the socket in
//! `NOTIFY_SOCKET`. Without that variable nothing is sent.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;

#[derive(Debug, Clone, Default)]
pub(super) struct Systemd {
    socket: Option<String>,
    watchdog: Option<Duration>,
}

impl Systemd {
    pub(super) fn of(env: impl Fn(&str) -> Option<String>) -> Self {
        let own = |pid: String| pid.parse() == Ok(std::process::id());
        // If `WATCHDOG_PID` is set, the watchdog is for that process.
        let watchdog = env("WATCHDOG_USEC").filter(|_| env("WATCHDOG_PID").is_none_or(own));
        let watchdog = watchdog.and_then(|micros| micros.parse().ok()).map(Duration::from_micros);
        Self { socket: env("NOTIFY_SOCKET"), watchdog: watchdog.filter(|time| !time.is_zero()) }
    }

    /// The interval for watchdog notifications, if required: half of the watchdog timeout.
    pub(super) fn pulse(&self) -> Option<Duration> {
        self.socket.as_ref().and(self.watchdog).map(|time| time / 2)
    }

    /// Sends a notification. Errors are ignored.
    pub(super) fn say(&self, words: &str) {
        if let Some(name) = &self.socket {
            let _ = send(name, words);
        }
    }
}

fn send(name: &str, words: &str) -> std::io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // Do not block on a full queue.
    socket.set_nonblocking(true)?;
    #[cfg(target_os = "linux")]
    if let Some(name) = name.strip_prefix('@') {
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
        return socket.send_to_addr(words.as_bytes(), &address).map(drop);
    }
    socket.send_to(words.as_bytes(), name).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_comes_where_it_is_awaited() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let ear = UnixDatagram::bind(&path).unwrap();
        let env = |name: &str| match name {
            "NOTIFY_SOCKET" => Some(path.to_str().unwrap().to_owned()),
            "WATCHDOG_USEC" => Some("3000000".to_owned()),
            "WATCHDOG_PID" => Some(std::process::id().to_string()),
            _ => None,
        };
        let systemd = Systemd::of(env);
        assert_eq!(systemd.pulse(), Some(Duration::from_millis(1500)));
        systemd.say("READY=1");
        let mut heard = [0; 64];
        let count = ear.recv(&mut heard).unwrap();
        assert_eq!(&heard[..count], b"READY=1");
        // The watchdog of another process, and no watchdog.
        let others = |name: &str| if name == "WATCHDOG_PID" { Some("1".to_owned()) } else { env(name) };
        assert_eq!(Systemd::of(others).pulse(), None);
        assert_eq!(Systemd::of(|_| None).pulse(), None);
        Systemd::of(|_| None).say("READY=1");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_may_have_no_file() {
        let name = format!("locktop-test-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let ear = UnixDatagram::bind_addr(&address).unwrap();
        let place = format!("@{name}");
        Systemd::of(|of| (of == "NOTIFY_SOCKET").then(|| place.clone())).say("STOPPING=1");
        let mut heard = [0; 64];
        let count = ear.recv(&mut heard).unwrap();
        assert_eq!(&heard[..count], b"STOPPING=1");
    }
}
