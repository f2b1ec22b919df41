//! Screens as text, compared with the files under `src/ui/screens`: whole at 120x35; at 80x24 and 200x60 only the lines
//! that depend on the size (`kept`).
//!
//! `LOCKTOP_ACCEPT=1 cargo test --lib ui::tests` rewrites them; read the difference before committing it.

mod dialogs;

use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::layout::Viewport;
use super::theme::{BaseTheme, ColorDepth, Theme};
use crate::app::message::Message;
use crate::app::{App, AppSettings};
use crate::keys::Key;
use crate::model::view::{ConnectionState, TargetId, View};
use crate::sample;

mod blame;
mod colors;
mod events;
mod history;
mod installations;
mod kept;
mod mockups;
mod redis;
mod scrolled;

use kept::{SIZES, check, check_whole};

struct Stage {
    app: App,
    theme: Theme,
    terminal: Terminal<TestBackend>,
    viewport: Viewport,
}

impl Stage {
    fn new(width: u16, height: u16) -> Self {
        let settings = AppSettings { target: "prod".into(), ..AppSettings::default() };
        let mut app = App::new(settings, 1.0);
        app.update(Message::Resize(width, height));
        Self {
            app,
            theme: Theme::new(BaseTheme::Dark, ColorDepth::Rgb, false),
            terminal: Terminal::new(TestBackend::new(width, height)).unwrap(),
            viewport: Viewport::default(),
        }
    }

    fn view(mut self, view: View) -> Self {
        self.app.update(Message::View(TargetId(0), Arc::new(view)));
        self
    }

    fn keys(mut self, keys: &str) -> Self {
        for key in Key::parse_all(keys).unwrap() {
            self.draw();
            self.app.update(Message::Key(key));
        }
        self
    }

    fn draw(&mut self) {
        let (app, viewport, theme) = (&self.app, &mut self.viewport, &self.theme);
        self.terminal.draw(|frame| super::render(frame, app, viewport, theme)).unwrap();
        self.app.page_rows = self.viewport.page_rows;
        self.app.table_rows = self.viewport.table_rows.max(1);
        self.app.update(Message::Drawn(self.viewport.dialog));
    }

    /// The screen as text. A wide character includes the cell after it.
    fn text(&mut self) -> String {
        // The test backend does not know that a wide character covers two cells: draw on a cleared screen.
        self.draw();
        self.terminal.clear().unwrap();
        self.draw();
        let buffer = self.terminal.backend().buffer();
        let mut text = String::new();
        for y in 0..buffer.area.height {
            let mut line = String::new();
            let mut x = 0;
            while x < buffer.area.width {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                x += u16::try_from(crate::text::width(symbol).max(1)).unwrap();
            }
            assert_eq!(crate::text::width(&line), usize::from(buffer.area.width), "line {y}: {line}");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn incident(width: u16, height: u16) -> Stage {
    Stage::new(width, height).view(sample::incident(0.0).view())
}

#[test]
fn every_screen_at_three_sizes() {
    for (width, height) in SIZES {
        for (name, keys) in [
            ("overview", ""),
            ("chains", "2"),
            ("locks", "3"),
            ("all_locks", "3a"),
            ("waits", "3<tab><tab>z"),
            ("detail_waits", "3<tab><tab>j<enter>"),
            ("detail_lock", "3<enter>"),
            ("backends", "7"),
            ("detail_root", "<enter>"),
            ("detail_waiter", "2j<enter>"),
            ("detail_queue", "2jj<enter>"),
            ("findings", "!"),
            ("help", "?"),
            ("sort", "7s"),
            ("filter", "7/state:idle"),
            ("marks", "7 jj f"),
        ] {
            check(name, &mut incident(width, height).keys(keys));
        }
    }
}

#[test]
fn tasks_at_three_sizes() {
    for (width, height) in SIZES {
        for (name, keys) in [
            ("tasks_overview", ""),
            ("tasks", "4"),
            ("tasks_marks", "4 jj f"),
            ("tasks_filter", "4/state:overdue"),
            ("tasks_sort", "4s<end>kkkk"),
            ("task_orphan", "4<enter>"),
            ("task_slow", "4j<enter>"),
            ("tasks_locks", "3"),
            ("tasks_findings", "!"),
        ] {
            let stage = Stage::new(width, height).view(sample::jobs(0.0).view());
            check(name, &mut stage.keys(keys));
        }
    }
}

#[test]
fn leases_at_three_sizes() {
    for (width, height) in SIZES {
        for (name, keys) in [
            ("leases_overview", ""),
            ("leases", "5"),
            ("leases_sort", "5s<home>jj<enter>"),
            ("lease_expired", "5j<enter>"),
            ("lease_held", "5jjjj<enter>"),
            ("leases_findings", "!"),
        ] {
            let stage = Stage::new(width, height).view(sample::systems::leases(0.0).view());
            check(name, &mut stage.keys(keys));
        }
    }
}

#[test]
fn without_tasks_the_leases_have_their_rows() {
    for (width, height) in SIZES {
        let mut builder = sample::incident(0.0);
        builder.lease("1", "node2", 20.0, 8.0);
        builder.lease("7", "node1", 20.0, 61.0);
        builder.limit("user:123:api", 85, Some(100), 12.0);
        let view = builder.view();
        check("leases_alone", &mut Stage::new(width, height).view(view.clone()));
        check("limits_alone", &mut Stage::new(width, height).view(view).keys("6"));
    }
}

#[test]
fn the_queue_at_three_sizes() {
    for (width, height) in SIZES {
        for (name, keys) in [
            ("queue_overview", ""),
            ("queue", "6"),
            ("queue_zoom", "6z"),
            ("queue_limits", "6<tab>j"),
            ("queue_item", "6<enter>"),
            ("queue_failed", "6jjjj<enter>"),
            ("queue_limit", "6<tab><enter>"),
            ("queue_generator", "6<tab><tab><enter>"),
            ("queue_follow", "6jjf7"),
        ] {
            let stage = Stage::new(width, height).view(sample::systems::queue(0.0).view());
            check(name, &mut stage.keys(keys));
        }
    }
}

#[test]
fn a_locked_table_of_leases_is_seen_as_old() {
    for (width, height) in SIZES {
        let mut snapshot = sample::systems::leases(0.0).snapshot();
        let mut systems = (*snapshot.sources).clone();
        let reason = "locktop.distlock is locked: 4410 holds AccessExclusiveLock";
        let table = systems.leases[0].stale(reason.into());
        let section = table.section.taken(Some(sample::at(-12.0)));
        systems.leases[0] = crate::model::source_tables::TableRows { section, ..table };
        snapshot.sources = Arc::new(systems);
        check("leases_locked", &mut Stage::new(width, height).view(sample::view(snapshot, 1)).keys("5"));
    }
}

#[test]
fn a_locked_task_table_is_seen_as_old() {
    for (width, height) in SIZES {
        let mut view = sample::jobs(0.0).view();
        let mut snapshot = view.snapshot.as_deref().unwrap().clone();
        let set = snapshot.task_sets[0].clone();
        let reason = "locktop.scheduled_tasks is locked: 4410 holds AccessExclusiveLock";
        let taken_at = Some(sample::at(-12.0));
        let tasks = set.tasks.stale(reason.into()).taken(taken_at);
        let set = crate::model::task::TaskSet::new(set.tables, tasks, set.executions);
        snapshot.task_sets = Arc::new(vec![set]);
        view.snapshot = Some(Arc::new(snapshot));
        check("tasks_locked", &mut Stage::new(width, height).view(view));
    }
}

#[test]
fn a_quiet_server_is_a_quiet_screen() {
    for (width, height) in SIZES {
        check("quiet", &mut Stage::new(width, height).view(sample::Builder::default().view()));
    }
}

#[test]
fn a_quiet_server_shows_the_next_tasks() {
    for (width, height) in SIZES {
        let mut builder = sample::jobs(0.0);
        builder.executions.clear();
        builder.locks.clear();
        builder.prepared.clear();
        builder.tasks.retain(|task| task.next_run_at.is_some_and(|at| at > sample::at(0.0)));
        check("quiet_tasks", &mut Stage::new(width, height).view(builder.view()));
    }
}

#[test]
fn before_the_first_answer() {
    check_whole("connecting", &mut Stage::new(80, 24));
}

#[test]
fn a_lost_connection_is_seen_at_once() {
    let mut view = sample::incident(0.0).view();
    view.link = ConnectionState::Down {
        reason: "connection refused".into(),
        attempt: 3,
        wait: std::time::Duration::from_secs(4),
    };
    let mut stage = Stage::new(80, 24).view(view);
    stage.app.update(Message::Tick(1.0));
    check_whole("down", &mut stage);
}

#[test]
fn the_reason_of_a_lost_connection_and_the_next_attempt_are_shown() {
    let reason = "connection to server at \"db.internal.example.com\" (10.0.3.17), port 5432 failed: FATAL: \
                  remaining connection slots are reserved for roles with the SUPERUSER attribute";
    for (width, height, whole) in [(60, 15, false), (80, 24, true), (120, 35, true), (200, 60, true)] {
        let mut view = sample::incident(0.0).view();
        let wait = std::time::Duration::from_secs(8);
        view.link = ConnectionState::Down { reason: reason.into(), attempt: 5, wait };
        let mut stage = Stage::new(width, height).view(view);
        for (silence, when) in [(0.0, "attempt 5 in 8s"), (3.0, "attempt 5 in 5s"), (30.0, "attempt 5 now")] {
            stage.app.update(Message::Tick(silence));
            let text = stage.text();
            let head: Vec<&str> = text.lines().skip(3).take(4).map(str::trim).collect();
            let head = head.join(" ");
            assert!(head.contains(when), "{width}x{height}: {text}");
            assert!(head.contains("DOWN  connection to server at"), "{width}x{height}: {text}");
            assert_eq!(head.contains("SUPERUSER attribute"), whole, "{width}x{height}: {text}");
            assert!(
                !text.contains("CRIT") && !text.contains("K terminate:"),
                "old findings are marked: {text}"
            );
        }
    }
    let mut view = sample::incident(0.0).view();
    view.link = ConnectionState::Down { reason: "gone".into(), attempt: 1, wait: std::time::Duration::ZERO };
    let mut stage = Stage::new(80, 24).view(view).keys("!");
    stage.app.update(Message::Tick(14.0));
    let text = stage.text();
    assert!(text.contains("· 14s old") && text.contains("crit  3m12s 4312"), "{text}");
}

#[test]
fn a_crowd_behind_one_lock_is_one_line() {
    check_whole("crowd", &mut Stage::new(80, 24).view(sample::crowd(200, 34, 0.0).view()));
}

#[test]
fn ascii_is_ascii() {
    let mut stage = incident(80, 24);
    stage.theme = Theme::new(BaseTheme::Dark, ColorDepth::Ansi, true);
    let text = stage.text();
    assert!(text.is_ascii(), "{text}");
    check_whole("ascii", &mut stage);
}

#[test]
fn no_size_panics_and_a_too_small_one_shows_the_minimum() {
    // Nothing, one line or column, the smallest and one less, and the largest.
    const SIZES: [(u16, u16); 16] = [
        (0, 0),
        (0, 100),
        (300, 0),
        (1, 1),
        (1, 100),
        (300, 1),
        (59, 24),
        (60, 14),
        (60, 15),
        (60, 100),
        (80, 15),
        (80, 23),
        (119, 15),
        (119, 30),
        (300, 15),
        (300, 100),
    ];
    const KEYS: [&str; 17] = [
        "",
        "2",
        "3a",
        "4",
        "4<enter>",
        "5",
        "5<enter>",
        "6",
        "6<tab><enter>",
        "7",
        "8",
        "8<enter>",
        "<enter>",
        "!",
        "?",
        "7s",
        "/x",
    ];
    for ((width, height), keys) in SIZES.into_iter().flat_map(|size| KEYS.map(|keys| (size, keys))) {
        incident(width, height).keys(keys).draw();
        Stage::new(width, height).view(sample::systems::queue(0.0).view()).keys(keys).draw();
    }
    assert!(incident(59, 24).text().contains("locktop needs 60x15"));
    assert!(incident(80, 14).text().contains("this is 80x14"));
}

#[test]
fn empty_panes_keep_their_places_and_names_are_read() {
    for (width, height) in SIZES {
        let mut builder = sample::jobs(0.0);
        builder
            .locks
            .retain(|lock| lock.granted && lock.tag.locktype() != crate::model::lock::LockType::Advisory);
        for execution in &mut builder.executions {
            execution.worker =
                execution.worker.as_ref().map(|worker| format!("{worker}@batch-host-0012").into());
        }
        let mut stage = Stage::new(width, height).view(builder.view());
        let text = stage.text();
        let title = |text: &str, pane: &str| {
            text.lines().position(|line| line.contains(&format!("─ {pane} · "))).unwrap()
        };
        assert!(text.contains("─ Chains · no session waits for a lock"), "{text}");
        assert!(text.contains("─ Advisory · no advisory locks held ─"), "{text}");
        let busy = Stage::new(width, height).view(sample::jobs(0.0).view()).text();
        for pane in ["Findings", "Chains", "Advisory", "Tasks"] {
            assert_eq!(title(&text, pane), title(&busy, pane), "{width}x{height} {pane}");
        }
        assert!(
            text.contains("0012") || text.contains("-0012"),
            "the end of a worker's name identifies it: {text}"
        );
        check("calm_overview", &mut stage);
    }
}

#[test]
fn a_narrow_column_has_the_application() {
    let screen = |width: u16| Stage::new(width, 35).view(sample::incident(0.0).view()).keys("2").text();
    let (narrow, wide) = (screen(80), screen(120));
    assert!(narrow.contains(" prisma ") && !narrow.contains("deploy@pri"), "{narrow}");
    assert!(wide.contains("deploy@prisma"), "{wide}");
}

#[test]
fn the_database_column_appears_if_there_are_several() {
    let heads = |builder: sample::Builder, keys: &str| {
        let text = Stage::new(200, 60).view(builder.view()).keys(keys).text();
        let head = text.lines().find(|line| line.contains("PID")).unwrap().to_owned();
        head.split_whitespace().any(|word| word == "DB")
    };
    for keys in ["2", "3a", "7"] {
        assert!(!heads(sample::incident(0.0), keys), "{keys}");
        let mut several = sample::incident(0.0);
        several.backends[0].datid = Some(7);
        several.backends[0].database = Some("billing".into());
        assert!(heads(several, keys), "{keys}");
    }
}

/// A terminal of 80x24 within tmux is 80x23.
#[test]
fn a_small_terminal_has_fewer_panes_and_every_service() {
    for (width, height) in [(80, 23), (60, 15), (120, 18), (80, 16)] {
        let stage =
            |keys: &str| Stage::new(width, height).view(sample::systems::leases(0.0).view()).keys(keys);
        check("small_overview", &mut stage(""));
        check("small_pane", &mut stage("<shift-tab>"));
        check("small_ask", &mut stage("2K"));
        check(
            "small_queue",
            &mut Stage::new(width, height).view(sample::systems::queue(0.0).view()).keys("6"),
        );
    }
}

#[test]
fn hostile_text_stays_in_its_place() {
    let mut calm = sample::incident(0.0);
    let mut hostile = sample::incident(0.0);
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\r\n\t\u{9b}31m\u{202e}\u{200b}e\u{301}\u{301}🏴‍☠️文字";
    if let Some(backend) = hostile.backends.iter_mut().find(|backend| backend.pid == 4980) {
        backend.application = Some(evil.into());
        backend.query = Some(evil.repeat(5000).into());
    }
    if let Some(backend) = calm.backends.iter_mut().find(|backend| backend.pid == 4980) {
        backend.application = Some("x".into());
    }
    let calm = Stage::new(120, 35).view(calm.view()).keys("7").text();
    let text = Stage::new(120, 35).view(hostile.view()).keys("7").text();
    assert!(!text.chars().any(|character| character.is_control() && character != '\n'));
    for (before, after) in calm.lines().zip(text.lines()) {
        assert!(before == after || after.contains("4980"), "another line moved:\n{before}\n{after}");
    }
}

fn place_of(stage: &mut Stage, text: &str) -> (u16, u16) {
    let screen = stage.text();
    let (y, line) = screen.lines().enumerate().find(|(_, line)| line.contains(text)).unwrap();
    let before = &line[..line.find(text).unwrap()];
    (u16::try_from(crate::text::width(before)).unwrap(), u16::try_from(y).unwrap())
}

#[test]
fn clickable_areas_match_the_drawn_text() {
    use crate::app::keymap::Action;
    use crate::app::message::ClickTarget;
    use crate::app::panes::Pane;
    let mut stage = incident(120, 35);
    let spot = |stage: &mut Stage, text: &str| {
        let (x, y) = place_of(stage, text);
        stage.viewport.hit(x, y)
    };
    assert_eq!(spot(&mut stage, "4312 idle in transaction,"), Some(ClickTarget::Row(Pane::Findings, 0)));
    assert_eq!(spot(&mut stage, "BLOCKS"), Some(ClickTarget::Heading(Pane::Chains, "blocks")));
    assert_eq!(spot(&mut stage, "? help"), Some(ClickTarget::Key(Action::Help)));
    assert_eq!(spot(&mut stage, "└4410"), Some(ClickTarget::Row(Pane::Chains, 1)));
    let last = u16::try_from(stage.text().lines().count()).unwrap() - 1;
    let line = stage.text().lines().last().unwrap().to_owned();
    let key = |words: &str| u16::try_from(crate::text::width(&line[..line.find(words).unwrap()])).unwrap();
    let terminate = Action::Command(crate::model::plan::CommandId::Terminate);
    for (words, action) in [("K terminate", terminate), ("Enter open", Action::Open)] {
        assert_eq!(stage.viewport.hit(key(words), last), Some(ClickTarget::Key(action)), "{line}");
    }
}

#[test]
fn locks_that_could_not_be_read_are_not_shown_as_live() {
    let mut stage = incident(120, 35);
    let mut snapshot = sample::incident(0.0).snapshot();
    snapshot.taken_at = sample::at(30.0);
    snapshot.locks = snapshot.locks.stale("permission denied for function pg_lock_status".into());
    stage.app.update(Message::View(TargetId(0), Arc::new(sample::view(snapshot, 2))));
    let text = stage.text();
    assert!(text.contains("20 · 30s ago: pg_locks cannot be read"), "{text}");
    assert!(text.contains("30s old: permission denied for function pg_lock_status"), "{text}");
    assert!(text.contains("2m51s") && !text.contains("3m21s row") && !text.contains("longest"), "{text}");
}

#[test]
fn read_only_is_seen() {
    let rights = crate::model::plan::Rights {
        role: "postgres".into(),
        superuser: true,
        read_all_stats: true,
        ..crate::model::plan::Rights::default()
    };
    for (width, height) in [(60, 15), (80, 24), (200, 60)] {
        let mut stage = Stage::new(width, height);
        let settings = AppSettings {
            target: "app@db.internal.example.com:5432".into(),
            read_only: true,
            ..AppSettings::default()
        };
        stage.app = App::new(settings, 1.0);
        stage.app.update(Message::Resize(width, height));
        let view = View { rights: Some(Arc::new(rights.clone())), ..sample::incident(0.0).view() };
        let mut stage = stage.view(view);
        let text = stage.text();
        let first = text.lines().next().unwrap();
        assert!(first.contains("[read-only]") && first.contains(":5432"), "{first}");
        assert!(!text.contains("K terminate"), "{text}");
        let help = crate::app::help::lines(&stage.app, 200, "");
        let help: Vec<String> = help.iter().map(crate::app::line::Line::plain).collect();
        assert!(!help.iter().any(|line| line.contains("all sessions: it is a superuser")), "{help:?}");
        assert!(help.iter().any(|line| line.contains("no shortcut acts on the server")), "{help:?}");
    }
}

#[test]
fn the_missing_grants_of_the_role_are_shown() {
    let rights = crate::model::plan::Rights {
        role: "ops".into(),
        version_num: 170_002,
        read_all_stats: true,
        member_of: vec!["ops".into()],
        superusers: vec!["postgres".into()],
        ..crate::model::plan::Rights::default()
    };
    let stage = |keys: &str| {
        let view = View { rights: Some(Arc::new(rights.clone())), ..sample::incident(0.0).view() };
        Stage::new(200, 100).view(view).keys(keys).text()
    };
    let help = stage("?");
    let line = "the sessions of ops; for those of others: GRANT pg_signal_backend TO \"ops\"";
    assert!(
        help.contains(line)
            && help.contains("the sessions of postgres can be terminated only by a superuser"),
        "{help}"
    );
    let detail = stage("2<enter>");
    let line = "this role      role \"ops\" is not permitted to terminate sessions of \"app\": GRANT pg_signal_backend TO \"ops\"";
    assert!(detail.contains(line), "{detail}");
}
