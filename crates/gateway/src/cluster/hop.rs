//! The field that makes a request a hop: to whom it is sent, and the gateways' secret.
//!
//! The name of the owner stands in it since an address may lead to somebody else: a balancer, a name of several
//! addresses, a gateway that was given another name. It would take an insert that is not its own, and its owner would
//! not know the repeat.

use windrow_clickhouse::same_secret;

use crate::error::Refusal;

/// No request passes it on to the backend.
pub(crate) const FIELD: &str = "X-Windrow-Hop";
/// Answered to gateways alone.
pub(crate) const PING_PATH: &str = "/windrow/v1/cluster/ping";

pub(crate) fn is_hop_field(name: &str) -> bool {
    name.eq_ignore_ascii_case(FIELD)
}

pub(super) fn value(to: &str, secret: &str) -> String {
    format!("{to} {secret}")
}

/// Whether it is a hop to the gateway `own`.
pub(super) fn check(given: Option<&[u8]>, own: &str, secret: &str) -> Result<(), Refusal> {
    let given = given.and_then(|value| std::str::from_utf8(value).ok());
    match given.and_then(|value| value.trim().rsplit_once(' ')) {
        Some((to, shown)) if same_secret(shown, secret) => match to == own {
            true => Ok(()),
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
        for value in [None, Some(&b"\xff"[..]), Some(SECRET.as_bytes())] {
            assert!(check(value, "http://a:1", SECRET).is_err());
        }
    }
}
