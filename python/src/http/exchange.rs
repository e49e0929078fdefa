//! One answer, parsed as its bytes come.

use std::sync::Arc;

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyByteArrayMethods, PyDict};
use windrow_http::{AnswerHeadParser, BodyScanner, ResponseHead};

use super::body::Body;
use super::queue::BodyQueue;

pyo3::create_exception!(windrow._core, ProtocolError, PyException, "What came is no HTTP answer, or ends too early.");

const HEAD: u8 = 1;
const BODY: u8 = 2;
const END: u8 = 4;
const FULL: u8 = 8;

#[pyclass(module = "windrow._core")]
pub struct Exchange {
    high_water_bytes: usize,
    on_progress: Option<Py<PyAny>>,
    at: At,
    head: Option<ResponseHead>,
    /// The answer's header fields. Names are in lower case; fields of one name are joined by commas.
    fields: Vec<(String, String)>,
    body: Option<(Arc<BodyQueue>, Py<Body>)>,
    received: bool,
    /// True if bytes came behind the end: nobody can say what they answer.
    surplus: bool,
}

enum At {
    Head(AnswerHeadParser),
    Body(BodyScanner),
    End,
    Failed(String),
}

#[pymethods]
impl Exchange {
    #[new]
    #[pyo3(signature = (high_water_bytes=1 << 20, on_progress=None, is_answer_to_head=false))]
    fn new(high_water_bytes: usize, on_progress: Option<Py<PyAny>>, is_answer_to_head: bool) -> Self {
        Self {
            high_water_bytes,
            on_progress,
            at: At::Head(AnswerHeadParser::new(is_answer_to_head)),
            head: None,
            fields: Vec::new(),
            body: None,
            received: false,
            surplus: false,
        }
    }

    fn feed(&mut self, py: Python<'_>, data: &[u8]) -> PyResult<u8> {
        self.received |= !data.is_empty();
        let mut progress = Vec::new();
        let outcome = self.parse(py, data, &mut progress);
        self.report(py, progress)?;
        if let Err(reason) = &outcome {
            if let Some((queue, _)) = &self.body {
                queue.fail(reason.clone());
            }
            self.at = At::Failed(reason.clone());
        }
        outcome.map_err(ProtocolError::new_err)
    }

    /// Feeds, like `feed`, the first bytes of a buffer that is used again and again.
    fn feed_from(&mut self, py: Python<'_>, buffer: &Bound<'_, PyByteArray>, count: usize) -> PyResult<u8> {
        if count > buffer.len() {
            return Err(PyValueError::new_err("the buffer has fewer bytes"));
        }
        // SAFETY: the pointer is valid for the bytearray's length while nothing resizes it. Its owner holds a memoryview of it,
        // which forbids that, and callbacks run after the bytes have been read.
        let data = unsafe { std::slice::from_raw_parts(buffer.data(), count) };
        self.feed(py, data)
    }

    /// Notes that the peer closed the connection: the end of a body without a length, or an error.
    fn eof(&mut self) -> PyResult<u8> {
        let reason = match &self.at {
            At::End => return Ok(END),
            At::Failed(reason) => reason.clone(),
            At::Body(BodyScanner::UntilClose) => {
                self.finish();
                return Ok(END);
            }
            At::Body(_) => "the connection was closed in the middle of the answer".to_owned(),
            At::Head(_) if self.received => "the connection was closed in the middle of the answer's head".to_owned(),
            At::Head(_) => "the connection was closed without an answer".to_owned(),
        };
        if let Some((queue, _)) = &self.body {
            queue.fail(reason.clone());
        }
        self.at = At::Failed(reason.clone());
        Err(ProtocolError::new_err(reason))
    }

    #[getter]
    fn status(&self) -> u16 {
        self.head.as_ref().map_or(0, ResponseHead::status)
    }

    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let headers = PyDict::new(py);
        for (name, value) in &self.fields {
            headers.set_item(name, value)?;
        }
        Ok(headers)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[getter]
    fn body(&self, py: Python<'_>) -> PyResult<Py<Body>> {
        let body = self.body.as_ref().map(|(_, body)| body.clone_ref(py));
        body.ok_or_else(|| PyValueError::new_err("there is no body before the head is there"))
    }

    /// Says whether any byte of an answer came.
    #[getter]
    fn received(&self) -> bool {
        self.received
    }

    #[getter]
    fn ended(&self) -> bool {
        matches!(self.at, At::End)
    }

    /// Says whether the connection can be used again, once the answer is whole.
    #[getter]
    fn keep_alive(&self) -> bool {
        matches!(self.at, At::End) && !self.surplus && self.head.as_ref().is_some_and(ResponseHead::keep_alive)
    }

    /// Returns the seconds for which the server keeps an idle connection, if it says so.
    #[getter]
    fn keep_alive_s(&self) -> Option<u32> {
        let mut items = self.header("keep-alive")?.split(',').map(str::trim);
        items.find_map(|item| item.strip_prefix("timeout=")?.parse().ok())
    }
}

impl Exchange {
    fn parse(&mut self, py: Python<'_>, data: &[u8], progress: &mut Vec<String>) -> Result<u8, String> {
        let mut flags = 0;
        let mut at = 0;
        loop {
            match &mut self.at {
                At::Head(parser) => {
                    let mut keep = |text: &[u8]| progress.push(String::from_utf8_lossy(text).into_owned());
                    let step = parser.read(&data[at..], &mut keep).map_err(|error| error.to_string())?;
                    at += step.consumed;
                    match step.whole {
                        Some(head) => flags |= HEAD | self.begin_body(py, head)?,
                        None if at == data.len() => return Ok(flags),
                        None => {}
                    }
                }
                At::Body(scanner) => {
                    if at == data.len() {
                        return Ok(flags);
                    }
                    let step = scanner.step(&data[at..]).map_err(|error| error.to_string())?;
                    if let Some((queue, _)) = self.body.as_ref().filter(|_| !step.data.is_empty()) {
                        let full = queue.append(&data[at..][step.data]);
                        flags |= BODY | if full { FULL } else { 0 };
                    }
                    at += step.consumed;
                    if scanner.is_done() {
                        self.finish();
                        flags |= END;
                    }
                }
                At::End => {
                    self.surplus |= at < data.len();
                    return Ok(flags);
                }
                At::Failed(reason) => return Err(reason.clone()),
            }
        }
    }

    fn begin_body(&mut self, py: Python<'_>, head: ResponseHead) -> Result<u8, String> {
        self.fields = joined_fields(&head);
        let (encoding, tag) = (self.header("content-encoding"), self.header("x-clickhouse-exception-tag"));
        let queue = Arc::new(BodyQueue::new(self.high_water_bytes, encoding, tag));
        let body = Py::new(py, Body::new(Arc::clone(&queue))).map_err(|error| error.to_string())?;
        self.body = Some((queue, body));
        let scanner = BodyScanner::new(head.framing());
        self.head = Some(head);
        if scanner.is_done() {
            self.finish();
            return Ok(END);
        }
        self.at = At::Body(scanner);
        Ok(0)
    }

    fn finish(&mut self) {
        if let Some((queue, _)) = &self.body {
            queue.end();
        }
        self.at = At::End;
    }

    fn report(&self, py: Python<'_>, progress: Vec<String>) -> PyResult<()> {
        if let Some(callback) = &self.on_progress {
            for text in progress {
                callback.call1(py, (text,))?;
            }
        }
        Ok(())
    }
}

fn joined_fields(head: &ResponseHead) -> Vec<(String, String)> {
    let mut joined: Vec<(String, String)> = Vec::new();
    for (name, value) in head.fields() {
        let (name, value) = (name.to_ascii_lowercase(), String::from_utf8_lossy(value));
        match joined.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => {
                known.push_str(", ");
                known.push_str(&value);
            }
            None => joined.push((name, value.into_owned())),
        }
    }
    joined
}
