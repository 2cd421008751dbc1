//! The knowledge of a run about its clients: whether the ground reads their names and weights, and what they have used.

use super::accounts::Accounts;
use super::client_names::ClientNames;
use super::client_weights::ToldWeights;
use super::log::Heard;
use super::state::StateFolder;

/// The parts, each with a job of its own.
#[derive(Debug)]
pub(super) struct Clients {
    /// Does nothing unless this box is a remote that shares the link.
    pub(super) names: ClientNames,
    /// Does nothing unless this box is a remote that shares the link.
    pub(super) told: ToldWeights,
    /// Empty without groups of clients and `log.who`.
    pub(super) accounts: Accounts,
    /// The lines of Envoy.
    pub(super) heard: Heard,
}

impl Clients {
    /// Reads what earlier runs have counted.
    pub(super) fn open(state: &StateFolder, heard: Heard) -> Self {
        let accounts = Accounts::open(&state.kept, &state.path);
        Self { names: ClientNames::default(), told: ToldWeights::default(), accounts, heard }
    }
}
