//! Panics, which the program has on request in debug builds.

use crate::incident::Incident;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[cfg_attr(not(debug_assertions), ignore = "the fault exists in debug builds alone")]
async fn a_panic_gives_the_terminal_back_and_is_read_on_it() {
    let incident = Incident::crowd(2).await;
    for place in ["screen", "feed"] {
        let mut screen = incident.screen((80, 24), &[("LOCKTOP_PANIC", place)], &[]);
        assert_ne!(screen.wait_exit(), 0, "{place}");
        screen.assert_restored();
        let message = format!("LOCKTOP_PANIC={place} asks for a panic");
        // Its lines are wrapped at the edge.
        let shown = screen.contents().replace('\n', "");
        assert!(shown.contains(&message), "{place}: {}", screen.contents());
        let tail = screen.raw_tail();
        let after = &tail[tail.find("asks for a panic").unwrap()..];
        assert!(
            !after.contains("\x1b[?2026h") && !after.contains("PID"),
            "{place}: drawn over it: {after:?}"
        );
    }
}
