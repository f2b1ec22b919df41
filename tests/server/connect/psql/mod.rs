//! Connection strings, flags, variables and files: locktop interprets them as `psql` does, on the same
//! server.
//!
//! Each case is given to both. If both connect, they must have connected to the same server, as the same
//! role, to the same database, with the same settings. If psql is refused, locktop must be refused too, and
//! without connecting if psql reports the error without connecting.

mod cases;
mod verdict;

use std::path::Path;

use super::server::Server;
use cases::{CASES, Case, Expected};
pub(super) use verdict::psql;
use verdict::{Verdict, World};

/// The objects that the cases need in addition to those of [`Server`].
const MORE: [&str; 6] = [
    r#"create role "o'neil" login"#,
    r#"create role "jürgen" login password 'pässword'"#,
    r#"create database "a b""#,
    r#"create database "it's""#,
    r#"create database "müll""#,
    "alter role crowd set geqo_threshold = 7",
];

async fn world() -> (Server, Server, World) {
    let server = Server::start(&["ssl=on"]).await;
    let read_only = Server::start(&["default_transaction_read_only=on"]).await;
    let admin = server.admin().await;
    for statement in MORE {
        admin.client.batch_execute(statement).await.unwrap();
    }
    let own = whoami::username().unwrap();
    for kind in ["role", "database"] {
        let more = if kind == "role" { " login" } else { "" };
        admin.client.batch_execute(&format!("create {kind} \"{own}\"{more}")).await.unwrap();
    }
    let world = World::new(&server, &read_only);
    (server, read_only, world)
}

#[tokio::test]
async fn the_table_agrees_with_psql() {
    let (_server, _read_only, world) = world().await;
    let version = verdict::psql_version();
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for case in CASES {
        let home = world.home(case);
        let locktop = world.locktop(case, home.path()).await;
        let psql = world.psql(case, home.path());
        refused += usize::from(!matches!(psql, Verdict::In(_)));
        if let Err(why) = agree(case, version, &locktop, &psql) {
            wrong.push(format!("{case:?}\n    {why}\n    locktop: {locktop}\n    psql {version}: {psql}"));
        }
    }
    assert!(CASES.len() >= 150, "{} cases", CASES.len());
    assert!(refused * 2 >= CASES.len(), "{refused} of {} cases are errors", CASES.len());
    assert!(wrong.is_empty(), "{} of {} cases differ:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

fn agree(case: &Case, version: u32, locktop: &Verdict, psql: &Verdict) -> Result<(), String> {
    match case.expected {
        // The result of a psql that does not support it yet has no meaning.
        Expected::Since(since, works) if version < since => {
            let same = works == matches!(locktop, Verdict::In(_));
            return same.then_some(()).ok_or_else(|| format!("documented from {since} on: works is {works}"));
        }
        Expected::AsPsql | Expected::Since(_, _) => {}
        Expected::Stricter(why) => {
            let as_expected = matches!((locktop, psql), (Verdict::Refused(_), Verdict::In(_)));
            return as_expected.then_some(()).ok_or_else(|| format!("not as expected: {why}"));
        }
        Expected::Laxer(why) => {
            let as_expected =
                matches!((locktop, psql), (Verdict::In(_), Verdict::Refused(_) | Verdict::Failed(_)));
            return as_expected.then_some(()).ok_or_else(|| format!("not as expected: {why}"));
        }
    }
    match (locktop, psql) {
        (Verdict::In(a), Verdict::In(b)) if a == b => Ok(()),
        (Verdict::In(_), Verdict::In(_)) => Err("two different sessions".to_owned()),
        // An error in a setting may be reported before connecting, but not later than psql reports it.
        (Verdict::Refused(_), Verdict::Refused(_) | Verdict::Failed(_))
        | (Verdict::Failed(_), Verdict::Failed(_)) => Ok(()),
        (Verdict::Failed(_), Verdict::Refused(_)) => Err("psql reports it before it connects".to_owned()),
        _ => Err("only one of the two connects".to_owned()),
    }
}

/// Writes a file with a mode.
fn write(path: &Path, text: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
