//! The beginning of a connection: the client's Hello, the server's Hello, and the addendum of the client.

use crate::native::chunked::Chunked;
use crate::native::input::{write_string, write_varint, Fault, Input};
use crate::native::revision;
use crate::native::{client, server, Setting};

/// The most bytes of a text that ClickHouse accepts from a client that it doesn't know yet.
pub const MAX_HELLO_STRING_BYTES: usize = 64 * 1024;
/// Name of plain packets, one after the other: both sides send them so unless they agreed on chunks.
const NOT_CHUNKED: &str = "notchunked";
const CHUNKED: &str = "chunked";
/// Name by which a server says that it can do either, and that the client may choose.
const EITHER: &str = "notchunked_optional";
const MAX_FRAMING_BYTES: usize = 100;
const MAX_RULES: usize = 256;
const NAME: &str = "ClickHouse";

/// The first thing on a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Startup {
    Hello(ClientHello),
    /// The first letter of an HTTP method.
    Http,
    /// A TLS handshake.
    Tls,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientHello {
    pub name: String,
    pub major: u64,
    pub minor: u64,
    pub revision: u64,
    pub database: String,
    pub user: String,
    pub password: String,
}

impl Startup {
    /// Reads the first bytes of a connection, and returns how many it took.
    ///
    /// # Errors
    /// Fails where the bytes are neither the beginning of HTTP or TLS nor a whole Hello.
    pub fn read(bytes: &[u8]) -> Result<(Startup, usize), Fault> {
        match bytes.first() {
            Some(b'G' | b'P') => return Ok((Startup::Http, 0)),
            Some(0x16) => return Ok((Startup::Tls, 0)),
            _ => {}
        }
        let mut input = Input::new(bytes);
        if input.varint()? != client::HELLO {
            return Err(Fault::Malformed("it does not begin with Hello"));
        }
        let mut text = |what| Ok::<_, Fault>(input.text(MAX_HELLO_STRING_BYTES, what)?.to_owned());
        let name = text("the client's name")?;
        let (major, minor, revision) = (input.varint()?, input.varint()?, input.varint()?);
        let mut text = |what| Ok::<_, Fault>(input.text(MAX_HELLO_STRING_BYTES, what)?.to_owned());
        let (database, user, password) = (text("the database")?, text("the user")?, text("the password")?);
        let hello = ClientHello { name, major, minor, revision, database, user, password };
        Ok((Startup::Hello(hello), input.at()))
    }
}

impl ClientHello {
    pub fn write(&self, out: &mut Vec<u8>) {
        write_varint(out, client::HELLO);
        write_string(out, &self.name);
        [self.major, self.minor, self.revision].into_iter().for_each(|number| write_varint(out, number));
        [&self.database, &self.user, &self.password].into_iter().for_each(|text| write_string(out, text));
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerHello {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
    pub revision: u64,
    pub timezone: String,
    pub display_name: String,
    pub parallel_replicas_version: u64,
    pub query_plan_version: u64,
    pub cluster_function_version: u64,
    pub password_rules: Vec<(String, String)>,
    pub settings: Vec<Setting>,
    /// The directions in which the server insists on chunks. In the other directions the client chooses.
    pub chunked: Chunked,
}

impl ServerHello {
    /// Writes the Hello for a client with which `revision` has been agreed.
    pub fn write(&self, out: &mut Vec<u8>, revision: u64, nonce: u64) {
        write_varint(out, server::HELLO);
        write_string(out, NAME);
        [self.major, self.minor, self.revision].into_iter().for_each(|number| write_varint(out, number));
        if revision >= revision::VERSIONED_PARALLEL_REPLICAS {
            write_varint(out, self.parallel_replicas_version);
        }
        write_string(out, &self.timezone);
        write_string(out, &self.display_name);
        write_varint(out, self.patch);
        if revision >= revision::CHUNKED_PACKETS {
            for is_chunked in [self.chunked.from_server, self.chunked.from_client] {
                write_string(out, if is_chunked { CHUNKED } else { EITHER });
            }
        }
        if revision >= revision::PASSWORD_COMPLEXITY_RULES {
            write_varint(out, self.password_rules.len() as u64);
            for (pattern, message) in &self.password_rules {
                write_string(out, pattern);
                write_string(out, message);
            }
        }
        if revision >= revision::INTERSERVER_SECRET_V2 {
            out.extend_from_slice(&nonce.to_le_bytes());
        }
        if revision >= revision::SERVER_SETTINGS {
            Setting::write_all(&self.settings, out);
        }
        if revision >= revision::QUERY_PLAN_SERIALIZATION {
            write_varint(out, self.query_plan_version);
        }
        if revision >= revision::VERSIONED_CLUSTER_FUNCTION {
            write_varint(out, self.cluster_function_version);
        }
    }

    /// Reads the Hello after the packet's type. `announced` is the revision that the reading client has announced.
    ///
    /// # Errors
    /// Fails where the Hello is incomplete or damaged, or the server's protocol is older than that of ClickHouse 20.
    pub fn read(input: &mut Input<'_>, announced: u64) -> Result<ServerHello, Fault> {
        const MOST: usize = MAX_HELLO_STRING_BYTES;
        let text = |input: &mut Input<'_>| Ok::<_, Fault>(input.text(MOST, "a text of the server")?.to_owned());
        text(input)?;
        let (major, minor, server_revision) = (input.varint()?, input.varint()?, input.varint()?);
        let mut hello = ServerHello { major, minor, revision: server_revision, ..ServerHello::default() };
        let revision = server_revision.min(announced);
        if revision < revision::OLDEST {
            return Err(Fault::Unsupported("a server whose protocol is older than that of ClickHouse 20"));
        }
        if revision >= revision::VERSIONED_PARALLEL_REPLICAS {
            hello.parallel_replicas_version = input.varint()?;
        }
        (hello.timezone, hello.display_name, hello.patch) = (text(input)?, text(input)?, input.varint()?);
        if revision >= revision::CHUNKED_PACKETS {
            let (sends, receives) = (text(input)?, text(input)?);
            hello.chunked = Chunked { from_server: sends == CHUNKED, from_client: receives == CHUNKED };
        }
        if revision >= revision::PASSWORD_COMPLEXITY_RULES {
            for _ in 0..input.count(MAX_RULES, "rules for passwords")? {
                hello.password_rules.push((text(input)?, text(input)?));
            }
        }
        if revision >= revision::INTERSERVER_SECRET_V2 {
            input.u64()?;
        }
        if revision >= revision::SERVER_SETTINGS {
            hello.settings = Setting::read_all(input)?;
        }
        if revision >= revision::QUERY_PLAN_SERIALIZATION {
            hello.query_plan_version = input.varint()?;
        }
        if revision >= revision::VERSIONED_CLUSTER_FUNCTION {
            hello.cluster_function_version = input.varint()?;
        }
        Ok(hello)
    }
}

/// A client's addition to its Hello, sent when it knows the server's revision. It has no packet type, and may
/// come as late as the first packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addendum {
    pub quota_key: String,
    pub parallel_replicas_version: u64,
    pub chunked: Chunked,
}

impl Addendum {
    /// Reads the addendum, and returns how many bytes it took: none for a revision without addendum.
    ///
    /// # Errors
    /// Fails where the addendum is incomplete, or one of its texts is too long or not UTF-8.
    pub fn read(bytes: &[u8], revision: u64) -> Result<(Addendum, usize), Fault> {
        let (mut input, mut addendum) = (Input::new(bytes), Addendum::default());
        if revision >= revision::ADDENDUM {
            addendum.quota_key = input.text(MAX_HELLO_STRING_BYTES, "the quota key")?.to_owned();
        }
        if revision >= revision::CHUNKED_PACKETS {
            let mut is_chunked = || Ok::<_, Fault>(input.text(MAX_FRAMING_BYTES, "the framing")?.starts_with(CHUNKED));
            addendum.chunked = Chunked { from_client: is_chunked()?, from_server: is_chunked()? };
        }
        if revision >= revision::VERSIONED_PARALLEL_REPLICAS {
            addendum.parallel_replicas_version = input.varint()?;
        }
        Ok((addendum, input.at()))
    }

    pub fn write(&self, out: &mut Vec<u8>, revision: u64) {
        if revision >= revision::ADDENDUM {
            write_string(out, &self.quota_key);
        }
        if revision >= revision::CHUNKED_PACKETS {
            for is_chunked in [self.chunked.from_client, self.chunked.from_server] {
                write_string(out, if is_chunked { CHUNKED } else { NOT_CHUNKED });
            }
        }
        if revision >= revision::VERSIONED_PARALLEL_REPLICAS {
            write_varint(out, self.parallel_replicas_version);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_hello() -> ClientHello {
        ClientHello {
            name: "some client".into(),
            major: 26,
            minor: 7,
            revision: revision::NEWEST,
            database: "d".into(),
            user: "u".into(),
            password: "geheim".into(),
        }
    }

    #[test]
    fn a_client_hello_comes_back_and_no_part_of_it_does() {
        let mut bytes = Vec::new();
        client_hello().write(&mut bytes);
        assert_eq!(Startup::read(&bytes), Ok((Startup::Hello(client_hello()), bytes.len())));
        for end in 0..bytes.len() {
            assert!(matches!(Startup::read(&bytes[..end]), Err(Fault::Incomplete { .. })), "{end} bytes");
        }
    }

    #[test]
    fn other_protocols_are_told_by_their_first_byte() {
        assert_eq!(Startup::read(b"GET / HTTP/1.1"), Ok((Startup::Http, 0)));
        assert_eq!(Startup::read(b"POST"), Ok((Startup::Http, 0)));
        assert_eq!(Startup::read(&[0x16, 3, 1]), Ok((Startup::Tls, 0)));
        assert!(matches!(Startup::read(b"rubbish"), Err(Fault::Malformed(_))));
        let mut long = vec![0];
        write_varint(&mut long, 1 << 40);
        assert_eq!(Startup::read(&long), Err(Fault::TooLarge("the client's name")));
    }

    #[test]
    fn a_server_hello_comes_back_at_every_revision() {
        for revision in revision::OLDEST..=revision::NEWEST {
            let from_client = revision >= revision::CHUNKED_PACKETS;
            let hello = ServerHello {
                revision,
                major: 26,
                minor: 7,
                patch: 2,
                timezone: "UTC".into(),
                display_name: "x".into(),
                chunked: Chunked { from_client, from_server: false },
                ..ServerHello::default()
            };
            let mut bytes = Vec::new();
            hello.write(&mut bytes, revision, 7);
            let mut input = Input::new(&bytes);
            assert_eq!(input.varint(), Ok(server::HELLO));
            assert_eq!(ServerHello::read(&mut input, revision::NEWEST), Ok(hello), "{revision}");
            assert_eq!(input.at(), bytes.len(), "{revision}");
            let mut bytes = Vec::new();
            let addendum = Addendum {
                quota_key: if revision >= revision::ADDENDUM { "q".into() } else { String::new() },
                parallel_replicas_version: if revision >= revision::VERSIONED_PARALLEL_REPLICAS { 8 } else { 0 },
                chunked: Chunked { from_client, from_server: false },
            };
            addendum.write(&mut bytes, revision);
            assert_eq!(Addendum::read(&bytes, revision), Ok((addendum, bytes.len())));
        }
    }
}
