//! Panics on request, in debug builds alone: the tests look at what a panic leaves of the terminal.

use tokio::signal::unix::{SignalKind, signal};

fn is_asked(place: &str) -> bool {
    cfg!(debug_assertions) && std::env::var_os("LOCKTOP_PANIC").is_some_and(|asked| asked == place)
}

/// Panics where `LOCKTOP_PANIC` names this place.
///
/// # Panics
/// That is what it is for.
pub fn panic_if_asked(place: &str) {
    assert!(!is_asked(place), "LOCKTOP_PANIC={place} asks for a panic");
}

/// The same when SIGUSR1 arrives. Never ends otherwise.
///
/// # Panics
/// That is what it is for.
pub async fn panic_at_signal(place: &str) {
    if is_asked(place)
        && let Ok(mut asked) = signal(SignalKind::user_defined1())
    {
        asked.recv().await;
        panic_if_asked(place);
    }
    std::future::pending::<()>().await;
}
