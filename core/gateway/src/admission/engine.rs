//! Facts about inserts into a table that follow from the engine in the table's definition.

use std::time::Duration;

use windrow_clickhouse::{Call, CallError, Client, Credentials};
use windrow_sql::{unquote_string, unquoted_names};

use super::functions;
use super::schema::{uuid, Column, Distributed, Marks};
use super::views;
use super::windows::{Bounds, Window};
use super::{NotAdmitted, TableKey, QUESTION_TIMEOUT};

/// Returns the window of a table of this engine, and whether the engine shares its rows with replicas.
pub(super) fn window(name: &str, definition: &str, defaults: EngineDefaults) -> (Window, bool) {
    let engine = Engine {
        name: name.to_owned(),
        definition: definition.to_owned(),
        defaults,
        uuid: 0,
        has_views: false,
        constraints: String::new(),
        partition_key: String::new(),
    };
    (engine.window(), engine.is_replicated())
}

pub(super) struct Engine {
    pub(super) name: String,
    /// The engine with its parameters and settings, as in the table's definition.
    pub(super) definition: String,
    pub(super) defaults: EngineDefaults,
    pub(super) uuid: u128,
    pub(super) has_views: bool,
    pub(super) constraints: String,
    pub(super) partition_key: String,
}

/// Defaults of the server for tables that set nothing themselves. Zero: there is none, or it is not known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EngineDefaults {
    blocks: u64,
    replicated_blocks: u64,
    replicated_seconds: u64,
    async_insert: bool,
    replicated_async_insert: bool,
    has_replicas: bool,
}

impl EngineDefaults {
    /// Asks for each default by itself, since an account may be allowed to see only some. If the server goes
    /// away in between, there is no answer: with an unknown window, a table would store repeats again, and
    /// its shard would differ from the others.
    pub(super) async fn ask(client: &Client, asker: &Credentials) -> Result<EngineDefaults, CallError> {
        let value = async |table: &str, name: &str| -> Result<u64, CallError> {
            let question = format!("SELECT value FROM system.{table} WHERE name = '{name}' FORMAT TSVRaw");
            match client.call(Call::new(asker, &question).timeout(QUESTION_TIMEOUT)).await {
                Ok(answer) => Ok(answer.text().trim().parse().unwrap_or(0)),
                Err(error) => match NotAdmitted::of(&error) {
                    NotAdmitted::Forward(_) => Ok(0),
                    _ => Err(error),
                },
            }
        };
        let (blocks, replicated_blocks, replicated_seconds, async_insert, replicated_async_insert) = tokio::try_join!(
            value("merge_tree_settings", "non_replicated_deduplication_window"),
            value("replicated_merge_tree_settings", "replicated_deduplication_window"),
            value("replicated_merge_tree_settings", "replicated_deduplication_window_seconds"),
            value("merge_tree_settings", "async_insert"),
            value("replicated_merge_tree_settings", "async_insert")
        )?;
        Ok(EngineDefaults {
            blocks,
            replicated_blocks,
            replicated_seconds,
            async_insert: async_insert > 0,
            replicated_async_insert: replicated_async_insert > 0,
            has_replicas: client.replicas().are_several(),
        })
    }
}

impl Engine {
    /// Reads the engine, and the views on the table.
    pub(super) fn read(text: &str, defaults: EngineDefaults) -> Option<(Engine, Vec<TableKey>)> {
        type Fields = (String, String, String, String, String, String, Vec<(String, String)>);
        let fields: Fields = serde_json::from_str(text.lines().next()?).ok()?;
        let (name, definition, id, has_views, constraints, partition_key, views) = fields;
        let engine = Engine {
            name,
            definition,
            defaults,
            uuid: uuid(&id)?,
            has_views: has_views != "0",
            constraints,
            partition_key,
        };
        Some((engine, views::keys(&views)))
    }

    pub(super) fn is_gatherable(&self) -> bool {
        const OTHERS: [&str; 7] = ["Null", "Memory", "Log", "TinyLog", "StripeLog", "Distributed", "Buffer"];
        self.name.ends_with("MergeTree") || OTHERS.contains(&self.name.as_str())
    }

    pub(super) fn hands_on(&self) -> bool {
        matches!(self.name.as_str(), "Distributed" | "Buffer")
    }

    pub(super) fn window(&self) -> Window {
        let number = |name: &str, default: u64| {
            self.setting(name).map_or(default, |text| text.trim().parse().unwrap_or(default))
        };
        if !self.name.ends_with("MergeTree") {
            return Window::Never;
        }
        if !self.is_replicated() {
            return Window::of_blocks(number("non_replicated_deduplication_window", self.defaults.blocks), None);
        }
        let seconds = number("replicated_deduplication_window_seconds", self.defaults.replicated_seconds);
        let age = (seconds > 0).then(|| Duration::from_secs(seconds));
        match number("replicated_deduplication_window", self.defaults.replicated_blocks) {
            // Not Windrow's to give: the window would be every client's.
            0 => Window::Never,
            blocks => Window::Owners(Bounds { blocks, age }),
        }
    }

    /// Returns the table's setting `async_insert`. Engines other than MergeTree have no such setting.
    pub(super) fn async_insert(&self) -> bool {
        let default = match self.is_replicated() {
            true => self.defaults.replicated_async_insert,
            false => self.defaults.async_insert,
        };
        let own = self.setting("async_insert").map(|value| matches!(value.trim(), "1" | "true"));
        self.name.ends_with("MergeTree") && own.unwrap_or(default)
    }

    /// Says whether there are several replicas, of which each can take the table's rows: it shares them with
    /// the others, or keeps none.
    pub(super) fn is_on_all_replicas(&self) -> bool {
        let keeps_none = matches!(self.name.as_str(), "Distributed" | "Null");
        self.defaults.has_replicas && (self.is_replicated() || keeps_none)
    }

    pub(super) fn reads_request(&self, columns: &[Column]) -> bool {
        functions::reads_request(functions::constraints(&self.constraints), columns)
    }

    pub(super) fn is_replicated(&self) -> bool {
        self.name.starts_with("Replicated") || self.name.starts_with("Shared")
    }

    pub(super) fn marks(&self, columns: &[Column]) -> Option<Marks> {
        let names = self.named_columns()?;
        let kind = self.name.trim_start_matches("Replicated").trim_start_matches("Shared");
        let (column, allowed) = match (kind, names.as_slice()) {
            ("CollapsingMergeTree", [sign]) | ("VersionedCollapsingMergeTree", [sign, _]) => (sign, [1, -1]),
            ("ReplacingMergeTree", [_, is_deleted]) => (is_deleted, [0, 1]),
            _ => return None,
        };
        let default = columns.iter().find(|known| known.name == *column)?.plain_default;
        let has_allowed_default = default.is_some_and(|value| allowed.map(i64::from).contains(&value));
        Some(Marks { column: column.clone(), allowed, has_allowed_default })
    }

    /// Returns the columns among the parameters; `None` if they are not plain names, as in the old syntax.
    fn named_columns(&self) -> Option<Vec<String>> {
        // The other parameters say where in Keeper a replicated table is kept.
        let names = self.parameters()?.into_iter().filter(|parameter| !parameter.starts_with('\''));
        names.map(|name| <[String; 1]>::try_from(unquoted_names(name)?).ok().map(|[name]| name)).collect()
    }

    /// Returns the parameters in parentheses behind the engine's name, each as it was written. `None`: there
    /// are no parentheses, or the closing one is missing.
    fn parameters(&self) -> Option<Vec<&str>> {
        let text = self.definition.strip_prefix(&self.name)?.strip_prefix('(')?;
        let (mut parameters, mut start, mut quote, mut depth) = (Vec::new(), 0, None, 0);
        let mut characters = text.char_indices();
        while let Some((at, character)) = characters.next() {
            match (quote, character) {
                (Some(_), '\\') => drop(characters.next()),
                (Some(mark), _) if mark == character => quote = None,
                (Some(_), _) => {}
                (None, '`' | '\'' | '"') => quote = Some(character),
                (None, '(' | '[') => depth += 1,
                (None, ')' | ']') if depth > 0 => depth -= 1,
                (None, ',' | ')') if depth == 0 => {
                    parameters.push(text[start..at].trim());
                    if character == ')' {
                        return Some(parameters);
                    }
                    start = at + 1;
                }
                (None, _) => {}
            }
        }
        None
    }

    pub(super) fn distributed(&self) -> Option<Distributed> {
        let parameters = self.parameters().filter(|_| self.name == "Distributed")?;
        let [cluster, database, table, more @ ..] = parameters.as_slice() else { return None };
        let name = |text: &str| unquote_string(text).or_else(|| unquoted_names(text)?.pop());
        let key = more.first().map(|key| (*key).to_owned());
        Some(Distributed { cluster: name(cluster)?, database: name(database)?, table: name(table)?, key })
    }

    fn setting(&self, name: &str) -> Option<&str> {
        let settings = &self.definition[self.definition.find(" SETTINGS ")?..];
        let mut pairs = settings.trim_start_matches(" SETTINGS ").split(',').filter_map(|pair| pair.split_once('='));
        pairs.find(|(known, _)| known.trim() == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::windows::MARKED_WINDOW;
    use super::*;

    const DEFAULTS: EngineDefaults = EngineDefaults {
        blocks: 0,
        replicated_blocks: 10_000,
        replicated_seconds: 3_600,
        async_insert: false,
        replicated_async_insert: false,
        has_replicas: false,
    };

    fn engine(name: &str, definition: &str, defaults: EngineDefaults) -> Engine {
        let (name, definition) = (name.to_owned(), definition.to_owned());
        let (constraints, partition_key) = (String::new(), String::new());
        Engine { name, definition, defaults, uuid: 1, has_views: false, constraints, partition_key }
    }

    fn window(name: &str, definition: &str, default_blocks: u64) -> Window {
        engine(name, definition, EngineDefaults { blocks: default_blocks, ..DEFAULTS }).window()
    }

    #[test]
    fn rows_of_one_server_are_not_on_all_replicas() {
        let is_on_all = |name: &str, has_replicas: bool| {
            engine(name, name, EngineDefaults { has_replicas, ..DEFAULTS }).is_on_all_replicas()
        };
        for name in ["ReplicatedMergeTree", "ReplicatedReplacingMergeTree", "SharedMergeTree", "Distributed", "Null"] {
            assert!(is_on_all(name, true) && !is_on_all(name, false), "{name}");
        }
        for name in ["MergeTree", "SummingMergeTree", "Memory", "Log", "Buffer", "unknown"] {
            assert!(!is_on_all(name, true), "{name}");
        }
    }

    #[test]
    fn windows_are_found_where_they_are_set() {
        let owners =
            |blocks, seconds: Option<u64>| Window::Owners(Bounds { blocks, age: seconds.map(Duration::from_secs) });
        let plain = "MergeTree ORDER BY a SETTINGS index_granularity = 8192";
        assert_eq!(window("MergeTree", plain, 0), Window::None);
        assert_eq!(window("MergeTree", plain, 100), owners(100, None));
        assert_eq!(window("MergeTree", plain, MARKED_WINDOW), Window::Windrows);
        let set = "MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 5, index_granularity = 8192";
        assert_eq!(window("MergeTree", set, MARKED_WINDOW), owners(5, None));
        let off = "MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 0";
        assert_eq!(window("MergeTree", off, 100), Window::None);
        let marked = format!("MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = {MARKED_WINDOW}");
        assert_eq!(window("ReplacingMergeTree", &marked, 0), Window::Windrows);
        assert_eq!(window("Null", "Null", 100), Window::Never);
        let replicated = "ReplicatedMergeTree('/a', 'b') ORDER BY a";
        assert_eq!(window("ReplicatedMergeTree", replicated, 0), owners(10_000, Some(3_600)));
        let set = format!(
            "{replicated} SETTINGS replicated_deduplication_window = 7, replicated_deduplication_window_seconds = 0"
        );
        assert_eq!(window("ReplicatedMergeTree", &set, 0), owners(7, None));
        let off = format!("{replicated} SETTINGS replicated_deduplication_window = 0");
        assert_eq!(window("ReplicatedMergeTree", &off, 0), Window::Never);
    }

    #[test]
    fn marks_are_found_among_the_parameters() {
        let marks = |name: &str, parameters: &str, default: &str| {
            let definition = format!("{name}{parameters} ORDER BY a SETTINGS index_granularity = 8192");
            let engine = engine(name, &definition, DEFAULTS);
            let column = |name: &str| Column::new(name.to_owned(), "Int8".to_owned(), "DEFAULT", default);
            engine.marks(&[column("v"), column("s"), column("x, `y)")]).map(|marks| {
                let Marks { column, allowed, has_allowed_default } = marks;
                (column, allowed[1], has_allowed_default)
            })
        };
        let sign = |has_allowed_default| Some(("s".to_owned(), -1, has_allowed_default));
        assert_eq!(marks("CollapsingMergeTree", "(s)", ""), sign(false));
        assert_eq!(marks("CollapsingMergeTree", "(s)", "-1"), sign(true));
        assert_eq!(marks("VersionedCollapsingMergeTree", "(s, v)", "rand()"), sign(false));
        assert_eq!(marks("ReplicatedCollapsingMergeTree", "('/a(,', 'b', s)", "1"), sign(true));
        let deleted = |column: &str| Some((column.to_owned(), 1, true));
        assert_eq!(marks("ReplacingMergeTree", "(v, s)", ""), deleted("s"));
        assert_eq!(marks("ReplacingMergeTree", "(v, `x, \\`y)`)", "0"), deleted("x, `y)"));
        for parameters in ["", "(v)", "(d, (a), 8192, v, s)", "(v, s"] {
            assert_eq!(marks("ReplacingMergeTree", parameters, ""), None, "{parameters}");
        }
        assert_eq!(marks("SummingMergeTree", "(s)", ""), None);
    }

    #[test]
    fn the_engines_answer_is_read() {
        let line =
            r#"["MergeTree","MergeTree ORDER BY a","00000000-0000-0001-0000-000000000002","1","","p",[["d","v"]]]"#;
        let defaults = EngineDefaults { blocks: MARKED_WINDOW, ..DEFAULTS };
        let (engine, views) = Engine::read(line, defaults).expect("all fields are there");
        assert_eq!(views, [TableKey { database: "d".into(), table: "v".into() }]);
        assert_eq!(engine.window(), Window::Windrows);
        assert_eq!((engine.has_views, engine.partition_key.as_str()), (true, "p"));
        for length in 0..line.len() {
            assert!(Engine::read(&line[..length], defaults).is_none(), "cut after {length}");
        }
    }
}
