use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::super::harmless;
use crate::model::adapter::{Adapter, Choice, Installation, Reading, Rehearsal, Tried};

#[derive(Serialize)]
struct Document<'a> {
    adapters: Vec<AdapterJson<'a>>,
    installations: Vec<InstallationJson<'a>>,
}

#[derive(Serialize)]
struct AdapterJson<'a> {
    name: &'a str,
    title: &'a str,
    licence: &'a str,
    seen: &'a str,
    is_built_in: bool,
}

#[derive(Serialize)]
struct InstallationJson<'a> {
    adapter: &'a str,
    schema: &'a str,
    prefix: &'a str,
    oid: u32,
    version: Option<&'a str>,
    tables: BTreeMap<&'a str, &'a str>,
    refused: Option<&'a str>,
    parts: Vec<PartJson<'a>>,
    actions: Vec<ActionJson<'a>>,
}

#[derive(Serialize)]
struct ActionJson<'a> {
    action: &'static str,
    query: usize,
    /// Why the server cannot parse or plan its statement.
    refused: Option<&'a str>,
}

#[derive(Serialize)]
struct PartJson<'a> {
    part: &'static str,
    query: Option<usize>,
    tried: Vec<TriedJson<'a>>,
}

#[derive(Serialize)]
struct TriedJson<'a> {
    query: usize,
    cost: Option<f64>,
    size: Option<f64>,
    rows: Option<usize>,
    seconds: Option<f64>,
    refused: Option<&'a str>,
}

pub fn adapters(found: &[Installation], adapters: &[Arc<Adapter>]) -> Result<String, serde_json::Error> {
    let document = Document {
        adapters: adapters.iter().map(|adapter| of_adapter(adapter)).collect(),
        installations: found.iter().map(of_installation).collect(),
    };
    harmless::to_string(&document)
}

fn of_adapter(adapter: &Adapter) -> AdapterJson<'_> {
    AdapterJson {
        name: &adapter.name,
        title: &adapter.title,
        licence: &adapter.licence,
        seen: &adapter.seen,
        is_built_in: adapter.is_built_in,
    }
}

fn of_installation(installation: &Installation) -> InstallationJson<'_> {
    InstallationJson {
        adapter: &installation.adapter.name,
        schema: &installation.schema,
        prefix: &installation.prefix,
        oid: installation.oid,
        version: installation.version.as_deref(),
        tables: installation.tables.iter().map(|(key, table)| (&**key, &**table)).collect(),
        refused: installation.refused.as_deref(),
        parts: installation.choices.iter().map(of_choice).collect(),
        actions: installation.actions.iter().map(of_action).collect(),
    }
}

fn of_action(tried: &Rehearsal) -> ActionJson<'_> {
    ActionJson {
        action: tried.kind.as_str(),
        query: tried.number,
        refused: tried.outcome.as_ref().err().map(|why| &**why),
    }
}

fn once(tried: &Tried) -> Option<&Reading> {
    tried.read.as_ref()?.as_ref().ok()
}

fn why_not(tried: &Tried) -> Option<&str> {
    let read = || tried.read.as_ref()?.as_ref().err();
    tried.outcome.as_ref().err().or_else(read).map(|reason| &**reason)
}

fn of_choice(choice: &Choice) -> PartJson<'_> {
    let each = choice.tried.iter().map(|tried: &Tried| TriedJson {
        query: tried.number,
        cost: tried.outcome.as_ref().ok().copied(),
        size: tried.size,
        rows: once(tried).map(|once| once.rows),
        seconds: once(tried).map(|once| once.seconds),
        refused: why_not(tried),
    });
    PartJson {
        part: choice.part.as_str(),
        query: choice.used().map(|tried| tried.number),
        tried: each.collect(),
    }
}
