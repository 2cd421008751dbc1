//! The reports of a remote to its ground: the weights of its clients, and the rate of its link, or of its links in use.
//!
//! The remote reports whenever the pipe or a value is new, as the query of a request on the pipe. The ground's Envoy
//! writes the query on its stderr, behind the names of the remote's certificate. So no remote can change another's shares.
//! A ground of an earlier version has no such path. Then all clients have equal shares of what comes down, and the ground's
//! `link` states the rate.

use longhaul_config::{Role, Settings};
use longhaul_derive::Derived;
use longhaul_observe::Endpoint;
use longhaul_render::Weighing;

use super::pipe_question::{PipeQuestion, on_the_pipe};

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
    fn tend(&mut self, target: String, settings: &Settings, pipe: Option<u32>, admin: Option<&Endpoint>) {
        if target != self.target {
            *self = Self { question: PipeQuestion::default(), target };
        }
        self.question.tend(pipe, || on_the_pipe(settings, admin, &self.target, YES));
    }
}

impl RemoteReports {
    /// Reports what is new to the ground in use. Call it often.
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
        let [weights, rate] = weighing.reports(settings);
        self.weights.tend(weights, settings, pipe, admin);
        self.rate.tend(rate, settings, pipe, admin);
    }
}
