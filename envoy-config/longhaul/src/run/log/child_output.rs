//! The output of a child, read by a thread of its own.

use std::io::{self, BufRead, BufReader, PipeReader, Read as _};
use std::thread;
use std::time::Instant;

use super::handshakes::Lately;
use super::record::{Level, Record};
use super::waiting::Heard;
use super::{coredns, envoy, sink};

/// The longest line in bytes. The rest of a longer one is another line.
const LONGEST: u64 = 64 << 10;

/// The program whose lines are read.
#[derive(Debug, Clone)]
pub(in super::super) enum Dialect {
    /// The lines of its access logs for this program are added to these.
    Envoy(Heard),
    CoreDns,
    /// A program beside Envoy, with its name.
    Side(&'static str),
}

impl Dialect {
    /// Returns the name of the program in the log.
    fn part(&self) -> &'static str {
        match self {
            Self::Envoy(_) => "envoy",
            Self::CoreDns => "coredns",
            Self::Side(name) => name,
        }
    }
}

/// Logs the lines of a child until it has closed the pipe.
///
/// # Errors
/// The system gives no thread.
pub(in super::super) fn follow(pipe: PipeReader, dialect: Dialect) -> io::Result<()> {
    let owner = sink::child();
    thread::Builder::new().name("child output".to_owned()).spawn(move || {
        let mut lines = Lines { pipe: BufReader::new(pipe), dialect, lately: Lately::default(), pending: None };
        lines.log_all();
        drop(owner);
    })?;
    Ok(())
}

struct Lines {
    pipe: BufReader<PipeReader>,
    dialect: Dialect,
    lately: Lately,
    /// A message whose further lines may follow.
    pending: Option<Record>,
}

impl Lines {
    fn log_all(&mut self) {
        let mut line = Vec::new();
        while let Ok(1..) = self.pipe.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            self.log(String::from_utf8_lossy(&line).trim_end());
            line.clear();
            // Further lines of a message come with it.
            if self.pipe.buffer().is_empty() {
                self.log_pending();
            }
        }
        self.log_pending();
    }

    fn log(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        match &self.dialect {
            Dialect::Envoy(heard) => match envoy::parse(line) {
                envoy::Line::Message(record) => self.begin(record),
                envoy::Line::Further(line) => self.append(line),
                envoy::Line::Noise => {}
                envoy::Line::Foreign => sink::emit_foreign(line),
                envoy::Line::Page(load) => heard.pages.add(load),
                envoy::Line::Report(report) => heard.reports.add(report),
                envoy::Line::Billed(billed) => heard.billed.add(billed),
                envoy::Line::Handshake(handshake) => {
                    if let Some(record) = self.lately.record(&handshake, Instant::now()) {
                        sink::emit(&record);
                    }
                }
            },
            Dialect::CoreDns => match coredns::parse(line) {
                coredns::Line::Message(record) => self.begin(record),
                coredns::Line::Further(line) => self.append(line),
                coredns::Line::Noise => {}
            },
            Dialect::Side(name) => match line.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")) {
                Some("ready") => {}
                Some(message) => {
                    let part = self.dialect.part().to_owned();
                    self.begin(Record { level: Level::Warning, part, message: message.to_owned() });
                }
                None => self.append(line.to_owned()),
            },
        }
    }

    fn begin(&mut self, record: Record) {
        self.log_pending();
        self.pending = Some(record);
    }

    fn append(&mut self, line: String) {
        let part = self.dialect.part();
        if let Some(record) = &mut self.pending {
            record.message.push('\n');
            record.message.push_str(&line);
        } else {
            self.pending = Some(Record { level: Level::Warning, part: part.to_owned(), message: line });
        }
    }

    fn log_pending(&mut self) {
        if let Some(record) = self.pending.take() {
            sink::emit(&record);
        }
    }
}
