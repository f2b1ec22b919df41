//! Descriptions of locked objects, shared by the screens, the findings and the table.

use crate::model::backend::{Backend, State};
use crate::model::lock::{LockMode, LockTag, LockType};
use crate::model::lock_key::LockKey;
use crate::model::lock_name::{LockName, LockNames, NameContext};
use crate::model::snapshot::Snapshot;
use crate::model::statement::{KINDS, ObjectKind};
use crate::model::{Text, id_generator, namespace, task, work_queue};

/// The name of an advisory lock that `holder` holds or waits for; its application name corroborates a guess.
pub fn lock_name(
    snapshot: &Snapshot,
    lock_names: &LockNames,
    tag: &LockTag,
    holder: Option<&Backend>,
) -> Option<LockName> {
    lock_name_or(snapshot, lock_names, (tag, holder), || hashed_name(snapshot, tag))
}

/// The same for several holders of one lock, for which `hashed` gives the same result.
pub(in crate::model) fn lock_name_or(
    snapshot: &Snapshot,
    lock_names: &LockNames,
    (tag, holder): (&LockTag, Option<&Backend>),
    hashed: impl FnOnce() -> Option<LockName>,
) -> Option<LockName> {
    if tag.locktype() != LockType::Advisory {
        return None;
    }
    let names = &snapshot.names;
    let known = tag.database().and_then(|oid| names.databases.get(&oid));
    let context = NameContext {
        database: known.or_else(|| holder.and_then(|backend| backend.database.as_ref())).map(|name| &**name),
        application: holder.and_then(|backend| backend.application.as_deref()),
        datid: tag.database(),
        names: Some(names),
    };
    let known = lock_names.resolve_tag(tag, context);
    if known.as_ref().is_some_and(|known| !known.uncertain) {
        return known;
    }
    // Among guesses, a task of the database is better than others, and a name in the statement is better still.
    let statement = holder.and_then(|backend| backend.query.as_ref());
    let said = || lock_names.in_statement(tag.advisory_key()?, statement?);
    let row = row_name(snapshot, tag, statement.map(|query| &**query.unredacted()));
    match row {
        Some(row) if !row.uncertain => Some(row),
        row => said().or(row).or_else(hashed).or(known),
    }
}

/// Numbers below this are ids rather than hashes.
const SMALLEST_HASH: u64 = 1 << 20;

/// Limit of the tasks searched: a name is looked up each time a lock is shown.
const HASHED: usize = 1_000;

/// The task (its name or type) or the rate limit (its key) whose hash is this key of the connected database.
pub(in crate::model) fn hashed_name(snapshot: &Snapshot, tag: &LockTag) -> Option<LockName> {
    let key = tag
        .advisory_key()
        .filter(|key| matches!(key, LockKey::Bigint(number) if number.unsigned_abs() >= SMALLEST_HASH))?;
    if tag.database() != Some(snapshot.server()?.datid) {
        return None;
    }
    let tasks = snapshot.task_sets.iter().flat_map(|set| set.tasks.last_rows().iter()).take(HASHED);
    let texts = tasks.flat_map(|task| {
        let name = task.name.as_deref().map(|name| ("", name));
        let kind = task.kind.as_deref().map(|kind| ("task:", kind));
        name.into_iter().chain(kind)
    });
    let limits =
        snapshot.sources.limits.iter().flat_map(|table| table.section.last_rows().iter()).take(HASHED);
    LockNames::of_hashed(key, texts.chain(limits.map(|limit| ("", &*limit.key))))
}

/// A session that runs the statement of a task or a queue item holds a separate key meanwhile.
fn statement_of(snapshot: &Snapshot, number: i64) -> Option<LockName> {
    let in_space = |of: i64| namespace::id_in(u16::try_from(of >> 48).ok()?, number);
    let task = in_space(task::statement_number(0)).and_then(task::TaskKey::own);
    let task = task.and_then(|key| task::name_of(&snapshot.task_sets, key.number()));
    let item = || {
        let id = in_space(task::item_statement_number(0))?;
        work_queue::name_of(&snapshot.sources.items, namespace::number_of(namespace::QUEUE, id)?)
    };
    let of = task.or_else(item)?;
    Some(LockName { name: format!("statement of {}", of.name).into(), ..of })
}

/// The task, queue item or id generator behind a key of the connected database. For a raw number, a row in progress comes
/// before a row that merely has the same number.
fn row_name(snapshot: &Snapshot, tag: &LockTag, statement: Option<&str>) -> Option<LockName> {
    if tag.database() != Some(snapshot.server()?.datid) {
        return None;
    }
    let LockKey::Bigint(number) = tag.advisory_key()? else { return None };
    let systems = &snapshot.sources;
    let runs = snapshot.task_sets.iter().any(|set| set.running_with(number).is_some());
    let task = || task::name_of(&snapshot.task_sets, number);
    let item = || work_queue::name_of(&systems.items, number);
    let generator = || id_generator::name_of(&systems.generators, number);
    // The statement shows which published function takes the key, also if several rows have the number.
    let calls = |function: &str| statement.is_some_and(|text| text.contains(function));
    let named = match () {
        () if calls("generate_snowflake_id") => generator().or_else(task),
        () if calls("consume_task") => item().or_else(task),
        () if runs => task(),
        () => item().or_else(task).or_else(generator),
    };
    named.or_else(|| statement_of(snapshot, number))
}

/// `accounts`, `row of accounts (0,7)`, `Prisma Migrate`, `advisory 42`, `advisory 4004 (Marten migrations?)`,
/// `transaction of 4312`: raw server text, not yet fit for a screen. A guess never hides the key itself.
pub fn target(
    snapshot: &Snapshot,
    lock_names: &LockNames,
    tag: &LockTag,
    holder: Option<&Backend>,
) -> String {
    let relation = || relation(snapshot, tag);
    let number = |value: Option<u32>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
    match tag.locktype() {
        LockType::Relation => relation(),
        LockType::Extend => format!("extension of {}", relation()),
        LockType::Page => format!("page {} of {}", number(tag.page()), relation()),
        LockType::Tuple => {
            let place = tag.page().zip(tag.tuple()).map(|(page, tuple)| format!(" ({page},{tuple})"));
            format!("row of {}{}", relation(), place.unwrap_or_default())
        }
        LockType::TransactionId | LockType::VirtualXid => match (owner(snapshot, tag), tag.virtualxid()) {
            (Some(pid), _) => format!("transaction of {pid}"),
            (None, Some(xid)) => format!("virtual transaction {xid}"),
            (None, None) => format!("transaction {}", number(tag.transactionid())),
        },
        LockType::Advisory => advisory(tag, lock_name(snapshot, lock_names, tag, holder)),
        LockType::FrozenId => "frozen ids".to_owned(),
        LockType::SpecToken => format!("speculative insert of {}", number(tag.transactionid())),
        LockType::ApplyTransaction => format!("remote transaction {}", number(tag.transactionid())),
        LockType::Object => object(snapshot, tag),
        LockType::SafeSnapshot => format!("safe snapshot for {}", number(tag.objid())),
        LockType::UserLock | LockType::Other => {
            format!("{} {}/{}", tag.locktype().as_str(), number(tag.classid()), number(tag.objid()))
        }
    }
}

/// The process of the transaction: it holds the lock on its own transaction ID.
fn owner(snapshot: &Snapshot, tag: &LockTag) -> Option<i32> {
    let own = snapshot.locks.last_rows().iter().find(|lock| lock.granted && lock.tag == *tag);
    own.and_then(|lock| lock.pid)
}

/// `schema staging`, `database app`, `NOTIFY queue`, `extension 16402`, `object 9999/16402`.
fn object(snapshot: &Snapshot, tag: &LockTag) -> String {
    let (Some(class), Some(id)) = (tag.classid(), tag.objid()) else { return "object".to_owned() };
    let database = || snapshot.names.databases.get(&id).filter(|_| class == DATABASE_CLASS);
    let words = match (class, id) {
        // The server-wide lock that commits with NOTIFY take in turn (`PreCommit_Notify` in `async.c`).
        (DATABASE_CLASS, 0) => return "NOTIFY queue".to_owned(),
        _ => match (snapshot.names.object(tag), database()) {
            (Some(name), _) => name.to_string(),
            (None, Some(name)) => format!("database {name}"),
            (None, None) => match object_class(class) {
                Some(kind) => format!("{kind} {id}"),
                None => format!("object {class}/{id}"),
            },
        },
    };
    match other_database(snapshot, tag) {
        Some(database) => format!("{words} in {database}"),
        None => words,
    }
}

/// `target` within a sentence: the name of an advisory lock is quoted.
pub fn quoted(
    snapshot: &Snapshot,
    lock_names: &LockNames,
    tag: &LockTag,
    holder: Option<&Backend>,
) -> String {
    match lock_name(snapshot, lock_names, tag, holder) {
        Some(name) if !name.uncertain => format!("\"{}\"", name.name),
        name if tag.locktype() == LockType::Advisory => {
            let words = advisory(tag, name);
            words
                .strip_prefix("advisory ")
                .map_or_else(|| words.clone(), |rest| format!("advisory lock {rest}"))
        }
        _ => target(snapshot, lock_names, tag, holder),
    }
}

/// A lock request: `AccessShare on accounts`. Rows and transactions are locked in one mode only: `row of accounts (0,7)`.
pub fn request(mode: LockMode, tag: &LockTag, target: &str) -> String {
    match tag.locktype() {
        LockType::Tuple | LockType::TransactionId | LockType::VirtualXid | LockType::SafeSnapshot => {
            target.to_owned()
        }
        _ => format!("{} on {target}", mode.short()),
    }
}

/// Whether locktop shows a lock under that name. A row or page lock also has the name of its relation.
pub fn is_called(
    snapshot: &Snapshot,
    lock_names: &LockNames,
    tag: &LockTag,
    holder: Option<&Backend>,
    name: &str,
) -> bool {
    let of_relation =
        tag.relation().is_some() && snapshot.names.relation(tag).is_some_and(|found| &**found == name);
    of_relation || target(snapshot, lock_names, tag, holder) == name
}

fn relation(snapshot: &Snapshot, tag: &LockTag) -> String {
    match (snapshot.names.relation(tag), tag.relation()) {
        (Some(name), _) => name.to_string(),
        (None, Some(oid)) => match other_database(snapshot, tag) {
            Some(database) => format!("relation {oid} in {database}"),
            None => format!("relation {oid}"),
        },
        (None, None) => "relation".to_owned(),
    }
}

/// The name of the lock's database, if it is not the connected one.
fn other_database(snapshot: &Snapshot, tag: &LockTag) -> Option<String> {
    let oid = tag.database().filter(|oid| *oid != 0)?;
    if snapshot.server().is_some_and(|server| server.datid == oid) {
        return None;
    }
    Some(snapshot.names.databases.get(&oid).map_or_else(|| oid.to_string(), ToString::to_string))
}

fn advisory(tag: &LockTag, name: Option<LockName>) -> String {
    let key = if let Some(key) = tag.advisory_key() {
        key.to_string()
    } else {
        let number = |value: Option<u32>| value.unwrap_or_default();
        let sub = tag.objsubid().unwrap_or_default();
        format!("{}/{}/{sub}", number(tag.classid()), number(tag.objid()))
    };
    match name {
        Some(name) if name.uncertain => format!("advisory {key} ({}?)", name.name),
        Some(name) => name.name.to_string(),
        None => format!("advisory {key}"),
    }
}

/// `4312 app@web-3`, or only the process id if nothing else is known.
pub fn process(pid: i32, backend: Option<&Backend>) -> String {
    format!("{pid} {}", backend.map(who).unwrap_or_default()).trim_end().to_owned()
}

/// Role and application as one sanitized line, `app@web`; the backend type if it is not a client.
pub fn who(backend: &Backend) -> String {
    let shown = |text: &Option<Text>| {
        text.as_deref().filter(|text| !text.is_empty()).map(|text| crate::text::one_line(text).into_owned())
    };
    let kind = backend.backend_type.as_deref();
    match (shown(&backend.user), shown(&backend.application)) {
        _ if kind.is_some_and(|kind| kind != "client backend" && kind != "walsender") => {
            kind.map(|kind| crate::text::one_line(kind).into_owned()).unwrap_or_default()
        }
        (Some(user), Some(application)) => format!("{user}@{application}"),
        (Some(user), None) => user,
        (None, Some(application)) => application,
        (None, None) if backend.state == Some(State::Starting) => "connecting".to_owned(),
        (None, None) => String::new(),
    }
}

/// `pg_database`, as `classid` of a lock.
pub(crate) const DATABASE_CLASS: u32 = 1262;

/// Catalogs that a lock of type `object` may refer to, besides those of [`KINDS`], or with other words. Their OIDs
/// are fixed (`CATALOG(…)` in `src/include/catalog/*.h`).
const CLASSES: [(u32, &str); 12] = [
    (826, "default privileges"),
    (1259, "relation"),
    (1261, "membership of a role"),
    (2328, "foreign-data wrapper"),
    (2602, "operator of an access method"),
    (2603, "function of an access method"),
    (2604, "default value"),
    (2606, "constraint"),
    (2618, "rule"),
    (2620, "trigger"),
    (3256, "policy"),
    (3381, "statistics object"),
];

fn object_class(oid: u32) -> Option<String> {
    let class = CLASSES.iter().find(|(class, _)| *class == oid).map(|(_, words)| (*words).to_owned());
    class.or_else(|| KINDS.iter().find(|kind| kind.catalog == oid).map(ObjectKind::label))
}

/// Whether the server can be asked for the name of such an object: it rejects catalogs that it does not know.
pub(crate) fn class_has_names(oid: u32) -> bool {
    oid != 2613 && object_class(oid).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::LockMode;
    use crate::sample::{self, Builder};

    #[test]
    fn any_key_can_be_looked_up_among_the_hashes() {
        for key in [i64::MIN, -1, 0, i64::MAX] {
            let mut builder = Builder::default();
            builder.lock(7, sample::advisory(key), LockMode::Exclusive, None);
            assert_eq!(hashed_name(&builder.snapshot(), &sample::advisory(key)), None, "{key}");
        }
    }
}
