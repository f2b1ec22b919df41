//! The search path (f) is the database's, or the role's: whoever may set it decides what a name without its schema means.

use crate::commands::every_command;
use crate::ground::{Ground, WATCHERS, is_whole, one_version, watchers};
use crate::looks::{feed, limits, look, snapshot};
use crate::pooler::Pooler;
use crate::support::versions;

const PATH: &str = include_str!("path.sql");

/// A database of mallory's, in which everything means something else, and a check is evaluated by the planner, too.
async fn ground(version: u32) -> Ground {
    let ground = crate::stored::trapped(version).await;
    ground.run("mallory", PATH).await;
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
async fn the_path_of_the_database_is_nobodys_order() {
    for version in versions() {
        let ground = ground(version).await;
        for role in watchers(version) {
            look(&ground.info(role), &limits(&[])).await;
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

/// An administrator has set it, as a habit of theirs.
#[tokio::test]
async fn the_path_of_the_role_is_nobodys_order() {
    for version in one_version() {
        let ground = ground(version).await;
        ground.run("postgres", &format!("ALTER DATABASE {} RESET search_path", ground.name())).await;
        for role in WATCHERS {
            let name = ground.name();
            let set =
                format!("ALTER ROLE {role} IN DATABASE {name} SET search_path = evil, pg_catalog, public");
            ground.run("postgres", &set).await;
            look(&ground.info(role), &limits(&[])).await;
            snapshot(&ground, role, &[]).await;
            ground.is_clean(role);
        }
    }
}

/// A pool may keep what is asked for at the start to itself.
#[tokio::test]
async fn the_path_is_pinned_behind_a_pool_that_ignores_what_is_asked_for() {
    for version in one_version() {
        let ground = ground(version).await;
        let info = ground.info("postgres");
        for mode in ["session", "transaction"] {
            let pooler = Pooler::start_with(
                ground.server,
                mode,
                "ignore_startup_parameters = options,search_path,extra_float_digits",
            );
            let info = locktop::pg::conninfo::ConnInfo::parse(&pooler.target(&info)).unwrap();
            look(&info, &limits(&[])).await;
            ground.is_clean(mode);
        }
    }
}
