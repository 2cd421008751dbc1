//! Weights of clients: a remote tells them its ground, and the ground gives each client the share of its weight.
//!
//! The remote tells them whenever the pipe or a weight is new, as the query of a request on the pipe. The ground's Envoy
//! writes the query on its stderr, behind the names of the remote's certificate. So no remote can weigh another's clients.
//! A ground of an earlier version has no such path, and then all clients have equal shares of what comes down.

use std::collections::BTreeMap;

use longhaul_config::{PeerName, Role, Settings};
use longhaul_derive::Derived;
use longhaul_observe::Endpoint;
use longhaul_render::{WEIGHTS_PATH, Weighing, Weights};

use super::log::HeardWeights;
use super::pipe_question::{PipeQuestion, Question};

/// The status by which a ground takes weights (`rds/pipe.yaml`). An earlier one sends 204 for every path.
const YES: u16 = 200;

/// The agreement of a remote with its ground.
#[derive(Debug, Default)]
pub(super) struct ToldWeights {
    question: PipeQuestion,
    weights: Weights,
}

impl ToldWeights {
    /// Tells the ground what is new, as [`super::client_names::ClientNames::tend`] does.
    pub(super) fn tend(
        &mut self,
        settings: &Settings,
        derived: &Derived,
        weighing: &Weighing,
        pipe: Option<u32>,
        admin: Option<&Endpoint>,
    ) {
        let shares = derived.neighbours.sent_by(&settings.role).is_some();
        if !shares || !matches!(settings.role, Role::Remote(_)) {
            *self = Self::default();
            return;
        }
        let weights = Weights::of(&settings.clients, &weighing.slow);
        if weights != self.weights {
            *self = Self { question: PipeQuestion::default(), weights };
        }
        let question = || Question { path: format!("{WEIGHTS_PATH}?{}", self.weights), yes: YES };
        self.question.tend(settings, pipe, admin, question);
    }
}

/// Returns the weights in force at a ground after it has heard `heard`: of its own remotes alone.
pub(super) fn after(
    present: &BTreeMap<String, Weights>,
    heard: Vec<HeardWeights>,
    role: &Role,
) -> BTreeMap<String, Weights> {
    let Role::Ground(ground) = role else { return BTreeMap::new() };
    let names: Vec<String> = ground.remotes.iter().map(PeerName::to_string).collect();
    let mut next = present.clone();
    next.retain(|name, _| names.contains(name));
    for HeardWeights { of, weights } in heard {
        if let Some(name) = names.iter().find(|name| of.contains(name)) {
            next.insert(name.clone(), weights);
        }
    }
    next
}
