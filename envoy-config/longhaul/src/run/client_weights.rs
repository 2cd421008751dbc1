//! Weights of clients: a remote tells them its ground, and the ground gives each client the share of its weight.
//!
//! The remote tells them whenever the pipe or a weight is new, as the query of a request on the pipe. The ground's Envoy
//! writes the query on its stderr, behind the names of the remote's certificate. So no remote can weigh another's clients.
//! A ground of an earlier version has no such path, and then all clients have equal shares of what comes down.

use std::collections::BTreeMap;

use longhaul_config::{PeerName, Role, Settings};
use longhaul_derive::Derived;
use longhaul_observe::Endpoint;
use longhaul_render::{Weighing, Weights};

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
        let question = || Question { path: format!("{}?{}", Weights::PATH, self.weights), yes: YES };
        self.question.tend(settings, pipe, admin, question);
    }
}

/// Returns the remotes whose weights a box of this role believes, by name.
pub(super) fn believed(role: &Role) -> Vec<String> {
    let Role::Ground(ground) = role else { return Vec::new() };
    ground.remotes.iter().map(PeerName::to_string).collect()
}

/// Returns the weights in force at a ground after it has heard `heard`. Only `remotes` are believed, each for its own clients.
pub(super) fn after(
    present: &BTreeMap<String, Weights>,
    heard: Vec<HeardWeights>,
    remotes: &[String],
) -> BTreeMap<String, Weights> {
    let mut next = present.clone();
    next.retain(|name, _| remotes.contains(name));
    for HeardWeights { of, weights } in heard {
        if let Some(name) = remotes.iter().find(|name| of.contains(name)) {
            next.insert(name.clone(), weights);
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ground_believes_its_own_remotes_alone_and_each_for_itself() {
        let weights = |text: &str| Weights::parse(text).unwrap();
        let heard = |of: &str, text: &str| HeardWeights { of: vec![of.to_owned()], weights: weights(text) };
        let remotes = ["ship.example", "ferry.example"].map(str::to_owned);
        let told = vec![
            heard("ship.example", "40=192.0.2.0/28"),
            heard("stranger.example", "1=192.0.2.0/24"),
            heard("ferry.example", "20=192.0.2.0/28"),
            heard("ship.example", "1=192.0.2.0/28"),
        ];
        let next = after(&BTreeMap::new(), told, &remotes);
        let shown: Vec<String> = next.iter().map(|(name, weights)| format!("{name} {weights}")).collect();
        assert_eq!(shown, ["ferry.example 20=192.0.2.0/28", "ship.example 1=192.0.2.0/28"]);
        assert_eq!(after(&next, Vec::new(), &remotes), next);
        assert!(!after(&next, Vec::new(), &remotes[1..]).contains_key("ship.example"), "it has left the file");
    }
}
