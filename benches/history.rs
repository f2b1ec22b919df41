//! The cost of the dashboard's history: bytes per snapshot, CPU time to copy the previous state (`past`), to count
//! which sessions made others wait (`blame`), to store the snapshot (`keep`) and of all three (`all`), and the time of
//! a step and of a jump.
//!
//! The history is a quarter of an hour of a simulated server, one snapshot per second. There are two servers of each
//! size: a busy one, where a fifth of the sessions changed since the previous snapshot, and a quiet one, where a
//! hundredth did. `LOCKTOP_SNAPSHOTS` (900) sets the number of snapshots. Times are CPU time of the thread, so that
//! other processes on the machine do not count.
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

use std::sync::Arc;
use std::time::Duration;

use locktop::feed::history::{HistoryLimits, HistoryStore};
use locktop::feed::view_builder::{Recount, ViewBuilder};
use locktop::model::lock_name::LockNames;
use locktop::model::past::TimeStep;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::TargetId;
use made::{Made, percentile, timed};

fn main() {
    // As in the program: otherwise page faults are up to half of a jump in a large history.
    glibc_malloc::fix_mmap_threshold();
    let snapshots =
        std::env::var("LOCKTOP_SNAPSHOTS").ok().and_then(|snapshots| snapshots.parse().ok()).unwrap_or(900);
    println!("{snapshots} snapshots; milliseconds of processor time");
    println!(
        "{:>22} {:>8} {:>8} {:>9} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "sessions/locks",
        "MB",
        "KB/snap",
        "of JSON",
        "past",
        "blame",
        "keep",
        "all",
        "p99",
        "step",
        "p99",
        "jump",
        "p99"
    );
    for (sessions, locks) in [(500, 2_000), (1_000, 10_000)] {
        for (load, percent) in [("busy", 20), ("quiet", 1)] {
            run(&format!("{sessions}/{locks} {load}"), Made::new(sessions, locks), percent, snapshots);
        }
    }
}

fn run(name: &str, mut made: Made, percent: u64, snapshots: u32) {
    let limits = HistoryLimits { length: Duration::from_secs(86_400), memory: 4 << 30 };
    let mut store = HistoryStore::new(limits, TargetId(0), Thresholds::default());
    let mut view_builder = ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default());
    let mut recount = Recount::new(1.0);
    let (mut keep, mut pasts, mut blames, mut all, mut json) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), 0);
    let mut past = view_builder.past();
    for second in 0..snapshots {
        let view = view_builder.snapshot_taken(made.snapshot(f64::from(second), percent));
        let (next, copied) = timed(|| view_builder.past());
        let observation = view_builder.observation(std::mem::replace(&mut past, next));
        let ((), kept) = timed(|| store.keep(&observation));
        // The view builder has already counted this snapshot; counting it again is the same work.
        let (_, counted) = timed(|| recount.count(&view));
        pasts.push(copied);
        blames.push(counted);
        keep.push(kept);
        all.push(copied + counted + kept);
        if second % 100 == 0 {
            json += locktop::output::json::to_string(&view).unwrap().unwrap().len();
        }
    }
    let newest = view_builder.view().id;
    let bytes = store.bytes();
    let (mut steps, mut jumps) = (Vec::new(), Vec::new());
    let mut from = newest;
    for _ in 0..snapshots.min(300) - 1 {
        let (stepped, time) = timed(|| store.go(from, TimeStep::Snapshots(-1)).unwrap().unwrap());
        from = stepped.view.id;
        steps.push(time);
    }
    for _ in 0..200 {
        let to = made.below(u64::from(snapshots));
        let (jumped, time) =
            timed(|| store.go(newest, TimeStep::Time(sample::at(to as f64))).unwrap().unwrap());
        assert_eq!(Arc::strong_count(&jumped), 1);
        jumps.push(time);
    }
    let each = bytes as f64 / f64::from(snapshots);
    let of_json = each / (json as f64 / f64::from(snapshots.div_ceil(100)));
    println!(
        "{name:>22} {:8.2} {:8.2} {:9.4} {:7.2} {:7.2} {:7.2} {:7.2} {:7.2} {:7.2} {:7.2} {:7.2} {:7.2}",
        bytes as f64 / 1e6,
        each / 1e3,
        of_json,
        percentile(&mut pasts, 50),
        percentile(&mut blames, 50),
        percentile(&mut keep, 50),
        percentile(&mut all, 50),
        percentile(&mut all, 99),
        percentile(&mut steps, 50),
        percentile(&mut steps, 99),
        percentile(&mut jumps, 50),
        percentile(&mut jumps, 99)
    );
}
