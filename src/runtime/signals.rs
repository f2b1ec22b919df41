use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::terminal;

/// How long the screens have to end before the program exits without them: they can be blocked in a write to a terminal
/// that is not read.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    End(u8),
    Stop,
    Continue,
}

/// Catches terminating signals from now on, and returns the number of the first.
pub fn ending() -> io::Result<impl Future<Output = u8>> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = hangup.recv() => 1,
            _ = interrupt.recv() => 2,
            _ = terminate.recv() => 15,
        }
    })
}

/// Listens on a thread other than that of the screens. The second terminating signal ends the program at once.
pub(super) fn listen() -> io::Result<mpsc::UnboundedReceiver<Signal>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut stop = signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?;
    let mut go_on = signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
    tokio::spawn(async move {
        let mut ending = false;
        loop {
            let signal = tokio::select! {
                _ = terminate.recv() => Signal::End(15),
                _ = hangup.recv() => Signal::End(1),
                _ = interrupt.recv() => Signal::End(2),
                _ = quit.recv() => Signal::End(3),
                _ = stop.recv() => Signal::Stop,
                _ = go_on.recv() => Signal::Continue,
            };
            // No receiver is left once the screens have ended and the program disconnects from the server.
            let _ = sender.send(signal);
            if let Signal::End(number) = signal {
                if std::mem::replace(&mut ending, true) {
                    end_now(number);
                }
                tokio::spawn(end_in_time(number));
            }
        }
    });
    Ok(receiver)
}

async fn end_in_time(number: u8) {
    tokio::time::sleep(GRACE).await;
    if terminal::is_taken() {
        end_now(number);
    }
}

fn end_now(number: u8) -> ! {
    terminal::give_back_in_time();
    std::process::exit(128 + i32::from(number))
}
