//! The findings, the worst first: the first pane of the Overview, without headings.
//!
//! ```text
//! > CRIT  3m12s 4312 idle in transaction, blocks 17: 1 continues now, 16 in turn
//! ```

use super::RowId;
use super::cell::{Cell, SortValue};
use super::column::{Listed, listed_rows};
use super::definition::{Fact, PaneDefinition};
use crate::app::context::Context;
use crate::app::detail;
use crate::app::line::{Line, Tone};
use crate::model::finding::{self, Finding, Severity, locks};
use crate::model::refusals;
use crate::text;

listed_rows!(Findings = Finding, |context| &context.view.findings, |finding| id_of(finding));

pub fn id_of(finding: &Finding) -> RowId {
    RowId::Finding(finding.check, finding.subject)
}

pub fn finding_of<'a>(context: &Context<'a>, row: RowId) -> Option<&'a Finding> {
    Findings::find(context, row)
}

static COLUMNS: &[Column] = &[
    Column::cell(("SEVERITY", "severity", "crit, warn or info"), (4, 4), |finding, _, _| severity(finding)),
    Column::sorted(
        ("FOR", "for", "how long the problem has existed"),
        (6, 6),
        |finding, context, _| {
            let age = context.age(finding.row_since()).filter(|_| finding.ended.is_none());
            age.map_or_else(Cell::default, |age| Cell::plain(text::age(age)))
        },
        |finding, context| SortValue::number(context.age(finding.row_since())),
    )
    .right(),
    Column::cell(("FINDING", "finding", "the finding"), (20, 0), |finding, context, room| {
        let Some(ended) = finding.ended else { return Cell::plain(finding.row_text(room.into())) };
        let ago = format!("ended {} ago · ", context.age(Some(ended)).map(text::age).unwrap_or_default());
        let room = usize::from(room).saturating_sub(text::width(&ago));
        Cell::toned(ago + &finding.row_text(room), Tone::Dim)
    }),
];

pub(super) static PANE: PaneDefinition = PaneDefinition {
    empty: "no problems found",
    is_headless: true,
    facts: |context, _| facts(context),
    name: |_, _| "Finding".to_owned(),
    label: |_, _| "a finding".to_owned(),
    detail: |context, id, width| Some(detail::finding(finding_of(context, id)?, width)),
    ..PaneDefinition::new(("Findings", "a finding"), &COLUMNS, Findings::rows)
};

fn severity(finding: &Finding) -> Cell {
    let dim = finding.ended.map(|_| Tone::Dim);
    match finding.severity {
        Severity::Critical => Cell::toned("CRIT", dim.unwrap_or(Tone::Critical)),
        Severity::Warning => Cell::toned("WARN", dim.unwrap_or(Tone::Warning)),
        Severity::Info => Cell::toned("info", Tone::Dim),
    }
}

/// `3 critical · 1 warning · 1 info`, or `none · 25 checks passed`; an info is not a problem.
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let findings = || context.view.findings.iter().filter(|finding| finding.ended.is_none());
    let count = |severity| findings().filter(|finding| finding.severity == severity).count();
    let [critical, warning, info] = [Severity::Critical, Severity::Warning, Severity::Info].map(count);
    if critical + warning == 0 {
        let mut found: Vec<&str> = findings().map(|finding| finding.check).collect();
        found.sort_unstable();
        found.dedup();
        let passed = finding::checks(context.snapshot.locks.is_known()).saturating_sub(found.len());
        let info = (info > 0).then(|| (format!("{info} info"), Tone::Dim));
        let none = ("none".to_owned(), Tone::Good);
        let passed = (format!("{passed} checks passed"), Tone::Plain);
        return std::iter::once(none).chain(info).chain([passed]).collect();
    }
    let all = [
        (critical, "critical", Tone::Critical),
        (warning, "warning", Tone::Warning),
        (info, "info", Tone::Dim),
    ];
    let some = all.into_iter().filter(|(count, ..)| *count > 0);
    some.map(|(count, word, tone)| (format!("{} {word}", text::count(count as u64)), tone)).collect()
}

/// How far the server is from problems; shown below the findings if none of them is more than an info.
pub fn quiet(context: &Context<'_>) -> Vec<Line> {
    let findings = &context.view.findings;
    if findings.iter().any(|finding| finding.severity != Severity::Info) {
        return Vec::new();
    }
    let deadlocks = context.snapshot.server().map_or(0, |server| server.deadlocks);
    let noun = if deadlocks == 1 { "deadlock" } else { "deadlocks" };
    let deadlocks =
        (deadlocks > 0).then(|| format!("{} {noun} since the statistics were reset", text::count(deadlocks)));
    let next = super::tasks::next_task(context).map(|next| format!("next task: {next}"));
    let view = context.snapshot_view();
    let attempts = context.index.attempts.get_or_init(|| refusals::seen(view)).clone();
    let refused = refusals::line(&context.view.series.refusals);
    let facts = [locks::table_fill(view), deadlocks, refused, attempts, next];
    let info = |fact: String| Line::new().with(format!("  info        {fact}"), Tone::Dim);
    let ok = Line::new().with("  ok  ", Tone::Good).with("        no problems found", Tone::Dim);
    let ok = findings.is_empty().then_some(ok);
    ok.into_iter().chain(facts.into_iter().flatten().map(info)).collect()
}
