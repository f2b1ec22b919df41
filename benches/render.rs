//! The cost of a frame. It must not depend on the number of rows.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a benchmark may"
)]

#[path = "support/sample.rs"]
mod sample;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use locktop::app::message::Message;
use locktop::app::{App, AppSettings};
use locktop::keys::Key;
use locktop::ui::layout::Viewport;
use locktop::ui::render;
use locktop::ui::theme::{BaseTheme, ColorDepth, Theme};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn frames(c: &mut Criterion) {
    // All wait in one queue: each waiter waits behind all before it.
    for (waiters, locks) in [(1_000, 10_000), (1_000, 100_000), (5_000, 1_000)] {
        let view = Arc::new(sample::crowd(waiters, locks, 0.0).view());
        // At the top, and at the end of the table.
        for (screen, keys) in
            [("Overview", "1"), ("Locks", "3"), ("Locks, last row", "3G"), ("Backends", "7")]
        {
            let mut app = App::new(AppSettings::default(), 1.0);
            app.update(Message::Resize(200, 60));
            app.update(Message::View(view.target, Arc::clone(&view)));
            for key in keys.chars() {
                app.update(Message::Key(Key::parse(&key.to_string()).unwrap()));
            }
            let theme = Theme::new(BaseTheme::Dark, ColorDepth::Rgb, false);
            let mut viewport = Viewport::default();
            let mut terminal = Terminal::new(TestBackend::new(200, 60)).unwrap();
            c.bench_function(&format!("{screen}, {waiters} waiters, {locks} locks"), |b| {
                b.iter(|| {
                    terminal.draw(|frame| render(frame, black_box(&app), &mut viewport, &theme)).unwrap();
                });
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50);
    targets = frames
}
criterion_main!(benches);
