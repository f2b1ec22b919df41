//! A panic, in whatever thread or task, is the end of the program: the terminal is given back first, the message is
//! written on it, and the screens end.

use std::panic::PanicHookInfo;
use std::process::exit;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::Notify;

use super::terminal;

/// How long giving back and the message may take: on a terminal that nobody reads they would take for ever.
const GRACE: Duration = Duration::from_secs(2);

/// The exit status where the screens cannot end by themselves.
const FAILED: i32 = 1;

static TOLD: Notify = Notify::const_new();

/// From now on a panic ends the screens. To be called once, before any task is started.
pub fn end_the_screens() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| on_panic(info, &before)));
}

/// Waits until there was one and its message is written.
pub(super) async fn told() {
    TOLD.notified().await;
}

fn on_panic(info: &PanicHookInfo<'_>, before: &dyn Fn(&PanicHookInfo<'_>)) {
    terminal::leave_alone();
    let (written, wait) = mpsc::channel::<()>();
    let watch = move || {
        if wait.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
            exit(FAILED);
        }
    };
    // Without a thread more there is no limit, and still a message.
    let _ = std::thread::Builder::new().spawn(watch);
    let given_back = terminal::give_back_in_time();
    before(info);
    if !given_back {
        // The screens are blocked in a write, too.
        exit(FAILED);
    }
    drop(written);
    TOLD.notify_one();
}
