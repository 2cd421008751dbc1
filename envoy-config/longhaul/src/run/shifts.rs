//! Decides which process of a program has the configuration in force, and which ones only end their requests.

/// A program that keeps running (`S`), and its processes with an earlier configuration (`R`).
#[derive(Debug)]
pub(super) struct Shifts<S, R> {
    /// The program with its configuration. None: the configuration does not have it.
    present: Option<(S, String)>,
    retired: Vec<R>,
}

impl<S, R> Shifts<S, R> {
    pub(super) fn new() -> Self {
        Self { present: None, retired: Vec::new() }
    }

    /// Makes the program have the `wanted` configuration. `make` returns one that starts with it, and `retire` asks the
    /// process of the former one to end.
    pub(super) fn follow(
        &mut self,
        wanted: Option<&str>,
        make: impl FnOnce() -> Option<S>,
        retire: impl FnOnce(S) -> Option<R>,
    ) {
        if wanted == self.present.as_ref().map(|(_, config)| config.as_str()) {
            return;
        }
        let next = wanted.and_then(|config| Some((make()?, config.to_owned())));
        let before = std::mem::replace(&mut self.present, next);
        self.retired.extend(before.and_then(|(former, _)| retire(former)));
    }

    /// Records that the process may have read another configuration. The next [`Self::follow`] replaces it.
    pub(super) fn doubt(&mut self) {
        if let Some((_, config)) = &mut self.present {
            config.clear();
        }
    }

    /// Forgets the retired processes that have ended.
    pub(super) fn forget_retired(&mut self, mut has_ended: impl FnMut(&mut R) -> bool) {
        self.retired.retain_mut(|process| !has_ended(process));
    }

    /// Returns the program with the configuration in force.
    pub(super) fn present(&self) -> Option<&S> {
        self.present.as_ref().map(|(present, _)| present)
    }

    /// Returns the program with the configuration in force.
    pub(super) fn present_mut(&mut self) -> Option<&mut S> {
        self.present.as_mut().map(|(present, _)| present)
    }

    /// Returns the processes with an earlier configuration.
    pub(super) fn retired(&self) -> &[R] {
        &self.retired
    }

    /// Gives away all processes. `take` returns that of the present program.
    pub(super) fn take_all(&mut self, take: impl FnOnce(S) -> Option<R>) -> Vec<R> {
        let present = self.present.take().and_then(|(present, _)| take(present));
        self.retired.drain(..).chain(present).collect()
    }
}
