//! The strip: two or three lines about the row under the cursor. They show the session, the effect of the shortcut on
//! its data and on waiting sessions, and the other remedy.

use super::context::Context;
use super::keymap::{self, Action};
use super::line::{Line, Tone};
use super::panes::{RowId, cell, findings, locks};
use super::{App, detail, dialog, subject};
use crate::model::backend::{Backend, State};
use crate::model::consequence::{self, DataEffect};
use crate::model::disclosure::Channel;
use crate::model::finding::{Finding, party_text, waits};
use crate::model::lease::LeaseState;
use crate::model::lock::LockType;
use crate::model::plan::{CommandId, Verb};
use crate::model::promise::Promise;
use crate::model::session_facts::{WriteKnowledge, write_knowledge};
use crate::model::statement;
use crate::model::wait_graph::Party;
use crate::text::{self, count, one_line};

/// From this width on, the words are those of the dialog; below it they are short.
const WIDE: u16 = 100;

const STATEMENT: usize = 500;

pub fn strip(app: &App) -> Vec<Line> {
    let Some((context, row)) = app.context().zip(app.pane(app.focus).selected) else { return Vec::new() };
    let strip = Strip { app, context, is_wide: app.size.0 >= WIDE };
    let finding = findings::finding_of(&context, row);
    if let Some(ended) = finding.and_then(|finding| finding.ended) {
        let ago = context.age(Some(ended)).map(text::age).unwrap_or_default();
        return vec![Line::new().with(format!("ended {ago} ago"), Tone::Dim)];
    }
    let row = subject::subject_of(&context, row).unwrap_or(row);
    match subject::party_of(&context, row).filter(|_| is_session(row, finding)) {
        Some(party @ Party::Backend(pid)) => match context.backend(pid) {
            Some(backend) => strip.session(party, backend, finding),
            None => strip.other(row, finding),
        },
        Some(Party::Prepared(xact)) => strip.prepared(xact),
        None => strip.other(row, finding),
    }
}

pub fn strip_below(app: &App) -> Option<(String, Vec<Line>)> {
    let (context, row) = app.context().zip(app.pane(app.focus).selected)?;
    let title = || detail::title(&context, row);
    match row {
        RowId::Awaited(tag) => locks::strip(&context, &tag),
        RowId::Backend(id) if context.backend(id.pid).is_some() => {
            let (title, query) = Strip { app, context, is_wide: app.size.0 >= WIDE }.heading(id.pid)?;
            let query = Line::new().with(query, Tone::Plain);
            Some((title, std::iter::once(query).chain(strip(app).into_iter().skip(1)).collect()))
        }
        RowId::Lock(..) => Some((title(), strip(app))),
        // Its name is the title.
        _ => Some((title(), strip(app).into_iter().skip(1).collect())),
    }
}

struct Strip<'a> {
    app: &'a App,
    context: Context<'a>,
    is_wide: bool,
}

/// Whether a row is about a session or a prepared transaction itself, and not about its task or lease.
fn is_session(row: RowId, finding: Option<&Finding>) -> bool {
    let helps = finding.and_then(|finding| finding.help);
    matches!(row, RowId::Backend(_) | RowId::Prepared(_) | RowId::Lock(..))
        && helps.is_none_or(|help| verb_of(help).is_some())
}

impl Strip<'_> {
    /// `K terminate`, or why the shortcut is not offered.
    fn shortcut(&self, verb: Verb, backend: &Backend) -> Result<Line, String> {
        let app = self.app;
        let command = if verb == Verb::Cancel { CommandId::Cancel } else { CommandId::Terminate };
        let does = command.definition().short;
        if app.is_stale() || app.past.is_some() {
            return Err("the data is not current".to_owned());
        }
        let shortcut = app.settings.keymap.hint(Action::Command(command), does).ok_or("read-only")?;
        let (user, backend_type) = (backend.user.as_deref(), backend.backend_type.as_deref());
        match self.context.view.rights.as_deref().and_then(|rights| rights.lacks(verb, user, backend_type)) {
            Some(_) => Err(format!("this role is not permitted to {does}")),
            None => Ok(shortcut),
        }
    }

    fn session(&self, party: Party, backend: &Backend, finding: Option<&Finding>) -> Vec<Line> {
        let convoy = finding.is_some_and(|finding| finding.check == "convoy");
        let waits = self.context.node(party).is_some_and(|(_, node)| node.waits.is_some());
        let promise = self.context.promise(party);
        let mut lines = vec![self.who(party, backend)];
        let is_of_use = |promise: &Promise| !waits || promise.now + promise.in_turn > 0;
        if let Some(root) = self.root(party).filter(|_| waits && !promise.as_ref().is_some_and(is_of_use)) {
            let text = format!("frees no session; the root is {}", self.name(root));
            lines.push(Line::new().with(text, Tone::Plain));
            lines.extend(self.other_remedy(root));
            return lines;
        }
        let keeps = self.key_held(party);
        let verb = match finding {
            Some(finding) => match finding.help.and_then(verb_of) {
                Some(verb) => Ok(verb),
                None if promise.is_none() => Err("Enter shows details".to_owned()),
                None => self.context.snapshot_view().remedy(backend, keeps.is_some()),
            },
            None if waits => Ok(Verb::Cancel),
            None if promise.is_none() => Err("it blocks no session; Enter shows details".to_owned()),
            None => self.context.snapshot_view().remedy(backend, keeps.is_some()),
        };
        lines.push(match verb {
            Ok(verb) => self.consequence(verb, (party, backend), keeps, convoy || waits),
            Err(why) => no_shortcut(&why),
        });
        match self.root(party).filter(|_| waits) {
            Some(root) => lines.extend(self.other_remedy(root)),
            None => lines.extend(
                self.cause(party, backend)
                    .or_else(|| self.head(party, promise.map_or(0, |promise| promise.now))),
            ),
        }
        lines
    }

    /// The waiter behind a root, if canceling it lets more sessions continue now than the end of the root.
    fn head(&self, root: Party, now: u32) -> Option<Line> {
        let behind = self.context.view.graph.directly_behind(root);
        let below = |party: &Party| self.context.node(*party).map_or(0, |(_, node)| node.below);
        let head = behind.into_iter().max_by_key(below)?;
        let frees = self.context.snapshot_view().promise_of(Verb::Cancel, &[head]).now;
        (frees > now).then(|| self.other_remedy(head))?
    }

    /// Why a root does not end without intervention, if known.
    fn cause(&self, party: Party, backend: &Backend) -> Option<Line> {
        let kept = self.context.snapshot_view().kept_key(party).map(|_| consequence::KEPT.to_owned());
        let itself = kept.or_else(|| self.context.snapshot_view().waits_for_itself(party));
        let cause = itself.or_else(|| waits::unnamed_wait(self.context.snapshot, backend))?;
        Some(Line::new().with("cause: ", Tone::Dim).with(cause, Tone::Plain))
    }

    /// `app@web-3 on 10.0.3.17 · may have written · SELECT * FROM accounts…`
    fn who(&self, party: Party, backend: &Backend) -> Line {
        let (mut facts, query) = self.facts(party, backend);
        facts.extend(query);
        Line::new().with(facts.join(" · "), Tone::Plain)
    }

    /// `2091 migrator@flyway on 10.0.3.20, database app · blocks 45: 45 continue now`, and its query.
    fn heading(&self, pid: i32) -> Option<(String, String)> {
        let (party, backend) = (Party::Backend(pid), self.context.backend(pid)?);
        let (mut facts, query) = self.facts(party, backend);
        let promise = self.context.promise(party).filter(|promise| promise.blocked > 0);
        facts.extend(promise.map(Promise::words));
        Some((format!("{pid} {}", facts.join(" · ")), query.unwrap_or_default()))
    }

    fn facts(&self, party: Party, backend: &Backend) -> (Vec<String>, Option<String>) {
        let context = &self.context;
        let mut who = context.who(backend);
        match backend.client.as_deref() {
            Some("[local]") => who.push_str(", local"),
            Some(client) => who = format!("{who} on {}", one_line(client)),
            None if backend.backend_type.as_deref() == Some("client backend") => who.push_str(", local"),
            None => {}
        }
        if let Some(database) = backend.database.as_deref().filter(|_| self.is_wide) {
            who = format!("{who}, database {}", one_line(database));
        }
        let mut facts = vec![who];
        if let Some(root) = self.root(party).filter(|_| self.is_wide) {
            facts.push(format!("waits for {}", party_text(root)));
        }
        match write_knowledge(&context.view.graph, backend) {
            _ if backend.xact_start.is_none() && backend.state.is_some() => {
                facts.push("no transaction".to_owned());
            }
            WriteKnowledge::Maybe if consequence::awaits_standby(backend) => {
                facts.push("has committed".to_owned());
            }
            WriteKnowledge::Maybe => facts.push("may have written".to_owned()),
            WriteKnowledge::No | WriteKnowledge::ForLock => {}
        }
        let is_last = backend.state == Some(State::Idle);
        let query =
            cell::query_of(backend).map(|query| if is_last { format!("last query: {query}") } else { query });
        (facts, query)
    }

    /// `K terminate: rolls back; 4410 continues now, then 16 behind it`
    fn consequence(
        &self,
        verb: Verb,
        (party, backend): (Party, &Backend),
        keeps: Option<String>,
        waits: bool,
    ) -> Line {
        let mut line = match self.shortcut(verb, backend) {
            Ok(line) => line,
            Err(why) => return no_shortcut(&why),
        };
        let consequence = self.context.snapshot_view().consequence(verb, backend);
        let tone = if consequence.effect.leaves_damage() { Tone::Critical } else { Tone::Plain };
        let statement = || {
            let query = backend.query.as_ref();
            let found = query.and_then(|query| statement::first(query.unredacted(), STATEMENT));
            let name = found.map_or_else(|| "statement".to_owned(), |found| found.name);
            name.split(' ').next().unwrap_or_default().to_owned()
        };
        let effect = match (verb, consequence.effect, keeps) {
            (Verb::Cancel, DataEffect::RollsBack, _) if waits && self.is_wide => {
                format!("the {} fails and rolls back", statement())
            }
            (Verb::Cancel, DataEffect::RollsBack, _) => format!("the {} fails", statement()),
            (_, DataEffect::Nothing, Some(key)) => format!("releases {key}"),
            (_, effect, _) => {
                if let Some(short) = effect.short().filter(|_| !self.is_wide) {
                    short.to_owned()
                } else {
                    // Its age has a column of its own.
                    let age = self.context.age(backend.xact_start).map(text::duration).unwrap_or_default();
                    consequence.words.replacen(&format!(", {age} old"), "", 1)
                }
            }
        };
        line.push(": ", Tone::Plain);
        line.push(effect, tone);
        line.push("; ", Tone::Plain);
        line.push(self.continues(verb, party), Tone::Plain);
        if waits && !self.is_wide {
            let root = self.root(party).map(|root| format!(" · root: {}", self.name(root)));
            line.push(root.unwrap_or_default(), Tone::Plain);
        } else if waits {
            line.push(". Run it again with lock_timeout", Tone::Plain);
        }
        line
    }

    /// `4410 continues now, then 16 behind it`: the numbers, and the session if there is only one.
    fn continues(&self, verb: Verb, party: Party) -> String {
        let release = self.context.snapshot_view().release(verb, &[party]);
        let promise = self.context.snapshot_view().promise_of(verb, &[party]);
        if promise.is_hidden && promise.blocked > 0 {
            return promise.words();
        }
        let stays = promise.still + promise.unsure > 0;
        match release.now.as_slice() {
            [] if promise.blocked == 0 => "blocks no session".to_owned(),
            [one] if !stays && promise.in_turn > 0 => {
                let then = count(promise.in_turn.into());
                let is_behind = self.context.blocked(*one) == promise.in_turn;
                let how = match (is_behind, self.is_wide) {
                    (true, _) => " behind it",
                    (false, true) => ", one after another",
                    (false, false) => "",
                };
                format!("{} continues now, then {then}{how}", party_text(*one))
            }
            [one] if !stays => format!("{} continues now", self.name(*one)),
            _ if stays && !release.others.is_empty() => {
                let by = release.others.iter().take(3).map(|party| party_text(*party)).collect::<Vec<_>>();
                // `3 more must end: 18031, …`
                let ends_with_others =
                    promise.now + promise.in_turn + promise.unsure == 0 && promise.others.is_some();
                let how = if ends_with_others { ":" } else { "; still blocked by" };
                format!("{}{how} {}", promise.numbers(false), by.join(", "))
            }
            _ => promise.numbers(true),
        }
    }

    /// `other remedy: C on 2053 report@metabase (SELECT count(*) …, active 34s): 1 continues now, 45 in turn`
    fn other_remedy(&self, root: Party) -> Option<Line> {
        let backend = self.context.backend(root.pid()).filter(|_| self.is_wide)?;
        let verb = self.context.snapshot_view().remedy(backend, self.key_held(root).is_some()).ok()?;
        let shortcut = self.shortcut(verb, backend).ok()?;
        let state = backend.state.map_or("", State::as_str);
        let since = self.context.age(backend.state_change).map(text::age).unwrap_or_default();
        let query =
            cell::query_of(backend).map(|query| format!("{}, ", text::fit(&query, 24))).unwrap_or_default();
        let mut line = Line::new().with("other remedy: ", Tone::Dim);
        line.spans.extend(shortcut.spans.into_iter().take(1));
        line.push(format!(" on {} {} ", party_text(root), self.context.who(backend)), Tone::Plain);
        line.push(format!("({query}{state} {since}): "), Tone::Plain);
        let promise = self.context.snapshot_view().promise_of(verb, &[root]);
        line.push(if promise.is_hidden { promise.words() } else { promise.numbers(true) }, Tone::Plain);
        Some(line)
    }

    fn prepared(&self, xact: crate::model::lock::VirtualTransaction) -> Vec<Line> {
        let Some(row) = self.context.prepared(xact) else { return Vec::new() };
        let age = self.context.age(row.prepared).map(text::age).unwrap_or_default();
        let owner = row.owner.as_deref().map(|owner| format!(" by {}", one_line(owner))).unwrap_or_default();
        let place = row.database.as_deref().map(|name| format!(" in database {}", one_line(name)));
        let place = place.unwrap_or_default();
        let literal = text::literal(&row.gid);
        vec![
            Line::new().with(format!("prepared {age} ago{owner}{place}; it has no process"), Tone::Plain),
            no_shortcut(&format!("ROLLBACK PREPARED {literal}{place} ends it")),
        ]
    }

    /// For a row without a session: what the finding reports beyond its row, or the name, and the shortcuts that act.
    fn other(&self, row: RowId, finding: Option<&Finding>) -> Vec<Line> {
        let about = finding.map(|finding| finding.about_in(Channel::Screen).into_owned());
        let about = about.unwrap_or_else(|| (row.home().definition().name)(&self.context, row));
        let acts = match finding {
            Some(finding) => dialog::help(finding).into_iter().collect(),
            None => dialog::here(self.app),
        };
        let keymap = &self.app.settings.keymap;
        let mut line = Line::joined(acts.into_iter().filter_map(|(action, does)| keymap.hint(action, does)));
        if line.spans.is_empty() || self.app.is_stale() || self.app.past.is_some() {
            let is_expired = |id| self.context.lease(id).is_some_and(|row| row.state == LeaseState::Expired);
            line = match subject::subject_of(&self.context, row).unwrap_or(row) {
                RowId::Lease(id) if is_expired(id) => {
                    no_shortcut("the next request gets the lease; Enter shows details")
                }
                RowId::Run(_) => {
                    Line::new().with("each waits for the one above; Enter unfolds them", Tone::Plain)
                }
                _ => no_shortcut("Enter shows details"),
            };
        }
        vec![Line::new().with(about, Tone::Plain), line]
    }

    /// `None` for a root.
    fn root(&self, party: Party) -> Option<Party> {
        let root = self.context.view.graph.roots_above(party).first().copied()?;
        (root != party).then_some(root)
    }

    /// The session's advisory lock with the most waiters.
    fn key_held(&self, party: Party) -> Option<String> {
        let queues = self.context.view.graph.queues.iter();
        let held = queues.filter(|queue| {
            queue.tag.locktype() == LockType::Advisory
                && queue.holders.iter().any(|holder| holder.party == party)
        });
        let queue = held.max_by_key(|queue| queue.waiters.len())?;
        let label = self.context.lock_label(&queue.tag, Some(party.pid()));
        Some(match label.strip_prefix("advisory ") {
            Some(number) if self.is_wide => format!("advisory lock {number}"),
            _ => label,
        })
    }

    /// `2053 metabase`, and from 100 columns on `2053 report@metabase`.
    fn name(&self, party: Party) -> String {
        let backend = self.context.backend(party.pid());
        let application = backend.and_then(|backend| backend.application.as_deref());
        let who = match application.filter(|name| !name.is_empty() && !self.is_wide) {
            Some(application) => one_line(application).into_owned(),
            None => backend.map(|backend| self.context.who(backend)).unwrap_or_default(),
        };
        format!("{} {who}", party_text(party)).trim_end().to_owned()
    }
}

fn no_shortcut(why: &str) -> Line {
    Line::new().with("no shortcut: ", Tone::Dim).with(one_line(why).into_owned(), Tone::Plain)
}

/// The verb of the shortcut that a finding names, if it acts on a session.
fn verb_of(help: &str) -> Option<Verb> {
    let binding = keymap::BINDINGS.iter().find(|binding| binding.name == help)?;
    match binding.action {
        Action::Command(CommandId::Cancel) => Some(Verb::Cancel),
        Action::Command(CommandId::Terminate) => Some(Verb::Terminate),
        _ => None,
    }
}
