//! Connection strings, flags, variables and files: what locktop makes of them is what `psql` does, on the same server.
//!
//! Each case is given to both. Where both get in, they must be at the same place, as the same role, in the same database, with the same
//! settings; where psql is refused, so must we be, and before any connection where psql says so before any.

mod cases;
mod verdict;

use std::path::Path;

use super::server::Server;
use cases::{CASES, Case, Expected};
pub(super) use verdict::psql;
use verdict::{Verdict, World};

/// What the cases need beside what [`Server`] has.
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
        let ours = world.ours(case, home.path()).await;
        let theirs = world.psql(case, home.path());
        refused += usize::from(!matches!(theirs, Verdict::In(_)));
        if let Err(why) = agree(case, version, &ours, &theirs) {
            wrong.push(format!("{case:?}\n    {why}\n    locktop: {ours}\n    psql {version}: {theirs}"));
        }
    }
    assert!(CASES.len() >= 150, "{} cases", CASES.len());
    assert!(refused * 2 >= CASES.len(), "{refused} of {} cases are errors", CASES.len());
    assert!(wrong.is_empty(), "{} of {} cases differ:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

fn agree(case: &Case, version: u32, ours: &Verdict, theirs: &Verdict) -> Result<(), String> {
    match case.expected {
        // A psql that does not know it yet says nothing of what it means.
        Expected::Since(since, works) if version < since => {
            let same = works == matches!(ours, Verdict::In(_));
            return same.then_some(()).ok_or_else(|| format!("documented from {since} on: works is {works}"));
        }
        Expected::AsPsql | Expected::Since(_, _) => {}
        Expected::Stricter(why) => {
            let as_said = matches!((ours, theirs), (Verdict::Refused(_), Verdict::In(_)));
            return as_said.then_some(()).ok_or_else(|| format!("not as said: {why}"));
        }
        Expected::Laxer(why) => {
            let as_said =
                matches!((ours, theirs), (Verdict::In(_), Verdict::Refused(_) | Verdict::Failed(_)));
            return as_said.then_some(()).ok_or_else(|| format!("not as said: {why}"));
        }
    }
    match (ours, theirs) {
        (Verdict::In(a), Verdict::In(b)) if a == b => Ok(()),
        (Verdict::In(_), Verdict::In(_)) => Err("not at the same place in the same way".to_owned()),
        // What is wrong with a setting may well be said before anybody is asked, but not later than psql says it.
        (Verdict::Refused(_), Verdict::Refused(_) | Verdict::Failed(_))
        | (Verdict::Failed(_), Verdict::Failed(_)) => Ok(()),
        (Verdict::Failed(_), Verdict::Refused(_)) => Err("psql says it before it connects".to_owned()),
        _ => Err("one gets in and the other does not".to_owned()),
    }
}

/// Writes a file with a mode.
fn write(path: &Path, text: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
