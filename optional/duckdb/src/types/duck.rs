//! DuckDB's types as its catalogue writes them: `DECIMAL(18,3)`, `STRUCT(a INTEGER, "b c" VARCHAR[])`, `ENUM('a',
//! 'b')`.

/// A type of DuckDB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DuckType {
    /// A type without arguments, by its name: `BIGINT`, `TIMESTAMP WITH TIME ZONE`. Also any type that is not
    /// known here.
    Plain(String),
    Decimal {
        precision: u8,
        scale: u8,
    },
    Enum(Vec<String>),
    List(Box<DuckType>),
    Array(Box<DuckType>, usize),
    Struct(Vec<(String, DuckType)>),
    Map(Box<DuckType>, Box<DuckType>),
}

/// The deepest nesting of types that is parsed.
const MAX_DEPTH: usize = 64;

impl DuckType {
    /// Parses a type. Returns `None` for a text that is not understood as a whole.
    pub(crate) fn parse(text: &str) -> Option<DuckType> {
        let mut parser = Parser { rest: text };
        let parsed = parser.of_depth(0)?;
        parser.rest.trim_start().is_empty().then_some(parsed)
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn of_depth(&mut self, depth: usize) -> Option<DuckType> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut parsed = self.without_brackets(depth)?;
        let mut brackets = 0;
        while self.take("[") {
            brackets += 1;
            let digits = self.digits();
            self.take("]").then_some(())?;
            parsed = match digits {
                "" => DuckType::List(Box::new(parsed)),
                digits => DuckType::Array(Box::new(parsed), digits.parse().ok()?),
            };
            (brackets + depth <= MAX_DEPTH).then_some(())?;
        }
        Some(parsed)
    }

    fn without_brackets(&mut self, depth: usize) -> Option<DuckType> {
        let name = self.words();
        if !self.take("(") {
            return (!name.is_empty()).then(|| DuckType::Plain(name.to_owned()));
        }
        let parsed = match name {
            "DECIMAL" => {
                let precision = self.digits().parse().ok()?;
                self.take(",").then_some(())?;
                DuckType::Decimal { precision, scale: self.digits().parse().ok()? }
            }
            "ENUM" => DuckType::Enum(self.several(|parser| parser.quoted('\''))?),
            "STRUCT" => DuckType::Struct(self.several(|parser| {
                let name = parser.name()?;
                Some((name, parser.of_depth(depth + 1)?))
            })?),
            "MAP" => {
                let key = self.of_depth(depth + 1)?;
                self.take(",").then_some(())?;
                DuckType::Map(Box::new(key), Box::new(self.of_depth(depth + 1)?))
            }
            _ => return None,
        };
        self.take(")").then_some(parsed)
    }

    fn several<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.take(",") {
            all.push(one(self)?);
        }
        Some(all)
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let after = self.rest.strip_prefix(token);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn digits(&mut self) -> &'a str {
        self.skip_spaces();
        self.while_true(|c| c.is_ascii_digit())
    }

    fn while_true(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// Reads words as one name, such as `TIMESTAMP WITH TIME ZONE`.
    fn words(&mut self) -> &'a str {
        self.skip_spaces();
        self.while_true(|c| c.is_ascii_alphanumeric() || c == '_' || c == ' ').trim_end()
    }

    /// Reads a field's name, which is quoted where it is no plain word.
    fn name(&mut self) -> Option<String> {
        self.skip_spaces();
        if self.rest.starts_with('"') {
            return self.quoted('"');
        }
        let name = self.while_true(|c| c.is_alphanumeric() || c == '_');
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn quoted(&mut self, quote: char) -> Option<String> {
        self.skip_spaces();
        let mut rest = self.rest.strip_prefix(quote)?;
        let mut text = String::new();
        loop {
            let (before, after) = rest.split_once(quote)?;
            text.push_str(before);
            match after.strip_prefix(quote) {
                Some(more) => {
                    text.push(quote);
                    rest = more;
                }
                None => {
                    self.rest = after;
                    return Some(text);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(name: &str) -> DuckType {
        DuckType::Plain(name.into())
    }

    #[test]
    fn types_are_read_as_the_catalogue_writes_them() {
        let parse = |text| DuckType::parse(text).unwrap();
        assert_eq!(parse("TIMESTAMP WITH TIME ZONE"), plain("TIMESTAMP WITH TIME ZONE"));
        assert_eq!(parse("DECIMAL(18,3)"), DuckType::Decimal { precision: 18, scale: 3 });
        assert_eq!(parse("INTEGER[3][]"), DuckType::List(Box::new(DuckType::Array(Box::new(plain("INTEGER")), 3))));
        assert_eq!(parse("ENUM('a', 'b''c')"), DuckType::Enum(vec!["a".into(), "b'c".into()]));
        let fields = vec![("a".into(), plain("INTEGER")), ("b \"c".into(), DuckType::List(Box::new(plain("VARCHAR"))))];
        assert_eq!(parse("STRUCT(a INTEGER, \"b \"\"c\" VARCHAR[])"), DuckType::Struct(fields));
        let map = DuckType::Map(Box::new(plain("VARCHAR")), Box::new(plain("DOUBLE")));
        assert_eq!(parse("MAP(VARCHAR, DOUBLE)"), map);
    }

    #[test]
    fn anything_else_is_not_understood() {
        let deep = format!("{}INTEGER{}", "STRUCT(a ".repeat(1000), ")".repeat(1000));
        let wide = format!("INTEGER{}", "[]".repeat(100_000));
        for text in [
            "",
            "STRUCT(",
            "STRUCT()",
            "ENUM('a",
            "INTEGER[",
            "INTEGER]",
            "UNION(i INTEGER)",
            "DECIMAL(1)",
            &deep,
            &wide,
        ] {
            assert_eq!(DuckType::parse(text), None, "{}", &text[..text.len().min(40)]);
        }
    }
}
