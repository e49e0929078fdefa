//! The known name that a mistyped one most likely meant.

/// Returns the candidate closest to `unknown`, unless all are too far off to be meant.
///
/// Whole paths are compared, and last components too: a key under the wrong section is found under the right one.
pub(crate) fn nearest<'a>(unknown: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let unknown = unknown.to_ascii_lowercase();
    let best =
        candidates.map(|candidate| (distance_of_paths(&unknown, candidate), candidate)).min_by_key(|best| best.0)?;
    let tolerated = (leaf(&unknown).chars().count() / 3).max(2);
    (best.0 <= tolerated).then_some(best.1)
}

fn distance_of_paths(unknown: &str, candidate: &str) -> usize {
    // A wrong section costs one, so that of two equal leaves the one in the section that was named wins.
    edits(unknown, candidate).min(edits(leaf(unknown), leaf(candidate)) + 1)
}

pub(crate) fn leaf(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Returns the closest candidate among names without a section.
pub(crate) fn nearest_variable(unknown: &str, candidates: &[String]) -> Option<String> {
    let best = candidates.iter().map(|candidate| (edits(unknown, candidate), candidate)).min_by_key(|best| best.0)?;
    (best.0 <= 4).then(|| best.1.clone())
}

/// Returns Levenshtein's distance, with a swap of two neighbours counted as one edit.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut previous = None;
    for (i, x) in a.chars().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut cost = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if j > 0 && previous == Some(y) && x == b[j - 1] {
                cost = cost.min(before_last[j - 1] + 1);
            }
            row.push(cost);
        }
        before_last = std::mem::replace(&mut last, row);
        previous = Some(x);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["gather.max_buffer_bytes", "http.listen", "admin.listen", "log.level"];

    #[test]
    fn finds_typing_errors_and_wrong_sections() {
        let near = |text| nearest(text, KNOWN.into_iter());
        assert_eq!(near("gather.max_bufer_bytes"), Some("gather.max_buffer_bytes"));
        assert_eq!(near("http.max_buffer_bytes"), Some("gather.max_buffer_bytes"));
        assert_eq!(near("admin.lisetn"), Some("admin.listen"));
        assert_eq!(near("lgo.level"), Some("log.level"));
        assert_eq!(near("http.colour"), None);
        assert_eq!(near("Log.Level"), Some("log.level"));
    }

    #[test]
    fn counts_edits() {
        for (a, b, expected) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("abc", "acb", 1), ("kitten", "sitting", 3), ("ä", "a", 1)]
        {
            assert_eq!(edits(a, b), expected, "{a} {b}");
        }
    }
}
