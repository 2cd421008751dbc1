//! One request: to the origin and back, recoded or as it was.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use image_recode::{Left, Source};
use image_variants::response::{Fit, Sizes, dropped};
use image_variants::tag::Variant;
use image_variants::{Config, request, response};
use name_budget::{Client, marks};
use side_program::{MOST_FIELDS, fields, without_hop_by_hop};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::body::{Memory, Resumed};
use crate::failures::{Failures, Image};
use crate::metrics::Metrics;
use crate::pool::Pool;
use crate::slots::Owner;

/// The longest time for the rest of a body, once its headers came. A slower origin is not worth waiting for.
const BODY_TIME: Duration = Duration::from_secs(2);

/// The client that requests an image, and the place of the image.
struct Asked {
    client: Owner,
    host: String,
    path: String,
}

/// The reason why a request gets no response. The connection closes, and Envoy asks the origin itself.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// The socket for requests to origins.
    #[error("no connection to Envoy's socket for origins: {0}")]
    Connect(#[from] std::io::Error),
    /// The exchange over it.
    #[error("no response from Envoy's socket for origins: {0}")]
    Exchange(#[from] hyper::Error),
}

/// The parts that all requests share.
#[derive(Debug)]
pub struct Service {
    config: Config,
    variant: Variant,
    pool: Pool,
    failures: Failures,
    memory: Memory,
    /// The counters.
    pub metrics: Metrics,
}

impl Service {
    /// Makes the service, and starts its child processes.
    ///
    /// # Errors
    /// If the program does not find itself.
    pub fn new(config: Config) -> std::io::Result<Self> {
        let pool = Pool::new(&config)?;
        pool.fill();
        let variant = Variant { quality: config.jpeg_quality };
        Ok(Self {
            config,
            variant,
            pool,
            failures: Failures::default(),
            memory: Memory::default(),
            metrics: Metrics::default(),
        })
    }

    /// Responds to a request of Envoy.
    ///
    /// # Errors
    /// If the origin cannot be asked. Envoy then asks it without this program.
    pub async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Resumed>, Unanswered> {
        let (mut parts, body) = request.into_parts();
        let mut left = request::left(&fields(&parts.method, None, &parts.headers));
        parts.version = Version::HTTP_11;
        without_hop_by_hop(&mut parts.headers);
        let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if self.config.excludes(host) {
            left = left.or(Some(Left::Excluded));
        }
        let asked = Asked {
            client: parts.headers.get(marks::CLIENT).and_then(|name| Client::of(name.as_bytes())),
            host: host.to_owned(),
            path: parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        };
        // The origin knows its own tags alone.
        let validates = own_tags(&mut parts.headers, self.variant);
        let response = ask(&self.config, Request::from_parts(parts, body)).await?;
        let (mut parts, body) = response.into_parts();
        without_hop_by_hop(&mut parts.headers);
        if parts.status == StatusCode::NOT_MODIFIED && validates {
            self.tag(&mut parts.headers);
        }
        let fit = left.map_or_else(|| self.fit(&parts), Err);
        self.pass(&asked, parts, body, fit).await
    }

    fn fit(&self, parts: &Parts) -> Result<Fit, Left> {
        let sizes = Sizes { min_bytes: self.config.min_bytes, max_bytes: self.config.max_bytes };
        response::fit(&fields(&Method::GET, Some(parts.status.as_str()), &parts.headers), sizes)
    }

    /// Passes a response on, recoded if it can be. Every way out has the origin's bytes or the whole variant.
    ///
    /// A response that fits in memory is read before its headers leave, also if it stays as it is. If this process dies
    /// meanwhile, Envoy asks again. A part of a body could not be taken back.
    async fn pass(
        &self,
        asked: &Asked,
        mut parts: Parts,
        body: Incoming,
        fit: Result<Fit, Left>,
    ) -> Result<Response<Resumed>, Unanswered> {
        let length = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|&length| length as u64 <= self.config.max_bytes);
        let share = length.and_then(|length| self.memory.take(length));
        let read = match (&share, length) {
            (Some(_), _) => read(body).await?,
            (None, Some(_)) => (Vec::new(), Rest::More(body, Left::Busy)),
            (None, None) => (Vec::new(), Rest::More(body, Left::Length)),
        };
        let (pieces, image) = match (fit, read) {
            (Ok(fit), (pieces, Rest::None)) => match self.recoded(asked, fit.source, &pieces.concat()).await {
                Ok(file) => (vec![Bytes::from(file)], Ok(fit.length)),
                Err(left) => (pieces, Err(left)),
            },
            (Err(left), (pieces, Rest::None)) => (pieces, Err(left)),
            (fit, (pieces, Rest::More(rest, reason))) => {
                self.metrics.left(fit.err().unwrap_or(reason));
                return Ok(Response::from_parts(parts, Resumed::after(pieces, rest, share)));
            }
        };
        match image {
            Ok(before) => {
                let after = pieces.iter().map(Bytes::len).sum();
                self.metrics.shrunk(before, after);
                self.describe(&mut parts.headers, after);
            }
            Err(left) => self.metrics.left(left),
        }
        Ok(Response::from_parts(parts, Resumed::whole(pieces, share)))
    }

    /// Gives the headers of an image to its variant.
    fn describe(&self, headers: &mut HeaderMap, length: usize) {
        self.tag(headers);
        for name in dropped() {
            headers.remove(name);
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("image/webp"));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }

    async fn recoded(&self, asked: &Asked, source: Source, image: &[u8]) -> Result<Vec<u8>, Left> {
        // Most images that stay are known by their headers, without a process.
        image_variants::header::read(source, image, self.config.pixels)?;
        let known = Image::at(asked.host.as_bytes(), &asked.path, image.len());
        if self.failures.include(known, Instant::now()) {
            return Err(Left::Worker);
        }
        let recoded = self.pool.recode(asked.client, source, image).await;
        if recoded.file == Err(Left::Worker) {
            self.failures.add(known, Instant::now());
        }
        self.metrics.cpu(recoded.cpu_us);
        recoded.file
    }

    /// Gives the response the tag of its variant. A value that is no tag is removed.
    fn tag(&self, headers: &mut HeaderMap) {
        let Some(tag) = headers.remove(header::ETAG) else { return };
        let tag = self.variant.tag(tag.as_bytes()).and_then(|tag| HeaderValue::from_bytes(&tag).ok());
        if let Some(tag) = tag {
            headers.insert(header::ETAG, tag);
        }
    }
}

/// The part of a body that was not read.
enum Rest {
    /// The body is whole.
    None,
    /// The body, and the reason why the image stays.
    More(Incoming, Left),
}

/// Reads a body. Stops if it is slow; what follows passes as it comes.
///
/// # Errors
/// If the body breaks off. No byte of it has left, so Envoy can ask again.
async fn read(mut body: Incoming) -> Result<(Vec<Bytes>, Rest), Unanswered> {
    let mut pieces = Vec::new();
    let reading = async {
        while let Some(frame) = body.frame().await {
            // A body with a length has no trailers.
            pieces.extend(frame?.into_data());
        }
        Ok(())
    };
    match timeout(BODY_TIME, reading).await {
        Ok(done) => done.map(|()| (pieces, Rest::None)),
        Err(_) => Ok((pieces, Rest::More(body, Left::Slow))),
    }
}

async fn ask(config: &Config, request: Request<Incoming>) -> Result<Response<Incoming>, Unanswered> {
    let stream = UnixStream::connect(&config.origin).await?;
    let (mut sender, connection) =
        http1::Builder::new().max_headers(MOST_FIELDS).handshake(TokioIo::new(stream)).await?;
    // It ends with the response, or when the response is dropped.
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

/// Replaces the variant's tags in `If-None-Match` by the origin's. Returns true if there was one.
fn own_tags(headers: &mut HeaderMap, variant: Variant) -> bool {
    let mut found = false;
    let mut tags = Vec::new();
    for value in headers.get_all(header::IF_NONE_MATCH) {
        // A comma in a tag leaves parts that are no tags, which stay as they are.
        for tag in value.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            let origin = variant.origin(tag);
            found |= origin.is_some();
            tags.push(origin.unwrap_or_else(|| tag.to_vec()));
        }
    }
    if found && let Ok(value) = HeaderValue::from_bytes(&tags.join(&b", "[..])) {
        headers.insert(header::IF_NONE_MATCH, value);
    }
    found
}
