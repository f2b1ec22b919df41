use std::borrow::Cow;

use crate::model::adapter::{InstallationRows, Part, QueryChoice};
use crate::model::section::{NOT_YET, Observed};
use crate::model::snapshot::{Section, Snapshot};
use crate::model::{Text, Timestamp};

#[derive(Debug, Clone)]
pub struct SectionRead<'a> {
    /// Name in JSON and in findings: `locks`, `leases`, `adapters`.
    pub section: &'static str,
    /// The table, job system or server, for a section that exists several times.
    pub of: Option<Cow<'a, str>>,
    /// The part of a job system: `running`.
    pub part: Option<&'static str>,
    /// Server time of the rows; `None` if they were never read.
    pub taken_at: Option<Timestamp>,
    /// Why it is unknown, in one line; `None` if it is known.
    pub error: Option<&'a str>,
}

impl SectionRead<'_> {
    pub fn name(&self) -> (&'static str, Option<&str>, Option<&'static str>) {
        (self.section, self.of.as_deref(), self.part)
    }

    /// The same as text, also for the config: `leases public.distlock`, `adapters River running`.
    pub fn label(&self) -> String {
        let parts = [Some(self.section), self.of.as_deref(), self.part];
        crate::text::one_line(&parts.into_iter().flatten().collect::<Vec<_>>().join(" ")).into_owned()
    }
}

impl Snapshot {
    pub fn sections(&self) -> Vec<SectionRead<'_>> {
        let mut all = vec![
            read("server", None, &self.server),
            read("backends", None, &self.backends),
            read("locks", None, &self.locks),
            read("prepared", None, &self.prepared),
            read("tables", None, &self.detection.tables),
            read("adapters", None, &self.detection.adapters),
        ];
        for set in self.task_sets.iter() {
            all.push(read("tasks", Some(&set.tables.schedules), &set.tasks));
            all.push(read("executions", set.tables.executions.as_deref(), &set.executions));
        }
        let systems = &self.sources;
        all.extend(systems.sections().map(|(section, source, taken_at, error)| {
            section_of(section, Some(Cow::Borrowed(&source.name)), taken_at, error)
        }));
        all.extend(systems.redis.servers.iter().map(|server| {
            let of = Some(Cow::Borrowed(&*server.server));
            section_of("redis", of, systems.redis.read_at, server.error.as_ref())
        }));
        all.extend(self.adapters.iter().flat_map(parts));
        all
    }

    pub fn unread(&self) -> Vec<SectionRead<'_>> {
        let mut all = self.sections();
        all.retain(|section| section.error.is_some());
        all
    }

    /// The same snapshot, where excluded sections that cannot be read count as read and empty. A section is named by its label
    /// or by a prefix of it: `rate_limits`, `adapters River`.
    pub fn excluding(&self, excluded: &[String]) -> Self {
        let unread: Vec<_> = self.unread().iter().map(SectionRead::label).collect();
        let is_named = |label: &str| {
            excluded.iter().any(|name| {
                label.strip_prefix(&**name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            })
        };
        let is_excluded = |section: &str, of: Option<&str>| {
            let label = [Some(section), of].into_iter().flatten().collect::<Vec<_>>().join(" ");
            unread.iter().any(|unread| *unread == crate::text::one_line(&label)) && is_named(&label)
        };
        let at = self.taken_at;
        let mut snapshot = self.clone();
        if is_excluded("tables", None) {
            snapshot.detection.tables = Section::fresh(Vec::new(), at);
        }
        if is_excluded("adapters", None) {
            snapshot.detection.adapters = Section::fresh(Vec::new(), at);
        }
        for set in std::sync::Arc::make_mut(&mut snapshot.task_sets) {
            if is_excluded("tasks", Some(&set.tables.schedules)) {
                set.tasks = Section::fresh(Vec::new(), at);
            }
            if is_excluded("executions", set.tables.executions.as_deref()) {
                set.executions = Section::fresh(Vec::new(), at);
            }
        }
        std::sync::Arc::make_mut(&mut snapshot.sources).empty(is_excluded, at);
        let label = |rows: &InstallationRows| format!("adapters {}", rows.installation.label());
        // A job system without parts is one from which nothing is expected.
        for rows in
            std::sync::Arc::make_mut(&mut snapshot.adapters).iter_mut().filter(|rows| is_named(&label(rows)))
        {
            let installation = crate::model::adapter::Installation {
                refused: None,
                choices: Vec::new(),
                ..(*rows.installation).clone()
            };
            *rows = InstallationRows::new(std::sync::Arc::new(installation));
        }
        snapshot
    }

    /// The tables of one kind; absent only if the search for tables succeeded and found none.
    pub fn tables<'a, T>(&self, tables: &'a [T]) -> Observed<&'a [T]> {
        listed(tables, &self.detection.tables)
    }

    /// Job systems of other software; absent only if the search for them succeeded and found none.
    pub fn installations(&self) -> Observed<&[InstallationRows]> {
        listed(&self.adapters, &self.detection.adapters)
    }
}

fn listed<'a, T>(found: &'a [T], search: &Section<()>) -> Observed<&'a [T]> {
    match search.observed() {
        _ if !found.is_empty() => Observed::Read(found),
        Observed::Unknown(reason) => Observed::Unknown(reason),
        _ => Observed::Absent,
    }
}

/// A section for which no attempt has finished yet is unknown, but not an error.
fn read<'a, T>(section: &'static str, of: Option<&'a str>, rows: &'a Section<T>) -> SectionRead<'a> {
    section_of(section, of.map(Cow::Borrowed), rows.taken_at, rows.error.as_ref())
}

fn section_of<'a>(
    section: &'static str,
    of: Option<Cow<'a, str>>,
    taken_at: Option<Timestamp>,
    error: Option<&'a Text>,
) -> SectionRead<'a> {
    SectionRead { section, of, part: None, taken_at, error: error.map(|error| &**error) }
}

fn parts<'a>(rows: &'a InstallationRows) -> Vec<SectionRead<'a>> {
    let installation = &rows.installation;
    let of =
        |taken_at, error| section_of("adapters", Some(Cow::Owned(installation.label())), taken_at, error);
    if let Some(reason) = &installation.refused {
        return vec![of(None, Some(reason))];
    }
    let part = |choice: &'a QueryChoice| {
        let (taken_at, error, _) = rows.state_of(choice);
        SectionRead { part: Some(choice.part.as_str()), ..of(taken_at, error) }
    };
    installation.choices.iter().map(part).collect()
}

impl InstallationRows {
    /// When a part was read, why it is unknown, and whether there are more rows. It is unknown if none of its queries may run
    /// here, or the last attempt failed.
    pub fn state_of<'a>(&'a self, choice: &'a QueryChoice) -> (Option<Timestamp>, Option<&'a Text>, bool) {
        match choice.refusal().or(self.installation.refused.as_ref()) {
            Some(reason) => (None, Some(reason), false),
            None => self.read_of(choice.part),
        }
    }

    /// Whether a part is known, does not exist in this system, or is unknown. A part that was not read yet is unknown.
    pub fn observed(&self, part: Part) -> Observed<()> {
        if let Some(reason) = &self.installation.refused {
            return Observed::Unknown(reason.clone());
        }
        let choice = self.installation.choice(part);
        if let Some(reason) = choice.and_then(QueryChoice::refusal) {
            return Observed::Unknown(reason.clone());
        }
        match (self.read_of(part), choice) {
            ((_, Some(reason), _), _) => Observed::Unknown(reason.clone()),
            ((Some(_), None, _), _) => Observed::Read(()),
            ((None, None, _), Some(_)) => Observed::Unknown(NOT_YET.into()),
            ((None, None, _), None) => Observed::Absent,
        }
    }
}
