//! The service that gRPC calls: it finds out the caller first, then the command.

mod actions;
mod bound;
mod conversion;
mod get;
mod ingest;
mod put;
mod target_table;

use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse,
    PollInfo, PutResult, Result as ActionResult, SchemaResult, Ticket,
};
use futures::{stream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::codegen::http;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};
use windrow_append::Appends;

use crate::login::{Caller, Login, Peer};
use crate::metrics::Metrics;
use crate::outgoing::{outgoing, Answering, Outgoing};
use crate::prepared::Statements;
use crate::store::{Rows, Store};

/// The most results that are read at once.
const MAX_GETS: usize = 256;
/// The most streams of rows that come at once: each may hold a message or two.
const MAX_PUTS: usize = 32;

#[derive(Clone)]
pub(crate) struct Service {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    appends: Appends,
    login: Login,
    metrics: Arc<Metrics>,
    /// Time for which a client may take nothing of a result.
    idle_timeout: Duration,
    statements: Statements,
    gets: Arc<Semaphore>,
    puts: Arc<Semaphore>,
}

impl Service {
    pub(crate) fn new(
        store: Store,
        appends: Appends,
        login: Login,
        metrics: Arc<Metrics>,
        idle_timeout: Duration,
    ) -> Service {
        let (gets, puts) = (Arc::new(Semaphore::new(MAX_GETS)), Arc::new(Semaphore::new(MAX_PUTS)));
        let statements = Statements::default();
        Service { inner: Arc::new(Inner { store, appends, login, metrics, idle_timeout, statements, gets, puts }) }
    }

    /// Finds out the caller, and adds it to the request.
    pub(crate) async fn log_in<B>(&self, method: &'static str, request: &mut http::Request<B>) -> Result<(), Status> {
        let fields = MetadataMap::from_headers(request.headers().clone());
        let peer = request.extensions().get::<Peer>().cloned().ok_or_else(unknown_caller)?;
        match self.inner.login.caller(&fields, &peer).await {
            Ok(caller) => {
                request.extensions_mut().insert(caller);
                Ok(())
            }
            Err(status) => self.inner.metrics.call(method).watch(async { Err(status) }).await,
        }
    }

    async fn shake_hands(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Outgoing<HandshakeResponse>>, Status> {
        let (fields, extensions, mut messages) = request.into_parts();
        let peer = extensions.get::<Peer>().ok_or_else(unknown_caller)?;
        let payload = match fields.contains_key("authorization") {
            true => Default::default(),
            false => messages.message().await?.map(|message| message.payload).unwrap_or_default(),
        };
        let authorization = self.inner.login.hand_shake(&fields, &payload, peer).await?;
        let field = authorization.parse().map_err(|_| Status::internal("the token is no field"))?;
        let answer = HandshakeResponse { protocol_version: 0, payload: authorization.into_bytes().into() };
        let mut response = Response::new(stream::iter([Ok(answer)]).boxed() as Outgoing<HandshakeResponse>);
        response.metadata_mut().insert("authorization", field);
        Ok(response)
    }

    async fn rows(&self, request: Request<Ticket>) -> Result<(Rows, OwnedSemaphorePermit), Status> {
        let caller = caller(&request)?;
        let place = permit(&self.inner.gets, "results")?;
        Ok((get::rows(&self.inner, &caller, request.into_inner()).await?, place))
    }

    async fn put(&self, request: Request<Streaming<FlightData>>) -> Result<PutResult, Status> {
        let caller = caller(&request)?;
        let _place = permit(&self.inner.puts, "streams of rows")?;
        put::put(&self.inner, &caller, request.into_inner()).await
    }
}

/// Returns the caller, who has logged in before anything of the request was read.
fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    request.extensions().get().cloned().ok_or_else(unknown_caller)
}

fn unknown_caller() -> Status {
    Status::internal("it is not known who calls")
}

fn permit(of: &Arc<Semaphore>, what: &str) -> Result<OwnedSemaphorePermit, Status> {
    of.clone()
        .try_acquire_owned()
        .map_err(|_| Status::resource_exhausted(format!("too many {what} at once: try again")))
}

#[tonic::async_trait]
impl FlightService for Service {
    type HandshakeStream = Outgoing<HandshakeResponse>;
    type ListFlightsStream = Outgoing<FlightInfo>;
    type DoGetStream = Outgoing<FlightData>;
    type DoPutStream = Outgoing<PutResult>;
    type DoActionStream = Outgoing<ActionResult>;
    type ListActionsStream = Outgoing<ActionType>;
    type DoExchangeStream = Outgoing<FlightData>;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        self.inner.metrics.call("Handshake").watch(self.shake_hands(request)).await
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        let work = async {
            let caller = caller(&request)?;
            get::info(&self.inner, &caller, request.into_inner()).await.map(Response::new)
        };
        self.inner.metrics.call("GetFlightInfo").watch(work).await
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        let work = async {
            let caller = caller(&request)?;
            get::schema(&self.inner, &caller, request.into_inner()).await.map(Response::new)
        };
        self.inner.metrics.call("GetSchema").watch(work).await
    }

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let call = self.inner.metrics.call("DoGet");
        match self.rows(request).await {
            Ok((rows, place)) => {
                let (open, idle_timeout) = (self.inner.metrics.sent.open(), self.inner.idle_timeout);
                Ok(Response::new(outgoing(rows, Answering { call, open, place, idle_timeout })))
            }
            Err(status) => {
                call.end(status.code());
                Err(status)
            }
        }
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        // In a task of its own: a client that goes away is seen at its stream, and what was begun is cleared away.
        let service = self.clone();
        let work = async move { service.inner.metrics.call("DoPut").watch(service.put(request)).await };
        let outcome =
            tokio::spawn(work).await.map_err(|error| Status::internal(format!("the task has failed: {error}")))?;
        outcome.map(|result| Response::new(stream::iter([Ok(result)]).boxed() as Self::DoPutStream))
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        let work = async {
            let caller = caller(&request)?;
            let answer = actions::act(&self.inner, &caller, request.into_inner()).await?;
            Ok(Response::new(stream::iter(answer.map(Ok)).boxed() as Self::DoActionStream))
        };
        self.inner.metrics.call("DoAction").watch(work).await
    }

    async fn list_actions(&self, request: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        let work = async {
            caller(&request)?;
            Ok(Response::new(stream::iter(actions::known().map(Ok)).boxed() as Self::ListActionsStream))
        };
        self.inner.metrics.call("ListActions").watch(work).await
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        Err(Status::unimplemented("there are no flights to list: ask with a command of Flight SQL"))
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        Err(Status::unimplemented("PollFlightInfo is not supported: GetFlightInfo answers at once"))
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoExchangeStream>, Status> {
        Err(Status::unimplemented("DoExchange is not supported: it is no part of Flight SQL"))
    }
}
