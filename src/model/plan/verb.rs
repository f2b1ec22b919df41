//! What can be done: one line each, with its words.

/// A verb: its word for records, what is going to be done, what was done.
macro_rules! verbs {
    ($($(#[$doc:meta])* $verb:ident = $word:literal, $does:literal, $done:literal;)*) => {
        /// What is to be done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Verb {
            $($(#[$doc])* $verb,)*
        }

        impl Verb {
            /// Its word, for records: `cancel`, `terminate`, …
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$verb => $word,)*
                }
            }

            /// `cancel query`: what is going to be done.
            #[must_use]
            pub const fn does(self) -> &'static str {
                match self {
                    $(Self::$verb => $does,)*
                }
            }

            /// `cancelled`: what was done.
            #[must_use]
            pub const fn done(self) -> &'static str {
                match self {
                    $(Self::$verb => $done,)*
                }
            }
        }
    };
}

verbs! {
    /// Cancel the query of a session.
    Cancel = "cancel", "cancel query", "cancelled";
    /// End a session.
    Terminate = "terminate", "terminate", "terminated";
    /// Recover executions of tasks.
    Recover = "recover", "recover", "recovered";
    /// Put an item of the work queue back.
    Requeue = "requeue", "put back", "put back";
    /// Set an item of the work queue aside.
    SetAside = "set_aside", "set aside", "set aside";
    /// End a lease of somebody else.
    Unlock = "unlock", "unlock", "unlocked";
    /// Let a task be taken again.
    Enable = "enable", "enable", "enabled";
    /// Let a task not be taken any more.
    Disable = "disable", "disable", "disabled";
    /// Make a task due.
    MakeDue = "make_due", "make due", "made due";
    /// Expect a blocker: locktop alone, and no server, hears of it.
    Expect = "expect", "ignore", "ignored";
    /// Expect it no more.
    ExpectNoMore = "expect_no_more", "ignore no more", "not ignored any more";
}
