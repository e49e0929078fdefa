//! An INSERT that is forwarded although its SETTINGS clause has settings of Windrow: the backend gets it without them.

use bytes::Bytes;
use windrow_clickhouse::push_param;
use windrow_sql::blank_settings;

use super::exchange::Exchange;
use super::forward::{Forwarded, ForwardedBody};
use super::text::Text;
use crate::insert::{role, Role};

const OWN_PREFIX: &[u8] = b"windrow_";
/// Length within which statements of sane length name their settings.
const LOOKED_THROUGH_BYTES: usize = 64 * 1024;

impl Exchange<'_> {
    /// Returns the request without these settings; `None` if there is nothing to take out. `read` is what has
    /// come of the body.
    pub(super) fn stripped(&self, text: &Text, read: &Bytes) -> Option<Forwarded<'_>> {
        if !text.may_contain(OWN_PREFIX, LOOKED_THROUGH_BYTES) {
            return None;
        }
        let joined = text.joined();
        let blanked = Bytes::from(blank_settings(&joined, |name| role(name) == Role::Windrow)?);
        let (head_bytes, untouched) = (text.head.len(), self.untouched(read.clone()));
        let in_url = blanked[..head_bytes] != joined[..head_bytes];
        let in_body = blanked[head_bytes..] != joined[head_bytes..];
        let (body, unpacked) = match (in_body, self.is_compressed()) {
            (false, _) => (untouched.body, false),
            // Nothing has moved, so what follows of the body follows as it comes.
            (true, false) => (ForwardedBody::Clients { start: blanked.slice(head_bytes..) }, false),
            (true, true) if text.whole => (ForwardedBody::Replaced(blanked.slice(head_bytes..)), true),
            (true, true) => return None,
        };
        let mut target = self.target(|name| !(in_url && name == "query" || unpacked && name == "decompress"));
        if in_url {
            push_param(&mut target, "query", std::str::from_utf8(&blanked[..head_bytes - 1]).ok()?);
        }
        let mut without = untouched.without;
        without.extend(unpacked.then_some("content-encoding"));
        Some(Forwarded { target, without, body, ..untouched })
    }
}
