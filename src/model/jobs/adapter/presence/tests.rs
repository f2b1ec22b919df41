use super::*;
use crate::sample::Builder;

const OTHER: u32 = 99;

fn presence(queries: &[&str], applications: &[&str]) -> Presence {
    let texts = |words: &[&str]| words.iter().map(|word| Text::from(*word)).collect();
    Presence { queries: texts(queries), applications: texts(applications) }
}

/// Counts the sessions of two clients, one of which listens, after `change`.
fn sessions(presence: &Presence, change: impl Fn(&mut Vec<Backend>, &mut Server)) -> Option<u64> {
    let mut builder = Builder::default();
    builder.session(7, "app@worker", State::Idle, 0.0, " LISTEN \"jobs:insert\"; LISTEN \"worker:migrate\"");
    builder.session(8, "app@web", State::Idle, 0.0, "COMMIT");
    let snapshot = builder.snapshot();
    let (mut server, mut backends) =
        (snapshot.server().unwrap().clone(), Vec::clone(snapshot.backends.last_rows()));
    (server.sees_all, server.in_recovery, server.own_pid) = (true, false, 1);
    for backend in &mut backends {
        backend.datid = Some(server.datid);
    }
    backends[1].application = Some("boss:1".into());
    change(&mut backends, &mut server);
    presence.sessions(&Section::fresh(backends, snapshot.taken_at), &server)
}

#[test]
fn a_session_is_known_by_how_its_statement_or_the_name_of_its_application_begins() {
    let as_they_are = |_: &mut Vec<Backend>, _: &mut Server| {};
    for (queries, applications, expected) in [
        (&["LISTEN \"jobs:insert\""][..], &[][..], Some(1)),
        (&["LISTEN \"jobs:other\"", "LISTEN \"jobs:insert\""], &[], Some(1)),
        (&["listen \"jobs:insert\""], &[], Some(0)),
        (&["\"jobs:insert\""], &[], Some(0)),
        (&[], &["boss:*"], Some(1)),
        (&[], &["boss:1"], Some(1)),
        (&[], &["boss"], Some(0)),
        (&["LISTEN"], &["boss*"], Some(2)),
        (&[], &["boss:2*"], Some(0)),
        (&[], &[], None),
    ] {
        let found = sessions(&presence(queries, applications), as_they_are);
        assert_eq!(found, expected, "{queries:?} {applications:?}");
    }
}

#[test]
fn zero_sessions_is_known_only_if_all_sessions_are_visible() {
    type Change = fn(&mut Vec<Backend>, &mut Server);
    let by_query = presence(&["LISTEN other"], &[]);
    let by_name = presence(&[], &["other"]);
    let listening = presence(&["LISTEN"], &[]);
    let cases: [(&str, Change, [Option<u64>; 3]); 8] = [
        ("no change", |_, _| {}, [Some(0), Some(0), Some(1)]),
        (
            "a role that does not see the statements of others",
            |_, server| server.sees_all = false,
            [None, Some(0), Some(1)],
        ),
        (
            "a statement that is not tracked",
            |all, _| all[1].state = Some(State::Disabled),
            [None, Some(0), Some(1)],
        ),
        ("behind a pooler", |_, server| server.pooling = Pooling::Sessions, [None, None, Some(1)]),
        ("a standby", |_, server| server.in_recovery = true, [None, None, Some(1)]),
        ("another database", |all, _| all[0].datid = Some(OTHER), [Some(0), Some(0), Some(0)]),
        ("locktop's own", |_, server| server.own_pid = 7, [Some(0), Some(0), Some(0)]),
        ("no client", |all, _| all[0].backend_type = Some("walsender".into()), [Some(0), Some(0), Some(0)]),
    ];
    for (what, change, expected) in cases {
        let found = [&by_query, &by_name, &listening].map(|presence| sessions(presence, change));
        assert_eq!(found, expected, "{what}");
    }
    let old = Section::<Backend>::default().stale("no".into());
    let server = Builder::default().snapshot().server().unwrap().clone();
    assert_eq!(listening.sessions(&old, &server), None, "sessions that could not be read");
}
