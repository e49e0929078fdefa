//! The mechanism SCRAM (RFC 5802) with SHA-256 or SHA-512: the password is not sent, and the broker has to
//! prove that it knows the password, too.
//!
//! There is no channel binding, since Kafka doesn't have it. Names and passwords are not prepared
//! (normalized), as in Kafka.

use std::num::NonZeroU32;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use ring::{digest, hmac, pbkdf2};

use crate::client::options::ScramHash;
use crate::client::sasl::{Conversation, Next};

/// Smallest number of iterations. Fewer make guessing too cheap; Kafka allows no fewer.
const MIN_ITERATIONS: u32 = 4096;
/// Largest number of iterations, about a second's work. A real broker doesn't ask for more.
const MAX_ITERATIONS: u32 = 1_000_000;
/// The text "n,," in base64, which says that there is no channel binding.
const NO_CHANNEL_BINDING: &str = "biws";

pub(super) struct Scram {
    hash: ScramHash,
    user: String,
    password: String,
    nonce: String,
    state: State,
}

enum State {
    BeforeFirst,
    /// The proof is sent; the broker has to answer with this signature.
    Proving {
        server_signature: Vec<u8>,
    },
    Waiting {
        client_first_bare: String,
    },
}

struct ServerFirst<'m> {
    nonce: &'m str,
    salt: Vec<u8>,
    iterations: NonZeroU32,
}

impl Scram {
    pub(super) fn new(hash: ScramHash, user: &str, password: &str) -> Result<Self, String> {
        let mut random = [0; 18];
        getrandom::fill(&mut random).map_err(|error| format!("no random numbers: {error}"))?;
        Ok(Self::with_nonce(hash, user, password, STANDARD.encode(random)))
    }

    fn with_nonce(hash: ScramHash, user: &str, password: &str, nonce: String) -> Self {
        Self { hash, user: user.to_owned(), password: password.to_owned(), nonce, state: State::BeforeFirst }
    }

    fn prove(&mut self, client_first_bare: &str, message: &str) -> Result<Vec<u8>, String> {
        let server_first = read_server_first(message)?;
        if !server_first.nonce.starts_with(&self.nonce) || server_first.nonce.len() == self.nonce.len() {
            return Err("the broker's nonce doesn't go on from ours".to_owned());
        }
        let salted = self.salt(&server_first);
        let without_proof = format!("c={NO_CHANNEL_BINDING},r={}", server_first.nonce);
        let signed = format!("{client_first_bare},{message},{without_proof}");
        let client_key = self.sign(&salted, b"Client Key");
        let stored_key = digest::digest(self.digest(), &client_key);
        let client_signature = self.sign(stored_key.as_ref(), signed.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&client_signature).map(|(key, signature)| key ^ signature).collect();
        let server_key = self.sign(&salted, b"Server Key");
        self.state = State::Proving { server_signature: self.sign(&server_key, signed.as_bytes()) };
        Ok(format!("{without_proof},p={}", STANDARD.encode(proof)).into_bytes())
    }

    fn salt(&self, server_first: &ServerFirst<'_>) -> Vec<u8> {
        let (algorithm, length) = match self.hash {
            ScramHash::Sha256 => (pbkdf2::PBKDF2_HMAC_SHA256, digest::SHA256_OUTPUT_LEN),
            ScramHash::Sha512 => (pbkdf2::PBKDF2_HMAC_SHA512, digest::SHA512_OUTPUT_LEN),
        };
        let mut salted = vec![0; length];
        pbkdf2::derive(algorithm, server_first.iterations, &server_first.salt, self.password.as_bytes(), &mut salted);
        salted
    }

    fn digest(&self) -> &'static digest::Algorithm {
        match self.hash {
            ScramHash::Sha256 => &digest::SHA256,
            ScramHash::Sha512 => &digest::SHA512,
        }
    }

    fn sign(&self, key: &[u8], message: &[u8]) -> Vec<u8> {
        let algorithm = match self.hash {
            ScramHash::Sha256 => hmac::HMAC_SHA256,
            ScramHash::Sha512 => hmac::HMAC_SHA512,
        };
        hmac::sign(&hmac::Key::new(algorithm, key), message).as_ref().to_vec()
    }
}

impl Conversation for Scram {
    fn first(&mut self) -> Result<Vec<u8>, String> {
        let user = self.user.replace('=', "=3D").replace(',', "=2C");
        let bare = format!("n={user},r={}", self.nonce);
        let message = format!("n,,{bare}").into_bytes();
        self.state = State::Waiting { client_first_bare: bare };
        Ok(message)
    }

    fn answer(&mut self, message: &[u8]) -> Result<Next, String> {
        let message = std::str::from_utf8(message).map_err(|_| "the broker's message is not UTF-8".to_owned())?;
        match std::mem::replace(&mut self.state, State::BeforeFirst) {
            State::BeforeFirst => Err("the broker answers to nothing".to_owned()),
            State::Waiting { client_first_bare } => self.prove(&client_first_bare, message).map(Next::Say),
            State::Proving { server_signature } => verify(message, &server_signature).map(|()| Next::Done),
        }
    }
}

/// Reads `r=nonce,s=salt,i=iterations`. Extensions behind them are passed over.
fn read_server_first(message: &str) -> Result<ServerFirst<'_>, String> {
    let mut fields = message.split(',');
    let mut field = |name: &str| {
        let value = fields.next().and_then(|field| field.strip_prefix(name));
        value.ok_or_else(|| format!("the broker's first message has no {name}"))
    };
    let (nonce, salt, iterations) = (field("r=")?, field("s=")?, field("i=")?);
    let salt = STANDARD.decode(salt).map_err(|_| "the broker's salt is not base64".to_owned())?;
    let iterations: u32 = iterations.parse().map_err(|_| "the broker's number of iterations is none".to_owned())?;
    let allowed = (MIN_ITERATIONS..=MAX_ITERATIONS).contains(&iterations);
    let iterations = NonZeroU32::new(iterations).filter(|_| allowed).ok_or_else(|| {
        format!("the broker asks for {iterations} iterations; {MIN_ITERATIONS} to {MAX_ITERATIONS} are made")
    })?;
    Ok(ServerFirst { nonce, salt, iterations })
}

/// Checks the broker's last message. Both signatures are made anew for each conversation, so the time of the
/// comparison reveals nothing.
fn verify(message: &str, wanted: &[u8]) -> Result<(), String> {
    let field = message.split(',').next().unwrap_or_default();
    if let Some(error) = field.strip_prefix("e=") {
        return Err(format!("the broker says {error}"));
    }
    let given = field.strip_prefix("v=").and_then(|signature| STANDARD.decode(signature).ok());
    match given.is_some_and(|given| given == wanted) {
        true => Ok(()),
        false => Err("the broker doesn't know the password either: is it the right one?".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the example of RFC 7677.
    fn example() -> Scram {
        Scram::with_nonce(ScramHash::Sha256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO".to_owned())
    }

    const SERVER_FIRST: &str = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const SERVER_FINAL: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    fn said(next: Result<Next, String>) -> String {
        match next.unwrap() {
            Next::Say(message) => String::from_utf8(message).unwrap(),
            Next::Done => "done".to_owned(),
        }
    }

    #[test]
    fn the_standard_s_example_is_spoken() {
        let mut scram = example();
        assert_eq!(scram.first().unwrap(), b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        assert_eq!(
            said(scram.answer(SERVER_FIRST.as_bytes())),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert_eq!(said(scram.answer(SERVER_FINAL.as_bytes())), "done");
        assert!(scram.answer(SERVER_FINAL.as_bytes()).is_err());
    }

    #[test]
    fn a_broker_that_does_not_know_the_password_is_refused() {
        for last in ["v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=", "v=", "", "e=invalid-proof", "x"] {
            let mut scram = example();
            scram.first().unwrap();
            scram.answer(SERVER_FIRST.as_bytes()).unwrap();
            assert!(scram.answer(last.as_bytes()).is_err(), "{last}");
        }
    }

    #[test]
    fn what_a_broker_may_not_ask_for_is_refused() {
        for first in [
            "",
            "r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22Za,i=4096",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4294967295",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=-1",
            "m=ext,r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        ] {
            let mut scram = example();
            scram.first().unwrap();
            assert!(scram.answer(first.as_bytes()).is_err(), "{first}");
        }
    }

    #[test]
    fn names_are_escaped() {
        let mut scram = Scram::with_nonce(ScramHash::Sha512, "a=b,c", "", "n".to_owned());
        assert_eq!(scram.first().unwrap(), b"n,,n=a=3Db=2Cc,r=n");
    }
}
