//! Tests of the promises of [`Sink`] that the gatherer relies on, for any sink: one test for each promise.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use windrow_clickhouse::{Credentials, ErrorCode};
use windrow_columns::{read_json_each_row, ColumnSpec, DataType, DefaultKind, ReadPlan, ReadSettings, Rows};
use windrow_engine::sink::{Again, Batch, BatchId, Destination, Form, Sink, StoreError};

/// A store under test. Its tables have a column `a` of 64-bit integers, whose stored values are compared.
pub trait Store {
    type Sink: Sink;

    fn name(&self) -> &'static str;
    fn sink(&self) -> Arc<Self::Sink>;
    /// Returns a sink whose database can't be reached.
    fn away(&self) -> Self::Sink;
    fn credentials(&self) -> Credentials;
    /// Makes an empty table. A guarded one refuses values of `a` from 1,000 on; one with defaults has a text
    /// `b` that is `x` if it is not given.
    fn create(&self, table: &str, kind: Kind) -> impl Future<Output = ()>;
    /// Returns each value of `a`, and how often it is there.
    fn values(&self, table: &str) -> impl Future<Output = BTreeMap<i64, u64>>;
    /// Returns how many rows have `b = 'x'`.
    fn defaults(&self, table: &str) -> impl Future<Output = u64>;
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Plain,
    Guarded,
    Defaults,
}

pub fn batch(id: u128, table: &str, credentials: Credentials, values: impl IntoIterator<Item = i64>) -> Batch {
    let spec = ColumnSpec { name: "a".into(), data_type: DataType::Int64, default_kind: DefaultKind::None };
    let text: String = values.into_iter().map(|value| format!("{{\"a\":{value}}}\n")).collect();
    let plan = ReadPlan::new(vec![spec], ReadSettings::default());
    let block = read_json_each_row(text.as_bytes(), &plan).expect("plain numbers").block;
    let destination = Destination {
        database: "default".into(),
        table: table.into(),
        columns: vec!["a".into()],
        form: Form::Native { types: vec![DataType::Int64] },
        credentials,
        own_account: false,
        roles: vec![],
        quota_key: String::new(),
        shard: None,
        settings: vec![],
        deduplicates: true,
        is_replicated: false,
        has_views: false,
        hands_on: false,
        partitioning: None,
    };
    Batch {
        id: BatchId(id),
        destination: Arc::new(destination),
        rows: Rows::Parsed(block),
        again: Again::Never,
        traceparent: None,
    }
}

pub async fn all(store: &impl Store) {
    what_is_stored_is_visible_at_once(store).await;
    what_was_not_sent_says_so(store).await;
    what_is_refused_leaves_nothing(store).await;
    a_repeat_stores_nothing(store).await;
    repeats_at_once_store_one_copy(store).await;
    a_repeat_is_known_whatever_came_in_between(store).await;
    a_call_that_was_dropped_is_repeated_once(store).await;
    columns_that_are_not_given_take_their_defaults(store).await;
    many_batches_at_once_are_all_stored(store).await;
}

fn id() -> u128 {
    (u128::from(fastrand::u64(..)) << 64) | u128::from(fastrand::u64(..))
}

fn once(values: impl IntoIterator<Item = i64>) -> BTreeMap<i64, u64> {
    values.into_iter().map(|value| (value, 1)).collect()
}

async fn what_is_stored_is_visible_at_once(store: &impl Store) {
    store.create("visible", Kind::Plain).await;
    for round in 0..5 {
        let batch = batch(id(), "visible", store.credentials(), [2 * round, 2 * round + 1]);
        let stored = store.sink().store(&batch).await.expect("nothing is wrong with it");
        assert!(stored.written_rows.is_none_or(|rows| rows == 2), "{}: {stored:?}", store.name());
        assert_eq!(store.values("visible").await, once(0..2 * round + 2), "{}", store.name());
    }
}

async fn what_was_not_sent_says_so(store: &impl Store) {
    store.create("unsent", Kind::Plain).await;
    let batch = batch(id(), "unsent", store.credentials(), [1]);
    let error = store.away().store(&batch).await.expect_err("nobody is there");
    assert!(matches!(error, StoreError::NotSent(_)), "{}: {error}", store.name());
    assert_eq!(store.values("unsent").await, once([]), "{}", store.name());
}

async fn what_is_refused_leaves_nothing(store: &impl Store) {
    store.create("guarded", Kind::Guarded).await;
    // A few, and so many that some are written before the bad one is seen.
    for rows in [3, 300_000] {
        let values = (0..rows - 1).map(|n| n % 1000).chain([1000]);
        let batch = batch(id(), "guarded", store.credentials(), values);
        let error = store.sink().store(&batch).await.expect_err("one row violates the constraint");
        let StoreError::Refused(exception) = error else { panic!("{}: {error}", store.name()) };
        assert_eq!(exception.code, ErrorCode::VIOLATED_CONSTRAINT, "{}: {exception}", store.name());
        assert_eq!(store.values("guarded").await, once([]), "{}", store.name());
    }
    let good = batch(id(), "guarded", store.credentials(), [1, 2]);
    store.sink().store(&good).await.expect("the others may go in");
    assert_eq!(store.values("guarded").await, once([1, 2]), "{}", store.name());
    let nowhere = batch(id(), "nowhere", store.credentials(), [1]);
    let error = store.sink().store(&nowhere).await.expect_err("there is no such table");
    assert!(
        matches!(&error, StoreError::Refused(exception) if exception.code == ErrorCode::UNKNOWN_TABLE),
        "{}: {error}",
        store.name()
    );
}

async fn a_repeat_stores_nothing(store: &impl Store) {
    store.create("repeated", Kind::Plain).await;
    let batch = batch(id(), "repeated", store.credentials(), [1, 2, 3]);
    for _ in 0..3 {
        store.sink().store(&batch).await.expect("a repeat is no error");
    }
    assert_eq!(store.values("repeated").await, once([1, 2, 3]), "{}", store.name());
}

async fn a_repeat_is_known_whatever_came_in_between(store: &impl Store) {
    store.create("between", Kind::Plain).await;
    let first = batch(id(), "between", store.credentials(), [0]);
    store.sink().store(&first).await.expect("nothing is wrong with it");
    for value in 1..20 {
        let other = batch(id(), "between", store.credentials(), [value]);
        store.sink().store(&other).await.expect("nothing is wrong with it");
    }
    store.sink().store(&first).await.expect("a repeat is no error");
    assert_eq!(store.values("between").await, once(0..20), "{}", store.name());
}

async fn repeats_at_once_store_one_copy(store: &impl Store) {
    store.create("together", Kind::Plain).await;
    for round in 0..10 {
        let batch = Arc::new(batch(id(), "together", store.credentials(), [round]));
        let calls: Vec<_> = (0..6)
            .map(|_| {
                let (sink, batch) = (store.sink(), batch.clone());
                tokio::spawn(async move { sink.store(&batch).await })
            })
            .collect();
        let mut stored = 0;
        for call in calls {
            match call.await.expect("no panic") {
                Ok(_) => stored += 1,
                Err(StoreError::StillRunning(_) | StoreError::Unknown(_)) => {}
                Err(error) => panic!("{}: {error}", store.name()),
            }
        }
        assert!(stored > 0, "{}: somebody stored it", store.name());
    }
    assert_eq!(store.values("together").await, once(0..10), "{}", store.name());
}

/// Repeats a batch until it is stored: an attempt of an earlier call may still run.
async fn store_at_last<S: Store>(store: &S, batch: &Batch) {
    loop {
        match store.sink().store(batch).await {
            Ok(_) => return,
            Err(StoreError::StillRunning(_) | StoreError::Unknown(_) | StoreError::NotSent(_)) => {}
            Err(error) => panic!("{}: {error}", store.name()),
        }
        tokio::task::yield_now().await;
    }
}

async fn a_call_that_was_dropped_is_repeated_once(store: &impl Store) {
    store.create("dropped", Kind::Plain).await;
    fastrand::seed(20_261);
    for round in 0..30 {
        let batch = batch(id(), "dropped", store.credentials(), [round]);
        let patience = std::time::Duration::from_micros(fastrand::u64(0..6000));
        let sink = store.sink();
        let _ = tokio::time::timeout(patience, sink.store(&batch)).await;
        store_at_last(store, &batch).await;
    }
    assert_eq!(store.values("dropped").await, once(0..30), "{}", store.name());
}

async fn columns_that_are_not_given_take_their_defaults(store: &impl Store) {
    store.create("lacking", Kind::Defaults).await;
    let batch = batch(id(), "lacking", store.credentials(), [1, 2, 3]);
    store.sink().store(&batch).await.expect("nothing is wrong with it");
    assert_eq!(store.values("lacking").await, once([1, 2, 3]), "{}", store.name());
    assert_eq!(store.defaults("lacking").await, 3, "{}", store.name());
}

async fn many_batches_at_once_are_all_stored(store: &impl Store) {
    store.create("many", Kind::Plain).await;
    let calls: Vec<_> = (0..40)
        .map(|number| {
            let (sink, batch) = (store.sink(), batch(id(), "many", store.credentials(), number * 10..number * 10 + 10));
            tokio::spawn(async move { sink.store(&batch).await.map(|_| ()) })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic").expect("nothing is wrong with it");
    }
    assert_eq!(store.values("many").await, once(0..400), "{}", store.name());
}
