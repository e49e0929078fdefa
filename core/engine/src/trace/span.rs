use std::sync::Arc;
use std::time::SystemTime;

const MAX_TEXT_CHARS: usize = 256;

/// The part of a recorded span that is known elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanContext {
    pub trace_id: u128,
    pub span_id: u64,
    /// The field `tracestate`.
    pub state: Arc<str>,
}

impl SpanContext {
    /// Creates the context of a trace of its own.
    pub fn root() -> SpanContext {
        SpanContext { trace_id: fastrand::u128(1..), span_id: fastrand::u64(1..), state: "".into() }
    }

    pub fn child(&self) -> SpanContext {
        SpanContext { span_id: fastrand::u64(1..), ..self.clone() }
    }

    /// Returns the context as the field `traceparent` has it.
    pub fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-01", self.trace_id, self.span_id)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A request that is answered.
    Server,
    /// A request that is sent.
    Client,
    /// Work on data that others have left.
    Consumer,
    Internal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(u64),
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(number)
    }
}

impl From<&str> for Value {
    /// Makes a value of a text, cut after 256 characters: some texts are of the client's choosing.
    fn from(text: &str) -> Value {
        Value::Text(text.chars().take(MAX_TEXT_CHARS).collect())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::from(text.as_str())
    }
}

/// A step of work that has been done. Neither statements nor URLs stand in it: both may hold passwords.
#[derive(Debug, Clone)]
pub struct Span {
    pub context: SpanContext,
    /// Id of the parent span; 0 for none.
    pub parent_span_id: u64,
    pub name: &'static str,
    pub kind: Kind,
    pub start: SystemTime,
    pub end: SystemTime,
    pub attributes: Vec<(&'static str, Value)>,
    pub links: Vec<SpanContext>,
    pub dropped_links: u32,
    pub error: Option<String>,
}

impl Span {
    /// Creates a span without attributes, links or error.
    pub fn new(context: SpanContext, name: &'static str, kind: Kind, start: SystemTime, end: SystemTime) -> Span {
        Span {
            context,
            parent_span_id: 0,
            name,
            kind,
            start,
            end,
            attributes: Vec::new(),
            links: Vec::new(),
            dropped_links: 0,
            error: None,
        }
    }
}

/// A receiver of spans. It takes spans at once, or drops them: whoever has made them doesn't wait.
pub trait Exporter: Send + Sync {
    fn export(&self, span: Span);
}
