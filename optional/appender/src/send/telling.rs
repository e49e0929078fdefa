//! The progress of an append, and its listener: progress that is told never goes back, whichever connection's
//! answer comes first.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::options::{OnProgress, Progress};

pub(super) struct Telling {
    state: Mutex<State>,
    on_progress: Option<OnProgress>,
}

#[derive(Default)]
struct State {
    progress: Progress,
    /// True after the end. Answers to the last batches may still come: their rows are among those that were told.
    has_ended: bool,
}

impl Telling {
    pub(super) fn new(on_progress: Option<OnProgress>) -> Telling {
        Telling { state: Mutex::default(), on_progress }
    }

    pub(super) fn now(&self) -> Progress {
        self.lock().progress
    }

    pub(super) fn tell(&self, change: impl FnOnce(&mut Progress)) {
        self.change(change, false);
    }

    /// Makes the last change: changes behind it are not told.
    pub(super) fn end(&self, change: impl FnOnce(&mut Progress)) {
        self.change(change, true);
    }

    /// Makes a change and tells it under one lock: of two changes the later one is told later.
    fn change(&self, change: impl FnOnce(&mut Progress), is_last: bool) {
        let mut state = self.lock();
        if state.has_ended {
            return;
        }
        change(&mut state.progress);
        state.has_ended = is_last;
        if let Some(on_progress) = &self.on_progress {
            on_progress(&state.progress);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use super::*;

    /// The progress that was told, as numbers of rows, and whether another change could have been told meanwhile.
    type Told = Arc<Mutex<Vec<(u64, bool)>>>;

    fn listened_to() -> (Arc<Telling>, Told) {
        let told = Told::default();
        let telling: Arc<OnceLock<Arc<Telling>>> = Arc::default();
        let (listening, known) = (told.clone(), telling.clone());
        let on_progress: OnProgress = Arc::new(move |progress| {
            let another_can_pass = known.get().is_some_and(|telling| telling.state.try_lock().is_ok());
            listening.lock().unwrap().push((progress.rows, another_can_pass));
        });
        let made = Arc::new(Telling::new(Some(on_progress)));
        assert!(telling.set(made.clone()).is_ok());
        (made, told)
    }

    #[test]
    fn what_is_told_can_not_be_overtaken() {
        let (telling, told) = listened_to();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| telling.tell(|progress| progress.rows += 1)));
            }
        });
        let expected: Vec<(u64, bool)> = (1..=200).map(|rows| (rows, false)).collect();
        assert_eq!(*told.lock().unwrap(), expected);
    }

    #[test]
    fn answers_that_come_behind_the_end_are_not_added_to_it() {
        let (telling, told) = listened_to();
        telling.tell(|progress| progress.rows += 30);
        telling.end(|progress| progress.rows = 100);
        telling.tell(|progress| progress.rows += 70);
        assert_eq!(*told.lock().unwrap(), [(30, false), (100, false)]);
        assert_eq!(telling.now().rows, 100);
    }
}
