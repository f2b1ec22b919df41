//! Panics on request, in debug builds only: the tests check the state in which a panic leaves the terminal.

use tokio::signal::unix::{SignalKind, signal};

fn is_asked(place: &str) -> bool {
    cfg!(debug_assertions) && std::env::var_os("LOCKTOP_PANIC").is_some_and(|asked| asked == place)
}

/// Panics if `LOCKTOP_PANIC` names this place.
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
