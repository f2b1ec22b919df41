//! Markdown. Every text of the recording is escaped: nothing in it is markup, and it loads nothing.

use super::block::Block;
use super::content::{Content, Part};
use super::{Column, episodes, tree};

const LINE: usize = 72;

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
    // A URL would become a link.
    out.replace("://", ":&#47;/").replace("www.", "www&#46;")
}

pub(super) fn page(content: &Content<'_>) -> String {
    let mut out = vec![format!("# {}\n\n", escape(&content.title))];
    out.extend(content.headline.iter().map(|line| format!("{}\n\n", escape(line))));
    for Part { heading, blocks } in &content.parts {
        out.push(format!("## {}\n\n", escape(heading)));
        out.extend(blocks.iter().map(|block| format!("{}\n", self::block(content, block))));
    }
    out.push(format!("{}\n", escape(&content.about())));
    out.concat()
}

fn block(content: &Content<'_>, block: &Block) -> String {
    let lines = |lines: Vec<String>| lines.concat();
    match block {
        Block::Paragraph(text) => format!("{}\n", escape(text)),
        Block::Line => {
            let (from, to) = &content.ends;
            let line = format!("    {from} {} {to}\n", bars(&content.report.columns, LINE));
            let about = "Height: sessions that wait for a lock. Signs: ! a session began to block others, x a deadlock, a an action, ~ no answer, n a note.";
            format!("{line}\n{about}\n")
        }
        Block::List(items) => lines(items.iter().map(|item| format!("- {}\n", escape(item))).collect()),
        Block::Episodes(numbers) => {
            self::block(content, &episodes::table(content.report, content.style, numbers))
        }
        // With this indentation it is literal text, and nothing can end it.
        Block::Tree(room) => {
            lines(tree::lines(content.report, *room).iter().map(|line| format!("    {line}\n")).collect())
        }
        Block::Table(heads, rows) => {
            let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
            let rule = |is_number: bool| if is_number { "--:" } else { "---" }.to_owned();
            let mut table = vec![
                row(heads.iter().map(|(head, _)| escape(head)).collect()),
                row(heads.iter().map(|(_, is_number)| rule(*is_number)).collect()),
            ];
            table.extend(rows.iter().map(|cells| row(cells.iter().map(|cell| escape(cell)).collect())));
            table.concat()
        }
    }
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar for each column, or the sign of its event, or a blank if it is not known; at most `room` of them.
fn bars(columns: &[Column], room: usize) -> String {
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
