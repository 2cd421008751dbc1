//! The laws of a run that are judged by its state.

use std::time::{Duration, Instant};

use longhaul_render::RenderedTree;

use super::super::envoy::{BOOTSTRAP, is_watched};
use super::super::events::Stop;
use super::super::exchange::PATIENCE;
use super::super::generation::COREFILE;
use super::super::restarts::LONGEST_WAIT;
use super::super::stop::STOP_PATIENCE;
use super::envoys::{Phase, SimEnvoy};
use super::files::SIDE;
use super::laws::Broken;
use super::machine::Machine;
use super::orders::{Flaw, SetUp};

/// The time that a round of a run takes beside its waits.
const MARGIN: Duration = Duration::from_secs(2);
/// The time that an exchange of files takes if no child responds. Programs beside Envoy, which no request needs, wait for it.
const LONGEST_EXCHANGE: Duration = Duration::from_secs(50);
/// Envoys at one time: one that serves, one that takes over or drains, and one whose end nobody has noticed.
const MOST_ENVOYS: usize = 3;

impl Machine {
    /// Gives a run that has followed all orders time without faults, judges it, and ends it.
    pub(super) fn end_a_calm_run(&mut self) {
        let world = &mut self.world;
        if !world.is_out_of_orders() || !world.signals.is_empty() || world.broken.is_some() {
            return;
        }
        if world.has_healed {
            // The files of an attempt that was refused are read again.
            let has_settled = world.now - self.tried_at >= MARGIN;
            if has_settled && world.now - world.calm_since >= bound(&world.set_up) {
                self.judge_force();
                self.world.signal(Stop::Drain);
            }
        } else {
            world.heal();
        }
    }

    /// Gives the time of a stall to the run.
    pub(super) fn stall(&mut self) {
        let Some(until) = self.world.stall_until.take() else { return };
        let time = until.saturating_duration_since(self.world.now);
        self.world.pass(time);
        self.world.stalled_until = Some(self.world.now);
        for gone in self.gone_since.iter_mut().flatten() {
            *gone += time;
        }
    }

    /// Judges what must hold at every step.
    pub(super) fn judge(&mut self) {
        self.judge_starts();
        let envoys = self.world.envoys.all.len();
        self.world.require(envoys <= MOST_ENVOYS, || Broken::Unbounded(format!("{envoys} Envoys")));
        let is_deaf = self.world.envoys.serving().is_some_and(|envoy| envoy.is_deaf);
        self.world.require(!is_deaf || self.world.envoys.unconfirmed, || {
            Broken::RefusedServes("an Envoy started without listeners or clusters that it refuses".to_owned())
        });
    }

    /// Judges the lists just after the run has looked at its children.
    pub(super) fn judge_lists(&mut self) {
        let ended = self.side.retired().iter().filter(|pid| self.world.sides.has_ended(**pid)).count();
        self.world.require(ended == 0, || Broken::Unbounded(format!("{ended} programs have ended and are remembered")));
    }

    /// A child that does not run is started again within the longest wait.
    fn judge_starts(&mut self) {
        let now = self.world.now;
        let envoys = self.world.envoys.all.values();
        let runs = [
            envoys.into_iter().any(|envoy| matches!(envoy.phase, Phase::Starting | Phase::Serving)),
            self.world.names.as_ref().is_some_and(|names| !names.ended),
            self.side.present().is_none_or(|side| side.pid.is_some_and(|pid| !self.world.sides.has_ended(pid))),
        ];
        for (which, runs) in runs.into_iter().enumerate() {
            let Some(gone) = self.gone_since.get_mut(which) else { continue };
            if runs || !self.world.signals.is_empty() {
                *gone = None;
                continue;
            }
            let since = *gone.get_or_insert(now);
            let name = ["Envoy", "CoreDNS", "longhaul-objects"].get(which).copied().unwrap_or_default();
            let more = match which {
                // CoreDNS has its time to accept a change. An Envoy that started meanwhile could not refuse the files of it.
                0 if self.is_applying => PATIENCE,
                2 => LONGEST_EXCHANGE,
                _ => Duration::ZERO,
            };
            self.world.require(now - since <= LONGEST_WAIT + MARGIN + more, || {
                Broken::NotRestarted(format!("{name} is gone for {:?}", now - since))
            });
        }
    }

    /// Judges the configuration in force, long after the last event.
    fn judge_force(&mut self) {
        let seen = self.not_in_force();
        self.world.require(seen.is_none(), || Broken::NotInForce(seen.unwrap_or_default()));
    }

    fn not_in_force(&self) -> Option<String> {
        let (file, refused) = (self.world.file, self.acceptance.is_refused());
        let names_are_frozen = self.world.names.as_ref().is_some_and(|names| names.frozen);
        let is_sound = matches!(file.flaw, Flaw::None | Flaw::Deadly);
        if !refused && self.present != file {
            return Some(format!("{file:?} is neither in force nor refused, but {:?} is", self.present));
        }
        if refused && is_sound && !names_are_frozen {
            return Some(format!("{file:?} is refused without a reason"));
        }
        if !refused && !is_sound && !self.world.envoys.unconfirmed {
            return Some(format!("{file:?} is in force"));
        }
        let other = self.tree.files.iter().find(|(path, text)| self.world.disk.text(path) != Some(text.as_str()));
        if let Some((path, _)) = other {
            return Some(format!("the disk has another {path}: {:?}", self.world.disk.text(path)));
        }
        let serving = self.world.envoys.serving();
        let envoy = match serving {
            Some(envoy) => self.differs(envoy, &self.tree),
            None if [file.flaw, self.present.flaw].contains(&Flaw::Deadly) => None,
            None => Some("no Envoy serves".to_owned()),
        };
        envoy.or_else(|| self.other_child_differs(names_are_frozen))
    }

    fn differs(&self, envoy: &SimEnvoy, tree: &RenderedTree) -> Option<String> {
        if Some(envoy.bootstrap.as_str()) != tree.get(BOOTSTRAP) && !self.said_given_up {
            return Some(format!("Envoy has the {}, and nobody says why", envoy.bootstrap));
        }
        let watched = tree.files.iter().filter(|(path, _)| is_watched(path));
        let mut other = watched.filter(|(path, text)| envoy.files.get(*path) != Some(text));
        let other = other.next().filter(|_| !self.world.envoys.unconfirmed);
        other.map(|(path, _)| format!("Envoy uses another {path}: {:?}", envoy.files.get(path)))
    }

    fn other_child_differs(&self, names_are_frozen: bool) -> Option<String> {
        let names = self.world.names.as_ref().map(|names| names.text.as_str());
        if names != self.tree.get(COREFILE) && !names_are_frozen {
            return Some(format!("CoreDNS has {names:?}"));
        }
        let pid = self.side.present().and_then(|side| side.pid);
        let side = pid.and_then(|pid| self.world.sides.all.get(&pid)).map(|side| side.text.as_str());
        (side != self.tree.get(SIDE)).then(|| format!("the program beside Envoy has {side:?}"))
    }

    /// Judges a run that has ended.
    pub(super) fn judge_end(&mut self) {
        if self.world.broken.is_some() {
            return;
        }
        let world = &self.world;
        let envoys = world.envoys.all.values().filter(|envoy| envoy.phase != Phase::Ended).count();
        let names = usize::from(world.names.as_ref().is_some_and(|names| !names.ended));
        let sides = world.sides.all.values().filter(|side| !side.ended).count();
        let left = [envoys, names, sides];
        self.world.require(left == [0; 3], || Broken::LeftBehind(format!("Envoy, CoreDNS and others: {left:?}")));
        let SetUp { wait, drain, .. } = self.world.set_up;
        let since =
            |at: &(Stop, Instant)| self.world.now - self.world.stalled_until.map_or(at.1, |until| until.max(at.1));
        let first = self.world.signals.first();
        let longest = first.map_or(Duration::ZERO, |(stop, _)| {
            STOP_PATIENCE + MARGIN + if *stop == Stop::Drain { wait + drain } else { Duration::ZERO }
        });
        let first = first.map_or(Duration::ZERO, since);
        let second = self.world.signals.get(1).map_or(Duration::ZERO, since);
        self.world
            .require(first <= longest, || Broken::EndsLate(format!("{first:?} after the signal, of {longest:?}")));
        self.world.require(second <= MARGIN, || Broken::EndsLate(format!("{second:?} after the second signal")));
    }
}

/// The time in which a run without faults settles: a takeover that hangs is tried three times, the parents drain, and a
/// refused file is tried again.
fn bound(set_up: &SetUp) -> Duration {
    set_up.patience * 3 + (set_up.drain + Duration::from_secs(15)) * 2 + set_up.end + Duration::from_mins(2)
}
