//! Tests that an insert acknowledged at level `disk` is kept: over crashes, over a full memory, over an
//! outage of the backend.

use windrow_clickhouse::ErrorCode;
use windrow_engine::{InsertError, InsertStatus, PushError, Withdrawal};

use crate::support::{numbers_of, outcomes, Answer, Gate, Machine, Told};

#[test]
fn it_is_acknowledged_when_it_is_on_the_disk() {
    Machine::new(1).live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        life.hold_the_disk();
        let keeping = life.world.keep(&shape, 1);
        tokio::pin!(keeping);
        tokio::select! {
            biased;
            _ = &mut keeping => panic!("it is not on the disk"),
            () = life.world.settle_down() => {}
        }
        assert_eq!(life.world.sink.call_count(), 0, "nothing is sent before the journal knows with whom");
        life.let_the_disk_go();
        keeping.await.unwrap();
        life.world.flush().await;
        assert_eq!(life.world.sink.stored(), [1]);
        assert_eq!((life.world.gatherer.held_bytes(), life.world.gatherer.leftovers().inserts), (0, 0));
    });
}

#[test]
fn what_was_on_its_way_goes_again_under_its_id_with_its_members() {
    for answer in [Answer::LostAfterStoring, Answer::LostBeforeStoring, Answer::Ok, Answer::NotSent] {
        let machine = Machine::new(3);
        machine.sink.answer_first([answer]);
        machine.live(async |life| {
            let shape = life.world.deduplicating_shape("t");
            life.world.sink.set_gate(Gate::Closed);
            life.world.keep_all(&shape, 0..5).await;
            life.world.sink.begun(1).await;
        });
        machine.live(async |life| {
            assert_eq!(life.world.gatherer.leftovers().inserts, 5);
            life.world.flush().await;
            assert_eq!(life.world.gatherer.leftovers().inserts, 0);
            life.world.settle_down().await;
        });
        let calls = machine.sink.calls();
        assert_eq!((calls[1].id, &calls[1].rows), (calls[0].id, &calls[0].rows), "{answer:?}");
        assert!(calls[1].destination.own_account, "nobody has its password any more");
        assert_eq!(machine.sink.stored(), [0, 1, 2, 3, 4], "{answer:?}");
        machine.live(async |life| {
            assert_eq!(life.world.gatherer.leftovers().inserts, 0, "{answer:?}, the third life");
            life.world.flush().await;
        });
        assert_eq!(machine.sink.call_count(), calls.len(), "nothing is left");
    }
}

#[test]
fn what_is_stored_does_not_come_back() {
    let machine = Machine::new(2);
    machine.live(async |life| {
        let shape = life.world.shape("t", "a");
        life.world.keep_all(&shape, 0..4).await;
        life.world.flush().await;
        life.world.settle_down().await;
    });
    machine.live(async |life| {
        life.world.flush().await;
        assert_eq!(life.world.sink.stored(), [0, 1, 2, 3]);
    });
}

#[test]
fn a_crash_while_a_batch_is_narrowed_down_stores_nothing_twice() {
    // At each of its stores: all, a half, the rest.
    for crash_at in 1..=5 {
        let machine = Machine::new(4);
        machine.sink.refuse(ErrorCode::VIOLATED_CONSTRAINT, &[2]);
        machine.live(async |life| {
            let shape = life.world.deduplicating_shape("t");
            life.world.sink.set_gate(Gate::Closed);
            life.world.keep_all(&shape, 0..4).await;
            for call in 1..crash_at {
                life.world.sink.begun(call).await;
                life.world.sink.let_one_go();
            }
            life.world.sink.begun(crash_at).await;
        });
        machine.live(async |life| {
            life.world.flush().await;
            life.world.settle_down().await;
        });
        let mut stored = machine.sink.stored();
        stored.sort_unstable();
        assert_eq!(stored, [0, 1, 3], "crash at call {crash_at}");
        let dead_letters = machine
            .dead_letters
            .kept(|dead_letter| numbers_of(dead_letter.destination.clone(), dead_letter.rows.clone()));
        assert_eq!(dead_letters, [[2]], "crash at call {crash_at}");
        machine.live(async |life| assert_eq!(life.world.gatherer.leftovers().inserts, 0));
    }
}

#[test]
fn an_insert_that_is_a_dead_letter_already_is_not_tried_again() {
    let machine = Machine::new(2);
    machine.sink.answer_first([Answer::Failed(ErrorCode::VIOLATED_CONSTRAINT)]);
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        life.world.sink.set_gate(Gate::Closed);
        life.world.keep_all(&shape, 0..2).await;
        life.world.sink.begun(1).await;
        // The dead letters are kept; that their inserts are done is not written any more.
        life.hold_the_disk();
        life.world.sink.open_gate();
        life.world.flush().await;
        assert_eq!(life.world.dead_letters.kept(|dead_letter| dead_letter.journal_id.is_some()), [true, true]);
    });
    machine.live(async |life| {
        assert_eq!(life.world.gatherer.leftovers().inserts, 0);
        life.world.flush().await;
    });
    assert_eq!(machine.sink.call_count(), 1);
    assert_eq!(machine.dead_letters.kept(|_| ()).len(), 2);
}

#[test]
fn what_was_taken_back_does_not_come_back() {
    let machine = Machine::new(u64::MAX);
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        let ticket = life.world.push_keyed(&shape, 1, 7).await;
        let _stays = life.world.push_keyed(&shape, 2, 8).await;
        assert!(matches!(ticket.withdraw().await, Withdrawal::Withdrawn { .. }));
    });
    machine.live(async |life| life.world.flush().await);
    assert_eq!(machine.sink.stored(), [2]);
}

#[test]
fn what_the_journal_can_not_forget_is_not_said_to_be_taken_back() {
    let machine = Machine::new(u64::MAX);
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        let ticket = life.world.push_keyed(&shape, 1, 7).await;
        life.world.settle_down().await;
        machine.faults.fail_to_sync(true);
        assert_eq!(ticket.withdraw().await, Withdrawal::InFlight, "a crash would bring it back");
        machine.faults.fail_to_sync(false);
    });
}

#[test]
fn what_the_journal_can_not_forget_is_not_said_to_be_refused() {
    let machine = Machine::new(1);
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        life.world.sink.set_gate(Gate::Closed);
        life.world.sink.answer_first([Answer::Refused(ErrorCode::ACCESS_DENIED)]);
        let ticket = life.world.push_keyed(&shape, 1, 7).await;
        life.world.sink.begun(1).await;
        machine.faults.fail_to_sync(true);
        life.world.sink.open_gate();
        assert_eq!(outcomes(vec![ticket]).await, [Err(Told::OutcomeUnknown)], "a crash may bring it back");
        machine.faults.fail_to_sync(false);
    });
}

#[test]
fn what_finds_no_memory_is_parked_and_comes_in_its_order() {
    let machine = cramped();
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        life.world.sink.set_gate(Gate::Closed);
        life.world.keep_all(&shape, 0..20).await;
        assert!(life.world.gatherer.held_bytes() <= 1000);
        assert_eq!(life.world.gatherer.leftovers().inserts, 20);
        // Others wait for their turn.
        let waiting = life.world.push(&shape, 20);
        tokio::pin!(waiting);
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("others were there before"),
            () = life.world.settle_down() => {}
        }
        life.world.sink.open_gate();
        let ticket = waiting.await;
        life.world.keep_all(&shape, 21..23).await;
        life.world.flush().await;
        assert_eq!(outcomes(vec![ticket]).await, [Ok(())]);
        assert_eq!(life.world.sink.stored(), (0..23).collect::<Vec<u64>>());
        assert!(life.world.sink.calls().iter().all(|call| !call.destination.own_account), "each with its own account");
        assert_eq!((life.world.gatherer.held_bytes(), life.world.gatherer.leftovers().inserts), (0, 0));
    });
}

#[test]
fn what_was_parked_survives_a_crash_in_its_order() {
    let machine = cramped();
    machine.sink.answer_first([Answer::LostAfterStoring]);
    machine.live(async |life| {
        life.world.sink.set_gate(Gate::Closed);
        life.world.keep_all(&life.world.deduplicating_shape("t"), 0..20).await;
        life.world.sink.begun(1).await;
    });
    machine.live(async |life| {
        life.world.flush().await;
        assert_eq!((life.world.gatherer.held_bytes(), life.world.gatherer.leftovers().inserts), (0, 0));
    });
    assert_eq!(machine.sink.stored(), (0..20).collect::<Vec<u64>>());
}

#[test]
fn what_an_earlier_life_left_goes_before_what_is_new() {
    let machine = Machine::new(2);
    machine.live(async |life| {
        life.world.sink.set_gate(Gate::Closed);
        life.world.keep_all(&life.world.deduplicating_shape("t"), 0..5).await;
    });
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        life.world.sink.set_gate(Gate::Closed);
        // Acknowledged while nothing of it can be stored.
        life.world.keep_all(&shape, 5..9).await;
        life.world.settle_down().await;
        life.world.sink.open_gate();
        life.world.flush().await;
    });
    let mut stored = machine.sink.stored();
    assert_eq!(stored.split_off(5), [5, 6, 7, 8]);
    stored.sort_unstable();
    assert_eq!(stored, [0, 1, 2, 3, 4]);
}

#[test]
fn who_has_no_patience_is_refused_behind_others() {
    let machine = cramped();
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        life.world.sink.set_gate(Gate::Closed);
        life.world.keep_all(&shape, 0..8).await;
        let memory = life.world.gatherer.push(&shape, life.world.insert(&shape, &[9], false)).await;
        assert_eq!(memory.err(), Some(PushError::Behind));
        life.world.sink.open_gate();
        life.world.flush().await;
        assert_eq!(life.world.sink.stored(), (0..8).collect::<Vec<u64>>());
    });
}

#[test]
fn a_full_journal_refuses_until_there_is_room() {
    let mut machine = cramped();
    machine.log.max_bytes = 128 << 10;
    // Half of what is kept for records that free room: pieces and ends of inserts sent one by one take nearly as much
    // as they do.
    machine.log.segment_bytes = 8 << 10;
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        life.world.sink.set_gate(Gate::Closed);
        let mut kept = 0;
        let refused = loop {
            match life.world.keep(&shape, kept).await {
                Ok(()) => kept += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, PushError::JournalFull { whose: "all tables", .. }), "{refused:?}");
        assert!(kept > 100, "{kept}");
        life.world.sink.open_gate();
        life.world.flush().await;
        life.world.settle_down().await;
        life.world.keep_all(&shape, kept..kept + 50).await;
        life.world.flush().await;
        assert_eq!(life.world.sink.stored(), (0..kept + 50).collect::<Vec<u64>>());
    });
}

#[test]
fn a_table_takes_its_share_of_the_journal() {
    let mut machine = Machine::new(2);
    machine.options.max_table_journal_bytes = 2000;
    machine.live(async |life| {
        let (greedy, other) = (life.world.deduplicating_shape("greedy"), life.world.deduplicating_shape("other"));
        life.world.sink.set_gate(Gate::Closed);
        let mut kept = 0;
        let refused = loop {
            match life.world.keep(&greedy, kept).await {
                Ok(()) => kept += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(refused, PushError::JournalFull { max_bytes: 2000, whose: "this table" });
        assert!(kept > 10, "{kept}");
        life.world.keep(&other, 1000).await.unwrap();
        life.world.sink.open_gate();
        life.world.flush().await;
        life.world.keep(&greedy, kept).await.unwrap();
    });
}

#[test]
fn what_can_not_be_written_is_refused_and_not_stored() {
    let machine = Machine::new(u64::MAX);
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        life.world.keep(&shape, 0).await.unwrap();
        machine.faults.fail_to_sync(true);
        let refused = life.world.keep(&shape, 1).await;
        assert!(matches!(refused, Err(PushError::NotJournaled { .. })), "{refused:?}");
        machine.faults.fail_to_sync(false);
        life.world.keep(&shape, 2).await.unwrap();
        life.world.flush().await;
        assert_eq!(life.world.sink.stored(), [0, 2]);
        assert_eq!((life.world.gatherer.held_bytes(), life.world.gatherer.leftovers().inserts), (0, 0));
    });
}

#[test]
fn a_full_disk_refuses_until_there_is_room() {
    let mut machine = cramped();
    machine.log.segment_bytes = 8 << 10;
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        life.world.sink.set_gate(Gate::Closed);
        life.world.keep(&shape, 0).await.unwrap();
        machine.faults.fill_up(true);
        let mut kept = 1;
        let refused = loop {
            match life.world.keep(&shape, kept).await {
                Ok(()) => kept += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, PushError::NotJournaled { .. }), "{refused:?}");
        // What is in the journal can be stored all the same.
        life.world.sink.open_gate();
        life.world.flush().await;
        assert_eq!(life.world.sink.stored(), (0..kept).collect::<Vec<u64>>());
        machine.faults.fill_up(false);
        life.world.keep(&shape, kept).await.unwrap();
    });
}

/// Endless refusals take no room that is kept for the ends of other inserts.
#[test]
fn however_many_a_full_disk_refuses_what_it_has_is_stored() {
    for mut machine in [Machine::new(2), Machine::new(u64::MAX), cramped()] {
        machine.log.segment_bytes = 8 << 10;
        let (kept, keyed) = machine.live(async |life| {
            let shape = life.world.deduplicating_shape("t");
            life.world.sink.set_gate(Gate::Closed);
            life.world.keep(&shape, 0).await.unwrap();
            machine.faults.fill_up(true);
            let mut kept = 1;
            while life.world.keep(&shape, kept).await.is_ok() {
                kept += 1;
            }
            let held_bytes = life.world.gatherer.held_bytes();
            for row in 0..2000 {
                life.world.keep(&shape, 10_000 + row).await.expect_err("the disk is full");
            }
            assert_eq!(life.world.gatherer.held_bytes(), held_bytes, "what is refused holds nothing");
            // Unless what is stored meanwhile has made room, nothing of it would be known after a crash: it is told so, and
            // holds up nobody.
            life.world.sink.open_gate();
            let mut keyed = life.world.push_keyed(&shape, 20_000, 7).await;
            let waits = life.world.push(&shape, 20_001).await;
            life.world.flush().await;
            let told = keyed.outcome().await;
            assert!(matches!(told, Ok(()) | Err(InsertError::Unreachable(_))), "{told:?}");
            assert_eq!(outcomes(vec![waits]).await, [Ok(())]);
            (kept, told.is_ok().then_some(20_000))
        });
        assert!(kept > 10, "{kept}");
        let mut stored = machine.sink.stored();
        stored.sort_unstable();
        assert_eq!(stored, (0..kept).chain(keyed).chain([20_001]).collect::<Vec<u64>>());
        machine
            .live(async |life| assert_eq!(life.world.gatherer.leftovers().inserts, 0, "all of it is said to be done"));
    }
}

/// An insert that was sent could not be taken back while its outcome is unknown, and its sender would wait as
/// long.
#[test]
fn what_is_not_on_the_disk_is_not_sent() {
    let machine = Machine::new(1);
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        life.world.keep(&shape, 0).await.unwrap();
        machine.faults.fill_up(true);
        let mut kept = 1;
        while life.world.keep(&shape, kept).await.is_ok() {
            kept += 1;
        }
        life.world.flush().await;
        life.world.sink.answer(|_, _| Answer::LostBeforeStoring);
        let keeping = life.world.keep(&shape, 1000);
        let refused = tokio::time::timeout(std::time::Duration::from_secs(1), keeping).await;
        assert!(matches!(refused, Ok(Err(PushError::NotJournaled { .. }))), "{refused:?}");
        assert!(life.world.sink.calls().iter().all(|call| !call.rows.contains(&1000)));
    });
}

#[test]
fn what_can_not_be_parked_is_refused() {
    let machine = cramped();
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        life.world.sink.set_gate(Gate::Closed);
        life.world.keep_all(&shape, 0..8).await;
        machine.faults.fail_to_sync(true);
        let refused = life.world.keep(&shape, 8).await;
        assert!(matches!(refused, Err(PushError::NotJournaled { .. })), "{refused:?}");
        machine.faults.fail_to_sync(false);
        life.world.sink.open_gate();
        life.world.keep(&shape, 9).await.unwrap();
        life.world.flush().await;
        assert_eq!(life.world.sink.stored(), [0, 1, 2, 3, 4, 5, 6, 7, 9]);
        assert_eq!((life.world.gatherer.held_bytes(), life.world.gatherer.leftovers().inserts), (0, 0));
    });
}

#[test]
fn a_disk_that_can_not_be_read_now_is_read_later() {
    let machine = Machine::new(2);
    machine.live(async |life| {
        life.world.sink.set_gate(Gate::Closed);
        life.world.keep_all(&life.world.deduplicating_shape("t"), 0..6).await;
    });
    machine.live(async |life| {
        machine.faults.fail_to_read(true);
        life.world.settle_down().await;
        machine.faults.fail_to_read(false);
        life.world.flush().await;
    });
    let mut stored = machine.sink.stored();
    stored.sort_unstable();
    assert_eq!(stored, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn the_end_says_what_it_leaves_and_the_next_start_stores_it() {
    let machine = cramped();
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        life.world.sink.answer(|_, _| Answer::NotSent);
        life.world.leave(&shape, 100).await;
        life.world.keep_all(&shape, 0..8).await;
        let end = life.world.gatherer.shut_down(std::time::Duration::from_secs(5)).await;
        assert_eq!((end.left_in_journal.inserts, end.lost_inserts), (8, 1));
        assert!(end.left_in_journal.bytes > 8 * 30);
        assert_eq!(life.world.keep(&shape, 9).await, Err(PushError::ShuttingDown));
    });
    machine.sink.answer(|_, _| Answer::Ok);
    machine.live(async |life| {
        let end = life.world.gatherer.shut_down(std::time::Duration::from_secs(5)).await;
        assert_eq!((end.left_in_journal.inserts, end.lost_inserts), (0, 0));
        let logged = life.world.logged();
        assert_eq!(logged.len(), 8);
        assert!(logged.iter().all(|(_, status)| *status == InsertStatus::Ok));
    });
    assert_eq!(machine.sink.stored(), (0..8).collect::<Vec<u64>>());
}

/// Returns a machine with room for a few inserts in memory.
fn cramped() -> Machine {
    let mut machine = Machine::new(2);
    machine.options.max_buffer_bytes = 1000;
    machine.options.max_table_bytes = 1000;
    machine
}

/// Inserts that are refused behind others do not count as a turn.
#[test]
fn who_waits_for_its_turn_is_not_let_past_by_refusals() {
    let mut machine = cramped();
    machine.options.max_table_journal_bytes = 4000;
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        life.world.sink.set_gate(Gate::Closed);
        let mut kept = 0;
        while life.world.keep(&shape, kept).await.is_ok() {
            kept += 1;
        }
        let waiting = life.world.push(&shape, 1000);
        tokio::pin!(waiting);
        machine.faults.fail_to_sync(true);
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("others were there before"),
            () = async {
                for row in 0..2 * kept {
                    life.world.keep(&shape, 2000 + row).await.expect_err("there is no room");
                }
                life.world.settle_down().await;
            } => {}
        }
        machine.faults.fail_to_sync(false);
        life.world.sink.open_gate();
        let ticket = waiting.await;
        life.world.flush().await;
        assert_eq!(outcomes(vec![ticket]).await, [Ok(())]);
        assert_eq!(life.world.sink.stored(), (0..kept).chain([1000]).collect::<Vec<u64>>());
    });
}

/// The insert would be unknown after a crash, and a client that sends it again would have it stored twice.
#[test]
fn an_insert_with_a_key_whose_record_could_not_be_written_is_not_sent() {
    let machine = Machine::new(100);
    machine.live(async |life| {
        let shape = life.world.deduplicating_shape("t");
        machine.faults.fail_to_sync(true);
        let mut lost = life.world.push_keyed(&shape, 1, 7).await;
        life.world.settle_down().await;
        machine.faults.fail_to_sync(false);
        let mut kept = life.world.push_keyed(&shape, 2, 8).await;
        life.world.flush().await;
        assert!(matches!(lost.outcome().await, Err(InsertError::Unreachable(_))));
        assert_eq!(kept.outcome().await, Ok(()));
        assert_eq!(life.world.sink.stored(), [2]);
        assert_eq!((life.world.gatherer.held_bytes(), life.world.gatherer.leftovers().inserts), (0, 0));
    });
}
