use std::sync::Arc;

use super::keymap::KeyMap;
use crate::model::alert::Ways;
use crate::model::expected::ExpectedBlocker;
use crate::model::zone::Zone;

#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of the server in the header: the name from the config, or the host.
    pub target: String,
    /// The key bindings, with the changes of the config's `[keys]`.
    pub keymap: KeyMap,
    /// The zone in which times of day are shown and typed.
    pub zone: Zone,
    /// Shown in the header, such as "demo".
    pub note: Option<String>,
    /// Actions cannot be requested: their keys are not bound.
    pub read_only: bool,
    /// Snapshots are kept, and can be shown again.
    pub history: bool,
    pub notify: Ways,
    pub expected: Arc<[ExpectedBlocker]>,
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
        }
    }
}
