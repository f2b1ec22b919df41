//! The network between the program and the server fails, in each of the ways that networks fail.

use std::time::Duration;

use super::dashboard::{Dashboard, session_exists};
use super::incident::Incident;
use super::outage::is_down;
use super::proxy::Proxy;
use super::screen::{Screen, Size};
use super::support;

/// The program behind a network, once it shows the root.
fn screen_behind(incident: &Incident, network: &Proxy, refresh: &str) -> Screen {
    let screen = Screen::spawn((80, 24), &[], &[&network.target(), "--refresh", refresh]);
    screen.shows(&incident.root().to_string());
    screen
}

/// The result of the poll is on the screen again, as current data.
fn is_live(screen: &Screen, root: &str) {
    screen.wait_for("new data", |screen| {
        let text = screen.contents();
        text.contains("LIVE") && text.contains(root) && !text.contains("DOWN") && !text.contains(" old")
    });
}

fn was_down(screen: &Screen) {
    screen.wait("the loss to be noticed", |seen| String::from_utf8_lossy(&seen.raw).contains("DOWN"));
}

fn quit(mut screen: Screen) {
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
    screen.assert_restored();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn silence_during_a_poll_is_shown_until_the_network_recovers() {
    let incident = Incident::crowd(5).await;
    let root = incident.root().to_string();
    let network = Proxy::before(&incident.server);
    let mut screen = screen_behind(&incident, &network, "0.2s");
    network.fall_silent();
    screen.wait_for("old data with its age", |screen| {
        let text = screen.contents();
        text.contains("NO ANSWER, data ") && text.contains("s old") && text.contains(&root)
    });
    is_down(&mut screen, &root);
    network.resume();
    is_live(&screen, &root);
    quit(screen);
}

/// Nothing is sent for a minute, and the silence is noticed all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn silence_between_two_polls_is_noticed_before_the_next() {
    let incident = Incident::crowd(5).await;
    let root = incident.root().to_string();
    let network = Proxy::before(&incident.server);
    let mut screen = screen_behind(&incident, &network, "60s");
    network.fall_silent();
    is_down(&mut screen, &root);
    network.resume();
    is_live(&screen, &root);
    quit(screen);
}

/// A dashboard that is about to act on the root, with both of its connections open.
struct Acting {
    incident: Incident,
    root: i32,
    network: Proxy,
    observer: tokio_postgres::Client,
    dashboard: Dashboard,
}

impl Acting {
    async fn at(size: Size) -> Self {
        let incident = Incident::crowd(5).await;
        let root = incident.root();
        let network = Proxy::before(&incident.server);
        let observer = support::open(&incident.info()).await.client;
        let dashboard = Dashboard::at(size, &network.target(), &["--screen", "chains"]);
        dashboard.screen.shows(&root.to_string());
        support::wait_for("both connections", || network.connections() == 2);
        Self { incident, root, network, observer, dashboard }
    }
}

/// A firewall that has forgotten connections drops their packets, also after the network has recovered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn connections_that_stay_silent_for_ever_are_replaced() {
    let Acting { incident: _incident, root, network, observer, mut dashboard } = Acting::at((80, 24)).await;
    network.forget();
    was_down(&dashboard.screen);
    is_live(&dashboard.screen, &root.to_string());
    // An attempt may have timed out on a machine that is busy.
    support::wait_for("two new connections", || network.connections() >= 4);
    terminate(&mut dashboard, &observer, root).await;
    dashboard.quit();
}

/// The poll continues, and the connection that acts is replaced before it is needed.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_connection_that_acts_is_replaced_when_it_alone_falls_silent() {
    let Acting { incident: _incident, root, network, observer, mut dashboard } = Acting::at((80, 24)).await;
    network.forget_one(1);
    support::wait_for("a third connection", || network.connections() >= 3);
    terminate(&mut dashboard, &observer, root).await;
    assert!(!String::from_utf8_lossy(&dashboard.screen.seen().raw).contains("DOWN"));
    dashboard.quit();
}

/// Terminates the root with the shortcut for that.
async fn terminate(dashboard: &mut Dashboard, observer: &tokio_postgres::Client, root: i32) {
    dashboard.select_first(&root.to_string());
    dashboard.question("K", "y terminate");
    dashboard.screen.keys("y");
    support::wait_until("the session to end", async || !session_exists(observer, root).await).await;
    dashboard.done(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reset_and_a_message_that_ends_in_the_middle_are_losses_like_others() {
    let incident = Incident::crowd(5).await;
    let root = incident.root().to_string();
    let network = Proxy::before(&incident.server);
    for lose in [Proxy::reset, Proxy::cut] {
        let mut screen = screen_behind(&incident, &network, "0.2s");
        lose(&network);
        was_down(&screen);
        is_live(&screen, &root);
        screen.keys("7");
        screen.shows("Backends ·");
        quit(screen);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_slow_network_is_no_loss() {
    let incident = Incident::crowd(5).await;
    let network = Proxy::before(&incident.server);
    network.delay(Duration::from_millis(300));
    let mut screen = Screen::spawn((120, 35), &[], &[&network.target(), "--refresh", "0.2s"]);
    screen.shows(&incident.root().to_string());
    // Duration of a poll.
    screen.wait_for("its time", |screen| {
        let text = screen.contents();
        let time =
            text.split_once("ms  ").and_then(|(before, _)| before.rsplit_once(' ')?.1.parse::<u32>().ok());
        text.contains("LIVE") && time.is_some_and(|time| time >= 600)
    });
    screen.keys("7");
    screen.shows("Backends ·");
    assert!(!String::from_utf8_lossy(&screen.seen().raw).contains("DOWN"));
    quit(screen);
}

/// A statement sent into a silent network would arrive when it is not wanted any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn nothing_is_sent_into_silence() {
    let Acting { incident: _incident, root, network, observer, mut dashboard } = Acting::at((110, 24)).await;
    dashboard.select_first(&root.to_string());
    dashboard.question("K", "y terminate");
    network.fall_silent();
    dashboard.screen.keys("y");
    dashboard.screen.shows("not tried: no connection");
    network.resume();
    // All data that was held back has arrived by then.
    is_live(&dashboard.screen, &root.to_string());
    assert!(session_exists(&observer, root).await);
    assert_eq!(dashboard.asked(), 0);
    terminate(&mut dashboard, &observer, root).await;
    dashboard.quit();
}
