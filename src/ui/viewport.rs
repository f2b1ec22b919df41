//! State that drawing keeps between two frames: how far each table is scrolled, and what can be clicked where.

use ratatui::layout::{Position, Rect};
use rustc_hash::FxHashMap;

use crate::app::message::Spot;
use crate::app::panes::Pane;

#[derive(Debug, Default)]
pub struct Viewport {
    offsets: FxHashMap<Pane, usize>,
    areas: Vec<(Pane, Rect, usize)>,
    spots: Vec<(Rect, Spot)>,
    pub page_rows: usize,
    /// Visible rows of the focused table when it was last drawn, even if something covers it.
    pub table_rows: usize,
    /// Rows of the box of the open question, which does not shrink.
    pub(super) dialog_rows: u16,
    /// Revision of the drawn dialog; `None` if there was none, or no room for it.
    pub dialog: Option<u64>,
}

impl Viewport {
    pub(super) fn begin(&mut self) {
        self.areas.clear();
        self.spots.clear();
        self.dialog = None;
    }

    pub(super) fn offset(&mut self, pane: Pane, cursor: usize, rows: usize, height: usize) -> usize {
        let offset = self.offsets.entry(pane).or_default();
        *offset = scrolled(*offset, cursor, rows, height);
        *offset
    }

    pub(super) fn place(&mut self, pane: Pane, area: Rect, offset: usize) {
        self.areas.push((pane, area, offset));
    }

    pub(super) fn spot(&mut self, area: Rect, spot: Spot) {
        self.spots.push((area, spot));
    }

    pub fn row(&self, column: u16, row: u16) -> Option<(Pane, usize)> {
        let place = Position { x: column, y: row };
        let (pane, area, offset) = self.areas.iter().find(|(_, area, _)| area.contains(place))?;
        Some((*pane, offset + usize::from(row - area.y)))
    }

    /// The item at a screen position; the one drawn last is on top.
    pub fn hit(&self, column: u16, row: u16) -> Option<Spot> {
        let place = Position { x: column, y: row };
        let spot = self.spots.iter().rev().find(|(area, _)| area.contains(place));
        let row = || self.row(column, row).map(|(pane, at)| Spot::Row(pane, at));
        spot.map(|(_, spot)| spot.clone()).or_else(row)
    }
}

fn scrolled(offset: usize, cursor: usize, rows: usize, height: usize) -> usize {
    if height == 0 {
        return 0;
    }
    let offset = offset.min(cursor).max((cursor + 1).saturating_sub(height));
    offset.min(rows.saturating_sub(height))
}

#[cfg(test)]
mod tests {
    use super::scrolled;

    #[test]
    fn the_cursor_is_always_seen_and_no_room_is_wasted() {
        for (offset, cursor, rows, height, expected) in [
            (0, 0, 100, 10, 0),
            (0, 9, 100, 10, 0),
            (0, 10, 100, 10, 1),
            (5, 4, 100, 10, 4),
            (5, 99, 100, 10, 90),
            (95, 99, 100, 10, 90),
            (90, 3, 4, 10, 0),
            (5, 7, 100, 0, 0),
            (3, 0, 0, 10, 0),
        ] {
            assert_eq!(scrolled(offset, cursor, rows, height), expected, "{offset} {cursor} {rows} {height}");
        }
    }
}
