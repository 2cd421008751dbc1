//! The knowledge of a run about its clients: whether the ground reads their names and weights, what they have used, and the limit
//! of the links that they share.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use super::accounts::Accounts;
use super::client_names::ClientNames;
use super::error::RunError;
use super::events::Event;
use super::links_in_use::LinksInUse;
use super::log::Heard;
use super::rate_watch::RateWatch;
use super::remote_reports::RemoteReports;
use super::state::StateFolder;

/// The parts, each with a job of its own.
#[derive(Debug)]
pub(super) struct Clients {
    /// Does nothing unless this box is a remote that shares the link.
    pub(super) names: ClientNames,
    /// Does nothing unless this box is a remote that shares the link.
    pub(super) reports: RemoteReports,
    /// Empty without groups of clients and `log.who`.
    pub(super) accounts: Accounts,
    /// Does nothing unless this box is a remote with several links.
    pub(super) links: LinksInUse,
    /// Does nothing without shares by native filters.
    pub(super) rate: RateWatch,
    /// The limits of links that carry less than is stated, in percent, as it said last.
    pub(super) carried: BTreeMap<String, u32>,
    /// The lines of Envoy.
    pub(super) heard: Heard,
}

impl Clients {
    /// Reads what earlier runs have counted.
    pub(super) fn open(state: &StateFolder, heard: Heard, events: Sender<Event>) -> Result<Self, RunError> {
        Ok(Self {
            names: ClientNames::default(),
            reports: RemoteReports::default(),
            links: LinksInUse::default(),
            accounts: Accounts::open(&state.kept, &state.path),
            rate: RateWatch::start(events).map_err(|error| RunError::System(error.to_string()))?,
            carried: BTreeMap::new(),
            heard,
        })
    }
}
