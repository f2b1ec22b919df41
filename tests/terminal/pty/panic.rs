//! Panics, which debug builds raise on request.

use rustix::process::Signal;

use super::incident::Incident;
use super::screen::Screen;
use super::signals::block_its_writes;

/// The program has ended, the message is on the terminal, and nothing is drawn over it.
fn message_is_left(screen: &Screen, place: &str) {
    screen.assert_restored();
    let message = format!("LOCKTOP_PANIC={place} asks for a panic");
    // The terminal wraps its lines at the edge.
    let shown = screen.contents().replace('\n', "");
    assert!(shown.contains(&message), "{place}: {}", screen.contents());
    let tail = screen.raw_tail();
    let after = &tail[tail.find("asks for a panic").unwrap()..];
    assert!(!after.contains("\x1b[?2026h") && !after.contains("PID"), "{place}: drawn over it: {after:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[cfg_attr(not(debug_assertions), ignore = "the fault exists in debug builds alone")]
async fn a_panic_gives_the_terminal_back_and_is_read_on_it() {
    let incident = Incident::crowd(2).await;
    for place in ["screen", "feed"] {
        let mut screen = incident.screen((80, 24), &[("LOCKTOP_PANIC", place)], &[]);
        assert_ne!(screen.wait_exit(), 0, "{place}");
        message_is_left(&screen, place);
    }
}

/// A panic in a part that the screens do not depend on.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[cfg_attr(not(debug_assertions), ignore = "the fault exists in debug builds alone")]
async fn a_panic_of_any_task_ends_the_program() {
    let incident = Incident::crowd(2).await;
    let mut screen = incident.screen((80, 24), &[("LOCKTOP_PANIC", "learner")], &[]);
    screen.shows(&incident.root().to_string());
    screen.signal(Signal::USR1);
    assert_eq!(screen.wait_exit(), 1);
    message_is_left(&screen, "learner");
    let shown = screen.contents().replace('\n', "");
    let ended = "locktop: a part of the program ended unexpectedly; see its message above";
    assert!(shown.contains(ended), "{}", screen.contents());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[cfg_attr(not(debug_assertions), ignore = "the fault exists in debug builds alone")]
async fn a_panic_ends_the_program_while_the_terminal_is_not_read() {
    let incident = Incident::crowd(2).await;
    let mut screen = incident.screen((200, 60), &[("LOCKTOP_PANIC", "learner")], &[]);
    screen.shows(&incident.root().to_string());
    block_its_writes(&mut screen);
    screen.signal(Signal::USR1);
    assert_eq!(screen.exit_status(), 1);
    assert!(!screen.is_raw());
}
