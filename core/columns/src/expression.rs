//! Reads an expression as ClickHouse shows it in `system.tables`: in its own formatting, which puts every
//! operation inside another one into parentheses, and writes each expression in exactly one way. Other
//! spellings are not understood.

const MAX_LENGTH: usize = 4096;
const MAX_DEPTH: usize = 32;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Column(String),
    /// A whole number that ClickHouse reads as such: it has 64 bits at the most.
    Number(i128),
    Text(String),
    /// A tuple of two or more elements, without the function's name.
    Tuple(Vec<Expression>),
    /// A call of a function. Operators are calls of the functions that they stand for.
    Call {
        function: String,
        arguments: Vec<Expression>,
    },
}

impl Expression {
    pub(crate) fn parse(text: &str) -> Option<Expression> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let mut reader = Reader { rest: text, depth: 0 };
        let expression = reader.expression()?;
        reader.rest.is_empty().then_some(expression)
    }
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn expression(&mut self) -> Option<Expression> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let first = self.operand()?;
        let operations = [(" + ", "plus"), (" - ", "minus"), (" * ", "multiply"), (" % ", "modulo")];
        let expression = match operations.into_iter().find(|(sign, _)| self.eat(sign)) {
            Some((_, function)) => call(function, vec![first, self.operand()?]),
            None => first,
        };
        self.depth -= 1;
        Some(expression)
    }

    fn operand(&mut self) -> Option<Expression> {
        if self.eat("-") {
            return match self.primary()? {
                Expression::Number(number) => negative(number),
                operand => Some(call("negate", vec![operand])),
            };
        }
        self.primary()
    }

    fn primary(&mut self) -> Option<Expression> {
        match self.rest.bytes().next()? {
            b'(' => self.parenthesis(),
            b'`' => self.quoted('`').map(Expression::Column),
            b'\'' => self.quoted('\'').map(Expression::Text),
            b'0'..=b'9' => number(self.word()),
            _ => self.name(),
        }
    }

    fn parenthesis(&mut self) -> Option<Expression> {
        let mut inside = self.list()?;
        match inside.len() {
            0 => None,
            // A minus in front of it would make a negative literal of it, which is of another type.
            1 => inside.pop().filter(|only| !matches!(only, Expression::Number(_))),
            _ => Some(Expression::Tuple(inside)),
        }
    }

    fn name(&mut self) -> Option<Expression> {
        let name = self.word();
        let starts_a_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !starts_a_name {
            return None;
        }
        if self.rest.starts_with('(') {
            return Some(call(name, self.list()?));
        }
        let is_literal = ["null", "true", "false", "inf", "nan"].iter().any(|word| name.eq_ignore_ascii_case(word));
        (!is_literal).then(|| Expression::Column(name.to_owned()))
    }

    fn list(&mut self) -> Option<Vec<Expression>> {
        self.eat("(").then_some(())?;
        let mut list = Vec::new();
        if self.eat(")") {
            return Some(list);
        }
        loop {
            list.push(self.expression()?);
            if self.eat(")") {
                return Some(list);
            }
            self.eat(", ").then_some(())?;
        }
    }

    fn word(&mut self) -> &'a str {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = self.rest.find(|c: char| !is_word(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Reads the text in quotes, if it has no character that would have to be escaped.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let (inside, rest) = self.rest.strip_prefix(quote)?.split_once(quote)?;
        self.rest = rest;
        let is_empty_name = quote == '`' && inside.is_empty();
        let is_escaped = inside.contains('\\') || rest.starts_with(quote);
        (!is_empty_name && !is_escaped).then(|| inside.to_owned())
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

fn call(function: &str, arguments: Vec<Expression>) -> Expression {
    Expression::Call { function: function.to_owned(), arguments }
}

fn number(digits: &str) -> Option<Expression> {
    let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    let number: u64 = digits.parse().ok().filter(|_| is_decimal)?;
    Some(Expression::Number(number.into()))
}

fn negative(number: i128) -> Option<Expression> {
    (0 < number && -number >= i64::MIN.into()).then_some(Expression::Number(-number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str) -> Expression {
        Expression::Column(name.into())
    }

    #[test]
    fn expressions_are_read_as_clickhouse_writes_them() {
        let (id, seven) = (column("id"), Expression::Number(7));
        for (text, expected) in [
            ("id", id.clone()),
            ("(id)", id.clone()),
            ("`odd, name`", column("odd, name")),
            ("-7", Expression::Number(-7)),
            ("-id", call("negate", vec![id.clone()])),
            ("id % 7", call("modulo", vec![id.clone(), seven.clone()])),
            ("f(id, 7)", call("f", vec![id.clone(), seven.clone()])),
            ("f()", call("f", vec![])),
            ("(id, 'it')", Expression::Tuple(vec![id.clone(), Expression::Text("it".into())])),
            ("f((id, 7))", call("f", vec![Expression::Tuple(vec![id.clone(), seven.clone()])])),
            (
                "(id + -7) * id",
                call("multiply", vec![call("plus", vec![id.clone(), Expression::Number(-7)]), id.clone()]),
            ),
            ("id - (-id)", call("minus", vec![id.clone(), call("negate", vec![id.clone()])])),
        ] {
            assert_eq!(Expression::parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_written_otherwise_is_not_guessed() {
        for text in [
            "",
            " id",
            "id ",
            "id%7",
            "id  % 7",
            "id % 7 % 7",
            "--id",
            "-(7)",
            "(7)",
            "-0",
            "07",
            "0x7",
            "7.5",
            "7e1",
            "id.1",
            "id[1]",
            "id AS x",
            "NOT id",
            "id = 7",
            "id / 7",
            "f(id)(7)",
            "f(id,7)",
            "f(id, )",
            "f(",
            "f)",
            "()",
            "(id",
            "id)",
            "`a",
            "``",
            "`a\\`b`",
            "`a``b`",
            "'a",
            "'a''b'",
            "'a\\nb'",
            "NULL",
            "true",
            "nan",
            "é",
            "f(x -> x)",
            "18446744073709551616",
            "-9223372036854775809",
        ] {
            assert_eq!(Expression::parse(text), None, "{text}");
        }
        assert_eq!(Expression::parse(&"a".repeat(MAX_LENGTH + 1)), None);
        assert_eq!(Expression::parse(&"(".repeat(MAX_LENGTH)), None);
        let nested = |depth: usize| format!("{}a{}", "f(".repeat(depth), ")".repeat(depth));
        assert!(Expression::parse(&nested(MAX_DEPTH - 1)).is_some());
        assert_eq!(Expression::parse(&nested(MAX_DEPTH)), None);
    }
}
