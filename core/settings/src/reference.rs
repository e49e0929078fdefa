//! `docs/settings.md`, written from the table.

use std::fmt::Write;

use crate::catalogue::{DefaultValue, Setting, LIST_SECTIONS, SETTINGS};
use crate::explain::is_exchanged_at_reload;
use crate::kind::Kind;
use crate::layers::default_value;
use crate::variables::variable_of;

const INTRODUCTION: &str = "\
# Settings

Windrow reads a TOML file (`--config windrow.toml`, or the variable `WINDROW_CONFIG`). Variables override the
file, and flags override both. `windrow config` prints every setting in force and where its value came from.
A key that isn't known is refused, with the nearest one that is. [windrow.toml](../windrow.example.toml) shows
them in use.

Sizes are whole numbers of bytes or texts like `\"64MiB\"` (1024) and `\"10MB\"` (1000). Times whose names end
in `_ms` are whole milliseconds; those of `[[kafka]]` have units. Relative paths start at the directory in
which Windrow runs. Passwords and tokens are never printed or logged.

Settings marked *at reload* can be changed while Windrow runs: change the file, then send the process a SIGHUP
or `POST /api/v1/reload` to its admin port. The files of certificates are read anew then, too. Others take
effect at the next start, and the log names those that have changed.

This page is generated from the table that the program itself uses:
`cargo run --release -p windrow-settings --example reference > docs/settings.md`.
";

/// Returns the whole page.
pub fn reference_markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut section = None;
    for setting in SETTINGS {
        let (name, _) = setting.path.split_once('.').unwrap_or(("", setting.path));
        if section != Some(name) {
            section = Some(name);
            let title = if name.is_empty() { "Top of the file".to_owned() } else { format!("`[{name}]`") };
            line(&mut page, &format!("\n## {title}\n"));
        }
        describe(&mut page, setting, setting.path, true);
    }
    for list in LIST_SECTIONS {
        line(
            &mut page,
            &format!("\n## `[[{}]]`\n\n{}\nOnly in the file; may be repeated.\n", list.path, wrapped(list.help, "")),
        );
        let path = |key: &Setting| format!("{}[*].{}", list.path, key.path);
        list.keys.iter().for_each(|key| describe(&mut page, key, &path(key), false));
    }
    page
}

fn describe(page: &mut String, setting: &Setting, path: &str, has_variable: bool) {
    let mut facts = format!("{}. Default: {}.", setting.kind.expected(), shown_default(setting));
    if is_exchanged_at_reload(path) {
        facts.push_str(" *At reload.*");
    }
    if has_variable {
        facts.push_str(&format!(" Variable: `{}`.", variable_of(setting.path)));
    }
    let help = wrapped(&format!("- **`{}`**: {}", setting.path, setting.help), "  ");
    line(page, &format!("{help}  \n{}", wrapped(&format!("  {}", capitalised(&facts)), "  ")));
}

fn shown_default(setting: &Setting) -> String {
    match setting.default {
        DefaultValue::Unset => "not set".to_owned(),
        DefaultValue::Required => "none, it must be given".to_owned(),
        DefaultValue::ShareOfMemory => "a tenth of the memory, at least 64MiB".to_owned(),
        DefaultValue::Is(_) => match (setting.kind, setting.kind.show(&default_value(setting))) {
            (Kind::Backend, shown) => format!("`\"{shown}\"`"),
            (Kind::Bytes { .. }, shown) if shown.parse::<u64>().is_err() => format!("`\"{shown}\"`"),
            (_, shown) => format!("`{shown}`"),
        },
    }
}

const MOST_COLUMNS: usize = 110;

/// Wraps the text into lines; those after the first begin with `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let (mut done, mut columns) = (String::new(), 0);
    for (at, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if columns + 1 + length > MOST_COLUMNS {
            done.push('\n');
            done.push_str(indent);
            columns = indent.len();
        } else if at > 0 {
            done.push(' ');
            columns += 1;
        }
        done.push_str(word);
        columns += length;
    }
    done
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn line(page: &mut String, text: &str) {
    // Writing into a String can't fail.
    let _ = writeln!(page, "{text}");
}
