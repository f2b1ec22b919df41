//! The cost of a recording: bytes per snapshot in the file, the time to open it and to jump to a snapshot, the memory
//! for that, and the time of a report of its last hour.
//!
//! The recording has `LOCKTOP_SNAPSHOTS` (3600) snapshots, one per second, of a simulated server with 500 sessions and
//! 2,000 locks: idle, quiet (a hundredth of the sessions changed since the previous snapshot) and busy (a fifth did).
//! `LOCKTOP_SNAPSHOTS=86400` is a day.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::print_stdout,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a benchmark may"
)]

#[path = "support/made.rs"]
mod made;
#[path = "support/sample.rs"]
mod sample;

use std::path::Path;
use std::time::Duration;

use chrono::Offset;
use locktop::feed::record::{Destination, Options, Recorder, Rotation};
use locktop::feed::replay::Recording;
use locktop::feed::report;
use locktop::feed::view_builder::ViewBuilder;
use locktop::model::lock_name::LockNames;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::TargetId;
use locktop::output::report::{Style, html};
use locktop::recording::container::RecordingInfo;
use made::{Made, percentile, timed};

/// An hour of snapshots.
const REPORTED: usize = 3_600;

fn main() {
    // As the program does.
    glibc_malloc::fix_mmap_threshold();
    let snapshots =
        std::env::var("LOCKTOP_SNAPSHOTS").ok().and_then(|snapshots| snapshots.parse().ok()).unwrap_or(3_600);
    println!(
        "{snapshots} snapshots of 500 sessions and 2,000 locks; milliseconds of processor time, MB of memory"
    );
    println!(
        "{:>8} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>10} {:>10}",
        "", "KB/snap", "MB", "open", "jump", "p99", "memory", "report s", "HTML KB"
    );
    let folder = tempfile::tempdir().unwrap();
    for (name, percent) in [("idle", 0), ("quiet", 1), ("busy", 20)] {
        let path = folder.path().join(format!("{name}.ltr"));
        write(&path, percent, snapshots);
        read(name, &path);
    }
}

fn write(path: &Path, percent: u64, snapshots: u32) {
    let about = RecordingInfo {
        program: "bench".to_owned(),
        target: "made up".to_owned(),
        refresh: 1.0,
        ..RecordingInfo::default()
    };
    let options = Options {
        on_trouble: None,
        place: Destination::File(path.to_owned()),
        sync: Duration::from_secs(60),
        rotation: Rotation::default(),
        about,
    };
    let mut recorder = Recorder::open(options).unwrap();
    let mut view_builder = ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default());
    let mut made = Made::new(500, 2_000);
    for second in 0..snapshots {
        let past = view_builder.past();
        view_builder.snapshot_taken(made.snapshot(f64::from(second), percent));
        recorder.write(&view_builder.observation(past)).unwrap();
    }
    recorder.end().unwrap();
}

/// Resident memory of this process in megabytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

fn read(name: &str, path: &Path) {
    let bytes = path.metadata().unwrap().len() as f64;
    let before = resident();
    let (mut recording, opened) = timed(|| {
        let mut recording = Recording::open(path).unwrap();
        let last = recording.moments().len() - 1;
        recording.view(last).unwrap();
        recording
    });
    let snapshots = recording.moments().len();
    let mut chance = Made::new(1, 1);
    let mut jumps: Vec<f64> = (0..200)
        .map(|_| {
            let place = chance.below(snapshots as u64) as usize;
            timed(|| recording.view(place).unwrap()).1
        })
        .collect();
    let memory = resident() - before;
    let from = snapshots.saturating_sub(REPORTED);
    let (page, reported) = timed(|| {
        let report = report::of(&mut recording, from..snapshots, None, locktop::app::print::tree).unwrap();
        html(&report, Style { top: 10, zone: chrono::Utc.fix().into() })
    });
    println!(
        "{name:>8} {:10.3} {:8.2} {opened:8.1} {:8.2} {:8.2} {memory:8.1} {:10.2} {:10.0}",
        bytes / snapshots as f64 / 1e3,
        bytes / 1e6,
        percentile(&mut jumps, 50),
        percentile(&mut jumps, 99),
        reported / 1e3,
        page.len() as f64 / 1e3
    );
}
