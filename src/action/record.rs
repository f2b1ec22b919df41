//! Who keeps the record: what is going to be asked is noted before it is asked, and what came of it after.

use std::future::Future;

use tokio_postgres::Client;

use crate::model::plan::{Deed, Target, TargetResult};

/// What is asked of one target.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The deed that it is a part of.
    pub deed: &'a Deed,
    /// The target.
    pub target: &'a Target,
    /// What is sent, in short: `pg_terminate_backend(4312)` and under which conditions. No secret is in it.
    pub statement: &'a str,
}

/// Keeps the record.
///
/// Between [`Record::asked`] and [`Record::told`] the program may end, or the server: what was asked then has no result on
/// record, and its outcome is not known.
pub trait Record: Send + Sync + 'static {
    /// Notes that this is going to be asked for. The connection is the one that it will be asked on; none where the target is on
    /// no server of ours.
    ///
    /// # Errors
    /// Why it could not be noted and what helps, in one line: then it is not asked for.
    fn asked(
        &self,
        client: Option<&Client>,
        asked: &Asked<'_>,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Notes what came of it, also where it was not tried or not noted before.
    ///
    /// # Errors
    /// Why it could not be noted, in one line: the report says so.
    fn told(
        &self,
        client: Option<&Client>,
        asked: &Asked<'_>,
        result: &TargetResult,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// What went wrong beside the record since this was asked last and kept nobody from acting, in lines for people.
    fn notes(&self) -> impl Future<Output = Vec<String>> + Send {
        std::future::ready(Vec::new())
    }
}
