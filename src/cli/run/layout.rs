//! The file that the next dashboard begins with. Without it nothing is missing: what fails here is nobody's trouble.

use std::io::Read;
use std::path::PathBuf;

use locktop_base::file::{Folder, How};

use crate::action::audit::directory;
use crate::app::App;
use crate::app::layout::Layout;
use crate::app::screens::Screen;

/// A longer file is none of ours.
const LONGEST: u64 = 64 * 1024;

const FILE: &str = "layout.toml";

fn place() -> Option<PathBuf> {
    directory(&|name| std::env::var(name).ok())
}

/// Begins as the last one was left, but for the screen where one is named.
pub(super) fn restore(app: &mut App, named: Option<Screen>) {
    let Some(place) = place().filter(|place| place.is_dir()) else { return };
    let Ok(file) = Folder::open(&place).and_then(|folder| folder.file(FILE, How::Existing)) else { return };
    let mut text = String::new();
    if file.take(LONGEST + 1).read_to_string(&mut text).is_ok_and(|length| length as u64 <= LONGEST) {
        app.lay_out(Layout::parse(&text), named);
    }
}

/// Writes it whole: another dashboard that ends at the same moment writes one of its own, and one of them stays.
pub(super) fn keep(layout: &Layout) {
    let Some(place) = place() else { return };
    let Ok(folder) = Folder::open(&place) else { return };
    let _ = folder.replace(FILE, layout.text().as_bytes());
}
