use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use super::health::GONE_AFTER;
use super::order::NEAR;
use super::*;
use crate::exception::{ErrorCode, Exception};

fn three(choice: Choice) -> Replicas {
    let endpoint = |port: u16| Endpoint::parse(&format!("http://localhost:{port}")).unwrap();
    Replicas::new((1..=3).map(endpoint).collect(), choice, &ClientOptions::default()).unwrap()
}

fn ports(replicas: &Replicas, purpose: Purpose) -> Vec<u16> {
    replicas.order(purpose).into_iter().map(|id| replicas.endpoint(id).port).collect()
}

async fn is_waiting<T>(mut future: Pin<&mut impl Future<Output = T>>) -> bool {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

fn refused() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

#[test]
fn who_does_not_answer_is_asked_last_until_it_does() {
    let replicas = three(Choice::InOrder);
    assert_eq!(ports(&replicas, Purpose::Statement), [1, 2, 3]);
    replicas.failed(ReplicaId(0), &refused());
    assert_eq!(ports(&replicas, Purpose::Statement), [2, 3, 1]);
    assert_eq!(replicas.health()[0].error.as_deref(), Some("connection refused"));
    replicas.note_up(ReplicaId(0), NEAR);
    assert_eq!(ports(&replicas, Purpose::Question), [1, 2, 3]);
}

#[test]
fn a_table_that_is_read_only_gets_no_inserts_until_it_stores_one() {
    let replicas = three(Choice::InOrder);
    let (into_t, into_u) = (Purpose::insert_into("d", "t"), Purpose::insert_into("d", "u"));
    replicas.refused(
        ReplicaId(0),
        into_t,
        &Exception::new(ErrorCode::TABLE_IS_READ_ONLY, "Table is in readonly mode", ""),
    );
    assert_eq!(ports(&replicas, into_t), [2, 3, 1]);
    for same in [Purpose::forwarded_into("d", "t"), Purpose::probe_of("d", "t")] {
        assert_eq!(ports(&replicas, same), [2, 3, 1]);
    }
    for other in [into_u, Purpose::Statement] {
        assert_eq!(ports(&replicas, other), [1, 2, 3]);
    }
    assert_eq!(replicas.health()[0].read_only_tables, 1);
    replicas.did(ReplicaId(0), into_t);
    assert_eq!(ports(&replicas, into_t), [1, 2, 3]);
}

#[test]
fn who_has_too_much_to_do_is_left_alone_unless_it_is_one_user_who_has() {
    let replicas = three(Choice::InOrder);
    let refused = |id: u16, text: &str| {
        let exception = Exception::new(ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES, text, "");
        replicas.refused(ReplicaId(id), Purpose::Statement, &exception);
    };
    refused(0, "Too many simultaneous queries for user ann. Current: 3, maximum: 3");
    assert_eq!(ports(&replicas, Purpose::Statement), [1, 2, 3]);
    refused(0, "Too many simultaneous queries. : while executing 'FUNCTION throwIf(1, 'x', 202)'");
    refused(0, "Received from b:9000. Too many simultaneous queries. Maximum: 100");
    assert_eq!(ports(&replicas, Purpose::Statement), [1, 2, 3]);
    refused(0, "Too many simultaneous queries. Maximum: 100");
    assert_eq!(ports(&replicas, Purpose::Statement), [2, 3, 1]);
    let exception = Exception::new(ErrorCode::UNKNOWN_TABLE, "Table d.t does not exist", "");
    replicas.refused(ReplicaId(1), Purpose::insert_into("d", "t"), &exception);
    assert_eq!(ports(&replicas, Purpose::Statement), [2, 3, 1], "the table is missing, the replica is not");
}

#[test]
fn who_is_drained_is_asked_nothing() {
    let replicas = three(Choice::InOrder);
    assert!(replicas.drain(ReplicaId(1), true));
    assert_eq!(ports(&replicas, Purpose::insert_into("d", "t")), [1, 3]);
    assert_eq!(ports(&replicas, Purpose::Only(ReplicaId(1))), [] as [u16; 0]);
    assert!(replicas.drain(ReplicaId(1), false));
    assert_eq!(ports(&replicas, Purpose::Only(ReplicaId(1))), [2]);
    assert!(replicas.drain(ReplicaId(0), true) && replicas.drain(ReplicaId(2), true));
    assert!(!replicas.drain(ReplicaId(1), true), "nobody would be left");
    assert_eq!(ports(&replicas, Purpose::Statement), [2]);
}

#[test]
fn a_session_goes_on_at_a_drained_replica() {
    let replicas = three(Choice::RoundRobin);
    assert!(replicas.drain(ReplicaId(1), true));
    assert_eq!(ports(&replicas, Purpose::InSession(ReplicaId(1))), [2]);
    assert_eq!(ports(&replicas, Purpose::InOrder), [1, 3]);
}

#[test]
fn each_has_its_turn() {
    let replicas = three(Choice::RoundRobin);
    let firsts: Vec<u16> = (0..6).map(|_| ports(&replicas, Purpose::insert_into("d", "t"))[0]).collect();
    assert_eq!(firsts, [1, 2, 3, 1, 2, 3]);
    assert_eq!(ports(&replicas, Purpose::Question), [1, 2, 3]);
}

#[test]
fn beside_a_slow_one_stands_the_next_that_is_well() {
    let replicas = three(Choice::RoundRobin);
    let beside = |id: u16| replicas.beside(ReplicaId(id)).map(|id| replicas.endpoint(id).port);
    assert_eq!((beside(0), beside(1)), (Some(2), Some(1)));
    assert_eq!(ports(&replicas, Purpose::Statement)[0], 1, "nobody has lost a turn by that");
    replicas.failed(ReplicaId(1), &refused());
    assert_eq!(beside(0), Some(3));
    assert!(replicas.drain(ReplicaId(2), true));
    assert_eq!(beside(0), None, "who is down is no help");
}

#[test]
fn the_least_loaded_comes_first() {
    let replicas = Arc::new(three(Choice::LeastLoaded));
    let first = InflightRequest::begin(replicas.clone(), ReplicaId(0));
    let _second = InflightRequest::begin(replicas.clone(), ReplicaId(1));
    assert_eq!(ports(&replicas, Purpose::insert_into("d", "t")), [3, 1, 2]);
    drop(first);
    assert_eq!(ports(&replicas, Purpose::insert_into("d", "t")), [1, 3, 2]);
}

#[test]
fn the_nearest_comes_first_and_those_as_near_in_order() {
    let replicas = three(Choice::Nearest);
    replicas.note_up(ReplicaId(0), Duration::from_millis(20));
    replicas.note_up(ReplicaId(1), Duration::from_micros(400));
    replicas.note_up(ReplicaId(2), Duration::from_micros(90));
    assert_eq!(ports(&replicas, Purpose::insert_into("d", "t")), [2, 3, 1]);
}

fn endpoint(port: u16) -> Endpoint {
    Endpoint::parse(&format!("http://localhost:{port}")).unwrap()
}

/// Makes replicas by their ports, priorities and weights, as an SRV record would name them.
fn named(choice: Choice, targets: &[(u16, u16, u16)]) -> Replicas {
    let replicas = Replicas::named_by(endpoint(99), choice, &ClientOptions::default()).unwrap();
    name(&replicas, targets);
    replicas
}

fn name(replicas: &Replicas, targets: &[(u16, u16, u16)]) {
    let target = |&(port, priority, weight)| Target { endpoint: endpoint(port), priority, weight };
    replicas.name(targets.iter().map(target).collect()).unwrap();
}

#[test]
fn who_is_named_no_more_gets_nothing_new_but_what_it_alone_can_do() {
    let replicas = named(Choice::InOrder, &[]);
    assert_eq!(ports(&replicas, Purpose::Statement), [] as [u16; 0]);
    assert_eq!(replicas.to_string(), "http://localhost:99");
    assert!(replicas.all_drained(Purpose::First).to_string().contains("no replica is named"));
    name(&replicas, &[(1, 0, 0), (2, 0, 0)]);
    let first = replicas.order(Purpose::Statement)[0];
    let insert = Purpose::insert_into("d", "t");
    assert_eq!((ports(&replicas, insert), ports(&replicas, Purpose::First)), (vec![1, 2], vec![1]));
    name(&replicas, &[(3, 0, 0), (2, 0, 0)]);
    assert_eq!(ports(&replicas, insert), [3, 2]);
    assert_eq!(ports(&replicas, Purpose::Only(first)), [] as [u16; 0]);
    assert_eq!(ports(&replicas, Purpose::InSession(first)), [1], "a session goes on");
    assert_eq!(ports(&replicas, Purpose::First), [1], "tables that only it has wait for it");
    assert!(replicas.is_first_passed_over());
    name(&replicas, &[(1, 0, 0)]);
    assert_eq!(replicas.order(Purpose::Statement), [first], "it is the one that it was");
    assert!(!replicas.is_first_passed_over());
}

#[test]
fn higher_priorities_are_spare_and_weights_are_shares() {
    let replicas = named(Choice::RoundRobin, &[(1, 1, 30), (2, 1, 10), (3, 2, 50), (4, 2, 50)]);
    let mut firsts = [0; 5];
    for _ in 0..400 {
        let order = ports(&replicas, Purpose::Statement);
        assert!(order[2..].iter().all(|port| *port > 2), "{order:?}");
        firsts[usize::from(order[0])] += 1;
    }
    assert!((295..=305).contains(&firsts[1]) && (95..=105).contains(&firsts[2]), "{firsts:?}");
    for id in replicas.ids().into_iter().take(2) {
        replicas.failed(id, &refused());
    }
    assert!(ports(&replicas, Purpose::Statement)[0] > 2);
}

#[test]
fn who_has_more_weight_bears_more() {
    let replicas = Arc::new(named(Choice::LeastLoaded, &[(1, 0, 30), (2, 0, 10)]));
    let mut begun = Vec::new();
    let mut counts = [0; 3];
    for _ in 0..40 {
        let id = replicas.order(Purpose::Statement)[0];
        counts[usize::from(replicas.endpoint(id).port)] += 1;
        begun.push(InflightRequest::begin(replicas.clone(), id));
    }
    assert_eq!(counts, [0, 30, 10]);
}

#[tokio::test]
async fn a_server_alone_is_waited_for() {
    let endpoint = Endpoint::parse("http://localhost:1").unwrap();
    let alone = Replicas::new(vec![endpoint], Choice::InOrder, &ClientOptions::default()).unwrap();
    alone.failed(ReplicaId::FIRST, &refused());
    assert!(alone.health()[0].is_up, "nobody asks how it does");
    assert!(is_waiting(std::pin::pin!(alone.wait_until_gone(ReplicaId::FIRST))).await);
}

#[tokio::test]
async fn who_is_gone_is_not_waited_for_any_more() {
    let replicas = Arc::new(three(Choice::InOrder));
    replicas.note_down(ReplicaId(0), &refused());
    let there = ReplicaWatch { of: Some((replicas.clone(), ReplicaId(0))) };
    let mut waiting = std::pin::pin!(there.wait_for(std::future::pending::<()>()));
    assert!(is_waiting(waiting.as_mut()).await);
    let long_ago = Instant::now().checked_sub(GONE_AFTER).expect("the machine is not that young");
    replicas.replica(ReplicaId(0)).lock().down = Some((long_ago, String::new()));
    replicas.note_down(ReplicaId(0), &refused());
    assert_eq!(waiting.await, None);
    assert_eq!(there.wait_for(std::future::pending::<()>()).await, None, "nor if one comes later");
}
