//! Who goes on when others end, of those whose lock is granted then.

use super::lock::LockType;
use super::wait_graph::{Party, WaitGraph};

/// Of those that are `freed` when some end, those who go on. Who waits in line for a row locks its place first, and waits for the
/// end of the transaction that has the row only then (`heap_acquire_tuplock` before `XactLockTableWait` in
/// `src/backend/access/heap/heapam.c`): when the first in line goes, the next has its place, and waits on.
pub fn go_on(graph: &WaitGraph, ended: &[Party], mut freed: Vec<Party>) -> Vec<Party> {
    freed.retain(|party| !moves_up(graph, ended, *party));
    freed
}

fn moves_up(graph: &WaitGraph, ended: &[Party], party: Party) -> bool {
    let Some((line, _)) = graph.wait_of(party) else { return false };
    let first = line.holders.iter().map(|holder| holder.party).filter(|holder| ended.contains(holder));
    // The row is still another's, who does not end.
    let stays = |first: Party| {
        graph.wait_of(first).is_some_and(|(row, _)| {
            row.tag.locktype() == LockType::TransactionId
                && row.holders.iter().any(|holder| !ended.contains(&holder.party))
        })
    };
    line.tag.locktype() == LockType::Tuple && first.into_iter().any(stays)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::backend::State;
    use crate::model::lock::LockMode;
    use crate::sample::{Builder, relation};

    /// 10 has the row, 11 is the first in line, 12 and 13 are behind it.
    fn line() -> std::sync::Arc<WaitGraph> {
        let mut b = Builder::default();
        let row = relation(2001).with_page(0).with_tuple(7).with_locktype(LockType::Tuple);
        let transaction = relation(2001).with_relation(None).with_transactionid(791);
        let transaction = transaction.with_locktype(LockType::TransactionId);
        for pid in 10..=13 {
            b.session(pid, "app@web", State::Active, 9.0, "UPDATE orders SET v = 1 WHERE id = 7");
        }
        b.lock(10, transaction, LockMode::Exclusive, None);
        b.lock(11, transaction, LockMode::Share, Some(8.0));
        b.lock(11, row, LockMode::Exclusive, None);
        b.lock(12, row, LockMode::Exclusive, Some(7.0));
        b.lock(13, row, LockMode::Exclusive, Some(6.0));
        b.view().graph
    }

    #[test]
    fn who_is_next_in_line_for_a_row_waits_on_while_another_has_it() {
        let graph = line();
        let ended = |pids: &[i32]| {
            let ended: Vec<Party> = pids.iter().copied().map(Party::Backend).collect();
            let freed = graph.freed_by_all(&ended);
            let pids = |parties: Vec<Party>| parties.into_iter().map(Party::pid).collect::<Vec<_>>();
            (pids(freed.clone()), pids(go_on(&graph, &ended, freed)))
        };
        assert_eq!(ended(&[10]), (vec![11], vec![11]));
        assert_eq!(ended(&[11]), (vec![12], vec![]), "12 locks the place, and waits for 10");
        assert_eq!(ended(&[10, 11]), (vec![12], vec![12]));
        assert_eq!(ended(&[12]), (vec![], vec![]));
    }
}
