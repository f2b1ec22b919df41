//! A panic in any thread or task ends the program: the terminal is restored, the message is written to it, and the screens
//! end.

use std::panic::PanicHookInfo;
use std::process::exit;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::Notify;

use super::terminal;

/// Time limit for restoring the terminal and writing the message, which can block forever if the terminal is not read.
const GRACE: Duration = Duration::from_secs(2);

const FAILED: i32 = 1;

static TOLD: Notify = Notify::const_new();

/// Makes every panic end the screens. Call it once, before any task is started.
pub fn end_the_screens() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| on_panic(info, &before)));
}

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
