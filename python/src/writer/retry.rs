//! A program's own policy of retries: an object with `again_after`.

use pyo3::prelude::*;
use windrow_clickhouse::ErrorCode;
use windrow_writer::{Attempts, Backoff, Failure, Retry};

/// A policy that asks a Python object. When that fails, the usual policy decides: a row is not lost to a
/// mistake in a policy.
pub(super) struct PythonRetry {
    policy: Py<PyAny>,
    fallback: Backoff,
}

impl PythonRetry {
    pub(super) fn new(policy: Py<PyAny>) -> PythonRetry {
        PythonRetry { policy, fallback: Backoff::default() }
    }

    fn ask(&self, failure: &Failure, attempts: Attempts) -> Option<PyResult<Option<f64>>> {
        Python::try_attach(|py| {
            let elapsed = attempts.elapsed_ms as f64 / 1000.0;
            let arguments = (
                failure.code.map(ErrorCode::number),
                failure.message.as_str(),
                attempts.failed,
                elapsed,
                attempts.survives,
            );
            let answer = self.policy.bind(py).call_method1("again_after", arguments);
            let seconds = answer.and_then(|seconds| seconds.extract::<Option<f64>>());
            seconds.inspect_err(|error| error.clone_ref(py).write_unraisable(py, Some(self.policy.bind(py)))).into()
        })
        .flatten()
    }
}

impl Retry for PythonRetry {
    fn again_after_ms(&mut self, failure: &Failure, attempts: Attempts) -> Option<u64> {
        match self.ask(failure, attempts) {
            Some(Ok(Some(seconds))) if seconds.is_finite() => Some((seconds.max(0.0) * 1000.0) as u64),
            Some(Ok(None)) => None,
            _ => self.fallback.again_after_ms(failure, attempts),
        }
    }
}
