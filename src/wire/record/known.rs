//! Data besides the snapshot that the screens are made of: names of keys and objects, and the rights of the role.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::cell::{Cell, column, rows};
use super::columns::{columns, flat_rows};
use super::strings::{Decoded, Strings};
use crate::model::Text;
use crate::model::lock_key::LockKey;
use crate::model::lock_name::{Layer, LockNames, Named};
use crate::model::plan::Rights;
use crate::model::snapshot::Names;
use crate::text::one_line;

columns! {
    /// The rights of the role.
    RightRows of Rights {
        1 role: Text,
        2 version_num: u32,
        3 superuser: bool,
        4 read_all_stats: bool,
        5 signal_backend: bool,
        6 signal_autovacuum: bool,
        7 member_of: Vec<Text>,
        8 superusers: Vec<Text>,
        9 partial: bool,
        10 no_inherit: bool,
    }
}

flat_rows! {
    /// A name of an advisory key, and where it counts.
    KeyNames of KeyName {
        1 learned: bool,
        2 database: Option<Text>,
        3 is_pair: bool,
        4 key: i64,
        5 name: Text,
        6 origin: Text,
        7 uncertain: bool,
    }
    /// A relation by name.
    RelationNames of RelationName {
        1 database: u32,
        2 relation: u32,
        3 name: Text,
    }
    /// Another object by kind and name.
    ObjectNames of ObjectName {
        1 database: u32,
        2 class: u32,
        3 object: u32,
        4 name: Text,
    }
    /// A database by name.
    DatabaseNames of DatabaseName {
        1 database: u32,
        2 name: Text,
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Known {
    #[prost(message, required, tag = 1)]
    keys: KeyNames,
    #[prost(message, required, tag = 2)]
    notes: <Text as Cell>::Column,
    #[prost(message, required, tag = 3)]
    rights: RightRows,
}

pub(super) type Beside = (Arc<LockNames>, Arc<[Text]>, Option<Arc<Rights>>);

pub(super) fn of_known(
    names: &LockNames,
    notes: &[Text],
    rights: Option<&Rights>,
    strings: &mut Strings,
) -> Known {
    let mut keys = Vec::new();
    for (learned, layer) in [(false, &names.configured), (true, &names.learned)] {
        let everywhere = layer.everywhere.iter().map(|named| (None, named));
        let here = layer.databases.iter();
        let here = here.flat_map(|(database, keys)| keys.iter().map(move |named| (Some(database), named)));
        keys.extend(everywhere.chain(here).map(|(database, (key, named))| {
            let (is_pair, key) = match *key {
                LockKey::Bigint(key) => (false, key),
                LockKey::Pair(high, low) => (true, i64::from(high) << 32 | i64::from(low.cast_unsigned())),
            };
            let Named { name, origin, uncertain } = named.clone();
            KeyName { learned, database: database.cloned(), is_pair, key, name, origin, uncertain }
        }));
    }
    keys.sort_by(|a, b| {
        let key = |name: &KeyName| (name.learned, name.is_pair, name.key);
        key(a).cmp(&key(b)).then_with(|| a.database.cmp(&b.database))
    });
    let rights: Vec<Rights> = rights.cloned().into_iter().collect();
    Known { keys: column(&keys, strings), notes: column(notes, strings), rights: column(&rights, strings) }
}

#[expect(clippy::cast_possible_truncation, reason = "two halves of 32 bits")]
pub(super) fn known(kept: &Known, strings: &Decoded) -> Beside {
    let (mut configured, mut learned) = (Layer::default(), Layer::default());
    for row in rows::<KeyName>(&kept.keys, strings) {
        let key = if row.is_pair {
            LockKey::Pair((row.key >> 32) as i32, row.key as i32)
        } else {
            LockKey::Bigint(row.key)
        };
        let layer = if row.learned { &mut learned } else { &mut configured };
        let names = match row.database {
            Some(database) => layer.databases.entry(database).or_default(),
            None => &mut layer.everywhere,
        };
        names.insert(key, Named { name: row.name, origin: row.origin, uncertain: row.uncertain });
    }
    let rights = rows::<Rights>(&kept.rights, strings).pop().map(Arc::new);
    let notes: Vec<Text> =
        rows::<Text>(&kept.notes, strings).iter().map(|note| one_line(note).into()).collect();
    (Arc::new(LockNames::restored(configured, learned)), notes.into(), rights)
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NameTable {
    #[prost(message, required, tag = 1)]
    relations: RelationNames,
    #[prost(message, required, tag = 2)]
    databases: DatabaseNames,
    #[prost(message, optional, tag = 3)]
    objects: Option<ObjectNames>,
}

pub(super) fn of_names(names: &Names, strings: &mut Strings) -> NameTable {
    let relations = names.relations.iter();
    let mut relations: Vec<_> = relations
        .map(|((database, relation), name)| RelationName {
            database: *database,
            relation: *relation,
            name: Text::clone(name),
        })
        .collect();
    relations.sort_unstable_by_key(|row| (row.database, row.relation));
    let databases = names.databases.iter();
    let mut databases: Vec<_> = databases
        .map(|(database, name)| DatabaseName { database: *database, name: Text::clone(name) })
        .collect();
    databases.sort_unstable_by_key(|row| row.database);
    let objects = names.objects.iter();
    let mut objects: Vec<_> = objects
        .map(|((database, class, object), name)| ObjectName {
            database: *database,
            class: *class,
            object: *object,
            name: Text::clone(name),
        })
        .collect();
    objects.sort_unstable_by_key(|row| (row.database, row.class, row.object));
    NameTable {
        relations: column(&relations, strings),
        databases: column(&databases, strings),
        objects: (!objects.is_empty()).then(|| column(&objects, strings)),
    }
}

pub(super) fn names(kept: &NameTable, strings: &Decoded) -> Names {
    let relations = rows::<RelationName>(&kept.relations, strings).into_iter();
    let databases = rows::<DatabaseName>(&kept.databases, strings).into_iter();
    let relations: FxHashMap<_, _> = relations.map(|row| ((row.database, row.relation), row.name)).collect();
    let objects = kept.objects.iter().flat_map(|objects| rows::<ObjectName>(objects, strings));
    Names {
        relations,
        databases: databases.map(|row| (row.database, row.name)).collect(),
        objects: objects.map(|row| ((row.database, row.class, row.object), row.name)).collect(),
    }
}
