//! The picture of the program in the README: `LOCKTOP_PICTURE=1 cargo test --test pty picture` draws it anew.

use std::fmt::Write;
use std::time::Duration;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::demo::scenario::{Pace, Scenario, Stage};
use locktop::demo::tasks::{Claim, TasksOptions};
use locktop::pg::conninfo::ConnInfo;
use vt100::Color;

use crate::screen::{PROGRAM, Screen, Size};
use crate::support;

/// Of one character, in pixels.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
const MARGIN: f64 = 14.0;
const BASELINE: f64 = 13.5;
const BACKGROUND: &str = "#161b22";
const FOREGROUND: &str = "#d0d7de";
const FONTS: &str =
    "ui-monospace, 'DejaVu Sans Mono', 'SF Mono', Menlo, Consolas, 'Liberation Mono', monospace";

/// How a run of cells looks.
#[derive(Debug, Clone, PartialEq)]
struct Look {
    foreground: String,
    background: Option<String>,
    bold: bool,
    underline: bool,
}

fn hex(color: Color) -> Option<String> {
    match color {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        Color::Idx(index) => panic!("the picture is drawn in true colour, not with colour {index}"),
    }
}

fn look(cell: &vt100::Cell) -> Look {
    let foreground = hex(cell.fgcolor()).unwrap_or_else(|| FOREGROUND.to_owned());
    let background = hex(cell.bgcolor());
    let (bold, underline) = (cell.bold(), cell.underline());
    if cell.inverse() {
        let swapped = background.unwrap_or_else(|| BACKGROUND.to_owned());
        return Look { foreground: swapped, background: Some(foreground), bold, underline };
    }
    Look { foreground, background, bold, underline }
}

/// Cells of one look beside each other.
struct Run {
    look: Look,
    /// Columns from the first, and up to the last.
    columns: (u16, u16),
    /// Where each begins, and its text.
    cells: Vec<(u16, String)>,
}

/// A wide character makes a run of its own, since fonts do not agree on its width.
fn runs(screen: &vt100::Screen, row: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut after_wide = false;
    for column in 0..screen.size().1.get() {
        let cell = screen.cell(row, column).unwrap();
        if cell.is_wide_continuation() {
            continue;
        }
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let (look, end) = (look(cell), column + if cell.is_wide() { 2 } else { 1 });
        match runs.last_mut() {
            Some(run) if run.look == look && !cell.is_wide() && !after_wide => {
                run.columns.1 = end;
                run.cells.push((column, text.to_owned()));
            }
            _ => runs.push(Run { look, columns: (column, end), cells: vec![(column, text.to_owned())] }),
        }
        after_wide = cell.is_wide();
    }
    runs
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Where columns begin, and how wide they are.
fn place((from, to): (u16, u16)) -> (f64, f64) {
    (MARGIN + f64::from(from) * WIDTH, f64::from(to - from) * WIDTH)
}

/// What is behind runs of one background.
fn rectangle(out: &mut String, runs: &[Run], row: u16) {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return };
    let Some(background) = &first.look.background else { return };
    let (x, width) = place((first.columns.0, last.columns.1));
    let y = MARGIN + f64::from(row) * HEIGHT;
    writeln!(
        out,
        r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{HEIGHT}" fill="{background}"/>"#
    )
    .unwrap();
}

/// The words of a run, each as wide as its cells: then all stand in line whatever the font.
fn words(out: &mut String, run: &Run, row: u16) {
    let y = MARGIN + f64::from(row) * HEIGHT + BASELINE;
    let weight = if run.look.bold { r#" font-weight="bold""# } else { "" };
    let line = if run.look.underline { r#" text-decoration="underline""# } else { "" };
    for word in run.cells.split(|(_, text)| text == " ") {
        let (Some((first, _)), Some((last, _))) = (word.first(), word.last()) else { continue };
        // A wide character is the only one of its run.
        let end = if run.cells.len() == 1 { run.columns.1 } else { last + 1 };
        let (x, width) = place((*first, end));
        let text: String = word.iter().map(|(_, text)| text.as_str()).collect();
        let (fill, text) = (&run.look.foreground, escaped(&text));
        writeln!(
            out,
            r#"<text x="{x:.1}" y="{y:.1}" textLength="{width:.1}" lengthAdjust="spacingAndGlyphs" fill="{fill}"{weight}{line}>{text}</text>"#
        )
        .unwrap();
    }
}

fn svg(screen: &vt100::Screen, about: &str) -> String {
    let (rows, columns) = screen.size();
    let width = f64::from(columns.get()) * WIDTH + 2.0 * MARGIN;
    let height = f64::from(rows.get()) * HEIGHT + 2.0 * MARGIN;
    let mut out = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img" font-family="{FONTS}" font-size="14">
<title>{}</title>
<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>
"#,
        escaped(about)
    );
    for row in 0..rows.get() {
        let runs = runs(screen, row);
        for alike in runs.chunk_by(|run, next| run.look.background == next.look.background) {
            rectangle(&mut out, alike, row);
        }
        for run in &runs {
            words(&mut out, run, row);
        }
    }
    out.push_str("</svg>\n");
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_picture_of_the_overview_is_drawn_on_request() {
    const SIZE: Size = (120, 35);
    if std::env::var_os("LOCKTOP_PICTURE").is_none() {
        return;
    }
    // The check that would end the deadlock after a second runs in an hour.
    let server = EmbeddedServer::start(Options::default().with("deadlock_timeout", "1h")).await.unwrap();
    let admin = support::open(&support::conninfo(&server)).await.client;
    admin.batch_execute("CREATE ROLE app LOGIN").await.unwrap();
    admin.batch_execute("CREATE DATABASE shop OWNER app").await.unwrap();
    let target = server.conninfo().replace("dbname=postgres", "dbname=shop");
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), format!(
        "[targets.shop]\nconninfo = \"{target}\"\n[thresholds]\norphan_grace = \"1s\"\ntask_overdue = \"2s\"\n"
    )).unwrap();
    let env = [("COLORTERM", "truecolor"), ("LOCKTOP_CONFIG", config.path().to_str().unwrap())];
    let screen = Screen::spawn(SIZE, &env, &["shop"]);
    screen.shows("LIVE");
    let app = ConnInfo::parse(&target.replace("user=postgres", "user=app")).unwrap();
    let stage = Stage::open(&app).await.unwrap();
    let pace = Pace { step: Duration::from_millis(600), ..Pace::TEST };
    let tasks = Claim::make(&app, true, TasksOptions::new(PROGRAM.into())).await.unwrap();
    let tasks = tasks.start().await.unwrap();
    let mut running = Vec::new();
    for scenario in Scenario::DEMO {
        running.push(scenario.start(&stage, pace).await.unwrap());
    }
    // Long enough for ages that are worth a look.
    screen.shows("longest 25s");
    let wanted = |screen: &vt100::Screen| {
        let text = screen.contents();
        text.contains("deadlock") && text.contains(" 1 orphan ")
    };
    screen.wait_for("a deadlock, and a task that has lost its worker", wanted);
    let seen = screen.seen();
    let about = "locktop: who holds which lock, who waits for whom, and what ending a backend would free";
    let picture = svg(seen.emulator.screen(), about);
    std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/overview.svg"), picture).unwrap();
    drop((seen, tasks));
}
