//! Second stage of an insert: may it be inserted, and how is it read? The answer is a [`Prepared`], remembered or new.
//!
//! While the backend is away, its last answers still hold for inserts that are acknowledged before they are
//! stored: their clients are to notice nothing. Such inserts are stored as their own user, and refused then
//! if that user may no longer insert. Only inserts that a crash left in the journal are stored with Windrow's
//! own account, so a right that was taken away while the backend could not be asked still works for them;
//! `gather.admission_away_ttl_ms` bounds that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_engine::{sink::Destination, table_by_name, AckLevel};

use super::asking::Answer;
use super::candidate::{Candidate, NotGathered};
use super::dedup_settings::TOKEN;
use super::logged_query::is_of_one_insert;
use super::own_settings::WAIT_TIMEOUT;
use super::prepare::{likely_ack, prepare, InsertRequest, PrepareWith};
use super::prepared::Prepared;
use crate::admission::{Holds, Moment, NotAdmitted};
use crate::state::State;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Longest wait for a silent backend, from the moment of the question, where there is an earlier answer. A
/// confirmation is asked for long before that ends: where it comes in time, no insert waits at all.
const PATIENCE_WITH_EARLIER_ANSWER: Duration = Duration::from_secs(1);

/// Longest wait for a backend that refuses connections, of an insert whose client doesn't wait until it is
/// stored. For a silent backend, see [`Admission::unless_away`](crate::admission::Admission::unless_away).
const PATIENCE_OF_WHO_DOES_NOT_WAIT: Duration = Duration::from_secs(1);

/// Longest wait for a backend that has not answered since the start, not even with an error.
const PATIENCE_WITH_UNSEEN_BACKEND: Duration = Duration::from_millis(800);

impl Candidate<'_> {
    pub(crate) async fn admit(&self, state: &Arc<State>) -> Result<Arc<Prepared>, NotGathered> {
        self.check()?;
        Ok(prepared(state, self).await?)
    }
}

/// Returns the insert's admission: the remembered one, or a new one that the backend is asked for.
async fn prepared(state: &Arc<State>, candidate: &Candidate<'_>) -> Result<Arc<Prepared>, NotAdmitted> {
    let signature = signature(candidate);
    let (known, now) = (state.prepared.get(&signature), Moment::now());
    let earlier = match known.as_ref().map(|known| (known, state.admission.holds(&known.grounds, now))) {
        Some((known, Holds::Surely)) => {
            if state.admission.renew(&known.grounds, now) && known.renewal.begin_renewal() {
                prepare_apart(state, insert_request(candidate), signature);
            }
            return Ok(known.clone());
        }
        Some((_, Holds::Unconfirmed)) => known,
        Some((_, Holds::Not)) | None => None,
    };
    let asking =
        PendingAdmission { state, signature: &signature, request: insert_request(candidate), since: Moment::default() };
    match earlier {
        Some(earlier) if asking.may_go_by(&earlier) => asking.or_go_by(earlier).await,
        earlier => asking.patiently(earlier).await,
    }
}

/// Admits the insert with the table as it is now: `doubtful` may not know all of the table's columns.
pub(super) async fn admit_anew(
    state: &Arc<State>,
    candidate: &Candidate<'_>,
    doubtful: &Arc<Prepared>,
) -> Result<Arc<Prepared>, NotAdmitted> {
    if state.admission.has_failed_lately(&doubtful.grounds) {
        return Ok(doubtful.clone());
    }
    let since = Moment::now().before(Prepared::BELIEVED_FOR);
    let (signature, request) = (signature(candidate), insert_request(candidate));
    PendingAdmission { state, signature: &signature, request, since }.once(Some(doubtful)).await
}

/// An insert that is being admitted.
struct PendingAdmission<'a> {
    state: &'a Arc<State>,
    signature: &'a [u8],
    request: InsertRequest,
    /// Earliest moment of an answer that will do.
    since: Moment,
}

impl PendingAdmission<'_> {
    /// Says whether the insert may be taken by the earlier answer. An insert that waits for the backend in
    /// any case may as well wait for a new answer.
    fn may_go_by(&self, earlier: &Prepared) -> bool {
        let (state, is_kept) = (self.state, earlier.grounds.kept.is_some());
        let ttl = match is_kept {
            true => state.kept_ttl(),
            false => Duration::from_millis(state.options.settings.get().gather.admission_away_ttl_ms),
        };
        // Kept answers from before the start count as long as the backend has not answered since.
        let is_last_word = !is_kept || !state.admission.backend_has_answered();
        earlier.ack != AckLevel::Stored && is_last_word && state.admission.age(&earlier.grounds) < ttl
    }

    /// Returns a new answer, or the earlier one if no new one can be had now.
    async fn or_go_by(&self, earlier: Arc<Prepared>) -> Result<Arc<Prepared>, NotAdmitted> {
        let admission = &self.state.admission;
        let has_failed = earlier.renewal.has_failed_lately(admission.last_doubt());
        if has_failed || admission.has_failed_lately(&earlier.grounds) {
            if admission.renew(&earlier.grounds, Moment::now()) && earlier.renewal.begin_renewal() {
                prepare_apart(self.state, self.request.clone(), self.signature.to_vec());
            }
            return Ok(earlier);
        }
        // A question from before a doubt is not the one that it waits for.
        let began = admission.asking_since(&earlier.grounds).filter(|began| *began >= admission.last_doubt());
        let began = began.unwrap_or_else(Moment::now);
        let patience = PATIENCE_WITH_EARLIER_ANSWER.saturating_sub(began.elapsed());
        match tokio::time::timeout(patience, self.once(Some(&earlier))).await {
            Ok(Err(NotAdmitted::Unreachable(_) | NotAdmitted::Busy)) | Err(_) => {
                earlier.renewal.fail(began);
                Ok(earlier)
            }
            Ok(answer) => answer,
        }
    }

    /// Asks again while the backend is away: for as long as the insert would wait to be stored, or for a
    /// short time if it wouldn't. A backend that has never answered may be one that doesn't exist: no insert
    /// waits long for that.
    async fn patiently(&self, earlier: Option<Arc<Prepared>>) -> Result<Arc<Prepared>, NotAdmitted> {
        let is_waited_for = self.is_waited_for(earlier.as_deref());
        let (patience, whose) = match is_waited_for {
            true => (patience(self.state, &self.request), "wait_for_async_insert_timeout"),
            false => (Duration::MAX, "the insert is not waited for"),
        };
        let began = Instant::now();
        let mut obstacle = None;
        let asked = async {
            let mut pause = FIRST_PAUSE;
            loop {
                match self.once(earlier.as_ref()).await {
                    Err(NotAdmitted::Unreachable(cause)) if !self.state.is_closing() => {
                        obstacle = Some(cause);
                        if !is_waited_for {
                            if let Some(kept) = self.as_it_was_kept().await {
                                return Some(Ok(kept));
                            }
                            if began.elapsed() >= PATIENCE_OF_WHO_DOES_NOT_WAIT {
                                return None;
                            }
                        }
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                    answer => return Some(answer),
                }
            }
        };
        let whose = tokio::select! {
            answer = tokio::time::timeout(patience, asked) => match answer {
                Ok(Some(answer)) => return answer,
                Ok(None) | Err(_) => whose,
            },
            () = self.backend_is_unseen() => "it has not answered since Windrow's start",
            () = self.backend_stops(), if !is_waited_for => whose,
        };
        if let (false, Some(kept)) = (is_waited_for, self.as_it_was_kept().await) {
            return Ok(kept);
        }
        let obstacle = obstacle.as_deref().unwrap_or("it does not answer");
        Err(NotAdmitted::Unreachable(format!("{obstacle} (waited {} ms: {whose})", began.elapsed().as_millis())))
    }

    fn is_waited_for(&self, earlier: Option<&Prepared>) -> bool {
        let settings = self.state.options.settings.get();
        earlier.map_or_else(|| likely_ack(&self.request, &settings), |earlier| earlier.ack) == AckLevel::Stored
    }

    /// Prepares the insert by answers of an earlier run, if ClickHouse has not answered since the start.
    async fn as_it_was_kept(&self) -> Option<Arc<Prepared>> {
        let (state, request) = (self.state, &self.request);
        let what = without_password(self.signature)?;
        let kept = state.admission.kept_insert(&request.sender, &what, state.kept_ttl())?;
        let (reloads, settings) = (state.admission.reloads(), state.options.settings.get());
        let with = PrepareWith { settings: &settings, reloads, plans: &state.read_plans, kept: Some(&kept) };
        let prepared = prepare(&state.admission, with, request, Moment::default()).await.ok()?;
        let prepared = (prepared.ack != AckLevel::Stored).then(|| Arc::new(prepared))?;
        state.prepared.put(self.signature, prepared.clone());
        Some(prepared)
    }

    /// Ends if the backend has never answered, after it had some time for that.
    async fn backend_is_unseen(&self) {
        tokio::time::sleep(PATIENCE_WITH_UNSEEN_BACKEND).await;
        if self.state.admission.backend_has_answered() {
            std::future::pending().await
        }
    }

    /// Ends when a backend that has answered before is found to be away.
    async fn backend_stops(&self) {
        match self.state.admission.backend_has_answered() {
            true => self.state.admission.backend_stops().await,
            false => std::future::pending().await,
        }
    }

    /// Confirms the earlier answer, or else asks anew.
    async fn once(&self, earlier: Option<&Arc<Prepared>>) -> Result<Arc<Prepared>, NotAdmitted> {
        let admission = &self.state.admission;
        if let Some(earlier) = earlier {
            // An insert that is refused now is refused below, with all that ask the same.
            if let Err(error @ (NotAdmitted::Unreachable(_) | NotAdmitted::Busy)) =
                admission.confirm(&earlier.grounds, self.since).await
            {
                return Err(error);
            }
            let schema = &earlier.grounds.schema;
            if admission.holds(&earlier.grounds, Moment::now()) == Holds::Surely && schema.confirmed() >= self.since {
                return Ok(earlier.clone());
            }
        }
        // Who begins to ask after a DDL statement must not get an answer from before it.
        let since = admission.last_doubt().max(self.since).as_micros().to_le_bytes();
        let answer: Arc<Answer> = self.state.asking.join(&[self.signature, &since].concat());
        answer.wait(|| prepare_and_keep(self.state, self.signature, &self.request, self.since)).await
    }
}

async fn prepare_and_keep(
    state: &State,
    signature: &[u8],
    request: &InsertRequest,
    since: Moment,
) -> Result<Arc<Prepared>, NotAdmitted> {
    state.metrics.admissions.inc();
    // Counted first: settings that change in between are read anew for the next insert.
    let (reloads, settings) = (state.admission.reloads(), state.options.settings.get());
    let with = PrepareWith { settings: &settings, reloads, plans: &state.read_plans, kept: None };
    match prepare(&state.admission, with, request, since).await {
        Ok(prepared) => {
            if let (true, Some(deduplication)) = (prepared.is_made_anew, state.gatherer.deduplication()) {
                let Destination { database, table, .. } = &**prepared.destination();
                deduplication.forget(table_by_name(database, table)).await;
            }
            let prepared = Arc::new(prepared);
            state.prepared.put(signature, prepared.clone());
            Ok(prepared)
        }
        Err(error @ (NotAdmitted::Forward(_) | NotAdmitted::Refused(_))) => {
            state.prepared.remove(signature);
            Err(error)
        }
        Err(error) => Err(error),
    }
}

/// Asks the backend again in the background while the last answer still holds: only time tells how long.
fn prepare_apart(state: &Arc<State>, request: InsertRequest, signature: Vec<u8>) {
    let (state, since) = (state.clone(), state.admission.half_time());
    // The result stands among the prepared inserts, or is missing there.
    tokio::spawn(async move { prepare_and_keep(&state, &signature, &request, since).await.is_ok() });
}

/// Returns the time that the insert would wait to be stored; it waits no longer to be admitted.
fn patience(state: &State, request: &InsertRequest) -> Duration {
    let said = request.settings.iter().rev().find(|(name, _)| name == WAIT_TIMEOUT);
    state.patience(said.map(|(_, seconds)| seconds.as_str()))
}

/// Encodes all parts of a request that decide how the insert is prepared: the statement's meaning, not its
/// spelling. Lengths go before the parts, so that no two different requests look alike.
fn signature(candidate: &Candidate<'_>) -> Vec<u8> {
    let mut signature = Vec::with_capacity(256);
    let mut add = |part: &[u8]| {
        signature.extend_from_slice(&(part.len() as u32).to_le_bytes());
        signature.extend_from_slice(part);
    };
    let sender = candidate.sender;
    add(sender.credentials.user.as_bytes());
    add(sender.credentials.password.as_bytes());
    add(sender.quota_key.as_bytes());
    add(sender.database.as_deref().unwrap_or("").as_bytes());
    let statement = candidate.statement;
    add(candidate.table.database.as_deref().unwrap_or("").as_bytes());
    add(candidate.table.table.as_bytes());
    add(statement.format.as_bytes());
    add(&[statement.is_values_clause.into()]);
    let sent_as = candidate.form.sent_as();
    add(candidate.form.data_kind().as_str().as_bytes());
    add(&(sent_as.len() as u32).to_le_bytes());
    for data_type in sent_as {
        add(data_type.to_string().as_bytes());
    }
    // No list and an empty one are different things; an empty one does not parse.
    add(&(statement.columns.as_ref().map_or(0, Vec::len) as u32).to_le_bytes());
    for column in statement.columns.iter().flatten() {
        add(column.as_bytes());
    }
    add(&(statement.except.len() as u32).to_le_bytes());
    for column in &statement.except {
        add(column.as_bytes());
    }
    // That there is a token matters, not which.
    add(if candidate.token.is_some() { b"token" } else { b"" });
    for (name, value) in statement.settings.iter().filter(|(name, _)| !is_of_one_insert(name)) {
        add(name.as_bytes());
        add(value.as_bytes());
    }
    for (name, value) in candidate.options.settings().filter(|(name, _)| !is_of_one_insert(name)) {
        add(name.as_bytes());
        add(value.as_bytes());
    }
    // Behind a name that no setting has.
    for role in &sender.roles {
        add(b"");
        add(role.as_bytes());
    }
    if let Some(gathering) = candidate.gathering {
        add(format!("{gathering:?}").as_bytes());
    }
    signature
}

/// Returns the signature without the password, which is its second part.
pub(super) fn without_password(signature: &[u8]) -> Option<Vec<u8>> {
    let end_of = |start: usize| {
        let length = signature.get(start..start + 4)?.try_into().ok()?;
        start.checked_add(4)?.checked_add(u32::from_le_bytes(length) as usize)
    };
    let user_end = end_of(0)?;
    let password_end = end_of(user_end)?;
    Some([signature.get(..user_end)?, signature.get(password_end..)?].concat())
}

fn insert_request(candidate: &Candidate<'_>) -> InsertRequest {
    let beside = candidate.options.settings().filter(|(name, _)| !is_of_one_insert(name));
    let mut settings: Vec<_> = beside.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    settings.extend(candidate.statement.settings.iter().cloned());
    settings.extend(candidate.token.map(|token| (TOKEN.to_owned(), token.to_owned())));
    InsertRequest {
        sender: candidate.sender.clone(),
        settings,
        gathering: candidate.gathering.cloned(),
        statement: candidate.statement.clone(),
        data_kind: candidate.form.data_kind(),
        sent_as: candidate.form.sent_as().to_vec(),
        table: candidate.table.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_taken_out_of_a_signature_and_nothing_else() {
        let signature = |parts: &[&[u8]]| {
            let part = |part: &&[u8]| [&(part.len() as u32).to_le_bytes(), *part].concat();
            parts.iter().flat_map(part).collect::<Vec<u8>>()
        };
        let whole = signature(&[b"joe", b"secret", b"quota", b"", b"t"]);
        assert_eq!(without_password(&whole), Some(signature(&[b"joe", b"quota", b"", b"t"])));
        assert_eq!(without_password(&signature(&[b"", b""])), Some(signature(&[b""])));
        let both = signature(&[b"joe", b"secret"]);
        for length in 0..both.len() {
            assert_eq!(without_password(&both[..length]), None, "cut after {length}");
        }
    }
}
