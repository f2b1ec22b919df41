//! What is typed, pasted and done to the terminal beside the question, at every step of it, does nothing to anybody.

use locktop::pg::connect::Connection;
use locktop::pg::conninfo::ConnInfo;
use rustix::process::Signal;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::desk::{Desk, becomes, is_there};
use super::incident::Incident;
use super::screen::Size;
use super::support;

const SIZE: Size = (100, 30);
/// A terminal in which there is no room for the question.
const SMALL: Size = (59, 20);
const ARMED: &str = "y terminate";
const NOTHING: &str = "nothing was done";

/// Somebody in a transaction, and two who wait for what he holds.
struct Scene {
    info: ConnInfo,
    look: Client,
    holder: Connection,
    pid: i32,
    waiters: Vec<JoinHandle<()>>,
}

impl Scene {
    async fn new(info: ConnInfo) -> Self {
        let look = support::open(&info).await.client;
        let holder = support::open(&info).await;
        let pid = support::pid(&holder.client).await;
        let mut scene = Self { info, look, holder, pid, waiters: Vec::new() };
        scene.block().await;
        scene
    }

    /// The holder begins another transaction, and others wait for it.
    async fn block(&mut self) {
        self.holder.client.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(42)").await.unwrap();
        for _ in 0..2 {
            let waiter = support::open(&self.info).await;
            let task =
                async move { drop(waiter.client.batch_execute("SELECT pg_advisory_xact_lock(42)").await) };
            self.waiters.push(tokio::spawn(task));
        }
        becomes(&self.look, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", "2")
            .await;
    }

    /// Opens the question about the holder, as the only root.
    fn ask(&self, desk: &mut Desk) {
        self.select(desk);
        desk.question("K", ARMED);
    }

    fn select(&self, desk: &mut Desk) {
        desk.screen.shows("blocks 2, ");
        desk.select_first(&self.pid.to_string());
    }

    async fn is_unharmed(&self, desk: &Desk, step: &str) {
        assert!(is_there(&self.look, self.pid).await, "{step}");
        assert_eq!(desk.asked(), 0, "{step}");
    }
}

/// Closes the question, which is still there: nothing was confirmed.
fn close(desk: &mut Desk) {
    desk.screen.keys("<esc>");
    desk.screen.shows(NOTHING);
    // Any key takes the message away.
    desk.screen.keys("g");
    desk.screen.hides(NOTHING);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_but_an_answer_to_the_question_on_the_screen_does_anything() {
    let incident = Incident::none().await;
    let mut scene = Scene::new(incident.info()).await;
    let mut desk = Desk::at(SIZE, &incident.server.conninfo(), &["--screen", "chains"]);

    // Typed ahead: whoever types on had not seen the question.
    for typed in ["Ky", "Kyyyy", "KY", "K\ty"] {
        scene.select(&mut desk);
        desk.screen.write(typed.as_bytes());
        desk.screen.shows(ARMED);
        close(&mut desk);
        scene.is_unharmed(&desk, typed).await;
    }

    // A paste is no answer, whether the question is on the screen already or not.
    scene.select(&mut desk);
    desk.screen.write(b"K\x1b[200~y\x1b[201~");
    desk.screen.shows(ARMED);
    desk.screen.write(b"\x1b[200~y\r\n\x1b[201~");
    close(&mut desk);
    scene.is_unharmed(&desk, "paste").await;

    // Escape, Enter (the focus is on Cancel), Ctrl-C and another letter close it, and what comes after them in the same write is for
    // the screen below.
    for typed in ["\r", "\x03", "ny", "q"] {
        scene.ask(&mut desk);
        desk.screen.write(typed.as_bytes());
        desk.screen.hides(ARMED);
        scene.is_unharmed(&desk, &format!("{typed:?}")).await;
        desk.screen.keys("g");
        desk.screen.hides("nothing was done");
    }

    // Somebody else is meant after Tab: that has to be seen first.
    scene.ask(&mut desk);
    desk.screen.write(b"\ty");
    desk.screen.shows("terminate: ");
    scene.is_unharmed(&desk, "another choice").await;
    desk.screen.write(b"\x1b[Zy");
    desk.screen.shows(ARMED);
    close(&mut desk);
    scene.is_unharmed(&desk, "back to the first choice").await;

    resized(&scene, &mut desk).await;

    // The target is over while the question about it is open: the key that was meant for it is for nobody else.
    scene.ask(&mut desk);
    scene.holder.client.batch_execute("COMMIT").await.unwrap();
    desk.screen.shows("nothing was done");
    desk.screen.keys("y");
    desk.screen.hides(ARMED);
    scene.is_unharmed(&desk, "its transaction ended").await;

    // The same, and the key comes before the program has heard of it.
    becomes(&scene.look, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", "0").await;
    scene.block().await;
    scene.ask(&mut desk);
    desk.screen.signal(Signal::STOP);
    scene.holder.client.batch_execute("COMMIT; BEGIN; SELECT 1").await.unwrap();
    desk.screen.write(b"y");
    desk.screen.signal(Signal::CONT);
    desk.screen.hides(ARMED);
    support::wait_for("its result", || desk.on_record("\"event\":\"result\"") == desk.asked());
    assert_eq!(desk.on_record("\"fate\":\"done\""), 0);
    assert!(is_there(&scene.look, scene.pid).await);
    // It is on record a moment before it is on the screen.
    desk.take_away("no longer matched");
    // Where the program heard of it first that is what it says, and the next key only takes it away.
    desk.take_away("nothing was done");
    desk.quit();
}

/// The signal of the size and the key reach the program at the same time, in either order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_from_before_a_change_of_size_is_no_answer() {
    let incident = Incident::none().await;
    let scene = Scene::new(incident.info()).await;
    let mut desk = Desk::at(SIZE, &incident.server.conninfo(), &["--screen", "chains"]);
    for _ in 0..if support::is_long() { 200 } else { 5 } {
        resized(&scene, &mut desk).await;
    }
    desk.quit();
}

/// The terminal changes its size below an open question.
async fn resized(scene: &Scene, desk: &mut Desk) {
    scene.ask(desk);
    desk.screen.resize(SMALL);
    desk.screen.hides(ARMED);
    desk.screen.keys("y");
    // It grows again, and the key is there before the frame.
    desk.screen.signal(Signal::STOP);
    desk.screen.resize(SIZE);
    desk.screen.write(b"y");
    desk.screen.signal(Signal::CONT);
    desk.screen.shows("[Back] Enter");
    // The key may be read only now, together with this one: it is no answer either.
    desk.screen.keys("<pgup>");
    desk.screen.shows(ARMED);
    close(desk);
    scene.is_unharmed(desk, "resize").await;
}
