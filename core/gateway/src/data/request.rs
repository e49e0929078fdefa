use std::borrow::Cow;

use windrow_clickhouse::{percent_decode, Credentials};
use windrow_http::{BodyFraming, Method, RequestHead};

use crate::admission::UserKey;
use crate::insert::{is_token, role, Role, StatementOptions};
use crate::options::DefaultUser;

/// A parameter of a URL.
pub(crate) struct Param<'a> {
    name: Cow<'a, [u8]>,
    value: Cow<'a, [u8]>,
}

impl Param<'_> {
    /// Returns the name, which is empty for bytes that aren't text.
    pub(crate) fn name(&self) -> &str {
        std::str::from_utf8(&self.name).unwrap_or("")
    }

    /// Returns the value; `None` for bytes that aren't text.
    pub(crate) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.value).ok()
    }
}

/// A request's head, taken apart as ClickHouse does it.
pub struct Request<'a> {
    pub head: &'a RequestHead,
    pub path: &'a str,
    pub(crate) params: Vec<Param<'a>>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(head: &'a RequestHead) -> Request<'a> {
        let (path, query) = head.target().split_once('?').unwrap_or((head.target(), ""));
        let params = raw_params(query).map(|raw| {
            let (name, value) = raw.split_once('=').unwrap_or((raw, ""));
            Param { name: percent_decode(name), value: percent_decode(value) }
        });
        Request { head, path, params: params.collect() }
    }

    /// Returns the parameters, each with the text that it came as: `name=value`.
    pub(crate) fn params_as_they_came(&self) -> impl Iterator<Item = (&Param<'a>, &'a str)> {
        let query = self.head.target().split_once('?').map_or("", |(_, query)| query);
        self.params.iter().zip(raw_params(query))
    }

    pub fn is_post(&self) -> bool {
        *self.head.method() == Method::Post
    }

    /// Says whether ClickHouse takes statements on the request's path.
    pub(crate) fn takes_statements(&self) -> bool {
        self.path == "/" || self.head.target().starts_with("/query?")
    }

    /// Says whether the request must have a body and doesn't say where the body ends. ClickHouse refuses such
    /// a request before it looks at anything else.
    pub(crate) fn lacks_length(&self) -> bool {
        self.is_post() && self.takes_statements() && self.head.framing() == BodyFraming::None
    }

    /// Says whether a database that takes SQL answers the request whoever sends it.
    pub fn is_for_anyone(&self) -> bool {
        matches!(self.path, "/ping" | "/replicas_status")
            || *self.head.method() == Method::Options
            || (self.path == "/" && !self.is_post() && self.query().is_empty())
    }

    pub(crate) fn param(&self, name: &str) -> Option<&[u8]> {
        self.params.iter().find(|param| *param.name == *name.as_bytes()).map(|param| &*param.value)
    }

    pub fn param_str(&self, name: &str) -> Option<&str> {
        self.param(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Returns the parameters that are settings or query parameters, as far as they are text.
    pub fn options(&self) -> StatementOptions<'_> {
        let mut options = StatementOptions::default();
        for param in &self.params {
            let name = param.name();
            match (param.text(), role(name)) {
                (_, Role::Request) => {}
                // Of a value that can't be read the insert is told.
                (text, Role::Windrow) => options.set(name, text.unwrap_or("")),
                (None, _) => options.has_unreadable_token |= is_token(name),
                (Some(value), _) => match name.strip_prefix("param_") {
                    Some(name) => options.set_query_parameter(name, value),
                    None => options.set(name, value),
                },
            }
        }
        options
    }

    /// Says whether all parameters have names and values that are text. Only a statement may hold other bytes.
    pub fn is_text(&self) -> bool {
        let is_text = |param: &Param<'_>| match param.name() {
            "query" => true,
            name => !name.is_empty() && param.text().is_some(),
        };
        self.params.iter().all(is_text)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.param(name).is_some_and(|value| matches!(value, b"1" | b"true"))
    }

    pub fn query(&self) -> &[u8] {
        self.param("query").unwrap_or_default()
    }

    pub fn database(&self) -> Option<&str> {
        let header = self.head.field_str("x-clickhouse-database");
        header.or_else(|| self.param_str("database")).filter(|name| !name.is_empty())
    }

    pub fn query_id(&self) -> Option<&str> {
        let header = || self.head.field_str("x-clickhouse-query-id");
        self.param_str("query_id").or_else(header).filter(|id| !id.is_empty())
    }

    pub(crate) fn quota_key(&self) -> &str {
        self.param_str("quota_key").or_else(|| self.head.field_str("x-clickhouse-quota")).unwrap_or("")
    }

    /// Says whether ClickHouse surely reads the parameters as they are read here: none is too long, and those
    /// that frame a request have plain values.
    pub(crate) fn is_framed_plainly(&self) -> bool {
        const LONGEST_SESSION_SECONDS: u64 = 3600;
        // What is longer ClickHouse refuses, unless it is told otherwise.
        const LONGEST_BYTES: usize = 128 * 1024;
        let number = |param: &Param<'_>| param.text().and_then(|text| text.parse::<u64>().ok());
        self.params.iter().all(|param| match param.name() {
            _ if param.name.len().max(param.value.len()) > LONGEST_BYTES => false,
            "compress" | "decompress" => matches!(&*param.value, b"0" | b"1" | b"true" | b"false"),
            "client_protocol_version" => number(param).is_some(),
            "session_timeout" => number(param).is_some_and(|seconds| seconds <= LONGEST_SESSION_SECONDS),
            _ => true,
        })
    }

    /// Returns the key with which the backend is asked about an account.
    pub(crate) fn user_key(&self, credentials: &Credentials) -> UserKey {
        let roles = self.params.iter().filter(|param| param.name() == "role");
        UserKey {
            credentials: credentials.clone(),
            roles: roles.filter_map(|role| role.text().map(str::to_owned)).collect(),
            quota_key: self.quota_key().to_owned(),
            database: self.database().map(str::to_owned),
        }
    }

    /// Says whether there are two quota keys. ClickHouse wants only one of the two.
    pub(crate) fn has_two_quota_keys(&self) -> bool {
        self.param("quota_key").is_some() && self.head.field("x-clickhouse-quota").is_some()
    }

    pub(crate) fn is_multipart(&self) -> bool {
        self.head.field_str("content-type").is_some_and(|kind| kind.trim_start().starts_with("multipart/form-data"))
    }

    /// Returns who asks, as far as that can be told without the backend.
    pub(crate) fn identity(&self) -> Identity {
        let field = |name: &'static str| self.head.fields().filter(move |(known, _)| known.eq_ignore_ascii_case(name));
        let param = |name: &'static str| self.params.iter().filter(move |param| param.name() == name);
        let by_fields = field("x-clickhouse-user").chain(field("x-clickhouse-key")).next().is_some();
        let by_params = param("user").chain(param("password")).next().is_some();
        if field("x-clickhouse-ssl-certificate-auth").next().is_some() {
            return Identity::Unclear;
        }
        if let Some(authorization) = self.head.field("authorization") {
            // ClickHouse refuses some mixtures and tolerates others; that is its business.
            return match (by_fields || by_params, Credentials::from_basic(authorization)) {
                (false, Some(credentials)) => Identity::Claimed(credentials),
                _ => Identity::Unclear,
            };
        }
        // `None`: it is there twice, or is no text; only the backend knows how it takes that.
        let of_fields = |name| only(field(name).map(|(_, value)| std::str::from_utf8(value).ok()));
        let of_params = |name| only(param(name).map(Param::text));
        let (user, password) = match (by_fields, by_params) {
            (true, true) => return Identity::Unclear,
            (true, false) => (of_fields("x-clickhouse-user"), of_fields("x-clickhouse-key")),
            (false, true) => (of_params("user"), of_params("password")),
            (false, false) => (Some(""), Some("")),
        };
        let Some((user, password)) = user.zip(password) else { return Identity::Unclear };
        let user = if user.is_empty() { "default" } else { user };
        Identity::Claimed(Credentials { user: user.to_owned(), password: password.to_owned() })
    }
}

fn raw_params(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|raw| !raw.is_empty())
}

/// Returns the only value, or an empty one if there is none. Returns `None` for several values, or bytes that
/// aren't text.
fn only<'a>(mut values: impl Iterator<Item = Option<&'a str>>) -> Option<&'a str> {
    let first = values.next().unwrap_or(Some(""));
    first.filter(|_| values.next().is_none())
}

/// The identity that a request claims.
pub(crate) enum Identity {
    Claimed(Credentials),
    /// An identity that only the backend can judge: such requests are forwarded as they are.
    Unclear,
}

/// The account that the backend sees.
pub(crate) enum Caller {
    /// The client's own account. Its credentials go along as they came.
    Itself(Credentials),
    /// The user `default` of the embedded ClickHouse. These credentials are put in place of the client's.
    Default(Credentials),
    /// A user whom the gateway itself refuses. (The embedded engine would let its own `default` in, without
    /// any rights.)
    WrongPassword {
        user: String,
    },
    Unclear,
}

pub(crate) fn caller(identity: Identity, default_user: Option<&DefaultUser>) -> Caller {
    match (identity, default_user) {
        (Identity::Unclear, _) => Caller::Unclear,
        (Identity::Claimed(claimed), Some(default)) if claimed.user == "default" => {
            match windrow_clickhouse::same_secret(&claimed.password, &default.password) {
                true => Caller::Default(default.credentials.clone()),
                false => Caller::WrongPassword { user: claimed.user },
            }
        }
        (Identity::Claimed(claimed), _) => Caller::Itself(claimed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn head(text: &str) -> RequestHead {
        RequestHead::parse(Bytes::from(text.to_owned()), 100).unwrap()
    }

    fn claimed(text: &str) -> Option<(String, String)> {
        let head = head(text);
        let identity = Request::new(&head).identity();
        match identity {
            Identity::Claimed(credentials) => Some((credentials.user, credentials.password)),
            Identity::Unclear => None,
        }
    }

    #[test]
    fn params_are_decoded_like_forms() {
        let head = head("POST /?query=INSERT+INTO%20t%0A&flag=1&empty&a=b=c HTTP/1.1\r\n\r\n");
        let request = Request::new(&head);
        assert_eq!(request.path, "/");
        assert_eq!(request.query(), b"INSERT INTO t\n");
        assert!(request.flag("flag"));
        assert_eq!((request.param_str("empty"), request.param_str("a")), (Some(""), Some("b=c")));
    }

    #[test]
    fn who_asks_is_found_in_all_three_places() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(claimed("GET / HTTP/1.1\r\n\r\n"), pair("default", ""));
        assert_eq!(claimed("GET /?user=joe&password=a%2Bb HTTP/1.1\r\n\r\n"), pair("joe", "a+b"));
        assert_eq!(
            claimed("GET / HTTP/1.1\r\nX-ClickHouse-User: joe\r\nX-ClickHouse-Key: k\r\n\r\n"),
            pair("joe", "k")
        );
        assert_eq!(claimed("GET / HTTP/1.1\r\nAuthorization: Basic am9lOmE6Yg==\r\n\r\n"), pair("joe", "a:b"));
    }

    #[test]
    fn mixtures_are_left_to_the_backend() {
        for fields in [
            "Authorization: Basic am9lOmE6Yg==\r\nX-ClickHouse-User: joe",
            "Authorization: Bearer xyz",
            "Authorization: Basic ***",
            "X-ClickHouse-SSL-Certificate-Auth: on",
            "X-ClickHouse-User: joe\r\nX-ClickHouse-User: ann",
        ] {
            assert_eq!(claimed(&format!("GET / HTTP/1.1\r\n{fields}\r\n\r\n")), None, "{fields}");
        }
        for params in ["user=joe&password=%ff", "user=%ff", "user=joe&password=a&password=b"] {
            assert_eq!(claimed(&format!("GET /?{params} HTTP/1.1\r\n\r\n")), None, "{params}");
        }
    }
}
