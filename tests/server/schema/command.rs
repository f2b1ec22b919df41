//! `locktop schema …` as users run it.

use std::process::{Command, Output};

use locktop::demo::postgres::EmbeddedServer;
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::LATEST;

use super::db::Session;
use super::support::{database, oldest, server_of};

fn text(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap().trim_end().to_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Runs the program on a database: its exit status, standard output and standard error.
pub(crate) fn locktop(server: &EmbeddedServer, info: &ConnInfo, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_locktop"))
        .args(["-h", server.socket_dir().to_str().unwrap(), "-U", info.user(), "-d", info.dbname()])
        .args(arguments)
        .env_remove("LOCKTOP_CONFIG")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn the_commands_report_what_they_did() {
    let version = oldest();
    let server = server_of(version).await;
    let info = database(server).await;
    let run = |arguments: &[&str]| {
        let (status, out, error) = locktop(server, &info, &[&["schema"], arguments].concat());
        (status, out.trim_end().to_owned(), error.trim_end().to_owned())
    };
    let printed = |status: i32, out: &str| (status, out.to_owned(), String::new());
    assert_eq!(
        run(&["status"]),
        printed(1, "There is no schema \"locktop\": run \"locktop schema install\".")
    );
    let (status, out, _) = run(&["install"]);
    let made = format!("Installed version {LATEST} into the new schema \"locktop\": ");
    assert!(status == 0 && out.starts_with(&made), "{out}");
    let latest = format!("The schema \"locktop\" has version {LATEST}, the latest");
    assert_eq!(run(&["install"]), printed(0, &format!("{latest}: nothing to do.")));
    let (status, out, _) = run(&["status"]);
    assert!(status == 0 && out.starts_with(&format!("{latest}; ")), "{out}");
    let session = Session::open(&info).await;
    session.run("DROP FUNCTION next_due_at(text[]); CREATE VIEW \"e\u{1b}[2J\" AS SELECT 1").await;
    let (status, out, _) = run(&["status"]);
    assert_eq!(status, 1);
    assert!(
        out.contains("\n  function next_due_at(text[]): is missing") && !out.contains('\u{1b}'),
        "{out:?}"
    );
    for asks in [&["drop"][..], &["purge", "--keep", "1d"]] {
        let (status, out, error) = run(asks);
        let reason = "asks before it acts, and there is no terminal to ask on: use --yes";
        assert_eq!((status, out.as_str(), error), (2, "", format!("locktop: schema {} {reason}", asks[0])));
    }
    let (status, _, error) = run(&["drop", "--yes"]);
    assert!(
        status == 1
            && error.starts_with(
                "locktop: the schema \"locktop\" has objects that were not created by locktop: view e"
            ),
        "{error}"
    );
    session.run("DROP VIEW \"e\u{1b}[2J\"").await;
    let (status, out, _) = run(&["drop", "--yes"]);
    assert!(status == 0 && out.contains("0 rows of scheduled_tasks"), "{out}");
    assert_eq!(run(&["drop", "--yes"]), printed(0, "There is no schema \"locktop\": nothing to do."));
    let (status, _, error) = run(&["purge", "--yes", "--keep", "1d"]);
    assert!(status == 1 && error.contains("there is no schema \"locktop\""), "{error}");
    let (status, _, error) = run(&["install", "--schema", "public"]);
    assert_eq!(
        (status, error.as_str()),
        (
            1,
            "locktop: the schema \"public\" was not created by locktop and is skipped: name another with --schema"
        )
    );
    assert_eq!(
        run(&["status", "--schema", "public"]),
        printed(1, "The schema \"public\" was not created by locktop.")
    );
    for wrong in [
        &["install", "--schema", "pg_x"][..],
        &["install", "--schema", ""],
        &["print", "x"],
        &["what"],
        &[],
        &["purge", "--keep", "soon"],
    ] {
        assert_eq!(run(wrong).0, 2, "{wrong:?}");
    }
    let (status, out, _) = run(&["print", "--schema", "Jobs"]);
    assert!(status == 0 && out.contains("CREATE SCHEMA \"Jobs\";") && out.ends_with("COMMIT;"), "{out}");
}

/// A role without a privilege gets an error with the GRANT it needs, and that GRANT is enough.
#[tokio::test]
async fn the_grants_that_a_role_lacks_are_reported() {
    let server = server_of(oldest()).await;
    let info = database(server).await;
    let admin = Session::open_plain(&info).await;
    let (role, name) = (format!("on call {}", info.dbname()), info.dbname().to_owned());
    admin.run(&format!("CREATE ROLE \"{role}\" LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC")).await;
    let run = |arguments: &[&str]| {
        let socket = server.socket_dir().to_str().unwrap().to_owned();
        let output = Command::new(env!("CARGO_BIN_EXE_locktop"))
            .args(["-h", &socket, "-U", &role, "-d", &name, "schema"])
            .args(arguments)
            .env_remove("LOCKTOP_CONFIG")
            .output()
            .unwrap();
        text(&output)
    };
    let lacks = |arguments: &[&str], needs: &str| {
        let (status, out, error) = run(arguments);
        assert!(status == 1 && out.is_empty(), "{arguments:?}: {out}");
        assert!(error.starts_with("locktop: ") && error.contains("permission denied"), "{error}");
        let (_, named) = error.split_once("; try: ").unwrap();
        assert_eq!(named, needs, "{arguments:?}");
    };
    let grant = format!("GRANT CREATE ON DATABASE \"{name}\" TO \"{role}\"");
    lacks(&["install"], &grant);
    admin.run(&grant).await;
    for done in [&["install"][..], &["drop", "--yes"]] {
        let left = run(done);
        assert_eq!(left.0, 0, "{left:?}");
    }
    let mut connection = super::support::open(&info).await;
    locktop::schema::install_up_to(&mut connection.client, &locktop::schema::SchemaName::default(), 1)
        .await
        .unwrap();
    let status_grants = format!(
        "GRANT USAGE ON SCHEMA \"locktop\" TO \"{role}\"; \
         GRANT SELECT ON \"locktop\".locktop_schema, \"locktop\".locktop_objects TO \"{role}\""
    );
    lacks(&["status"], &status_grants);
    let owner =
        format!("it belongs to \"{0}\": connect as that role, or GRANT \"{0}\" TO \"{role}\"", info.user());
    lacks(&["install"], &owner);
    admin.run(&status_grants).await;
    let (status, out, _) = run(&["status"]);
    assert!(status == 1 && out.contains("has version 1, older"), "{out}");
}
