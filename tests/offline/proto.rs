//! The published description of a recording's messages agrees with the sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The fields of each message by name: `pid = 1`, and its type.
type Fields = BTreeMap<String, Vec<(String, String)>>;

/// The contents of `assets/record.proto`.
fn described(text: &str) -> Fields {
    let mut fields = Fields::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("message ") {
            rest.split(' ').next().unwrap().clone_into(&mut name);
            fields.entry(name.clone()).or_default();
        } else if let Some(field) = line.strip_prefix("  ").and_then(|line| line.strip_suffix(';')) {
            let (kind, field) = field.trim_start_matches("repeated ").split_once(' ').unwrap();
            fields.get_mut(&name).unwrap().push((field.to_owned(), kind.to_owned()));
        }
    }
    fields
}

/// The rows of `columns!`, `flat_rows!` and `tuples!`: `1 pid: i32,` under `Backends of Backend {`, on one
/// line or several. Rows of `rows!` have their own struct: `pub struct Job in Jobs {`.
fn written(source: &str) -> Fields {
    let lines = source.lines().map(|line| {
        let row = line
            .trim()
            .strip_prefix("pub struct ")
            .and_then(|line| line.strip_suffix(" {")?.split_once(" in "));
        row.map_or_else(|| line.to_owned(), |(row, columns)| format!("    {columns} of {row} {{"))
    });
    let source = lines.collect::<Vec<_>>().join("\n").replace("\nrows! {\n", "\ncolumns! {\n");
    let mut fields = Fields::new();
    let source =
        source.replace("\nflat_rows! {\n", "\ncolumns! {\n").replace("\ntuples! {\n", "\ncolumns! {\n");
    for block in source.split("\ncolumns! {\n").skip(1) {
        let lines = block.split("\n}\n").next().unwrap().lines();
        let block = lines.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        for message in block.split(" of ").collect::<Vec<_>>().windows(2) {
            let name = message[0].rsplit([' ', '\n']).next().unwrap();
            let (_, body) = message[1].split_once("{\n").or_else(|| message[1].split_once('{')).unwrap();
            let body = body.split('}').next().unwrap();
            let words: Vec<&str> = body.split_whitespace().collect();
            let begins = |at: usize| {
                let number: u32 = words.get(at)?.parse().ok()?;
                Some(format!("{} = {number}", words.get(at + 1)?.strip_suffix(':')?))
            };
            let pairs = (0..words.len()).filter_map(|at| {
                let rest = words.iter().enumerate().skip(at + 2);
                let kind = rest.take_while(|(at, word)| **word != "=" && begins(*at).is_none());
                let kind = kind.map(|(_, word)| *word).collect::<Vec<_>>().join(" ");
                Some((begins(at)?, kind.trim_end_matches(',').to_owned()))
            });
            fields.insert(name.to_owned(), pairs.collect());
        }
    }
    fields
}

fn files_of(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}

/// The files of a folder and its subfolders.
fn files(folder: &Path) -> Vec<PathBuf> {
    files_of(folder).flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The message type for each type of the sources, as in the description.
fn kinds(described: &Fields, written: &Fields) -> BTreeMap<String, String> {
    let mut kinds = BTreeMap::new();
    for (name, fields) in written {
        let there: BTreeMap<_, _> = described.get(name).into_iter().flatten().cloned().collect();
        for (field, kind) in fields {
            let Some(column) = there.get(field) else { continue };
            let known = kinds.entry(kind.clone()).or_insert_with(|| column.clone());
            assert_eq!(known, column, "{kind} in {name}: {field}");
        }
    }
    kinds
}

/// The description with the missing fields added.
fn completed(text: &str, described: &Fields, written: &Fields) -> String {
    let kinds = kinds(described, written);
    let column =
        |kind: &String| kinds.get(kind).unwrap_or_else(|| panic!("no message has a {kind}; describe it"));
    let missing = |name: &str| {
        let there = described.get(name).map_or(&[][..], |fields| fields);
        let new = written.get(name).into_iter().flatten();
        let new = new.filter(|(field, _)| there.iter().all(|(known, _)| known != field));
        new.map(|(field, kind)| format!("  {} {field};", column(kind))).collect::<Vec<_>>()
    };
    let (mut lines, mut name) = (Vec::new(), "");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("message ") {
            name = rest.split(' ').next().unwrap();
        } else if line == "}" {
            lines.extend(missing(name));
        }
        lines.push(line.to_owned());
    }
    for name in written.keys().filter(|name| !described.contains_key(*name)) {
        lines.extend([String::new(), format!("message {name} {{")]);
        lines.extend(missing(name));
        lines.push("}".to_owned());
    }
    lines.join("\n") + "\n"
}

/// `LOCKTOP_ACCEPT=1` adds the missing fields.
#[test]
fn every_column_is_described_with_its_number_and_type() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("assets/record.proto");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut files = files(&root.join("src/model"));
    files.extend(files_of(&root.join("src/recording")).filter(|path| path.is_file()));
    let written: Fields =
        files.iter().flat_map(|path| written(&std::fs::read_to_string(path).unwrap())).collect();
    assert!(written.len() > 40, "{} messages were found", written.len());
    let wanted = completed(&text, &described(&text), &written);
    let described = described(&wanted);
    for (name, fields) in &written {
        let names =
            |fields: &[(String, String)]| fields.iter().map(|(field, _)| field.clone()).collect::<Vec<_>>();
        assert_eq!(names(&described[name]), names(fields), "{name} in assets/record.proto");
    }
    if std::env::var_os("LOCKTOP_ACCEPT").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    } else {
        assert!(text == wanted, "assets/record.proto lacks fields: LOCKTOP_ACCEPT=1 adds them");
    }
}
