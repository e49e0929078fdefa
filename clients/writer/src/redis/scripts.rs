//! The scripts that run inside Redis, and how they are called: by the digest that Redis gives them when a
//! connection begins.

use redis::{Cmd, Value};

use super::connection::{error_text, text};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Script {
    Register,
    Append,
    Withdraw,
    Record,
    Renew,
    Survey,
    Adopt,
    Leave,
}

const SOURCES: [&str; 8] = [
    include_str!("scripts/register.lua"),
    include_str!("scripts/append.lua"),
    include_str!("scripts/withdraw.lua"),
    include_str!("scripts/record.lua"),
    include_str!("scripts/renew.lua"),
    include_str!("scripts/survey.lua"),
    include_str!("scripts/adopt.lua"),
    include_str!("scripts/leave.lua"),
];

/// The digests of the scripts, as this Redis gave them.
pub(super) struct Scripts {
    digests: Vec<Vec<u8>>,
}

impl Scripts {
    pub(super) const COUNT: usize = SOURCES.len();

    /// Returns a pipeline of `COUNT` commands that load the scripts.
    pub(super) fn loading() -> Vec<u8> {
        let mut out = Vec::new();
        for source in SOURCES {
            redis::cmd("SCRIPT").arg("LOAD").arg(source).write_packed_command(&mut out);
        }
        out
    }

    /// Takes the replies to `loading`. Fails with the error's text where Redis refuses a script.
    pub(super) fn loaded(replies: Vec<Value>) -> Result<Scripts, String> {
        let digest = |reply| match reply {
            Value::BulkString(digest) => Ok(digest),
            Value::ServerError(error) => Err(error_text(&error)),
            _ => Err("Redis answers SCRIPT LOAD with something else than a digest".to_owned()),
        };
        Ok(Scripts { digests: replies.into_iter().map(digest).collect::<Result<_, _>>()? })
    }

    pub(super) fn write_call(&self, out: &mut Vec<u8>, script: Script, keys: &[&str], arguments: &[&[u8]]) {
        let mut call = Cmd::new();
        call.arg("EVALSHA").arg(&self.digests[script as usize]).arg(keys.len()).arg(keys);
        arguments.iter().fold(&mut call, |call, argument| call.arg(argument)).write_packed_command(out);
    }
}

/// The answer of a script.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Done,
    /// The bucket has no room.
    Full,
    /// Rows in front of this entry were not taken.
    Gap,
    /// Another process has the lane, or (`owner` is empty) Redis has no such lane.
    Lost {
        owner: String,
        next_row: Option<u64>,
    },
}

/// Returns the verdict in a script's reply. Fails with the text of an error that makes this connection useless.
pub(super) fn verdict(reply: &Value) -> Result<Verdict, String> {
    let items = match reply {
        Value::Array(items) => items.as_slice(),
        Value::ServerError(error) => return Err(error_text(error)),
        _ => return Err("Redis answers a script with something else than a list".into()),
    };
    match items.first().and_then(text) {
        Some("OK") => Ok(Verdict::Done),
        Some("FULL") => Ok(Verdict::Full),
        Some("GAP") => Ok(Verdict::Gap),
        Some("LOST") => Ok(Verdict::Lost {
            owner: items.get(1).and_then(text).unwrap_or_default().to_owned(),
            next_row: items.get(2).and_then(text).and_then(|next| next.parse().ok()),
        }),
        _ => Err("Redis answers a script with an unknown word".into()),
    }
}
