//! How the screens end: at a signal, or at a panic in any thread or task.

use std::io;
use std::panic::PanicHookInfo;
use std::process::exit;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc};

use super::terminal;

/// How long the screens have to end, and the terminal to be restored, before the program exits: a write to a terminal that
/// is not read can block forever.
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
    exit(128 + i32::from(number))
}

fn is_asked(place: &str) -> bool {
    cfg!(debug_assertions) && std::env::var_os("LOCKTOP_PANIC").is_some_and(|asked| asked == place)
}

/// Panics on request, in debug builds only, if `LOCKTOP_PANIC` names this place.
///
/// # Panics
/// On purpose.
pub fn panic_if_asked(place: &str) {
    assert!(!is_asked(place), "LOCKTOP_PANIC={place} asks for a panic");
}

/// Panics when SIGUSR1 arrives, if `LOCKTOP_PANIC` names this place. Never returns otherwise.
///
/// # Panics
/// On purpose.
pub async fn panic_at_signal(place: &str) {
    if is_asked(place)
        && let Ok(mut asked) = signal(SignalKind::user_defined1())
    {
        asked.recv().await;
        panic_if_asked(place);
    }
    std::future::pending::<()>().await;
}

const FAILED: i32 = 1;

static TOLD: Notify = Notify::const_new();

/// Makes every panic end the screens: the terminal is restored, and the message is written to it. Call it once, before any task is started.
pub fn end_the_screens() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| on_panic(info, &before)));
}

pub(super) async fn told() {
    TOLD.notified().await;
}

fn on_panic(info: &PanicHookInfo<'_>, before: &dyn Fn(&PanicHookInfo<'_>)) {
    terminal::leave_alone();
    let (written, wait) = channel::<()>();
    let watch = move || {
        if wait.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
            exit(FAILED);
        }
    };
    // If the thread cannot be started, there is no time limit, but the message is still written.
    let _ = std::thread::Builder::new().spawn(watch);
    let given_back = terminal::give_back_in_time();
    before(info);
    if !given_back {
        // The screens are blocked in a write as well.
        exit(FAILED);
    }
    drop(written);
    TOLD.notify_one();
}
