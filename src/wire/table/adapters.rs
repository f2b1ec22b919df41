use std::sync::Arc;

use super::columns::laid_out;
use crate::model::adapter::{Adapter, Choice, Installation, Rehearsal, Tried};
use crate::text::{Align, count, one_line};

const HEADS: [(&str, Align); 7] = [
    ("PART", Align::Left),
    ("QUERY", Align::Right),
    ("COST", Align::Right),
    ("OF", Align::Right),
    ("ROWS", Align::Right),
    ("TOOK", Align::Right),
    ("REASON", Align::Left),
];

pub fn adapters(found: &[Installation], adapters: &[Arc<Adapter>]) -> String {
    let mut lines = Vec::new();
    if found.is_empty() {
        let names: Vec<&str> = adapters.iter().map(|adapter| &*adapter.name).collect();
        return format!("Nothing found in this database of: {}.", names.join(", "));
    }
    for installation in found {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(head(installation));
        if let Some(reason) = &installation.refused {
            lines.push(format!("  not read: {}", one_line(reason)));
            continue;
        }
        let parts = installation.choices.iter().flat_map(rows);
        let rows: Vec<[String; 7]> = parts.chain(installation.actions.iter().map(action)).collect();
        lines.extend(
            laid_out(&HEADS, &rows).into_iter().map(|line| format!("  {line}").trim_end().to_owned()),
        );
    }
    lines.join("\n")
}

fn head(installation: &Installation) -> String {
    let Installation { adapter, version, .. } = installation;
    let version = version.as_ref().map(|version| format!(", {}", one_line(version))).unwrap_or_default();
    let origin = if adapter.is_built_in { "" } else { " (your file)" };
    let place = one_line(&installation.label()).into_owned();
    let tables: Vec<String> =
        installation.tables.values().map(|table| one_line(table).into_owned()).collect();
    let tables = if tables.is_empty() { String::new() } else { format!(": {}", tables.join(", ")) };
    format!("{place}{version}{origin}{tables}")
}

/// One line per alternative: refused ones have the reason, the last one is used.
fn rows(choice: &Choice) -> Vec<[String; 7]> {
    let row = |tried: &Tried| {
        let cost = tried.outcome.as_ref().map(|cost| format!("{cost:.0}")).unwrap_or_default();
        let size = tried.size.map(number).unwrap_or_default();
        let read = tried.read.as_ref();
        let why = tried.outcome.as_ref().err().or_else(|| read?.as_ref().err());
        let why = why.map(|why| one_line(why).into_owned()).unwrap_or_default();
        let once = read.and_then(|read| read.as_ref().ok());
        let rows = once.map(|once| once.rows.to_string()).unwrap_or_default();
        let took = once.map(|once| format!("{:.1} ms", once.seconds * 1000.0)).unwrap_or_default();
        [choice.part.as_str().to_owned(), tried.number.to_string(), cost, size, rows, took, why]
    };
    choice.tried.iter().map(row).collect()
}

fn action(tried: &Rehearsal) -> [String; 7] {
    let none = String::new;
    let why = tried.outcome.as_ref().err().map(|why| one_line(why).into_owned());
    let why = why.unwrap_or_else(|| "parsed and planned, not run".to_owned());
    [tried.kind.as_str().to_owned(), tried.number.to_string(), none(), none(), none(), none(), why]
}

/// Rows as estimated by the planner.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is no less than 0, and an estimate"
)]
fn number(rows: f64) -> String {
    format!("~{}", count(rows.max(0.0) as u64))
}
