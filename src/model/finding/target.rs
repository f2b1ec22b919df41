use super::check_input::CheckInput;
use crate::model::lock::LockTag;
use crate::model::words;

impl CheckInput<'_> {
    /// `accounts`, `"Prisma Migrate"`, `advisory 42`. `holder` is the process that holds it, which corroborates the name of
    /// an advisory lock.
    pub(super) fn target(&self, tag: &LockTag, holder: Option<i32>) -> String {
        let namer = self.view.namer(&self.lock_names, tag, holder);
        words::quoted(self.snapshot, &self.lock_names, tag, namer)
    }
}
