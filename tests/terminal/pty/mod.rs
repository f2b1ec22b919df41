//! The real program in a pseudo terminal, connected to a real server, seen through a terminal emulator.

#[path = "../../support/suite.rs"]
mod support;

mod act;
mod behind_pooler;
mod colours;
mod dashboard;
mod demo;
mod escapes;
mod events;
mod failover;
mod habits;
mod harmless;
mod hostile;
mod in_flight;
mod incident;
mod known;
mod loss;
mod mouse;
mod network;
mod outage;
mod own_log;
mod panic;
mod past;
mod picture;
mod pool;
mod privileges;
mod process;
mod published;
#[cfg(feature = "redis")]
mod redis;
mod rights;
mod screen;
mod secrets;
mod shell;
mod signals;
mod size;
mod skew;
mod start;
mod suspend;
mod tour;
mod verbs;

use crate::{binary, pooler, proxy};
