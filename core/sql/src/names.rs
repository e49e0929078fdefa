//! Names of tables and columns outside of a statement, in a URL's parameters and in settings: written like identifiers.

/// A table's name, perhaps with its database.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    pub database: Option<String>,
    pub table: String,
}

impl TableName {
    /// Reads `t`, `db.t`, `` `my db`.`t` ``.
    pub fn parse(text: &str) -> Option<TableName> {
        let mut names = split(text, '.')?;
        match names.len() {
            1 => Some(TableName { database: None, table: names.pop()? }),
            2 => {
                let table = names.pop()?;
                Some(TableName { database: names.pop(), table })
            }
            _ => None,
        }
    }
}

/// Reads a list such as `` a, b, `c,d` ``.
pub fn column_names(text: &str) -> Option<Vec<String>> {
    split(text, ',')
}

/// Reads identifiers, plain or quoted, between separators.
fn split(text: &str, separator: char) -> Option<Vec<String>> {
    let (mut names, mut rest) = (Vec::new(), text.trim());
    loop {
        let (name, behind) = match rest.chars().next()? {
            quote @ ('`' | '"') => quoted(&rest[1..], quote)?,
            _ => {
                let end = rest.find(separator).unwrap_or(rest.len());
                let name = rest[..end].trim_end();
                (Some(name).filter(|name| !name.contains(['`', '"']))?.to_owned(), &rest[end..])
            }
        };
        if name.is_empty() || name.contains('\0') {
            return None;
        }
        names.push(name);
        let behind = behind.trim_start();
        match behind.strip_prefix(separator) {
            Some(more) => rest = more.trim_start(),
            None => return behind.is_empty().then_some(names),
        }
    }
}

/// Returns the name up to the closing quote, and the text behind the quote. A quote inside is doubled, or
/// behind a backslash.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let (mut name, mut chars) = (String::new(), text.char_indices().peekable());
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => name.push(chars.next()?.1),
            char if char == quote => match chars.next_if(|(_, next)| *next == quote) {
                Some(_) => name.push(quote),
                None => return Some((name, &text[at + quote.len_utf8()..])),
            },
            char => name.push(char),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_as_in_statements() {
        let name = |database: Option<&str>, table: &str| {
            Some(TableName { database: database.map(str::to_owned), table: table.to_owned() })
        };
        assert_eq!(TableName::parse("t"), name(None, "t"));
        assert_eq!(TableName::parse("db.t"), name(Some("db"), "t"));
        assert_eq!(TableName::parse("`a.b`.\"c\"\"d\""), name(Some("a.b"), "c\"d"));
        assert_eq!(TableName::parse("`a\\`b`"), name(None, "a`b"));
        assert_eq!(TableName::parse(" ü . ß "), name(Some("ü"), "ß"));
        for bad in ["", ".", "a.", ".t", "a.b.c", "`a", "`a`b", "a`b", "``", "`a\\"] {
            assert_eq!(TableName::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn columns_have_commas_between() {
        let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(column_names("a"), names(&["a"]));
        assert_eq!(column_names("a, b.c ,`d,e`"), names(&["a", "b.c", "d,e"]));
        for bad in ["", ",", "a,", "a,,b"] {
            assert_eq!(column_names(bad), None, "{bad}");
        }
    }
}
