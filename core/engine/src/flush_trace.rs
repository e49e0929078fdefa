//! Traces of flushes: each flush has a trace of its own, linked with the inserts that it stores.
//!
//! An insert's own trace has the span `gather`, from its arrival in the buffer until the batch is sealed,
//! with a link to the flush. The flush links back, and has a span `store` for each attempt, which the sink
//! passes on to ClickHouse.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::trace::{Kind, Span, SpanContext, Tracer};

use crate::insert::InsertError;
use crate::member::Member;
use crate::settle::Settled;
use crate::sink::{BatchId, StoreError};
use crate::table::Sealed;

/// Largest number of links in a flush's span, which is OpenTelemetry's usual limit. Links beyond it are
/// counted.
const MAX_LINKS: usize = 128;

pub(crate) struct FlushTrace {
    tracer: Arc<Tracer>,
    context: SpanContext,
    started: SystemTime,
    links: Vec<SpanContext>,
    dropped_links: u32,
    inserts: u64,
    rows: u64,
}

/// The span of one attempt: the time that a batch is at the sink.
pub(crate) struct AttemptTrace {
    pub(crate) context: SpanContext,
    started: SystemTime,
}

impl FlushTrace {
    /// Begins a trace. Returns `None` if there is no tracer, or none of the inserts is traced.
    pub(crate) fn begin(tracer: Option<&Arc<Tracer>>, members: &[Member]) -> Option<FlushTrace> {
        let tracer = tracer?;
        let mut traced = members.iter().filter_map(Member::trace);
        let links: Vec<SpanContext> = traced.by_ref().take(MAX_LINKS).cloned().collect();
        let dropped_links = traced.count() as u32;
        (!links.is_empty()).then(|| FlushTrace {
            tracer: tracer.clone(),
            context: SpanContext::root(),
            started: SystemTime::now(),
            links,
            dropped_links,
            inserts: members.len() as u64,
            rows: members.iter().map(|member| member.rows as u64).sum(),
        })
    }

    /// Exports the spans of inserts that have come to their end.
    pub(crate) fn gathered(&self, sealed: &Sealed, settled: &[Settled]) {
        let wall = |micros| UNIX_EPOCH + Duration::from_micros(micros);
        let sealed_at = wall(sealed.arrival_wall_micros(sealed.sealed_at));
        for Settled { member, outcome, flush, .. } in settled {
            let Some(of) = member.trace() else { continue };
            let arrived_at = wall(sealed.arrival_wall_micros(member.arrived_at));
            let span = Span::new(of.child(), "gather", Kind::Internal, arrived_at, sealed_at);
            self.tracer.export(Span {
                parent_span_id: of.span_id,
                attributes: vec![("clickhouse.query_id", flush.to_string().into())],
                links: vec![self.context.clone()],
                error: outcome.as_ref().err().map(InsertError::kind),
                ..span
            });
        }
    }

    pub(crate) fn begin_attempt(&self) -> AttemptTrace {
        AttemptTrace { context: self.context.child(), started: SystemTime::now() }
    }

    pub(crate) fn end_attempt(&self, attempt: AttemptTrace, batch: BatchId, rows: u64, error: Option<&StoreError>) {
        let AttemptTrace { context, started } = attempt;
        let span = Span::new(context, "store", Kind::Client, started, SystemTime::now());
        self.tracer.export(Span {
            parent_span_id: self.context.span_id,
            attributes: vec![
                ("clickhouse.query_id", batch.to_string().into()),
                ("clickhouse.written_rows", rows.into()),
            ],
            error: error.map(StoreError::kind),
            ..span
        });
    }

    pub(crate) fn end(&self, sealed: &Sealed, any_stored: bool) {
        let name = &sealed.shape.table.name;
        let span = Span::new(self.context.clone(), "flush", Kind::Consumer, self.started, SystemTime::now());
        self.tracer.export(Span {
            attributes: vec![
                ("db.namespace", name.database.as_str().into()),
                ("db.collection.name", name.table.as_str().into()),
                ("windrow.inserts", self.inserts.into()),
                ("windrow.rows", self.rows.into()),
            ],
            links: self.links.clone(),
            dropped_links: self.dropped_links,
            error: (!any_stored).then(|| "nothing of it could be stored".to_owned()),
            ..span
        });
    }
}
