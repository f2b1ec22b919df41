use std::sync::Arc;

use super::{SIZES, Stage, check};
use crate::app::message::{Effect, Message};
use crate::keys::Key;
use crate::model::adapter::{ActionKind, Part, Parts, sample as installations};
use crate::model::view::{TargetId, View};
use crate::sample;

fn view() -> View {
    let mut snapshot = sample::Builder::default().snapshot();
    let now = snapshot.taken_at;
    snapshot.adapters =
        Arc::new(vec![installations::beating(now), installations::locking(now), installations::leasing(now)]);
    sample::view(snapshot, 1)
}

#[test]
fn other_systems_at_three_sizes() {
    for (width, height) in SIZES {
        for (name, keys) in [
            ("installations_tasks", "4"),
            ("installations_leases", "5"),
            ("installations_queue", "6"),
            ("installations_worker", "6<tab><enter>"),
            ("installations_one_queue", "6<enter>"),
            ("installations_lease", "5<enter>"),
            ("installations_schedule", "4<tab><enter>"),
            ("installations_findings", "!"),
        ] {
            check(name, &mut Stage::new(width, height).view(view()).keys(keys));
        }
    }
}

#[test]
fn the_poll_gets_the_parts_that_the_screen_shows() {
    let mut stage = Stage::new(120, 35);
    let mut watched = |message: Message| {
        let update = stage.app.update(message);
        update.effects.into_iter().find_map(|effect| match effect {
            Effect::Watch(parts) => Some(parts),
            _ => None,
        })
    };
    let mut key = |keys: &str| watched(Message::Key(Key::parse_all(keys).unwrap()[0]));
    assert_eq!(key("4"), None, "no view yet");
    assert_eq!(key("1"), None);
    assert_eq!(
        watched(Message::View(TargetId(0), Arc::new(view()))),
        None,
        "the Overview shows none of the parts"
    );
    let mut key = |keys: &str| watched(Message::Key(Key::parse_all(keys).unwrap()[0]));
    let tasks = key("4").unwrap();
    for part in Part::JOBS {
        assert!(tasks.has(part), "{part:?}");
    }
    assert!(tasks.has(Part::Schedules) && !tasks.has(Part::Leases) && !tasks.has(Part::Depth));
    assert_eq!(key("j"), None, "the parts are sent once");
    assert_eq!(key("5"), Some(Parts::of(&[Part::Leases])));
    let queue = key("6").unwrap();
    assert!(queue.has(Part::Depth) && queue.has(Part::Paused) && !queue.has(Part::Failed));
    assert_eq!(key("2"), Some(Parts::NONE));
}

fn acting() -> View {
    let mut snapshot = sample::Builder::default().snapshot();
    let now = snapshot.taken_at;
    let claimed = [
        ("claimed", "public.solid_queue_claimed_executions"),
        ("ready", "public.solid_queue_ready_executions"),
    ];
    snapshot.adapters = Arc::new(vec![
        installations::acting(
            installations::beating(now),
            ActionKind::Recover,
            &claimed,
            "it is ready again, in its queue and with its priority",
        ),
        installations::acting(
            installations::leasing(now),
            ActionKind::Unlock,
            &[("locks", "public.databasechangeloglock")],
            "the next deployment gets it",
        ),
    ]);
    sample::view(snapshot, 1)
}

#[test]
fn actions_on_other_systems_ask_only_if_the_config_allows_them() {
    for (width, height) in SIZES {
        for (name, keys) in [("ask_job", "4R"), ("ask_other_lease", "5jU"), ("refuse_job", "4jR")] {
            check(name, &mut Stage::new(width, height).view(acting()).keys(keys));
        }
    }
    let mut stage = Stage::new(120, 35).view(view()).keys("4R");
    let text = stage.text();
    assert!(!text.contains("y recover") && text.contains("locktop returns no job of Solid Queue"), "{text}");
    let text = Stage::new(120, 35).view(acting()).keys("5jjU").text();
    assert!(
        !text.contains("End lease") && text.contains("its row does not show whether it is held"),
        "{text}"
    );
}
