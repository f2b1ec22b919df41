//! Typed and pasted input and changes of the terminal that do not answer the question have no effect on any
//! session, at every step of it.

use locktop::pg::connect::Connection;
use locktop::pg::conninfo::ConnInfo;
use rustix::process::Signal;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::dashboard::{Dashboard, becomes, session_exists};
use super::incident::Incident;
use super::screen::Size;
use super::support;

const SIZE: Size = (100, 30);
/// A terminal that is too small for the question.
const SMALL: Size = (59, 20);
const ARMED: &str = "y terminate";
const NOTHING: &str = "nothing was done";

/// A session with an open transaction, and two that wait for its lock.
struct Scene {
    info: ConnInfo,
    observer: Client,
    holder: Connection,
    pid: i32,
    waiters: Vec<JoinHandle<()>>,
}

impl Scene {
    async fn new(info: ConnInfo) -> Self {
        let observer = support::open(&info).await.client;
        let holder = support::open(&info).await;
        let pid = support::pid(&holder.client).await;
        let mut scene = Self { info, observer, holder, pid, waiters: Vec::new() };
        scene.block().await;
        scene
    }

    /// The holder begins another transaction, and the others wait for it.
    async fn block(&mut self) {
        self.holder.client.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(42)").await.unwrap();
        for _ in 0..2 {
            let waiter = support::open(&self.info).await;
            let task =
                async move { drop(waiter.client.batch_execute("SELECT pg_advisory_xact_lock(42)").await) };
            self.waiters.push(tokio::spawn(task));
        }
        becomes(
            &self.observer,
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
            "2",
        )
        .await;
    }

    /// Opens the question about the holder, which is the only root.
    fn ask(&self, dashboard: &mut Dashboard) {
        self.select(dashboard);
        dashboard.question("K", ARMED);
    }

    fn select(&self, dashboard: &mut Dashboard) {
        dashboard.screen.shows(&self.pid.to_string());
        dashboard.select_first(&self.pid.to_string());
    }

    async fn is_unharmed(&self, dashboard: &Dashboard, step: &str) {
        assert!(session_exists(&self.observer, self.pid).await, "{step}");
        assert_eq!(dashboard.asked(), 0, "{step}");
    }
}

/// Closes the open question: nothing was confirmed.
fn close(dashboard: &mut Dashboard) {
    dashboard.screen.keys("<esc>");
    dashboard.screen.shows(NOTHING);
    // Any key removes the message.
    dashboard.screen.keys("g");
    dashboard.screen.hides(NOTHING);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_but_an_answer_to_the_question_on_the_screen_does_anything() {
    let incident = Incident::none().await;
    let mut scene = Scene::new(incident.info()).await;
    let mut dashboard = Dashboard::at(SIZE, &incident.server.conninfo(), &["--screen", "chains"]);

    // Keys typed ahead were typed before the question was drawn.
    for typed in ["Ky", "Kyyyy", "KY", "K\ty"] {
        scene.select(&mut dashboard);
        dashboard.screen.write(typed.as_bytes());
        dashboard.screen.shows(ARMED);
        close(&mut dashboard);
        scene.is_unharmed(&dashboard, typed).await;
    }

    // A paste is no answer, whether or not the question is already on the screen.
    scene.select(&mut dashboard);
    dashboard.screen.write(b"K\x1b[200~y\x1b[201~");
    dashboard.screen.shows(ARMED);
    dashboard.screen.write(b"\x1b[200~y\r\n\x1b[201~");
    close(&mut dashboard);
    scene.is_unharmed(&dashboard, "paste").await;

    // Escape, Enter (the focus is on Cancel), Ctrl-C and another letter close the question; keys that follow
    // in the same write go to the screen below.
    for typed in ["\r", "\x03", "ny", "q"] {
        scene.ask(&mut dashboard);
        dashboard.screen.write(typed.as_bytes());
        dashboard.screen.hides(ARMED);
        scene.is_unharmed(&dashboard, &format!("{typed:?}")).await;
        dashboard.screen.keys("g");
        dashboard.screen.hides("nothing was done");
    }

    // Tab selects another target, which must be drawn first.
    scene.select(&mut dashboard);
    dashboard.screen.keys("j");
    dashboard.question("K", ARMED);
    dashboard.screen.write(b"\ty");
    dashboard.screen.shows("[the root, ");
    dashboard.screen.shows(ARMED);
    scene.is_unharmed(&dashboard, "another choice").await;
    dashboard.screen.write(b"\x1b[Zy");
    dashboard.screen.shows("[this session]");
    close(&mut dashboard);
    scene.is_unharmed(&dashboard, "back to the first choice").await;

    resized(&scene, &mut dashboard).await;

    // The target's transaction ends while the question is open: the key that was meant for it affects no
    // other session.
    scene.ask(&mut dashboard);
    scene.holder.client.batch_execute("COMMIT").await.unwrap();
    dashboard.screen.shows("nothing was done");
    dashboard.screen.keys("y");
    dashboard.screen.hides(ARMED);
    scene.is_unharmed(&dashboard, "its transaction ended").await;
    dashboard.take_away(NOTHING);

    // The same, but the key arrives before the program knows about the end.
    becomes(&scene.observer, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", "0").await;
    scene.block().await;
    scene.ask(&mut dashboard);
    dashboard.screen.signal(Signal::STOP);
    scene.holder.client.batch_execute("COMMIT; BEGIN; SELECT 1").await.unwrap();
    dashboard.screen.write(b"y");
    dashboard.screen.signal(Signal::CONT);
    dashboard.screen.hides(ARMED);
    support::wait_for("its result", || dashboard.on_record("\"event\":\"result\"") == dashboard.asked());
    assert_eq!(dashboard.on_record("\"fate\":\"done\""), 0);
    assert!(session_exists(&scene.observer, scene.pid).await);
    // The result is recorded just before it is on the screen.
    dashboard.take_away("no longer matched");
    // If a snapshot arrived first, the question is over and is closed.
    dashboard.take_away("nothing was done");
    dashboard.quit();
}

/// The signal of the size and the key reach the program at the same time, in either order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_from_before_a_change_of_size_is_no_answer() {
    let incident = Incident::none().await;
    let scene = Scene::new(incident.info()).await;
    let mut dashboard = Dashboard::at(SIZE, &incident.server.conninfo(), &["--screen", "chains"]);
    for _ in 0..if support::is_long() { 200 } else { 5 } {
        resized(&scene, &mut dashboard).await;
    }
    dashboard.quit();
}

/// The terminal changes its size below an open question.
async fn resized(scene: &Scene, dashboard: &mut Dashboard) {
    scene.ask(dashboard);
    dashboard.screen.resize(SMALL);
    dashboard.screen.hides(ARMED);
    dashboard.screen.keys("y");
    // The terminal grows again, and the key arrives before the frame.
    dashboard.screen.signal(Signal::STOP);
    dashboard.screen.resize(SIZE);
    dashboard.screen.write(b"y");
    dashboard.screen.signal(Signal::CONT);
    dashboard.screen.shows("[Back] Enter");
    // The program may read the first key only now, together with this one: it is no answer either.
    dashboard.screen.keys("<pgup>");
    dashboard.screen.shows(ARMED);
    close(dashboard);
    scene.is_unharmed(dashboard, "resize").await;
}
