//! README, manual, changelog and the texts of `contrib` are in plain technical English: words that must not
//! return are found.

use super::manual_pages::{Block, blocks, pages, prose, root};
use super::plain_words_of::violations;

/// Exact strings that are permitted, with the reason. Each must still be in a text, and there are at most 30.
const EXCEPTIONS: &[(&str, &str)] = &[];

#[test]
fn texts_for_people_have_no_word_that_must_not_return() {
    let mut used = vec![false; EXCEPTIONS.len()];
    let mut found = Vec::new();
    for (place, text) in texts() {
        let mut text = text;
        for (index, (exception, _)) in EXCEPTIONS.iter().enumerate() {
            used[index] |= text.contains(exception);
            text = text.replace(exception, "_");
        }
        found.extend(violations(&text).into_iter().map(|violation| format!("{place}: {violation}")));
    }
    assert!(found.is_empty(), "{} words:\n{}", found.len(), found.join("\n"));
    let unused: Vec<_> = EXCEPTIONS.iter().zip(used).filter(|(_, used)| !used).collect();
    assert!(unused.is_empty() && EXCEPTIONS.len() <= 30, "unused: {unused:?}");
}

/// All texts with their places: a cell, an entry or a paragraph of a page; from blocks, the comments and the
/// output of programs.
fn texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for page in pages() {
        let mut add = |line: usize, text: String| texts.push((format!("{}:{line}", page.path), text));
        for (line, text) in paragraphs(&page.text) {
            add(line, text);
        }
        for block in blocks(&page.text) {
            for (line, text) in of_block(&block) {
                add(line, text);
            }
        }
    }
    for folder in std::fs::read_dir(root().join("contrib")).unwrap() {
        let Ok(files) = std::fs::read_dir(folder.unwrap().path()) else { continue };
        for file in files {
            let path = file.unwrap().path();
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.lines().enumerate();
            texts.extend(lines.map(|(index, line)| (format!("{name}:{}", index + 1), contrib_line(line))));
        }
    }
    texts
}

/// A line of a file for a monitoring system, without the punctuation of its language.
fn contrib_line(line: &str) -> String {
    line.trim_start_matches(['#', '/', '*', ' ']).replace(['=', '{', '}', '"'], " ")
}

/// The prose of a page: the lines of a paragraph joined, cells and entries of a list separate; code is one
/// word.
fn paragraphs(page: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (number, line) in prose(page) {
        let line = without_code(line);
        let entry = line.trim_start();
        if entry.contains(" | ") {
            found.extend(entry.split(" | ").map(|cell| (number, cell.trim_matches(['|', ' ']).to_owned())));
            open = false;
        } else if entry.is_empty() || entry.starts_with("![") {
            open = false;
        } else {
            let heading = entry.trim_start_matches('#').trim_start();
            let item = heading
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .trim_start_matches(['-', '.', '>', '*', ' ']);
            let begins = heading.len() < entry.len()
                || entry.starts_with("- ")
                || item.len() + 2 < entry.len() && entry.starts_with(|c: char| c.is_ascii_digit());
            match found.last_mut() {
                Some((_, text)) if open && !begins => *text = format!("{text} {entry}"),
                _ => found.push((number, item.to_owned())),
            }
            open = heading.len() == entry.len();
        }
    }
    found
}

/// Inline code counts as a name; the address of a link is dropped.
fn without_code(line: &str) -> String {
    let text: Vec<&str> = line.split('`').collect();
    let text = text.iter().enumerate().map(|(index, part)| if index % 2 == 1 { "_" } else { part });
    let text: String = text.collect();
    let mut rest = text.as_str();
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once("](") {
        plain += before;
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    plain + rest
}

fn of_block(block: &Block<'_>) -> Vec<(usize, String)> {
    let text = |line: &str| match block.language {
        "sh" | "toml" => line.split_once("# ").map(|(_, comment)| comment.to_owned()),
        "sql" => line.split_once("-- ").map(|(_, comment)| comment.to_owned()),
        "text" => Some(line.to_owned()),
        _ => None,
    };
    let lines = block.lines.iter().enumerate();
    lines.filter_map(|(index, line)| Some((block.line + index, text(line)?))).collect()
}

#[test]
fn a_word_is_found_in_a_sentence_and_not_in_a_name() {
    for text in [
        "One look a second.",
        "The lock is given\nback at the end.",
        "It waits.  Whoever waits is listed.",
        "What is sent is listed.",
        "it is restarted, where there is a pool",
        "Nobody waits.",
    ] {
        assert!(!violations(text).is_empty(), "{text}");
    }
    for text in [
        "A snapshot per second.",
        "`--looks 3` or --looks 3, trouble_before, a_look",
        "What does it cost?",
        "The lock is given. Back to the question.",
        "The server that answers is listed.",
    ] {
        assert_eq!(violations(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn prose_cells_comments_and_output_are_texts_and_code_is_not() {
    let page = "# A title\n\nfirst line\nsecond `look`\n\n- an entry\n- another [name](look.md)\n\na | `b`\n\n```sh\nlocktop x # a comment\n```\n";
    let texts: Vec<_> = paragraphs(page).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["A title", "first line second _", "an entry", "another [name", "a", "_"]);
    assert_eq!(of_block(&blocks(page)[0]), [(12, "a comment".to_owned())]);
}
