//! Authentication on a new connection.
//!
//! SaslHandshake names the mechanism, SaslAuthenticate carries the mechanism's messages to and fro. A
//! mechanism is a [`Conversation`]: it makes the first message, and one for each answer.

mod oauth_bearer;
mod plain;
mod scram;

use std::time::{Duration, Instant};

use crate::client::connection::Connection;
use crate::client::options::Sasl;
use crate::client::sasl::oauth_bearer::OauthBearer;
use crate::client::sasl::plain::Plain;
use crate::client::sasl::scram::Scram;
use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::wire::{SaslAuthenticateRequest, SaslHandshakeRequest};

/// Largest number of messages in a conversation. No mechanism needs more.
const MAX_MESSAGES: usize = 4;

/// The result of one step. SCRAM's arithmetic takes long on purpose, so it runs outside the threads that
/// serve connections.
struct Turn {
    conversation: Box<dyn Conversation>,
    next: Result<Next, String>,
}

pub(super) enum Next {
    Say(Vec<u8>),
    Done,
}

pub(super) trait Conversation: Send {
    fn first(&mut self) -> Result<Vec<u8>, String>;

    /// Returns the next step after the broker's latest message. An error ends the connection.
    fn answer(&mut self, message: &[u8]) -> Result<Next, String>;
}

pub(crate) async fn authenticate(connection: &Connection, broker: &str, sasl: &Sasl) -> Result<(), Error> {
    let failed = |reason: String| Error::Authentication { broker: broker.to_owned(), reason };
    let handshake = connection.call(&SaslHandshakeRequest { mechanism: sasl.mechanism() }).await?;
    if handshake.error.is_error() {
        let offered = handshake.mechanisms.join(", ");
        return Err(failed(format!("{}: {} is not among the broker's {offered}", handshake.error, sasl.mechanism())));
    }
    let mut conversation = begin(sasl).await.map_err(failed)?;
    let mut message = conversation.first().map_err(failed)?;
    for _ in 0..MAX_MESSAGES {
        let begun = Instant::now();
        let answer = connection.call(&SaslAuthenticateRequest { message }).await?;
        match answer.error {
            KafkaErrorCode::NONE => {}
            code if code.is_authentication() => {
                return Err(failed(answer.error_message.unwrap_or_else(|| code.to_string())));
            }
            code => {
                let doing = format!("authenticate at {broker}");
                return Err(Error::Refused { doing, code, reason: answer.error_message });
            }
        }
        // The last answer's counts.
        if let Some(lifetime_ms) = u64::try_from(answer.session_lifetime_ms).ok().filter(|lifetime_ms| *lifetime_ms > 0)
        {
            // Early enough that what is under way comes to its end before the broker closes.
            connection.set_expiry(begun + Duration::from_millis(lifetime_ms / 5 * 4));
        }
        let turn = tokio::task::spawn_blocking(move || {
            let next = conversation.answer(&answer.message);
            Turn { conversation, next }
        });
        let turn = turn.await.map_err(|error| failed(error.to_string()))?;
        conversation = turn.conversation;
        match turn.next.map_err(failed)? {
            Next::Done => return Ok(()),
            Next::Say(next) => message = next,
        }
    }
    Err(failed("the broker asks for more and more".to_owned()))
}

async fn begin(sasl: &Sasl) -> Result<Box<dyn Conversation>, String> {
    Ok(match sasl {
        Sasl::Plain { user, password } => Box::new(Plain { user: user.clone(), password: password.clone() }),
        Sasl::Scram { hash, user, password } => Box::new(Scram::new(*hash, user, password)?),
        Sasl::OauthBearer { token, extensions } => Box::new(OauthBearer::new(token, extensions).await?),
    })
}
