//! A blocker that is known: ignored for this run, in the config file, and taken back.

use super::binary::{locktop, run_beside};
use super::dashboard::Dashboard;
use super::incident::Incident;

/// What the root is to `locktop snapshot` by a config file: how bad, and in which words.
async fn told(incident: &Incident, config: &std::path::Path) -> (String, String) {
    let target = incident.server.conninfo();
    let config = config.to_str().unwrap();
    let left = run_beside(locktop(&["snapshot", "--format", "json", "--config", config, &target])).await;
    let document: serde_json::Value =
        serde_json::from_str(&left.out).unwrap_or_else(|_| panic!("{}", left.err));
    let findings = document["findings"].as_array().unwrap();
    let root = findings.iter().find(|finding| finding["check"] == "root_blocker").unwrap();
    (root["severity"].as_str().unwrap().to_owned(), root["summary"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_known_blocker_is_ignored_and_written_and_taken_back() {
    let incident = Incident::crowd(5).await;
    let target = incident.server.conninfo();
    let before = "# mine\nrefresh = \"0.2s\"\n";
    // No server is asked for anything: it is there in read-only mode.
    let mut dashboard = Dashboard::with((120, 35), &target, &["--read-only"], before);
    let config = dashboard.config();
    assert_eq!(told(&incident, &config).await.0, "critical");
    dashboard.screen.shows("CRIT");
    dashboard.select_first(&incident.root().to_string());
    dashboard.question("I", "y expect");
    dashboard.screen.shows("[[expected]]");
    dashboard.screen.shows("[ ] also write it to");
    dashboard.screen.keys("y");
    dashboard.screen.shows("is expected now, in this run");
    dashboard.screen.shows(", expected: known since 20");
    dashboard.screen.hides("CRIT");
    assert_eq!(std::fs::read_to_string(&config).unwrap(), before, "for this run alone");

    dashboard.question("I", "y no longer expect");
    dashboard.screen.keys("y");
    dashboard.screen.shows("CRIT");
    dashboard.question("I", "y expect");
    dashboard.screen.shows("[ ] also write it to");
    dashboard.screen.keys("f");
    dashboard.screen.shows("[x] also write it to");
    dashboard.screen.shows("y expect");
    dashboard.screen.keys("y");
    dashboard.screen.shows("added to ");
    dashboard.screen.keys("<esc>");
    dashboard.screen.hides("CRIT");
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.starts_with(before) && text.contains("[[expected]]\napplication = "), "{text}");
    let (severity, summary) = told(&incident, &config).await;
    assert_eq!(severity, "info");
    assert!(summary.contains(", expected: known since "), "{summary}");
    dashboard.quit();
    dashboard.again((120, 35), &target, &[]);
    dashboard.screen.shows(", expected: known since 20");
    assert_eq!(dashboard.asked(), 0, "nothing was asked of the server");
    dashboard.quit();
}
