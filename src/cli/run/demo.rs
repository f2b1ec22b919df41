//! `locktop demo`: a server of its own, sessions that fight over locks in it, and the dashboard over them.

use super::super::args::{DemoArgs, ScenarioName};
use super::super::settings::Settings;
use super::{Failure, dashboard};
use crate::demo::scenario::Scenario;
use crate::demo::{self, DemoOptions};
use crate::runtime::panics;

pub(super) async fn run(settings: Settings, arguments: &DemoArgs) -> Result<u8, Failure> {
    dashboard::needs_terminal()?;
    panics::end_the_screens();
    let failed = |error: demo::DemoError| Failure::Other(error.to_string());
    let mut options = DemoOptions { url: settings.conninfo.clone(), ..DemoOptions::default() };
    options.server.bin.clone_from(&arguments.pg_bin);
    if !arguments.scenario.is_empty() {
        options.scenarios = arguments.scenario.iter().map(|name| scenario(*name)).collect();
    }
    let demo = demo::run(options).await.map_err(failed)?;
    let info = demo.conninfo().clone().with_application_name("locktop");
    let target = if demo.server().is_some() { "demo".to_owned() } else { info.describe() };
    let note = demo.server().is_none().then(|| "demo".to_owned());
    let shown = Box::pin(dashboard::show(&settings, info, target, note)).await;
    let stopped = demo.stop().await.map_err(failed);
    let status = shown?;
    stopped?;
    Ok(status)
}

fn scenario(name: ScenarioName) -> Scenario {
    match name {
        ScenarioName::Chain => Scenario::Chain,
        ScenarioName::Convoy => Scenario::Convoy,
        ScenarioName::Deadlock => Scenario::Deadlock,
    }
}
