//! A database with task tables, a session that polls it, and the program's output for it.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::sync::Arc;

use locktop::app::message::{Effect, Message};
use locktop::app::{App, AppSettings};
use locktop::demo::postgres::EmbeddedServer;
use locktop::feed::view_builder::ViewBuilder;
use locktop::keys::Key;
use locktop::model::adapter::Adapter;
use locktop::model::lock_key::LockKey;
use locktop::model::lock_name::LockNames;

use locktop::model::task::TaskKey;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::{TargetId, View};
use locktop::model::words;
use locktop::output;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::jobs::sources::TableLocations;
use locktop::pg::poll::{PollConnection, PollLimits};
use locktop::schema::SchemaName;
use locktop::ui::layout::Viewport;
use locktop::ui::theme::{BaseTheme, ColorDepth, Theme};
use tokio_postgres::Client;

use super::support;

/// The key of task 0 in the namespace of tasks.
pub(crate) const OWN: i64 = 0x4C54 << 48;

/// The tables that `locktop schema install` makes, in a schema of this name, and three tasks.
pub(crate) fn own_tables(schema: &str) -> String {
    let script = locktop::schema::script(&SchemaName::new(schema).unwrap());
    format!(
        "{script}
         INSERT INTO {schema}.scheduled_tasks (task_name, task_type, next_run_at, timeout) VALUES
             ('sync', 'sql', now() + interval '1 hour', '10 minutes'),
             ('report', 'sql', now() + interval '1 hour', '30 minutes'),
             ('late', 'sql', now() - interval '1 hour', '30 minutes');"
    )
}

pub(crate) struct Stage {
    info: ConnInfo,
    limits: PollLimits,
    session: Option<PollConnection>,
    view_builder: ViewBuilder,
    view: Arc<View>,
}

impl Stage {
    /// A new database with these tables.
    pub(crate) async fn new(ddl: &str) -> Self {
        Self::on(support::server().await, ddl).await
    }

    /// The same on this server.
    pub(crate) async fn on(server: &EmbeddedServer, ddl: &str) -> Self {
        let info = support::database(server).await;
        support::open(&info).await.client.batch_execute(ddl).await.unwrap();
        let limits = PollLimits { name_timeout: std::time::Duration::from_secs(5), ..PollLimits::default() };
        let session = PollConnection::open(&info, limits.clone()).await.unwrap();
        let view_builder = view_builder();
        let view = view_builder.view();
        Self { info, limits, session: Some(session), view_builder, view }
    }

    pub(crate) fn info(&self) -> &ConnInfo {
        &self.info
    }

    pub(crate) async fn client(&self) -> Client {
        support::open(&self.info).await.client
    }

    /// Reconnects.
    pub(crate) async fn reopen(&mut self) {
        self.session = Some(PollConnection::open(&self.info, self.limits.clone()).await.unwrap());
    }

    pub(crate) fn close(&mut self) {
        self.session = None;
    }

    pub(crate) async fn places(&mut self, places: TableLocations) {
        self.limits.tables = places;
        self.view_builder = view_builder();
        self.reopen().await;
    }

    /// Polls the job systems of others too. A job whose lock is free in the first snapshot is an orphan.
    pub(crate) async fn adapters(&mut self, adapters: Vec<Arc<Adapter>>) {
        self.limits.adapters = adapters.into();
        self.limits.adapter_timeout = support::TIMEOUT;
        let thresholds = Thresholds { orphan_grace: 0.0, ..Thresholds::default() };
        self.view_builder = ViewBuilder::new(TargetId::default(), thresholds, LockNames::default());
        self.reopen().await;
    }

    pub(crate) async fn as_role_of(&mut self, info: ConnInfo) {
        self.info = info;
        self.reopen().await;
    }

    pub(crate) async fn as_role(&mut self, role: &str) {
        let server = support::server().await;
        let text = server.conninfo().replace("user=postgres", &format!("user={role}"));
        self.as_role_of(ConnInfo::parse(&text).unwrap().with_dbname(self.info.dbname())).await;
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// Polls once.
    pub(crate) async fn poll(&mut self) -> Arc<View> {
        let snapshot = self.session.as_mut().unwrap().poll(self.view_builder.snapshot()).await.unwrap();
        self.view = self.view_builder.snapshot_taken(snapshot);
        Arc::clone(&self.view)
    }

    /// Polls until a condition holds.
    pub(crate) async fn poll_until(&mut self, what: &str, done: impl Fn(&View) -> bool) {
        let start = locktop::clock::monotonic();
        while !done(&*self.poll().await) {
            assert!(start.elapsed() < support::TIMEOUT, "timed out waiting: {what}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// The same rows, `seconds` later.
    pub(crate) fn later(&mut self, seconds: i64) {
        let mut snapshot = self.view.snapshot.as_deref().unwrap().clone();
        snapshot.taken_at += chrono::TimeDelta::seconds(seconds);
        for set in Arc::make_mut(&mut snapshot.task_sets) {
            set.tasks.taken_at = Some(snapshot.taken_at);
            set.executions.taken_at = Some(snapshot.taken_at);
        }
        self.view = self.view_builder.snapshot_taken(snapshot);
    }

    /// The states of all rows, in the order of the tables.
    pub(crate) fn states(&self) -> Vec<&'static str> {
        self.view.tasks.rows.iter().map(|row| row.state.as_str()).collect()
    }

    /// The name of the lock on a key.
    pub(crate) fn name(&self, number: i64) -> Option<String> {
        let snapshot = self.view.snapshot.as_deref().unwrap();
        let tag = TaskKey::of(number).tag(snapshot.server().unwrap().datid);
        assert_eq!(tag.advisory_key(), Some(LockKey::Bigint(number)));
        words::lock_name(snapshot, &LockNames::default(), &tag, None).map(|name| name.to_string())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let text = output::json::to_string(&self.view).unwrap().unwrap();
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) fn table(&self) -> String {
        locktop::app::print::render(&self.view, None).unwrap()
    }

    /// The Tasks screen.
    pub(crate) fn screen(&self, width: u16, height: u16) -> String {
        self.screen_of('4', width, height).replace(' ', "").replace("task1", "task 1")
    }

    /// The screen that a shortcut opens.
    pub(crate) fn screen_of(&self, key: char, width: u16, height: u16) -> String {
        self.screen_after(&key.to_string(), width, height)
    }

    /// The text that was copied last after some keys.
    pub(crate) fn copied_after(&self, keys: &str) -> Option<String> {
        let mut app = App::new(AppSettings::default(), 1.0);
        app.update(Message::Resize(120, 35));
        app.update(Message::View(TargetId(0), Arc::clone(&self.view)));
        let mut copied = None;
        for key in Key::parse_all(keys).unwrap() {
            for effect in app.update(Message::Key(key)).effects {
                if let Effect::Copy(text) = effect {
                    copied = Some(text);
                }
            }
        }
        copied
    }

    /// The screen after some keys.
    pub(crate) fn screen_after(&self, keys: &str, width: u16, height: u16) -> String {
        let mut app = App::new(AppSettings::default(), 1.0);
        app.update(Message::Resize(width, height));
        app.update(Message::View(TargetId(0), Arc::clone(&self.view)));
        for key in Key::parse_all(keys).unwrap() {
            app.update(Message::Key(key));
        }
        let backend = ratatui::backend::TestBackend::new(width, height);
        let mut terminal = ratatui::Terminal::new(backend).unwrap();
        let theme = Theme::new(BaseTheme::Dark, ColorDepth::Rgb, false);
        let mut viewport = Viewport::default();
        terminal.draw(|frame| locktop::ui::render(frame, &app, &mut viewport, &theme)).unwrap();
        let cells = terminal.backend().buffer().content.chunks(usize::from(width));
        let line =
            |cells: &[ratatui::buffer::Cell]| cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        cells.map(line).collect::<Vec<String>>().join("\n")
    }
}

fn view_builder() -> ViewBuilder {
    ViewBuilder::new(TargetId::default(), Thresholds::default(), LockNames::default())
}
