//! No file imports itself, directly or through others: code that two files share is in a third. Imports
//! between a module and its parts are ignored, and so are tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::architecture::{module_of, rust_files};
use super::source::{Token, tokens};

/// The crates, and the directories of their sources.
const CRATES: [(&str, &str); 7] = [
    ("locktop", "src"),
    ("locktop_base", "crates/locktop-base/src"),
    ("locktop_lab", "crates/locktop-lab/src"),
    ("locktop_locks", "crates/locktop-locks/src"),
    ("locktop_tasks", "crates/locktop-tasks/src"),
    ("pg_connect", "crates/pg-connect/src"),
    ("wait_graph", "crates/pg-wait-graph/src"),
];

/// A crate and the modules down to a file.
type Module = Vec<String>;

/// The files that each file imports from.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn no_file_imports_itself_over_others() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = BTreeMap::new();
    for (name, folder) in CRATES {
        let folder = root.join(folder);
        let mut files = Vec::new();
        rust_files(&folder, &mut files);
        for file in files {
            let path = file.strip_prefix(&folder).unwrap().to_str().unwrap().replace('\\', "/");
            if !path.split('/').any(|part| part == "tests" || part == "tests.rs") {
                let module = [vec![name.to_owned()], module_of(&path)].concat();
                sources.insert(module, fs::read_to_string(&file).unwrap());
            }
        }
    }
    assert!(sources.len() > 400, "the sources were not found in {}", root.display());
    assert_eq!(cycle(&imports(&sources)), None);
}

fn imports(sources: &BTreeMap<Module, String>) -> Imports {
    let of = |module: &Module, source: &str| {
        let targets = paths(&without_tests(tokens(source)));
        let targets = targets.iter().filter_map(|path| file_of(module, path, sources));
        targets.filter(|target| !is_near(module, target)).collect()
    };
    sources.iter().map(|(module, source)| (module.clone(), of(module, source))).collect()
}

/// The source up to its tests, if they are in the file.
pub(super) fn without_tests(mut tokens: Vec<Token>) -> Vec<Token> {
    const BEGIN: [&str; 8] = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    let begins = |part: &[Token]| {
        let (mark, rest) = part.split_at(BEGIN.len());
        mark.iter().map(|token| token.text.as_str()).eq(BEGIN) && rest[1].text == "{"
    };
    let end = tokens.windows(BEGIN.len() + 2).position(begins).unwrap_or(tokens.len());
    tokens.truncate(end);
    tokens
}

/// Whether one module is the other, or is within it.
fn is_near(one: &Module, other: &Module) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// All paths of a source that can lead to another file.
fn paths(tokens: &[Token]) -> Vec<Vec<String>> {
    let text = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    let mut found = Vec::new();
    for index in 0..tokens.len() {
        let begins = matches!(text(index), "crate" | "super" | "self") && text(index + 1) == "::";
        let before = if index > 0 { text(index - 1) } else { "" };
        if before == "use" || (begins && before != "::") {
            tree(tokens, index, Vec::new(), &mut found);
        }
    }
    found
}

/// Follows a path, and each branch of a group; returns the index after it.
fn tree(tokens: &[Token], mut index: usize, mut path: Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let text = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    loop {
        if text(index) == "{" {
            index += 1;
            while index < tokens.len() && text(index) != "}" {
                index = if text(index) == "," { index + 1 } else { tree(tokens, index, path.clone(), found) };
            }
            return index + 1;
        }
        path.push(text(index).to_owned());
        index += 1;
        if text(index) != "::" {
            found.push(path);
            return index + if text(index) == "as" { 2 } else { 0 };
        }
        index += 1;
    }
}

/// The file that a path leads to, if it is one of the project.
fn file_of(module: &Module, path: &[String], sources: &BTreeMap<Module, String>) -> Option<Module> {
    let mut at = module.clone();
    for (place, word) in path.iter().enumerate() {
        match word.as_str() {
            "crate" => at.truncate(1),
            "super" => drop(at.pop()),
            "self" => {}
            word if place == 0 && CRATES.iter().any(|(name, _)| *name == word) => at = vec![word.to_owned()],
            word => {
                let below = [at.clone(), vec![word.to_owned()]].concat();
                if !sources.contains_key(&below) {
                    // A path of one word names another crate, or an item of this file.
                    return (place > 0).then_some(at);
                }
                at = below;
            }
        }
    }
    Some(at)
}

/// A cycle of files that import each other, the first again at the end; `None` if there is none.
fn cycle(imports: &Imports) -> Option<String> {
    let mut done = BTreeSet::new();
    imports.keys().find_map(|from| follow(imports, from, &mut Vec::new(), &mut done))
}

fn follow(
    imports: &Imports,
    at: &Module,
    way: &mut Vec<Module>,
    done: &mut BTreeSet<Module>,
) -> Option<String> {
    if let Some(begin) = way.iter().position(|module| module == at) {
        let cycle: Vec<_> = way[begin..].iter().chain([at]).map(|module| module.join("::")).collect();
        return Some(cycle.join(" -> "));
    }
    if done.contains(at) {
        return None;
    }
    way.push(at.clone());
    let found = imports.get(at).into_iter().flatten().find_map(|target| follow(imports, target, way, done));
    way.pop();
    done.insert(at.clone());
    found
}

#[test]
fn a_circle_is_found_however_it_is_written() {
    let with = |one: &str, other: &str| {
        let sources = [("locktop", ""), ("locktop a", ""), ("locktop a b", one), ("locktop c", other)];
        let sources = sources.map(|(module, source)| {
            (module.split(' ').map(str::to_owned).collect::<Module>(), source.to_owned())
        });
        cycle(&imports(&BTreeMap::from(sources)))
    };
    let cycle = Some("locktop::a::b -> locktop::c -> locktop::a::b".to_owned());
    for (one, other) in [
        ("use crate::c;", "use super::a::b::X;"),
        ("#[cfg(test)]\nmod tests;\nuse crate::c;", "use crate::a::b;"),
        ("use crate::{d, c::{Y, Z as W}};", "fn f() { crate::a::b::x() }"),
        ("use super::super::c::*;", "use locktop::a::{b};"),
        ("fn f() -> Vec<crate::c::T> {}", "impl super::a::b::T for () {}"),
    ] {
        assert_eq!(with(one, other), cycle, "{one} {other}");
    }
    for (one, other) in [
        ("use crate::c;", ""),
        ("use crate::c;", "use crate::a;"),
        ("use crate::c;", "// crate::a::b\nlet text = \"crate::a::b\";"),
        ("use crate::c;", "#[cfg(test)]\nmod tests { use crate::a::b; }"),
        ("use super::X; use c::d;", "use crate::a::b; use std::a::b;"),
    ] {
        assert_eq!(with(one, other), None, "{one} {other}");
    }
}
