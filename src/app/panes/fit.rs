//! Which columns of a pane have room, and how wide each is: on the screen, and in print.

use super::{Heading, Pane};

/// From this rank on a column gives way to names that would be cut.
const DISPENSABLE: u8 = 3;

/// Chooses from `columns` those that fit into `width`, with a column between each two, and how wide each is. The first stays when
/// the others are scrolled by `offset`.
pub fn fitted(pane: Pane, columns: Vec<Heading>, offset: usize, width: u16) -> Vec<(Heading, u16)> {
    let columns = comfortable(pane, columns, width);
    let is_seen = |(at, _): &(usize, Heading)| *at == 0 || *at > offset;
    fit(columns.into_iter().enumerate().filter(is_seen).map(|(_, column)| column).collect(), width)
}

/// Where names are read before what can be done without, that goes while they have not the room they want.
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

/// Gives the spare room away: to those that can use some in proportion to what they can use, and what is left, but
/// at least a third, to the one that takes any width.
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
    fn at_80_columns_what_matters_is_there() {
        let names = |pane: Pane| {
            let columns = fitted(pane, pane.table().headings(), 0, 78);
            columns.iter().map(|(column, _)| column.name).collect::<Vec<_>>()
        };
        assert_eq!(names(Pane::Chains), ["pid", "blocks", "wait", "state", "who", "query"]);
        assert!(names(Pane::Locks).starts_with(&["lock", "mode", "state", "age", "waiters", "pid"]));
        assert!(names(Pane::Backends).contains(&"query"));
    }
}
