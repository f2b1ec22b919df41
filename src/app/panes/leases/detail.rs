use crate::app::context::Context;
use crate::app::detail::{ago, end_label, field, fields, heading, party};
use crate::app::line::{Line, Tone};
use crate::app::panes::leases::{term, tone};
use crate::model::lease::{LeaseId, LeaseRow, LeaseState};
use crate::model::wait_graph::Party;
use crate::text;

pub(super) fn lines(context: &Context<'_>, id: LeaseId) -> Option<Vec<Line>> {
    let row = context.lease(id)?;
    let mut lines = vec![state(row)];
    let votes = row.quorum.map(|(has, of)| format!(", by its owner on {has} of {of} servers"));
    let kept = format!("{}{}", text::one_line(&row.shown_source()), votes.unwrap_or_default());
    lines.push(field("kept in", kept, Tone::Plain));
    lines.extend(servers(context, row));
    lines.extend(row.owner.as_deref().map(|owner| {
        let label = if row.state == LeaseState::Released { "last owner" } else { "owner" };
        let held = row.observed.holds.filter(|holds| *holds > 1);
        let held = held.map_or_else(String::new, |holds| format!(", locked {holds} times"));
        field(label, format!("{}{held}", text::one_line(owner)), Tone::Plain)
    }));
    lines.extend(session(context, row));
    let token = row.token.map(|token| token.to_string());
    lines.push(match token {
        Some(token) => field("token", token, Tone::Plain),
        None => field("token", "none: an owner that returns too late cannot be fenced off", Tone::Dim),
    });
    lines.push(Line::new());
    lines.extend(times(context, row));
    if row.waiting > 0 {
        let words = format!("{} for it; 2 shows them", text::count(u64::from(row.waiting)));
        lines.push(field("waiting", words, Tone::Warning));
    }
    Some(lines)
}

fn servers(context: &Context<'_>, row: &LeaseRow) -> Option<Line> {
    let redis = &context.snapshot.systems.redis;
    let set = usize::from(row.set?).checked_sub(1)?;
    let before: usize = redis.sets.iter().take(set).sum();
    let members = redis.servers.iter().skip(before).take(*redis.sets.get(set)?);
    let names: Vec<_> = members.map(|server| text::one_line(&server.server)).collect();
    Some(field("servers", names.join(", "), Tone::Plain))
}

fn state(row: &LeaseRow) -> Line {
    let ago = |left: Option<f64>| left.map(|left| text::duration(-left)).unwrap_or_default();
    let why = match (row.state, row.left) {
        (LeaseState::Expired, left) => {
            format!(": it expired {} ago and was not released; the next request gets it", ago(left))
        }
        (LeaseState::Held, Some(left)) => format!(": {} left", text::duration(left)),
        (LeaseState::Held, None) => ": it never expires; no other owner can get it".to_owned(),
        (LeaseState::Released, _) => ": released, or ended by U".to_owned(),
        (LeaseState::Free, _) if row.is_split => {
            ": it has several owners on its servers, none with a majority, and each blocks the others"
                .to_owned()
        }
        (LeaseState::Free, _) if row.quorum.is_some() => {
            ": held on too few servers; it is being acquired or released, or that failed".to_owned()
        }
        (LeaseState::Free, _) => ": it is not held".to_owned(),
    };
    let word = if row.is_split { "split" } else { row.state.as_str() };
    let tone = if row.is_split { Tone::Warning } else { tone(row.state) };
    Line::new().with(format!("  {:<14} ", "state"), Tone::Dim).with(word, tone).with(why, Tone::Plain)
}

fn session(context: &Context<'_>, row: &LeaseRow) -> Vec<Line> {
    if row.owner.is_none() {
        return Vec::new();
    }
    let (words, tone) = match (row.owner_alive, row.owner_pid) {
        (Some(true), Some(pid)) => (party(context, Party::Backend(pid)), Tone::Plain),
        (Some(false), Some(pid)) => (format!("{pid}, which has ended"), Tone::Warning),
        _ => ("not known: a name does not identify a session".to_owned(), Tone::Dim),
    };
    vec![field("session", words, tone)]
}

fn times(context: &Context<'_>, row: &LeaseRow) -> Vec<Line> {
    let end = row.expires_at.zip(row.left).map(|(at, left)| {
        let time = context.time_of_day(at);
        if left > 0.0 {
            format!("in {} ({time})", text::duration(left))
        } else {
            format!("{} ago ({time})", text::duration(-left))
        }
    });
    let mut lines = vec![
        heading("Times"),
        fields(&[
            ("acquired", ago(context, row.acquired_at)),
            ("acquired or renewed", ago(context, row.renewed_at)),
            ("held for at least", row.observed.held.map(text::duration).unwrap_or_default()),
        ]),
        fields(&[("term", term(row).unwrap_or_default()), (end_label(row.left), end.unwrap_or_default())]),
    ];
    lines.retain(|line| line.spans.len() > 1 || line.spans.iter().any(|span| span.tone == Tone::Title));
    lines
}
