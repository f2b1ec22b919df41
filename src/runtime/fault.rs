//! Panics on request, in debug builds alone: the tests look at what a panic leaves of the terminal.

/// Panics where `LOCKTOP_PANIC` names this place.
///
/// # Panics
/// That is what it is for.
pub fn panic_if_asked(place: &str) {
    let asked =
        cfg!(debug_assertions) && std::env::var_os("LOCKTOP_PANIC").is_some_and(|asked| asked == place);
    assert!(!asked, "LOCKTOP_PANIC={place} asks for a panic");
}
