//! The minimal redirect server on hyper: an immutable map, and nothing else.

use std::{collections::HashMap, convert::Infallible, net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::Context;
use http_body_util::Empty;
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{HeaderValue, LOCATION},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use listener::bind;

/// The flags of `bench bare-hyper`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Listen on this address.
    #[arg(long)]
    listen: SocketAddr,
    /// Serve with this many threads.
    #[arg(long)]
    threads: usize,
    /// Serve the paths in this file, one per line.
    #[arg(long)]
    paths: PathBuf,
}

type Links = Arc<HashMap<String, HeaderValue>>;

/// Serves until the process is killed.
///
/// # Errors
/// Returns an error if the address is taken or the paths cannot be read.
pub(crate) fn serve(args: &Args) -> anyhow::Result<()> {
    let paths = std::fs::read_to_string(&args.paths).context("read the paths")?;
    let link = |(index, path): (usize, &str)| {
        let target = HeaderValue::try_from(format!("https://example.org/some/where/{index}"));
        Ok((path.to_owned(), target.context("make a target")?))
    };
    let links: Links = Arc::new(paths.lines().enumerate().map(link).collect::<anyhow::Result<_>>()?);
    let sockets = bind(args.listen, args.threads).context("listen")?;
    let threads = sockets.into_iter().map(|socket| {
        let links = Arc::clone(&links);
        std::thread::spawn(move || accept(socket, &links))
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.join().ok().context("a thread panicked")??;
    }
    Ok(())
}

fn accept(socket: std::net::TcpListener, links: &Links) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(socket)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let links = Arc::clone(links);
            let service = service_fn(move |request: Request<Incoming>| {
                std::future::ready(Ok::<_, Infallible>(answer(&links, &request)))
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

fn answer(links: &Links, request: &Request<Incoming>) -> Response<Empty<Bytes>> {
    let mut answer = Response::new(Empty::new());
    match links.get(request.uri().path()) {
        Some(target) => {
            *answer.status_mut() = StatusCode::FOUND;
            answer.headers_mut().insert(LOCATION, target.clone());
        }
        None => *answer.status_mut() = StatusCode::NOT_FOUND,
    }
    answer
}
