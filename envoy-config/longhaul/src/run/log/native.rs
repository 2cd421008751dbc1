//! Records with fields, for the journal of systemd.
//!
//! A line on stderr has a priority and a text alone. The native protocol (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL>) has
//! fields, by which `journalctl LONGHAUL_PROBLEM=ground_down` finds lines.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use super::record::Record;

/// The socket of the journal.
pub(super) const SOCKET: &str = "/run/systemd/journal/socket";

/// The way to the journal.
#[derive(Debug)]
pub(super) struct Journal {
    socket: UnixDatagram,
}

impl Journal {
    /// Opens the way to the journal's socket at `path`.
    ///
    /// # Errors
    /// There is no such socket.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        // A journal that stands still must not stop the log.
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// Sends one entry.
    ///
    /// # Errors
    /// The journal does not take it: it has ended, it is too slow, or the entry is larger than a datagram may be.
    pub(super) fn send(&self, entry: &[u8]) -> io::Result<()> {
        self.socket.send(entry).map(drop)
    }
}

/// Returns the entry of a record. Its message is the line that stderr would get.
pub(super) fn entry(record: &Record, fields: &[(&str, &str)]) -> Vec<u8> {
    let Record { level, part, message } = record;
    let (severity, message) = (level.severity().to_string(), format!("{part}: {message}"));
    let known = [
        ("MESSAGE", message.as_str()),
        ("PRIORITY", &severity),
        ("SYSLOG_IDENTIFIER", "longhaul"),
        ("LONGHAUL_PART", part),
    ];
    let mut entry = Vec::new();
    for (name, value) in known.iter().chain(fields).filter(|(_, value)| !value.is_empty()) {
        push(&mut entry, name, value);
    }
    entry
}

/// Adds a field. A value of several lines has its length before it.
fn push(entry: &mut Vec<u8>, name: &str, value: &str) {
    entry.extend(name.as_bytes());
    if value.contains('\n') {
        entry.push(b'\n');
        entry.extend((value.len() as u64).to_le_bytes());
    } else {
        entry.push(b'=');
    }
    entry.extend(value.as_bytes());
    entry.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::super::record::Level;
    use super::*;

    fn record(message: &str) -> Record {
        Record { level: Level::Error, part: "longhaul".to_owned(), message: message.to_owned() }
    }

    #[test]
    fn an_entry_has_a_field_a_line_and_a_value_of_two_lines_has_its_length() {
        let one = entry(&record("a"), &[("LONGHAUL_PROBLEM", "ground_down"), ("LONGHAUL_OF", "")]);
        let text = "MESSAGE=longhaul: a\nPRIORITY=3\nSYSLOG_IDENTIFIER=longhaul\nLONGHAUL_PART=longhaul\nLONGHAUL_PROBLEM=ground_down\n";
        assert_eq!(String::from_utf8(one).unwrap(), text);
        let two = entry(&record("a\nb"), &[]);
        assert!(two.starts_with(b"MESSAGE\n\x0d\0\0\0\0\0\0\0longhaul: a\nb\nPRIORITY=3\n"), "{two:?}");
    }

    #[test]
    fn the_journal_gets_it_as_one_datagram_and_its_absence_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        assert!(Journal::open(&path).is_err());
        let journal = UnixDatagram::bind(&path).unwrap();
        let way = Journal::open(&path).unwrap();
        way.send(&entry(&record("a"), &[])).unwrap();
        let mut buffer = [0; 512];
        let length = journal.recv(&mut buffer).unwrap();
        assert!(buffer[..length].starts_with(b"MESSAGE=longhaul: a\n"));
        drop(journal);
        assert!(way.send(b"x").is_err());
    }
}
