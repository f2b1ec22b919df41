//! Where the panes of a screen stand. Shares are fixed: a pane that grew with its rows would push the others about. One that
//! has nothing to show takes a line, and the others what it leaves.

use ratatui::layout::Rect;

use super::{split_bottom, split_top};
use crate::app::WIDE;

/// Columns between two panes side by side.
const GAP: u16 = 1;

/// The areas of panes, in their order; true stands for one that has nothing to show. Of two the lower one has one of so many parts.
pub(super) fn areas(area: Rect, calm: &[bool], parts: u16) -> Vec<Rect> {
    match calm {
        // Beside one that has nothing to show the other would have half of the width for nothing.
        [top, false, false] if area.width >= WIDE => {
            let (top, bottom) = above(area, *top);
            let (left, right) = beside(bottom);
            vec![top, left, right]
        }
        [top, false, upper, lower] if area.width >= WIDE && !(*upper && *lower) => {
            let (top, bottom) = above(area, *top);
            let (left, right) = beside(bottom);
            let part = (right.height * 2 / 5).max(4).min(right.height / 2);
            let (upper, lower) = match (*upper, *lower) {
                (true, _) => split_top(right, 1),
                (false, true) => split_bottom(right, 1),
                (false, false) => split_bottom(right, part),
            };
            vec![top, left, upper, lower]
        }
        all => stacked(area, all, parts),
    }
}

/// One pane over the others: half and half, unless it has nothing to show.
fn above(area: Rect, top: bool) -> (Rect, Rect) {
    if top { split_top(area, 1) } else { split_bottom(area, area.height / 2) }
}

fn beside(area: Rect) -> (Rect, Rect) {
    let half = area.width.saturating_sub(GAP) / 2;
    let left = Rect { width: area.width.saturating_sub(GAP + half), ..area };
    (left, Rect { x: area.right() - half, width: half, ..area })
}

/// One below the other: the first that has something to show takes what the shares of the others leave.
fn stacked(area: Rect, calm: &[bool], parts: u16) -> Vec<Rect> {
    let count = calm.len();
    let first = calm.iter().position(|calm| !calm).unwrap_or(count.saturating_sub(1));
    let height = |at: usize| match calm.get(at) {
        Some(true) => 1,
        _ => share(area.height, count, at, parts),
    };
    let others: u16 = (0..count).filter(|at| *at != first).map(height).sum();
    let mut rest = area;
    let mut areas = Vec::with_capacity(count);
    for at in 0..count {
        let height = if at == first { area.height.saturating_sub(others) } else { height(at) };
        let (pane, below) = split_top(rest, height);
        areas.push(pane);
        rest = below;
    }
    areas
}

/// How high a pane is that does not take the rest.
fn share(height: u16, count: usize, at: usize, parts: u16) -> u16 {
    match (count, at) {
        (2, _) => (height / parts.max(1)).max(5),
        (3, 2) => (height * 3 / 10).max(if height < 16 { 4 } else { 5 }),
        _ => (height / 5).max(4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is calm: all of the area is given away, once, and who has something to show has room for it.
    #[test]
    fn panes_fill_the_area_and_never_overlap() {
        for (width, height) in [(60, 11), (80, 16), (80, 20), (119, 40), (120, 14), (120, 29), (200, 54)] {
            let area = Rect { x: 0, y: 3, width, height };
            for count in 1..=4usize {
                let room = if width >= WIDE { count } else { count.min(usize::from(height / 4)) };
                for mask in 0..1u8 << room {
                    let calm: Vec<bool> = (0..room).map(|at| mask >> at & 1 == 1).collect();
                    let areas = areas(area, &calm, [2, 4][usize::from(mask % 2)]);
                    assert_eq!(areas.len(), room);
                    for (at, one) in areas.iter().enumerate() {
                        assert_eq!(one.intersection(area), *one, "{width}x{height} {calm:?}");
                        assert!(areas.iter().skip(at + 1).all(|other| !one.intersects(*other)));
                        assert!(
                            one.height >= if calm[at] { 1 } else { 3 },
                            "{width}x{height} {calm:?} {areas:?}"
                        );
                    }
                    let covered: u32 = areas.iter().map(|one| one.area()).sum();
                    let gaps = if width >= WIDE { u32::from(height) } else { 0 };
                    assert!(covered + gaps >= area.area(), "{width}x{height} {calm:?} {areas:?}");
                }
            }
        }
    }
}
