//! Markdown. Every text of the recording is escaped: nothing in it is markup, and it loads nothing.

use super::content::{Block, Content, Part};
use super::picture;

/// Columns of the time line.
const LINE: usize = 72;

/// Text within a line of Markdown.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => out.extend(['\\', character]),
            other => out.push(other),
        }
    }
    // An address would become a link.
    out.replace("://", ":&#47;/").replace("www.", "www&#46;")
}

pub(super) fn page(content: &Content<'_>) -> String {
    let mut out = format!("# {}\n\n", escape(&content.title));
    for line in &content.headline {
        out.push_str(&format!("{}\n\n", escape(line)));
    }
    for Part { heading, blocks } in &content.parts {
        out.push_str(&format!("## {}\n\n", escape(heading)));
        for block in blocks {
            out.push_str(&self::block(content, block));
            out.push('\n');
        }
    }
    let report = content.report;
    let about = format!("{} · recorded by {}", report.server, report.program);
    out.push_str(&format!("{}\n", escape(&crate::text::one_line_prefix(&about, 300))));
    out
}

fn block(content: &Content<'_>, block: &Block) -> String {
    match block {
        Block::Paragraph(text) => format!("{}\n", escape(text)),
        Block::Line => {
            let (from, to) = &content.ends;
            format!("    {from} {} {to}\n", picture::bars(&content.report.columns, LINE))
        }
        Block::List(lines) => lines.iter().map(|line| format!("- {}\n", escape(line))).collect(),
        // Set in so far it is text as it is, and nothing ends it.
        Block::Text(lines) => lines.iter().map(|line| format!("    {line}\n")).collect(),
        Block::Table(heads, rows) => {
            let cells = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
            let mut out = cells(heads.iter().map(|(head, _)| escape(head)).collect());
            out.push_str(&cells(
                heads
                    .iter()
                    .map(|(_, is_number)| if *is_number { "--:" } else { "---" }.to_owned())
                    .collect(),
            ));
            for row in rows {
                out.push_str(&cells(row.iter().map(|cell| escape(cell)).collect()));
            }
            out
        }
    }
}
