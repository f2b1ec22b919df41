//! The schema for tasks on real servers of every version: how it is installed and dropped, and the guarantees
//! of its functions when sessions race.

mod acquire;
mod article;
mod command;
mod cron;
mod db;
mod install;
mod moved;
mod notify;
#[path = "../../support/manual.rs"]
mod pages;
mod purge;
mod race;
mod recovery;
mod recovery_races;
mod release;
mod signed;
#[path = "../../support/suite.rs"]
mod support;
mod terminate;
