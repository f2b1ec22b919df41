//! A server with an incident, and the program connected to it.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::demo::scenario::{AdvisoryContention, Running, Scenario, ScratchSchema, Timing};
use locktop::pg::conninfo::ConnInfo;

use super::screen::{Screen, Size};
use super::{shell, support};

/// A server for one test, with waiting sessions.
pub(crate) struct Incident {
    pub(crate) server: EmbeddedServer,
    pub(crate) scratch: ScratchSchema,
    pub(crate) running: Vec<Running>,
}

impl Incident {
    /// A server without an incident.
    pub(crate) async fn none() -> Self {
        let server = EmbeddedServer::start(Options::default()).await.unwrap();
        let scratch = ScratchSchema::open(&support::conninfo(&server)).await.unwrap();
        Self { server, scratch, running: Vec::new() }
    }

    /// A server on which these scenarios are played.
    pub(crate) async fn of(scenarios: &[Scenario]) -> Self {
        let mut incident = Self::none().await;
        for scenario in scenarios {
            incident.running.push(scenario.start(&incident.scratch, Timing::TEST).await.unwrap());
        }
        incident
    }

    /// A server where one session holds an advisory lock that others wait for.
    pub(crate) async fn crowd(waiters: usize) -> Self {
        let mut incident = Self::none().await;
        let crowd = AdvisoryContention { waiters, ..AdvisoryContention::default() };
        incident.running.push(crowd.start(&incident.scratch).await.unwrap());
        incident
    }

    /// The process id of the first root.
    pub(crate) fn root(&self) -> i32 {
        self.running[0].facts.roots[0].pid()
    }

    pub(crate) fn info(&self) -> ConnInfo {
        support::conninfo(&self.server)
    }

    /// The program on this server.
    pub(crate) fn screen(&self, size: Size, env: &[(&str, &str)], arguments: &[&str]) -> Screen {
        let target = self.server.conninfo();
        let mut all = vec![target.as_str(), "--refresh", "0.2s"];
        all.extend(arguments);
        Screen::spawn(size, env, &all)
    }

    /// The program as a job of a shell with job control, once it shows the first root.
    pub(crate) fn looked_at_from_shell(&self, size: Size) -> Screen {
        let screen = shell::with_job_control(size, &[&self.server.conninfo(), "--refresh", "0.2s"]);
        screen.shows(&self.root().to_string());
        screen
    }

    /// The same once it shows the first root.
    pub(crate) fn looked_at(&self, size: Size) -> Screen {
        let screen = self.screen(size, &[], &[]);
        screen.shows(&self.root().to_string());
        screen
    }
}
