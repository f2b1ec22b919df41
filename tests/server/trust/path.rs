//! The search path (f) of the database or the role: the role that sets it decides what a name without its schema means.

use locktop::feed::learn::{self, Learner, NameQuery};
use locktop::model::lock_name::LockNames;

use super::commands::every_command;
use super::ground::{Ground, WATCHERS, is_whole, one_version, watchers};
use super::pooler::Pooler;
use super::snapshots::{feed, limits, poll_once, snapshot};
use super::stored::{trap, trapped};
use super::support::{TIMEOUT, versions};

const PATH: &str = include_str!("path.sql");

/// A database of mallory's, in which everything means something else, and a check is evaluated by the planner, too.
async fn ground(version: u32) -> Ground {
    let ground = Ground::like(version, "path", async |ground| {
        trap(ground).await;
        ground.run("mallory", PATH).await;
    })
    .await;
    let name = ground.name();
    ground.run("postgres", &format!("ALTER DATABASE {name} OWNER TO mallory")).await;
    let set = format!(
        "ALTER DATABASE {name} SET search_path = evil, pg_catalog, public; ALTER DATABASE {name} SET constraint_exclusion = on;
         ALTER DATABASE {name} SET row_security = on; ALTER DATABASE {name} SET check_function_bodies = off"
    );
    ground.run("mallory", &set).await;
    ground
}

#[tokio::test]
async fn the_search_path_of_the_database_is_ignored() {
    for version in versions() {
        let ground = ground(version).await;
        for role in watchers(version) {
            poll_once(&ground.info(role), &limits(&[])).await;
            ground.is_clean(role);
            if is_whole(version) {
                feed(&ground.info(role), &limits(&[]), false).await;
                feed(&ground.info(role), &limits(&[]), true).await;
                snapshot(&ground, role, &[]).await;
                ground.is_clean(&format!("the feed and the snapshot of {role}"));
            }
        }
    }
}

#[tokio::test]
async fn no_command_obeys_the_path_of_the_database() {
    for version in one_version() {
        for role in WATCHERS {
            let ground = ground(version).await;
            every_command(&ground, role).await;
        }
    }
}

/// An administrator has set it for the role.
#[tokio::test]
async fn the_search_path_of_the_role_is_ignored() {
    for version in one_version() {
        let ground = ground(version).await;
        ground.run("postgres", &format!("ALTER DATABASE {} RESET search_path", ground.name())).await;
        for role in WATCHERS {
            let name = ground.name();
            let set =
                format!("ALTER ROLE {role} IN DATABASE {name} SET search_path = evil, pg_catalog, public");
            ground.run("postgres", &set).await;
            poll_once(&ground.info(role), &limits(&[])).await;
            snapshot(&ground, role, &[]).await;
            ground.is_clean(role);
        }
    }
}

/// Mallory's database makes every session run as mallory: mallory's objects would be the session's own then, and their code can switch back.
#[tokio::test]
async fn the_role_that_the_database_sets_is_not_the_one_that_is_trusted() {
    for version in one_version() {
        for setting in ["role", "session_authorization"] {
            let ground = trapped(version).await;
            let name = ground.name();
            ground
                .run("postgres", &format!("ALTER DATABASE {name} OWNER TO mallory; GRANT mallory TO ops"))
                .await;
            let set = format!("ALTER DATABASE {name} SET {setting} = mallory");
            if ground.client("mallory").await.batch_execute(&set).await.is_err() {
                // The server refuses the setting.
                continue;
            }
            for role in WATCHERS {
                poll_once(&ground.info(role), &limits(&[])).await;
                ground.is_clean(&format!("{role}, {setting}"));
                snapshot(&ground, role, &[]).await;
                ground.is_clean(&format!("the snapshot of {role}, {setting}"));
            }
        }
    }
}

/// A query of the config calls only the server's own functions and operators.
#[tokio::test]
async fn a_query_of_the_config_calls_nothing_that_only_has_a_name_in_common() {
    for version in one_version() {
        let ground = ground(version).await;
        let query = NameQuery {
            sql: "SELECT hashtext(lower('A')), 'x' || 'y' WHERE 'a' = lower('A') AND 1 + 1 > 1".to_owned(),
            database: None,
            place: "config.toml:1:1".to_owned(),
        };
        for role in WATCHERS {
            let info = ground.info(role);
            let asking = Learner::new(info, limits(&[]), LockNames::default(), vec![query.clone()]);
            let learned = learn::once(asking, TIMEOUT).await;
            ground.is_clean(role);
            assert!(learned.notes.is_empty(), "{:?}", learned.notes);
        }
    }
}

/// A pooler may drop the options of the startup packet.
#[tokio::test]
async fn the_search_path_is_pinned_behind_a_pooler_that_drops_startup_options() {
    for version in one_version() {
        let ground = ground(version).await;
        let info = ground.info("postgres");
        // A pooler in transaction mode answers no poll.
        let pooler = Pooler::start_with(
            ground.server,
            "session",
            "ignore_startup_parameters = options,search_path,role,row_security,extra_float_digits",
        );
        let info = locktop::pg::conninfo::ConnInfo::parse(&pooler.target(&info)).unwrap();
        poll_once(&info, &limits(&[])).await;
        ground.is_clean("behind a pooler");
    }
}
