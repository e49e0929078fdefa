//! The Query packet: a statement, and everything that a client sends along with it.

use std::ops::Range;

use crate::native::input::{write_string, write_varint, Fault, Input};
use crate::native::revision;

/// Flag: the server has to know the setting.
pub const FLAG_IMPORTANT: u64 = 0x01;
/// Flag: no server declares the setting, and its value is written as a literal.
pub const FLAG_CUSTOM: u64 = 0x02;

const MAX_NAME_BYTES: usize = 64 * 1024;
/// The most bytes of a setting's value, such as a deduplication token or a log comment.
const MAX_VALUE_BYTES: usize = 1 << 20;
const MAX_SETTINGS: usize = 10_000;
/// The most bytes of the whole list of settings.
const MAX_LIST_BYTES: usize = 4 << 20;
const MAX_ROLES: usize = 1000;
/// The most bytes of a statement; a longer one is not held in memory.
const MAX_TEXT_BYTES: usize = 1 << 30;
const OVER_HTTP: u8 = 2;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    pub flags: u64,
    pub value: String,
}

impl Setting {
    /// Reads a list of settings, up to the empty name that ends it.
    ///
    /// # Errors
    /// Fails where the list has not all come, is too long, or has a text that is not UTF-8.
    pub fn read_all(input: &mut Input<'_>) -> Result<Vec<Setting>, Fault> {
        let (start, mut settings) = (input.at(), Vec::new());
        loop {
            let name = input.text(MAX_NAME_BYTES, "the name of a setting")?;
            if name.is_empty() {
                return Ok(settings);
            }
            if settings.len() == MAX_SETTINGS || input.at() - start > MAX_LIST_BYTES {
                return Err(Fault::TooLarge("the list of settings"));
            }
            let flags = input.varint()?;
            let value = input.text(MAX_VALUE_BYTES, "the value of a setting")?.to_owned();
            settings.push(Setting { name: name.to_owned(), flags, value });
        }
    }

    pub fn write_all(settings: &[Setting], out: &mut Vec<u8>) {
        settings.iter().for_each(|setting| setting.write(out));
        write_string(out, "");
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        write_string(out, &self.name);
        write_varint(out, self.flags);
        write_string(out, &self.value);
    }

    pub fn is_important(&self) -> bool {
        self.flags & FLAG_IMPORTANT != 0
    }
}

/// A Query packet, without its type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    pub id: String,
    /// Says whether a client sent the query. If not, a server sends it on behalf of another query.
    pub is_initial: bool,
    pub quota_key: String,
    pub settings: Vec<Setting>,
    /// The range of the packet that the list of settings takes, with its end: another list may be put in its place.
    pub settings_place: Range<usize>,
    pub stage: u64,
    pub is_compressed: bool,
    /// The range of the packet that the statement takes.
    pub text: Range<usize>,
    pub parameters: Vec<Setting>,
    pub trace: Option<TraceContext>,
}

/// The span that a client's query belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: u128,
    pub span_id: u64,
    pub state: String,
    pub flags: u8,
}

impl TraceContext {
    /// Writes the context as HTTP's field `traceparent` has it.
    pub fn traceparent(&self, flags: u8) -> String {
        format!("00-{:032x}-{:016x}-{flags:02x}", self.trace_id, self.span_id)
    }
}

/// The stage to which ClickHouse runs a statement for a client.
pub const STAGE_COMPLETE: u64 = 2;

impl Query {
    /// Reads a packet that begins with its type, and returns how many bytes it took.
    ///
    /// # Errors
    /// Fails where the packet has not all come, is malformed, or has a text or list that is too long.
    pub fn read(bytes: &[u8], revision: u64) -> Result<(Query, usize), Fault> {
        let (mut input, mut query) = (Input::new(bytes), Query::default());
        input.varint()?;
        query.id = input.text(MAX_NAME_BYTES, "the query id")?.to_owned();
        query.read_client_info(&mut input, revision)?;
        let settings_start = input.at();
        query.settings = Setting::read_all(&mut input)?;
        query.settings_place = settings_start..input.at();
        if revision >= revision::INTERSERVER_EXTERNALLY_GRANTED_ROLES {
            input.bytes(MAX_NAME_BYTES, "granted roles")?;
        }
        if revision >= revision::INTERSERVER_SECRET {
            input.bytes(32, "the hash of a cluster's secret")?;
        }
        query.stage = input.varint()?;
        query.is_compressed = match input.varint()? {
            0 => false,
            1 => true,
            _ => return Err(Fault::Malformed("a compression that is neither on nor off")),
        };
        let length = input.bytes(MAX_TEXT_BYTES, "the statement")?.len();
        query.text = input.at() - length..input.at();
        if revision >= revision::PARAMETERS {
            query.parameters = Setting::read_all(&mut input)?;
        }
        Ok((query, input.at()))
    }

    fn read_client_info(&mut self, input: &mut Input<'_>, revision: u64) -> Result<(), Fault> {
        let text = |input: &mut Input<'_>| input.text(MAX_NAME_BYTES, "what a client says of itself").map(drop);
        let number = |input: &mut Input<'_>| input.varint().map(drop);
        let kind = input.byte()?;
        self.is_initial = match kind {
            1 => true,
            2 => false,
            0 => return Ok(()),
            _ => return Err(Fault::Malformed("a kind of query that is neither initial nor secondary")),
        };
        // Initial user, id and address.
        (0..3).try_for_each(|_| text(input))?;
        if revision >= revision::INITIAL_QUERY_START_TIME {
            input.u64()?;
        }
        let interface = input.byte()?;
        match interface {
            1 => {
                (0..3).try_for_each(|_| text(input))?;
                (0..3).try_for_each(|_| number(input))?;
            }
            OVER_HTTP => {
                input.byte()?;
                text(input)?;
                if revision >= revision::X_FORWARDED_FOR {
                    text(input)?;
                }
                if revision >= revision::REFERER {
                    text(input)?;
                }
            }
            _ => {}
        }
        self.quota_key = input.text(MAX_NAME_BYTES, "the quota key")?.to_owned();
        if revision >= revision::DISTRIBUTED_DEPTH {
            number(input)?;
        }
        if interface == 1 && revision >= revision::VERSION_PATCH {
            number(input)?;
        }
        if revision >= revision::OPENTELEMETRY && input.bool()? {
            let (high, low) = (input.u64()?, input.u64()?);
            self.trace = Some(TraceContext {
                trace_id: u128::from(high) << 64 | u128::from(low),
                span_id: input.u64()?,
                state: input.text(MAX_NAME_BYTES, "what a client's trace has")?.to_owned(),
                flags: input.byte()?,
            });
        }
        if revision >= revision::PARALLEL_REPLICAS {
            (0..3).try_for_each(|_| number(input))?;
        }
        if revision >= revision::QUERY_AND_LINE_NUMBERS {
            (0..2).try_for_each(|_| number(input))?;
        }
        if revision >= revision::JWT_IN_INTERSERVER && input.bool()? {
            text(input)?;
        }
        if revision >= revision::CLIENT_AGENT {
            text(input)?;
        }
        if revision >= revision::INTERNAL_QUERY_FLAG {
            input.byte()?;
        }
        if revision >= revision::INTERSERVER_CURRENT_ROLES && input.bool()? {
            for _ in 0..input.count(MAX_ROLES, "current roles")? {
                text(input)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::client;

    /// Writes a Query packet like clickhouse-client.
    fn packet(revision: u64, settings: &[Setting], text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        write_varint(&mut out, client::QUERY);
        write_string(&mut out, "id");
        out.push(1);
        ["", "", "0.0.0.0:0"].into_iter().for_each(|text| write_string(&mut out, text));
        if revision >= revision::INITIAL_QUERY_START_TIME {
            out.extend_from_slice(&[0; 8]);
        }
        out.push(1);
        ["root", "host", "ClickHouse client"].into_iter().for_each(|text| write_string(&mut out, text));
        [26, 7, revision].into_iter().for_each(|number| write_varint(&mut out, number));
        write_string(&mut out, "quota");
        if revision >= revision::DISTRIBUTED_DEPTH {
            out.push(0);
        }
        out.push(2);
        if revision >= revision::OPENTELEMETRY {
            out.push(1);
            out.extend_from_slice(&[7; 24]);
            write_string(&mut out, "state");
            out.push(1);
        }
        if revision >= revision::PARALLEL_REPLICAS {
            out.extend_from_slice(&[0; 3]);
        }
        if revision >= revision::QUERY_AND_LINE_NUMBERS {
            out.extend_from_slice(&[0; 2]);
        }
        if revision >= revision::JWT_IN_INTERSERVER {
            out.push(0);
        }
        if revision >= revision::CLIENT_AGENT {
            write_string(&mut out, "agent");
        }
        if revision >= revision::INTERNAL_QUERY_FLAG {
            out.push(0);
        }
        if revision >= revision::INTERSERVER_CURRENT_ROLES {
            out.extend_from_slice(&[1, 1, 1, b'r']);
        }
        Setting::write_all(settings, &mut out);
        if revision >= revision::INTERSERVER_EXTERNALLY_GRANTED_ROLES {
            out.extend_from_slice(&[1, 0]);
        }
        if revision >= revision::INTERSERVER_SECRET {
            out.push(0);
        }
        write_varint(&mut out, STAGE_COMPLETE);
        out.push(1);
        write_string(&mut out, text);
        if revision >= revision::PARAMETERS {
            let parameter = Setting { name: "p".into(), flags: FLAG_CUSTOM, value: r"'a\'b\\'".into() };
            Setting::write_all(&[parameter], &mut out);
        }
        out
    }

    #[test]
    fn a_query_is_read_at_every_revision_and_no_part_of_it_is() {
        let settings = [Setting { name: "async_insert".into(), flags: FLAG_IMPORTANT, value: "1".into() }];
        for revision in revision::OLDEST..=revision::NEWEST {
            let bytes = packet(revision, &settings, "SELECT 1");
            let (query, length) = Query::read(&bytes, revision).unwrap();
            assert_eq!(length, bytes.len(), "{revision}");
            assert_eq!(&bytes[query.text.clone()], b"SELECT 1");
            assert_eq!((query.id.as_str(), query.quota_key.as_str()), ("id", "quota"));
            assert_eq!(query.settings, settings);
            assert!(query.is_initial && query.is_compressed && query.stage == STAGE_COMPLETE);
            let mut settings_bytes = Vec::new();
            Setting::write_all(&settings, &mut settings_bytes);
            assert_eq!(bytes[query.settings_place.clone()], settings_bytes);
            for end in 0..bytes.len() {
                assert!(matches!(Query::read(&bytes[..end], revision), Err(Fault::Incomplete { .. })), "{end} bytes");
            }
            if revision >= revision::PARAMETERS {
                assert_eq!(query.parameters[0].value, r"'a\'b\\'");
            }
        }
    }
}
