//! Signals that end the program.

use rustix::process::Signal;

use super::incident::Incident;
use super::process;
use super::screen::Screen;
use super::support::wait_for;

/// Stops reading, and waits until the program is in a write that does not return.
pub(crate) fn block_its_writes(screen: &mut Screen) {
    screen.stop_reading();
    // Each key redraws everything. When no more output arrives, the last write blocks.
    let pid = screen.pid();
    let (mut before, mut same) = (0, 0);
    wait_for("a write to block", || {
        screen.write(b"r");
        std::thread::sleep(std::time::Duration::from_millis(10));
        let writes = process::writes(pid);
        same = if writes == before { same + 1 } else { 0 };
        before = writes;
        same > 100
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_ends_the_program_and_restores_the_terminal() {
    let incident = Incident::crowd(2).await;
    for (signal, number) in [(Signal::TERM, 15), (Signal::HUP, 1), (Signal::INT, 2), (Signal::QUIT, 3)] {
        let mut screen = incident.looked_at((80, 24));
        screen.signal(signal);
        assert_eq!(screen.wait_exit(), 128 + number, "{signal:?}");
        screen.assert_restored();
        assert_eq!(screen.raw_tail().replace("\x1b[?25h", ""), "", "{signal:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_ends_the_program_while_the_terminal_is_not_read() {
    let incident = Incident::crowd(2).await;
    let mut screen = incident.looked_at((200, 60));
    block_its_writes(&mut screen);
    screen.signal(Signal::TERM);
    assert_eq!(screen.exit_status(), 128 + 15);
    assert!(!screen.is_raw());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_end_of_the_terminal_is_the_end_of_the_program() {
    let incident = Incident::crowd(2).await;
    for _ in 0..5 {
        let mut screen = incident.looked_at((80, 24));
        screen.hang_up();
        assert_eq!(screen.exit_status(), 128 + 1);
    }
}
