//! Traces of what an insert did, and how long each stage took, for whoever collects traces.
//!
//! A request that is sampled has a [`RequestTrace`]: stages are marked as they end, and all spans are made at
//! the end of the request. An insert that lives on behind its request, in a batch, has the [`SpanContext`]
//! only. A request that isn't sampled has nothing, and costs a comparison. Nothing here knows how spans are
//! sent: that is an [`Exporter`].

mod parent;
mod request;
mod span;

use std::sync::Arc;
use std::time::Instant;

pub use parent::Parent;
pub use request::RequestTrace;
pub use span::{Exporter, Kind, Span, SpanContext, Value};

/// A tracer decides which requests are traced.
pub struct Tracer {
    exporter: Arc<dyn Exporter>,
    sample_ratio: f64,
}

impl Tracer {
    /// Creates a tracer. Of the requests whose client says nothing, `sample_ratio` is the share that is
    /// traced: from 0 to 1.
    pub fn new(exporter: Arc<dyn Exporter>, sample_ratio: f64) -> Tracer {
        Tracer { exporter, sample_ratio }
    }

    /// Begins the trace of a request that is sampled. A client that traces decides for its requests.
    pub fn begin(&self, parent: Option<Parent>, arrived: Instant) -> Option<RequestTrace> {
        let is_sampled = match &parent {
            Some(parent) => parent.is_sampled,
            None => self.sample_ratio > 0.0 && fastrand::f64() < self.sample_ratio,
        };
        is_sampled.then(|| RequestTrace::new(self.exporter.clone(), parent, arrived))
    }

    pub fn export(&self, span: Span) {
        self.exporter.export(span);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Kept(Mutex<Vec<Span>>);

    impl Exporter for Kept {
        fn export(&self, span: Span) {
            self.0.lock().unwrap().push(span);
        }
    }

    fn parent(flags: &str) -> Option<Parent> {
        let text = format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}");
        Parent::of_header(text.as_bytes(), Some(b"a=b"))
    }

    #[test]
    fn a_client_decides_for_its_requests_and_the_ratio_for_others() {
        let (never, always) =
            (Tracer::new(Arc::new(Kept::default()), 0.0), Tracer::new(Arc::new(Kept::default()), 1.0));
        let begins = |tracer: &Tracer, parent| tracer.begin(parent, Instant::now()).is_some();
        assert!(begins(&never, parent("01")) && begins(&always, parent("01")));
        assert!(!begins(&never, parent("00")) && !begins(&always, parent("00")));
        assert!(!begins(&never, None) && begins(&always, None));
    }

    #[test]
    fn a_strangers_request_is_told_to_nobody() {
        let kept = Arc::new(Kept::default());
        let trace = Tracer::new(kept.clone(), 1.0).begin(None, Instant::now()).expect("sampled");
        trace.mark("accept");
        trace.end();
        assert!(kept.0.lock().unwrap().is_empty());
    }

    #[test]
    fn texts_are_cut() {
        let Value::Text(text) = Value::from("é".repeat(1000)) else { panic!("a text") };
        assert_eq!(text.chars().count(), 256);
    }

    #[test]
    fn stages_are_children_one_behind_the_other() {
        let kept = Arc::new(Kept::default());
        let trace = Tracer::new(kept.clone(), 0.0).begin(parent("03"), Instant::now()).expect("sampled");
        trace.name("insert");
        trace.mark("accept");
        trace.mark("parse");
        trace.note("windrow.rows", 3_u64);
        trace.fail("it was not to be");
        let context = trace.context();
        trace.is_of_user();
        trace.end();
        let spans = kept.0.lock().unwrap();
        let names: Vec<&str> = spans.iter().map(|span| span.name).collect();
        assert_eq!(names, ["accept", "parse", "insert"]);
        let (accept, parse, insert) = (&spans[0], &spans[1], &spans[2]);
        assert_eq!(
            (insert.context.trace_id, insert.parent_span_id),
            (0x0af7651916cd43dd8448eb211c80319c, 0xb7ad6b7169203331)
        );
        assert_eq!((accept.parent_span_id, parse.parent_span_id), (context.span_id, context.span_id));
        assert_eq!((accept.start, accept.end, insert.start), (insert.start, parse.start, accept.start));
        assert!(parse.end <= insert.end);
        assert_eq!(&*insert.context.state, "a=b");
        assert_eq!(insert.error.as_deref(), Some("it was not to be"));
        assert_eq!(insert.attributes, [("windrow.rows", Value::Number(3))]);
    }
}
