//! Sizes: a storm of them, and too small ones.

use super::incident::Incident;
use super::screen::{Screen, Size};

/// A sequence that is the same in every run (a linear congruential generator, Knuth's MMIX constants).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u16) -> u16 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u16::try_from((self.0 >> 33) % u64::from(bound)).unwrap()
    }
}

const ODD: [Size; 10] =
    [(0, 0), (1, 1), (0, 24), (80, 0), (3, 2), (59, 15), (60, 14), (60, 15), (80, 23), (300, 100)];

/// The contents of the screen without the parts that change with time: digits, units of time, the sparkline,
/// and padding.
fn lasting(screen: &Screen) -> String {
    let seen = screen.seen();
    let text = seen.emulator.screen().contents();
    let changes = |c: char| c.is_ascii_digit() || c.is_whitespace() || "▁▂▃▄▅▆▇█.:≥ms".contains(c);
    text.lines().map(|line| line.replace(changes, "") + "\n").collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn after_a_storm_of_sizes_the_screen_is_that_of_the_last() {
    let incident = Incident::crowd(30).await;
    let mut screen = incident.looked_at((80, 24));
    let mut random = Random(7);
    for turn in 0..200 {
        let size = match turn % 4 {
            0 => ODD[usize::from(random.below(10))],
            _ => (random.below(301), random.below(101)),
        };
        screen.resize(size);
        if turn % 10 == 0 {
            // A page, another screen, a moved selection: each is drawn at odd sizes too.
            screen.keys(["?", "2", "j", "7", "!", "z", "3"][usize::from(random.below(7))]);
        }
    }
    screen.resize((130, 40));
    screen.wait_for("the last size", |screen| screen.contents().contains("q quit"));
    // A page can cover the screen: q would only close it.
    screen.keys("<ctrl-c>");
    assert_eq!(screen.wait_exit(), 0);
    screen.assert_restored();

    for last in [(80, 24), (130, 40)] {
        let screen = incident.looked_at((300, 100));
        for _ in 0..50 {
            screen.resize((random.below(301), random.below(101)));
        }
        screen.resize(last);
        let fresh = incident.looked_at(last);
        fresh.shows("LIVE");
        screen.wait_for("the same screen as a fresh one's", |now| {
            let text = now.contents();
            text.contains("LIVE") && text.contains("q quit")
        });
        super::support::wait_for("the same screen as a fresh one's", || lasting(&screen) == lasting(&fresh));
    }
}

/// A key that arrives together with a change of the size does not remain unread until the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_key_is_lost_or_late_in_a_storm_of_sizes() {
    const ROUNDS: usize = 40;
    const KEYS: usize = 50;
    let incident = Incident::crowd(3).await;
    let mut screen = incident.looked_at((80, 24));
    let mut random = Random(11);
    for round in 0..ROUNDS {
        screen.keys("/");
        let mut typed = String::new();
        for _ in 0..KEYS {
            let key = char::from(b'a' + u8::try_from(random.below(26)).unwrap());
            typed.push(key);
            screen.resize((100 + random.below(100), 24 + random.below(20)));
            screen.keys(&key.to_string());
        }
        // No other input arrives after which an unread key would be read.
        screen.wait_for(&format!("all keys of round {round}: {typed}"), |seen| {
            seen.contents().contains(&typed)
        });
        screen.keys("<esc>");
        screen.wait_for("the prompt to close", |seen| !seen.contents().contains(&typed));
    }
    screen.keys("<ctrl-c>");
    assert_eq!(screen.wait_exit(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_too_small_terminal_is_reported_until_it_is_enlarged() {
    let incident = Incident::crowd(3).await;
    let mut screen = incident.screen((59, 20), &[], &[]);
    screen.shows("locktop needs 60x15");
    screen.shows("this is 59x20");
    screen.resize((79, 14));
    screen.shows("this is 79x14");
    for size in [(60, 15), (80, 23), (80, 24)] {
        screen.resize(size);
        screen.shows(&incident.root().to_string());
    }
    screen.resize((80, 14));
    screen.shows("this is 80x14");
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
    screen.assert_restored();
}
