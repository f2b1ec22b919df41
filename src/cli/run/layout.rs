//! The saved layout of the dashboard. All errors are ignored: it is only a convenience.

use std::io::Read;
use std::path::PathBuf;

use locktop_base::file::{Folder, How};

use crate::action::audit::directory;
use crate::app::App;
use crate::app::layout::Layout;
use crate::app::screens::Screen;

/// A longer file was not written by locktop.
const LONGEST: u64 = 64 * 1024;

const FILE: &str = "layout.toml";

fn place() -> Option<PathBuf> {
    directory(&|name| std::env::var(name).ok())
}

/// Restores the saved layout, except the screen if one is named.
pub(super) fn restore(app: &mut App, named: Option<Screen>) {
    let Some(place) = place().filter(|place| place.is_dir()) else { return };
    let Ok(file) = Folder::open(&place).and_then(|folder| folder.file(FILE, How::Existing)) else { return };
    let mut text = String::new();
    if file.take(LONGEST + 1).read_to_string(&mut text).is_ok_and(|length| length as u64 <= LONGEST) {
        app.lay_out(Layout::parse(&text), named);
    }
}

/// Replaces the whole file. If two dashboards end at the same time, one layout is kept.
pub(super) fn keep(layout: &Layout) {
    let Some(place) = place() else { return };
    let Ok(folder) = Folder::open(&place) else { return };
    let _ = folder.replace(FILE, layout.text().as_bytes());
}
