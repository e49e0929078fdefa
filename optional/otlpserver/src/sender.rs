//! The sender of a request: a user of ClickHouse, named by the fields that the data port knows, or by a token
//! that the settings give to a user. The sender is settled before anything of the body is read.

use hyper::header::HeaderMap;
use windrow_clickhouse::{same_secret, Credentials};
use windrow_gateway::protocol::{GatewayHandle, Peer, User};
use windrow_http::RequestHead;
use windrow_settings::OtlpToken;

use crate::refused::{RefusalReason, Refused};

/// The header fields of a request, or its metadata.
pub(crate) trait Fields {
    fn values<'f>(&'f self, name: &str) -> impl Iterator<Item = &'f [u8]>;

    /// Returns the field's text, or `None` where the field is missing, is there twice, or is no text.
    fn text<'f>(&'f self, name: &str) -> Option<&'f str> {
        let mut values = self.values(name);
        let first = values.next().filter(|_| values.next().is_none())?;
        std::str::from_utf8(first).ok().map(str::trim)
    }

    fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }
}

impl Fields for RequestHead {
    fn values<'f>(&'f self, name: &str) -> impl Iterator<Item = &'f [u8]> {
        self.fields().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Fields for HeaderMap {
    fn values<'f>(&'f self, name: &str) -> impl Iterator<Item = &'f [u8]> {
        self.get_all(name).iter().map(|value| value.as_bytes())
    }
}

/// Finds the user that a request comes from.
pub(crate) async fn sender(gateway: &GatewayHandle, peer: &Peer, fields: &impl Fields) -> Result<User, Refused> {
    let unclear = || Refused::new(RefusalReason::Unauthenticated, UNCLEAR);
    let given = claimed(fields, &gateway.settings().otlp.tokens).ok_or_else(unclear)?;
    gateway.find_user(peer, given).await?.ok_or_else(unclear)
}

const UNCLEAR: &str =
    "It is not clear whose rows these are: give `Authorization: Basic` with user and password, or `Bearer` \
                       with a token of [[otlp.tokens]], or X-ClickHouse-User and X-ClickHouse-Key, each once";

/// Returns the credentials that the fields claim, or `None` where they claim in two ways at once, or in a way
/// that is not understood.
fn claimed(fields: &impl Fields, tokens: &[OtlpToken]) -> Option<Credentials> {
    let by_fields = fields.has("x-clickhouse-user") || fields.has("x-clickhouse-key");
    let named = |user: &str, password: &str| Credentials { user: user.to_owned(), password: password.to_owned() };
    match (fields.has("authorization"), by_fields) {
        (false, false) => Some(named("default", "")),
        (true, false) => of_authorization(fields.text("authorization")?, tokens),
        (false, true) => {
            let value = |name| if fields.has(name) { fields.text(name) } else { Some("") };
            let user = Some(value("x-clickhouse-user")?).filter(|user| !user.is_empty());
            Some(named(user.unwrap_or("default"), value("x-clickhouse-key")?))
        }
        (true, true) => None,
    }
}

fn of_authorization(field: &str, tokens: &[OtlpToken]) -> Option<Credentials> {
    let (scheme, token) = field.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Credentials::from_basic(field.as_bytes());
    }
    // All are looked at: how long it takes tells nothing of which is like the one that was given.
    let known = tokens.iter().fold(None, |found, known| match same_secret(token.trim(), known.token.expose()) {
        true => Some(known),
        false => found,
    })?;
    Some(Credentials { user: known.user.clone(), password: known.password.expose().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use windrow_settings::Secret;

    fn of(fields: &str) -> Option<(String, String)> {
        let head = format!("POST /v1/logs HTTP/1.1\r\n{fields}\r\n");
        let head = RequestHead::parse(Bytes::from(head), 100).unwrap();
        let token = |token, user| OtlpToken { token: Secret::new(token), user, password: Secret::new("p") };
        let tokens = [token("abc", "ann".to_owned()), token("xyz", "joe".to_owned())];
        claimed(&head, &tokens).map(|claimed| (claimed.user, claimed.password))
    }

    #[test]
    fn users_are_named_in_three_ways() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(of(""), pair("default", ""));
        assert_eq!(of("Authorization: Basic am9lOmE6Yg==\r\n"), pair("joe", "a:b"));
        assert_eq!(of("authorization: bearer xyz\r\n"), pair("joe", "p"));
        assert_eq!(of("X-ClickHouse-User: joe\r\nx-clickhouse-key: k\r\n"), pair("joe", "k"));
        assert_eq!(of("X-ClickHouse-Key: k\r\n"), pair("default", "k"));
    }

    #[test]
    fn what_is_unclear_is_nobody() {
        for fields in [
            "Authorization: Bearer abcd\r\n",
            "Authorization: Bearer \r\n",
            "Authorization: Digest abc\r\n",
            "Authorization: Bearer abc\r\nX-ClickHouse-User: ann\r\n",
            "Authorization: Bearer abc\r\nAuthorization: Bearer abc\r\n",
            "X-ClickHouse-User: ann\r\nX-ClickHouse-User: joe\r\n",
        ] {
            assert_eq!(of(fields), None, "{fields}");
        }
    }
}
