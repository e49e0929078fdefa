//! Ordered appends on the data port: `/windrow/v1/appends`. The crate `append` has their meaning; the
//! protocol is here.

mod call;
mod payload;
mod reply;

use serde_json::json;
use windrow_append::{Announced, AppendError, AppendId, OpenRequest, State};
use windrow_clickhouse::Credentials;
use windrow_http::{BodyFraming, Connection, Method};

pub(crate) use call::is_of_appends;
pub use windrow_append::Appends;

use self::call::{Call, Form};
use self::payload::Body;
use self::reply::Reply;
use super::answer::After;
use super::exchange::{send, Exchange};
use super::request::Caller;
use super::strangers::Sender;
use crate::admission::NotAdmitted;
use crate::error::Refusal;

/// The outcome of a request.
enum Answer {
    Reply(Reply),
    /// The connection ends without an answer.
    Nothing,
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Answer {
        Answer::Reply(reply)
    }
}

/// A batch that is on its way in.
struct IncomingBatch {
    id: AppendId,
    number: u64,
    form: Form,
    opening: Option<OpenRequest>,
}

impl Exchange<'_> {
    /// Serves a request about an append.
    pub(super) async fn append(&self, connection: &mut Connection, out: &mut Vec<u8>) -> After {
        let reply = match self.serve_append(connection).await {
            Ok(Answer::Reply(reply)) => reply,
            Ok(Answer::Nothing) => return After::Close,
            Err(refusal) => Reply::refusal(&refusal, self.state.admission.facts.get().version_suffix()),
        };
        if let Some(code) = reply.code() {
            self.state.metrics.error(code, &reply.text());
        }
        // A stranger's body is not waited for.
        if !connection.body_is_done() && self.peer.permit.is_known() {
            payload::skip(connection, self.state.options.settings.get().append.max_batch_bytes as u64).await;
        }
        let after = reply.write(out, self.request.head, connection);
        send(connection, out, after).await
    }

    async fn serve_append(&self, connection: &mut Connection) -> Result<Answer, Refusal> {
        let Some(appends) = self.state.appends.get() else {
            return Err(Refusal::unknown_path(self.request.head.method().as_str(), self.request.path));
        };
        let call = call::call(&self.request)?;
        let credentials = self.append_user().await?;
        let user = credentials.user.as_str();
        match call {
            Call::Put(id, number) => {
                let opening = self.append_opening(credentials, Some(id)).await?;
                let form = call::form(&self.request)?;
                self.put_batch(connection, appends, user, IncomingBatch { id, number, form, opening }).await
            }
            Call::Open => {
                let opening = self.append_opening(credentials, call::given_id(&self.request)?).await?;
                let opening =
                    opening.ok_or_else(|| Refusal::bad_argument("An append needs a table: table=[database.]name"))?;
                let opened = appends.open(opening).await;
                Ok(self.replied(opened, |opened| Reply::json(if opened.is_new { 201 } else { 200 }, &opened.status)))
            }
            Call::Commit(id) => {
                let batches = call::batches(&self.request)?;
                let opening = self.append_opening(credentials, Some(id)).await?;
                let committed = appends.commit(id, user, batches, opening).await;
                Ok(self.replied(committed, |committed| Reply::json(200, &committed)))
            }
            Call::Abort(id) => {
                let aborted = appends.abort(id, user).await;
                Ok(self.replied(aborted, |()| Reply::json(200, &json!({ "id": id, "state": "aborted" }))))
            }
            Call::Status(id) => {
                let status = appends.status(id, user).await;
                Ok(self.replied(status, |status| {
                    let is_there = !matches!(status.state(), State::Gone | State::Unknown);
                    Reply::json(if is_there { 200 } else { 404 }, &status)
                }))
            }
            Call::List => Ok(Reply::json(200, &json!({ "appends": appends.list(user) })).into()),
        }
    }

    fn replied<T>(&self, outcome: Result<T, AppendError>, reply: impl FnOnce(T) -> Reply) -> Answer {
        match outcome {
            Ok(value) => reply(value).into(),
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&self, error: &AppendError) -> Answer {
        Reply::error(error, self.state.admission.facts.get().version_suffix()).into()
    }

    async fn put_batch(
        &self,
        connection: &mut Connection,
        appends: &Appends,
        user: &str,
        coming: IncomingBatch,
    ) -> Result<Answer, Refusal> {
        let IncomingBatch { id, number, form, opening } = coming;
        let encoding = payload::encoding(&self.request)?;
        let announced = match self.request.head.framing() {
            BodyFraming::Length(bytes) => Some(bytes),
            BodyFraming::None => return Err(Refusal::length_required(self.request.head.method().as_str())),
            _ => None,
        };
        let expected = payload::expected_bytes(announced, encoding);
        let place = match appends.announce(id, user, number, expected, opening).await {
            Ok(Announced::Wanted(place)) => place,
            Ok(Announced::Repeated(put)) => return Ok(Reply::json(200, &put).into()),
            Err(error) => return Ok(self.failed(&error)),
        };
        let max_bytes = place.max_bytes();
        let bytes = match payload::read(connection, max_bytes).await {
            Ok(Body::Whole(bytes)) => bytes,
            Ok(Body::TooLarge) => {
                return Ok(self.failed(&place.refuse(payload::too_large(max_bytes)).await));
            }
            Err(()) => return Ok(Answer::Nothing),
        };
        let put = match payload::unpacked(bytes, encoding, max_bytes) {
            Ok(bytes) => place.put(payload::payload(bytes, form)).await,
            Err(error) => Err(place.refuse(error).await),
        };
        Ok(self.replied(put, |put| Reply::json(200, &put)))
    }

    /// Returns the client's account, after a check that the account exists and may append.
    async fn append_user(&self) -> Result<&Credentials, Refusal> {
        if let Caller::WrongPassword { user } = &self.caller {
            return Err(Refusal::wrong_password(user));
        }
        let credentials = self.credentials().ok_or_else(|| {
            Refusal::bad_argument(
                "Appends take a user and a password: Basic authorization, X-ClickHouse-User and -Key, or parameters",
            )
        })?;
        if let Sender::Behind = self.sender().await {
            return Err(Refusal::too_busy(
                "ClickHouse is asked about too many other users first; try again later".into(),
            ));
        }
        let known = self.state.admission.user(self.request.user_key(credentials)).await;
        known.map_err(|why| match why {
            NotAdmitted::Forward(_) => Refusal::wrong_password(&credentials.user),
            NotAdmitted::Refused(refusal) => (*refusal).clone(),
            NotAdmitted::Busy => {
                Refusal::too_busy("The backend is too busy to say who this is; try again later".into())
            }
            NotAdmitted::Unreachable(cause) => Refusal::unreachable(&cause),
        })?;
        match self.state.backend.is_readonly(credentials) && *self.request.head.method() != Method::Get {
            true => Err(Refusal::readonly(&credentials.user)),
            false => Ok(credentials),
        }
    }

    async fn append_opening(
        &self,
        credentials: &Credentials,
        id: Option<AppendId>,
    ) -> Result<Option<OpenRequest>, Refusal> {
        let Some(opening) = call::opening(&self.request)? else { return Ok(None) };
        let database = match opening.table.database {
            Some(database) => database,
            None => self.current_database().await,
        };
        Ok(Some(OpenRequest {
            id,
            database,
            table: opening.table.table,
            columns: opening.columns,
            ordered: opening.ordered,
            source: opening.source,
            credentials: credentials.clone(),
        }))
    }
}
