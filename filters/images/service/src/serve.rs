//! The sockets.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use image_variants::Config;
use side_program::{ACCEPT_PAUSE, Options};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use crate::exchange::Service;
use crate::log;

/// The longest time for a request for metrics.
const METRICS_TIME: Duration = Duration::from_secs(10);

/// Serves until `end` completes, then finishes the requests under way.
///
/// # Errors
/// If a socket cannot be opened.
pub async fn run(config: Config, end: impl Future<Output = ()>) -> io::Result<()> {
    let listener = side_program::listen(&config.listen)?;
    let metrics = match config.metrics {
        Some(address) => Some(TcpListener::bind(address).await?),
        None => None,
    };
    // What was written stays readable if this process dies, so a response is written at once.
    let send_buffer_bytes = usize::try_from(config.max_bytes).unwrap_or(usize::MAX).saturating_mul(2);
    let service = Arc::new(Service::new(config)?);
    if let Some(metrics) = metrics {
        tokio::spawn(serve_metrics(metrics, Arc::clone(&service)));
    }
    log::line("ready");
    let options = Options { program: log::PROGRAM, listener, send_buffer_bytes };
    side_program::serve(options, end, move |request| Arc::clone(&service).respond(request)).await;
    Ok(())
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
            let _ = timeout(METRICS_TIME, serving).await;
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
