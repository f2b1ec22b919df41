//! What every part of locktop uses: [`text`] that is safe to show, and the [`clock`].
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a test may"
    )
)]

pub mod clock;
pub mod text;
