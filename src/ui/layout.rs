//! Places the panes of a screen by terminal size, visible panes and focus. The number of rows does not matter: a pane that
//! grew with its rows would move the others.

use ratatui::layout::{Constraint, Layout, Position, Rect};
use rustc_hash::FxHashMap;

use crate::app::message::ClickTarget;
use crate::app::panes::Pane;
use crate::app::screens::Screen;
use crate::app::{App, HEADER, TALL, WIDE};

const GAP: u16 = 1;
/// Minimum rows of a pane, if there is room: title, head, and two rows.
const LEAST: u16 = 4;
const WIDEST_DETAIL: u16 = 80;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PaneArea {
    pub pane: Pane,
    pub area: Rect,
    pub is_line: bool,
}

pub(super) fn places(area: Rect, app: &App) -> (Vec<PaneArea>, Option<Rect>) {
    let panes = app.visible_panes();
    match panes.as_slice() {
        [Pane::Findings, below @ ..] if !below.is_empty() => {
            let (area, detail) = with_detail(area, app);
            let is_split = detail.is_none() && area.width >= WIDE;
            (overview(area, below, app.expanded(), is_split), detail)
        }
        _ => {
            let shares: Vec<u16> = panes.iter().map(|pane| app.screen.share(*pane)).collect();
            // Side by side, the locks would lose columns.
            let areas =
                if app.screen == Screen::Locks { stacked(area, &shares) } else { areas(area, &shares) };
            let areas = areas.into_iter();
            let place = |(pane, area): (&Pane, Rect)| PaneArea { pane: *pane, area, is_line: false };
            (panes.iter().zip(areas).map(place).collect(), None)
        }
    }
}

/// The left side is as wide as a screen of 120 columns.
fn with_detail(area: Rect, app: &App) -> (Rect, Option<Rect>) {
    if !app.shows_detail() {
        return (area, None);
    }
    let width = area.width.saturating_sub(WIDE).min(WIDEST_DETAIL);
    let left = Rect { width: area.width - width - GAP, ..area };
    (left, Some(Rect { x: area.right() - width, width, ..area }))
}

fn overview(area: Rect, below: &[Pane], expanded: Option<Pane>, is_split: bool) -> Vec<PaneArea> {
    let is_tall = area.height + HEADER + 1 >= TALL;
    let rows = if is_tall { 9 } else { 6 };
    let (top, rest) = super::split_top(area, rows);
    let findings = PaneArea { pane: Pane::Findings, area: top, is_line: false };
    let areas = match (is_tall, below) {
        (false, _) => {
            let constraint = |pane: &Pane| {
                if Some(*pane) == expanded { Constraint::Fill(1) } else { Constraint::Length(1) }
            };
            Layout::vertical(below.iter().map(constraint)).split(rest).to_vec()
        }
        (true, [_, _, _, ..]) if is_split => {
            let [chains, low] =
                Layout::vertical([Constraint::Fill(1), Constraint::Length(rest.height / 2)]).areas(rest);
            let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).spacing(GAP).areas(low);
            let rights = u16::try_from(below.len() - 2).unwrap_or(1);
            let constraints = (0..rights).map(|at| match at {
                at if at + 1 == rights => Constraint::Fill(1),
                at => Constraint::Length((right.height / rights).max(u16::from(at == 0))),
            });
            let rights = Layout::vertical(constraints).split(right).to_vec();
            [chains, left].into_iter().chain(rights).collect()
        }
        (true, [_, ..]) => {
            // A share is in sixtieths of the height below the findings.
            let height = |pane: &Pane| (rest.height * Screen::Overview.share(*pane) / 60).max(3);
            let constraints = below.iter().enumerate().map(|(at, pane)| match at {
                0 => Constraint::Fill(1),
                _ => Constraint::Length(height(pane)),
            });
            Layout::vertical(constraints).split(rest).to_vec()
        }
        (true, []) => Vec::new(),
    };
    let place = |(pane, area): (&Pane, Rect)| PaneArea {
        pane: *pane,
        area,
        is_line: !is_tall && Some(*pane) != expanded,
    };
    std::iter::once(findings).chain(below.iter().zip(areas).map(place)).collect()
}

/// The areas of the panes, in order, one below the other. On a wide screen with three or four panes, the first is at the
/// top, the second below it at the left, and the others at the right.
fn areas(area: Rect, shares: &[u16]) -> Vec<Rect> {
    match shares {
        [top, left, right @ ..] if area.width >= WIDE && matches!(right.len(), 1 | 2) => {
            let [top, below] = stacked(area, &[*top, (*top).max(*left)])[..] else { return Vec::new() };
            let [left, beside] = Layout::horizontal([Constraint::Fill(1); 2]).spacing(GAP).areas(below);
            [top, left].into_iter().chain(stacked(beside, right)).collect()
        }
        all => stacked(area, all),
    }
}

fn stacked(area: Rect, shares: &[u16]) -> Vec<Rect> {
    let all: u16 = shares.iter().sum::<u16>().max(1);
    let even = usize::from(area.height) / shares.len().max(1);
    let least = u16::try_from(even).map_or(LEAST, |even| even.min(LEAST));
    let height = |share: u16| u32::from(area.height) * u32::from(share) / u32::from(all);
    let constraint = |(at, share): (usize, &u16)| match at {
        0 => Constraint::Fill(1),
        _ => Constraint::Length(u16::try_from(height(*share)).unwrap_or(LEAST).max(least)),
    };
    Layout::vertical(shares.iter().enumerate().map(constraint)).split(area).to_vec()
}

#[derive(Debug, Default)]
pub struct Viewport {
    offsets: FxHashMap<Pane, usize>,
    areas: Vec<(Pane, Rect, usize)>,
    spots: Vec<(Rect, ClickTarget)>,
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

    pub(super) fn spot(&mut self, area: Rect, spot: ClickTarget) {
        self.spots.push((area, spot));
    }

    pub fn row(&self, column: u16, row: u16) -> Option<(Pane, usize)> {
        let place = Position { x: column, y: row };
        let (pane, area, offset) = self.areas.iter().find(|(_, area, _)| area.contains(place))?;
        Some((*pane, offset + usize::from(row - area.y)))
    }

    /// The item at a screen position; the one drawn last is on top.
    pub fn hit(&self, column: u16, row: u16) -> Option<ClickTarget> {
        let place = Position { x: column, y: row };
        let spot = self.spots.iter().rev().find(|(area, _)| area.contains(place));
        let row = || self.row(column, row).map(|(pane, at)| ClickTarget::Row(pane, at));
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
    use super::{scrolled, *};

    fn check(area: Rect, areas: &[Rect], least: u16, gaps: bool) {
        for (at, one) in areas.iter().enumerate() {
            assert_eq!(one.intersection(area), *one, "{area} {areas:?}");
            assert!(areas.iter().skip(at + 1).all(|other| !one.intersects(*other)), "{area} {areas:?}");
            assert!(one.height >= least, "{area} {areas:?}");
        }
        let covered: u32 = areas.iter().map(|one| one.area()).sum();
        let gaps = if gaps { u32::from(area.height) } else { 0 };
        assert!(covered + gaps >= area.area(), "{area} {areas:?}");
    }

    #[test]
    fn panes_fill_the_area_and_never_overlap() {
        for (width, height) in [(60, 11), (80, 16), (80, 20), (119, 40), (120, 14), (120, 29), (200, 54)] {
            let area = Rect { x: 0, y: 2, width, height };
            for count in 1..=5usize {
                let room =
                    if width >= WIDE && count < 5 { count } else { count.min(usize::from(height / 4)) };
                let shares: Vec<u16> = [5, 2, 3, 2, 1].into_iter().take(room).collect();
                check(area, &areas(area, &shares), 3, width >= WIDE);
            }
        }
    }

    #[test]
    fn the_panes_of_the_overview_fill_it_whichever_has_the_focus() {
        use Pane::{Advisory, Chains, Leases, Tasks};
        for (width, height) in [(60, 12), (80, 20), (80, 21), (80, 27), (80, 40), (120, 32), (119, 57)] {
            let area = Rect { x: 0, y: 2, width, height };
            for below in
                [&[Chains, Advisory][..], &[Chains, Advisory, Tasks], &[Chains, Advisory, Tasks, Leases]]
            {
                for expanded in below {
                    let places = overview(area, below, Some(*expanded), width >= WIDE);
                    let areas: Vec<Rect> = places.iter().map(|place| place.area).collect();
                    check(area, &areas, 1, width >= WIDE);
                    assert_eq!(places.len(), below.len() + 1);
                    assert!(
                        places.iter().all(|place| place.is_line == (place.area.height == 1)),
                        "{places:?}"
                    );
                    let open = places.iter().find(|place| place.pane == *expanded).unwrap();
                    assert!(open.area.height >= 3, "{places:?}");
                }
            }
        }
    }

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
