//! The names of variables, and which `WINDROW_*` variables are no settings of Windrow.

pub(crate) const PREFIX: &str = "WINDROW_";
/// The variable that names the settings file; everything else with the prefix is a setting.
pub(crate) const CONFIG_VARIABLE: &str = "WINDROW_CONFIG";

/// Returns the variable of a setting: `gather.max_buffer_bytes` is `WINDROW_GATHER_MAX_BUFFER_BYTES`.
pub(crate) fn variable_of(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', "_").to_ascii_uppercase())
}

/// Says whether Kubernetes sets such a variable. Every pod beside a service called `windrow`, or
/// `windrow-something`, has them, and they must not keep the gateway from starting.
pub(crate) fn is_set_by_kubernetes(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("WINDROW") else { return false };
    if rest.ends_with("_SERVICE_HOST") || rest.ends_with("_PORT") {
        return true;
    }
    if let Some((_, after)) = rest.split_once("_SERVICE_PORT") {
        return after.is_empty() || after.starts_with('_');
    }
    let Some((_, after)) = rest.split_once("_PORT_") else { return false };
    let mut words = after.split('_');
    let port = words.next().is_some_and(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()));
    let protocol = matches!(words.next(), Some("TCP" | "UDP" | "SCTP"));
    port && protocol && matches!(words.next(), None | Some("ADDR" | "PORT" | "PROTO"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::SETTINGS;
    use std::collections::HashSet;

    #[test]
    fn each_setting_has_a_variable_of_its_own() {
        let names: HashSet<String> = SETTINGS.iter().map(|setting| variable_of(setting.path)).collect();
        assert_eq!(names.len(), SETTINGS.len());
        assert!(!names.contains(CONFIG_VARIABLE));
        assert!(names.contains("WINDROW_GATHER_MAX_BUFFER_BYTES"));
        for name in names {
            assert!(!is_set_by_kubernetes(&name), "{name} would be ignored");
        }
    }

    #[test]
    fn knows_what_kubernetes_sets() {
        for name in [
            "WINDROW_SERVICE_HOST",
            "WINDROW_SERVICE_PORT",
            "WINDROW_SERVICE_PORT_HTTP",
            "WINDROW_PORT",
            "WINDROW_PORT_8123_TCP",
            "WINDROW_PORT_8123_TCP_ADDR",
            "WINDROW_GATEWAY_SERVICE_HOST",
            "WINDROW_GATEWAY_PORT_8123_TCP_PROTO",
        ] {
            assert!(is_set_by_kubernetes(name), "{name}");
        }
        for name in ["WINDROW_HTTP_LISTEN", "WINDROW_PORT_X_TCP", "WINDROW_HTTP_PORTS", "OTHER_PORT"] {
            assert!(!is_set_by_kubernetes(name), "{name}");
        }
    }
}
