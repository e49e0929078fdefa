//! The head of an answer, line by line.
//!
//! ClickHouse sends its progress as header fields while the query runs, for hours if need be: a line is worked off as soon as it
//! is whole, and progress is handed on rather than kept, so that a head of any length takes bounded memory.

/// One line, and all lines that are kept.
const MAX_LINE_BYTES: usize = 64 << 10;
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Interim answers (`100 Continue`) before the real one.
const MAX_INTERIM_HEADS: usize = 32;
const PROGRESS: &str = "x-clickhouse-progress";

#[derive(Default)]
pub struct Head {
    pub status: u16,
    /// HTTP/1.0 closes by default.
    pub is_http_10: bool,
    /// Names in lower case; fields of one name are joined by commas.
    pub fields: Vec<(String, String)>,
}

impl Head {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether a field that is a list of words has this word.
    pub fn has_word(&self, name: &str, word: &str) -> bool {
        self.field(name).is_some_and(|value| value.split(',').any(|item| item.trim().eq_ignore_ascii_case(word)))
    }
}

#[derive(Default)]
pub struct HeadParser {
    /// The beginning of a line whose end hasn't come.
    partial: Vec<u8>,
    head: Head,
    kept_bytes: usize,
    interim_heads: usize,
}

/// What a piece of a head brought.
pub struct HeadStep {
    pub consumed: usize,
    pub whole: Option<Head>,
}

impl HeadParser {
    /// Reads up to the end of the head; progress is given to `on_progress`.
    pub fn read(&mut self, input: &[u8], on_progress: &mut dyn FnMut(&str)) -> Result<HeadStep, String> {
        let mut consumed = 0;
        while let Some(length) = input[consumed..].iter().position(|byte| *byte == b'\n') {
            let piece = &input[consumed..consumed + length];
            consumed += length + 1;
            let ended = if self.partial.is_empty() {
                self.line(piece, on_progress)?
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.extend_from_slice(piece);
                self.line(&line, on_progress)?
            };
            if ended {
                return Ok(HeadStep { consumed, whole: Some(std::mem::take(&mut self.head)) });
            }
        }
        let rest = &input[consumed..];
        if self.partial.len() + rest.len() > MAX_LINE_BYTES {
            return Err(format!("a line of the answer's head has more than {MAX_LINE_BYTES} bytes"));
        }
        self.partial.extend_from_slice(rest);
        Ok(HeadStep { consumed: input.len(), whole: None })
    }

    /// Whether this line ended the head of the real answer.
    fn line(&mut self, line: &[u8], on_progress: &mut dyn FnMut(&str)) -> Result<bool, String> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > MAX_LINE_BYTES {
            return Err(format!("a line of the answer's head has more than {MAX_LINE_BYTES} bytes"));
        }
        if self.head.status == 0 {
            self.status_line(line)?;
            return Ok(false);
        }
        if line.is_empty() {
            return self.end();
        }
        self.field_line(line, on_progress)?;
        Ok(false)
    }

    fn status_line(&mut self, line: &[u8]) -> Result<(), String> {
        let wrong = || format!("this is no HTTP answer: it begins with {:?}", shown(line));
        let text = std::str::from_utf8(line).map_err(|_| wrong())?;
        let (version, rest) = text.split_once(' ').ok_or_else(wrong)?;
        let status = rest.split(' ').next().unwrap_or_default();
        if !matches!(version, "HTTP/1.1" | "HTTP/1.0") || status.len() != 3 {
            return Err(wrong());
        }
        self.head.status = status.parse().ok().filter(|status| (100..1000).contains(status)).ok_or_else(wrong)?;
        self.head.is_http_10 = version == "HTTP/1.0";
        Ok(())
    }

    fn field_line(&mut self, line: &[u8], on_progress: &mut dyn FnMut(&str)) -> Result<(), String> {
        let wrong = || format!("a line of the answer's head is no field: {:?}", shown(line));
        let colon = line.iter().position(|byte| *byte == b':').ok_or_else(wrong)?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) || value.iter().any(|byte| is_control(*byte)) {
            return Err(wrong());
        }
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        let value = String::from_utf8_lossy(value);
        let value = value.trim_matches([' ', '\t']);
        if name == PROGRESS {
            on_progress(value);
            return Ok(());
        }
        self.kept_bytes += line.len();
        if self.kept_bytes > MAX_HEAD_BYTES {
            return Err(format!("the answer's head has more than {MAX_HEAD_BYTES} bytes"));
        }
        match self.head.fields.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => {
                known.push_str(", ");
                known.push_str(value);
            }
            None => self.head.fields.push((name, value.to_owned())),
        }
        Ok(())
    }

    fn end(&mut self) -> Result<bool, String> {
        match self.head.status {
            101 => Err("the server switched to another protocol".to_owned()),
            100..200 if self.interim_heads == MAX_INTERIM_HEADS => Err("there is no end of interim answers".to_owned()),
            100..200 => {
                self.interim_heads += 1;
                self.head = Head::default();
                Ok(false)
            }
            _ => Ok(true),
        }
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

/// What of a line may stand in a message.
fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned()
}
