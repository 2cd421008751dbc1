//! The sockets: connections, and their end.

use std::convert::Infallible;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use image_variants::Config;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::exchange::{MOST_FIELDS, Service};
use crate::log;

/// The longest time for requests under way, once the program is to end.
const DRAIN: Duration = Duration::from_secs(10);

/// The pause after an error of `accept`, for example when file descriptors are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `end` completes, then finishes the requests under way.
///
/// # Errors
/// If a socket cannot be opened.
pub async fn run(config: Config, end: impl Future<Output = ()>) -> io::Result<()> {
    let listener = listen(&config.listen)?;
    let metrics = match config.metrics {
        Some(address) => Some(TcpListener::bind(address).await?),
        None => None,
    };
    let send_buffer = usize::try_from(config.max_bytes).unwrap_or(usize::MAX).saturating_mul(2);
    let service = Arc::new(Service::new(config)?);
    let (draining, drain) = watch::channel(());
    if let Some(metrics) = metrics {
        tokio::spawn(serve_metrics(metrics, Arc::clone(&service)));
    }
    log::line("ready");
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // What was written stays readable if this process dies, so a response is written at once.
                    let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, send_buffer);
                    tokio::spawn(connection(stream, Arc::clone(&service), drain.clone()));
                }
                Err(error) => {
                    log::line(&format!("cannot accept a connection: {error}"));
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        () = end => {}
    }
    drop(drain);
    // Completes when the last connection has dropped its receiver.
    let _ = draining.send(());
    let _ = timeout(DRAIN, draining.closed()).await;
    Ok(())
}

/// Opens a socket that this user alone can use. A socket of an earlier process gives way.
fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn connection(stream: UnixStream, service: Arc<Service>, mut drain: watch::Receiver<()>) {
    let respond = service_fn(move |request| Arc::clone(&service).respond(request));
    let serving = http1::Builder::new().max_headers(MOST_FIELDS).serve_connection(TokioIo::new(stream), respond);
    let mut serving = std::pin::pin!(serving);
    // An error is a client that went away, or an origin that was not reached. Envoy reports both.
    tokio::select! {
        _ = serving.as_mut() => return,
        _ = drain.changed() => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

async fn serve_metrics(listener: TcpListener, service: Arc<Service>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            let respond = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let text = service.metrics.text();
                async move { Ok::<_, Infallible>(metrics_response(request.method(), request.uri().path(), text)) }
            });
            let serving = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), respond);
            let _ = timeout(DRAIN, serving).await;
        });
    }
}

fn metrics_response(method: &Method, path: &str, text: String) -> Response<Full<Bytes>> {
    if *method != Method::GET || path != "/metrics" {
        let mut response = Response::new(Full::from("the metrics are at /metrics\n"));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    }
    let mut response = Response::new(Full::from(text));
    let kind = header::HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
