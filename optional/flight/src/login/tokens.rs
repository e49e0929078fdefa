//! Bearer tokens, which a handshake gives out. They are in memory only.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use windrow_clickhouse::Credentials;

/// The most tokens. Each stands for a connection of some client; when there are more, the one that was not
/// used for the longest time is removed.
const MAX_TOKENS: usize = 10_000;
const IDLE: Duration = Duration::from_secs(12 * 3600);

#[derive(Default)]
pub(crate) struct Tokens {
    known: Mutex<HashMap<String, Login>>,
}

struct Login {
    credentials: Credentials,
    readonly: bool,
    used: Instant,
}

impl Tokens {
    pub(crate) fn issue(&self, credentials: Credentials, readonly: bool) -> Result<String, getrandom::Error> {
        let token = random_name()?;
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if known.len() >= MAX_TOKENS {
            known.retain(|_, login| now.duration_since(login.used) < IDLE);
        }
        if known.len() >= MAX_TOKENS {
            let oldest = known.iter().min_by_key(|(_, login)| login.used).map(|(token, _)| token.clone());
            oldest.map(|token| known.remove(&token));
        }
        known.insert(token.clone(), Login { credentials, readonly, used: now });
        Ok(token)
    }

    pub(crate) fn known(&self, token: &str) -> Option<(Credentials, bool)> {
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let login = known.get_mut(token).filter(|login| now.duration_since(login.used) < IDLE)?;
        login.used = now;
        Some((login.credentials.clone(), login.readonly))
    }
}

/// Returns 32 random bytes in hexadecimal, which nobody can guess.
pub(crate) fn random_name() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_for_whom_it_was_given_to() {
        let tokens = Tokens::default();
        let joe = Credentials { user: "joe".into(), password: "j".into() };
        let token = tokens.issue(joe.clone(), true).unwrap();
        assert_eq!(tokens.known(&token), Some((joe, true)));
        assert_eq!(tokens.known(&token[1..]), None);
    }

    #[test]
    fn there_are_never_more_than_the_limit() {
        let tokens = Tokens::default();
        let nobody = Credentials { user: String::new(), password: String::new() };
        let first = tokens.issue(nobody.clone(), false).unwrap();
        for _ in 0..MAX_TOKENS {
            tokens.issue(nobody.clone(), false).unwrap();
        }
        assert_eq!(tokens.known.lock().unwrap().len(), MAX_TOKENS);
        assert_eq!(tokens.known(&first), None);
    }
}
