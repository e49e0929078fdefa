//! A reader of JSON's values, one after the other, as far as the caller asks for them.
//!
//! A fault in a single value (an escape, a number, an unknown word) is returned as that value: its end is
//! known all the same, and its neighbours can be read. Only a fault after which reading can't go on is an
//! error: something has no end, or stands where nothing of its kind can stand.

use std::borrow::Cow;

/// An error after which reading can't go on, with the byte where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Syntax(pub(crate) usize);

/// A value. If it is an object or a list, only the bracket has been read.
#[derive(Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    /// A number in JSON's form.
    Number(&'a str),
    /// A text without its escapes. It need not be UTF-8.
    Text(Cow<'a, [u8]>),
    Object,
    List,
    /// A value that JSON does not have.
    Nonsense,
}

pub(crate) struct Json<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Json<'a> {
    pub(crate) fn of(text: &'a [u8]) -> Self {
        Json { text, at: 0 }
    }

    /// Returns the next byte that is no space.
    #[inline]
    fn peek(&mut self) -> Result<u8, Syntax> {
        while let Some(byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Ok(*byte);
            }
            self.at += 1;
        }
        Err(Syntax(self.at))
    }

    /// Checks that only spaces are left.
    pub(crate) fn end(&mut self) -> Result<(), Syntax> {
        match self.peek() {
            Ok(_) => Err(Syntax(self.at)),
            Err(_) => Ok(()),
        }
    }

    pub(crate) fn value(&mut self) -> Result<Value<'a>, Syntax> {
        match self.peek()? {
            b'"' => Ok(unescaped(self.string()?).map_or(Value::Nonsense, Value::Text)),
            bracket @ (b'{' | b'[') => {
                self.at += 1;
                Ok(if bracket == b'{' { Value::Object } else { Value::List })
            }
            _ => Ok(match self.word()? {
                b"null" => Value::Null,
                b"true" => Value::Bool(true),
                b"false" => Value::Bool(false),
                word => number(word).map_or(Value::Nonsense, Value::Number),
            }),
        }
    }

    /// Reads the next name in an object; its value comes next. Returns `None` at the object's end.
    pub(crate) fn name(&mut self, is_first: bool) -> Result<Option<Cow<'a, [u8]>>, Syntax> {
        if !self.goes_on(b'}', is_first)? {
            return Ok(None);
        }
        if self.peek()? != b'"' {
            return Err(Syntax(self.at));
        }
        let raw = self.string()?;
        if self.peek()? != b':' {
            return Err(Syntax(self.at));
        }
        self.at += 1;
        // A name that can't be read is that of no field.
        Ok(Some(unescaped(raw).unwrap_or(Cow::Borrowed(raw))))
    }

    /// Says whether a list has another element, which comes next.
    pub(crate) fn element(&mut self, is_first: bool) -> Result<bool, Syntax> {
        self.goes_on(b']', is_first)
    }

    fn goes_on(&mut self, bracket: u8, is_first: bool) -> Result<bool, Syntax> {
        match self.peek()? {
            byte if byte == bracket => {
                self.at += 1;
                Ok(false)
            }
            _ if is_first => Ok(true),
            b',' => {
                self.at += 1;
                Ok(true)
            }
            _ => Err(Syntax(self.at)),
        }
    }

    /// Skips the next value.
    pub(crate) fn skip(&mut self) -> Result<(), Syntax> {
        match self.value()? {
            Value::Object => self.skip_rest(b'}'),
            Value::List => self.skip_rest(b']'),
            _ => Ok(()),
        }
    }

    /// Skips the rest of an object or a list, up to its closing bracket, however deep it is.
    pub(crate) fn skip_rest(&mut self, bracket: u8) -> Result<(), Syntax> {
        let mut open = vec![bracket];
        while let Some(bracket) = open.last() {
            match self.peek()? {
                byte if byte == *bracket => {
                    open.pop();
                    self.at += 1;
                }
                b'{' => {
                    open.push(b'}');
                    self.at += 1;
                }
                b'[' => {
                    open.push(b']');
                    self.at += 1;
                }
                b'"' => drop(self.string()?),
                b',' | b':' => self.at += 1,
                _ => drop(self.word()?),
            }
        }
        Ok(())
    }

    /// Returns the text between quotation marks.
    fn string(&mut self) -> Result<&'a [u8], Syntax> {
        let start = self.at + 1;
        let mut at = start;
        loop {
            match self.text.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
                None => return Err(Syntax(self.text.len())),
            }
        }
        self.at = at + 1;
        Ok(&self.text[start..at])
    }

    /// Reads up to a character that ends a value.
    fn word(&mut self) -> Result<&'a [u8], Syntax> {
        let rest = &self.text[self.at..];
        let is_end =
            |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b'"' | b'{' | b'}' | b'[' | b']');
        let length = rest.iter().position(is_end).unwrap_or(rest.len());
        match length {
            0 => Err(Syntax(self.at)),
            length => {
                self.at += length;
                Ok(&rest[..length])
            }
        }
    }
}

fn number(word: &[u8]) -> Option<&str> {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = word.strip_prefix(b"-").unwrap_or(word);
    let whole = digits(rest);
    if whole == 0 || whole > 1 && rest[0] == b'0' {
        return None;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let places = digits(fraction);
        rest = &fraction[places..];
        if places == 0 {
            return None;
        }
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = exponent.strip_prefix(b"-").or_else(|| exponent.strip_prefix(b"+")).unwrap_or(exponent);
        rest = &exponent[digits(exponent)..];
        if exponent.is_empty() {
            return None;
        }
    }
    std::str::from_utf8(word).ok().filter(|_| rest.is_empty())
}

/// Replaces the escapes of a text. Returns `None` where it has an escape that JSON doesn't have.
fn unescaped(raw: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(first) = raw.iter().position(|byte| *byte == b'\\') else { return Some(Cow::Borrowed(raw)) };
    let mut out = raw[..first].to_vec();
    let mut rest = &raw[first..];
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let (escape, behind) = rest.split_first()?;
        rest = behind;
        out.push(match escape {
            b'"' | b'\\' | b'/' => *escape,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                push_unicode(&mut rest, &mut out)?;
                continue;
            }
            _ => return None,
        });
    }
    Some(Cow::Owned(out))
}

/// Writes an escaped character. A surrogate without its other half becomes a replacement character, and so
/// does an escape in the place of the other half: the collector reads it like this.
fn push_unicode(rest: &mut &[u8], out: &mut Vec<u8>) -> Option<()> {
    let first = unit(rest)?;
    let second = match (first, rest.strip_prefix(b"\\u")) {
        (0xD800..=0xDFFF, Some(behind)) => {
            *rest = behind;
            Some(unit(rest)?)
        }
        _ => None,
    };
    for letter in char::decode_utf16([Some(first), second].into_iter().flatten()) {
        let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Some(())
}

/// Reads four digits.
fn unit(rest: &mut &[u8]) -> Option<u16> {
    let (digits, behind) = rest.split_first_chunk::<4>()?;
    let digit = |value: u16, byte: &u8| Some(value << 4 | char::from(*byte).to_digit(16)? as u16);
    let value = digits.iter().try_fold(0, digit)?;
    *rest = behind;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Option<Vec<u8>> {
        let mut reader = Json::of(json.as_bytes());
        match reader.value() {
            Ok(Value::Text(text)) => reader.end().ok().map(|()| text.into_owned()),
            other => {
                assert_eq!(other, Ok(Value::Nonsense), "{json}");
                None
            }
        }
    }

    #[test]
    fn surrogates_alone_are_replaced_as_the_collector_does_it() {
        let cases = [
            (r#""cut \ud83d""#, "cut \u{FFFD}"),
            (r#""\ude00 cut""#, "\u{FFFD} cut"),
            (r#""\ud83dx""#, "\u{FFFD}x"),
            (r#""\ud83d\n""#, "\u{FFFD}\n"),
            (r#""\ud83d\u0041""#, "\u{FFFD}A"),
            (r#""\ude00\ud83d""#, "\u{FFFD}\u{FFFD}"),
            (r#""\ud83d\ude00""#, "\u{1F600}"),
            (r#""\ud83d\ud83d\ude00""#, "\u{FFFD}\u{FFFD}\u{FFFD}"),
            (r#""\ud83d\\ude00""#, "\u{FFFD}\\ude00"),
        ];
        for (json, expected) in cases {
            assert_eq!(text(json), Some(expected.as_bytes().to_vec()), "{json}");
        }
    }

    #[test]
    fn texts_are_read() {
        assert_eq!(text(r#""\"\\\/\b\f\n\r\té""#), Some("\"\\/\u{8}\u{c}\n\r\té".as_bytes().to_vec()));
        for json in [r#""\x""#, r#""\u12""#, r#""\u12g4""#, r#""\ud83d\u12""#] {
            assert_eq!(text(json), None, "{json}");
        }
    }

    #[test]
    fn numbers_have_jsons_form() {
        for word in ["0", "-0", "7", "-12.50", "1e5", "1.5E-07", "0e+0"] {
            assert_eq!(Json::of(word.as_bytes()).value(), Ok(Value::Number(word)), "{word}");
        }
        for word in ["01", "+1", ".5", "1.", "1e", "1e+", "NaN", "-Infinity", "0x7", "1_0", "--1", "nul", "True", "-"] {
            assert_eq!(Json::of(word.as_bytes()).value(), Ok(Value::Nonsense), "{word}");
        }
    }

    #[test]
    fn what_is_passed_over_may_be_deep_but_has_an_end() {
        let deep = format!("{}{}7", "[{\"a\\\"]\":".repeat(100_000), "}]".repeat(100_000));
        let mut reader = Json::of(deep.as_bytes());
        assert_eq!((reader.skip(), reader.value()), (Ok(()), Ok(Value::Number("7"))));
        for json in ["", "{", "[}", "{\"a", "[1,", "{]", "}", ","] {
            assert!(Json::of(json.as_bytes()).skip().is_err(), "{json}");
        }
    }
}
