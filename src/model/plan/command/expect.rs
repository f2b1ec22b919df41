use super::{Command, Definition};
use crate::model::plan::chosen::Chosen;
use crate::model::plan::known::{self, Known};

pub(super) const COMMAND: Command = Command {
    name: "expect",
    keys: &["I"],
    short: "expect",
    help: "mark a blocker as expected: an info finding in this run; again to undo",
    purpose: "marks a blocker as expected",
    is_local: true,
    // A finding shows this for every blocker: the keys of a row are those that help against it.
    applies: |context, row| {
        known::finding(context.view, row).is_some_and(|finding| finding.expected.is_some())
    },
    choose: |context, rows| Known::of(context.view, rows).map(|known| (known.verb(), Chosen::Known(known))),
};

pub(super) const EXPECT: Definition =
    Definition { writes: false, ..Definition::of("expect", "expect", "expected") };

pub(super) const EXPECT_NO_MORE: Definition = Definition {
    writes: false,
    ..Definition::of("expect_no_more", "no longer expect", "no longer expected")
};
