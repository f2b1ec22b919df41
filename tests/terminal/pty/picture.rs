//! The pictures in the README and the manual: `LOCKTOP_PICTURE=1 cargo test --test terminal picture` redraws
//! them in `docs/pictures`.
//!
//! One picture for each screen, for the detail of a backend, the findings and two questions, all from one run
//! of `locktop demo`.

use std::fmt::Write;
use std::path::Path;

use vt100::Color;

use super::screen::Screen;

/// Columns of the terminal.
const COLUMNS: u16 = 120;
/// Number of rows for a screen with much content, and for one with little.
const TALL: u16 = 35;
/// As above.
const LOW: u16 = 26;
/// Maximum size of a picture in bytes.
const LARGEST: usize = 150_000;

/// Size of a character in pixels.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
const MARGIN: f64 = 14.0;
const BASELINE: f64 = 13.5;
const BACKGROUND: &str = "#161b22";
const FOREGROUND: &str = "#d0d7de";
const FONTS: &str =
    "ui-monospace, 'DejaVu Sans Mono', 'SF Mono', Menlo, Consolas, 'Liberation Mono', monospace";

/// The style of a run of cells.
#[derive(Debug, Clone, PartialEq)]
struct Style {
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

fn style(cell: &vt100::Cell) -> Style {
    let foreground = hex(cell.fgcolor()).unwrap_or_else(|| FOREGROUND.to_owned());
    let background = hex(cell.bgcolor());
    let (bold, underline) = (cell.bold(), cell.underline());
    if cell.inverse() {
        let swapped = background.unwrap_or_else(|| BACKGROUND.to_owned());
        return Style { foreground: swapped, background: Some(foreground), bold, underline };
    }
    Style { foreground, background, bold, underline }
}

/// Adjacent cells with the same style.
struct Run {
    style: Style,
    /// The first column, and the column after the last one.
    columns: (u16, u16),
    /// The column and the text of each cell.
    cells: Vec<(u16, String)>,
}

/// A wide character is a run of its own, since fonts do not agree on its width.
fn runs(screen: &vt100::Screen, row: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut after_wide = false;
    for column in 0..screen.size().1.get() {
        let cell = screen.cell(row, column).unwrap();
        if cell.is_wide_continuation() {
            continue;
        }
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let (style, end) = (style(cell), column + if cell.is_wide() { 2 } else { 1 });
        match runs.last_mut() {
            Some(run) if run.style == style && !cell.is_wide() && !after_wide => {
                run.columns.1 = end;
                run.cells.push((column, text.to_owned()));
            }
            _ => runs.push(Run { style, columns: (column, end), cells: vec![(column, text.to_owned())] }),
        }
        after_wide = cell.is_wide();
    }
    runs
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The position and the width of a range of columns.
fn place((from, to): (u16, u16)) -> (f64, f64) {
    (MARGIN + f64::from(from) * WIDTH, f64::from(to - from) * WIDTH)
}

/// The background of adjacent runs with the same one.
fn rectangle(out: &mut String, runs: &[Run], row: u16) {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return };
    let Some(background) = &first.style.background else { return };
    let (x, width) = place((first.columns.0, last.columns.1));
    let y = MARGIN + f64::from(row) * HEIGHT;
    writeln!(
        out,
        r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{HEIGHT}" fill="{background}"/>"#
    )
    .unwrap();
}

/// The words of a run, each as wide as its cells: then all are aligned in any font.
fn words(out: &mut String, run: &Run, row: u16) {
    let y = MARGIN + f64::from(row) * HEIGHT + BASELINE;
    let weight = if run.style.bold { r#" font-weight="bold""# } else { "" };
    let line = if run.style.underline { r#" text-decoration="underline""# } else { "" };
    for word in run.cells.split(|(_, text)| text == " ") {
        let (Some((first, _)), Some((last, _))) = (word.first(), word.last()) else { continue };
        // A wide character is the only one of its run.
        let end = if run.cells.len() == 1 { run.columns.1 } else { last + 1 };
        let (x, width) = place((*first, end));
        let text: String = word.iter().map(|(_, text)| text.as_str()).collect();
        let (fill, text) = (&run.style.foreground, escaped(&text));
        writeln!(
            out,
            r#"<text x="{x:.1}" y="{y:.1}" textLength="{width:.1}" lengthAdjust="spacingAndGlyphs" fill="{fill}"{weight}{line}>{text}</text>"#
        )
        .unwrap();
    }
}

/// A picture with this number of rows around the drawn content.
fn svg(rows: u16, about: &str, drawn: &str) -> String {
    let width = f64::from(COLUMNS) * WIDTH + 2.0 * MARGIN;
    let height = f64::from(rows) * HEIGHT + 2.0 * MARGIN;
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img" font-family="{FONTS}" font-size="14">
<title>{}</title>
<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>
{drawn}</svg>
"#,
        escaped(about)
    )
}

/// The whole content of a screen.
fn cells(screen: &vt100::Screen) -> String {
    let mut out = String::new();
    for row in 0..screen.size().0.get() {
        let runs = runs(screen, row);
        for alike in runs.chunk_by(|run, next| run.style.background == next.style.background) {
            rectangle(&mut out, alike, row);
        }
        for run in &runs {
            words(&mut out, run, row);
        }
    }
    out
}

/// The frames one after the other, each for its time, repeated from the first. A viewer without animation
/// shows the second frame.
fn moving(frames: &[(String, f64)]) -> String {
    let whole: f64 = frames.iter().map(|(_, seconds)| seconds).sum();
    let (mut out, mut began) = (String::new(), 0.0);
    for (at, (drawn, seconds)) in frames.iter().enumerate() {
        let (from, to) = (began / whole, (began + seconds) / whole);
        began += seconds;
        let (values, times) = match at {
            0 => ("visible;hidden".to_owned(), format!("0;{to:.4}")),
            _ if at + 1 == frames.len() => ("hidden;visible".to_owned(), format!("0;{from:.4}")),
            _ => ("hidden;visible;hidden".to_owned(), format!("0;{from:.4};{to:.4}")),
        };
        let still = if at == 1 { "visible" } else { "hidden" };
        writeln!(
            out,
            r#"<g visibility="{still}"><animate attributeName="visibility" calcMode="discrete" dur="{whole}s" repeatCount="indefinite" values="{values}" keyTimes="{times}"/>
{drawn}</g>"#
        )
        .unwrap();
    }
    out
}

/// A picture: the name of the file, the rows of the terminal, the keys to type, the texts that are on the
/// screen then, and the description for users who cannot see it.
struct Picture {
    name: &'static str,
    rows: u16,
    keys: &'static str,
    shows: &'static [&'static str],
    about: &'static str,
}

/// In this order, each from the screen that the previous one left. An Escape directly before another key
/// would be read as one key.
const PICTURES: [Picture; 13] = [
    Picture {
        name: "overview",
        rows: TALL,
        keys: "1g",
        shows: &["Findings ·", "Chains ·", "Advisory ·", "Tasks ·", "Leases ·"],
        about: "The Overview: findings, blocking chains, advisory locks, tasks and leases",
    },
    Picture {
        name: "chains",
        rows: TALL,
        keys: "2g",
        shows: &["Chains ·", "psql-anna"],
        about: "Chains: who waits for whom, below the session that blocks all of them",
    },
    Picture {
        name: "locks",
        rows: LOW,
        keys: "3g",
        shows: &["Locks ·", "nightly export"],
        about: "Locks: locks with waiters, and the holder of each; below them what is held",
    },
    Picture {
        name: "tasks",
        rows: LOW,
        keys: "4g",
        shows: &["Tasks ·", "R recover"],
        about: "Tasks: orphan, slow, failed, overdue and running",
    },
    Picture {
        name: "leases",
        rows: LOW,
        keys: "5g",
        shows: &["Leases ·", "TOKEN"],
        about: "Leases: who has which, for how long, and its fencing token",
    },
    Picture {
        name: "queue",
        rows: LOW,
        keys: "6g",
        shows: &["Queue ·", "running", "Rate limits", "Id generators"],
        about: "The work queue, rate limits and id generators",
    },
    Picture {
        name: "backends",
        rows: TALL,
        keys: "7g",
        shows: &["Backends ·", "WAIT EVENT"],
        about: "Backends: all sessions and what they wait for",
    },
    Picture {
        name: "events",
        rows: TALL,
        keys: "8g",
        shows: &["Events ·", "began to block"],
        about: "Events: changes, the newest first",
    },
    Picture {
        name: "blame",
        rows: LOW,
        keys: "9g",
        shows: &["Blame ·", "COST", "Episodes"],
        about: "Blame: who made others wait, what that cost, and each episode",
    },
    Picture {
        name: "findings",
        rows: LOW,
        keys: "!",
        shows: &["Findings ·"],
        about: "Findings: everything that is wrong, worst first, and what the shortcut does",
    },
    Picture {
        name: "backend",
        rows: LOW,
        keys: "<backspace>2g<enter>",
        shows: &["Backend "],
        about: "A backend: its query, whom it blocks and what it holds",
    },
    Picture {
        name: "terminate",
        rows: LOW,
        keys: "<backspace>2gK",
        shows: &["[Back]", "y terminate"],
        about: "The question of K: what is sent, whom it hits and who goes on",
    },
    Picture {
        name: "recover",
        rows: LOW,
        keys: "<enter>4gR",
        shows: &["[Back]", "y recover"],
        about: "The question of R: which execution is failed, and what becomes of its task",
    },
];

/// The frames of the animation, with the seconds for each: the chains, the question of `K`, and the result.
const MOVING: [(Picture, f64); 3] = [
    (
        Picture {
            name: "moving, the chains",
            rows: LOW,
            keys: "2g",
            shows: &["Chains ·", "idle in transaction"],
            about: "",
        },
        4.0,
    ),
    (
        Picture {
            name: "moving, the question",
            rows: LOW,
            keys: "K",
            shows: &["[Back]", "y terminate"],
            about: "",
        },
        5.0,
    ),
    (Picture { name: "moving, the result", rows: LOW, keys: "y", shows: &["terminated"], about: "" }, 4.0),
];

/// Whether the program has drawn the current size of the terminal: its keys are in the last row.
fn fits(screen: &vt100::Screen) -> bool {
    let last = screen.rows(0, COLUMNS).last().unwrap_or_default();
    // The result of an action replaces the keys.
    last.contains("q quit") || last.contains("Esc back") || last.contains("terminated")
}

impl Picture {
    /// Types the keys, waits until the picture is complete, and returns it.
    fn draw(&self, screen: &mut Screen) -> String {
        screen.resize((COLUMNS, self.rows));
        // A key that arrives together with a new size may remain unread until the next one.
        screen.wait_for("the new size", fits);
        screen.keys(self.keys);
        let mut drawn = String::new();
        screen.wait_for(self.name, |screen| {
            let text = screen.contents();
            let is_complete = fits(screen) && self.shows.iter().all(|part| text.contains(part));
            if is_complete {
                drawn = cells(screen);
            }
            is_complete
        });
        drawn
    }
}

/// The demo in true colour.
fn demo(rows: u16) -> Screen {
    Screen::spawn((COLUMNS, rows), &[("COLORTERM", "truecolor")], &["demo"])
}

#[test]
fn the_pictures_are_drawn_on_request() {
    if std::env::var_os("LOCKTOP_PICTURE").is_none() {
        return;
    }
    let mut screen = demo(TALL);
    screen.shows("blocks 12: ");
    screen.shows("prepared transaction ");
    screen.shows(" orphan");
    // By then the tasks that were overdue when the workers started are done.
    screen.shows("idle in xact 20s");
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/pictures"));
    std::fs::create_dir_all(directory).unwrap();
    for picture in &PICTURES {
        let drawn = svg(picture.rows, picture.about, &picture.draw(&mut screen));
        assert!(drawn.len() <= LARGEST, "{} has {} bytes", picture.name, drawn.len());
        std::fs::write(directory.join(format!("{}.svg", picture.name)), drawn).unwrap();
    }
}

#[test]
fn the_moving_picture_is_drawn_on_request() {
    if std::env::var_os("LOCKTOP_PICTURE").is_none() {
        return;
    }
    let mut screen = demo(LOW);
    let overview = |shows| Picture { name: "moving, the Overview", rows: LOW, keys: "1g", shows, about: "" };
    let mut frames = vec![(overview(&["Findings ·", "Chains ·", "LIVE"]).draw(&mut screen), 3.0)];
    frames.push((overview(&["idle in xact 20s"]).draw(&mut screen), 4.0));
    frames.extend(MOVING.iter().map(|(picture, seconds)| (picture.draw(&mut screen), *seconds)));
    let about = "Sessions are blocked; K asks, y terminates the session that blocks them, and they proceed";
    let drawn = svg(LOW, about, &moving(&frames));
    assert!(drawn.len() <= LARGEST * frames.len(), "{} bytes", drawn.len());
    std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/pictures/moving.svg"), drawn).unwrap();
}
