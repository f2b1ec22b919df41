//! Selects the columns of a pane that fit, and their widths, on the screen and in print.

use super::{Heading, Pane};

/// From this rank on a column is omitted if names would otherwise be cut.
const DISPENSABLE: u8 = 3;

/// Selects the columns that fit into `width`, with one space between two columns, and their widths. The first column
/// stays when the others are scrolled by `offset`.
pub fn fitted(pane: Pane, columns: Vec<Heading>, offset: usize, width: u16) -> Vec<(Heading, u16)> {
    let is_fixed = !pane.definition().widths.is_empty();
    let columns = if is_fixed { columns } else { comfortable(pane, columns, width) };
    let is_seen = |(at, _): &(usize, Heading)| *at == 0 || *at > offset;
    let columns: Vec<Heading> =
        columns.into_iter().enumerate().filter(is_seen).map(|(_, column)| column).collect();
    if is_fixed { fixed(pane, columns, width) } else { fit(columns, width) }
}

/// Pane widths from which the next widths of a table apply, without the two columns of the marker. The left side of a
/// wide screen has the widths for 120 columns.
pub(super) const STEPS: [u16; 5] = [0, 98, 117, 158, 198];

/// Columns with the widths for the width of the pane; the flexible column takes the remaining space.
fn fixed(pane: Pane, columns: Vec<Heading>, width: u16) -> Vec<(Heading, u16)> {
    let step = STEPS.iter().rposition(|least| *least <= width).unwrap_or(0);
    let widths = pane.definition().widths;
    let own = |heading: &Heading| {
        let found = widths.iter().find(|(name, _)| *name == heading.name);
        found.and_then(|(_, widths)| widths.get(step).copied()).unwrap_or(0)
    };
    let flexible = |heading: &Heading| heading.max == 0;
    let mut shown: Vec<(Heading, u16)> = columns
        .into_iter()
        .map(|heading| (heading, if flexible(&heading) { heading.min } else { own(&heading) }))
        .filter(|(_, width)| *width > 0)
        .collect();
    let needed =
        |shown: &[(Heading, u16)]| shown.iter().map(|(_, width)| width + 1).sum::<u16>().saturating_sub(1);
    while needed(&shown) > width && shown.len() > 1 {
        match shown.iter().map(|(heading, _)| heading.rank).max() {
            Some(rank) if rank > 0 => shown.retain(|(heading, _)| heading.rank < rank),
            _ => drop(shown.pop()),
        }
    }
    let spare = width.saturating_sub(needed(&shown));
    let place = shown.iter().position(|(heading, _)| flexible(heading)).or(shown.len().checked_sub(1));
    if let Some((_, width)) = place.and_then(|at| shown.get_mut(at)) {
        *width += spare;
    }
    shown
}

/// If the pane prefers names, dispensable columns are omitted while names have less space than they want.
fn comfortable(pane: Pane, mut columns: Vec<Heading>, width: u16) -> Vec<Heading> {
    if !pane.definition().prefers_names {
        return columns;
    }
    let wants = |column: &Heading| match column.max {
        max if column.right || max < 24 => column.min,
        max => max.min(column.min + 12),
    };
    let wanted = |columns: &[Heading]| columns.iter().map(|column| wants(column) + 1).sum::<u16>();
    while wanted(&columns) > width + 1 {
        let most = columns.iter().map(|column| column.rank).max().filter(|rank| *rank >= DISPENSABLE);
        let Some(most) = most else { break };
        columns.retain(|column| column.rank != most);
    }
    columns
}

fn fit(mut columns: Vec<Heading>, width: u16) -> Vec<(Heading, u16)> {
    let least = |columns: &[Heading]| -> u16 {
        columns.iter().map(|column| column.min + 1).sum::<u16>().saturating_sub(1)
    };
    while least(&columns) > width {
        let Some(rank) = columns.iter().map(|column| column.rank).max().filter(|rank| *rank > 0) else {
            break;
        };
        columns.retain(|column| column.rank < rank);
    }
    while least(&columns) > width && columns.len() > 1 {
        columns.pop();
    }
    let spare = width.saturating_sub(least(&columns));
    grown(&columns, spare)
}

/// Distributes the spare space: to columns that can use it, in proportion to what they can use, and the rest, at least
/// a third, to the flexible column.
fn grown(columns: &[Heading], spare: u16) -> Vec<(Heading, u16)> {
    let flexible = columns.iter().any(|column| column.max == 0);
    let wanted: u16 = columns.iter().map(|column| column.max.saturating_sub(column.min)).sum();
    let given = if flexible { wanted.min(spare - spare / 3) } else { wanted.min(spare) };
    let mut rest = spare;
    let mut widths: Vec<(Heading, u16)> = columns
        .iter()
        .map(|column| {
            let wants = u32::from(column.max.saturating_sub(column.min));
            let part = u16::try_from(wants * u32::from(given) / u32::from(wanted.max(1))).unwrap_or(0);
            rest = rest.saturating_sub(part);
            (*column, column.min + part)
        })
        .collect();
    if let Some((_, width)) = widths.iter_mut().find(|(column, _)| column.max == 0) {
        *width += rest;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fill_the_width_and_never_pass_it() {
        for pane in Pane::ALL {
            for offset in 0..pane.table().headings().len() {
                for width in 0..300 {
                    let columns = fitted(pane, pane.table().headings(), offset, width);
                    let total: u16 =
                        columns.iter().map(|(_, width)| width + 1).sum::<u16>().saturating_sub(1);
                    assert!(!columns.is_empty());
                    assert!(columns.len() == 1 || total <= width, "{pane:?} at {width}: {total}");
                }
            }
        }
    }

    #[test]
    fn the_important_columns_fit_in_80_columns() {
        let names = |pane: Pane| {
            let columns = fitted(pane, pane.table().headings(), 0, 78);
            columns.iter().map(|(column, _)| column.name).collect::<Vec<_>>()
        };
        assert_eq!(names(Pane::Chains), ["pid", "blocks", "wait", "state", "who", "query"]);
        assert_eq!(names(Pane::Locks), ["lock", "queue", "longest", "requested", "holder"]);
        assert_eq!(names(Pane::Held), ["lock", "mode", "pid", "who", "age"]);
        assert!(names(Pane::Backends).contains(&"query"));
    }
}
