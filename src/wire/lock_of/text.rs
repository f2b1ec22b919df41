//! For people.

use super::{Now, Report, advice, said, work};
use crate::model::backend::Backend;
use crate::model::lock::LockMode;
use crate::model::lock_of::{CatalogRelation, Elsewhere, How, Meeting, Obstacle, known};
use crate::model::lock_words::beside;
use crate::model::output::{Channel, shown};
use crate::model::statement::{Relation, Statement, Take};
use crate::model::view::View;
use crate::model::{Timestamp, wait_graph::Party};
use crate::text::{count, duration, lines, literal, one_line};

/// Those in the way that are named; of more the number is said.
const NAMED: usize = 10;

/// A label, and what it says, in lines of so many columns; none for lines of any length.
struct Page {
    lines: Vec<String>,
    width: Option<usize>,
}

impl Page {
    fn put(&mut self, label: &str, said: &str) {
        const INDENT: usize = 15;
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(INDENT).max(30));
        for (at, line) in lines(&one_line(said), room).into_iter().enumerate() {
            self.lines
                .push(format!("  {:<12} {line}", if at == 0 { label } else { "" }).trim_end().to_owned());
        }
    }
}

/// The report for people, with its last end of line.
pub fn text(report: &Report, width: Option<usize>) -> String {
    let mut page = Page { lines: Vec::new(), width };
    if report.statements.is_empty() {
        page.lines.push("There is no statement.".to_owned());
    }
    for (number, read) in report.statements.iter().enumerate() {
        if number > 0 {
            page.lines.push(String::new());
        }
        match read {
            Err(unknown) => page.lines.push(format!("{}.", one_line(&unknown.to_string()))),
            Ok(statement) => {
                page.lines.push(statement.name.clone());
                form(&mut page, statement);
                if let Some(since) = report.lacks(statement) {
                    page.put(
                        "but",
                        &format!("this server does not have it: PostgreSQL {since} and later do"),
                    );
                }
                now(&mut page, report, number, statement);
            }
        }
    }
    page.lines.join("\n")
}

fn form(page: &mut Page, statement: &Statement) {
    let alone = statement.forms.iter().any(|form| form.alone);
    for (at, take) in statement.takes.iter().enumerate() {
        let table = take.on_table_of_index.map(|mode| format!(", and {} on its table", mode.short()));
        let label = if at == 0 { "takes" } else { "" };
        page.put(label, &format!("{} on {}{}", take.mode.short(), take.relation, table.unwrap_or_default()));
    }
    if statement.takes.is_empty() {
        page.put("takes", "no lock on a table that it names");
    } else {
        page.put("until", if alone { "it has ended" } else { "its transaction ends" });
        page.put("beside that", &beside(strongest(statement)));
        page.put("and it", work(statement).words());
    }
    if let Some(mode) = statement.waits_for() {
        let of = if mode == LockMode::Share { "write" } else { "use" };
        page.put(
            "waits for",
            &format!("the end of all transactions that {of} the table, though they go on beside it"),
        );
    }
    if alone {
        page.put("where", "outside of a transaction block alone");
    }
    if let Some(since) = Some(statement.since()).filter(|since| *since > 14) {
        page.put("from", &format!("PostgreSQL {since}"));
    }
    for note in said(statement, |form| form.note) {
        page.put("note", note);
    }
    for one in advice(statement) {
        page.put("advice", one);
    }
}

/// Of all that it takes; of an index what it takes on its table.
fn strongest(statement: &Statement) -> LockMode {
    let modes = statement.takes.iter().filter(|take| take.is_subject);
    let modes = modes.map(|take| take.on_table_of_index.unwrap_or(take.mode));
    let all = || statement.takes.iter().map(|take| take.mode).max();
    modes.max().or_else(all).unwrap_or(LockMode::AccessShare)
}

fn now(page: &mut Page, report: &Report, number: usize, statement: &Statement) {
    let Some(now) = &report.now else { return };
    if statement.takes.is_empty() {
        return;
    }
    for (at, take) in statement.takes.iter().enumerate() {
        let label = if at == 0 { "on" } else { "" };
        let Some(place) = now.place(&take.relation) else {
            page.put(
                label,
                &format!("{}: there is no {}{}", now.target, take.relation, elsewhere(now, &take.relation)),
            );
            continue;
        };
        page.put(label, &format!("{}: {}.{} {}", now.target, place.schema, take.relation.name, size(place)));
        let met = report.meetings().find(|(of, lock, _)| (*of, *lock) == (number, at));
        if let Some((_, _, met)) = met {
            meets(page, &now.view, &met);
            behind(page, &met, take);
        }
    }
    let waits = report.meetings().any(|(of, _, met)| of == number && !met.in_the_way.is_empty());
    let rows = report.meetings().any(|(of, _, met)| of == number && met.row_lockers > 0);
    let is_there = statement.takes.iter().all(|take| now.place(&take.relation).is_some());
    page.put(
        "now",
        match (waits, is_there) {
            (true, _) => "it would wait",
            (false, true) if rows => "nobody is in its way with a lock of the table; one of a row may be",
            (false, true) => "nobody is in its way",
            (false, false) => "it would fail",
        },
    );
}

/// ` on the search path, but other.invoices and shop.invoices`, where there are such.
fn elsewhere(now: &Now, relation: &Relation) -> String {
    let Some(Err(Elsewhere { schemas })) = now.found(relation) else { return String::new() };
    if schemas.is_empty() {
        return String::new();
    }
    let (first, more) = schemas.split_at(schemas.len().min(NAMED));
    let mut names: Vec<String> = first.iter().map(|schema| format!("{schema}.{}", relation.name)).collect();
    names.extend((!more.is_empty()).then(|| format!("{} more", more.len())));
    format!(" on the search path, but {}", names.join(", "))
}

/// `is a table, about 1,200,000 rows, 310 MB`
fn size(place: &CatalogRelation) -> String {
    let kind = match place.kind {
        'p' => "a partitioned table",
        'i' | 'I' => "an index",
        'v' => "a view",
        'm' => "a materialized view",
        'S' => "a sequence",
        'f' => "a foreign table",
        't' => "a TOAST table",
        _ => "a table",
    };
    let is_stored = matches!(place.kind, 'r' | 'm' | 'i' | 't');
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no less than 0, and an estimate"
    )]
    let rows = place.rows.filter(|_| is_stored).map(|rows| format!(", about {} rows", count(rows as u64)));
    let bytes = (is_stored && place.bytes > 0).then(|| format!(", {}", bytes(place.bytes)));
    let below = match place.below.len() {
        0 => String::new(),
        1 => ", with one table below it, which is locked, too".to_owned(),
        below => format!(", with {} tables below it, which are locked, too", count(below as u64)),
    };
    format!("is {kind}{}{}{below}", rows.unwrap_or_default(), bytes.unwrap_or_default())
}

#[expect(clippy::cast_precision_loss, reason = "it is for people")]
fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)];
    let unit = UNITS.iter().find(|(_, unit)| bytes >= 10 * unit).or(UNITS.last());
    let (name, unit) = unit.copied().unwrap_or(("kB", 1 << 10));
    format!("{:.0} {name}", bytes as f64 / unit as f64)
}

fn meets(page: &mut Page, view: &View, met: &Meeting) {
    // Who waits already goes before it, one after the other: the first of them says what it would stand behind.
    let (ahead, there): (Vec<&Obstacle>, Vec<&Obstacle>) =
        met.in_the_way.iter().partition(|one| one.how == How::Ahead);
    for (all, most) in [(there, NAMED), (ahead, 1)] {
        for one in all.iter().take(most) {
            page.put("in the way", &obstacle(view, one));
        }
        let more = all.len().saturating_sub(most);
        if more > 0 {
            let wait = if most == 1 { " that wait and come before it" } else { "" };
            page.put("", &format!("and {} more{wait}", count(more as u64)));
        }
    }
    let used = match met.using {
        0 => "nobody has it locked".to_owned(),
        1 => "one session has it locked".to_owned(),
        using => format!("{} sessions have it locked", count(using as u64)),
    };
    let waiting = match met.waiting {
        0 => String::new(),
        1 => ", one waits for it".to_owned(),
        waiting => format!(", {} wait for it", count(waiting as u64)),
    };
    let oldest = met.oldest.map(|(party, since)| {
        format!(
            "; the oldest transaction among them, of {}, began {} ago",
            who(view, party),
            age(view, since)
        )
    });
    page.put("in use", &format!("{used}{waiting}{}", oldest.unwrap_or_default()));
    let have = match met.row_lockers {
        0 => return,
        1 => "one session locks or changes".to_owned(),
        many => format!("{} sessions lock or change", count(many as u64)),
    };
    page.put("rows", &format!("{have} rows of it, which is not seen: it waits where it wants one of those"));
}

fn behind(page: &mut Page, met: &Meeting, take: &Take) {
    if !met.in_the_way.is_empty() && take.on_table_of_index.unwrap_or(take.mode) >= LockMode::Share {
        page.put("behind it", "while it waits, whatever comes and may not go on beside it waits behind it");
    }
}

fn who(view: &View, party: Party) -> String {
    let known = known(view, party);
    match (known.pid, &known.gid) {
        (Some(pid), _) => format!("{pid} {}", known.who).trim_end().to_owned(),
        (None, Some(gid)) => format!("the prepared transaction {}", literal(gid)),
        (None, None) => "a prepared transaction".to_owned(),
    }
}

fn age(view: &View, since: Timestamp) -> String {
    let now = view.snapshot.as_deref().map_or(since, |snapshot| snapshot.taken_at);
    duration((now - since).as_seconds_f64().max(0.0))
}

/// `4312 app@web-3 has RowExclusive: idle in transaction for 3m12s, in its transaction for 3m40s: SELECT …`
fn obstacle(view: &View, one: &Obstacle) -> String {
    let modes = one.modes.iter().map(LockMode::short).collect::<Vec<_>>().join(" and ");
    let does = match one.how {
        How::Holds => format!("has {modes}"),
        How::Ahead => format!("waits for {modes} and comes before it"),
        How::Transaction => format!("has {modes}, and the end of its transaction is waited for"),
    };
    let known = known(view, one.party);
    let since_then = backend(view, one.party)
        .and_then(|backend| backend.state_change)
        .map(|since| format!(" for {}", age(view, since)));
    let since = one.since.map(|since| format!(", in its transaction for {}", age(view, since)));
    let query = known.query.as_ref().filter(|query| !query.is_blank());
    let query =
        query.map(|query| format!(": {}", crate::text::one_line_prefix(&shown(Channel::LockOf, query), 60)));
    let state = if known.state.is_empty() { "state hidden" } else { &*known.state };
    format!(
        "{} {does}: {state}{}{}{}",
        who(view, one.party),
        since_then.unwrap_or_default(),
        since.unwrap_or_default(),
        query.unwrap_or_default()
    )
}

fn backend(view: &View, party: Party) -> Option<&Backend> {
    match party {
        Party::Backend(pid) => view.index.backend(view.snapshot.as_deref()?, pid),
        Party::Prepared(_) => None,
    }
}
