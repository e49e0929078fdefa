//! Tenants of a request's rows, where each tenant has tables of its own.

use windrow_otlp::{Kind, Request};
use windrow_settings::{OtlpTables, OtlpTenants};

use crate::refused::{RefusalReason, Refused};

const MAX_NAME_BYTES: usize = 100;
/// The largest number of tenants in one request. The tables of more would cost more than a request is worth.
const MAX_TENANTS_IN_REQUEST: usize = 100;

/// The rows of one tenant. Its name is `None` where there are no tenants.
pub(crate) struct OfTenant {
    pub(crate) tenant: Option<String>,
    pub(crate) request: Request,
}

/// Divides a request by its tenants. `header` is the tenant that the request's header names.
pub(crate) fn by_tenant(
    request: Request,
    header: Option<&str>,
    settings: &OtlpTenants,
) -> Result<Vec<OfTenant>, Refused> {
    if !settings.are_used {
        return Ok(vec![OfTenant { tenant: None, request }]);
    }
    let pieces = match (header, &settings.attribute) {
        (Some(tenant), _) => vec![(Some(tenant.to_owned()), request)],
        (None, Some(attribute)) => request.split_by_resource_attribute(attribute),
        (None, None) => vec![(None, request)],
    };
    if pieces.len() > MAX_TENANTS_IN_REQUEST {
        let text = format!("a request has rows of {MAX_TENANTS_IN_REQUEST} tenants at most");
        return Err(Refused::new(RefusalReason::Malformed, text));
    }
    let named = |(tenant, request): (Option<String>, Request)| {
        let tenant = tenant.or_else(|| settings.default.clone()).ok_or_else(|| nameless(settings))?;
        match is_name(&tenant) {
            true => Ok(OfTenant { tenant: Some(tenant), request }),
            false => Err(Refused::new(RefusalReason::Malformed, NO_NAME)),
        }
    };
    pieces.into_iter().map(named).collect()
}

const NO_NAME: &str = "the tenant's name is to have 1 to 100 letters, digits, `_`, `-` or `.`";

fn is_name(tenant: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=MAX_NAME_BYTES).contains(&tenant.len()) && tenant.bytes().all(is_plain)
}

fn nameless(settings: &OtlpTenants) -> Refused {
    let header = settings.header.iter().map(|name| format!("the header {name}"));
    let attribute = settings.attribute.iter().map(|name| format!("the resource attribute {name}"));
    let ways: Vec<String> = header.chain(attribute).collect();
    Refused::new(RefusalReason::Malformed, format!("these rows name no tenant; give it by {}", ways.join(" or ")))
}

/// Returns the database and the table that rows of a kind go to.
pub(crate) fn names(tables: &OtlpTables, kind: Kind, tenant: Option<&str>) -> (String, String) {
    let table = match kind {
        Kind::Logs => &tables.logs,
        Kind::Traces => &tables.traces,
        Kind::Gauge => &tables.gauge,
        Kind::Sum => &tables.sum,
        Kind::Summary => &tables.summary,
        Kind::Histogram => &tables.histogram,
        Kind::ExponentialHistogram => &tables.exponential_histogram,
    };
    match tenant {
        Some(tenant) => (tables.database.replace("{tenant}", tenant), table.replace("{tenant}", tenant)),
        None => (tables.database.clone(), table.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tenants_are_plain() {
        for name in ["a", "team-1", "eu.shop_2", &"x".repeat(100)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a b", "a`b", "a/b", "é", "a\n", &"x".repeat(101)] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
