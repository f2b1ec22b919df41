//! The pure layer: the state of a server at one moment, and what follows from it.
//!
//! Nothing here reads a clock, a file or a socket; tests, replay and the live program run the same code.

/// An enumeration of which each variant has a word: its name in snake case, or what `#[strum(serialize = …)]` says.
macro_rules! words {
    ($(#[$attribute:meta])* pub enum $name:ident { $($variants:tt)* }) => {
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray,
        )]
        $(#[$attribute])*
        #[strum(serialize_all = "snake_case")]
        pub enum $name {
            $($variants)*
        }

        impl $name {
            pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

            pub fn as_str(self) -> &'static str {
                self.into()
            }

            /// The one after it; after the last, the first.
            pub fn next(self) -> Self {
                Self::ALL.iter().copied().cycle().skip_while(|one| *one != self).nth(1).unwrap_or(self)
            }

            /// The variant with this word, in upper or lower case.
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str().eq_ignore_ascii_case(word))
            }
        }
    };
}

/// Row types whose fields have the number of their column in a recording, and their columns in a query. The macro that is
/// named first passes them on to another macro.
macro_rules! rows {
    (as $name:ident; $($(#[$about:meta])* pub struct $row:ident in $columns:ident {
        $($(#[$doc:meta])* $tag:literal $field:ident: $type:ty $(= $($column:literal)+)?,)*
    })*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, PartialEq)]
            pub struct $row {
                $($(#[$doc])* pub $field: $type,)*
            }
        )*

        rows! { @ ($) $name $($columns of $row { $($tag $field: $type $(= $($column)+)?,)* })* }
    };
    (@ ($d:tt) $name:ident $($rows:tt)*) => {
        macro_rules! $name {
            ($d to:ident) => { $d to! { $($rows)* } };
        }
        pub(crate) use $name;
    };
}

// The modules of each folder are re-exported: a path names the module, not the folder.
/// The snapshot of a poll, and the view made of it.
pub mod rows {
    pub mod past;
    pub mod row_id;
    pub mod section;
    pub mod sections;
    pub mod snapshot;
    pub mod snapshot_index;
    pub mod thresholds;
    pub mod view;
    pub mod zone;
}

/// Tasks, queue items, leases and job systems: their rows and states.
pub mod jobs {
    pub mod adapter;
    pub mod id_generator;
    pub mod job_state;

    pub mod lease;
    pub mod rate_limit;
    pub mod redis_lease;
    pub mod refusals;
    pub mod source_tables;
    pub mod table_rows;
    pub mod task;
    pub mod work_queue;
    pub mod worker_types;
}

/// Conclusions from the rows: whether a worker is alive (`judge`), findings, events, the blame, and what a session would lose.
pub mod judgement {
    pub mod awaited_locks;
    pub mod blame;
    pub mod consequence;
    pub mod event;
    pub mod finding;
    pub mod held;
    pub mod judge;
    pub mod lock_waits;
    pub mod normal_wait;
    pub mod promise;
    pub mod session_facts;
}

/// Statements, names of locks, and the words for both.
pub mod wording {
    pub mod disclosure;
    pub mod fingerprint;
    pub mod lock_name;
    pub mod lock_of;
    pub mod lock_words;
    pub mod statement;
    pub mod why;
    pub mod words;
}

pub mod plan;

pub use self::{jobs::*, judgement::*, rows::*, wording::*};

pub use ::wait_graph;
pub use locktop_base::{QueryText, Text, Timestamp, namespace};
pub use wait_graph::{backend, lock};

pub mod lock_key {
    pub use locktop_base::LockKey;
}
