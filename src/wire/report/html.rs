//! An HTML page without scripts, fonts and links. Every text of the recording is escaped.

use super::block::{Block, escape, text};
use super::content::{Content, Part};
use super::series::Stack;
use super::{chart, tree};

/// `default-src 'none'` forbids a browser to load or run anything, whatever a text contains.
const HEAD: &str = "<meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n";

const STYLE: &str = include_str!("page.css");

pub(super) fn page(content: &Content<'_>) -> String {
    let title = escape(&content.title);
    let mut out = vec![format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n{HEAD}<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{}</h1>\n",
        text(&content.title)
    )];
    let stack = Stack::of(content.report);
    for line in &content.headline {
        out.push(format!("<p class=\"h\">{}</p>\n", text(line)));
    }
    for Part { heading, blocks } in &content.parts {
        out.push(format!("<h2>{}</h2>\n", escape(heading)));
        out.extend(blocks.iter().map(|block| self::block(content, &stack, block)));
    }
    out.push(format!("<footer>{}</footer>\n</body>\n</html>\n", escape(&content.about())));
    out.concat()
}

fn each<T>(all: impl IntoIterator<Item = T>, write: impl Fn(T) -> String) -> String {
    all.into_iter().map(write).collect::<Vec<_>>().concat()
}

fn block(content: &Content<'_>, stack: &Stack, block: &Block) -> String {
    match block {
        Block::Paragraph(words) => format!("<p>{}</p>\n", text(words)),
        Block::Line => chart::chart(content, stack),
        Block::Episodes(numbers) => chart::bars(content, stack, numbers),
        Block::Tree(room) => tree::html(content.report, stack, *room),
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
