//! Where the panes of a screen stand. Shares are fixed: a pane that grew with its rows would push the others about. One that
//! has nothing to show takes a line, and the others what it leaves.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::app::WIDE;

/// Columns between two panes side by side.
const GAP: u16 = 1;
/// Rows that nobody has less of, where there are so many: title, head, and two rows.
const LEAST: u16 = 4;

/// How much of the height a pane needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// It has nothing to show, and its title says so.
    Line,
    /// Its share, beside those of the others.
    Share(u16),
}

impl Need {
    fn share(self) -> u16 {
        match self {
            Self::Line => 0,
            Self::Share(share) => share,
        }
    }
}

/// The areas of panes, in their order: one below the other. Where it is wide, of three or four the first stands above, the second at
/// the left, and what is left beside it, unless that has nothing to show: half of the width would be for nothing.
pub(super) fn areas(area: Rect, needs: &[Need]) -> Vec<Rect> {
    match needs {
        [top, Need::Share(_), right @ ..]
            if area.width >= WIDE
                && matches!(right.len(), 1 | 2)
                && right.iter().any(|need| need.share() > 0) =>
        {
            let below = Need::Share(top.share().max(1));
            let [top, below] = stacked(area, &[*top, below])[..] else { return Vec::new() };
            let [left, beside] = Layout::horizontal([Constraint::Fill(1); 2]).spacing(GAP).areas(below);
            [top, left].into_iter().chain(stacked(beside, right)).collect()
        }
        all => stacked(area, all),
    }
}

/// One below the other: the first that has something to show takes what the shares of the others leave.
fn stacked(area: Rect, needs: &[Need]) -> Vec<Rect> {
    let all: u16 = needs.iter().map(|need| need.share()).sum();
    let first = needs.iter().position(|need| *need != Need::Line).unwrap_or(needs.len().saturating_sub(1));
    let even = usize::from(area.height) / needs.len().max(1);
    let least = u16::try_from(even).map_or(LEAST, |even| even.min(LEAST));
    let height = |share: u16| u32::from(area.height) * u32::from(share) / u32::from(all);
    let constraint = |(at, need): (usize, &Need)| match need {
        _ if at == first => Constraint::Fill(1),
        Need::Line => Constraint::Length(1),
        Need::Share(share) => Constraint::Length(u16::try_from(height(*share)).unwrap_or(LEAST).max(least)),
    };
    Layout::vertical(needs.iter().enumerate().map(constraint)).split(area).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is calm: all of the area is given away, once, and who has something to show has room for it.
    #[test]
    fn panes_fill_the_area_and_never_overlap() {
        for (width, height) in [(60, 11), (80, 16), (80, 20), (119, 40), (120, 14), (120, 29), (200, 54)] {
            let area = Rect { x: 0, y: 3, width, height };
            for count in 1..=5usize {
                let room =
                    if width >= WIDE && count < 5 { count } else { count.min(usize::from(height / 4)) };
                for mask in 0..1u8 << room {
                    let calm: Vec<bool> = (0..room).map(|at| mask >> at & 1 == 1).collect();
                    let need = |(at, calm): (usize, &bool)| match calm {
                        true => Need::Line,
                        false => Need::Share([5, 2, 3, 2, 1][at]),
                    };
                    let needs: Vec<Need> = calm.iter().enumerate().map(need).collect();
                    let areas = areas(area, &needs);
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
