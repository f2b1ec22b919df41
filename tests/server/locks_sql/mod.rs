//! The lock systems other than the tasks, in SQL on real servers of every version: the faults of the printed
//! recipes, and the guarantees of locktop's own when sessions race and end.

mod api;
mod article_ids;
mod article_queue;
mod article_rate;
mod article_transfer;
mod contention;
mod crowd;
#[path = "../schema/db.rs"]
mod db;
mod examples;
mod ids;
mod planted;
mod printed;
mod queue;
mod queue_crowd;
mod queue_rest;
mod rate;
#[path = "../../support/suite.rs"]
mod support;
mod transfer;
