//! The users of a database that knows none of the gateway's clients: those of the settings.

use windrow_clickhouse::{same_secret, Credentials};
use windrow_gateway::sql_backend::Access;
use windrow_settings::{Secret, SqlUser};

pub(super) struct Users {
    users: Vec<User>,
}

struct User {
    name: String,
    password: Secret,
    access: Access,
}

impl Users {
    pub(super) fn new(default_password: Option<&Secret>, users: &[SqlUser]) -> Users {
        let default = User {
            name: "default".to_owned(),
            password: default_password.cloned().unwrap_or_default(),
            access: Access { readonly: false },
        };
        let others = users.iter().map(|user| User {
            name: user.name.clone(),
            password: user.password.clone(),
            access: Access { readonly: user.readonly },
        });
        Users { users: std::iter::once(default).chain(others).collect() }
    }

    /// Returns the user's rights, or `None` where there is no such user, or it has another password.
    pub(super) fn check(&self, credentials: &Credentials) -> Option<Access> {
        let user = self.users.iter().find(|user| user.name == credentials.user);
        // A name that isn't known takes as long to refuse as a wrong password.
        let password = user.map_or("", |user| user.password.expose());
        let is_same = same_secret(&credentials.password, password);
        user.filter(|_| is_same).map(|user| user.access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(default_password: Option<&str>) -> Users {
        let joe = SqlUser { name: "joe".into(), password: Secret::new("j"), readonly: true };
        Users::new(default_password.map(Secret::new).as_ref(), &[joe])
    }

    #[test]
    fn users_are_those_of_the_settings() {
        let readonly = |users: &Users, user: &str, password: &str| {
            let credentials = Credentials { user: user.into(), password: password.into() };
            users.check(&credentials).map(|access| access.readonly)
        };
        let open = users(None);
        assert_eq!(readonly(&open, "default", ""), Some(false));
        assert_eq!(readonly(&open, "default", "x"), None);
        assert_eq!(readonly(&open, "joe", "j"), Some(true));
        assert_eq!(readonly(&open, "joe", ""), None);
        assert_eq!(readonly(&open, "windrow", ""), None);
        assert_eq!(readonly(&open, "", ""), None);
        let closed = users(Some("geheim"));
        assert_eq!(readonly(&closed, "default", ""), None);
        assert_eq!(readonly(&closed, "default", "geheim"), Some(false));
    }
}
