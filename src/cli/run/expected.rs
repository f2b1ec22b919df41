//! Passes changes of expected blockers to the poll, and adds new entries to the config file on request.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::app::App;
use crate::config::append::add_expected;
use crate::feed::live::PollControl;
use crate::model::expected::ExpectedBlocker;
use crate::runtime::Expecting;
use crate::text::one_line;

pub(super) fn expecting(app: &App, control: &mut PollControl) -> Expecting {
    let expected = control.expecting(Arc::clone(&app.expected));
    let file = app.settings.config_file.clone();
    let (said, written) = mpsc::unbounded_channel();
    let say = Box::new(move |entries: Arc<[ExpectedBlocker]>, added: Vec<ExpectedBlocker>| {
        tracing::info!("[[expected]] entries are now: {}", entries.len());
        expected.send_replace(entries);
        if let Some(file) = file.clone().filter(|_| !added.is_empty()) {
            keep(file, added, said.clone());
        }
    });
    Expecting { say, written }
}

/// Adds entries to the config file in a separate thread, since a home directory can be on a network. Sends the result.
fn keep(file: PathBuf, added: Vec<ExpectedBlocker>, said: mpsc::UnboundedSender<String>) {
    let tell = said.clone();
    let write = move || {
        let place = file.display();
        let text = match add_expected(&file, &added) {
            Ok(()) => format!("added to {place}"),
            Err(error) => {
                let entries: Vec<String> = added.iter().map(ExpectedBlocker::toml).collect();
                let entries = entries.concat().trim_end().replace('\n', "; ");
                format!("{place}: {error}; it is expected in this run only. The entry: {entries}")
            }
        };
        tracing::info!("{text}");
        // The receiver may be dropped.
        let _ = said.send(one_line(&text).into_owned());
    };
    if let Err(error) = std::thread::Builder::new().name("config".to_owned()).spawn(write) {
        let _ = tell.send(format!("no thread to write the config file: {error}"));
    }
}
