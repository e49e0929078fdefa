//! Writes names and strings so that ClickHouse, or DuckDB, reads the same ones back.

/// The database whose SQL a name or a string is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    ClickHouse,
    DuckDb,
}

impl Dialect {
    /// Writes `` `name` `` or `"name"`, whatever the name contains.
    pub fn name(self, name: &str) -> String {
        match self {
            Dialect::ClickHouse => backquote(name),
            Dialect::DuckDb => format!("\"{}\"", name.replace('"', "\"\"")),
        }
    }

    /// Writes `'text'`, whatever the text contains.
    pub fn text(self, text: &str) -> String {
        match self {
            Dialect::ClickHouse => quote_string(text),
            Dialect::DuckDb => format!("'{}'", text.replace('\'', "''")),
        }
    }

    pub fn table(self, database: Option<&str>, table: &str) -> String {
        match database {
            Some(database) => format!("{}.{}", self.name(database), self.name(table)),
            None => self.name(table),
        }
    }
}

/// Writes `` `name` ``, whatever the name contains.
pub fn backquote(identifier: &str) -> String {
    quote(identifier, '`')
}

/// Writes a name as ClickHouse does: without backquotes where it can do without.
pub fn backquote_if_need(identifier: &str) -> String {
    const NEED_THEM: [&str; 7] = ["all", "distinct", "from", "null", "select", "table", "values"];
    let is_word = identifier.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let begins_so = identifier.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    match is_word && begins_so && !NEED_THEM.iter().any(|word| identifier.eq_ignore_ascii_case(word)) {
        true => identifier.to_owned(),
        false => backquote(identifier),
    }
}

/// Writes `'text'`, whatever the text contains.
pub fn quote_string(text: &str) -> String {
    quote(text, '\'')
}

fn quote(text: &str, mark: char) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push(mark);
    for character in text.chars() {
        if character == mark || character == '\\' {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push(mark);
    quoted
}

/// Returns the parts of a name as ClickHouse writes it, `` a.`b c` ``; `None` if the text is anything else.
pub fn unquoted_names(text: &str) -> Option<Vec<String>> {
    let (mut names, mut rest) = (Vec::new(), text);
    loop {
        let (name, behind) = match rest.strip_prefix('`') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        if name.is_empty() {
            return None;
        }
        names.push(name);
        match behind.strip_prefix('.') {
            Some(next) => rest = next,
            None => return behind.is_empty().then_some(names),
        }
    }
}

/// Returns the name before the closing backquote, and the text behind the backquote.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '`' => return Some((name, &quoted[at + 1..])),
            // Other escapes stand for characters that nobody should have in a name.
            '\\' => name.push(characters.next().map(|(_, c)| c).filter(|c| matches!(c, '`' | '\\'))?),
            c => name.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_need_them_have_backquotes() {
        for name in ["t", "_1", "A1_b", "values_"] {
            assert_eq!(backquote_if_need(name), name);
        }
        for name in ["", "1a", "a.b", "é", "Values", "FROM", "a b"] {
            assert_eq!(backquote_if_need(name), format!("`{name}`"));
        }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let names = |text: &str| unquoted_names(text).map(|names| names.join("|"));
        assert_eq!(names("d.t").as_deref(), Some("d|t"));
        assert_eq!(names("t").as_deref(), Some("t"));
        for odd in ["a b", "`", "\\", "a.b", "ü"] {
            let text = format!("{}.{}", backquote(odd), backquote("t"));
            assert_eq!(unquoted_names(&text), Some(vec![odd.to_owned(), "t".to_owned()]), "{text}");
            for length in 0..text.len() {
                if let Some(cut) = text.get(..length) {
                    assert_ne!(unquoted_names(cut), unquoted_names(&text), "{cut}");
                }
            }
        }
        for other in ["", ".", "d.", "d*", "d.t x", "`d`t", "`d", "*.*"] {
            assert_eq!(names(other), None, "{other}");
        }
    }
}
