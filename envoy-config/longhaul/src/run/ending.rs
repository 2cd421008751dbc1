//! The end of children: asked first, and killed if they take too long.

use std::time::Duration;

use super::clock::Clock;

/// The interval at which the children are checked.
const TICK: Duration = Duration::from_millis(20);

/// A child that is to end.
pub(super) trait Ending {
    /// Asks it to end.
    fn ask_to_end(&mut self);

    /// Returns true if it has ended.
    fn has_ended(&mut self) -> bool;

    /// Kills it, and reports so.
    fn kill(&mut self);
}

/// Asks all children to end. Waits for `patience`, or until `hurry` returns true, and then kills the rest.
pub(super) fn stop_all(
    clock: &mut impl Clock,
    children: &mut [impl Ending],
    patience: Duration,
    mut hurry: impl FnMut() -> bool,
) {
    for child in children.iter_mut() {
        child.ask_to_end();
    }
    let deadline = clock.now() + patience;
    while clock.now() < deadline && !hurry() {
        if children.iter_mut().all(Ending::has_ended) {
            return;
        }
        clock.pause(TICK);
    }
    for child in children.iter_mut().filter_map(|child| if child.has_ended() { None } else { Some(child) }) {
        child.kill();
    }
}
