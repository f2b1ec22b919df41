use super::{Command, Definition, Verb};
use crate::model::plan::ItemTarget;
use crate::model::plan::chosen::{Chosen, RowsOf, items};
use crate::model::plan::row_change::RowAct;
use crate::model::plan::rows::{ItemVerb, item_state, while_free};
use crate::model::work_queue::ItemState::{Failed, Lost, MaybeLost, Pending, Resting};

pub(super) const COMMAND: Command = Command {
    name: "set_aside",
    keys: &["X"],
    short: "set aside",
    help: "set a queue item aside: no worker takes it",
    purpose: "sets a queue item aside",
    is_local: false,
    applies: |context, row| matches!(item_state(context, row), Some(Lost | MaybeLost | Pending | Resting)),
    choose: |_, rows| items(rows).map(|items| (Verb::SetAside, Chosen::Rows(RowsOf::Items(items)))),
};

pub(super) const SET_ASIDE: Definition = Definition {
    item: Some(&ItemVerb {
        shown: |ItemTarget { id, source, is_own, .. }| {
            if *is_own {
                format!("set_aside_queue_item({id})")
            } else {
                format!("UPDATE {source} SET status = 'failed'")
            }
        },
        act: |item, _| match item.status.as_deref()? {
            "processing" | "pending" if item.is_own => Some(RowAct::Call("set_aside_queue_item")),
            "processing" | "pending" => Some(while_free(item, "status = 'failed'")),
            _ => None,
        },
        told: "set aside as failed",
        refusal: |state, _| (state == Failed).then_some("has been set aside already; R requeues it"),
    }),
    ..Definition::of("set_aside", "set aside", "set aside")
};
