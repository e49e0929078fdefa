//! Writing names and strings so that ClickHouse reads the same ones back.

/// `` `name` ``, whatever the name contains.
pub fn backquote(identifier: &str) -> String {
    quote(identifier, '`')
}

/// `'text'`, whatever the text contains.
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
