//! The lock tree of the worst moment: as text, and as a drawing that needs no horizontal scrolling.

use super::block::{LONG, text};
use super::series::Stack;
use super::{Branch, Report};
use crate::text::fit;

const DEEPEST: u16 = 6;

pub(super) fn lines(report: &Report, room: usize) -> Vec<String> {
    let all = report.worst.as_ref().map(|worst| worst.tree.lines.as_slice()).unwrap_or_default();
    let mut lines: Vec<String> = all.iter().take(room).map(|line| fit(line, LONG).into_owned()).collect();
    if all.len() > room {
        lines.push(format!("… and {} more rows", all.len() - room));
    }
    lines
}

pub(super) fn html(report: &Report, stack: &Stack, room: usize) -> String {
    let all = report.worst.as_ref().map(|worst| worst.tree.branches.as_slice()).unwrap_or_default();
    let mut out = vec!["<ul class=\"t\">".to_owned()];
    let mut open: Vec<u16> = Vec::new();
    for branch in all.iter().take(room) {
        // The rows above it may have been omitted.
        let depth = branch.depth.min(DEEPEST).min(open.last().map_or(0, |last| last + 1));
        let mut is_next = depth == 0;
        while let Some(last) = open.pop_if(|last| *last >= depth) {
            is_next |= last == depth;
            out.push(if last == depth { "</li>\n" } else { "</li></ul>" }.to_owned());
        }
        if !is_next {
            out.push("<ul>".to_owned());
        }
        open.push(depth);
        out.push(format!("<li>{}", drawn(branch, stack)));
    }
    while let Some(last) = open.pop() {
        out.push(if last == 0 { "</li>" } else { "</li></ul>" }.to_owned());
    }
    out.push("</ul>\n".to_owned());
    if all.iter().any(|branch| branch.depth > DEEPEST) {
        out.push(format!("<p>From level {} on the drawing is not indented further.</p>\n", DEEPEST + 1));
    }
    if all.len() > room {
        out.push(format!("<p>… and {} more rows</p>\n", all.len() - room));
    }
    out.concat()
}

fn drawn(branch: &Branch, stack: &Stack) -> String {
    let letter = stack.of_party(&branch.who).filter(|_| branch.depth == 0).map(|place| stack.badge(place));
    let level = if branch.depth > DEEPEST { format!("level {}: ", branch.depth) } else { String::new() };
    let facts = [&branch.does, &branch.blocks].into_iter().filter(|fact| !fact.is_empty());
    let facts = facts.map(|fact| format!(" · {}", text(fact))).collect::<Vec<_>>().concat();
    let statement = match &*branch.statement {
        "" => String::new(),
        statement => format!("<code>{}</code>", text(statement)),
    };
    format!("<div>{}{level}<b>{}</b>{facts}{statement}</div>", letter.unwrap_or_default(), text(&branch.who))
}
