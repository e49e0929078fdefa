//! The field that makes a request a hop. It has the name of the owner, and the gateways' secret.
//!
//! The owner is named because an address may lead to another gateway: through a balancer, a name of several
//! addresses, or a gateway that was given another name. That gateway would take an insert that it doesn't
//! own, and the owner would not know the repeat.

use std::time::Duration;

use windrow_clickhouse::same_secret;

use crate::error::Refusal;

/// The name of the field. No request passes it on to the backend.
pub(crate) const FIELD: &str = "X-Windrow-Hop";
/// The path of pings. They are answered to gateways alone.
pub(crate) const PING_PATH: &str = "/windrow/v1/cluster/ping";
/// The parameter of a ping that tells of a change.
pub(crate) const CHANGED: &str = "changed";

pub(crate) fn is_hop_field(name: &str) -> bool {
    name.eq_ignore_ascii_case(FIELD)
}

/// Facts about a request that another gateway sends along with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hop {
    /// Time between the last answer to the client and this request of the client.
    pub(crate) back_after: Option<Duration>,
}

/// Returns the part of the field's value that is the same in all hops to a gateway.
pub(super) fn value(to: &str, secret: &str) -> String {
    format!("{to} {secret}")
}

/// Returns the field's value for one hop.
pub(super) fn value_of(to_all: &str, hop: Hop) -> String {
    let back_after = hop.back_after.and_then(|time| u64::try_from(time.as_micros()).ok());
    back_after.map_or_else(|| to_all.to_owned(), |micros| format!("{to_all} {micros}"))
}

/// Reads the field's value. Fails if the secret is wrong, or if the hop was meant for another gateway than `own`.
pub(super) fn check(given: Option<&[u8]>, own: &str, secret: &str) -> Result<Hop, Refusal> {
    let given = given.and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default();
    let mut words = given.split(' ').filter(|word| !word.is_empty());
    let (to, shown, back_after) = (words.next().unwrap_or_default(), words.next(), words.next());
    match shown {
        Some(shown) if same_secret(shown, secret) => match to == own {
            true => Ok(Hop { back_after: back_after.and_then(|micros| micros.parse().ok()).map(Duration::from_micros) }),
            false => Err(Refusal::authentication(&format!(
                "This is the gateway {own}, and the hop was meant for {to}: each gateway is named in \
                 `cluster.gateways` by an address that leads to it alone, and by the same one in its `cluster.self`"
            ))),
        },
        _ => Err(Refusal::authentication(&format!(
            "The field {FIELD} is for gateways of one cluster, and does not show the secret of {own}: see `cluster.secret`"
        ))),
    }
}

pub(super) fn without_cluster() -> Refusal {
    Refusal::authentication(&format!(
        "The field {FIELD} is for gateways of one cluster, and this gateway belongs to none: see `cluster.gateways`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef";

    #[test]
    fn a_hop_shows_the_secret_and_names_its_goal() {
        let given = |to: &str, secret: &str| check(Some(value(to, secret).as_bytes()), "http://a:1", SECRET);
        assert!(given("http://a:1", SECRET).is_ok());
        for (to, secret) in [("http://b:1", SECRET), ("http://a:1", "0123456789abcdeF"), ("http://a:1", ""), ("", "")] {
            let refusal = given(to, secret).unwrap_err();
            assert_eq!(refusal.status, 403);
            assert!(!refusal.line("").contains(SECRET), "{}", refusal.line(""));
        }
        let hop = Hop { back_after: Some(Duration::from_micros(1_500)) };
        for (hop, of) in [(hop, hop), (Hop { back_after: None }, Hop { back_after: None })] {
            let value = value_of(&value("http://a:1", SECRET), hop);
            assert_eq!(check(Some(value.as_bytes()), "http://a:1", SECRET).ok(), Some(of));
        }
        for value in [None, Some(&b"\xff"[..]), Some(SECRET.as_bytes())] {
            assert!(check(value, "http://a:1", SECRET).is_err());
        }
    }
}
