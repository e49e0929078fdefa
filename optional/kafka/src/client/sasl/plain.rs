//! The mechanism PLAIN: user and password are sent as they are. Only TLS hides them from others.

use crate::client::sasl::{Conversation, Next};

pub(super) struct Plain {
    pub user: String,
    pub password: String,
}

impl Conversation for Plain {
    fn first(&mut self) -> Result<Vec<u8>, String> {
        if self.user.contains('\0') || self.password.contains('\0') {
            return Err("a user's name or password can't have a NUL in it".to_owned());
        }
        Ok(format!("\0{}\0{}", self.user, self.password).into_bytes())
    }

    fn answer(&mut self, _message: &[u8]) -> Result<Next, String> {
        Ok(Next::Done)
    }
}
