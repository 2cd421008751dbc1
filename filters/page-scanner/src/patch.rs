//! A copy of the input with a few byte ranges replaced: all the rewriting there is.
//!
//! Everything that finds URLs only says "these bytes become those". So what is not moved cannot change: there is no
//! serializer that could write it differently.

use std::collections::VecDeque;
use std::ops::Range;

/// The input that has not left yet, and what is to be replaced in it. Positions count from the start of the body.
#[derive(Debug)]
pub(crate) struct Patch {
    held: Vec<u8>,
    /// Where the held bytes begin.
    start: usize,
    edits: VecDeque<(Range<usize>, Vec<u8>)>,
    /// Bytes by which replacements may still be longer than what they replace; none left once one did not fit.
    room: Option<usize>,
    made: u64,
}

impl Patch {
    /// `room`: by how many bytes the output may be longer than the input.
    pub(crate) fn new(room: usize) -> Self {
        Self { held: Vec::new(), start: 0, edits: VecDeque::new(), room: Some(room), made: 0 }
    }

    /// Takes the next bytes of the input.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The bytes of the input in this range, as far as they have not left.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        let from = range.start.checked_sub(self.start);
        let to = range.end.checked_sub(self.start);
        from.zip(to).and_then(|(from, to)| self.held.get(from..to)).unwrap_or_default()
    }

    /// The end of the input so far.
    pub(crate) fn end(&self) -> usize {
        self.start + self.held.len()
    }

    /// Returns true if all of the input so far has left.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// How many replacements were made or will be.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// Returns true if there was no room for a replacement. That one and all later ones are not made.
    pub(crate) fn is_full(&self) -> bool {
        self.room.is_none()
    }

    /// Replaces a range. Ranges come in order and do not overlap: one that does not is dropped, because an edit lost
    /// costs a round trip and an edit misplaced costs the page.
    pub(crate) fn replace(&mut self, range: Range<usize>, with: Vec<u8>) {
        let earliest = self.edits.back().map_or(self.start, |(last, _)| last.end);
        if range.start < earliest || range.start > range.end || range.end > self.end() {
            return;
        }
        self.room = self.room.and_then(|room| room.checked_sub(with.len().saturating_sub(range.len())));
        if self.room.is_some() {
            self.edits.push_back((range, with));
            self.made += 1;
        }
    }

    /// Lets the input up to `until` go, replacements made.
    pub(crate) fn release(&mut self, until: usize, out: &mut Vec<u8>) {
        let mut at = self.start;
        let until = until.clamp(at, self.end());
        while self.edits.front().is_some_and(|(range, _)| range.end <= until) {
            let Some((range, with)) = self.edits.pop_front() else { break };
            out.extend_from_slice(self.bytes(at..range.start));
            out.extend_from_slice(&with);
            at = range.end;
        }
        out.extend_from_slice(self.bytes(at..until));
        self.held.drain(..until - self.start);
        self.start = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_replaced_ranges_change_however_the_input_leaves() {
        for step in 1..12 {
            let mut patch = Patch::new(9);
            let mut out = Vec::new();
            patch.push(b"abcdefghij");
            patch.replace(2..4, b"XYZ".to_vec());
            patch.replace(4..4, b"+".to_vec());
            patch.replace(8..9, Vec::new());
            for until in (0..10).step_by(step).chain([10]) {
                // An edit leaves whole: callers never release the middle of one.
                if !(3..4).contains(&until) {
                    patch.release(until, &mut out);
                }
            }
            assert_eq!(String::from_utf8(out).unwrap(), "abXYZ+efghj", "step {step}");
            assert_eq!((patch.held.len(), patch.room), (0, Some(7)));
        }
    }

    #[test]
    fn an_edit_out_of_order_or_out_of_reach_is_dropped() {
        let mut patch = Patch::new(9);
        let mut out = Vec::new();
        patch.push(b"abcd");
        patch.replace(2..3, b"X".to_vec());
        patch.replace(1..2, b"Y".to_vec());
        patch.replace(3..9, b"Z".to_vec());
        patch.release(9, &mut out);
        assert_eq!(out, b"abXd");
    }

    #[test]
    fn once_an_edit_does_not_fit_none_is_made() {
        let mut patch = Patch::new(3);
        let mut out = Vec::new();
        patch.push(b"abcd");
        patch.replace(0..1, b"ABC".to_vec());
        assert!(!patch.is_full());
        patch.replace(1..2, b"XYZ".to_vec());
        assert!(patch.is_full());
        patch.replace(2..3, b"Z".to_vec());
        patch.release(4, &mut out);
        assert_eq!(out, b"ABCbcd");
    }
}
