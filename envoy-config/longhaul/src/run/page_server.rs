//! A server of read-only pages on a socket of the settings.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use longhaul_config::PageListen;

use super::log::Level;
use super::ports::{ListenSocket, Protocol};
use super::say;
use crate::web::{HostPolicy, Pages, Server, Site};

/// The server. It serves nothing while its key is off or its default socket is in use.
#[derive(Debug)]
pub(super) struct PageServer {
    /// The key of its socket.
    key: &'static str,
    /// The pages, in messages.
    what: &'static str,
    serving: Option<Serving>,
    /// The socket that could not be bound. The reason has been reported.
    busy: Option<SocketAddr>,
}

#[derive(Debug)]
struct Serving {
    socket: SocketAddr,
    hosts: HostPolicy,
    _server: Server,
}

impl PageServer {
    pub(super) fn new(key: &'static str, what: &'static str) -> Self {
        Self { key, what, serving: None, busy: None }
    }

    /// Starts, stops or replaces the server, so that it has the socket `wanted` and the names `hosts`. Call it often: a
    /// socket that is in use is tried again. Returns the socket of a server that has just started.
    pub(super) fn tend(&mut self, wanted: Option<PageListen>, hosts: HostPolicy, pages: &Pages) -> Option<SocketAddr> {
        let Some(PageListen { socket, required }) = wanted else {
            (self.serving, self.busy) = (None, None);
            return None;
        };
        if self.serving.as_ref().is_some_and(|serving| (serving.socket, &serving.hosts) == (socket, &hosts)) {
            return None;
        }
        // The socket must be free before the next server binds it.
        self.serving = None;
        match Server::start(socket, Site { hosts: hosts.clone(), pages: Arc::clone(pages) }) {
            Ok(server) => {
                self.serving = Some(Serving { socket, hosts, _server: server });
                self.busy = None;
                Some(socket)
            }
            Err(error) => {
                if self.busy.replace(socket) != Some(socket) {
                    let refusal = refusal(socket, self.key, required, &error);
                    say(Level::Warning, &format!("no {}: {refusal}", self.what));
                }
                None
            }
        }
    }

    /// Returns the socket on which it serves.
    pub(super) fn socket(&self) -> Option<SocketAddr> {
        self.serving.as_ref().map(|serving| serving.socket)
    }

    /// Returns the same, as a socket that this run has already.
    pub(super) fn listens_on(&self) -> Option<ListenSocket> {
        self.socket().map(|socket| ListenSocket { key: self.key, socket, transport: Protocol::Tcp })
    }
}

fn refusal(socket: SocketAddr, key: &str, required: bool, error: &io::Error) -> String {
    let which = if required { format!("`{key}`") } else { format!("the default of `{key}`") };
    let reason = match error.kind() {
        io::ErrorKind::AddrInUse => "is in use".to_owned(),
        _ => error.to_string(),
    };
    format!("{socket}, {which}, {reason}; set `{key}` to another address and port, or to off")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_default_socket_that_is_in_use_is_explained() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = taken.local_addr().unwrap();
        let error = TcpListener::bind(socket).unwrap_err();
        let said = refusal(socket, "listen.status", false, &error);
        assert!(said.starts_with(&format!("{socket}, the default of `listen.status`, is in use; set ")), "{said}");
    }
}
