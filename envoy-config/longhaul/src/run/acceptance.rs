//! Decides when the files are tried, and remembers the reason why the present ones are not in force.

/// The acceptance of the present files.
#[derive(Debug, Default)]
pub(super) struct Acceptance {
    refusal: Option<String>,
}

impl Acceptance {
    /// Returns true if the files are to be tried: they `changed`, or the cache `has_room` again. A change that was refused
    /// because a file was missing may succeed once the file exists, although no input has changed.
    pub(super) fn is_to_be_tried(&self, changed: bool, has_room: bool) -> bool {
        changed || has_room || self.refusal.is_some()
    }

    /// Records that the files are in force.
    pub(super) fn accepted(&mut self) {
        self.refusal = None;
    }

    /// Records that the files are not in force. Returns true if the reason is new.
    pub(super) fn refused(&mut self, why: &str) -> bool {
        let is_new = self.refusal.as_deref() != Some(why);
        self.refusal = Some(why.to_owned());
        is_new
    }

    /// Returns true if the present files are not in force.
    pub(super) fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }
}
