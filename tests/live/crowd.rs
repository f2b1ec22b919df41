//! One idle session holds an advisory lock, and 200 sessions wait for it: the header shows that, and the
//! JSON, the table and the screen have one root, ranked first, that blocks 200 and frees 1.

use std::sync::Arc;

use locktop::app::message::Message;
use locktop::app::{App, AppSettings};
use locktop::demo::scenario::{AdvisoryContention, ScratchSchema};
use locktop::feed::once::once;
use locktop::keys::Key;
use locktop::model::lock_name::LockNames;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::{TargetId, View};
use locktop::pg::poll::PollLimits;
use locktop::ui::layout::Viewport;
use locktop::ui::theme::{BaseTheme, ColorDepth, Theme};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::document::{printed, snapshot};
use crate::support::{database, open};

#[tokio::test]
async fn two_hundred_behind_one_idle_session() {
    for version in super::versions() {
        let server = super::server(version).await;
        let info = database(&server).await;
        let scratch = ScratchSchema::open(&info).await.unwrap();
        let running = AdvisoryContention::default().start(&scratch).await.unwrap();
        let holder = running.facts.roots[0].pid();
        // Another session has a small problem of its own.
        let other = open(&info).await.client;
        other.batch_execute("SELECT pg_advisory_lock(2)").await.unwrap();
        let late = open(&info).await.client;
        let late = tokio::spawn(async move { late.batch_execute("SELECT pg_advisory_lock(2)").await });
        crate::support::wait_until("the last session to wait", async || {
            crate::frozen::waiting(&other).await.len() == 201
        })
        .await;

        let document = snapshot(&server, &info).await;
        let ranked: Vec<_> = document.roots.iter().map(|root| (root.pid, root.blocked, root.frees)).collect();
        assert_eq!((ranked.len(), ranked[0]), (2, (holder, 200, 1)));
        let first = &document.findings[0];
        assert_eq!((first.check.as_str(), first.severity.as_str()), ("root_blocker", "critical"));
        assert!(first.summary.starts_with(&format!("{holder} idle ")), "{first:?}");
        assert!(first.summary.contains(", holds "), "{first:?}");
        assert!(first.summary.ends_with("blocks 200: 1 continues now, 199 in turn"), "{first:?}");
        assert_eq!(document.backend(holder).application.as_deref(), Some("scheduler-1"));
        assert_eq!((document.edges.len(), document.edges_omitted), (200 + 200 * 199 / 2 + 1, 0));

        in_the_table(&printed(&server, &info, "table").await, holder);
        let view =
            once(&info, PollLimits::default(), Thresholds::default(), LockNames::default()).await.unwrap();
        on_the_screen(&view, holder);
        late.abort();
        running.stop().await.unwrap();
    }
}

fn in_the_table(text: &str, holder: i32) {
    let mut lines = text.lines();
    let header = lines.next().unwrap();
    assert!(header.contains(" · 201 waiting · "), "{header}");
    let finding = lines.next().unwrap();
    assert!(
        finding.starts_with(&format!("CRIT  {holder} idle ")) && finding.contains(", holds "),
        "{finding}"
    );
    let rows: Vec<&str> = lines.skip_while(|line| !line.starts_with("PID")).collect();
    let words: Vec<&str> = rows[1].split_whitespace().take(4).collect();
    assert_eq!(words, [holder.to_string().as_str(), "200", "1", "199"], "{text}");
    let alike = rows.iter().filter(|row| row.contains("└queue") && row.contains(" ×200 ")).count();
    assert_eq!(alike, 1, "sessions with the same values are one line: {text}");
}

fn on_the_screen(view: &Arc<View>, holder: i32) {
    for (width, height) in [(80, 24), (120, 35), (200, 60)] {
        let overview = drawn(view, width, height, "");
        assert!(overview[1].contains("    201 · since "), "{overview:#?}");
        assert!(overview[3].starts_with("> CRIT "), "{overview:#?}");
        assert!(overview[3].contains(&format!(" {holder} idle, holds ")), "{overview:#?}");
        assert!(overview[3].contains("blocks 200: 1 "), "{overview:#?}");
        let chains = drawn(view, width, height, "2");
        let title = chains.iter().position(|line| line.contains("Chains · 2 roots · 201 blocked")).unwrap();
        let row = &chains[title + 2];
        let words: Vec<&str> = row.trim_start_matches(['>', ' ']).split_whitespace().take(2).collect();
        assert_eq!(words, [holder.to_string().as_str(), "200"], "{chains:#?}");
        assert!(row.contains("idle"), "{chains:#?}");
    }
}

/// The lines of the screen after these keys.
fn drawn(view: &Arc<View>, width: u16, height: u16, keys: &str) -> Vec<String> {
    let mut app = App::new(AppSettings { target: "test".into(), ..AppSettings::default() }, 1.0);
    app.update(Message::Resize(width, height));
    app.update(Message::View(TargetId::default(), Arc::clone(view)));
    for key in Key::parse_all(keys).unwrap() {
        app.update(Message::Key(key));
    }
    let theme = Theme::new(BaseTheme::Mono, ColorDepth::Ansi, false);
    let mut viewport = Viewport::default();
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| locktop::ui::render(frame, &app, &mut viewport, &theme)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}
