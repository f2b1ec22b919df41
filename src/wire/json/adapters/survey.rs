use std::sync::Arc;

use super::super::object::{self, Json, object};
use crate::model::adapter::{Adapter, Choice, Installation, Reading, Rehearsal, Tried};

pub fn adapters(found: &[Installation], adapters: &[Arc<Adapter>]) -> Result<String, serde_json::Error> {
    object::text(&object!(
        adapters[] = adapters.iter().map(|adapter| object!(adapter; name, title, licence, seen, is_built_in)),
        installations[] = found.iter().map(installation),
    ))
}

fn installation(installation: &Installation) -> impl Json {
    object!(
        installation;
        adapter = installation.adapter.name,
        schema,
        prefix,
        oid,
        version,
        tables,
        refused,
        parts[] = installation.choices.iter().map(part),
        actions[] = installation.actions.iter().map(action),
    )
}

/// `refused` is why the server cannot parse or plan its statement.
fn action(tried: &Rehearsal) -> impl Json {
    object!(action = tried.kind, query = tried.number, refused = tried.outcome.as_ref().err())
}

fn once(tried: &Tried) -> Option<&Reading> {
    tried.read.as_ref()?.as_ref().ok()
}

fn why_not(tried: &Tried) -> Option<&str> {
    let read = || tried.read.as_ref()?.as_ref().err();
    tried.outcome.as_ref().err().or_else(read).map(|reason| &**reason)
}

fn part(choice: &Choice) -> impl Json {
    object!(
        choice;
        part,
        query = choice.used().map(|tried| tried.number),
        tried[] = choice.tried.iter().map(|tried: &Tried| object!(
            tried;
            query = tried.number,
            cost = tried.outcome.as_ref().ok(),
            size,
            rows = once(tried).map(|once| once.rows),
            seconds = once(tried).map(|once| once.seconds),
            refused = why_not(tried),
        )),
    )
}
