//! What drawing remembers between two frames: how far each table is scrolled, and what lies where for the mouse.

use ratatui::layout::{Position, Rect};
use rustc_hash::FxHashMap;

use crate::app::message::Spot;
use crate::app::panes::Pane;

/// How far tables are scrolled, and where they are.
#[derive(Debug, Default)]
pub struct Viewport {
    offsets: FxHashMap<Pane, usize>,
    areas: Vec<(Pane, Rect, usize)>,
    spots: Vec<(Rect, Spot)>,
    /// Rows that a page down moves over in the focused table or the open page.
    pub page_rows: usize,
    /// How many rows of the table with the focus were seen when it was last drawn, whatever lies over it.
    pub table_rows: usize,
    /// Rows of the box of the question that is open: it does not shrink.
    pub(super) dialog_rows: u16,
    /// The revision of the dialog that was drawn; none when there was none, or no room for it.
    pub dialog: Option<u64>,
}

impl Viewport {
    pub(super) fn begin(&mut self) {
        self.areas.clear();
        self.spots.clear();
        self.dialog = None;
    }

    /// The first row to draw so that the cursor is seen, moving no further than needed.
    pub(super) fn offset(&mut self, pane: Pane, cursor: usize, rows: usize, height: usize) -> usize {
        let offset = self.offsets.entry(pane).or_default();
        *offset = scrolled(*offset, cursor, rows, height);
        *offset
    }

    /// The rows of a table, the first of which is at a position among the pane's rows.
    pub(super) fn place(&mut self, pane: Pane, area: Rect, offset: usize) {
        self.areas.push((pane, area, offset));
    }

    /// Something else that can be clicked.
    pub(super) fn spot(&mut self, area: Rect, spot: Spot) {
        self.spots.push((area, spot));
    }

    /// The table at a place of the screen, and the position of the row there among its rows.
    pub fn row(&self, column: u16, row: u16) -> Option<(Pane, usize)> {
        let place = Position { x: column, y: row };
        let (pane, area, offset) = self.areas.iter().find(|(_, area, _)| area.contains(place))?;
        Some((*pane, offset + usize::from(row - area.y)))
    }

    /// What is at a place of the screen; what was drawn last lies on top.
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
