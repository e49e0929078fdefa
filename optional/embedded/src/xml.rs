//! Writer of the little XML that ClickHouse's configuration needs, with all texts escaped.

use std::fmt::Write as _;

/// An XML text under construction. Callers choose the element names; texts are escaped here.
pub(crate) struct Xml {
    text: String,
}

impl Xml {
    pub(crate) fn document(inside: impl FnOnce(&mut Xml)) -> String {
        let mut xml = Xml { text: String::new() };
        xml.element("clickhouse", inside);
        xml.text
    }

    pub(crate) fn element(&mut self, name: &str, inside: impl FnOnce(&mut Xml)) {
        let _ = write!(self.text, "<{name}>");
        inside(self);
        let _ = writeln!(self.text, "</{name}>");
    }

    pub(crate) fn value(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.text, "<{name}>{}</{name}>", escaped(value));
    }
}

fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // XML 1.0 has no way to write these, and one of them would make the whole file unreadable.
            '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' => {}
            // A literal line end would be normalised by the reader.
            '\r' | '\n' | '\t' => {
                let _ = write!(out, "&#{};", u32::from(character));
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let text = Xml::document(|xml| xml.value("a", "<b> & \"c\" 'd'\u{0}\r\n"));
        assert_eq!(text, "<clickhouse><a>&lt;b&gt; &amp; \"c\" 'd'&#13;&#10;</a>\n</clickhouse>\n");
    }

    #[test]
    fn elements_nest() {
        let text = Xml::document(|xml| xml.element("users", |xml| xml.element("a", |_| ())));
        assert_eq!(text, "<clickhouse><users><a></a>\n</users>\n</clickhouse>\n");
    }
}
