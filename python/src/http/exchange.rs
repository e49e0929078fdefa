//! One answer, parsed as its bytes come.

use std::sync::Arc;

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyByteArrayMethods, PyDict};

use super::body::Body;
use super::framing::Framing;
use super::head::{Head, HeadParser};
use super::queue::BodyQueue;

pyo3::create_exception!(windrow._core, ProtocolError, PyException, "What came is no HTTP answer, or ends too early.");

const HEAD: u8 = 1;
const BODY: u8 = 2;
const END: u8 = 4;
const FULL: u8 = 8;

#[pyclass(module = "windrow._core")]
pub struct Exchange {
    high_water_bytes: usize,
    is_answer_to_head: bool,
    on_progress: Option<Py<PyAny>>,
    at: At,
    head: Head,
    body: Option<(Arc<BodyQueue>, Py<Body>)>,
    received: bool,
    /// Bytes came behind the end: nobody can say what they answer.
    surplus: bool,
    until_close: bool,
}

enum At {
    Head(HeadParser),
    Body(Framing),
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
            is_answer_to_head,
            on_progress,
            at: At::Head(HeadParser::default()),
            head: Head::default(),
            body: None,
            received: false,
            surplus: false,
            until_close: false,
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

    /// As `feed`, of the first bytes of a buffer that is used again and again.
    fn feed_from(&mut self, py: Python<'_>, buffer: &Bound<'_, PyByteArray>, count: usize) -> PyResult<u8> {
        if count > buffer.len() {
            return Err(PyValueError::new_err("the buffer has fewer bytes"));
        }
        // SAFETY: the pointer is valid for the bytearray's length while nothing resizes it. Its owner holds a memoryview of it,
        // which forbids that, and callbacks run after the bytes have been read.
        let data = unsafe { std::slice::from_raw_parts(buffer.data(), count) };
        self.feed(py, data)
    }

    /// The peer closed: the end of a body without a length, or an error.
    fn eof(&mut self) -> PyResult<u8> {
        let reason = match &self.at {
            At::End => return Ok(END),
            At::Failed(reason) => reason.clone(),
            At::Body(_) if self.until_close => {
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
        self.head.status
    }

    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let headers = PyDict::new(py);
        for (name, value) in &self.head.fields {
            headers.set_item(name, value)?;
        }
        Ok(headers)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.field(name)
    }

    #[getter]
    fn body(&self, py: Python<'_>) -> PyResult<Py<Body>> {
        let body = self.body.as_ref().map(|(_, body)| body.clone_ref(py));
        body.ok_or_else(|| PyValueError::new_err("there is no body before the head is there"))
    }

    /// Whether any byte of an answer came.
    #[getter]
    fn received(&self) -> bool {
        self.received
    }

    #[getter]
    fn ended(&self) -> bool {
        matches!(self.at, At::End)
    }

    /// Whether the connection can be used again, once the answer is whole.
    #[getter]
    fn keep_alive(&self) -> bool {
        let asked_to_close = self.head.has_word("connection", "close");
        let kept_by_default = !self.head.is_http_10 || self.head.has_word("connection", "keep-alive");
        matches!(self.at, At::End) && kept_by_default && !asked_to_close && !self.surplus && !self.until_close
    }

    /// How long the server keeps the connection when it is idle, if it says so.
    #[getter]
    fn keep_alive_s(&self) -> Option<u32> {
        let mut items = self.head.field("keep-alive")?.split(',').map(str::trim);
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
                    let step = parser.read(&data[at..], &mut |text| progress.push(text.to_owned()))?;
                    at += step.consumed;
                    let Some(head) = step.whole else { return Ok(flags) };
                    flags |= HEAD | self.begin_body(py, head)?;
                }
                At::Body(framing) => {
                    if at == data.len() {
                        return Ok(flags);
                    }
                    let step = framing.read(&data[at..])?;
                    if let Some((queue, _)) = self.body.as_ref().filter(|_| !step.body.is_empty()) {
                        let full = queue.append(&data[at..][step.body]);
                        flags |= BODY | if full { FULL } else { 0 };
                    }
                    at += step.consumed;
                    if step.ended {
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

    fn begin_body(&mut self, py: Python<'_>, head: Head) -> Result<u8, String> {
        let framing = Framing::of(&head, self.is_answer_to_head)?;
        let encoding = head.field("content-encoding");
        let queue = Arc::new(BodyQueue::new(self.high_water_bytes, encoding, head.field("x-clickhouse-exception-tag")));
        let body = Py::new(py, Body::new(Arc::clone(&queue))).map_err(|error| error.to_string())?;
        self.body = Some((queue, body));
        self.head = head;
        self.until_close = matches!(framing, Framing::UntilClose);
        if framing.is_empty() {
            self.finish();
            return Ok(END);
        }
        self.at = At::Body(framing);
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
