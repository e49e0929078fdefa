//! Pieces of lines with colours. They are kept apart until a line is cut to its width.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Plain,
    Bold,
    Dim,
    Green,
    Red,
}

#[derive(Debug, Clone)]
struct Span {
    text: String,
    colour: Colour,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    spans: Vec<Span>,
}

impl Line {
    pub fn with(mut self, colour: Colour, text: impl Into<String>) -> Self {
        self.spans.push(Span { text: text.into(), colour });
        self
    }

    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.chars().count()).sum()
    }

    /// Adds the pieces of another line, from the column `at` on.
    pub fn beside(mut self, at: usize, other: Line) -> Self {
        let gap = at.saturating_sub(self.width());
        self = self.with(Colour::Plain, " ".repeat(gap));
        self.spans.extend(other.spans);
        self
    }

    /// Returns the line cut to `width` columns, with escape sequences if `colours` is set.
    pub fn paint(&self, width: usize, colours: bool) -> String {
        let mut out = String::new();
        let mut room = width;
        for span in &self.spans {
            let text: String = span.text.chars().take(room).collect();
            room -= text.chars().count();
            match (colours, span.colour.code()) {
                (true, Some(code)) if !text.is_empty() => out.push_str(&format!("\x1b[{code}m{text}\x1b[0m")),
                _ => out.push_str(&text),
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out
    }
}

impl Colour {
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Dim => Some("2"),
            Self::Green => Some("32"),
            Self::Red => Some("31"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_by_characters_and_not_by_escapes() {
        let line = Line::default().with(Colour::Red, "São Paulo").with(Colour::Plain, " 150 ms");
        assert_eq!(line.width(), 16);
        assert_eq!(line.paint(80, false), "São Paulo 150 ms");
        assert_eq!(line.paint(4, false), "São");
        assert_eq!(line.paint(3, true), "\x1b[31mSão\x1b[0m");
        assert_eq!(line.paint(0, true), "");
        let two = Line::default().with(Colour::Plain, "a").beside(3, Line::default().with(Colour::Plain, "b"));
        assert_eq!(two.paint(80, true), "a  b");
    }
}
