//! Checks whether a user exists and the password is right.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windrow_clickhouse::{same_secret, Call, Client, Credentials, ErrorCode, Exception, Strangers};

use crate::error;

/// Time for which a password that ClickHouse has accepted is not checked again. Each statement carries it anyway.
const REMEMBERED: Duration = Duration::from_secs(30);
const MAX_REMEMBERED: usize = 10_000;

/// A function that tells what the owner of these credentials may do, as far as the gateway knows.
pub type Check = Box<dyn Fn(&Credentials) -> Option<Access> + Send + Sync>;

/// The users of the data port.
pub enum Users {
    /// The users of ClickHouse, which checks them.
    ClickHouse { client: Arc<Client>, default_user: Option<DefaultUser>, accepted: Accepted, strangers: Box<Strangers> },
    /// The users that the gateway knows, since DuckDB has none. The check returns `None` where there is no
    /// such user, or it has another password.
    Gateway(Check),
}

/// The rights of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub readonly: bool,
}

/// The user `default`, on a backend that was started for the gateway alone.
pub struct DefaultUser {
    /// The password that clients send for this user.
    pub password: String,
    /// The account that the user has at the backend.
    pub credentials: Credentials,
}

#[derive(Default)]
pub struct Accepted(Mutex<HashMap<Credentials, Instant>>);

impl Users {
    pub fn of_clickhouse(client: Arc<Client>, default_user: Option<DefaultUser>) -> Users {
        Users::ClickHouse { client, default_user, accepted: Accepted::default(), strangers: Box::default() }
    }

    /// Checks a user. Returns the account for the backend, and whether it may only read.
    pub(crate) async fn check(&self, given: Credentials, from: IpAddr) -> Result<(Credentials, bool), Exception> {
        match self {
            Users::Gateway(check) => match check(&given) {
                Some(Access { readonly }) => Ok((given, readonly)),
                None => Err(wrong_password(&given.user)),
            },
            Users::ClickHouse { default_user: Some(default), .. } if given.user == "default" => {
                match same_secret(&given.password, &default.password) {
                    true => Ok((default.credentials.clone(), false)),
                    false => Err(wrong_password(&given.user)),
                }
            }
            Users::ClickHouse { client, accepted, strangers, .. } => {
                if accepted.knows(&given, REMEMBERED) {
                    return Ok((given, false));
                }
                // Who was a user before doesn't wait with strangers.
                let was_user = accepted.knows(&given, Duration::MAX);
                let _turn = if was_user { None } else { strangers.turn(from).await };
                // Another call of his may have been answered meanwhile.
                if !accepted.knows(&given, REMEMBERED) {
                    let answer = client.call(Call::new(&given, "SELECT 1")).await;
                    answer.inspect_err(|_| accepted.forget(&given)).map_err(error::of_call)?;
                    accepted.learn(given.clone());
                }
                Ok((given, false))
            }
        }
    }
}

impl Accepted {
    fn lock(&self) -> MutexGuard<'_, HashMap<Credentials, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether the credentials were accepted within this time.
    fn knows(&self, credentials: &Credentials, within: Duration) -> bool {
        self.lock().get(credentials).is_some_and(|at| at.elapsed() < within)
    }

    fn forget(&self, credentials: &Credentials) {
        self.lock().remove(credentials);
    }

    fn learn(&self, credentials: Credentials) {
        let mut accepted = self.lock();
        if accepted.len() >= MAX_REMEMBERED {
            accepted.clear();
        }
        accepted.insert(credentials, Instant::now());
    }
}

fn wrong_password(user: &str) -> Exception {
    let text = format!("{user}: Authentication failed: password is incorrect, or there is no user with such name.");
    error::own(ErrorCode::AUTHENTICATION_FAILED, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_gateways_users_need_their_own_password() {
        let users = Users::Gateway(Box::new(|given| {
            (given.user == "joe" && given.password == "j").then_some(Access { readonly: true })
        }));
        let check = |user: &str, password: &str| {
            let (user, password) = (user.to_owned(), password.to_owned());
            users.check(Credentials { user, password }, IpAddr::from([127, 0, 0, 1]))
        };
        assert!(check("joe", "j").await.unwrap().1);
        assert_eq!(check("joe", "").await.unwrap_err().code, ErrorCode::AUTHENTICATION_FAILED);
        assert_eq!(check("ann", "j").await.unwrap_err().code, ErrorCode::AUTHENTICATION_FAILED);
    }
}
