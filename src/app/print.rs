//! The panes in print: the output of `locktop snapshot`, and the chains of a report.

use super::context::{Context, ViewIndex};
use super::line::Tone;
use super::panes::{Heading, Pane, Row, RowOptions, Total, fitted};
use super::screens::AvailablePanes;
use crate::model::promise::Promise;
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::model::words;
use crate::model::zone::Zone;
use crate::output::report::{Branch, Tree};
use crate::output::table::{broken, head, laid_out, more};
use crate::text::{self, Align, fit};

const PRINTED: [(Pane, usize); 11] = [
    (Pane::Chains, CHAINS),
    (Pane::Advisory, 50),
    (Pane::Tasks, 50),
    (Pane::Jobs, 30),
    (Pane::Leases, 50),
    (Pane::OtherLeases, 30),
    (Pane::Queue, 50),
    (Pane::JobQueues, 30),
    (Pane::Workers, 30),
    (Pane::Limits, 10),
    (Pane::Generators, 10),
];

const CHAINS: usize = 200;

/// Maximum width of a column if lines may have any length, except for the flexible column.
const WIDEST: u16 = 48;
const LONGEST: u16 = 200;

#[derive(Debug)]
enum Printed {
    /// A sentence, which is wrapped if it is too long.
    Text(String),
    /// A row, which is cut if it is too long.
    Row(String),
}

/// Header, findings, and the panes that exist; `None` before the first snapshot. With a `width`, in columns, sentences
/// are wrapped between words, rows are cut, and statements to copy are left as they are.
pub fn render(view: &View, width: Option<usize>) -> Option<String> {
    let said = head(view)?.into_iter().map(Printed::Text);
    let lines = said.chain(panes(view, width)).map(|line| match (line, width) {
        (Printed::Row(row), Some(width)) => fit(row.trim_end(), width).into_owned(),
        (Printed::Row(row), None) => row.trim_end().to_owned(),
        (Printed::Text(line), width) => broken(line.trim_end(), width),
    });
    Some(lines.map(|line| line + "\n").collect())
}

fn panes(view: &View, width: Option<usize>) -> Vec<Printed> {
    let index = ViewIndex::of(view);
    let Some(context) = Context::of(view, &index, Zone::default()) else { return Vec::new() };
    let has = AvailablePanes::of(view);
    // If locks could not be read, it is not known that there are none.
    let is_known =
        |pane: Pane| context.snapshot.locks.is_known() || !matches!(pane, Pane::Chains | Pane::Advisory);
    let there = PRINTED.into_iter().filter(|(pane, _)| has.has(*pane) && is_known(*pane));
    there.flat_map(|(pane, most)| section(&context, pane, most, width)).collect()
}

pub fn tree(view: &View) -> Tree {
    let index = ViewIndex::of(view);
    Context::of(view, &index, Zone::default()).map_or_else(Tree::default, |context| {
        let rows = rows(&context, Pane::Chains);
        let shown = rows.get(..CHAINS).unwrap_or(&rows);
        let lines = table(&context, Pane::Chains, shown, None);
        let lines = lines.into_iter().chain(more(rows.len(), CHAINS, "rows")).collect();
        Tree { lines, branches: shown.iter().filter_map(|row| branch(&context, *row)).collect() }
    })
}

fn branch(context: &Context<'_>, row: Row) -> Option<Branch> {
    let Row::Chain(chain) = row else { return None };
    let node = context.view.graph.tree.nodes.get(chain.at as usize)?;
    let cell = |name| {
        let table = Pane::Chains.table();
        let text = table.cell(context, row, table.position(name)?, LONGEST).text;
        Some(text).filter(|text| text != "-")
    };
    let text = |name| cell(name).unwrap_or_default();
    let backend = context.backend(node.party.pid());
    let who = match node.party {
        _ if chain.folded > 0 => format!("{} sessions, {}", text::count(chain.folded.into()), text("who")),
        Party::Prepared(xact) => {
            let gid = context.prepared(xact).map(|row| text::one_line(&row.gid).into_owned());
            gid.map_or_else(|| format!("prepared {xact}"), |gid| format!("prepared '{gid}'"))
        }
        Party::Backend(pid) => words::process(pid, backend),
    };
    // The id of a prepared transaction is already its name.
    let statement = if matches!(node.party, Party::Prepared(_)) { String::new() } else { text("query") };
    let does = match node.waits {
        Some(_) => format!("waits {} for {}", text("wait"), text("state")),
        None => text("state"),
    };
    let promise = context.promise(node.party).filter(|_| chain.folded == 0);
    let blocks = promise.filter(|promise| promise.blocked > 0).map(Promise::words);
    Some(Branch { depth: chain.depth, who, does, blocks: blocks.unwrap_or_default(), statement })
}

fn rows(context: &Context<'_>, pane: Pane) -> Vec<Row> {
    let definition = pane.definition();
    let mut rows = (definition.rows)(context, RowOptions { all_locks: false, folded: true, runs: false });
    (definition.order)(context, &mut rows);
    // Sessions that do not wait are not a chain.
    rows.retain(|row| pane != Pane::Chains || matches!(row, Row::Chain(_)));
    rows
}

/// `Tasks: 1 running · 1 orphan`, and its rows below.
fn section(context: &Context<'_>, pane: Pane, most: usize, width: Option<usize>) -> Vec<Printed> {
    let rows = rows(context, pane);
    let facts = pane.facts(context, Total { rows: rows.len(), all_locks: false });
    let says =
        |(text, tone): &(String, Tone)| (!rows.is_empty() || *tone == Tone::Past).then(|| text.clone());
    let mut facts: Vec<String> = facts.iter().filter_map(says).collect();
    if rows.is_empty() && facts.is_empty() {
        facts.push(pane.definition().empty.to_owned());
    }
    let mut lines =
        vec![Printed::Text(String::new()), Printed::Text(format!("{}: {}", pane.title(), facts.join(" · ")))];
    if let Some(above) = pane.definition().above.filter(|_| !rows.is_empty()) {
        lines.push(Printed::Text(above(context).plain()));
    }
    let shown = rows.get(..most).unwrap_or(&rows);
    lines.extend(table(context, pane, shown, width).into_iter().map(Printed::Row));
    lines.extend(more(rows.len(), most, "rows").map(Printed::Text));
    lines
}

fn table(context: &Context<'_>, pane: Pane, rows: &[Row], width: Option<usize>) -> Vec<String> {
    let table = pane.table();
    let cell = |heading: &Heading, row: &Row, room: u16| {
        let at = table.position(heading.name)?;
        let text = table.cell(context, *row, at, room).text;
        (text != "-" && !text.is_empty()).then(|| fit(&text, room.into()).into_owned())
    };
    let headings = table.headings().into_iter().filter_map(|heading| heading.over(Some(context)));
    // A column without content gets no space, and no column gets more than its longest cell.
    let needed = headings.filter_map(|heading| {
        let cells = rows.iter().filter_map(|row| cell(&heading, row, WIDEST));
        Some(heading.within(cells.map(|cell| text::width(&cell)).max()?))
    });
    let columns = widths(pane, needed.collect(), width);
    let heads: Vec<(&str, Align)> =
        columns.iter().map(|(heading, _)| (heading.title, heading.align())).collect();
    let line = |row: &Row| -> Vec<String> {
        columns.iter().map(|(heading, room)| cell(heading, row, *room).unwrap_or_default()).collect()
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    if lines.is_empty() { Vec::new() } else { laid_out(&heads, &lines) }
}

fn widths(pane: Pane, columns: Vec<Heading>, width: Option<usize>) -> Vec<(Heading, u16)> {
    let Some(width) = width else {
        let any =
            |heading: Heading| (heading, if heading.max == 0 { LONGEST } else { WIDEST.max(heading.max) });
        return columns.into_iter().map(any).collect();
    };
    // In print there are two spaces between columns.
    let between = columns.len().saturating_sub(1);
    fitted(pane, columns, 0, u16::try_from(width.saturating_sub(between)).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests;
