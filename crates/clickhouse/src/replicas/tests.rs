use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use super::health::{GONE_AFTER, TABLE_IS_READ_ONLY, TOO_MANY_SIMULTANEOUS_QUERIES};
use super::order::NEAR;
use super::*;
use crate::exception::Exception;

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
    replicas.refused(ReplicaId(0), into_t, &Exception::new(TABLE_IS_READ_ONLY, "Table is in readonly mode", ""));
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
        let exception = Exception::new(TOO_MANY_SIMULTANEOUS_QUERIES, text, "");
        replicas.refused(ReplicaId(id), Purpose::Statement, &exception);
    };
    refused(0, "Too many simultaneous queries for user ann. Current: 3, maximum: 3");
    assert_eq!(ports(&replicas, Purpose::Statement), [1, 2, 3]);
    refused(0, "Too many simultaneous queries. : while executing 'FUNCTION throwIf(1, 'x', 202)'");
    refused(0, "Received from b:9000. Too many simultaneous queries. Maximum: 100");
    assert_eq!(ports(&replicas, Purpose::Statement), [1, 2, 3]);
    refused(0, "Too many simultaneous queries. Maximum: 100");
    assert_eq!(ports(&replicas, Purpose::Statement), [2, 3, 1]);
    let exception = Exception::new(60, "Table d.t does not exist", "");
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
    let first = Use::begin(replicas.clone(), ReplicaId(0));
    let _second = Use::begin(replicas.clone(), ReplicaId(1));
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
    let there = There { of: Some((replicas.clone(), ReplicaId(0))) };
    let mut waiting = std::pin::pin!(there.wait_for(std::future::pending::<()>()));
    assert!(is_waiting(waiting.as_mut()).await);
    let long_ago = Instant::now().checked_sub(GONE_AFTER).expect("the machine is not that young");
    replicas.list[0].lock().down = Some((long_ago, String::new()));
    replicas.note_down(ReplicaId(0), &refused());
    assert_eq!(waiting.await, None);
    assert_eq!(there.wait_for(std::future::pending::<()>()).await, None, "nor if one comes later");
}
