//! The links API over gRPC (`proto/shortmint/links/v1`), for other services, on a listener of its
//! own.
//!
//! 1. Limits per client apply to the peer of the connection, or to the client that a trusted proxy
//!    names (`x-forwarded-for`).
//! 2. [`Connections`] are limited, and the key of a call is checked before its message is read
//!    ([`admission`]).
//! 3. What may arrive unread is bounded by the windows ([`GRPC`]).
//! 4. Health checks and reflection need no key. They are limited, per client and in total
//!    ([`CallLayer`]).

mod admission;
mod create_stream;
mod messages;
mod status;

use std::{pin::pin, sync::Arc, time::Duration};

use admission::{Admission, Admitted, Caller, client_of};
use app::{AppError, FieldErrors, authorize::require, edit_link::Target, list_links::ListLinks};
use create_stream::CreateStreams;
use futures_util::future::BoxFuture;
use limits::{
    Account, Connections, Held, ListenerLimits, Seldom,
    grpc::{CallLayer, incoming},
    http2_windows::GRPC,
};
use links::{Record, api_key::Grant, scope::Scope};
use prost::Message as _;
use proto::links::v1::{
    CreateLinkRequest, DeleteLinkRequest, DeleteLinkResponse, EditLinkRequest, GetLinkRequest, Link,
    ListLinksRequest, ListLinksResponse,
    links_server::{Links, LinksServer},
};
use status::of_app;
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Response, Status, Streaming,
    transport::{self, Server},
};

use crate::{Api, Task, authenticate::check_again};

/// The maximum size of a request in bytes, the same as for bodies of the REST API.
const MESSAGE_BYTES: usize = 64 * 1024;
/// The maximum size of a list in bytes. Clients accept messages of 4 MiB by default.
const LIST_BYTES: u64 = 3 * 1024 * 1024;
/// The maximum size of a request for health or reflection, in bytes.
const QUESTION_BYTES: usize = 4 * 1024;
/// The maximum total size of a call's headers in bytes. They are held for as long as the call
/// lasts.
const HEADER_BYTES: u32 = 8 * 1024;
/// The time limit of a call: from its arrival to its answer, or to the beginning of a stream.
const CALL_TIME: Duration = Duration::from_secs(30);
/// The deadline for calls under way when the server stops.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// Serves until `stop` is cancelled, and then lets the calls under way end within a deadline. The
/// future is in a box, so that it is compiled here once.
pub fn serve(
    listener: TcpListener,
    api: Arc<Api>,
    stop: CancellationToken,
) -> BoxFuture<'static, Result<(), transport::Error>> {
    Box::pin(async move {
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<LinksServer<Service>>().await;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()
            .expect("the descriptors were written by the compiler of the contracts");
        let proxies = Arc::clone(&api.clients);
        let mut connections = Connections::new("grpc", ListenerLimits::grpc(api.connections.grpc));
        connections.is_exempt = Box::new(move |peer| proxies.trusts(peer));
        let incoming = incoming(listener, connections, None);
        let streams = Arc::new(CreateStreams { stop: stop.clone(), broken: Seldom::default() });
        let links = LinksServer::new(Service { api: Arc::clone(&api), streams });
        let clients = Arc::clone(&api.clients);
        let calls = CallLayer::new(Arc::new(move |request| client_of(&clients, request)));
        let server = Server::builder()
            .timeout(CALL_TIME)
            .initial_stream_window_size(GRPC.stream)
            .initial_connection_window_size(GRPC.connection)
            .http2_keepalive_interval(Some(Duration::from_secs(10)))
            .http2_keepalive_timeout(Some(Duration::from_secs(5)))
            .max_concurrent_streams(GRPC.streams)
            .concurrency_limit_per_connection(GRPC.streams as usize)
            .http2_max_header_list_size(HEADER_BYTES)
            .layer(calls)
            .add_service(Admission { api, service: links.max_decoding_message_size(MESSAGE_BYTES) })
            .add_service(health_service.max_decoding_message_size(QUESTION_BYTES))
            .add_service(reflection.max_decoding_message_size(QUESTION_BYTES))
            .serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
        let mut server = pin!(server);
        tokio::select! {
            ended = &mut server => return ended,
            () = stop.cancelled() => {}
        }
        // A silent client can delay a graceful shutdown forever (hyper #4170).
        timeout(STOP_DEADLINE, server).await.unwrap_or(Ok(()))
    })
}

#[derive(Clone)]
struct Service {
    api: Arc<Api>,
    streams: Arc<CreateStreams>,
}

impl Service {
    /// Returns the grant of a call's key, checked again now that the message has arrived.
    async fn key_of<T: Sync>(&self, request: &Request<T>) -> Result<Grant, Status> {
        let Admitted { grant, since, .. } = Admitted::of(request.extensions())?;
        check_again(&self.api, grant, *since).await?;
        Ok(grant.clone())
    }

    /// Makes one create of a stream. Each counts as a call: a key that was revoked or has reached
    /// its limit meanwhile makes no more. The reservation lasts until the result was sent, because
    /// a client that reads no results goes on sending.
    async fn create_next(&self, request: CreateLinkRequest, caller: &Caller) -> Result<(Link, Held), Status> {
        let by = caller.authenticate(&self.api).await?;
        let held = self.api.budgets.bodies.take(Account::Key(by.id.0), request.encoded_len() as u64);
        let mut held = held.map_err(|spent| of_app(&spent.into()))?;
        let link = self.create_one(request, by).await?;
        // A link that existed before may be longer than the request. It is returned in any case.
        let _ = held.grow_to(link.encoded_len() as u64);
        Ok((link, held))
    }

    async fn create_one(&self, request: CreateLinkRequest, by: Grant) -> Result<Link, Status> {
        let idempotency = messages::idempotency(&request).map_err(|error| of_app(&error))?;
        let (request, service) = (messages::create_command(request)?, self.clone());
        let created = async move {
            let links = &service.api.links;
            let record = links.create_link(request, idempotency, FieldErrors::default(), &by).await?;
            Ok((record, by))
        };
        self.link_of(Box::pin(created)).await
    }

    /// Runs a call that uses the database in a task of its own. A client that disconnects must not
    /// leave it half done: with a number that no link uses, a cache entry that was not invalidated,
    /// or a query that still runs while its key's turn counts as free.
    async fn to_its_end<T: Send + 'static>(&self, call: Task<Result<T, AppError>>) -> Result<T, Status> {
        let ended = self.api.runtime.spawn(call).await;
        ended.unwrap_or(Err(AppError::Internal)).map_err(|error| of_app(&error))
    }

    /// Runs a call that changes, creates or reads a link, and returns the answer. A key without the
    /// scope `read` gets the link's name and version.
    async fn link_of(&self, call: Task<Result<(Record, Grant), AppError>>) -> Result<Link, Status> {
        let (record, by) = self.to_its_end(call).await?;
        let link = if by.may_read() {
            messages::link(&self.api, &record, &self.api.links.names_for(&record, &by).await)
        } else {
            messages::link_name(&self.api, &record)
        };
        link.ok_or_else(|| of_app(&AppError::Internal))
    }
}

#[tonic::async_trait]
impl Links for Service {
    async fn create_link(&self, request: Request<CreateLinkRequest>) -> Result<Response<Link>, Status> {
        let by = self.key_of(&request).await?;
        self.create_one(request.into_inner(), by).await.map(Response::new)
    }

    type CreateLinksStream = create_stream::Answers;

    async fn create_links(
        &self,
        request: Request<Streaming<CreateLinkRequest>>,
    ) -> Result<Response<Self::CreateLinksStream>, Status> {
        require(&Admitted::of(request.extensions())?.grant, Scope::Create).map_err(|error| of_app(&error))?;
        // The reservation for a message is kept: one may arrive for as long as the stream is open.
        let admitted = Arc::new(Admitted::of(request.extensions())?.clone());
        let service = self.clone();
        let create = move |request| {
            let (service, admitted) = (service.clone(), Arc::clone(&admitted));
            async move { service.create_next(request, &admitted.caller).await }
        };
        Ok(Response::new(self.streams.answer(request.into_inner(), create)))
    }

    async fn get_link(&self, request: Request<GetLinkRequest>) -> Result<Response<Link>, Status> {
        let by = self.key_of(&request).await?;
        let GetLinkRequest { short_code, domain } = request.into_inner();
        let (name, service) = (messages::name(short_code, domain), self.clone());
        let found = async move { Ok((service.api.links.get_link(&name, &by).await?, by)) };
        self.link_of(Box::pin(found)).await.map(Response::new)
    }

    async fn edit_link(&self, request: Request<EditLinkRequest>) -> Result<Response<Link>, Status> {
        let by = self.key_of(&request).await?;
        let (target, edit) = messages::edit_command(request.into_inner())?;
        let service = self.clone();
        let edited = async move {
            let edited = service.api.links.edit_link(&target, edit, FieldErrors::default(), &by).await?;
            Ok((edited, by))
        };
        self.link_of(Box::pin(edited)).await.map(Response::new)
    }

    async fn delete_link(
        &self,
        request: Request<DeleteLinkRequest>,
    ) -> Result<Response<DeleteLinkResponse>, Status> {
        let by = self.key_of(&request).await?;
        let DeleteLinkRequest { short_code, domain, version } = request.into_inner();
        let name = messages::name(short_code, domain);
        let target = Target { name, versions: version.map(|version| vec![version]) };
        let service = self.clone();
        let deleted = async move { service.api.links.delete_link(&target, &by).await };
        self.to_its_end(Box::pin(deleted)).await?;
        Ok(Response::new(DeleteLinkResponse {}))
    }

    async fn list_links(
        &self,
        request: Request<ListLinksRequest>,
    ) -> Result<Response<ListLinksResponse>, Status> {
        let by = self.key_of(&request).await?;
        let (request, service) = (messages::list_command(request.into_inner()), self.clone());
        let listed = async move { list(&service.api, request, &by).await };
        let (page, held) = self.to_its_end(Box::pin(listed)).await?;
        let mut answer = Response::new(page);
        if let Some(held) = held {
            answer.extensions_mut().insert(Arc::new(held));
        }
        Ok(answer)
    }
}

/// Reads a page of links that fits one message, with the reservation for its memory.
async fn list(
    api: &Api,
    request: ListLinks,
    by: &Grant,
) -> Result<(ListLinksResponse, Option<Held>), AppError> {
    let listed = api.links.list_links(request, FieldErrors::default(), by).await?;
    let outlined = fits_message(listed.entries.iter().map(links::Outlined::size).sum())?;
    let (holder, mut held) = (Account::Key(by.id.0), None);
    api.budgets.widen(&mut held, holder, outlined)?;
    let (mut records, mut bytes) = (Vec::with_capacity(listed.entries.len()), 0);
    for piece in links::pieces(&listed.entries) {
        let piece = api.links.weigh(piece, by).await?;
        bytes = fits_message(bytes + piece.iter().map(links::Outlined::size).sum::<u64>())?;
        api.budgets.widen(&mut held, holder, bytes)?;
        records.extend(api.links.read_piece(&listed, &piece, by).await?);
    }
    let names = api.links.names(&records).await;
    let links = records.iter().filter_map(|record| messages::link(api, record, &names)).collect();
    Ok((ListLinksResponse { links, total: listed.total_of_pages() }, held))
}

fn fits_message(bytes: u64) -> Result<u64, AppError> {
    if bytes <= LIST_BYTES {
        return Ok(bytes);
    }
    let expected = format!("expected fewer: these links are longer than {LIST_BYTES} bytes together");
    Err(AppError::invalid("itemsPerPage", expected))
}
