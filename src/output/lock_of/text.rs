use super::words::{advice, meanwhile, of_forms, place, work};
use super::{Judgement, LockOfReport, age};
use crate::model::disclosure::{Channel, shown};
use crate::model::lock::LockMode;
use crate::model::lock_of::{CatalogRelation, How, Meeting, Obstacle, Resolution, known};
use crate::model::statement::{Act, Nowait, Statement, StatementLock, StatementTarget};
use crate::model::view::View;
use crate::model::{Timestamp, wait_graph::Party};
use crate::text::{count, duration, lines, literal, one_line};

const NAMED: usize = 10;

/// Labels with their text, wrapped at `width` columns; not wrapped if `None`.
struct TextPage {
    lines: Vec<String>,
    width: Option<usize>,
}

impl TextPage {
    fn put(&mut self, label: &str, words: &str) {
        const INDENT: usize = 15;
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(INDENT).max(30));
        for (at, line) in lines(&one_line(words), room).into_iter().enumerate() {
            self.lines
                .push(format!("  {:<12} {line}", if at == 0 { label } else { "" }).trim_end().to_owned());
        }
    }

    fn head(&mut self, words: &str) {
        let room = self.width.unwrap_or(usize::MAX).max(30);
        self.lines.extend(lines(&one_line(words), room));
    }

    fn blank(&mut self) {
        self.lines.push(String::new());
    }
}

pub fn text(report: &LockOfReport, width: Option<usize>) -> String {
    let mut page = TextPage { lines: Vec::new(), width };
    if report.pieces.is_empty() {
        page.head("No statement.");
    }
    for (number, piece) in report.pieces.iter().enumerate() {
        if number > 0 {
            page.blank();
        }
        let at =
            if report.is_script() { format!("{}, line {}: ", number + 1, piece.line) } else { String::new() };
        match &piece.read {
            Err(unknown) => page.head(&format!("{at}{unknown}")),
            Ok(statement) => {
                page.head(&format!("{at}{}", statement.name));
                one(&mut page, report, number, statement);
            }
        }
    }
    for (heading, lines) in report.transactions() {
        page.blank();
        page.head(&heading);
        for (label, line) in lines {
            page.put(label, &line);
        }
    }
    if report.is_script() {
        page.blank();
        page.head(&summary(report));
    }
    page.lines.join("\n")
}

fn summary(report: &LockOfReport) -> String {
    let mut parts = Vec::new();
    let mut put = |is: &dyn Fn(&Judgement) -> bool, words: &str| {
        let numbers: Vec<String> =
            report.numbers(is).into_iter().map(|number| (number + 1).to_string()).collect();
        if !numbers.is_empty() {
            let s = if numbers.len() == 1 { "" } else { "s" };
            parts.push(format!("{words} statement{s} {}", numbers.join(", ")));
        }
    };
    if report.now.is_some() {
        put(&|one| *one == Judgement::Waits, "would wait:");
        put(&|one| *one == Judgement::Refused, "would fail because of a lock:");
        put(&|one| *one == Judgement::Free, "not blocked by any session:");
    }
    put(&|one| matches!(one, Judgement::Unknown(_)), "fail, or are not known:");
    if parts.is_empty() {
        return format!("{} statements", report.pieces.len());
    }
    parts.join("; ")
}

fn one(page: &mut TextPage, report: &LockOfReport, number: usize, statement: &Statement) {
    let step = report.script.steps.get(number);
    takes(page, statement);
    let waits = statement.takes.iter().any(|take| take.mode != LockMode::SIRead);
    if waits {
        if !statement.takes.iter().all(is_session) {
            page.put("until", &report.until(number, statement));
        }
        for take in statement.takes.iter().filter(|take| is_session(take)) {
            page.put(
                "until",
                &format!("for the {}: pg_advisory_unlock, or the end of the session", take.target),
            );
        }
        if let Some(take) = strongest(statement) {
            page.put("meanwhile", &meanwhile(statement, take, is_sequence(report, take)));
        }
        if statement.takes.iter().any(|take| take.relation().is_some()) {
            page.put("work", work(statement).words());
        }
    }
    if let Some(mode) = statement.waits_for() {
        let of = if mode == LockMode::Share { "write" } else { "use" };
        page.put(
            "waits for",
            &format!("the end of all transactions that {of} the table, which continue meanwhile"),
        );
    }
    if statement.waits_for_snapshots() {
        page.put(
            "waits for",
            "the end of all transactions of the database with an older snapshot, for any table",
        );
    }
    match statement.nowait {
        Nowait::Waits => {}
        Nowait::Fails => page.put("nowait", "it fails at once if it cannot acquire a lock"),
        Nowait::Rows => page.put("nowait", "it fails at once if a row is locked; for the table it waits"),
        Nowait::SkipLocked => {
            page.put("nowait", "it skips locked rows; for the table it waits");
        }
    }
    if statement.is_alone() {
        page.put("block", "it cannot run inside a transaction block");
    }
    if let Some(since) = Some(statement.since()).filter(|since| *since > 14) {
        page.put("version", &format!("PostgreSQL {since} and later"));
    }
    for unseen in &statement.unseen {
        page.put("not known", &format!("it also locks {unseen}"));
    }
    for note in of_forms(statement, |form| form.note) {
        page.put("note", note);
    }
    let timeouts: Vec<_> = step.map(|step| step.timeouts.set().collect()).unwrap_or_default();
    if waits {
        for (name, value) in &timeouts {
            page.put("timeout", &format!("the text sets {name} = {value}"));
        }
    }
    for one in advice(statement, !timeouts.is_empty()) {
        page.put("advice", one);
    }
    now(page, report, number, statement);
}

fn is_session(take: &StatementLock) -> bool {
    matches!(&take.target, StatementTarget::Advisory(call) if !call.in_transaction)
}

fn is_sequence(report: &LockOfReport, take: &StatementLock) -> bool {
    let place = report.now.as_ref().and_then(|now| now.place(&take.target));
    matches!(place, Some(Resolution::Relation(CatalogRelation { kind: 'S', .. })))
}

fn takes(page: &mut TextPage, statement: &Statement) {
    let taken: Vec<&StatementLock> =
        statement.takes.iter().filter(|take| take.mode != LockMode::SIRead).collect();
    for (at, take) in taken.iter().enumerate() {
        let table = take.on_table_of_index.map(|mode| format!(", and {} on its table", mode.short()));
        let since =
            Some(take.since).filter(|since| *since > 14).map(|since| format!(", from PostgreSQL {since} on"));
        let optional = if take.is_optional { ", if that exists" } else { "" };
        let rows = matches!(&take.target, StatementTarget::Advisory(call) if call.per_row);
        let rows = if rows { ", one for each row" } else { "" };
        page.put(
            if at == 0 { "takes" } else { "" },
            &format!(
                "{} on {}{}{}{optional}{rows}",
                take.mode.short(),
                take.target,
                table.unwrap_or_default(),
                since.unwrap_or_default()
            ),
        );
    }
    let releases = statement.calls.iter().filter(|call| matches!(call.act, Act::Unlock | Act::UnlockAll));
    for call in releases {
        let what = match (call.act, call.key) {
            (Act::UnlockAll, _) => "all advisory locks of the session".to_owned(),
            (_, Some(key)) => format!("advisory lock {key}"),
            (_, None) => format!("advisory lock {}", call.arguments),
        };
        page.put("releases", &what);
    }
    let is_plain = statement.calls.is_empty()
        && statement.control.is_none()
        && statement.unseen.is_empty()
        && statement.also.is_empty();
    if taken.is_empty() && is_plain && !statement.name.starts_with('\\') {
        page.put("takes", "no lock that another statement waits for");
    }
}

fn strongest(statement: &Statement) -> Option<&StatementLock> {
    let order = |take: &&StatementLock| take.on_table_of_index.unwrap_or(take.mode);
    let taken = || statement.takes.iter().filter(|take| take.mode != LockMode::SIRead);
    taken().filter(|take| take.is_subject).max_by_key(order).or_else(|| taken().max_by_key(order))
}

fn now(page: &mut TextPage, report: &LockOfReport, number: usize, statement: &Statement) {
    let Some(now) = &report.now else {
        if report.problem(number).is_some()
            && let Judgement::Unknown(why) = report.judge(number)
        {
            page.put("fails", &why);
        }
        return;
    };
    let mut label = "on";
    for (take, met) in statement.takes.iter().zip(report.met.get(number).into_iter().flatten()) {
        if let Some(words) = place(report, now, number, take) {
            page.put(label, &format!("{}: {words}", now.target));
            label = "";
        }
        also(page, report, (statement, take), met.as_ref());
        let is_missing = matches!(now.place(&take.target), Some(Resolution::Missing(_)));
        if let Some(met) = met.as_ref().filter(|_| !is_missing) {
            meets(page, &now.view, take, met);
            let conflicts = take.on_table_of_index.unwrap_or(take.mode) >= LockMode::Share;
            if !met.in_the_way.is_empty()
                && conflicts
                && take.relation().is_some()
                && statement.nowait != Nowait::Fails
            {
                page.put("then", "while it waits, later conflicting requests queue behind it");
            }
        }
    }
    let words = match report.judge(number) {
        Judgement::Nothing => return,
        Judgement::Waits => "it would wait".to_owned(),
        Judgement::Refused if statement.calls.is_empty() => {
            "it would fail at once: the lock is not available".to_owned()
        }
        Judgement::Refused => "it would return false: the lock is not available".to_owned(),
        Judgement::Free if report.met(number).any(|met| met.row_lockers > 0) => {
            "no session blocks it with a lock on the table; locked rows still can".to_owned()
        }
        Judgement::Free => "no session blocks it".to_owned(),
        Judgement::Unknown(why) => why,
    };
    page.put("now", &words);
}

fn also(
    page: &mut TextPage,
    report: &LockOfReport,
    (statement, take): (&Statement, &StatementLock),
    met: Option<&Meeting>,
) {
    let wants = report.wants(statement, take);
    let mut others: Vec<String> = wants
        .iter()
        .filter(|want| want.is_listed(statement, met))
        .filter_map(|want| Some(format!("{} on {}", want.mode.short(), want.other?.name)))
        .collect();
    others.sort_unstable();
    others.dedup();
    if others.is_empty() {
        return;
    }
    let more = others.len().saturating_sub(NAMED);
    others.truncate(NAMED);
    let can = if statement.is_query() { "can lock " } else { "" };
    let more = if more > 0 { format!(", and {} more", count(more as u64)) } else { String::new() };
    page.put("also", &format!("{can}{}{more}", others.join(", ")));
}

fn meets(page: &mut TextPage, view: &View, take: &StatementLock, met: &Meeting) {
    let (ahead, there): (Vec<&Obstacle>, Vec<&Obstacle>) =
        met.in_the_way.iter().partition(|one| one.how == How::Ahead);
    for one in there.iter().take(NAMED) {
        page.put("blocked by", &obstacle(view, one));
    }
    let more = there.len().saturating_sub(NAMED);
    if more > 0 {
        page.put("", &format!("and {} more", count(more as u64)));
    }
    // Queued requests are granted in order, so the first one shows what it would queue behind.
    if let [first, rest @ ..] = &ahead[..] {
        page.put("queue", &format!("queued before it: {}", obstacle(view, first)));
        if !rest.is_empty() {
            page.put("", &format!("and {} more", count(rest.len() as u64)));
        }
    }
    if matches!(take.target, StatementTarget::Notifications) && met.using == 0 {
        return;
    }
    let used = match met.using {
        0 => "no session has it locked".to_owned(),
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
            "; the oldest transaction among them is that of {}, for {}",
            who(view, party),
            long(view, since)
        )
    });
    page.put("in use", &format!("{used}{waiting}{}", oldest.unwrap_or_default()));
    let have = match met.row_lockers {
        0 => return,
        1 => "one session locks or changes".to_owned(),
        many => format!("{} sessions lock or change", count(many as u64)),
    };
    page.put(
        "rows",
        &format!("{have} rows of it; PostgreSQL does not show which: it waits if it needs one of those"),
    );
}

fn who(view: &View, party: Party) -> String {
    let known = known(view, party);
    match (known.pid, &known.gid) {
        (Some(pid), _) => format!("{pid} {}", known.who).trim_end().to_owned(),
        (None, Some(gid)) => format!("the prepared transaction {}", literal(gid)),
        (None, None) => "a prepared transaction".to_owned(),
    }
}

fn long(view: &View, since: Timestamp) -> String {
    duration(age(view, since))
}

/// `4312 app@web-3 holds RowExclusive: idle in transaction for 3m12s, in its transaction for 3m40s: SELECT …`
fn obstacle(view: &View, one: &Obstacle) -> String {
    let modes = one.modes.iter().map(LockMode::short).collect::<Vec<_>>().join(" and ");
    let does = match one.how {
        How::Holds => format!("holds {modes}"),
        How::Ahead => format!("waits for {modes}"),
        How::Transaction => format!("holds {modes}; its transaction must end first"),
        How::Snapshot => "has an older snapshot; its transaction must end first".to_owned(),
    };
    let known = known(view, one.party);
    let backend = view.with_snapshot().and_then(|seen| seen.backend(one.party.pid()));
    let since_then = backend.and_then(|backend| backend.state_change);
    let since_then = since_then.map(|since| format!(" for {}", long(view, since)));
    let since = one.since.map(|since| format!(", in its transaction for {}", long(view, since)));
    let roots: Vec<String> = one.roots.iter().take(3).map(|root| who(view, *root)).collect();
    let roots = if roots.is_empty() {
        String::new()
    } else {
        format!(", is itself waiting, at the root for {}", roots.join(", "))
    };
    let query = known.query.as_ref().filter(|query| !query.is_blank());
    let query =
        query.map(|query| format!(": {}", crate::text::one_line_prefix(&shown(Channel::LockOf, query), 60)));
    let state = if known.state.is_empty() { "state hidden" } else { &*known.state };
    format!(
        "{} {does}: {state}{}{}{roots}{}",
        who(view, one.party),
        since_then.unwrap_or_default(),
        since.unwrap_or_default(),
        query.unwrap_or_default()
    )
}
