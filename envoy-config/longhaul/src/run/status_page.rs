//! The status page: its content, and the names under which it is served.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};

use longhaul_config::{Host, Settings};
use longhaul_observe::report::RunReport;
use longhaul_observe::status::StatusPage;

use super::locate::host_name;
use super::log::{Level, RecentPages};
use super::page_server::PageServer;
use super::ports::ListenSocket;
use super::publisher::LastReport;
use super::say;
use crate::web::{HostPolicy, Pages, Resource};

/// The status page. It is not served while `listen.status` is off or its default socket is in use.
pub(super) struct StatusServer {
    pages: Pages,
    server: PageServer,
}

impl StatusServer {
    pub(super) fn new(report: LastReport, recent: RecentPages) -> Self {
        let pages = StatusPage::default();
        let page = move |path: &str| {
            let report = report.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
            let (media_type, body) = pages.page(RunReport { pages: recent.list(), ..report }, path)?;
            Some(Resource::ok(media_type, body))
        };
        Self { pages: Arc::new(page), server: PageServer::new("listen.status", "status page") }
    }

    /// Starts, stops or replaces the server, as the settings want. Call it often.
    pub(super) fn tend(&mut self, settings: &Settings) {
        if let Some(socket) = self.server.tend(settings.listen.status, own_names(settings), &self.pages) {
            say(Level::Info, &format!("the status page is at http://{socket}/"));
        }
    }

    /// Returns the socket on which it serves.
    pub(super) fn socket(&self) -> Option<SocketAddr> {
        self.server.socket()
    }

    /// Returns the same, as a socket that this run has already.
    pub(super) fn listens_on(&self) -> Option<ListenSocket> {
        self.server.listens_on()
    }
}

/// Returns the names of this box: its host name, its `id`, and the proxy's own names.
pub(super) fn own_names(settings: &Settings) -> HostPolicy {
    let names = settings.proxy.secure_names.iter().filter_map(|host| match host {
        Host::Name(name) => Some(name.to_string()),
        Host::Address(_) => None,
    });
    HostPolicy::of([host_name()].into_iter().chain(settings.id.clone()).chain(names))
}
