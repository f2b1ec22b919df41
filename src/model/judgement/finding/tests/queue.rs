use crate::model::finding::Severity;
use crate::sample::{Builder, at};

fn reported(builder: Builder, check: &str) -> Vec<(Severity, String)> {
    let view = builder.view();
    let matching = view.findings.iter().filter(|finding| finding.check == check);
    matching.map(|finding| (finding.severity, finding.summary.to_string())).collect()
}

#[test]
fn lost_queue_items_are_reported_and_many_are_one_finding() {
    let lost = |count: i64| {
        let mut b = Builder::default();
        for id in 1..=count {
            b.item(id, "send\n\u{1b}mail", "processing", 300.0).worker = Some("worker-3".into());
        }
        reported(b, "lost_item")
    };
    let one = "queue item 1 (send ␛mail) lost, worker-3 last seen 5m00s ago";
    assert_eq!(lost(1), [(Severity::Warning, one.to_owned())]);
    assert_eq!(lost(3).len(), 3);
    let many = "500 queue items lost with their worker; the first is item 1 (send ␛mail) of worker-3, last seen 5m00s ago";
    assert_eq!(lost(500), [(Severity::Warning, many.to_owned())]);
}

#[test]
fn a_queue_without_progress_is_reported_with_its_age() {
    let waiting = |oldest: f64| {
        let mut b = Builder::default();
        b.count("pending", 1204, false).oldest_at = Some(at(-oldest));
        b.count("completed", 10_000, true);
        reported(b, "queue_pending")
    };
    assert_eq!(waiting(599.0), []);
    let expected = "work queue: 1,204 pending, oldest 10m00s; none in progress";
    assert_eq!(waiting(600.0), [(Severity::Warning, expected.to_owned())]);
}

#[test]
fn an_id_generator_ahead_of_the_clock_and_a_full_limit_are_reported() {
    let mut b = Builder::default();
    b.generator(1, -5.0);
    b.generator(2, 0.9);
    b.generator(3, 300.0);
    b.limit("user:1", 100, Some(100), 30.0);
    b.limit("user:2", 99, Some(100), 30.0);
    b.limit("user:3", 100, Some(100), -1.0);
    b.limit("user:4", 100, None, 30.0);
    let view = b.view();
    let reported: Vec<_> = view.findings.iter().map(|finding| (finding.check, &*finding.short)).collect();
    assert_eq!(
        reported,
        [
            ("id_ahead", "id generator 3 is 5m00s ahead of the clock"),
            ("rate_limit", "rate limit user:1 is full: 100 in its window"),
        ]
    );
    assert_eq!(view.findings[1].severity, Severity::Info);
    let mut b = Builder::default();
    for key in 0..500 {
        b.limit(&format!("user:{key}"), 100, Some(100), 30.0);
    }
    let many = "500 rate limits are full, including user:0".to_owned();
    assert_eq!(self::reported(b, "rate_limit"), [(Severity::Info, many)]);
}
