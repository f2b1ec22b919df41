//! The kept screens, and their comparison with what is drawn.
//!
//! One size is kept whole, in a file per screen, without the first and the last line. These two lines, and of the other two
//! sizes the lines that depend on the size (heads, selection, question, truncated text), are in one file per size. So a
//! change of one screen changes one file that is read as a whole, and a change of all screens changes few files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::Stage;

/// The three sizes: the default of most terminals, the size that most are set to, and a whole display.
pub(super) const SIZES: [(u16, u16); 3] = [(80, 24), WHOLE, (200, 60)];

const WHOLE: (u16, u16) = (120, 35);

static WRITING: Mutex<()> = Mutex::new(());

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/ui/screens").join(file)
}

fn is_accepted() -> bool {
    std::env::var_os("LOCKTOP_ACCEPT").is_some()
}

/// Compares with the kept screen, or writes it if `LOCKTOP_ACCEPT` is set.
pub(super) fn check(name: &str, stage: &mut Stage) {
    let size = stage.terminal.backend().buffer().area;
    let (width, height) = (size.width, size.height);
    let text = stage.text();
    if !SIZES.contains(&(width, height)) {
        return compare(&format!("{name}_{width}x{height}.txt"), &text);
    }
    let lines: Vec<&str> = text.lines().collect();
    let [first, middle @ .., last] = lines.as_slice() else { panic!("{text}") };
    let mut kept = format!("{first}\n");
    if (width, height) == WHOLE {
        compare(&format!("{name}.txt"), &(middle.join("\n").trim_end().to_owned() + "\n"));
    } else {
        for line in middle.iter().enumerate().filter(|(at, line)| tells(middle, *at, line)) {
            kept.extend([line.1, "\n"]);
        }
    }
    kept.extend([*last, "\n"]);
    compare_lines(&format!("lines_{width}x{height}.txt"), name, &kept, &text);
}

pub(super) fn check_whole(name: &str, stage: &mut Stage) {
    let size = stage.terminal.backend().buffer().area;
    compare(&format!("{name}_{}x{}.txt", size.width, size.height), &stage.text());
}

fn tells(lines: &[&str], at: usize, line: &str) -> bool {
    let is_title = |line: &str| line.starts_with('─');
    let is_head = at.checked_sub(1).and_then(|above| lines.get(above)).is_some_and(|above| is_title(above));
    let is_chosen = line.contains("> ");
    let is_question = line.contains('│');
    is_title(line) || is_head || is_chosen || is_question || line.contains('…')
}

fn compare(file: &str, text: &str) {
    let path = path(file);
    if is_accepted() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{} differs from what is drawn now:\n{text}", path.display());
}

fn compare_lines(file: &str, name: &str, lines: &str, text: &str) {
    let path = path(file);
    // A test that fails reports that itself; the others continue.
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let all = std::fs::read_to_string(&path).unwrap_or_default();
    let mut screens: BTreeMap<&str, &str> =
        all.split("\u{a7} ").filter_map(|screen| screen.split_once('\n')).collect();
    if is_accepted() {
        screens.insert(name, lines);
        let all = screens.iter().flat_map(|(name, lines)| ["\u{a7} ", *name, "\n", *lines]);
        std::fs::write(&path, all.collect::<String>()).unwrap();
        return;
    }
    let kept = screens.get(name).copied().unwrap_or_default();
    let missing = |from: &str, of: &str| {
        let lines = of.lines().filter(|line| !from.lines().any(|other| other == *line));
        lines.flat_map(|line| [line, "\n"]).collect::<String>()
    };
    assert!(
        kept == lines,
        "{name} in {} differs:\n{}is kept, and now there is\n{}\n{text}",
        path.display(),
        missing(lines, kept),
        missing(kept, lines),
    );
}
