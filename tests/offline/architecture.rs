//! The floors of the library: a file imports only from floors above its own, and some crates belong to
//! certain floors only. The sources are read as text; comments and strings are ignored.

use std::fs;
use std::path::{Path, PathBuf};

use super::source::{Token, tokens};

/// From the top. A floor can import from those above it, and from none below. `demo` is the name for the
/// crate `locktop_lab`.
const FLOORS: [&str; 15] = [
    "keys",
    "model",
    "recording",
    "output",
    "pg",
    "redis",
    "action",
    "feed",
    "app",
    "ui",
    "demo",
    "runtime",
    "config",
    "cli",
    "main",
];

/// Crates that are restricted to some floors.
const CRATES: [(&str, Allowed); 13] = [
    ("ratatui", Allowed::Only(&["ui", "runtime"])),
    ("ratatui_core", Allowed::Only(&["ui", "runtime"])),
    ("ratatui_widgets", Allowed::Only(&["ui", "runtime"])),
    ("crossterm", Allowed::Only(&["runtime", "cli"])),
    ("tokio", Allowed::NotIn(&["keys", "model", "app", "ui"])),
    ("futures_util", Allowed::NotIn(&["keys", "model", "app", "ui"])),
    ("tokio_postgres", Allowed::NotIn(&["keys", "model", "recording", "output", "app", "ui"])),
    ("postgres_protocol", Allowed::NotIn(&["keys", "model", "recording", "output", "app", "ui"])),
    ("redis", Allowed::Only(&["redis"])),
    ("locktop_lab", Allowed::Only(&["cli"])),
    ("rustls", Allowed::Only(&[])),
    ("tracing", Allowed::Only(&["action", "feed", "cli"])),
    ("color_eyre", Allowed::Only(&["main"])),
];

/// The floors that may name a crate.
enum Allowed {
    Only(&'static [&'static str]),
    NotIn(&'static [&'static str]),
}

impl Allowed {
    fn permits(&self, floor: &str) -> bool {
        match self {
            Self::Only(floors) => floors.contains(&floor),
            Self::NotIn(floors) => !floors.contains(&floor),
        }
    }
}

#[test]
fn every_file_imports_from_above_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    assert!(files.len() > 10, "the sources were not found in {}", root.display());
    let mut violations = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        violations.extend(check(&path, &fs::read_to_string(&file).unwrap()));
    }
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

/// The files with code for one operating system. Other systems have another implementation, or do without.
/// `packaging/checks.sh darwin` compiles them for macOS.
const KNOW_THE_SYSTEM: [&str; 9] = [
    "crates/glibc-malloc/src/lib.rs",
    "crates/locktop-base/src/clock.rs",
    "crates/locktop-lab/src/postgres/cache.rs",
    "crates/locktop-lab/src/postgres/find.rs",
    "crates/locktop-lab/src/process.rs",
    "crates/pg-connect/src/socket.rs",
    "src/cli/run/lock.rs",
    "src/cli/run/worker.rs",
    "src/runtime/signals.rs",
];

#[test]
fn code_for_one_system_is_in_few_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    rust_files(&root.join("src"), &mut files);
    rust_files(&root.join("crates"), &mut files);
    let names =
        ["\"/proc", "\"/sys/", "/dev/shm", "target_os", "target_env", "os::linux", "use std::env::consts"];
    files.retain(|file| {
        let source = fs::read_to_string(file).unwrap();
        names.iter().any(|name| source.contains(name))
    });
    let mut found: Vec<_> =
        files.iter().map(|file| file.strip_prefix(root).unwrap().to_str().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, KNOW_THE_SYSTEM);
}

pub(super) fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            rust_files(&entry, files);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            files.push(entry);
        }
    }
}

/// The violations in one file; `path` is relative to `src`.
fn check(path: &str, source: &str) -> Vec<String> {
    let module = module_of(path);
    let Some(floor) = module.first().cloned() else { return Vec::new() };
    let Some(level) = FLOORS.iter().position(|name| *name == floor) else {
        return vec![format!(
            "src/{path}:1: `{floor}` is not a floor; add it to FLOORS of tests/offline/architecture.rs"
        )];
    };
    let mut violations = Vec::new();
    for import in imports(&module, source) {
        let Import { line, target, .. } = &import;
        if import.external {
            if let Some((_, allowed)) = CRATES.iter().find(|(name, _)| name == target)
                && !allowed.permits(&floor)
            {
                violations
                    .push(format!("src/{path}:{line}: the crate `{target}` is not permitted in `{floor}`"));
            }
        } else if let Some(other) = FLOORS.iter().position(|name| name == target)
            && other > level
        {
            violations.push(format!(
                "src/{path}:{line}: `{floor}` imports `{target}`, which is a floor below it; the order is {}",
                FLOORS.join(", ")
            ));
        }
    }
    violations
}

/// The module of a file: empty for the root of the library.
pub(super) fn module_of(path: &str) -> Vec<String> {
    let mut module: Vec<String> = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|name| name == "mod" || name == "lib") {
        module.pop();
    }
    module
}

/// A path in a source that leads out of its module.
#[derive(Debug, PartialEq, Eq)]
struct Import {
    line: usize,
    /// A module of the library's root, or a crate.
    target: String,
    external: bool,
}

fn imports(module: &[String], source: &str) -> Vec<Import> {
    let tokens = tokens(source);
    let text = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    let mut found = Vec::new();
    // Modules within the file, each with the depth of braces at which it began.
    let mut inner: Vec<(String, usize)> = Vec::new();
    let mut depth = 0_usize;
    for index in 0..tokens.len() {
        match text(index) {
            "{" => {
                if index >= 2 && text(index - 2) == "mod" {
                    inner.push((text(index - 1).to_owned(), depth));
                }
                depth += 1;
            }
            "}" => {
                depth = depth.saturating_sub(1);
                inner.pop_if(|(_, began)| *began == depth);
            }
            _ => {}
        }
        let follows_path = index > 0 && (text(index - 1) == "::" && index > 1 && is_segment(text(index - 2)));
        if follows_path || !is_word(text(index)) {
            continue;
        }
        let here = || module.iter().cloned().chain(inner.iter().map(|(name, _)| name.clone())).collect();
        let base = match text(index) {
            "crate" | "locktop" if text(index + 1) == "::" => Some(Vec::new()),
            "self" if text(index + 1) == "::" => Some(here()),
            "super" if text(index + 1) == "::" => Some(parent(here())),
            _ => None,
        };
        if let Some(base) = base {
            walk(&tokens, index + 1, base, &mut found);
        } else if text(index + 1) == "::" || (index > 0 && matches!(text(index - 1), "use" | "crate")) {
            let Token { text, line, .. } = tokens[index].clone();
            found.push(Import { line, target: text, external: true });
        }
    }
    found
}

fn parent(mut module: Vec<String>) -> Vec<String> {
    module.pop();
    module
}

/// Follows a path from the `::` at `index`, and each branch of a group; returns the index after it.
fn walk(tokens: &[Token], index: usize, at: Vec<String>, found: &mut Vec<Import>) -> usize {
    let text = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    if text(index) != "::" {
        return index;
    }
    let next = index + 1;
    if text(next) == "{" {
        let mut index = next + 1;
        while index < tokens.len() && text(index) != "}" {
            index = if is_word(text(index)) { step(tokens, index, at.clone(), found) } else { index + 1 };
        }
        return index + 1;
    }
    if is_word(text(next)) { step(tokens, next, at, found) } else { next }
}

/// Continues with the word at `index`; from the root it names a floor.
fn step(tokens: &[Token], index: usize, mut at: Vec<String>, found: &mut Vec<Import>) -> usize {
    match tokens[index].text.as_str() {
        "super" => at = parent(at),
        "self" => {}
        word => {
            if at.is_empty() {
                found.push(Import { line: tokens[index].line, target: word.to_owned(), external: false });
            }
            at.push(word.to_owned());
        }
    }
    walk(tokens, index + 1, at, found)
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// A word that a path can continue from: in `use ::tokio` the path begins after the first word.
fn is_segment(text: &str) -> bool {
    is_word(text) && !matches!(text, "use" | "as" | "return" | "in" | "impl" | "dyn" | "mut" | "for" | "else")
}

#[test]
fn a_path_to_a_floor_below_is_found_however_it_is_written() {
    for (path, source) in [
        ("model/lock.rs", "use crate::ui::theme;"),
        ("model/lock.rs", "use crate::{text, pg::Client};"),
        ("model/lock.rs", "use crate::{\n    text::{self, width},\n    feed,\n};"),
        ("model/lock.rs", "fn f() { crate::app::run() }"),
        ("model/lock.rs", "use super::super::pg;"),
        ("model/lock.rs", "use super::super::{text, ui::theme};"),
        ("model/mod.rs", "use super::pg::Client;"),
        ("model/mod.rs", "mod tests { use super::super::ui; }"),
        ("model/wait_graph/mod.rs", "pub(crate) use crate::output as w;"),
        ("clock.rs", "use super::model::Timestamp;"),
        ("clock.rs", "use locktop::model::Timestamp;"),
        ("clock.rs", "type T = ::locktop::model::Timestamp;"),
        ("ui/mod.rs", "macro_rules! m { () => { $crate::runtime::start() } }"),
        ("pg/poll.rs", "let c = '\"'; use crate::demo; // \""),
        ("pg/poll.rs", "let s = r#\"\"#; impl<'a> crate::feed::Feed<'a> {}"),
    ] {
        assert_eq!(check(path, source).len(), 1, "{path}: {source}: {:?}", check(path, source));
    }
}

#[test]
fn a_crate_on_the_wrong_floor_is_found() {
    for (path, source) in [
        ("app/state.rs", "use ratatui::Frame;"),
        ("app/state.rs", "fn f() { tokio::spawn(async {}); }"),
        ("model/lock.rs", "use tokio_postgres as pg;"),
        ("ui/mod.rs", "use ::tokio::sync::watch;"),
        ("ui/mod.rs", "extern crate tokio_postgres;"),
        ("feed/mod.rs", "use color_eyre::Result;"),
    ] {
        assert_eq!(check(path, source).len(), 1, "{path}: {source}: {:?}", check(path, source));
    }
}

#[test]
fn allowed_imports_are_not_reported() {
    for (path, source) in [
        ("lib.rs", "pub mod ui; pub use ui::theme;"),
        ("main.rs", "use locktop::{cli, text}; use color_eyre::Result;"),
        ("model/lock.rs", "use super::{Text, Timestamp}; use crate::text::width; use self::ui::x;"),
        ("model/finding/tests/mod.rs", "use super::super::super::text; use crate::model::lock;"),
        ("model/mod.rs", "mod tests { use super::ui; }\nuse self::pg::x;"),
        (
            "model/lock.rs",
            "// use crate::ui;\n/* crate::pg /* crate::ui */ */\n/// [`crate::feed`]\nfn f() {}",
        ),
        (
            "model/lock.rs",
            "let s = \"crate::ui \\\" crate::ui\"; let r = r#\"use crate::\"ui\"#; b\"crate::ui\";",
        ),
        ("ui/mod.rs", "use ratatui::Frame; use crate::app::App; let tokio = 1; x.tokio();"),
        ("pg/mod.rs", "use tokio_postgres::Client; use tokio::time;"),
        ("feed/mod.rs", "fn ui() {} let r#type = crate::pg::poll;"),
    ] {
        assert_eq!(check(path, source), Vec::<String>::new(), "{path}: {source}");
    }
}

#[test]
fn a_violation_names_its_file_and_line() {
    let source = "//! A lock.\n\nuse crate::{\n    text,\n    ui::theme,\n};\n";
    let violations = check("model/lock.rs", source);
    assert!(violations[0].starts_with("src/model/lock.rs:5: `model` imports `ui`, "), "{violations:?}");
    let violations = check("app/mod.rs", "\nuse ratatui::Frame;");
    assert_eq!(violations, ["src/app/mod.rs:2: the crate `ratatui` is not permitted in `app`"]);
    let violations = check("odds/mod.rs", "");
    assert!(violations[0].starts_with("src/odds/mod.rs:1: `odds` is not a floor"), "{violations:?}");
}
