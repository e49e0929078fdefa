//! The section `[cluster]`: several gateways in front of one ClickHouse, which know each other.

use std::path::PathBuf;

use crate::backend::{parse_url, Backend};
use crate::kind::Value;
use crate::layers::Layers;
use crate::secret::Secret;

/// The gateways in front of one ClickHouse: this one and the others.
#[derive(Debug, Clone)]
pub struct ClusterSettings {
    /// Addresses `http[s]://host:port`, each once, this gateway's own among them.
    pub gateways: Vec<String>,
    /// The index of this gateway's own address in `gateways`.
    pub own: usize,
    pub secret: ClusterSecret,
    /// The file of the authorities that sign the certificates of gateways; the system's are trusted when not
    /// set.
    pub ca_file: Option<PathBuf>,
    pub stretch_holds: bool,
    /// Says whether inserts that are known by their rows have an owner, too.
    pub rows_hop: bool,
}

#[derive(Debug, Clone)]
pub enum ClusterSecret {
    Given(Secret),
    InFile(PathBuf),
}

/// The largest number of gateways: more than anybody has in front of one ClickHouse.
const MAX_GATEWAYS: usize = 64;
/// The shortest secret: shorter ones can be guessed.
const MIN_SECRET_BYTES: usize = 16;
const MAX_SECRET_BYTES: usize = 1024;

/// Returns the address in the form in which gateways compare it: with its port, and in small letters.
pub(crate) fn gateway_address(text: &str) -> Result<String, String> {
    const FORM: &str = "a gateway is named as in http://windrow-0.windrow:8123 or https://windrow-0.windrow:8443";
    let (scheme, tls, rest) = match text.split_once("://") {
        Some(("http", rest)) => ("http", false, rest),
        Some(("https", rest)) => ("https", true, rest),
        _ => return Err(FORM.to_owned()),
    };
    if rest.contains('@') {
        return Err(format!("{FORM}, without a user: clients' own credentials go along"));
    }
    let url = parse_url(rest, tls).map_err(|_| FORM.to_owned())?;
    Ok(format!("{scheme}://{}", url.authority().to_ascii_lowercase()))
}

impl ClusterSecret {
    /// Says what is wrong with a secret, if anything is. The text does not contain the secret.
    pub fn problem(secret: &str) -> Option<String> {
        let is_fine = (MIN_SECRET_BYTES..=MAX_SECRET_BYTES).contains(&secret.len())
            && secret.bytes().all(|byte| byte.is_ascii_graphic());
        let text = "the gateways' secret has from 16 to 1024 letters, digits and signs of ASCII, and no spaces; \
                    `openssl rand -hex 32` makes one";
        (!is_fine).then(|| text.to_owned())
    }
}

pub(crate) fn problems(layers: &Layers) -> Vec<String> {
    let is_given = |path| layers.resolved(path).value != Value::Unset;
    let Some(gateways) = gateways(layers) else {
        let lonely = ["cluster.self", "cluster.secret", "cluster.secret_file", "cluster.ca_file"];
        let text = |path| format!("`{path}` is set, but `cluster.gateways` is not; name all gateways there");
        return lonely.into_iter().find(|path| is_given(path)).map(text).into_iter().collect();
    };
    let mut problems = Vec::new();
    let mut problem = |text: &str| problems.push(text.to_owned());
    match layers.optional_text("cluster.self") {
        None => problem("`cluster.gateways` is set, but `cluster.self` is not; say which of them this gateway is"),
        Some(own) if !gateways.iter().any(|gateway| gateway == own) => {
            problem(&format!(
                "`cluster.self` is {own}, which is none of `cluster.gateways`; all gateways are named there"
            ));
        }
        Some(_) => {}
    }
    if let Some((_, twice)) = gateways.iter().enumerate().find(|(at, gateway)| gateways[..*at].contains(gateway)) {
        problem(&format!("`cluster.gateways` names {twice} twice; remove one of them"));
    }
    if gateways.len() > MAX_GATEWAYS {
        problem(&format!("`cluster.gateways` names {} gateways, and {MAX_GATEWAYS} are the most", gateways.len()));
    }
    match (layers.optional_text("cluster.secret"), is_given("cluster.secret_file")) {
        (Some(_), true) => problem("`cluster.secret` and `cluster.secret_file` are both set; remove one of them"),
        (None, false) => problem(
            "`cluster.gateways` is set, but neither `cluster.secret` nor `cluster.secret_file` is; the gateways need a \
             secret that they share",
        ),
        (Some(secret), false) => ClusterSecret::problem(secret).into_iter().for_each(|text| problem(&text)),
        (None, true) => {}
    }
    if is_given("cluster.ca_file") && !gateways.iter().any(|gateway| gateway.starts_with("https://")) {
        problem("`cluster.ca_file` is set, but no gateway in `cluster.gateways` is an https:// one");
    }
    if !matches!(layers.backend(), Backend::ClickHouse(_)) {
        problem(
            "`cluster.gateways` is for gateways in front of one ClickHouse server, and `backend` is not the address of one",
        );
    }
    problems
}

fn gateways(layers: &Layers) -> Option<&[String]> {
    match &layers.resolved("cluster.gateways").value {
        Value::List(gateways) => Some(gateways),
        _ => None,
    }
}

pub(crate) fn assemble(layers: &Layers) -> Option<ClusterSettings> {
    let gateways = gateways(layers)?.to_vec();
    let own = layers.optional_text("cluster.self")?;
    let own = gateways.iter().position(|gateway| gateway == own)?;
    let secret = match layers.path("cluster.secret_file") {
        Some(path) => ClusterSecret::InFile(path),
        None => ClusterSecret::Given(layers.secret("cluster.secret")?),
    };
    let stretch_holds = layers.boolean("cluster.stretch_holds");
    let rows_hop = layers.optional_text("cluster.hops") != Some("tokens");
    Some(ClusterSettings { gateways, own, secret, ca_file: layers.path("cluster.ca_file"), stretch_holds, rows_hop })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_one_form() {
        for (text, form) in [
            ("http://Windrow-0.windrow", "http://windrow-0.windrow:8123"),
            ("https://windrow-0/", "https://windrow-0:8443"),
            ("http://10.0.0.7:8124", "http://10.0.0.7:8124"),
            ("http://[::1]:8123", "http://[::1]:8123"),
        ] {
            assert_eq!(gateway_address(text).as_deref(), Ok(form), "{text}");
        }
        for text in ["windrow-0:8123", "tcp://windrow-0:9000", "http://", "http://a:8123/path", "http://a:0"] {
            assert!(gateway_address(text).is_err(), "{text}");
        }
        let refused = gateway_address("http://joe:hush@a").unwrap_err();
        assert!(!refused.contains("hush"), "{refused}");
    }

    #[test]
    fn a_secret_is_long_and_fits_into_a_field() {
        assert_eq!(ClusterSecret::problem("0123456789abcdef"), None);
        for bad in ["", "0123456789abcde", "0123456789 abcdef", "0123456789abcdef\n", "0123456789abcdefü"] {
            let problem = ClusterSecret::problem(bad).unwrap();
            assert!(bad.is_empty() || !problem.contains(bad));
        }
    }
}
