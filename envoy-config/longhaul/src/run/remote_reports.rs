//! The reports of a remote to its ground: the weights of its clients, and the rate of its links in use.
//!
//! The remote reports whenever the pipe or a value is new, as the query of a request on the pipe. The ground's Envoy
//! writes the query on its stderr, behind the names of the remote's certificate. So no remote can change another's shares.
//! A ground of an earlier version has no such path. Then all clients have equal shares of what comes down, and the ground's
//! `link` states the rate.

use longhaul_config::{PeerName, Role, Settings};
use longhaul_derive::Derived;
use longhaul_observe::Endpoint;
use longhaul_render::{RemoteReport, Weighing, Weights};

use super::log::HeardReport;
use super::pipe_question::{PipeQuestion, Question};

/// The status by which a ground takes a report (`rds/pipe.yaml`). An earlier one sends 204 for every path.
const YES: u16 = 200;

/// The agreement of a remote with its ground.
#[derive(Debug, Default)]
pub(super) struct RemoteReports {
    weights: Reporting,
    rate: Reporting,
}

/// One report, until the ground has taken it.
#[derive(Debug, Default)]
struct Reporting {
    question: PipeQuestion,
    target: String,
}

impl Reporting {
    fn tend(&mut self, report: &RemoteReport, settings: &Settings, pipe: Option<u32>, admin: Option<&Endpoint>) {
        let target = report.to_string();
        if target != self.target {
            *self = Self { question: PipeQuestion::default(), target };
        }
        self.question.tend(settings, pipe, admin, || Question { path: self.target.clone(), yes: YES });
    }
}

impl RemoteReports {
    /// Reports what is new, as [`super::client_names::ClientNames::tend`] does.
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
        let weights = RemoteReport::Weights(Weights::of(&settings.clients, &weighing.slow));
        self.weights.tend(&weights, settings, pipe, admin);
        // Without the watch, or with one link again, the ground must forget the last rate.
        let rate = RemoteReport::Down(weighing.in_use.map(|rates| rates.down));
        self.rate.tend(&rate, settings, pipe, admin);
    }
}

/// Returns the remotes whose reports a box of this role believes, by name.
pub(super) fn believed(role: &Role) -> Vec<String> {
    let Role::Ground(ground) = role else { return Vec::new() };
    ground.remotes.iter().map(PeerName::to_string).collect()
}

/// Adds what a ground has heard of its remotes. Only `remotes` are believed, each for its own link.
pub(super) fn add(known: &mut Weighing, heard: Vec<HeardReport>, remotes: &[String]) {
    known.weights.retain(|name, _| remotes.contains(name));
    known.rates.retain(|name, _| remotes.contains(name));
    for HeardReport { of, report } in heard {
        let Some(name) = remotes.iter().find(|name| of.contains(name)).cloned() else { continue };
        match report {
            RemoteReport::Weights(weights) => drop(known.weights.insert(name, weights)),
            RemoteReport::Down(Some(rate)) => drop(known.rates.insert(name, rate)),
            RemoteReport::Down(None) => drop(known.rates.remove(&name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ground_believes_its_own_remotes_alone_and_each_for_itself() {
        let heard = |of: &str, target: &str| HeardReport {
            of: vec![of.to_owned()],
            report: RemoteReport::parse(target).unwrap(),
        };
        let remotes = ["ship.example", "ferry.example"].map(str::to_owned);
        let reports = vec![
            heard("ship.example", "/weights?40=192.0.2.0/28"),
            heard("stranger.example", "/weights?1=192.0.2.0/24"),
            heard("ferry.example", "/weights?20=192.0.2.0/28"),
            heard("ship.example", "/rate?8000000"),
            heard("ship.example", "/weights?1=192.0.2.0/28"),
            heard("ship.example", "/rate?20000000"),
            heard("ferry.example", "/rate?20000000"),
            heard("ferry.example", "/rate?"),
        ];
        let mut known = Weighing::default();
        add(&mut known, reports, &remotes);
        let weights: Vec<String> = known.weights.iter().map(|(name, weights)| format!("{name} {weights}")).collect();
        assert_eq!(weights, ["ferry.example 20=192.0.2.0/28", "ship.example 1=192.0.2.0/28"]);
        let rates: Vec<String> = known.rates.iter().map(|(name, rate)| format!("{name} {rate}")).collect();
        assert_eq!(rates, ["ship.example 20mbit"]);
        let before = known.clone();
        add(&mut known, Vec::new(), &remotes);
        assert_eq!(known, before);
        add(&mut known, Vec::new(), &remotes[1..]);
        assert!(known.rates.is_empty() && !known.weights.contains_key("ship.example"), "it has left the file");
    }
}
