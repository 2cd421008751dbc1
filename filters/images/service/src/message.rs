//! The messages between parent and child: one task, one result. Numbers are little-endian.
//!
//! ```text
//! child:  layers u8                         the sandbox is closed
//! parent: source u8, jpeg u8, png u8 (0: lossless), method u8, pixels u64, length u32, image
//! child:  reason u8 (255: none), processor time in µs u32, length u32, image
//! ```

use image_recode::{Left, Policy, Source};

/// The bytes of a task before its image.
pub const TASK_BYTES: usize = 16;

/// The bytes of a result before its image.
pub const RESULT_BYTES: usize = 9;

/// In place of a reason: the image follows.
const RECODED: u8 = u8::MAX;

/// A task without its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The type of the image.
    pub source: Source,
    /// How it is recoded.
    pub policy: Policy,
    /// The length of the image, in bytes.
    pub length: u32,
}

impl Task {
    /// Writes the task.
    pub fn to_bytes(self) -> [u8; TASK_BYTES] {
        let Policy { jpeg_quality, png_quality, method, pixels } = self.policy;
        let source = match self.source {
            Source::Jpeg => 0,
            Source::Png => 1,
        };
        let mut bytes = [0; TASK_BYTES];
        let fields = [source, jpeg_quality, png_quality.unwrap_or(0), method];
        let numbers = pixels.to_le_bytes().into_iter().chain(self.length.to_le_bytes());
        for (place, byte) in bytes.iter_mut().zip(fields.into_iter().chain(numbers)) {
            *place = byte;
        }
        bytes
    }

    /// Reads a task.
    pub fn from_bytes(bytes: [u8; TASK_BYTES]) -> Option<Self> {
        let [source, jpeg_quality, png, method, rest @ ..] = bytes;
        let (pixels, length) = rest.split_first_chunk()?;
        let source = match source {
            0 => Source::Jpeg,
            1 => Source::Png,
            _ => return None,
        };
        let policy = Policy {
            jpeg_quality,
            png_quality: (png != 0).then_some(png),
            method,
            pixels: u64::from_le_bytes(*pixels),
        };
        Some(Self { source, policy, length: u32::from_le_bytes(*length.first_chunk()?) })
    }
}

/// A result without its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The length of the new image in bytes, or the reason why the original stays.
    pub length: Result<u32, Left>,
    /// The processor time of the child, in microseconds.
    pub cpu_us: u32,
}

impl Outcome {
    /// Writes the result.
    pub fn to_bytes(self) -> [u8; RESULT_BYTES] {
        let reason = self.length.map_or_else(|left| u8::try_from(left.index()).unwrap_or(RECODED), |_| RECODED);
        let numbers = [self.cpu_us.to_le_bytes(), self.length.unwrap_or(0).to_le_bytes()];
        let mut bytes = [0; RESULT_BYTES];
        for (place, byte) in bytes.iter_mut().zip([reason].into_iter().chain(numbers.into_iter().flatten())) {
            *place = byte;
        }
        bytes
    }

    /// Reads a result. A reason that does not exist counts as [`Left::Worker`].
    pub fn from_bytes(bytes: [u8; RESULT_BYTES]) -> Self {
        let [reason, numbers @ ..] = bytes;
        let [cpu_us, length] = numbers.as_chunks().0 else {
            return Self { length: Err(Left::Worker), cpu_us: 0 };
        };
        let length = if reason == RECODED {
            Ok(u32::from_le_bytes(*length))
        } else {
            Err(Left::ALL.get(usize::from(reason)).copied().unwrap_or(Left::Worker))
        };
        Self { length, cpu_us: u32::from_le_bytes(*cpu_us) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_read_the_messages_of_the_other() {
        let policy = Policy { jpeg_quality: 75, png_quality: None, method: 4, pixels: 1 << 40 };
        for task in [
            Task { source: Source::Jpeg, policy, length: 70_000 },
            Task { source: Source::Png, policy: Policy { png_quality: Some(50), ..policy }, length: 0 },
        ] {
            assert_eq!(Task::from_bytes(task.to_bytes()), Some(task));
        }
        assert_eq!(Task::from_bytes([9; TASK_BYTES]), None);
        let reasons = Left::ALL.iter().map(|left| Err(*left));
        for length in reasons.chain([Ok(0), Ok(70_000)]) {
            let outcome = Outcome { length, cpu_us: 1_234_567 };
            assert_eq!(Outcome::from_bytes(outcome.to_bytes()), outcome);
        }
        assert_eq!(Outcome::from_bytes([200; RESULT_BYTES]).length, Err(Left::Worker));
    }
}
