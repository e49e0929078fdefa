use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OnceCell;

use super::prepared::Prepared;
use crate::admission::NotAdmitted;

/// The answer to one admission that is being asked for.
#[derive(Default)]
pub(crate) struct Answer {
    cell: OnceCell<Result<Arc<Prepared>, NotAdmitted>>,
}

impl Answer {
    /// Returns the answer of `ask` to all that wait here. `ask` runs once, unless its caller gives up before.
    pub(crate) async fn wait<F>(&self, ask: impl FnOnce() -> F) -> Result<Arc<Prepared>, NotAdmitted>
    where
        F: Future<Output = Result<Arc<Prepared>, NotAdmitted>>,
    {
        self.cell.get_or_init(ask).await.clone()
    }
}

/// The admissions that are being asked for now. A thousand writers that begin at once, or come back after a DDL
/// statement, would otherwise put the same question a thousand times, at the very moment at which the backend has most
/// to do.
#[derive(Default)]
pub(crate) struct InflightAdmissions {
    answers: Mutex<HashMap<Box<[u8]>, Weak<Answer>>>,
}

impl InflightAdmissions {
    /// Returns the answer that all inserts with this signature wait for. It is forgotten some time after the
    /// last of them has gone.
    pub(crate) fn join(&self, signature: &[u8]) -> Arc<Answer> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = answers.get(signature).and_then(Weak::upgrade) {
            return answer;
        }
        // Only where the map would have to grow: its cost is spread over those that it has taken.
        if answers.len() == answers.capacity() {
            answers.retain(|_, answer| answer.strong_count() > 0);
        }
        let answer = Arc::new(Answer::default());
        answers.insert(signature.into(), Arc::downgrade(&answer));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward_reason::ForwardReason;

    #[tokio::test]
    async fn those_who_ask_together_share_an_answer_and_later_ones_ask_again() {
        let asking = InflightAdmissions::default();
        let (one, two) = (asking.join(b"a"), asking.join(b"a"));
        assert!(Arc::ptr_eq(&one, &two));
        assert!(!Arc::ptr_eq(&one, &asking.join(b"b")));
        assert!(one.wait(|| async { Err(NotAdmitted::Forward(ForwardReason::Refused)) }).await.is_err());
        assert!(two.wait(|| async { unreachable!("the answer is there") }).await.is_err());
        drop((one, two));
        assert!(asking.join(b"a").cell.get().is_none());
        (0..1_000_u32).for_each(|number| drop(asking.join(&number.to_le_bytes())));
        assert!(asking.answers.lock().unwrap().len() < 10, "what nobody waits for is forgotten");
    }
}
