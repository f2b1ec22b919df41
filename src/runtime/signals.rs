//! Signals: the terminal is given back whatever the program is doing.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::terminal;

/// How long the screens have to end by themselves, before the program ends without them: they may be blocked in a write
/// to a terminal that nobody reads.
const GRACE: Duration = Duration::from_secs(2);

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// End; the number of the signal.
    End(u8),
    /// Give the terminal back and stop.
    Stop,
    /// Go on after a stop.
    Continue,
}

/// Listens, on a thread other than that of the screens.
///
/// # Errors
/// When a handler cannot be installed.
pub(super) fn listen() -> io::Result<mpsc::UnboundedReceiver<Signal>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut stop = signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?;
    let mut go_on = signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
    tokio::spawn(async move {
        loop {
            let signal = tokio::select! {
                _ = terminate.recv() => Signal::End(15),
                _ = hangup.recv() => Signal::End(1),
                _ = interrupt.recv() => Signal::End(2),
                _ = quit.recv() => Signal::End(3),
                _ = stop.recv() => Signal::Stop,
                _ = go_on.recv() => Signal::Continue,
            };
            let heard = sender.send(signal).is_ok();
            if let Signal::End(number) = signal {
                tokio::time::sleep(GRACE).await;
                terminal::give_back();
                std::process::exit(128 + i32::from(number));
            }
            if !heard {
                break;
            }
        }
    });
    Ok(receiver)
}
