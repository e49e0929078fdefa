//! The verdict of `/readyz`, and the gauge of the backend.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use windrow_gateway::Verdict;

use crate::backend::Availability;

/// The state that says whether requests are to be sent here. A backend that goes away is no reason to say no:
/// all gateways in front of it would say so at once, and a load balancer would turn away the very inserts
/// that they keep until it is back.
#[derive(Clone)]
pub(crate) struct Readiness {
    available: Availability,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    backend: AtomicBool,
    end: AtomicBool,
}

impl Readiness {
    pub(crate) fn follow(available: Availability, registry: &mut Registry) -> Readiness {
        let gauge = Gauge::<i64>::default();
        registry.register(
            "windrow_backend_up",
            "Whether the backend answers, and lets the gateway's own user in: 1 or 0",
            gauge.clone(),
        );
        let readiness = Readiness { available: available.clone(), seen: Arc::default() };
        tokio::spawn(watch(available, gauge, readiness.seen.clone()));
        readiness
    }

    pub(crate) fn note_end(&self) {
        self.seen.end.store(true, Ordering::Relaxed);
    }

    /// Returns the verdict. `goes_by_what_was_kept` says that inserts can be taken though the backend has not
    /// answered so far.
    pub(crate) fn verdict(&self, goes_by_what_was_kept: bool) -> Verdict {
        let backend = self.available.borrow().clone();
        let (is_ready, sentence) = match &backend {
            _ if self.seen.end.load(Ordering::Relaxed) => (false, "shutting down".to_owned()),
            Ok(()) => (true, "ready".to_owned()),
            // Nothing is known of its users and tables, so nothing can be taken for it.
            Err(reason) if !self.seen.backend.load(Ordering::Relaxed) && !goes_by_what_was_kept => {
                (false, reason.clone())
            }
            Err(reason) => (true, format!("ready to keep inserts on disk; the backend is away: {reason}")),
        };
        Verdict { is_ready, sentence, backend }
    }
}

async fn watch(mut available: Availability, gauge: Gauge, seen: Arc<Seen>) {
    let mut was_up = None;
    loop {
        let state = available.borrow_and_update().clone();
        let is_up = state.is_ok();
        match state {
            Ok(()) if was_up == Some(false) => tracing::info!("the backend is back"),
            Err(reason) if was_up != Some(false) => tracing::warn!(reason, "the backend is away"),
            _ => {}
        }
        was_up = Some(is_up);
        gauge.set(i64::from(is_up));
        seen.backend.fetch_or(is_up, Ordering::Relaxed);
        if available.changed().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_backend_that_was_there_may_go() {
        let away = || Err("it is away".to_owned());
        let (sender, available) = tokio::sync::watch::channel(away());
        let readiness = Readiness::follow(available, &mut Registry::default());
        tokio::task::yield_now().await;
        let unknown = Verdict { is_ready: false, sentence: "it is away".to_owned(), backend: away() };
        assert_eq!(readiness.verdict(false), unknown, "nothing is known of it");
        assert!(readiness.verdict(true).is_ready, "but something was before the start");
        for verdict in [Ok(()), away()] {
            let _ = sender.send_replace(verdict);
            tokio::task::yield_now().await;
            assert!(readiness.verdict(false).is_ready);
        }
        assert!(readiness.verdict(false).sentence.contains("it is away"));
        readiness.note_end();
        assert!(!readiness.verdict(true).is_ready);
    }
}
