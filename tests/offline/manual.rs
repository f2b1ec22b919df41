//! All names in the manual exist: links and anchors, source files, options, statements, checks.

use std::collections::BTreeSet;
use std::path::Path;

use clap::CommandFactory;
use locktop::cli::Cli;
use locktop::output::check::names;

use super::architecture::rust_files;
use super::manual_pages::{Page, blocks, code, pages, prose, root};

/// Options of other programs in the manual.
const OPTIONS_OF_OTHERS: &[&str] = &[
    "--allow-untrusted",
    "--network",
    "--rm",
    "--bench",
    "--example",
    "--features",
    "--format",
    "--ignored",
    "--lib",
    "--max-time",
    "--nocapture",
    "--locked",
    "--long",
    "--release",
    "--reproducible",
    "--stat",
    "--test",
];

fn page<'a>(pages: &'a [Page], path: &str) -> &'a Page {
    pages.iter().find(|page| page.path == path).unwrap_or_else(|| panic!("there is no {path}"))
}

/// The anchors of a page, as GitHub derives them from its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).into_iter().filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| anchor(line.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The targets of the links of a page, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(targets.map(|target| (line, target.to_owned())));
    }
    found
}

/// In a clone, one command starts the demo, and one runs the tests.
#[test]
fn the_readme_has_the_commands_for_the_demo_and_the_tests() {
    let pages = pages();
    let readme = &page(&pages, "README.md").text;
    for command in ["`cargo run -- demo`", "`tests/run.sh`"] {
        assert!(readme.contains(command), "{command}");
    }
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut broken = Vec::new();
    for from in &pages {
        for (line, target) in links(&from.text) {
            if target.contains("://") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = match path {
                "" => from.path.clone(),
                path => normal(&Path::new(&from.path).parent().unwrap().join(path)),
            };
            let exists = root().join(&path).exists();
            let has_anchor =
                anchor.is_empty() || exists && anchors(&page(&pages, &path).text).contains(anchor);
            if !exists || !has_anchor {
                broken.push(format!("{}:{line}: {target}", from.path));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// A path without `..`.
fn normal(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.iter().map(|part| part.to_str().unwrap()) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// Each page of the manual can be reached from its index.
#[test]
fn every_page_is_in_the_index() {
    let pages = pages();
    let index: BTreeSet<_> = links(&page(&pages, "docs/README.md").text)
        .into_iter()
        .map(|(_, target)| normal(&Path::new("docs").join(target)))
        .collect();
    let missing: Vec<_> = pages
        .iter()
        .map(|page| page.path.clone())
        .filter(|path| path.starts_with("docs/") && path != "docs/README.md" && !index.contains(path))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Files and folders that a page names, and pages that a comment names.
#[test]
fn every_path_exists() {
    const FOLDERS: [&str; 8] =
        ["src/", "tests/", "crates/", "assets/", "benches/", "docs/", "contrib/", "packaging/"];
    let mut missing = Vec::new();
    let mut check = |place: String, text: &str, folders: &[&str]| {
        for name in code(text).iter().flat_map(|code| code.split([' ', ':'])) {
            let is_path =
                folders.iter().any(|folder| name.starts_with(folder)) && !name.contains(['*', '{', 'N']);
            if is_path && !root().join(name).exists() {
                missing.push(format!("{place}: {name}"));
            }
        }
    };
    // The changelog names files as they were at the time of the releases.
    for page in pages().iter().filter(|page| page.path != "CHANGELOG.md") {
        for (line, text) in prose(&page.text) {
            check(format!("{}:{line}", page.path), text, &FOLDERS);
        }
    }
    let mut sources = Vec::new();
    for folder in ["src", "crates", "tests", "benches"] {
        rust_files(&root().join(folder), &mut sources);
    }
    for path in sources {
        let text = std::fs::read_to_string(&path).unwrap();
        let comments = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"));
        comments
            .for_each(|(index, line)| check(format!("{}:{}", path.display(), index + 1), line, &["docs/"]));
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The long options of every command.
fn options(command: &clap::Command, found: &mut BTreeSet<String>) {
    found.extend(command.get_arguments().filter_map(clap::Arg::get_long).map(|name| format!("--{name}")));
    command.get_subcommands().for_each(|command| options(command, found));
}

#[test]
fn every_option_is_one_of_a_command() {
    let mut command = Cli::command();
    command.build();
    let mut known = BTreeSet::from(["--version".to_owned()]);
    options(&command, &mut known);
    let mut unknown = Vec::new();
    let mut seen = 0;
    for page in pages().iter().filter(|page| page.path != "CHANGELOG.md") {
        for (line, text) in prose(&page.text) {
            for word in code(text).iter().flat_map(|code| code.split([' ', '='])) {
                let option = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
                let option = option.split('[').next().unwrap();
                if option.len() > 2
                    && option.starts_with("--")
                    && option[2..].starts_with(|c: char| c.is_ascii_lowercase())
                {
                    seen += 1;
                    if !known.contains(option) && !OPTIONS_OF_OTHERS.contains(&option) {
                        unknown.push(format!("{}:{line}: {option}", page.path));
                    }
                }
            }
        }
    }
    assert!(seen > 50 && unknown.is_empty(), "{seen} options; unknown: {unknown:#?}");
}

/// Every file with a statement is on the page about security, by its name or by a pattern such as
/// `tasks*.sql`.
#[test]
fn every_statement_is_on_the_page_about_security() {
    let pages = pages();
    let named: Vec<String> = page(&pages, "docs/security.md")
        .text
        .lines()
        .flat_map(code)
        .flat_map(|code| code.split(' '))
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "sql"))
        .map(str::to_owned)
        .collect();
    let mut files = Vec::new();
    for folder in ["assets/sql", "crates/locktop-tasks/assets/sql"] {
        statements(&root().join(folder), "", &mut files);
    }
    assert!(files.len() > 40, "{files:?}");
    // Installed scripts are not statements that locktop sends on its own.
    let missing: Vec<_> = files
        .iter()
        .filter(|file| !file.starts_with("schema/"))
        .filter(|file| !covers(&named, file))
        .collect();
    assert!(missing.is_empty(), "not on docs/security.md: {missing:?}");
    let stale: Vec<_> = named
        .iter()
        .filter(|name| !files.iter().any(|file| covers(std::slice::from_ref(name), file)))
        .collect();
    assert!(stale.is_empty(), "on docs/security.md, and no file: {stale:?}");
}

fn statements(folder: &Path, prefix: &str, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            statements(&path, &format!("{name}/"), files);
        } else if path.extension().is_some_and(|extension| extension == "sql") {
            files.push(name);
        }
    }
}

fn covers(patterns: &[String], file: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.split_once('*') {
        Some((begin, end)) => {
            file.starts_with(begin) && file.ends_with(end) && !file[begin.len()..].contains('/')
        }
        None => pattern == file,
    })
}

/// The rows of the table of checks are the existing checks, and the names of findings are those of the
/// program.
#[test]
fn every_check_is_on_its_page() {
    let pages = pages();
    let text = &page(&pages, "docs/check.md").text;
    let rows = text.lines().filter(|line| line.starts_with('`') && line.contains('|'));
    let named: BTreeSet<&str> = rows.flat_map(|row| code(row.split(" | ").next().unwrap())).collect();
    let missing: Vec<_> = names().filter(|name| !named.contains(name)).collect();
    assert!(missing.is_empty(), "not on docs/check.md: {missing:?}");
}

/// The tests of the manual know the language of every block.
#[test]
fn every_block_has_a_language() {
    const KNOWN: [&str; 5] = ["sh", "sql", "toml", "text", "rust"];
    for page in pages() {
        for block in blocks(&page.text) {
            assert!(
                KNOWN.contains(&block.language),
                "{}:{}: a block in {:?}",
                page.path,
                block.line,
                block.language
            );
        }
    }
}

/// A header and a line below it with different numbers of cells are not a table.
#[test]
fn every_table_has_a_header() {
    let mut seen = 0;
    for page in pages() {
        let lines = prose(&page.text);
        for pair in lines.windows(2) {
            let (header, line) = (pair[0].1, pair[1].1);
            if line.contains('|') && line.contains("--") && line.chars().all(|c| matches!(c, '|' | '-' | ':'))
            {
                seen += 1;
                assert_eq!(cells(header), cells(line), "{}:{}: {header}", page.path, pair[0].0);
            }
        }
    }
    assert!(seen > 40, "{seen} tables");
}

/// Number of cells of a row; a bar within code does not separate cells.
fn cells(row: &str) -> usize {
    let parts = row.split('`').enumerate();
    let outside: String = parts.map(|(index, part)| if index % 2 == 1 { "_" } else { part }).collect();
    outside.trim().trim_start_matches('|').trim_end_matches('|').matches('|').count() + 1
}

#[test]
fn an_anchor_is_that_of_a_forge() {
    assert_eq!(anchor("The record"), "the-record");
    assert_eq!(anchor("From `K` to a signal"), "from-k-to-a-signal");
    assert_eq!(anchor("recover --format json"), "recover---format-json");
    assert!(
        covers(&["tasks*.sql".to_owned()], "tasks_last.sql") && !covers(&["*.sql".to_owned()], "learn/x.sql")
    );
}
