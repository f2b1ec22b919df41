//! A page: no script, no font, no link. Every text of the recording is escaped.

use super::block::Block;
use super::content::{Content, Part};
use super::picture;

/// `default-src 'none'` forbids a browser to load or to run anything, whatever a text may say.
const HEAD: &str = "<meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n";

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:68em;margin:2em auto;padding:0 1em;color:#1b1f24;background:#fff}\
h1{font-size:1.3em}h2{font-size:1.1em;margin-top:2em;border-bottom:1px solid #d0d7de}\
table{border-collapse:collapse;width:100%}td,th{padding:.25em .6em;text-align:left;vertical-align:top;border-bottom:1px solid #eaeef2;overflow-wrap:anywhere}\
.n{text-align:right;white-space:nowrap}pre{overflow-x:auto;background:#f6f8fa;padding:.8em;font-size:13px}\
svg{width:100%;height:auto}.u{fill:#8c959f;opacity:.25}.w{fill:#d4a72c}.r{fill:#cf222e}.a{stroke:#8c959f}.s{fill:#cf222e;font-size:12px}svg text{font-size:12px}\
.h{font-size:1.1em}ul{overflow-wrap:anywhere}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}h2{border-color:#30363d}td,th{border-color:#21262d}pre{background:#161b22}svg text{fill:#e6edf3}}";

/// Text as HTML: nothing in it is markup.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

pub(super) fn page(content: &Content<'_>) -> String {
    let title = escape(&content.title);
    let mut out = vec![format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n{HEAD}<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    )];
    for line in &content.headline {
        out.push(format!("<p class=\"h\">{}</p>\n", escape(line)));
    }
    for Part { heading, blocks } in &content.parts {
        out.push(format!("<h2>{}</h2>\n", escape(heading)));
        out.extend(blocks.iter().map(|block| self::block(content, block)));
    }
    let report = content.report;
    let about = format!("{} · recorded by {}", report.server, report.program);
    let about = escape(&crate::text::one_line_prefix(&about, 300));
    out.push(format!("<p>{about}</p>\n</body>\n</html>\n"));
    out.concat()
}

/// What is written for each, one after the other.
fn each<T>(all: impl IntoIterator<Item = T>, write: impl Fn(T) -> String) -> String {
    all.into_iter().map(write).collect::<Vec<_>>().concat()
}

fn block(content: &Content<'_>, block: &Block) -> String {
    match block {
        Block::Paragraph(text) => format!("<p>{}</p>\n", escape(text)),
        Block::Line => {
            let (from, to) = &content.ends;
            format!("{}\n", picture::svg(&content.report.columns, (&escape(from), &escape(to))))
        }
        Block::List(lines) => {
            let items = each(lines, |line| format!("<li>{}</li>\n", escape(line)));
            format!("<ul>\n{items}</ul>\n")
        }
        Block::Text(lines) => format!("<pre>{}</pre>\n", escape(&lines.join("\n"))),
        Block::Table(heads, rows) => table(heads, rows),
    }
}

fn table(heads: &[(&str, bool)], rows: &[Vec<String>]) -> String {
    let class = |is_number: bool| if is_number { " class=\"n\"" } else { "" };
    let head = each(heads, |(head, is_number)| format!("<th{}>{}</th>", class(*is_number), escape(head)));
    let rows = each(rows, |row| {
        let cells = each(heads.iter().zip(row), |((_, is_number), cell)| {
            format!("<td{}>{}</td>", class(*is_number), escape(cell))
        });
        format!("<tr>{cells}</tr>\n")
    });
    format!("<table>\n<tr>{head}</tr>\n{rows}</table>\n")
}
