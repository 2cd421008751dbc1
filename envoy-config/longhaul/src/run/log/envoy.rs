//! The log lines of Envoy.

use longhaul_observe::bill::Billed;
use longhaul_observe::report::PageLoad;
use longhaul_render::{HeardReport, Mark};

use super::handshakes::{self, Handshake};
use super::record::{Level, Record};

/// The log format with which Envoy is started: a mark, the level, the component, and the message with escapes for its
/// newlines.
pub(in super::super) const FORMAT: [&str; 3] = ["--log-format-escaped", "--log-format", "@%l %n %v"];

/// Warnings about what this program told Envoy to do.
const EXPECTED: &[&str] = &["caught ENVOY_SIGTERM"];

/// A line of Envoy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Message(Record),
    /// A line of a library or the dynamic loader, or a further line of one.
    Further(String),
    /// A handshake of the pair that failed, from the access log of a listener.
    Handshake(Handshake),
    /// A page, from the access log for this program.
    Page(PageLoad),
    /// A report of a remote, from the same.
    Report(HeardReport),
    /// The bytes of a client, from the same.
    Billed(Billed),
    /// A line of the access log.
    Foreign,
    /// A line that says nothing, such as a failed handshake that has nothing to do with certificates: everybody can send
    /// nonsense to a port.
    Noise,
}

/// Parses a line of Envoy's stderr.
pub(super) fn parse(line: &str) -> Line {
    if let Some((mark, rest)) = Mark::of(line) {
        let line = match mark {
            Mark::Handshake => handshakes::parse(rest).map(Line::Handshake),
            Mark::Page => PageLoad::parse(rest).map(Line::Page),
            Mark::Report => HeardReport::parse(rest).map(Line::Report),
            Mark::Bill => Billed::parse(rest).map(Line::Billed),
        };
        return line.unwrap_or(Line::Noise);
    }
    if line.starts_with('{') {
        return Line::Foreign;
    }
    let fields = line.strip_prefix('@').and_then(|rest| {
        let (level, rest) = rest.split_once(' ')?;
        let (component, message) = rest.split_once(' ')?;
        Some((level, component, message))
    });
    let Some((level, component, message)) = fields else { return Line::Further(line.to_owned()) };
    let level = if EXPECTED.contains(&message) { Level::Info } else { level_of(level) };
    Line::Message(Record { level, part: format!("envoy/{component}"), message: unescaped(message) })
}

fn level_of(name: &str) -> Level {
    match name {
        "error" | "critical" => Level::Error,
        "warning" => Level::Warning,
        _ => Level::Info,
    }
}

/// Replaces the escapes of C strings. Envoy writes other bytes as octal numbers, which stay.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => {}
            Some(quoted @ ('\\' | '\'' | '"')) => out.push(quoted),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(line: &str) -> (Level, String, String) {
        match parse(line) {
            Line::Message(record) => (record.level, record.part, record.message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_line_in_our_format_has_a_level_and_a_component() {
        assert_eq!(
            message(r"@critical main error in \'a.yaml\':\n  no such field\n"),
            (Level::Error, "envoy/main".to_owned(), "error in 'a.yaml':\n  no such field".to_owned())
        );
        assert_eq!(message("@warning misc two  spaces").2, "two  spaces");
        assert_eq!(message("@info x y").0, Level::Info);
        assert_eq!(message("@warning main caught ENVOY_SIGTERM").0, Level::Info);
    }

    #[test]
    fn any_other_line_is_kept_as_it_is() {
        let loader = "envoy: error while loading shared libraries";
        assert_eq!(parse(loader), Line::Further(loader.to_owned()));
        assert_eq!(parse("@critical"), Line::Further("@critical".to_owned()));
        assert_eq!(parse(r#"{"path":"/"}"#), Line::Foreign);
        assert_eq!(parse("@handshake ground 192.0.2.7 TLS_error:|1:HTTP_REQUEST:TLS_error_end"), Line::Noise);
    }
}
