//! Every string of the program that users can read is in plain technical English.
//!
//! `LOCKTOP_STRINGS=1 cargo test --test offline strings_of -- --nocapture` prints all of them, with their
//! places.

use std::fs;
use std::path::Path;

use super::architecture::rust_files;
use super::cycles::without_tests;
use super::manual_pages::root;
use super::plain_words_of::violations;
use super::source::{Kind, Token, pieces};

/// Exact strings that are permitted, with the reason. Each must still be in a text.
const EXCEPTIONS: &[(&str, &str)] = &[(
    "gone: it lost its lock or session; silent: for longer than its system permits; stopped: it reported that",
    "`gone` is a state, as in JSON",
)];

#[test]
fn strings_of_the_program_have_no_word_that_must_not_return() {
    let strings = strings();
    if std::env::var_os("LOCKTOP_STRINGS").is_some() {
        for (place, text) in &strings {
            eprintln!("{place}: {text:?}");
        }
    }
    assert!(strings.len() > 4000, "the sources were not found: {}", strings.len());
    let mut unused: Vec<_> = EXCEPTIONS.iter().collect();
    let mut found = Vec::new();
    for (place, text) in &strings {
        unused.retain(|(exception, _)| text != exception);
        if !EXCEPTIONS.iter().any(|(exception, _)| text == exception) {
            found.extend(violations(text).into_iter().map(|violation| format!("{place}: {violation}")));
        }
    }
    assert!(found.is_empty(), "{} words:\n{}", found.len(), found.join("\n"));
    assert!(unused.is_empty() && EXCEPTIONS.len() <= 30, "unused: {unused:?}");
}

/// The released versions of the schema: databases contain them, and a checksum forbids changes.
const NOT_YET: &[&str] = &["crates/locktop-tasks/assets/sql/schema/"];

/// The strings of all sources with their places; single words are names. Rendered text is checked by the
/// tests that render it.
fn strings() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["src", "crates", "assets"] {
        for path in files(&root().join(folder)) {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
            if NOT_YET.iter().any(|folder| name.starts_with(folder)) {
                continue;
            }
            let source = fs::read_to_string(&path).unwrap();
            let texts = match path.extension().and_then(|extension| extension.to_str()) {
                Some("rs") => of_rust(&source),
                Some("sql") => of_other(&source, ("--", false), '\''),
                _ => of_other(&source, ("#", true), '"'),
            };
            let texts = texts.into_iter().filter(|(_, text)| text.contains(char::is_whitespace));
            found.extend(texts.map(|(line, text)| (format!("{name}:{line}"), text)));
        }
    }
    found
}

/// The files with strings for users: tests, examples and benches have none.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    rust_files(folder, &mut files);
    for extension in ["sql", "toml"] {
        files.extend(with_extension(folder, extension));
    }
    files.retain(|path| {
        let path = path.strip_prefix(root()).unwrap();
        !path.iter().any(|part| part == "tests" || part == "tests.rs" || part == "examples")
            && path.file_name().is_some_and(|name| name != "Cargo.toml")
    });
    files
}

fn with_extension(folder: &Path, extension: &str) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(with_extension(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// String literals, and the doc comments that are the help of options; a formatted value is one word.
fn of_rust(source: &str) -> Vec<(usize, String)> {
    let pieces = without_tests(pieces(source));
    let has_help = pieces.iter().any(|piece| piece.text == "clap");
    let mut texts: Vec<(usize, String)> = Vec::new();
    let mut doc_end = 0;
    for (index, piece) in pieces.iter().enumerate() {
        match piece.kind {
            Kind::Text if !is_reason(&pieces[..index]) => texts.push((piece.line, formatted(&piece.text))),
            Kind::Doc if has_help => {
                match texts.last_mut() {
                    Some((_, text)) if doc_end + 1 == piece.line && !piece.text.is_empty() => {
                        *text = format!("{text} {}", piece.text);
                    }
                    _ => texts.push((piece.line, piece.text.clone())),
                }
                doc_end = piece.line;
            }
            _ => {}
        }
    }
    texts
}

/// The reason of a lint is for developers.
fn is_reason(before: &[Token]) -> bool {
    let [.., word, sign] = before else { return false };
    word.text == "reason" && sign.text == "="
}

fn formatted(text: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => {
                depth -= 1;
                plain.push('_');
            }
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

/// Quoted strings, and comments if they count: comments on consecutive lines are one text.
fn of_other(source: &str, (comment, counts): (&str, bool), quote: char) -> Vec<(usize, String)> {
    let mut texts: Vec<(usize, String)> = Vec::new();
    let mut last_comment = 0;
    let (mut open, mut opened, mut text) = (false, 0, String::new());
    for (number, line) in (1..).zip(source.lines()) {
        if !open && let Some(comment) = line.trim_start().strip_prefix(comment) {
            let comment = comment.trim();
            match texts.last_mut() {
                Some((_, text)) if counts && last_comment + 1 == number && !comment.is_empty() => {
                    *text = format!("{text} {comment}");
                }
                _ if counts => texts.push((number, comment.to_owned())),
                _ => {}
            }
            last_comment = number;
            continue;
        }
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            if c == quote {
                if open {
                    texts.push((opened, std::mem::take(&mut text)));
                }
                (open, opened) = (!open, number);
            } else if open {
                text.push(c);
            } else if let Some(comment) = rest.strip_prefix(comment) {
                texts.extend(counts.then(|| (number, comment.trim().to_owned())));
                break;
            }
            rest = &rest[c.len_utf8()..];
        }
        if open {
            text.push('\n');
        }
    }
    texts
}

#[test]
fn texts_of_each_language_are_found() {
    let rust = "use clap::Args;\n/// Help of\n/// two lines.\n#[expect(x, reason = \"no text\")]\nf(\"{a} of {}\");\n#[cfg(test)]\nmod tests { \"no text\" }";
    let expected = [(2, "Help of two lines.".to_owned()), (5, "_ of _".to_owned())];
    assert_eq!(of_rust(rust), expected);
    let sql = "-- One\n-- text.\nSELECT 'a\nb', 'c--d' -- Another.\n";
    let texts: Vec<_> = of_other(sql, ("--", true), '\'').into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["One text.", "a\nb", "c--d", "Another."]);
    assert_eq!(of_other(sql, ("--", false), '\'').len(), 2);
}

/// The server's data on the screens: names and statements of others are no text of the program.
#[test]
fn screens_have_no_word_that_must_not_return() {
    let mut found = Vec::new();
    let mut lines = 0;
    for path in with_extension(&root().join("src/ui/screens"), "txt") {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        for (number, line) in (1..).zip(fs::read_to_string(&path).unwrap().lines()) {
            lines += 1;
            // Columns are separate texts.
            for text in
                line.split("  ").map(|text| text.trim_matches(['│', '└', '├', '─', '┌', '┐', '┘', ' ']))
            {
                found.extend(
                    violations(text).into_iter().map(|violation| format!("{name}:{number}: {violation}")),
                );
            }
        }
    }
    assert!(lines > 2000, "the screens were not found: {lines}");
    assert!(found.is_empty(), "{} words:\n{}", found.len(), found.join("\n"));
}
