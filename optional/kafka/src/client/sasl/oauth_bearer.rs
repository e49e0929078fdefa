//! The mechanism OAUTHBEARER (RFC 7628): a token that someone else has issued, from the settings, a file or a
//! program.

use std::process::Stdio;

use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::client::options::TokenSource;
use crate::client::sasl::{Conversation, Next};

/// Bytes of a token's source that are read. No token is longer.
const MAX_TOKEN_BYTES: u64 = 64 << 10;
const SEPARATOR: &str = "\x01";

pub(super) struct OauthBearer {
    message: String,
    /// The broker's objection to the token, once it has sent one.
    complaint: Option<String>,
}

impl OauthBearer {
    pub(super) async fn new(source: &TokenSource, extensions: &[(String, String)]) -> Result<Self, String> {
        let token = read_token(source).await?;
        let mut message = format!("n,,{SEPARATOR}auth=Bearer {token}{SEPARATOR}");
        for (name, value) in extensions {
            let is_name = !name.is_empty() && name != "auth" && name.chars().all(|c| c.is_ascii_alphabetic());
            if !is_name || value.contains(|c: char| c.is_control() && !matches!(c, '\t' | '\r' | '\n')) {
                return Err(format!("'{name}' can't be an extension of OAUTHBEARER"));
            }
            message.push_str(&format!("{name}={value}{SEPARATOR}"));
        }
        message.push_str(SEPARATOR);
        Ok(Self { message, complaint: None })
    }
}

impl Conversation for OauthBearer {
    fn first(&mut self) -> Result<Vec<u8>, String> {
        Ok(self.message.clone().into_bytes())
    }

    fn answer(&mut self, message: &[u8]) -> Result<Next, String> {
        if let Some(complaint) = self.complaint.take() {
            return Err(complaint);
        }
        if message.is_empty() {
            return Ok(Next::Done);
        }
        // The broker refuses the token in this message, and closes with the next.
        self.complaint = Some(format!("the token was refused: {}", String::from_utf8_lossy(message)));
        Ok(Next::Say(SEPARATOR.as_bytes().to_vec()))
    }
}

async fn read_token(source: &TokenSource) -> Result<String, String> {
    let text = match source {
        TokenSource::File(path) => {
            let file = tokio::fs::File::open(path).await;
            let file = file.map_err(|error| format!("the token file {} can't be read: {error}", path.display()))?;
            read_capped(file)
                .await
                .map_err(|error| format!("the token file {} can't be read: {error}", path.display()))?
        }
        TokenSource::Text(token) => token.clone(),
        TokenSource::Command(words) => token_of_command(words).await?,
    };
    let token = text.trim();
    // What a token may consist of: anything else would end the field that it stands in, or the message.
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    match !token.is_empty() && token.bytes().all(is_token) {
        true => Ok(token.to_owned()),
        false => Err("what should be a token is empty, or has characters that a token can't have".to_owned()),
    }
}

async fn read_capped(reader: impl tokio::io::AsyncRead + Unpin) -> std::io::Result<String> {
    let mut text = String::new();
    reader.take(MAX_TOKEN_BYTES).read_to_string(&mut text).await?;
    Ok(text)
}

/// Runs the command and returns its output. The command ends with the attempt to connect, at the latest.
async fn token_of_command(words: &[String]) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("the command for the token is empty")?;
    let failed = |error: &dyn std::fmt::Display| format!("the command {program} for the token failed: {error}");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(&error))?;
    let output = child.stdout.take().ok_or_else(|| failed(&"it has no output"))?;
    let text = read_capped(output).await.map_err(|error| failed(&error))?;
    let status = child.wait().await.map_err(|error| failed(&error))?;
    match status.success() {
        true => Ok(text),
        false => Err(failed(&status)),
    }
}
