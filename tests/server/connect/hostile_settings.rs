//! Settings that the owner of a database may have set for all its sessions: they do not change the answers of
//! the commands.

use locktop::pg::connect::{connect, pin};
use locktop::schema::{self, SchemaName};

use crate::binary::{locktop, run_beside};
use crate::pooler::Pooler;
use crate::support::{database, open, server};

/// Settings, and the values in force once they are pinned; `None` if the database's values stay in force.
const HOSTILE: [(&str, &str, Option<&str>); 17] = [
    ("search_path", "public", Some("pg_catalog, pg_temp")),
    ("standard_conforming_strings", "off", Some("on")),
    ("statement_timeout", "400ms", Some("10s")),
    ("lock_timeout", "1ms", Some("3s")),
    ("idle_in_transaction_session_timeout", "50ms", Some("1min")),
    ("idle_session_timeout", "1500ms", Some("0")),
    ("default_transaction_isolation", "serializable", Some("read committed")),
    ("default_transaction_deferrable", "on", Some("off")),
    ("client_min_messages", "debug5", Some("warning")),
    ("quote_all_identifiers", "on", Some("off")),
    ("DateStyle", "German, DMY", Some("ISO, MDY")),
    ("IntervalStyle", "iso_8601", Some("postgres")),
    ("bytea_output", "escape", Some("hex")),
    ("extra_float_digits", "-15", Some("1")),
    ("xmloption", "document", Some("content")),
    ("transform_null_equals", "on", Some("off")),
    ("TimeZone", "America/St_Johns", None),
];

#[tokio::test]
async fn settings_of_the_database_change_no_answer() {
    let mut answers = Vec::new();
    for (is_hostile, pool) in
        [(false, None), (true, None), (true, Some("session")), (true, Some("transaction"))]
    {
        let info = database(server().await).await;
        let admin = open(&info).await.client;
        admin
            .batch_execute("CREATE TABLE public.\"T\" (id int); INSERT INTO public.\"T\" VALUES (1)")
            .await
            .unwrap();
        let pooler = match pool {
            Some(mode) => Some(Pooler::start(server().await, mode)),
            None => None,
        };
        let (socket, port) = match &pooler {
            Some(pooler) => (pooler.directory(), "6432"),
            None => (server().await.socket_dir(), "5432"),
        };
        let command = |line: &[&str]| {
            let mut command = locktop(&[&["-w"], line].concat());
            command
                .env("PGHOST", socket)
                .env("PGPORT", port)
                .env("PGSSLMODE", "disable")
                .env("PGUSER", "postgres")
                .env("PGDATABASE", info.dbname());
            command
        };
        let mut client = open(&info).await.client;
        schema::install(&mut client, &SchemaName::default()).await.unwrap();
        if is_hostile {
            let mut all = HOSTILE.map(|(name, value, _)| (name, value)).to_vec();
            if server().await.version() >= 17 {
                all.push(("transaction_timeout", "300ms"));
            }
            for (name, value) in all {
                let sql = format!("ALTER DATABASE \"{}\" SET {name} = '{value}'", info.dbname());
                admin.batch_execute(&sql).await.unwrap();
            }
            let connection = connect(&info).await.unwrap();
            pin(&connection.client).await.unwrap();
            for (name, value, pinned) in HOSTILE {
                let row = connection
                    .client
                    .query_one("SELECT pg_catalog.current_setting($1)", &[&name])
                    .await
                    .unwrap();
                assert_eq!(row.get::<_, &str>(0).replace('"', ""), pinned.unwrap_or(value), "{name}");
            }
        }
        let mut of = Vec::new();
        for line in [
            &["schema", "status"][..],
            &["adapters", "list"],
            &["lock-of", "ALTER TABLE \"T\" ADD COLUMN a int"],
            &["recover", "--yes"],
            &["check", "--not", "connect,connections"],
        ] {
            let left = run_beside(command(line)).await;
            of.push((
                line.to_vec(),
                left.status,
                left.out.replace(info.dbname(), "DB"),
                left.err.replace(info.dbname(), "DB"),
            ));
        }
        answers.push(of);
    }
    let (plain, hostile) = answers.split_first().unwrap();
    for hostile in hostile {
        for (plain, hostile) in plain.iter().zip(hostile) {
            // A command that needs a session of its own reports that behind a pooler in transaction mode.
            if !hostile.3.contains("a pooler in transaction mode is between locktop and the server") {
                assert_eq!(plain, hostile);
            }
        }
    }
}
