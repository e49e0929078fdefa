//! Prometheus's plain text format (0.0.4), made out of OpenMetrics, which the metrics library writes.
//!
//! OpenMetrics names a counter without its `_total` in HELP and TYPE, has UNIT lines and ends with `# EOF`.
//! Prometheus reads both formats, many other tools only the older one.

use std::collections::HashSet;
use std::fmt::Write;

pub(super) fn plain(open_metrics: &str) -> String {
    let counters: HashSet<&str> =
        open_metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let mut text = String::with_capacity(open_metrics.len() + 1024);
    for line in open_metrics.lines() {
        // Writing to a String never fails.
        let _ = match Comment::of(line) {
            Some(Comment { kind: "HELP" | "TYPE", name, rest }) if counters.contains(name) => {
                writeln!(text, "{} {name}_total {rest}", &line[..6])
            }
            Some(Comment { kind: "UNIT", .. }) => Ok(()),
            _ if line == "# EOF" => Ok(()),
            _ => writeln!(text, "{line}"),
        };
    }
    text
}

struct Comment<'a> {
    kind: &'a str,
    name: &'a str,
    rest: &'a str,
}

impl Comment<'_> {
    fn of(line: &str) -> Option<Comment<'_>> {
        let (kind, after) = line.strip_prefix("# ")?.split_once(' ')?;
        let (name, rest) = after.split_once(' ')?;
        Some(Comment { kind, name, rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_as_their_samples() {
        let open = "# HELP a_bytes Bytes.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\na_bytes_total{x=\"1\"} 5\n\
                    # HELP b B.\n# TYPE b gauge\nb 1\n# EOF\n";
        let plain_text = "# HELP a_bytes_total Bytes.\n# TYPE a_bytes_total counter\na_bytes_total{x=\"1\"} 5\n\
                          # HELP b B.\n# TYPE b gauge\nb 1\n";
        assert_eq!(plain(open), plain_text);
    }
}
