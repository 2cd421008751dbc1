//! Puts rendered files in place of others, in steps that both children confirm. Puts the old ones back if a child refuses.
//! The children are behind a trait: those of this machine are in `apply.rs`.

use std::time::Duration;

use longhaul_render::RenderedTree;

use super::clock::Clock;
use super::envoy;
use super::generation::{COREFILE, RENEWALS};
use super::probe::XdsCounters;
use super::tree::Written;

/// The time that a child has to accept a change.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(100);

/// The side of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The files in force.
    Present,
    /// The files that replace them.
    Next,
}

/// The children, and the disk between them and the run.
pub(super) trait Parts: Clock {
    /// Lets Envoy validate a bootstrap. The error is Envoy's message.
    fn judge(&mut self, bootstrap: &str) -> Result<(), String>;

    /// Writes a tree, as [`super::write_tree`] does.
    fn write(&mut self, tree: &RenderedTree, earlier: Option<&RenderedTree>) -> Result<Written, String>;

    /// Reads Envoy's counters. None if it does not respond.
    fn counters(&mut self) -> Option<XdsCounters>;

    /// Reports that Envoy did not confirm a change in time.
    fn unconfirmed(&mut self);

    /// Makes CoreDNS read its file again.
    fn reload_names(&mut self);

    /// Sets the side whose readiness is awaited from CoreDNS.
    fn await_names(&mut self, side: Side);

    /// Returns true if CoreDNS responds with the files of the awaited side.
    fn names_respond(&mut self) -> bool;

    /// Returns true if CoreDNS runs.
    fn names_run(&mut self) -> bool;
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

/// Puts the next files in place and waits until both children accept them. Restores the old files if one refuses.
pub(super) fn exchange(parts: &mut impl Parts, change: Change<'_>) -> Result<Written, String> {
    if change.restart {
        let bootstrap = change.next.get(envoy::BOOTSTRAP).unwrap_or_default();
        parts.judge(bootstrap).map_err(|why| format!("Envoy refuses it: {why}"))?;
    }
    put_in_place(parts, change).map_err(|why| match put_back(parts, change) {
        Ok(()) => why,
        Err(error) => format!("{why}; and the old files could not be put back: {error}"),
    })
}

fn put_in_place(parts: &mut impl Parts, change: Change<'_>) -> Result<Written, String> {
    let written = exchange_files(parts, change)?;
    if change.has_other_names() {
        parts.reload_names();
        wait_for_names(parts)?;
    }
    Ok(written)
}

/// Puts the files of `next` in place of those of `present`, and waits until Envoy has read them. Clusters and files that
/// only `present` has go last: until then, routes and filters of both are in use.
fn exchange_files(parts: &mut impl Parts, change: Change<'_>) -> Result<Written, String> {
    let Change { present, next, .. } = change;
    let before = parts.counters().unwrap_or_default();
    let written = parts.write(&next.with_clusters_of(present), None)?;
    wait_for_envoy(parts, &before, &written, are_renewed(present, next))?;
    let before = parts.counters().unwrap_or_default();
    let last = parts.write(next, Some(present))?;
    wait_for_envoy(parts, &before, &last, false)?;
    Ok(written)
}

fn put_back(parts: &mut impl Parts, change: Change<'_>) -> Result<(), String> {
    let Change { present, next, .. } = change;
    let before = parts.counters().unwrap_or_default();
    let written = parts.write(&present.with_clusters_of(next), None)?;
    // Envoy has had these files. A late refusal is that of the new ones.
    let _ = wait_for_envoy(parts, &before, &written, false);
    parts.write(present, Some(next))?;
    parts.await_names(Side::Present);
    if change.has_other_names() {
        parts.reload_names();
    }
    Ok(())
}

fn wait_for_names(parts: &mut impl Parts) -> Result<(), String> {
    parts.await_names(Side::Next);
    let deadline = parts.now() + PATIENCE;
    while !parts.names_respond() {
        // If CoreDNS died, its service restarts it with the old file.
        if parts.now() > deadline || !parts.names_run() {
            return Err("CoreDNS refuses it; its own message is above".to_owned());
        }
        parts.pause(TICK);
    }
    Ok(())
}

/// Waits until Envoy has read the files, and the certificates if they are `renewed`. The error is Envoy's reason for
/// refusing them.
fn wait_for_envoy(
    parts: &mut impl Parts,
    before: &XdsCounters,
    written: &Written,
    renewed: bool,
) -> Result<(), String> {
    let expected = written.changed.iter().filter(|path| envoy::is_watched(path)).count();
    let expected = u64::try_from(expected).unwrap_or(u64::MAX);
    let deadline = parts.now() + PATIENCE;
    while (expected > 0 || renewed) && parts.now() < deadline {
        parts.pause(TICK);
        let Some(now) = parts.counters() else { continue };
        let refused = now.refused_since(before);
        if !refused.is_empty() {
            return Err(format!("Envoy refuses it ({}); its own message is above", refused.join(", ")));
        }
        if now.settled_since(before) >= expected && (!renewed || now.renewed_since(before)) {
            return Ok(());
        }
    }
    if expected > 0 || renewed {
        parts.unconfirmed();
    }
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
