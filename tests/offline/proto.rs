//! The description of a recording's messages, for others, is that of the sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The fields of each message by name: `pid = 1`.
type Fields = BTreeMap<String, Vec<String>>;

/// What `assets/record.proto` says.
fn described(text: &str) -> Fields {
    let mut fields = Fields::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("message ") {
            rest.split(' ').next().unwrap().clone_into(&mut name);
            fields.entry(name.clone()).or_default();
        } else if let Some(field) = line.strip_prefix("  ").and_then(|line| line.strip_suffix(';')) {
            let (_, field) = field.split_once(' ').unwrap();
            fields.get_mut(&name).unwrap().push(field.trim_start_matches("repeated ").to_owned());
        }
    }
    fields
}

/// What the rows of `columns!`, `flat_rows!` and `tuples!` are: `1 pid: i32,` under `Backends of Backend {`, on one line or
/// several. Those of `rows!` have a struct of their own: `pub struct Job in Jobs {`.
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
            let pairs = words.windows(2).filter_map(|pair| {
                let number: u32 = pair[0].parse().ok()?;
                Some(format!("{} = {number}", pair[1].strip_suffix(':')?))
            });
            fields.insert(name.to_owned(), pairs.collect());
        }
    }
    fields
}

fn files_of(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}

/// The files of a folder and of those below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    files_of(folder).flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn every_column_is_described_with_its_number() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let described = described(&std::fs::read_to_string(root.join("assets/record.proto")).unwrap());
    let mut count = 0;
    let mut files = files(&root.join("src/model"));
    files.extend(files_of(&root.join("src/wire/record")).filter(|path| path.is_file()));
    for path in files {
        let source = std::fs::read_to_string(path).unwrap();
        for (name, fields) in written(&source) {
            assert_eq!(described.get(&name), Some(&fields), "{name} in assets/record.proto");
            count += 1;
        }
    }
    assert!(count > 40, "{count} messages were found");
}
