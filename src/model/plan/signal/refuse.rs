use super::selected::SelectedSession;
use crate::model::backend::Backend;
use crate::model::consequence::{has_query, of_the_server};
use crate::model::lock::VirtualTransaction;
use crate::model::plan::Verb;
use crate::model::plan::context::PlanIndex;
use crate::text;

pub(super) fn check<'a>(
    index: &PlanIndex<'a>,
    verb: Verb,
    pick: &SelectedSession,
) -> Result<&'a Backend, String> {
    if index.is_own(pick.pid) {
        return Err("this is locktop's own session".to_owned());
    }
    let Some(backend) = index.backend(pick.pid) else { return Err("has ended".to_owned()) };
    if pick.start.is_some() && backend.backend_start.is_some() && backend.backend_start != pick.start {
        return Err("has ended; another session has its pid now".to_owned());
    }
    if let Some(why) = backend.backend_type.as_deref().and_then(of_the_server) {
        return Err(why.to_owned());
    }
    let (user, kind) = (backend.user.as_deref(), backend.backend_type.as_deref());
    if let Some(lack) = index.context.rights.and_then(|rights| rights.lacks(verb, user, kind)) {
        return Err(lack.to_string());
    }
    if backend.backend_start.is_none() {
        let role = index.snapshot.server().map(|server| text::identifier(&server.user)).unwrap_or_default();
        return Err(format!(
            "its start is hidden from this role, so it cannot be distinguished from the next session with \
             its pid: GRANT pg_read_all_stats TO {role}"
        ));
    }
    if verb == Verb::Cancel {
        has_query(backend).map(|()| backend).map_err(str::to_owned)
    } else {
        Ok(backend)
    }
}

/// The statement that ends a prepared transaction, which has no process; its owner must run it in its database.
pub(super) fn prepared(index: &PlanIndex<'_>, xact: VirtualTransaction) -> String {
    let Some(row) = index.prepared(xact) else {
        return "is a prepared transaction and has no process; ROLLBACK PREPARED with its name \
                in pg_prepared_xacts ends it"
            .to_owned();
    };
    let harmless = |name: &str| text::one_line(name).into_owned();
    let database = row.database.as_deref().map_or_else(String::new, |name| format!(" in {}", harmless(name)));
    let owner = row
        .owner
        .as_deref()
        .map_or_else(String::new, |name| format!(" as {} or a superuser", harmless(name)));
    let gid = text::literal(&row.gid);
    format!("has no process to terminate. Run{database}{owner}: ROLLBACK PREPARED {gid}")
}
