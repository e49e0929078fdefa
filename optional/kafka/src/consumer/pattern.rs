//! The pattern that selects topics by name.

use regex::Regex;

use crate::error::Error;

/// A regular expression that a topic's name has to match from its beginning to its end.
#[derive(Debug, Clone)]
pub struct TopicPattern(Regex);

impl TopicPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Fails where the pattern is no regular expression.
    pub fn new(pattern: &str) -> Result<Self, Error> {
        let wrong = |error: regex::Error| Error::Options(format!("The pattern of topics can't be used: {error}"));
        // By itself first: a bracket too many must not close the one around it.
        Regex::new(pattern).map_err(wrong)?;
        Regex::new(&format!("^(?:{pattern})$")).map(Self).map_err(wrong)
    }

    pub fn matches(&self, topic: &str) -> bool {
        self.0.is_match(topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_name_has_to_match() {
        let matches = |pattern: &str, name: &str| TopicPattern::new(pattern).unwrap().matches(name);
        assert!(matches("a|b", "b") && !matches("a|b", "ab") && !matches("a|b", "bc"));
        assert!(matches("events-.*", "events-") && !matches("events-.*", "my-events-1"));
        assert!(matches(r"events_\d+", "events_12") && !matches(r"events_\d+", "events_a"));
        assert!(TopicPattern::new("(").is_err() && TopicPattern::new("a)(b").is_err());
    }
}
