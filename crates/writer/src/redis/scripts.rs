//! The scripts that run inside Redis, and how they are called: by the digest that Redis gives them when a connection
//! begins.

use super::resp::{self, Reply};

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

/// The scripts as this Redis knows them.
pub(super) struct Scripts {
    digests: Vec<Vec<u8>>,
}

impl Scripts {
    pub(super) const COUNT: usize = SOURCES.len();

    /// A pipeline of `COUNT` commands.
    pub(super) fn loading() -> Vec<u8> {
        let mut out = Vec::new();
        for source in SOURCES {
            resp::write_command(&mut out, &[b"SCRIPT", b"LOAD", source.as_bytes()]);
        }
        out
    }

    /// What they were answered with; the error's text where Redis refuses one.
    pub(super) fn loaded(replies: Vec<Reply>) -> Result<Scripts, String> {
        let digest = |reply| match reply {
            Reply::Bulk(digest) => Ok(digest),
            Reply::Error(text) => Err(text),
            _ => Err("Redis answers SCRIPT LOAD with something else than a digest".to_owned()),
        };
        Ok(Scripts { digests: replies.into_iter().map(digest).collect::<Result<_, _>>()? })
    }

    pub(super) fn write_call(&self, out: &mut Vec<u8>, script: Script, keys: &[&str], arguments: &[&[u8]]) {
        resp::write_head(out, 3 + keys.len() + arguments.len());
        resp::write_part(out, b"EVALSHA");
        resp::write_part(out, &self.digests[script as usize]);
        resp::write_part(out, keys.len().to_string().as_bytes());
        keys.iter().for_each(|key| resp::write_part(out, key.as_bytes()));
        arguments.iter().for_each(|argument| resp::write_part(out, argument));
    }
}

/// What a script says.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Done,
    /// The bucket has no room.
    Full,
    /// Something in front of it was not taken.
    Gap,
    /// Somebody else has the lane, or (`owner` is empty) it is not there.
    Lost {
        owner: String,
        next_row: Option<u64>,
    },
}

/// The verdict in a script's reply; the text of an error that makes this connection useless otherwise.
pub(super) fn verdict(reply: &Reply) -> Result<Verdict, String> {
    let items = match reply {
        Reply::Array(items) => items.as_slice(),
        Reply::Error(text) => return Err(text.clone()),
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

pub(super) fn text(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Bulk(bytes) | Reply::Status(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}
