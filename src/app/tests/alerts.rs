use super::*;
use crate::model::alert::Ways;

fn app_with(notify: Ways) -> App {
    App::new(Settings { target: "prod".to_owned(), notify, ..Settings::default() }, 1.0)
}

fn told(app: &mut App, builder: Builder) -> Vec<Effect> {
    let effects = arrive(app, builder.view()).effects;
    effects.into_iter().filter(|effect| matches!(effect, Effect::Alert(..) | Effect::Title(_))).collect()
}

fn quiet(now: f64) -> Builder {
    Builder { now, ..Builder::default() }
}

#[test]
fn nobody_is_disturbed_who_did_not_ask() {
    let mut app = app_with(Ways::default());
    told(&mut app, quiet(0.0));
    assert_eq!(told(&mut app, sample::incident(1.0)), []);
}

#[test]
fn what_becomes_critical_is_told_once_also_while_the_screen_is_held() {
    let ways = Ways { bell: true, ..Ways::default() };
    let mut app = app_with(ways);
    assert_eq!(told(&mut app, quiet(0.0)), []);
    drive(&mut app, "p");
    let [Effect::Alert(by, text)] = &told(&mut app, sample::incident(1.0))[..] else {
        panic!("nothing was told")
    };
    assert_eq!(*by, ways);
    assert!(text.starts_with("prod: 4312 "), "{text}");
    assert_eq!(told(&mut app, sample::incident(2.0)), []);
}

#[test]
fn the_title_says_what_is_wrong_and_that_nothing_is() {
    let mut app = app_with(Ways { title: true, ..Ways::default() });
    assert_eq!(told(&mut app, quiet(0.0)), [Effect::Title("locktop prod".to_owned())]);
    assert_eq!(told(&mut app, quiet(1.0)), []);
    let [Effect::Title(text)] = &told(&mut app, sample::incident(2.0))[..] else { panic!("no title") };
    assert!(text.starts_with("CRIT 4312 ") && text.ends_with(" · prod"), "{text}");
    assert_eq!(told(&mut app, quiet(3.0)), [Effect::Title("locktop prod".to_owned())]);
}

#[test]
fn text_of_the_server_ends_no_sequence() {
    let mut app = app_with(Ways { title: true, ..Ways::default() });
    app.settings.target = "a\x07\x1b]0;evil\x1b\\\u{9c}b".to_owned();
    let [Effect::Title(text)] = &told(&mut app, quiet(0.0))[..] else { panic!("no title") };
    assert!(!text.chars().any(char::is_control), "{text:?}");
}
