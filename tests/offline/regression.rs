//! The outputs for kept recordings: the last snapshot as a table and as JSON, the result of `check`, and the report. They change only with
//! a commit that means to change them.
//!
//! `LOCKTOP_ACCEPT=1 cargo test --test offline regression` writes the outputs; read the difference before you commit it. To add a
//! recording: `locktop record tests/recordings/kept/NAME.ltr --for 5s`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use locktop::app::print;
use locktop::feed::replay::Recording;
use locktop::feed::report;
use locktop::model::view::View;
use locktop::model::zone::Zone;
use locktop::output::check::{CheckFormat, CheckLimits, CheckReport, render};
use locktop::output::json;
use locktop::output::report::{Style, markdown};

/// Snapshots that `check` judges together, the last ones of a recording.
const JUDGED: usize = 3;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/kept")
}

/// The outputs for a recording: all as text, and the last snapshot as JSON.
fn shown(path: &Path) -> (String, String) {
    let mut recording = Recording::open(path).unwrap();
    let count = recording.moments().len();
    let views: Vec<Arc<View>> =
        (count.saturating_sub(JUDGED)..count).map(|place| recording.view(place).unwrap()).collect();
    let last = views.last().unwrap();
    let second = Duration::from_secs(1);
    let check = CheckReport::of(&views, Duration::ZERO, second, &CheckLimits::default());
    let report = report::of(&mut recording, 0..count, None, print::tree).unwrap();
    let parts = [
        ("snapshot", print::render(last, Some(140)).unwrap()),
        ("check", render(&check, CheckFormat::Plugin)),
        (
            "report",
            markdown(
                &report,
                Style { top: 10, zone: Zone::Fixed(chrono::FixedOffset::east_opt(0).unwrap()) },
            ),
        ),
    ];
    let text = parts.map(|(name, text)| format!("§ {name}\n{}\n", text.trim_end())).concat();
    let json: serde_json::Value = serde_json::from_str(&json::to_string(last).unwrap().unwrap()).unwrap();
    (text, serde_json::to_string_pretty(&json).unwrap() + "\n")
}

#[test]
fn the_output_of_recordings_has_not_changed() {
    let is_accepted = std::env::var_os("LOCKTOP_ACCEPT").is_some();
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut recordings: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "ltr")).collect();
    recordings.sort();
    assert!(recordings.len() >= 21, "{recordings:?}");
    let mut different = Vec::new();
    for path in recordings {
        let (text, json) = shown(&path);
        for (end, now) in [("txt", text), ("json", json)] {
            let kept = path.with_extension(end);
            if is_accepted {
                std::fs::write(&kept, &now).unwrap();
            }
            let before = std::fs::read_to_string(&kept).unwrap_or_default();
            let line = before.lines().zip(now.lines()).position(|(before, now)| before != now);
            if before != now {
                let at = line.unwrap_or_else(|| before.lines().count().min(now.lines().count()));
                let of = |text: &str| text.lines().nth(at).unwrap_or_default().to_owned();
                different.push(format!(
                    "{}:{}\n  was {}\n  is  {}",
                    kept.display(),
                    at + 1,
                    of(&before),
                    of(&now)
                ));
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
