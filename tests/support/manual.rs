//! The pages of the manual and their contents: blocks, prose, links.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::{Path, PathBuf};

/// A page, by its path from the root of the repository.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block<'a> {
    /// The first line of its content, counted from 1.
    pub(crate) line: usize,
    /// `sh`, `sql`, `toml`, `text`, or empty.
    pub(crate) language: &'a str,
    pub(crate) lines: Vec<&'a str>,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page for users: the texts in the root, and all of `docs`.
pub(crate) fn pages() -> Vec<Page> {
    let mut paths = Vec::new();
    markdown(root(), &mut paths);
    for folder in ["contrib", "docs", "docs/dev"] {
        markdown(&root().join(folder), &mut paths);
    }
    assert!(paths.len() > 15, "the manual was not found: {paths:?}");
    let page = |path: PathBuf| Page {
        path: path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned(),
        text: std::fs::read_to_string(&path).unwrap(),
    };
    paths.into_iter().map(page).collect()
}

fn markdown(folder: &Path, paths: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == "md")).collect();
    found.sort();
    paths.append(&mut found);
}

/// The fenced blocks of a page.
pub(crate) fn blocks(text: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut open): (Vec<Block<'_>>, bool) = (Vec::new(), false);
    for (index, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(language) if !open => {
                blocks.push(Block { line: index + 2, language: language.trim(), lines: Vec::new() });
                open = true;
            }
            Some(_) => open = false,
            None if open => blocks.last_mut().unwrap().lines.push(line),
            None => {}
        }
    }
    assert!(!open, "a block is not closed");
    blocks
}

/// The lines outside of blocks, with their numbers.
pub(crate) fn prose(text: &str) -> Vec<(usize, &str)> {
    let (mut lines, mut open) = (Vec::new(), false);
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            open = !open;
        } else if !open {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// The inline code of a line.
pub(crate) fn code(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}
