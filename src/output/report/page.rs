//! The page of a report, in HTML without scripts, fonts and links, or in Markdown. Every text of the recording is escaped:
//! nothing in it is markup.

use super::content::{ReportContent, ReportPart};
use super::episodes::{self, Stack};
use super::{Block, Branch, IncidentReport, LONG, TimelineColumn, chart, escape, text, without_tags};
use crate::text::fit;

/// `default-src 'none'` forbids a browser to load or run anything, whatever a text contains.
const HEAD: &str = "<meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n";

const STYLE: &str = include_str!("page.css");

pub(super) fn html(content: &ReportContent<'_>) -> String {
    let title = escape(&content.title);
    let mut out = vec![format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n{HEAD}<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{}</h1>\n",
        text(&content.title)
    )];
    let stack = Stack::of(content.report);
    for line in &content.headline {
        out.push(format!("<p class=\"h\">{}</p>\n", text(line)));
    }
    for ReportPart { heading, blocks } in &content.parts {
        out.push(format!("<h2>{}</h2>\n", escape(heading)));
        out.extend(blocks.iter().map(|block| html_block(content, &stack, block)));
    }
    out.push(format!("<footer>{}</footer>\n</body>\n</html>\n", escape(&content.about())));
    out.concat()
}

fn each<T>(all: impl IntoIterator<Item = T>, write: impl Fn(T) -> String) -> String {
    all.into_iter().map(write).collect::<Vec<_>>().concat()
}

fn html_block(content: &ReportContent<'_>, stack: &Stack, block: &Block) -> String {
    match block {
        Block::Paragraph(words) => format!("<p>{}</p>\n", text(words)),
        Block::Line => chart::chart(content, stack),
        Block::Episodes(numbers) => chart::bars(content, stack, numbers),
        Block::Tree(room) => tree_html(content.report, stack, *room),
        Block::List(lines) => {
            let items = each(lines, |line| format!("<li>{}</li>\n", text(line)));
            format!("<ul>\n{items}</ul>\n")
        }
        Block::Table(heads, rows) => table(heads, rows),
    }
}

/// On a narrow page, a row becomes a list whose cells show their headings.
fn table(heads: &[(&str, bool)], rows: &[Vec<String>]) -> String {
    let class = |is_number: bool| if is_number { " class=\"n\"" } else { "" };
    let head = each(heads, |(head, is_number)| format!("<th{}>{}</th>", class(*is_number), escape(head)));
    let rows = each(rows, |row| {
        let cells = each(heads.iter().zip(row), |((head, is_number), cell)| {
            format!("<td{} data-h=\"{}\">{}</td>", class(*is_number), escape(head), text(cell))
        });
        format!("<tr>{cells}</tr>\n")
    });
    format!("<table>\n<tr>{head}</tr>\n{rows}</table>\n")
}

const LINE: usize = 72;

fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in without_tags(text).chars() {
        out.extend(r"\`*_[]|#~".contains(character).then_some('\\'));
        out.push(character);
    }
    // A URL would become a link.
    out.replace("://", ":&#47;/").replace("www.", "www&#46;")
}

pub(super) fn markdown(content: &ReportContent<'_>) -> String {
    let mut out = vec![format!("# {}\n\n", escape_markdown(&content.title))];
    out.extend(content.headline.iter().map(|line| format!("{}\n\n", escape_markdown(line))));
    for ReportPart { heading, blocks } in &content.parts {
        out.push(format!("## {}\n\n", escape_markdown(heading)));
        out.extend(blocks.iter().map(|block| format!("{}\n", markdown_block(content, block))));
    }
    out.push(format!("{}\n", escape_markdown(&content.about())));
    out.concat()
}

fn markdown_block(content: &ReportContent<'_>, block: &Block) -> String {
    match block {
        Block::Paragraph(text) => format!("{}\n", escape_markdown(text)),
        Block::Line => {
            let (from, to) = &content.ends;
            let line = format!("    {from} {} {to}\n", bars(&content.report.columns, LINE));
            let about = "Height: sessions that wait for a lock. Signs: ! a session began to block others, x a deadlock, a an action, ~ no answer, n a note.";
            format!("{line}\n{about}\n")
        }
        Block::List(items) => each(items, |item| format!("- {}\n", escape_markdown(item))),
        Block::Episodes(numbers) => {
            markdown_block(content, &episodes::table(content.report, content.style, numbers))
        }
        // With this indentation it is literal text, and nothing can end it.
        Block::Tree(room) => each(tree_lines(content.report, *room), |line| format!("    {line}\n")),
        Block::Table(heads, rows) => {
            let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
            let rule = |is_number: bool| if is_number { "--:" } else { "---" }.to_owned();
            let head = row(heads.iter().map(|(head, _)| escape_markdown(head)).collect());
            let rule = row(heads.iter().map(|(_, is_number)| rule(*is_number)).collect());
            let rows = each(rows, |cells| row(cells.iter().map(|cell| escape_markdown(cell)).collect()));
            format!("{head}{rule}{rows}")
        }
    }
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar for each column, or the sign of its event, or a blank if it is not known; at most `room` of them.
fn bars(columns: &[TimelineColumn], room: usize) -> String {
    let room = room.min(columns.len()).max(1);
    let most = columns.iter().map(|column| column.waiting).max().unwrap_or_default().max(1);
    let of = |place: usize| place * columns.len() / room;
    let bar = |place: usize| {
        let here = columns.get(of(place)..of(place + 1)).unwrap_or_default();
        if let Some(sign) = here.iter().find_map(|column| column.sign) {
            return sign;
        }
        if !here.iter().any(|column| column.is_known) {
            return ' ';
        }
        let value = here.iter().map(|column| column.waiting).max().unwrap_or_default();
        let step = if value == 0 { 0 } else { 1 + u64::from(value) * 6 / u64::from(most) };
        usize::try_from(step).ok().and_then(|step| BARS.get(step)).copied().unwrap_or('█')
    };
    (0..room).map(bar).collect()
}

const DEEPEST: u16 = 6;

fn tree_lines(report: &IncidentReport, room: usize) -> Vec<String> {
    let all = report.worst.as_ref().map(|worst| worst.tree.lines.as_slice()).unwrap_or_default();
    let mut lines: Vec<String> = all.iter().take(room).map(|line| fit(line, LONG).into_owned()).collect();
    if all.len() > room {
        lines.push(format!("… and {} more rows", all.len() - room));
    }
    lines
}

fn tree_html(report: &IncidentReport, stack: &Stack, room: usize) -> String {
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
