use std::borrow::Cow;

use super::Timestamp;
use super::adapter::{Choice, InstallationRows, Part};
use super::section::{NOT_YET, Observed};
use super::snapshot::{Section, Snapshot};
use super::systems::TableRows;

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
    pub error: Option<Cow<'a, str>>,
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
        let systems = &self.systems;
        all.extend(tables("leases", &systems.leases));
        all.extend(tables("queue", &systems.counts));
        all.extend(tables("queue_items", &systems.items));
        all.extend(tables("rate_limits", &systems.limits));
        all.extend(tables("id_generators", &systems.generators));
        all.extend(tables("task_workers", &systems.workers));
        all.extend(tables("lock_waits", &systems.contended));
        all.extend(tables("refusals", &systems.refusals));
        all.extend(systems.redis.servers.iter().map(|server| SectionRead {
            section: "redis",
            of: Some(Cow::Borrowed(&server.server)),
            part: None,
            taken_at: systems.redis.read_at,
            error: server.error.as_deref().map(Cow::Borrowed),
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
        let systems = std::sync::Arc::make_mut(&mut snapshot.systems);
        empty(&mut systems.leases, |name| is_excluded("leases", Some(name)), at);
        empty(&mut systems.counts, |name| is_excluded("queue", Some(name)), at);
        empty(&mut systems.items, |name| is_excluded("queue_items", Some(name)), at);
        empty(&mut systems.limits, |name| is_excluded("rate_limits", Some(name)), at);
        empty(&mut systems.generators, |name| is_excluded("id_generators", Some(name)), at);
        empty(&mut systems.workers, |name| is_excluded("task_workers", Some(name)), at);
        empty(&mut systems.contended, |name| is_excluded("lock_waits", Some(name)), at);
        empty(&mut systems.refusals, |name| is_excluded("refusals", Some(name)), at);
        let label = |rows: &InstallationRows| format!("adapters {}", rows.installation.label());
        // A job system without parts is one from which nothing is expected.
        for rows in
            std::sync::Arc::make_mut(&mut snapshot.adapters).iter_mut().filter(|rows| is_named(&label(rows)))
        {
            let installation = super::adapter::Installation {
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

fn empty<T>(tables: &mut [TableRows<T>], is_excluded: impl Fn(&str) -> bool, at: Timestamp) {
    for table in tables.iter_mut().filter(|table| is_excluded(&table.source.name)) {
        table.section = Section::fresh(Vec::new(), at);
    }
}

fn listed<'a, T>(found: &'a [T], search: &Section<()>) -> Observed<&'a [T]> {
    match search.observed() {
        _ if !found.is_empty() => Observed::Read(found),
        Observed::Unknown(reason) => Observed::Unknown(reason),
        _ => Observed::Absent,
    }
}

fn read<'a, T>(section: &'static str, of: Option<&'a str>, rows: &'a Section<T>) -> SectionRead<'a> {
    // A section for which no attempt has finished yet is unknown, but not an error.
    let error = rows.error.as_deref().map(Cow::Borrowed);
    SectionRead { section, of: of.map(Cow::Borrowed), part: None, taken_at: rows.taken_at, error }
}

fn tables<'a, T>(section: &'static str, tables: &'a [TableRows<T>]) -> impl Iterator<Item = SectionRead<'a>> {
    tables.iter().map(move |table| read(section, Some(&table.source.name), &table.section))
}

fn parts(rows: &InstallationRows) -> Vec<SectionRead<'_>> {
    let installation = &rows.installation;
    let of = |part, taken_at, error| SectionRead {
        section: "adapters",
        of: Some(Cow::Owned(installation.label())),
        part,
        taken_at,
        error,
    };
    if let Some(reason) = &installation.refused {
        return vec![of(None, None, Some(Cow::Borrowed(&**reason)))];
    }
    let states = installation.choices.iter().map(|choice| (choice.part, rows.state_of(choice)));
    states.map(|(part, (taken_at, error))| of(Some(part.as_str()), taken_at, error)).collect()
}

impl InstallationRows {
    /// When a part was read, and why it is unknown: none of its queries may run here, or the last attempt failed.
    fn state_of<'a>(&'a self, choice: &'a Choice) -> (Option<Timestamp>, Option<Cow<'a, str>>) {
        if let Some(reason) = choice.refusal() {
            return (None, Some(Cow::Borrowed(reason)));
        }
        let (taken_at, error, _) = self.read_of(choice.part);
        (taken_at, error.map(|error| Cow::Borrowed(&**error)))
    }

    /// Whether a part is known, does not exist in this system, or is unknown. A part that was not read yet is unknown.
    pub fn observed(&self, part: Part) -> Observed<()> {
        if let Some(reason) = &self.installation.refused {
            return Observed::Unknown(reason.clone());
        }
        let choice = self.installation.choice(part);
        if let Some(reason) = choice.and_then(Choice::refusal) {
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
