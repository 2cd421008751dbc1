//! The server of the status page: where it listens, and under which names.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use super::locate::host_name;
use super::log::{Level, RecentPages};
use super::ports::{ListenSocket, Protocol};
use super::report::RunReport;
use super::say;
use crate::config::{Host, Settings, StatusListen};
use crate::web::{HostPolicy, Resource, Server, Site};

/// The pages about a run. They stand outside of `run`, because they query its children as any other program does.
pub trait StatusPages: Debug + Send + Sync {
    /// Returns the page or file at `path`. None if there is none. May wait for the children.
    fn page(&self, run: RunReport, path: &str) -> Option<Resource>;
}

/// The last report of a run, for the threads that show it.
pub(super) type LastReport = Arc<Mutex<Option<RunReport>>>;

/// The server. It serves nothing while `listen.status` is off or its default socket is in use.
#[derive(Debug)]
pub(super) struct StatusServer {
    pages: Arc<dyn StatusPages>,
    report: LastReport,
    recent: RecentPages,
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

impl StatusServer {
    pub(super) fn new(pages: Arc<dyn StatusPages>, report: LastReport, recent: RecentPages) -> Self {
        Self { pages, report, recent, serving: None, busy: None }
    }

    /// Starts, stops or replaces the server, as the settings want. Call it often: a socket that is in use is tried again.
    pub(super) fn tend(&mut self, settings: &Settings) {
        let Some(StatusListen { socket, required }) = settings.listen.status else {
            (self.serving, self.busy) = (None, None);
            return;
        };
        let hosts = own_names(settings);
        if self.serving.as_ref().is_some_and(|serving| (serving.socket, &serving.hosts) == (socket, &hosts)) {
            return;
        }
        // The socket must be free before the next server binds it.
        self.serving = None;
        match Server::start(socket, self.site(hosts.clone())) {
            Ok(server) => {
                say(Level::Info, &format!("the status page is at http://{socket}/"));
                self.serving = Some(Serving { socket, hosts, _server: server });
                self.busy = None;
            }
            Err(error) if self.busy != Some(socket) => {
                say(Level::Warning, &format!("no status page: {}", refusal(socket, required, &error)));
                self.busy = Some(socket);
            }
            Err(_) => {}
        }
    }

    /// Returns the socket on which it serves.
    pub(super) fn socket(&self) -> Option<SocketAddr> {
        self.serving.as_ref().map(|serving| serving.socket)
    }

    /// Returns the same, as a socket that this run has already.
    pub(super) fn listens_on(&self) -> Option<ListenSocket> {
        self.socket().map(|socket| ListenSocket { key: "listen.status", socket, transport: Protocol::Tcp })
    }

    fn site(&self, hosts: HostPolicy) -> Site {
        let (pages, report, recent) = (Arc::clone(&self.pages), Arc::clone(&self.report), self.recent.clone());
        let page = move |path: &str| {
            let report = report.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
            pages.page(RunReport { pages: recent.list(), ..report }, path)
        };
        Site { hosts, pages: Arc::new(page) }
    }
}

/// Returns the names of this box: its host name, and the proxy's own names.
fn own_names(settings: &Settings) -> HostPolicy {
    let names = settings.proxy.secure_names.iter().filter_map(|host| match host {
        Host::Name(name) => Some(name.to_string()),
        Host::Address(_) => None,
    });
    HostPolicy::of([host_name()].into_iter().chain(names))
}

fn refusal(socket: SocketAddr, required: bool, error: &io::Error) -> String {
    let which = if required { "`listen.status`" } else { "the default of `listen.status`" };
    let reason = match error.kind() {
        io::ErrorKind::AddrInUse => "is in use".to_owned(),
        _ => error.to_string(),
    };
    format!("{socket}, {which}, {reason}; set `listen.status` to another address and port, or to off")
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
        let said = refusal(socket, false, &error);
        assert!(said.starts_with(&format!("{socket}, the default of `listen.status`, is in use; set ")), "{said}");
    }
}
