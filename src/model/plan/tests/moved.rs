use super::sessions::{ago, context, id, identity, one};
use crate::model::backend::{Backend, State};
use crate::model::lock::LockMode;
use crate::model::plan::*;
use crate::model::row_id::{LockOwner, RowId};
use crate::sample::{advisory, incident};

fn becomes(verb: Verb, chosen: RowId, change: fn(&mut Backend)) -> Option<TargetChange> {
    let plan = one(&incident(0.0).view(), verb, chosen);
    let pid = identity(&plan).pid;
    let mut b = incident(0.0);
    change(b.backends.iter_mut().find(|backend| backend.pid == pid).unwrap());
    still_there(&plan, &context(&b.view()))[0]
}

#[test]
fn an_idle_session_that_ran_something_is_not_the_same_target() {
    let key = advisory(72_707_369);
    let ran = Some(TargetChange::RanSomething);
    for chosen in
        [RowId::Backend(id(5100)), RowId::Lock(key, LockOwner::Backend(id(4977)), LockMode::Exclusive)]
    {
        let becomes = |change| becomes(Verb::Terminate, chosen, change);
        assert_eq!(becomes(|_| {}), None);
        assert_eq!(becomes(|backend| backend.query_start = ago(1.0)), ran);
        assert_eq!(becomes(|backend| backend.state_change = ago(1.0)), ran);
        assert_eq!(becomes(|backend| backend.xact_start = ago(1.0)), ran);
    }
    // A session that continues in the same transaction is the same target.
    let root = RowId::Backend(id(4312));
    let continues = |backend: &mut Backend| {
        (backend.query_start, backend.state_change, backend.state) =
            (ago(1.0), ago(1.0), Some(State::Active));
    };
    assert_eq!(becomes(Verb::Terminate, root, continues), None);
}

#[test]
fn another_client_is_not_the_same_target_in_any_state() {
    for (verb, pid) in [(Verb::Terminate, 4312), (Verb::Terminate, 5100), (Verb::Cancel, 4410)] {
        for change in [
            (|backend| backend.application = Some("batch".into())) as fn(&mut Backend),
            |backend| backend.application = None,
            |backend| backend.usesysid = Some(11),
            |backend| backend.client = Some("10.0.3.18".into()),
            |backend| backend.client_port = Some(1),
        ] {
            assert_eq!(becomes(verb, RowId::Backend(id(pid)), change), Some(TargetChange::OtherClient));
        }
    }
}
