//! Puts rendered files in place of others, in steps that both children confirm. Puts the old ones back if a child refuses.
//! The children are behind a trait: those of this machine are in `apply.rs`.

use std::time::Duration;

use longhaul_render::RenderedTree;

use super::acceptance::{Refused, Refuser};
use super::clock::Clock;
use super::envoy;
use super::generation::{COREFILE, RENEWALS};
use super::probe::XdsCounters;
use super::tree::Written;

/// The time that a child has to accept a change.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The time that an Envoy which does not respond has to read files.
const READ_TIME: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// The side of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The files in force.
    Present,
    /// The files that replace them.
    Next,
}

/// The reason why Envoy did not confirm a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unconfirmed {
    /// It has ended. The next one reads the files at its start.
    Ended,
    /// It did not respond in time.
    Late,
}

/// The children, and the disk between them and the run.
pub(super) trait Parts: Clock {
    /// Lets Envoy validate a bootstrap. The error is Envoy's message.
    fn judge(&mut self, bootstrap: &str) -> Result<(), String>;

    /// Writes a tree, as [`super::write_tree`] does.
    fn write(&mut self, tree: &RenderedTree) -> Result<Written, String>;

    /// Reads Envoy's counters. None if it does not respond.
    fn counters(&mut self) -> Option<XdsCounters>;

    /// Returns true if the Envoy that serves has not ended.
    fn envoy_runs(&mut self) -> bool;

    /// Reports that Envoy did not confirm a change.
    fn unconfirmed(&mut self, why: Unconfirmed);

    /// Makes CoreDNS read its file again.
    fn reload_names(&mut self);

    /// Sets the side whose readiness is awaited from CoreDNS.
    fn await_names(&mut self, side: Side);

    /// Returns true if CoreDNS responds with the files of the awaited side.
    fn names_respond(&mut self) -> bool;

    /// Returns true if CoreDNS runs.
    fn names_run(&mut self) -> bool;

    /// Restarts a dead CoreDNS. A wait for Envoy may be long.
    fn tend_names(&mut self);

    /// Returns true if a signal asks to end the run. It must not wait for a child that does not respond.
    fn is_asked_to_stop(&mut self) -> bool;
}

/// The change to make.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'t> {
    /// The files in force.
    pub(super) present: &'t RenderedTree,
    /// The files that replace them.
    pub(super) next: &'t RenderedTree,
    /// True if only another Envoy can apply the change.
    pub(super) restart: bool,
}

impl Change<'_> {
    fn has_other_names(self) -> bool {
        self.next.get(COREFILE) != self.present.get(COREFILE)
    }
}

/// The files that were put back. A child that started meanwhile may have read those in their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paid {
    /// None were owed.
    Nothing,
    /// Files that Envoy and CoreDNS read again.
    Files,
    /// Among them the bootstrap, which only another Envoy reads.
    Bootstrap,
}

/// The files that a failed change left on the disk, because the old ones could not be put back. A child that starts reads
/// them, and one that has refused them is not asked again.
#[derive(Debug, Default)]
pub(super) struct Owed {
    left: Option<RenderedTree>,
}

impl Owed {
    /// Returns true if files are left.
    pub(super) fn is_any(&self) -> bool {
        self.left.is_some()
    }

    /// Puts the files in force back in place of those that are left. Call it before the next change.
    ///
    /// # Errors
    /// The disk still has no room.
    pub(super) fn pay(&mut self, parts: &mut impl Parts, present: &RenderedTree) -> Result<Paid, String> {
        let Some(left) = &self.left else { return Ok(Paid::Nothing) };
        put_back(parts, Change { present, next: left, restart: false })
            .map_err(|error| format!("the files of an earlier change could not be removed: {error}"))?;
        let bootstrap = left.get(envoy::BOOTSTRAP) != present.get(envoy::BOOTSTRAP);
        self.left = None;
        Ok(if bootstrap { Paid::Bootstrap } else { Paid::Files })
    }
}

/// Puts the next files in place and waits until both children accept them. Restores the old files if one refuses.
pub(super) fn exchange(parts: &mut impl Parts, change: Change<'_>, owed: &mut Owed) -> Result<Written, Refused> {
    if change.restart {
        let bootstrap = change.next.get(envoy::BOOTSTRAP).unwrap_or_default();
        parts.judge(bootstrap).map_err(|why| format!("Envoy refuses it: {why}"))?;
    }
    put_in_place(parts, change).map_err(|refused| {
        // Routes and clusters of both are in use, and no child starts any more.
        if refused.by == Refuser::Signal {
            return refused;
        }
        match put_back(parts, change) {
            Ok(()) => refused,
            Err(error) => {
                owed.left = Some(change.next.clone());
                format!("{}; and the old files could not be put back: {error}", refused.why).into()
            }
        }
    })
}

fn stopped() -> Refused {
    Refused { why: "a signal ends the run".to_owned(), by: Refuser::Signal }
}

fn put_in_place(parts: &mut impl Parts, change: Change<'_>) -> Result<Written, Refused> {
    let written = exchange_files(parts, change)?;
    if change.has_other_names() {
        parts.reload_names();
        wait_for_names(parts)?;
    }
    Ok(written)
}

/// Puts the files of `next` in place of those of `present`, and waits until Envoy has read them. Clusters that only `next`
/// has go first, since Envoy takes a route to a cluster that it refused. Clusters and files that only `present` has go
/// last: until then, routes and filters of both are in use.
fn exchange_files(parts: &mut impl Parts, change: Change<'_>) -> Result<Written, Refused> {
    let Change { present, next, .. } = change;
    let mut watch = Watch::default();
    let both = next.with_clusters_of(present);
    let mut written = watch.write(parts, &present.with_clusters_as(&both), false)?;
    let rest = watch.write(parts, &both, are_renewed(present, next))?;
    written.changed.extend(rest.changed);
    watch.write(parts, next, false)?;
    Ok(written)
}

fn put_back(parts: &mut impl Parts, change: Change<'_>) -> Result<(), String> {
    let Change { present, next, .. } = change;
    let mut watch = Watch::default();
    // Envoy has had these files. A late refusal is that of the new ones.
    watch.write(parts, &present.with_clusters_of(next), false).or_else(of_run)?;
    parts.write(present)?;
    parts.await_names(Side::Present);
    if change.has_other_names() {
        parts.reload_names();
    }
    Ok(())
}

/// Returns the error of the disk. The refusal of a child is none.
fn of_run(refused: Refused) -> Result<Written, String> {
    if refused.by == Refuser::Run { Err(refused.why) } else { Ok(Written::default()) }
}

/// Writes files and waits until Envoy has read them.
#[derive(Debug, Default)]
struct Watch {
    /// True if Envoy did not respond in time. The next files then only leave it time to read.
    is_silent: bool,
}

impl Watch {
    /// Writes a tree, and waits until Envoy has read it. The certificates may be `renewed`.
    fn write(&mut self, parts: &mut impl Parts, tree: &RenderedTree, renewed: bool) -> Result<Written, Refused> {
        let before = self.counters(parts);
        let written = parts.write(tree)?;
        let expected = written.changed.iter().filter(|path| envoy::is_watched(path)).count();
        let expected = Expected { files: u64::try_from(expected).unwrap_or(u64::MAX), renewed };
        if parts.is_asked_to_stop() {
            return Err(stopped());
        }
        if expected.files > 0 || renewed {
            match before {
                Some(before) => wait_for_envoy(parts, &before, expected)?,
                None => self.go_on(parts),
            }
        }
        Ok(written)
    }

    /// Reads the counters before a change. Without them, earlier responses and refusals would pass for those of the change.
    fn counters(&self, parts: &mut impl Parts) -> Option<XdsCounters> {
        let deadline = parts.now() + PATIENCE;
        loop {
            let counters = parts.counters();
            let is_over = parts.now() >= deadline || parts.is_asked_to_stop();
            if counters.is_some() || self.is_silent || is_over || !parts.envoy_runs() {
                return counters;
            }
            parts.pause(TICK);
            parts.tend_names();
        }
    }

    fn go_on(&mut self, parts: &mut impl Parts) {
        let runs = parts.envoy_runs();
        if !std::mem::replace(&mut self.is_silent, true) {
            parts.unconfirmed(if runs { Unconfirmed::Late } else { Unconfirmed::Ended });
        }
        if runs {
            parts.pause(READ_TIME);
        }
    }
}

/// The files that Envoy is expected to read.
#[derive(Debug, Clone, Copy)]
struct Expected {
    files: u64,
    /// Its certificates are renewed, too.
    renewed: bool,
}

fn wait_for_names(parts: &mut impl Parts) -> Result<(), Refused> {
    parts.await_names(Side::Next);
    let deadline = parts.now() + PATIENCE;
    while !parts.names_respond() {
        if parts.is_asked_to_stop() {
            return Err(stopped());
        }
        // If CoreDNS died, its service restarts it with the old file.
        if parts.now() > deadline || !parts.names_run() {
            let why = "CoreDNS refuses it; its own message is above".to_owned();
            return Err(Refused { why, by: Refuser::Names });
        }
        parts.pause(TICK);
    }
    Ok(())
}

/// Waits until Envoy has read what is expected. The error is Envoy's reason for refusing it.
fn wait_for_envoy(parts: &mut impl Parts, before: &XdsCounters, expected: Expected) -> Result<(), Refused> {
    let deadline = parts.now() + PATIENCE;
    while parts.now() < deadline {
        // Nobody starts another one while this waits.
        if !parts.envoy_runs() {
            parts.unconfirmed(Unconfirmed::Ended);
            return Ok(());
        }
        parts.pause(TICK);
        parts.tend_names();
        if parts.is_asked_to_stop() {
            return Err(stopped());
        }
        let Some(now) = parts.counters() else { continue };
        let refused = now.refused_since(before);
        if !refused.is_empty() {
            let why = format!("Envoy refuses it ({}); its own message is above", refused.join(", "));
            return Err(Refused { why, by: Refuser::Envoy });
        }
        if now.settled_since(before) >= expected.files && (!expected.renewed || now.renewed_since(before)) {
            return Ok(());
        }
    }
    parts.unconfirmed(Unconfirmed::Late);
    Ok(())
}

/// Returns true if certificates were renewed that both trees name. Envoy reads them again without another change.
fn are_renewed(old: &RenderedTree, new: &RenderedTree) -> bool {
    let path = format!("{RENEWALS}/certificates");
    let (Some(old), Some(new)) = (old.get(&path), new.get(&path)) else { return false };
    let paths =
        |text: &str| text.lines().filter_map(|line| Some(line.split_once("  ")?.1.to_owned())).collect::<Vec<_>>();
    old != new && paths(old) == paths(new)
}
