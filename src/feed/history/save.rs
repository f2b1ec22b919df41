//! Saves the history as a recording.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;

use super::{Reply, Store};
use crate::clock;
use crate::feed::digest::Digest;
use crate::feed::record::redact::Redaction;
use crate::feed::record::{Options, Tape};
use crate::model::past::Look;
use crate::wire::record::container::About;

pub(super) fn start(mut store: Store, path: PathBuf, about: About, replies: UnboundedSender<Reply>) {
    let answer = replies.clone();
    let write = move || {
        let said = save(&mut store, &path, About { created: Some(clock::wall()), ..about })
            .unwrap_or_else(|why| why);
        // The receiver may be dropped.
        let _ = replies.send(Reply::Saved(said));
    };
    if let Err(error) = std::thread::Builder::new().name("save".to_owned()).spawn(write) {
        let _ = answer.send(Reply::Saved(format!("no thread to write snapshots: {error}")));
    }
}

/// Writes all snapshots like `locktop record`: literals are removed from statements about passwords.
fn save(store: &mut Store, path: &Path, about: About) -> Result<String, String> {
    let count = store.len();
    if count == 0 {
        return Err("no snapshot yet".to_owned());
    }
    let tape = Tape::open(Options::new_file(path, about)).map_err(|error| error.to_string())?;
    let said = write(store, path, tape, count).map_err(|why| format!("{}: {why}", path.display()));
    if said.is_err() {
        // A partial file would make the next attempt fail.
        let _ = std::fs::remove_file(path);
    }
    said
}

fn write(store: &mut Store, path: &Path, mut tape: Tape, count: usize) -> Result<String, String> {
    for place in 0..count {
        // An unreadable snapshot is left out.
        let Ok(mut kept) = store.read(place) else { continue };
        Redaction::None.apply_to_kept(&mut kept);
        let (past, notes) = (Arc::new(kept.past.clone()), Arc::clone(&kept.notes));
        let view = Digest::view_of(kept, store.target, &store.thresholds);
        tape.write(&Look { view, past, notes }).map_err(|error| error.to_string())?;
    }
    let written = tape.looks();
    let losses = tape.losses().map(|losses| format!("; {losses}")).unwrap_or_default();
    tape.end().map_err(|error| error.to_string())?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let looks = crate::text::count(written);
    let missing = match (count as u64).saturating_sub(written) {
        0 => String::new(),
        missing => {
            format!("; {} are missing: they cannot be read, or are too large", crate::text::count(missing))
        }
    };
    let path = path.display();
    Ok(format!("{looks} snapshots are in {path}: for locktop replay and locktop report{missing}{losses}"))
}
