//! The method by which the rows of a staging table get into a table of some engine, and the engine of the
//! staging table.

use crate::answer::Atomicity;

/// The way of rows from the staging table into the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// Parts change tables, or are linked into the other one: all at one moment.
    Parts,
    /// Parts are handed to a replicated table, one partition after the other; Keeper recognises a part that
    /// it has.
    PartsByPartition,
    /// Rows are written once more: views see them, and engines without parts take them.
    Rows,
}

/// The engine of the target, as `system.tables` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Engine {
    pub(super) name: String,
    /// The engine's definition with its parameters and settings.
    pub(super) definition: String,
    pub(super) has_views: bool,
}

/// Engines of tables whose parts are kept on one server.
const PLAIN: [&str; 9] = [
    "MergeTree",
    "ReplacingMergeTree",
    "SummingMergeTree",
    "AggregatingMergeTree",
    "CollapsingMergeTree",
    "VersionedCollapsingMergeTree",
    "GraphiteMergeTree",
    "CoalescingMergeTree",
    "TimeSeriesMergeTree",
];

impl Engine {
    pub(super) fn method(&self) -> Method {
        match self.name.strip_prefix("Replicated") {
            _ if self.has_views => Method::Rows,
            Some(plain) if is_plain(plain) && self.unreplicated().is_some() => Method::PartsByPartition,
            None if is_plain(&self.name) => Method::Parts,
            _ => Method::Rows,
        }
    }

    pub(super) fn has_parts(&self) -> bool {
        is_plain(self.name.strip_prefix("Replicated").unwrap_or(&self.name))
    }

    /// Returns the definition of the same engine without replication.
    pub(super) fn unreplicated(&self) -> Option<String> {
        let plain = self.definition.strip_prefix("Replicated")?;
        let name_end = plain.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(plain.len());
        let (name, rest) = plain.split_at(name_end);
        let Some(arguments) = rest.strip_prefix('(') else { return Some(plain.to_owned()) };
        // The path in Keeper and the replica's name.
        let arguments = match arguments.starts_with('\'') {
            true => after_text(after_text(arguments)?.strip_prefix(", ")?)?,
            false => arguments,
        };
        let arguments = arguments.strip_prefix(", ").unwrap_or(arguments);
        Some(match arguments.strip_prefix(')') {
            Some(rest) => format!("{name}{rest}"),
            None => format!("{name}({arguments}"),
        })
    }

    /// Returns the value of a setting in the definition.
    pub(super) fn setting(&self, name: &str) -> Option<&str> {
        let settings = self.definition.rsplit_once(" SETTINGS ")?.1;
        let found = settings.split(", ").find_map(|setting| setting.strip_prefix(name)?.strip_prefix(" = "));
        Some(found?.trim_matches('\''))
    }
}

impl Method {
    /// Returns the atomicity that can be promised before it is known how many partitions there are.
    pub(super) fn promise(self, is_partitioned: bool) -> Atomicity {
        match self {
            Method::Parts => Atomicity::All,
            Method::PartsByPartition if is_partitioned => Atomicity::Partition,
            Method::PartsByPartition => Atomicity::All,
            Method::Rows => Atomicity::Block,
        }
    }
}

fn is_plain(name: &str) -> bool {
    PLAIN.contains(&name)
}

/// Returns the text behind a quoted text.
fn after_text(text: &str) -> Option<&str> {
    let mut characters = text.strip_prefix('\'')?.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            '\'' => return Some(&text[at + 2..]),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(definition: &str, has_views: bool) -> Engine {
        let name = definition.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned();
        Engine { name, definition: definition.to_owned(), has_views }
    }

    #[test]
    fn parts_go_where_parts_are_and_nobody_has_to_see_rows() {
        assert_eq!(engine("MergeTree ORDER BY a", false).method(), Method::Parts);
        assert_eq!(engine("ReplacingMergeTree(v) ORDER BY a", false).method(), Method::Parts);
        assert_eq!(engine("MergeTree ORDER BY a", true).method(), Method::Rows);
        assert_eq!(engine("ReplicatedMergeTree('/p', 'r') ORDER BY a", false).method(), Method::PartsByPartition);
        for other in ["Memory", "Null", "Distributed('c', 'd', 't')", "Buffer(x)", "SharedMergeTree('/p', 'r')", "Log"]
        {
            assert_eq!(engine(other, false).method(), Method::Rows, "{other}");
        }
    }

    /// Checks definitions as `system.tables` of a server with Keeper has them.
    #[test]
    fn replicated_tables_get_parts_partition_by_partition() {
        for kind in PLAIN {
            for definition in [
                format!("Replicated{kind}('/clickhouse/tables/{{uuid}}/{{shard}}', '{{replica}}') ORDER BY a"),
                format!("Replicated{kind}('/clickhouse/tables/{{uuid}}/{{shard}}', '{{replica}}', v) ORDER BY a"),
                format!("Replicated{kind} ORDER BY a SETTINGS index_granularity = 8192"),
            ] {
                let table = engine(&definition, false);
                assert_eq!((table.method(), table.has_parts()), (Method::PartsByPartition, true), "{definition}");
                let plain = table.unreplicated().unwrap();
                assert!(plain.starts_with(kind) && !plain.contains("/clickhouse"), "{plain}");
                assert_eq!(engine(&definition, true).method(), Method::Rows, "views have to see the rows");
            }
        }
        // Its copies share their parts: they have no staging table of their own kind.
        for shared in ["SharedMergeTree('/p', 'r') ORDER BY a", "SharedReplacingMergeTree('/p', 'r', v) ORDER BY a"] {
            assert_eq!((engine(shared, false).method(), engine(shared, false).has_parts()), (Method::Rows, false));
        }
    }

    #[test]
    fn replication_is_left_out_of_a_staging_table() {
        let plain = |definition| engine(definition, false).unreplicated();
        assert_eq!(plain("ReplicatedMergeTree('/a/\\'b', '{r}') ORDER BY a").as_deref(), Some("MergeTree ORDER BY a"));
        assert_eq!(
            plain("ReplicatedReplacingMergeTree('/a', 'r', v, d) PARTITION BY p ORDER BY a SETTINGS x = 'y'")
                .as_deref(),
            Some("ReplacingMergeTree(v, d) PARTITION BY p ORDER BY a SETTINGS x = 'y'")
        );
        assert_eq!(plain("ReplicatedMergeTree ORDER BY a").as_deref(), Some("MergeTree ORDER BY a"));
        assert_eq!(
            plain("ReplicatedSummingMergeTree(a) ORDER BY a").as_deref(),
            Some("SummingMergeTree(a) ORDER BY a")
        );
        assert_eq!(plain("ReplicatedMergeTree('/a"), None);
        assert_eq!(plain("ReplicatedMergeTree('/a', "), None);
    }

    #[test]
    fn settings_are_found_in_the_definition() {
        let table = engine("MergeTree ORDER BY a SETTINGS index_granularity = 8192, x_window = 100, w = '7'", false);
        assert_eq!(table.setting("x_window"), Some("100"));
        assert_eq!(table.setting("window"), None);
        assert_eq!(table.setting("w"), Some("7"));
        assert_eq!(engine("Memory", false).setting("w"), None);
    }
}
