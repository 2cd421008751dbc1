//! The agreement of the two ends that a remote names its client in front of the client's bytes.
//!
//! A connection that passes unread is opened over the link before it has a client. Its first bytes name the client, so that
//! the ground can give it its share. An older ground would take them for bytes of the client. So the remote asks the
//! ground on the pipe, whenever the pipe is new, and tells Envoy (runtime). Until the ground has agreed, no client is named.

use longhaul_config::Settings;
use longhaul_derive::Derived;
use longhaul_observe::Endpoint;
use longhaul_render::NAMES_KEY;

use super::pipe_question::{PipeQuestion, Question};

/// The status by which a ground agrees (`rds/pipe.yaml`). An older one finds no such name, and sends an error.
const YES: u16 = 204;

/// The state of the agreement.
#[derive(Debug, Default)]
pub(super) struct ClientNames {
    question: PipeQuestion,
    /// The process of Envoy that has the last word, and the word.
    told: Option<(u32, bool)>,
}

impl ClientNames {
    /// Asks the ground if the pipe is new, and tells Envoy what changed. `pipe` is the number of pipes that broke. It is
    /// None while there is no pipe. Call it often.
    pub(super) fn tend(
        &mut self,
        settings: &Settings,
        derived: &Derived,
        pipe: Option<u32>,
        envoy: Option<(u32, &Endpoint)>,
    ) {
        let shares = derived.neighbours.sent_by(&settings.role).is_some();
        // While one of several grounds takes over, connections reach it before anybody has asked it.
        let one_ground = settings.role.grounds().len() == 1;
        if !shares || !one_ground || derived.warm.is_none_or(|warm| warm.number == 0) {
            *self = Self::default();
            return;
        }
        let question = || Question { path: "/".to_owned(), yes: YES };
        let names = self.question.tend(settings, pipe, envoy.map(|(_, admin)| admin), question);
        if let Some((process, admin)) = envoy
            && self.told != Some((process, names))
            && admin.order(&format!("/runtime_modify?{NAMES_KEY}={}", if names { 100 } else { 0 }))
        {
            self.told = Some((process, names));
        }
    }
}
