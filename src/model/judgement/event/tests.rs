use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(seconds, 0).unwrap()
}

fn body(who: &str, what: &str) -> EventBody {
    EventBody { who: harmless(who), ..EventBody::new(at(0), EventKind::WaitBegun, Severity::Info, what) }
}

fn numbers(events: &Events) -> Vec<u64> {
    events.iter().map(|event| event.number).collect()
}

#[test]
fn events_are_found_by_their_number_and_the_oldest_make_room() {
    let mut events = Events::default();
    assert!(events.is_empty() && events.get(0).is_none());
    for round in 0..300 {
        events.extend(at(round), (0..100).map(|number| body(&number.to_string(), "began")));
    }
    assert_eq!(events.dropped() + events.len() as u64, 30_000);
    assert!(events.len() > 20_000 && events.len() < 20_500, "{}", events.len());
    let first = events.dropped();
    assert_eq!(numbers(&events), (first..30_000).collect::<Vec<_>>());
    assert!((first..30_000).all(|number| events.get(number).unwrap().number == number));
    assert!(events.get(first - 1).is_none() && events.get(30_000).is_none());
    assert_eq!(events.get(29_950).unwrap().seen, at(299));
}

#[test]
fn a_clone_does_not_change_when_events_are_added() {
    let mut events = Events::default();
    events.extend(at(1), [body("1", "began")]);
    let view = events.clone();
    events.extend(at(2), [body("2", "began")]);
    assert_eq!((numbers(&view), numbers(&events)), (vec![0], vec![0, 1]));
}

#[test]
fn text_is_harmless_and_alike_events_are_those_of_one_snapshot() {
    let mut events = Events::default();
    events.extend(at(1), [body("1 a\u{1b}[31m", "began\n to wait"), body("2", "began\n to wait")]);
    events.extend(at(2), [body("3", "began\n to wait"), body("", "began\n to wait")]);
    let text: Vec<String> = events.iter().map(Event::text).collect();
    assert!(text.iter().all(|text| !text.contains(['\u{1b}', '\n'])), "{text:?}");
    let [first, second, third, bare] = [0, 1, 2, 3].map(|number| events.get(number).unwrap());
    assert!(first.is_alike(second) && !first.is_alike(third) && !bare.is_alike(third));
    assert_eq!(Length::AtMost(1.25).to_string(), format!("≤ {}", crate::text::duration(1.25)));
}

#[test]
fn an_event_with_an_impossible_number_is_left_out() {
    let event = |number| Event { number, seen: at(1), body: body("1", "began") };
    let mut events = Events::default();
    for number in [u64::MAX, 7, u64::MAX - 1, 8] {
        events.append(event(number));
    }
    assert_eq!(numbers(&events), [7, 8]);
    events.extend(at(2), [body("2", "began")]);
    assert_eq!(numbers(&events), [7, 8, 9]);
}
