//! The file that the next dashboard begins with. Without it nothing is missing: what fails here is nobody's trouble.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use crate::action::audit::directory;
use crate::app::App;
use crate::app::layout::Layout;
use crate::app::screens::Screen;

/// A longer file is none of ours.
const LONGEST: u64 = 64 * 1024;

fn path() -> Option<PathBuf> {
    Some(directory(&|name| std::env::var(name).ok())?.join("layout.toml"))
}

/// Begins as the last one was left, but for the screen where one is named.
pub(super) fn restore(app: &mut App, named: Option<Screen>) {
    let text = path()
        .filter(|path| fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LONGEST));
    let Some(text) = text.and_then(|path| fs::read_to_string(path).ok()) else { return };
    app.lay_out(Layout::parse(&text), named);
}

/// Writes it whole: another dashboard that ends at the same moment writes one of its own, and one of them stays.
pub(super) fn keep(layout: &Layout) {
    let Some(path) = path() else { return };
    let Some(folder) = path.parent() else { return };
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let Ok(mut file) = tempfile::NamedTempFile::new_in(folder) else { return };
    if std::io::Write::write_all(&mut file, layout.text().as_bytes()).is_ok() {
        let _ = file.persist(path);
    }
}
