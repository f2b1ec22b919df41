//! Names of databases, roles and relations by OID, cached so that a poll needs no catalog.
//!
//! Unknown names are requested after a poll, in a separate task: if a session holds a lock on a catalog, the query ends
//! after `lock_timeout`, and only the names are missing. All names in use are requested again from time to time, because
//! objects are renamed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use crate::clock;
use crate::model::Text;
use crate::model::plan::Rights;
use crate::model::snapshot::Names;
use crate::pg::SectionError;
use crate::pg::background::{Background, BackgroundResult, RENEW, REST, rest};
use crate::pg::decode::rights_of;
use crate::pg::decode::value::{boolean, oid, raw, text};
use crate::pg::decode::{Encoding, Encodings};
use crate::pg::sql;

type ByOid = FxHashMap<u32, Text>;

/// By kind, since a database, a role and a relation can have the same OID.
#[derive(Debug, Default)]
struct RequestedNames {
    databases: FxHashSet<u32>,
    roles: FxHashSet<u32>,
    relations: FxHashSet<u32>,
    objects: FxHashSet<ObjectId>,
    rights: bool,
}

/// The catalog and the OID of an object other than a relation, and the database of its lock: 0 if shared.
type ObjectId = (u32, u32, u32);

#[derive(Debug, Default)]
pub(super) struct Databases {
    names: ByOid,
    encodings: Encodings,
}

#[derive(Debug, Default)]
struct FoundNames {
    databases: Option<Databases>,
    roles: Option<ByOid>,
    relations: Vec<((u32, u32), Text)>,
    objects: Vec<(ObjectId, Text)>,
    rights: Option<Rights>,
}

#[derive(Debug)]
pub(super) struct NameCache {
    /// OID of the connected database: relations of other databases cannot be looked up.
    datid: u32,
    encoding: Encoding,
    encodings: Encodings,
    /// Schemas whose relations are shown without the schema.
    path: Arc<[String]>,
    names: Arc<Names>,
    roles: ByOid,
    rights: Option<Arc<Rights>>,
    /// Requested since the last renewal; those without a name are requested again after a few seconds.
    asked: RequestedNames,
    renewed: Instant,
    /// When objects without a name were last requested again.
    asked_again: Instant,
    rest_until: Option<Instant>,
    asking: Background<FoundNames>,
}

impl NameCache {
    pub(super) fn new(
        datid: u32,
        encoding: Encoding,
        databases: Databases,
        roles: ByOid,
        path: Arc<[String]>,
    ) -> Self {
        let Databases { names, encodings } = databases;
        Self {
            datid,
            encoding,
            encodings,
            path,
            names: Arc::new(Names { databases: names, ..Names::default() }),
            roles,
            rights: None,
            asked: RequestedNames::default(),
            renewed: clock::monotonic(),
            asked_again: clock::monotonic(),
            rest_until: None,
            asking: Background::default(),
        }
    }

    pub(super) fn names(&self) -> Arc<Names> {
        Arc::clone(&self.names)
    }

    pub(super) fn encodings(&self) -> Encodings {
        self.encodings.clone()
    }

    pub(super) fn database(&self, oid: u32) -> Option<Text> {
        self.names.databases.get(&oid).cloned()
    }

    pub(super) fn role(&self, oid: u32) -> Option<Text> {
        self.roles.get(&oid).cloned()
    }

    pub(super) fn rights(&self) -> Option<Arc<Rights>> {
        self.rights.clone()
    }

    pub(super) fn is_asking(&self) -> bool {
        self.asking.is_running()
    }

    pub(super) fn database_oids(&self) -> Vec<u32> {
        let mut oids: Vec<u32> = self.names.databases.keys().copied().collect();
        oids.sort_unstable();
        oids
    }

    /// Requests unknown names in use, and waits for the answer for at most `timeout`.
    pub(super) async fn resolve(&mut self, client: &Arc<Client>, used: ReferencedNames, timeout: Duration) {
        if !self.asking.is_begun() {
            self.ask(client, used);
        }
        match self.asking.take(timeout).await {
            None => {}
            Some(BackgroundResult { result: Ok(found), .. }) => self.learn(found),
            Some(BackgroundResult { took, .. }) => {
                self.asked = RequestedNames::default();
                self.rest_until = Some(clock::monotonic() + rest(REST, took));
            }
        }
    }

    fn ask(&mut self, client: &Arc<Client>, used: ReferencedNames) {
        let now = clock::monotonic();
        if self.rest_until.is_some_and(|until| now < until) {
            return;
        }
        let renew = now.duration_since(self.renewed) > RENEW;
        if renew {
            self.asked = RequestedNames::default();
            self.renewed = now;
            self.forget(&used);
        }
        let Self { asked, names, roles, .. } = self;
        // A table has no name for other sessions until the transaction that creates it has committed.
        if now.duration_since(self.asked_again) > REST {
            self.asked_again = now;
            let datid = self.datid;
            let has_name =
                |oid: &u32| [datid, 0].iter().any(|datid| names.relations.contains_key(&(*datid, *oid)));
            asked.relations.retain(has_name);
            asked.objects.retain(|object| names.objects.contains_key(object));
        }
        let mut databases = renew;
        for oid in used.databases {
            databases |= !names.databases.contains_key(&oid) && asked.databases.insert(oid);
        }
        let mut all_roles = renew;
        for oid in used.roles {
            all_roles |= !roles.contains_key(&oid) && asked.roles.insert(oid);
        }
        let relations: Vec<u32> =
            used.relations.into_iter().flatten().filter(|oid| asked.relations.insert(*oid)).collect();
        let objects: Vec<ObjectId> =
            used.objects.into_iter().filter(|object| asked.objects.insert(*object)).collect();
        // At the start and then as often as the names, since rights may be granted meanwhile.
        let rights = !std::mem::replace(&mut asked.rights, true);
        if databases || all_roles || rights || !relations.is_empty() || !objects.is_empty() {
            let question = NameLookup {
                client: Arc::clone(client),
                path: Arc::clone(&self.path),
                datid: self.datid,
                encoding: self.encoding,
                databases,
                roles: all_roles,
                relations,
                objects,
                rights,
            };
            self.asking.begin(question.ask());
        }
    }

    /// Drops the names of relations and objects no longer in use, since there can be thousands of temporary tables. Databases
    /// and roles are always read completely.
    fn forget(&mut self, used: &ReferencedNames) {
        let Some(relations) = &used.relations else { return };
        let in_use = |oid: &(u32, u32)| relations.contains(&oid.1);
        let is_used = |object: &ObjectId| used.objects.contains(object);
        let Names { relations: named, databases, objects } = &*self.names;
        if !named.keys().all(in_use) || !objects.keys().all(is_used) {
            // Not removed from a full copy: most entries may be unused.
            let kept = named.iter().filter(|(oid, _)| in_use(oid));
            let relations = kept.map(|(oid, name)| (*oid, name.clone())).collect();
            let kept = objects.iter().filter(|(object, _)| is_used(object));
            let objects = kept.map(|(object, name)| (*object, name.clone())).collect();
            self.names = Arc::new(Names { relations, databases: databases.clone(), objects });
        }
    }

    fn learn(&mut self, found: FoundNames) {
        if let Some(rights) = found.rights
            && self.rights.as_deref() != Some(&rights)
        {
            self.rights = Some(Arc::new(rights));
        }
        if let Some(roles) = found.roles {
            self.roles = roles;
        }
        let changed = |(oid, name): &((u32, u32), Text)| self.names.relations.get(oid) != Some(name);
        let (databases, encodings) = found.databases.map(|found| (found.names, found.encodings)).unzip();
        if let Some(encodings) = encodings {
            self.encodings = encodings;
        }
        let news = databases.as_ref().is_some_and(|databases| *databases != self.names.databases);
        // Other holders keep the names unchanged: new names go into a copy.
        let is_new = |(object, name): &(ObjectId, Text)| self.names.objects.get(object) != Some(name);
        if news || found.relations.iter().any(changed) || found.objects.iter().any(is_new) {
            let names = Arc::make_mut(&mut self.names);
            if let Some(databases) = databases {
                names.databases = databases;
            }
            names.relations.extend(found.relations);
            names.objects.extend(found.objects);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct ReferencedNames {
    pub(super) databases: FxHashSet<u32>,
    pub(super) roles: FxHashSet<u32>,
    /// Relations of the connected database and shared ones; None if no locks could be read.
    pub(super) relations: Option<FxHashSet<u32>>,
    /// Other objects of the connected database and shared ones.
    pub(super) objects: FxHashSet<ObjectId>,
}

struct NameLookup {
    client: Arc<Client>,
    path: Arc<[String]>,
    datid: u32,
    encoding: Encoding,
    databases: bool,
    roles: bool,
    relations: Vec<u32>,
    objects: Vec<ObjectId>,
    rights: bool,
}

impl NameLookup {
    async fn ask(self) -> Result<FoundNames, SectionError> {
        let mut found = FoundNames::default();
        if self.databases {
            let rows = self.client.query_typed(sql::DATABASES, &[]).await?;
            found.databases = Some(databases(&rows, self.encoding));
        }
        if self.roles {
            found.roles = Some(by_oid(&self.client.query_typed(sql::ROLES, &[]).await?, self.encoding));
        }
        if !self.relations.is_empty() {
            let (relations, path) = (&self.relations, &*self.path);
            let values: [(&(dyn ToSql + Sync), Type); 2] =
                [(relations, Type::OID_ARRAY), (&path, Type::TEXT_ARRAY)];
            let rows = self.client.query_typed(sql::RELATIONS, &values).await?;
            found.relations =
                rows.iter().filter_map(|row| relation(row, self.datid, self.encoding)).collect();
        }
        if !self.objects.is_empty() {
            // Names of relations are useful without these.
            found.objects = self.objects().await.unwrap_or_default();
        }
        if self.rights {
            // Names are useful without it.
            let rows = self.client.query_typed(sql::RIGHTS, &[]).await;
            found.rights = rows.ok().and_then(|rows| rights_of(&rows, self.encoding));
        }
        Ok(found)
    }

    async fn objects(&self) -> Result<Vec<(ObjectId, Text)>, SectionError> {
        let (classes, ids): (Vec<u32>, Vec<u32>) =
            self.objects.iter().map(|(_, class, id)| (*class, *id)).unzip();
        let values: [(&(dyn ToSql + Sync), Type); 2] = [(&classes, Type::OID_ARRAY), (&ids, Type::OID_ARRAY)];
        let rows = self.client.query_typed(sql::OBJECTS, &values).await?;
        let asked: FxHashMap<_, _> =
            self.objects.iter().map(|object| ((object.1, object.2), *object)).collect();
        let named = rows.iter().filter_map(|row| {
            let (class, id) = (oid(raw(row, 0))?, oid(raw(row, 1))?);
            let (kind, name) = (encoding_text(self.encoding, row, 2)?, encoding_text(self.encoding, row, 3)?);
            Some((*asked.get(&(class, id))?, format!("{kind} {name}").into()))
        });
        Ok(named.collect())
    }
}

fn encoding_text(encoding: Encoding, row: &Row, at: usize) -> Option<Text> {
    encoding.text(raw(row, at)).map(|text| (&*text).into())
}

fn relation(row: &Row, datid: u32, encoding: Encoding) -> Option<((u32, u32), Text)> {
    let (relation, name) = (oid(raw(row, 0))?, encoding.text(raw(row, 1))?);
    let database = if boolean(raw(row, 3))? { 0 } else { datid };
    let name: Text = match encoding.text(raw(row, 2)) {
        Some(schema) => format!("{schema}.{name}").into(),
        None => (&*name).into(),
    };
    Some(((database, relation), name))
}

/// Rows of OID and name, of shared objects.
pub(super) fn by_oid(rows: &[Row], encoding: Encoding) -> ByOid {
    let named = |row| Some((oid(raw(row, 0))?, (&*encoding.shared(raw(row, 1)?)).into()));
    rows.iter().filter_map(named).collect()
}

/// The same with the encoding of each database.
pub(super) fn databases(rows: &[Row], encoding: Encoding) -> Databases {
    let encoded = |row| Some((oid(raw(row, 0))?, Encoding::named(&text(raw(row, 2))?)));
    Databases { names: by_oid(rows, encoding), encodings: rows.iter().filter_map(encoded).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> NameCache {
        let mut cache =
            NameCache::new(5, Encoding::default(), Databases::default(), ByOid::default(), Arc::default());
        let relations = (1..=3).map(|oid| ((5, oid), Text::from(format!("t{oid}")))).collect();
        cache.learn(FoundNames { relations, ..FoundNames::default() });
        cache
    }

    #[test]
    fn unused_relations_are_forgotten() {
        let mut cache = cache();
        let before = cache.names();
        cache.forget(&ReferencedNames {
            relations: Some([1, 2, 3, 9].into_iter().collect()),
            ..ReferencedNames::default()
        });
        cache.forget(&ReferencedNames::default());
        assert!(Arc::ptr_eq(&before, &cache.names()), "all are in use, or the used ones are not known");
        cache.forget(&ReferencedNames {
            relations: Some([2, 9].into_iter().collect()),
            ..ReferencedNames::default()
        });
        assert_eq!(cache.names().relations.keys().collect::<Vec<_>>(), [&(5, 2)]);
        assert_eq!(before.relations.len(), 3, "an existing reference keeps them");
    }

    #[test]
    fn unchanged_names_make_no_copy() {
        let mut cache = cache();
        let before = cache.names();
        let same = || FoundNames { relations: vec![((5, 1), "t1".into())], ..FoundNames::default() };
        cache.learn(FoundNames { databases: Some(Databases::default()), ..same() });
        assert!(Arc::ptr_eq(&before, &cache.names()));
        cache.learn(FoundNames { relations: vec![((5, 1), "renamed".into())], ..same() });
        assert_eq!(cache.names().relations.get(&(5, 1)), Some(&"renamed".into()));
        assert_eq!(before.relations.get(&(5, 1)), Some(&"t1".into()));
    }
}
