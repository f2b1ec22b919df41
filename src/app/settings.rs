use std::fmt::Write;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::App;
use super::keymap::KeyMap;
use super::pane::Sort;
use super::panes::Pane;
use super::screens::Screen;
use crate::model::blame::{BlameGrouping, BlamePeriod};
use crate::model::finding::AlertWays;
use crate::model::thresholds::ExpectedBlocker;
use crate::model::zone::Zone;

#[derive(Debug, Clone, Default)]
pub struct AppSettings {
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
    pub notify: AlertWays,
    pub expected: Arc<[ExpectedBlocker]>,
}

/// Filters and marks are not saved: they apply only to the moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SavedLayout {
    screen: Option<Screen>,
    all_locks: bool,
    wrap: Option<bool>,
    mouse: bool,
    blamed: (BlameGrouping, BlamePeriod),
    sorts: Vec<(Pane, Sort)>,
}

impl SavedLayout {
    pub fn of(app: &App) -> Self {
        let sort = |pane: Pane| app.pane(pane).sort.map(|sort| (pane, sort));
        Self {
            screen: Some(app.screen),
            all_locks: app.all_locks,
            wrap: Some(app.wrap),
            mouse: app.mouse,
            blamed: app.blamed,
            sorts: Pane::ALL.into_iter().filter_map(sort).collect(),
        }
    }

    /// Reads the output of [`Self::text`]. Unknown parts from another version are ignored: the file is not written by hand.
    pub fn parse(text: &str) -> Self {
        let (table, _) = DeTable::parse_recoverable(text);
        let table = table.get_ref();
        let value = |name: &str| table.get(name).map(toml::Spanned::get_ref);
        let word = |name: &str| value(name).and_then(DeValue::as_str).unwrap_or_default().to_owned();
        let switch = |name: &str| value(name).and_then(DeValue::as_bool);
        let (screen, group, span) = (word("screen"), word("blame_by"), word("blame_span"));
        let sort = |pane: Pane| {
            let order = value("sort")?.as_table()?.get(pane.title())?.get_ref().as_str()?;
            let (descending, name) = order.strip_prefix('-').map_or((false, order), |name| (true, name));
            let headings = pane.table().headings();
            let column = headings.iter().find(|heading| heading.name == name)?;
            Some((pane, Sort { column: column.name, descending }))
        };
        Self {
            screen: Screen::ALL.into_iter().find(|known| known.definition().name == screen),
            all_locks: switch("all_locks").unwrap_or_default(),
            wrap: switch("wrap"),
            mouse: switch("mouse").unwrap_or_default(),
            blamed: (
                group.parse().unwrap_or_default(),
                BlamePeriod::ALL.iter().copied().find(|known| known.as_str() == span).unwrap_or_default(),
            ),
            sorts: Pane::ALL.into_iter().filter_map(sort).collect(),
        }
    }

    pub fn text(&self) -> String {
        let mut text =
            "# Written by locktop when it exits, unless its config has remember = false.\n".to_owned();
        if let Some(screen) = self.screen {
            let _ = writeln!(text, "screen = \"{}\"", screen.definition().name);
        }
        let _ = writeln!(text, "all_locks = {}", self.all_locks);
        let _ = writeln!(text, "wrap = {}", self.wrap.unwrap_or(true));
        let _ = writeln!(text, "mouse = {}", self.mouse);
        let _ = writeln!(text, "blame_by = \"{}\"", self.blamed.0.as_str());
        let _ = writeln!(text, "blame_span = \"{}\"", self.blamed.1.as_str());
        let _ = writeln!(text, "\n# By pane: the column, with a minus if the largest is first.\n[sort]");
        for (pane, sort) in &self.sorts {
            let minus = if sort.descending { "-" } else { "" };
            let _ = writeln!(text, "\"{}\" = \"{minus}{}\"", pane.title(), sort.column);
        }
        text
    }
}

impl App {
    /// Restores a layout. Its screen is restored only if no screen is named, and shown only if the server has data for it.
    pub fn lay_out(&mut self, layout: SavedLayout, named: Option<Screen>) {
        if let Some(screen) = layout.screen.filter(|_| named.is_none()) {
            self.screen = screen;
            self.only_if_there = true;
        }
        (self.all_locks, self.blamed) = (layout.all_locks, layout.blamed);
        (self.wrap, self.mouse) = (layout.wrap.unwrap_or(self.wrap), layout.mouse || self.mouse);
        for (pane, sort) in layout.sorts {
            self.pane_mut(pane).sort = Some(sort);
        }
        self.keep_focus();
    }
}
