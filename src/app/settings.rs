//! What the screens are told before the first look.

use std::path::PathBuf;
use std::sync::Arc;

use super::keymap::KeyMap;
use crate::model::alert::Ways;
use crate::model::expected::ExpectedBlocker;
use crate::model::zone::Zone;

/// What does not change while the program runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the header calls the server: the name from the config, or the host.
    pub target: String,
    /// Which key does what, after the config's `[keys]`.
    pub keymap: KeyMap,
    /// The zone in which times of day are shown and typed.
    pub zone: Zone,
    /// Said in the header, such as "demo".
    pub note: Option<String>,
    /// Nothing can be asked for that acts: its keys are not bound.
    pub read_only: bool,
    /// Looks are kept, and one can go back to them.
    pub history: bool,
    /// What is done when something becomes critical.
    pub notify: Ways,
    /// The blockers that the config expects at the start.
    pub expected: Arc<[ExpectedBlocker]>,
    /// The config file, where there is one: entries can be added to it.
    pub config_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            target: String::new(),
            keymap: KeyMap::default(),
            zone: chrono::Offset::fix(&chrono::Utc).into(),
            note: None,
            read_only: false,
            history: false,
            notify: Ways::default(),
            expected: Arc::default(),
            config_file: None,
        }
    }
}
