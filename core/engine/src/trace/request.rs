use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use crate::trace::parent::Parent;
use crate::trace::span::{Exporter, Kind, Span, SpanContext, Value};

/// A request that is traced, from its arrival to its answer.
pub struct RequestTrace {
    exporter: Arc<dyn Exporter>,
    context: SpanContext,
    parent_span_id: u64,
    arrived: Instant,
    arrived_wall: SystemTime,
    is_of_user: AtomicBool,
    noted: Mutex<Noted>,
}

struct Noted {
    name: &'static str,
    /// Stages, and the time when each ended.
    stages: Vec<(&'static str, Instant)>,
    attributes: Vec<(&'static str, Value)>,
    error: Option<String>,
}

impl std::fmt::Debug for RequestTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RequestTrace").field(&self.context.traceparent()).finish()
    }
}

impl RequestTrace {
    pub(crate) fn new(exporter: Arc<dyn Exporter>, parent: Option<Parent>, arrived: Instant) -> RequestTrace {
        let now = SystemTime::now();
        let (context, parent_span_id) = match parent {
            Some(Parent { trace_id, span_id, state, .. }) => {
                (SpanContext { trace_id, span_id: fastrand::u64(1..), state }, span_id)
            }
            None => (SpanContext::root(), 0),
        };
        RequestTrace {
            exporter,
            context,
            parent_span_id,
            arrived,
            arrived_wall: now.checked_sub(arrived.elapsed()).unwrap_or(now),
            is_of_user: AtomicBool::new(false),
            noted: Mutex::new(Noted { name: "request", stages: Vec::new(), attributes: Vec::new(), error: None }),
        }
    }

    /// Returns the context for what outlives the request. It is without what others keep in `tracestate`,
    /// which may be long.
    pub fn lasting_context(&self) -> SpanContext {
        SpanContext { state: "".into(), ..self.context() }
    }

    /// Returns the context for spans below the request's, here and elsewhere.
    pub fn context(&self) -> SpanContext {
        self.context.clone()
    }

    /// Sets which kind of request it has turned out to be.
    pub fn name(&self, name: &'static str) {
        self.lock().name = name;
    }

    /// Notes that a stage has ended. It began with the end of the one before.
    pub fn mark(&self, stage: &'static str) {
        self.mark_at(stage, Instant::now());
    }

    /// Notes that a stage ended a while ago, when it was not known yet whether it counts.
    pub fn mark_at(&self, stage: &'static str, at: Instant) {
        self.lock().stages.push((stage, at));
    }

    pub fn note(&self, key: &'static str, value: impl Into<Value>) {
        self.lock().attributes.push((key, value.into()));
    }

    pub fn fail(&self, error: impl Into<String>) {
        self.lock().error = Some(error.into());
    }

    /// Notes that the request's sender is known. A stranger's request is worth no span.
    pub fn is_of_user(&self) {
        self.is_of_user.store(true, Ordering::Relaxed);
    }

    /// Exports the spans, when the request is answered.
    pub fn end(self) {
        if !self.is_of_user.into_inner() {
            return;
        }
        let ended = Instant::now();
        let wall = |at: Instant| self.arrived_wall + at.saturating_duration_since(self.arrived);
        let Noted { name, stages, attributes, error } = self.noted.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut began = self.arrived;
        for (stage, ended) in stages {
            let span = Span::new(self.context.child(), stage, Kind::Internal, wall(began), wall(ended));
            self.exporter.export(Span { parent_span_id: self.context.span_id, ..span });
            began = ended;
        }
        let parent_span_id = self.parent_span_id;
        let span = Span::new(self.context, name, Kind::Server, wall(self.arrived), wall(ended));
        self.exporter.export(Span { parent_span_id, attributes, error, ..span });
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        // A push can't leave it half-way.
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
