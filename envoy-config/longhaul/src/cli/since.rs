//! The beginning of the lines that `longhaul log --since` reads.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use longhaul_config::parse_duration;

use crate::log_files::{files_since, since_text};

/// A time in the past.
#[derive(Debug, Clone)]
pub(super) struct Since {
    time: SystemTime,
    /// The same as the lines of the log have it.
    pub(super) text: String,
}

impl Since {
    /// Reads `2h`, `2026-11-22` or `2026-11-22T19:30:00`, both in UTC.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no time; expected a duration such as 2h, a day such as 2026-11-22, or a time in UTC such as 2026-11-22T19:30:00"
            )
        };
        let time = match parse_duration(text) {
            Ok(age) => SystemTime::now().checked_sub(age).ok_or_else(wrong)?,
            Err(_) if text.len() == "2026-11-22".len() => {
                humantime::parse_rfc3339(&format!("{text}T00:00:00Z")).map_err(|_| wrong())?
            }
            Err(_) => humantime::parse_rfc3339_weak(text).map_err(|_| wrong())?,
        };
        Ok(Self { time, text: since_text(time) })
    }

    /// Returns the files of `log` that may hold such lines, the oldest first and `log` itself last.
    pub(super) fn files(&self, log: &Path) -> Vec<PathBuf> {
        files_since(log, self.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_duration_a_day_or_a_moment() {
        assert_eq!(Since::parse("2026-11-22").unwrap().text, Since::parse("2026-11-22T00:00:00Z").unwrap().text);
        let moment = Since::parse("2026-11-22T19:30:00").unwrap();
        assert!(moment.text.starts_with("2026-11-22T19:30:00"), "{}", moment.text);
        let hour = Since::parse("1h").unwrap();
        assert!(hour.text < since_text(SystemTime::now()) && hour.text.as_str() > "2026-01-01T00:00:00.000Z");
        for wrong in ["", "1", "yesterday", "2026-13-01", "2026-11-22T", "22.11.2026"] {
            assert!(Since::parse(wrong).unwrap_err().contains("expected a duration"), "{wrong}");
        }
    }
}
