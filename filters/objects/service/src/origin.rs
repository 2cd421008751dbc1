//! Requests to origins, over Envoy's socket for them.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::http::request::Parts;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use side_program::MOST_FIELDS;
use tokio::net::UnixStream;

type Sender = http1::SendRequest<Empty<Bytes>>;

/// The most idle connections. Envoy closes them after an hour.
const MOST_IDLE: usize = 64;

/// The reason why the origin gave no response.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// The socket for requests to origins.
    #[error("no connection to Envoy's socket for origins: {0}")]
    Connect(#[from] io::Error),
    /// The exchange over it.
    #[error("no response from Envoy's socket for origins: {0}")]
    Exchange(#[from] hyper::Error),
    /// Another client's request that this one waited for.
    #[error("the request that fetched the response has ended")]
    Leader,
}

/// The way to origins.
#[derive(Debug)]
pub(crate) struct Origin {
    socket: PathBuf,
    idle: Mutex<Vec<Sender>>,
}

impl Origin {
    pub(crate) fn new(socket: PathBuf) -> Arc<Self> {
        Arc::new(Self { socket, idle: Mutex::default() })
    }

    /// Sends a request without a body. Repeats it on a new connection if an idle one has closed meanwhile.
    pub(crate) async fn ask(self: &Arc<Self>, parts: Parts) -> Result<Response<Incoming>, Unanswered> {
        let mut request = Request::from_parts(parts, Empty::new());
        loop {
            let idle = self.take();
            let is_reused = idle.is_some();
            let mut sender = match idle {
                Some(sender) => sender,
                None => self.connect().await?,
            };
            match sender.try_send_request(request).await {
                Ok(response) => {
                    let origin = Arc::clone(self);
                    tokio::spawn(async move {
                        if sender.ready().await.is_ok() {
                            origin.put(sender);
                        }
                    });
                    return Ok(response);
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) if is_reused => request = unsent,
                    _ => return Err(error.into_error().into()),
                },
            }
        }
    }

    async fn connect(&self) -> Result<Sender, Unanswered> {
        let stream = UnixStream::connect(&self.socket).await?;
        let (sender, connection) =
            http1::Builder::new().max_headers(MOST_FIELDS).handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn take(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(sender) = idle.pop() {
            if !sender.is_closed() {
                return Some(sender);
            }
        }
        None
    }

    fn put(&self, sender: Sender) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE {
            idle.push(sender);
        }
    }
}
