//! A message of the log, and its three forms.

use crate::terminal::stderr_has_colours;
use std::fmt::Write as _;
use std::io;
use std::time::SystemTime;

use rustix::fs::fstat;
use serde_json::json;

/// The importance of a message, in the order of syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// A part does not work.
    Error,
    /// Something may need attention.
    Warning,
    /// A fact.
    Info,
}

impl Level {
    /// Returns the severity of RFC 5424, section 6.2.1.
    pub(super) fn severity(self) -> u8 {
        match self {
            Self::Error => 3,
            Self::Warning => 4,
            Self::Info => 6,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `TIME LEVEL part: message`. Further lines of a message are indented.
    Text,
    /// `<N>part: message` on each line, with the priority that the journal of systemd reads. The journal adds the time.
    Journal,
    /// One JSON object on a line: `time`, `level`, `part` and `message`.
    Json,
}

impl Form {
    /// Returns the form for stderr as it is: [`Form::Journal`] if systemd's journal reads it, [`Form::Text`] otherwise.
    #[must_use]
    pub(crate) fn of_stderr() -> Self {
        let stream = fstat(io::stderr()).ok().map(|stat| format!("{}:{}", stat.st_dev, stat.st_ino));
        // systemd sets the variable for a service, whose children may have another stderr.
        if stream.is_some() && std::env::var("JOURNAL_STREAM").ok() == stream { Self::Journal } else { Self::Text }
    }

    /// Returns true if reports on this form may have colours.
    pub(crate) fn is_styled(self) -> bool {
        self == Self::Text && stderr_has_colours()
    }
}

/// A message with its level and the part that sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) level: Level,
    /// `longhaul`, `coredns`, `longhaul-images`, or `envoy` with the component of Envoy, such as `envoy/config`.
    pub(super) part: String,
    /// One line or more, without a newline at the end.
    pub(super) message: String,
}

impl Record {
    /// Returns the record in `form`, with a newline at the end.
    pub(super) fn text(&self, form: Form, now: SystemTime) -> String {
        let Self { level, part, message } = self;
        let mut lines = message.lines();
        let first = lines.next().unwrap_or_default();
        let mut text = String::new();
        match form {
            Form::Text => {
                let _ = writeln!(
                    text,
                    "{} {} {part}: {first}",
                    humantime::format_rfc3339_millis(now),
                    level.as_str().to_uppercase()
                );
                for line in lines {
                    let _ = writeln!(text, "  {line}");
                }
            }
            Form::Journal => {
                let severity = level.severity();
                let _ = writeln!(text, "<{severity}>{part}: {first}");
                for line in lines {
                    let _ = writeln!(text, "<{severity}>  {line}");
                }
            }
            Form::Json => {
                let time = humantime::format_rfc3339_millis(now).to_string();
                let _ = writeln!(
                    text,
                    "{}",
                    json!({ "time": time, "level": level.as_str(), "part": part, "message": message })
                );
            }
        }
        text
    }
}

/// Returns a line that has a form of its own, such as one of the access log, for `form`.
pub(super) fn foreign(line: &str, form: Form) -> String {
    match form {
        Form::Text | Form::Json => format!("{line}\n"),
        Form::Journal => format!("<{}>{line}\n", Level::Info.severity()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn text(form: Form) -> String {
        let record =
            Record { level: Level::Warning, part: "envoy/config".to_owned(), message: "a \"b\"\nsecond".to_owned() };
        record.text(form, SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_000_000_042))
    }

    #[test]
    fn a_message_of_two_lines_stays_together_in_each_form() {
        assert_eq!(text(Form::Text), "2026-11-18T11:06:40.042Z WARNING envoy/config: a \"b\"\n  second\n");
        assert_eq!(text(Form::Journal), "<4>envoy/config: a \"b\"\n<4>  second\n");
        let json: serde_json::Value = serde_json::from_str(&text(Form::Json)).unwrap();
        assert_eq!(
            json,
            json!({ "time": "2026-11-18T11:06:40.042Z", "level": "warning", "part": "envoy/config", "message": "a \"b\"\nsecond" })
        );
        assert_eq!(text(Form::Json).matches('\n').count(), 1);
    }

    #[test]
    fn a_line_of_the_access_log_gets_only_a_priority() {
        assert_eq!(foreign("{}", Form::Text), "{}\n");
        assert_eq!(foreign("{}", Form::Journal), "<6>{}\n");
    }
}
