//! Images whose worker failed. Another try would fail, too, and hold a slot for the longest time.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time for which an image is remembered. An origin may replace it.
const REMEMBERED: Duration = Duration::from_mins(10);
/// The number of images that are remembered. The oldest one is forgotten first.
const MOST: usize = 1024;

/// An image, by its URL and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image(u64);

impl Image {
    /// Returns the image of `length` bytes at `path` of `host`.
    pub fn at(host: &[u8], path: &str, length: usize) -> Self {
        let mut hasher = DefaultHasher::new();
        (host, path, length).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The images whose worker failed lately, the oldest first.
#[derive(Debug, Default)]
pub struct Failures(Mutex<VecDeque<(Image, Instant)>>);

impl Failures {
    /// Returns true if the worker of this image failed lately.
    pub fn include(&self, image: Image, now: Instant) -> bool {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while failures.front().is_some_and(|(_, at)| now.saturating_duration_since(*at) > REMEMBERED) {
            failures.pop_front();
        }
        failures.iter().any(|(one, _)| *one == image)
    }

    /// Remembers that the worker of this image failed.
    pub fn add(&self, image: Image, now: Instant) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= MOST {
            failures.pop_front();
        }
        failures.push_back((image, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_remembered_for_a_while_and_for_its_image_alone() {
        let (failures, now) = (Failures::default(), Instant::now());
        let image = Image::at(b"a.test", "/a.png", 1000);
        assert!(!failures.include(image, now));
        failures.add(image, now);
        assert!(failures.include(image, now + REMEMBERED));
        for other in [
            Image::at(b"b.test", "/a.png", 1000),
            Image::at(b"a.test", "/b.png", 1000),
            Image::at(b"a.test", "/a.png", 1001),
        ] {
            assert!(!failures.include(other, now));
        }
        assert!(!failures.include(image, now + REMEMBERED + Duration::from_secs(1)));
    }

    #[test]
    fn the_oldest_of_too_many_failures_is_forgotten() {
        let (failures, now) = (Failures::default(), Instant::now());
        for length in 0..=MOST {
            failures.add(Image::at(b"a.test", "/a.png", length), now);
        }
        assert!(!failures.include(Image::at(b"a.test", "/a.png", 0), now));
        assert!(failures.include(Image::at(b"a.test", "/a.png", 1), now));
    }
}
