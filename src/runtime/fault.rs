//! Panics on request, in debug builds alone: the tests look at what a panic leaves of the terminal.

/// Panics where `LOCKTOP_PANIC` names this place.
#[expect(clippy::panic, reason = "that is what it is for")]
pub fn panic_if_asked(place: &str) {
    if cfg!(debug_assertions) && std::env::var_os("LOCKTOP_PANIC").is_some_and(|asked| asked == place) {
        panic!("LOCKTOP_PANIC={place} asks for a panic");
    }
}
