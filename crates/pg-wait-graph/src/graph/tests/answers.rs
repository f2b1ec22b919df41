use super::script::{edges, graph, names, roots};
use crate::graph::WaitGraph;

fn order(graph: &WaitGraph) -> String {
    let waiters: Vec<_> = graph.queues[0].waiters.iter().map(|waiter| waiter.party).collect();
    names(&waiters)
}

fn confirmed(graph: &WaitGraph) -> String {
    let confirmed = graph.queues[0].waiters.iter().filter(|waiter| waiter.exact.is_some());
    names(&confirmed.map(|waiter| waiter.party).collect::<Vec<_>>())
}

const QUEUE: &str = "10 holds A X; 11 waits A X @1; 12 waits A X @2; 13 waits A X @3;";

fn with(answers: &str) -> WaitGraph {
    graph(&format!("{QUEUE} {answers}"))
}

#[test]
fn an_answer_as_inferred_confirms() {
    let graph = with("12 @2 says 10 11");
    assert_eq!((order(&graph).as_str(), confirmed(&graph).as_str()), ("11 12 13", "12"));
    assert_eq!(edges(&graph), "11-10 12-10 12=11 13-10 13~11 13~12");
}

#[test]
fn an_answer_that_differs_moves_its_waiter() {
    let graph = with("13 @3 says 10");
    assert_eq!((order(&graph).as_str(), confirmed(&graph).as_str()), ("13 11 12", "13"));
    assert_eq!(edges(&graph), "11-10 11~13 12-10 12~11 12~13 13-10");
    assert_eq!(names(&graph.granted_by(&[crate::graph::Party::Backend(10)])), "13");

    let graph = with("11 @1 says 10 12 13; 12 @2 says 13 10 10");
    assert_eq!((order(&graph).as_str(), confirmed(&graph).as_str()), ("13 12 11", "12 11"));
}

#[test]
fn an_answer_with_other_holders_is_not_accepted() {
    for answer in ["13 @3 says 9", "13 @3 says 11 12", "13 @3 says", "13 @3 says 10 0", "13 @3 says 10 99"] {
        let graph = with(answer);
        assert_eq!((order(&graph).as_str(), confirmed(&graph).as_str()), ("11 12 13", ""), "{answer}");
    }
}

#[test]
fn an_answer_about_another_wait_is_not_accepted() {
    for answer in ["13 @2 says 10", "99 @3 says 10", "10 @3 says 13"] {
        let graph = with(answer);
        assert_eq!((order(&graph).as_str(), confirmed(&graph).as_str()), ("11 12 13", ""), "{answer}");
    }
}

#[test]
fn answers_that_contradict_each_other_are_not_accepted() {
    let each_behind = with("12 @2 says 10 11 13; 13 @3 says 10 11 12; 11 @1 says 10");
    assert_eq!((order(&each_behind).as_str(), confirmed(&each_behind).as_str()), ("11 12 13", "11"));
    let each_ahead = with("12 @2 says 10; 13 @3 says 10");
    assert_eq!((order(&each_ahead).as_str(), confirmed(&each_ahead).as_str()), ("11 12 13", ""));
    let twice = with("13 @3 says 10; 13 @3 says 10 11");
    assert_eq!((order(&twice).as_str(), confirmed(&twice).as_str()), ("11 12 13", ""));
}

#[test]
fn answers_that_no_order_satisfies_are_not_accepted() {
    let round = "11 @1 says 10 12; 12 @2 says 10 13; 13 @3 says 10 11";
    let graph = with(round);
    assert_eq!((order(&graph).as_str(), confirmed(&graph).as_str()), ("11 12 13", ""));
}

#[test]
fn a_prepared_transaction_is_called_0() {
    let text = "p7 holds rel16 RX; 10 holds rel16 RX; 11 waits rel16 S @1; 12 waits rel16 RX @2;";
    let good = graph(&format!("{text} 11 @1 says 0 10; 12 @2 says 11"));
    assert_eq!(confirmed(&good), "11 12");
    assert_eq!(names(good.queues[0].waiters[0].exact.as_ref().unwrap()), "10 p7");
    assert_eq!(confirmed(&graph(&format!("{text} 11 @1 says 10"))), "");
}

#[test]
fn an_answer_may_name_a_leader_for_each_of_its_workers() {
    let text = "10 holds rel16 AS; 21 holds rel16 AS; 22 holds rel16 AS; 11 waits rel16 AX @1;";
    let graph = graph(&format!("{text} 21 under 10; 22 under 10; 11 @1 says 10 10 10"));
    assert_eq!((edges(&graph).as_str(), confirmed(&graph).as_str()), ("11-10", "11"));
}

#[test]
fn hidden_workers_are_known_by_the_answer() {
    let text = "10 holds rel16 AS; 21 holds rel16 AS; 22 holds rel16 AS; 11 waits rel16 AX @1;
                21 holds rel17 AS; 12 waits rel17 AX @2; 10 hidden; 21 hidden; 22 hidden; 11 hidden;";
    let blind = graph(text);
    assert_eq!(edges(&blind), "11-10 11-21 11-22 12-21");
    let told = graph(&format!("{text} 11 @1 says 10 10 10"));
    assert_eq!(edges(&told), "11-10 12-10");
    assert_eq!(roots(&told), "10:2/2");
    assert_eq!(confirmed(&told), "11");
    for other in ["11 @1 says 10 10", "11 @1 says 10", "11 @9 says 10 10 10", "11 @1 says 9 9 9"] {
        assert_eq!(edges(&graph(&format!("{text} {other}"))), edges(&blind), "{other}");
    }
}

#[test]
fn the_answer_for_a_group_that_waits_twice_is_left_alone() {
    let text = "10 holds A X; 11 waits A X @1; 21 waits A X @2; 21 under 11; 12 waits A X @3;";
    let graph = graph(&format!("{text} 11 @1 says 10 12; 12 @3 says 10"));
    assert_eq!(order(&graph), "11 11 12");
    assert_eq!(confirmed(&graph), "");
}
