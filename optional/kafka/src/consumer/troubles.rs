//! The filter of error texts: the same text is reported only now and then.

use std::collections::HashMap;
use std::time::{Duration, Instant};

const AGAIN: Duration = Duration::from_secs(10);
const MAX_REMEMBERED: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Troubles {
    said: HashMap<String, Instant>,
}

impl Troubles {
    /// Says whether the text is to be reported now.
    pub fn is_news(&mut self, text: &str, now: Instant) -> bool {
        self.said.retain(|_, at| now.duration_since(*at) < AGAIN);
        // Texts that change all the time are no news either.
        if self.said.contains_key(text) || self.said.len() >= MAX_REMEMBERED {
            return false;
        }
        self.said.insert(text.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_in_a_while() {
        let (mut troubles, now) = (Troubles::default(), Instant::now());
        assert!(troubles.is_news("a", now) && !troubles.is_news("a", now) && troubles.is_news("b", now));
        assert!(troubles.is_news("a", now + AGAIN));
        let many = (0..1_000).filter(|n| troubles.is_news(&n.to_string(), now + AGAIN)).count();
        assert!(many < MAX_REMEMBERED);
    }
}
