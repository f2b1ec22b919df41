//! A known blocker: ignored for this run, restored, and printed at the end for the config file.

use rustix::process::Signal;

use super::binary::{locktop, run_beside};
use super::dashboard::Dashboard;
use super::incident::Incident;

/// The severity and summary of the root in `locktop snapshot` with a config file.
async fn finding(incident: &Incident, config: &std::path::Path) -> (String, String) {
    let target = incident.server.conninfo();
    let config = config.to_str().unwrap();
    let left = run_beside(locktop(&["snapshot", "--format", "json", "--config", config, &target])).await;
    let document: serde_json::Value =
        serde_json::from_str(&left.out).unwrap_or_else(|_| panic!("{}", left.err));
    let findings = document["findings"].as_array().unwrap();
    let root = findings.iter().find(|finding| finding["check"] == "root_blocker").unwrap();
    (root["severity"].as_str().unwrap().to_owned(), root["summary"].as_str().unwrap().to_owned())
}

/// Marks the root as expected.
fn expect(dashboard: &mut Dashboard, incident: &Incident) {
    dashboard.screen.shows("CRIT");
    dashboard.select_first(&incident.root().to_string());
    dashboard.question("I", "y expect");
    dashboard.screen.shows("printed at quit, to be copied into the config file");
    dashboard.screen.keys("y");
    dashboard.screen.shows("is expected now, in this run");
}

/// The output after the terminal was restored.
fn printed(dashboard: &Dashboard) -> String {
    dashboard.screen.raw_tail().replace("\x1b[?25h", "").replace('\r', "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_known_blocker_is_ignored_and_taken_back_and_printed_for_the_config() {
    let incident = Incident::crowd(5).await;
    let target = incident.server.conninfo();
    let before = "# mine\nrefresh = \"0.2s\"\n";
    // Sends nothing to the server: it is available in read-only mode.
    let mut dashboard = Dashboard::with((120, 35), &target, &["--read-only"], before);
    let config = dashboard.config();
    assert_eq!(finding(&incident, &config).await.0, "critical");
    expect(&mut dashboard, &incident);
    dashboard.screen.shows(", expected: known since 20");
    dashboard.screen.hides("CRIT");
    dashboard.question("I", "y no longer expect");
    dashboard.screen.keys("y");
    expect(&mut dashboard, &incident);
    dashboard.quit();
    assert_eq!(std::fs::read_to_string(&config).unwrap(), before);
    let text = printed(&dashboard);
    let begin = format!("# add to {}:\n[[expected]]\napplication = ", config.display());
    assert!(text.starts_with(&begin) && text.matches("[[expected]]").count() == 1, "{text}");

    std::fs::write(&config, format!("{before}{text}")).unwrap();
    let (severity, summary) = finding(&incident, &config).await;
    assert_eq!(severity, "info");
    assert!(summary.contains(", expected: known since "), "{summary}");
    dashboard.again((120, 35), &target, &[]);
    dashboard.screen.shows(", expected: known since 20");
    assert_eq!(dashboard.asked(), 0, "nothing was asked of the server");
    dashboard.quit();
    assert_eq!(printed(&dashboard), "", "it is in the config");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_prints_the_entries_and_a_closed_terminal_keeps_the_exit_status() {
    let incident = Incident::crowd(5).await;
    let target = incident.server.conninfo();
    let mut dashboard = Dashboard::at((120, 35), &target, &[]);
    expect(&mut dashboard, &incident);
    dashboard.screen.signal(Signal::TERM);
    assert_eq!(dashboard.screen.wait_exit(), 128 + 15);
    let text = printed(&dashboard);
    assert!(text.starts_with("# add to ") && text.contains("[[expected]]"), "{text}");

    dashboard.again((120, 35), &target, &[]);
    expect(&mut dashboard, &incident);
    dashboard.screen.hang_up();
    assert_eq!(dashboard.screen.exit_status(), 128 + 1);
}
