//! Commands to a running emulator over a UNIX socket: one line for each command, and one line of JSON for each reply.
//!
//! Separate threads serve the socket, so that a slow or stuck client never delays a packet. The event loop only takes a
//! snapshot and goes on.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use serde::Serialize;

use crate::impairment::outage::Kind;
use crate::profile::Affects;
use crate::statistics::Statistics;

/// Bytes of the longest command line. A longer line is truncated and refused.
const MOST_COMMAND_BYTES: u64 = 1_000;

/// A command to the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `stats`: returns all counters.
    Stats,
    /// `reset`: returns all counters and restarts them. Packets on the link, outages and random streams are not
    /// affected.
    Reset,
    /// `outage LENGTH [hold|drop] [up|down|both]`: begins an outage now.
    Outage {
        /// Its length.
        length: Duration,
        /// The fate of packets.
        kind: Kind,
        /// The affected directions.
        affects: Affects,
    },
}

impl FromStr for Command {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["stats"] => Ok(Self::Stats),
            ["reset"] => Ok(Self::Reset),
            ["outage", length, options @ ..] => {
                let length = humantime::parse_duration(length).map_err(|error| {
                    format!("`{length}` is not a length of time ({error}): expected for example 5s")
                })?;
                let mut kind = Kind::default();
                let mut affects = Affects::default();
                for option in options {
                    match *option {
                        "hold" => kind = Kind::Hold,
                        "drop" => kind = Kind::Drop,
                        "up" => affects = Affects::Up,
                        "down" => affects = Affects::Down,
                        "both" => affects = Affects::Both,
                        other => return Err(format!("`{other}`: expected hold, drop, up, down or both")),
                    }
                }
                Ok(Self::Outage { length, kind, affects })
            }
            _ => Err(format!(
                "`{}` is not a command: expected stats, reset or outage LENGTH [hold|drop] [up|down|both]",
                line.trim()
            )),
        }
    }
}

/// A reply to a command.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Reply {
    /// The reply to `stats` and `reset`.
    Statistics(Box<Statistics>),
    /// The reply to `outage`.
    Done {
        /// The command that was carried out.
        done: &'static str,
    },
    /// The reply to an invalid command.
    Refused {
        /// The reason.
        error: String,
    },
}

/// A command on its way to the event loop.
#[derive(Debug)]
pub struct Request {
    /// The command.
    pub command: Command,
    /// The channel for the reply.
    pub reply: Sender<Reply>,
}

/// The listening socket. Dropping it removes its file.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    /// Received commands.
    pub requests: Receiver<Request>,
    /// Readable when there are commands.
    pub wake: Arc<EventFd>,
}

impl ControlSocket {
    /// Listens on `path`, and replaces a socket that a killed emulator left behind.
    pub fn listen(path: &Path) -> io::Result<Self> {
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another emulator listens there"));
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        let wake = Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?);
        let (sender, requests) = channel();
        let waker = Arc::clone(&wake);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (sender, waker) = (sender.clone(), Arc::clone(&waker));
                // An error here affects only the client that closed its connection.
                thread::spawn(move || drop(serve(&stream, &sender, &waker)));
            }
        });
        Ok(Self { path: path.to_owned(), requests, wake })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // The emulator is stopping, so an error has no consequence.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn serve(stream: &UnixStream, requests: &Sender<Request>, wake: &EventFd) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    loop {
        let mut line = String::new();
        if lines.by_ref().take(MOST_COMMAND_BYTES).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let reply = match line.parse() {
            Ok(command) => ask(command, requests, wake),
            Err(error) => Reply::Refused { error },
        };
        let mut text = serde_json::to_vec(&reply)?;
        text.push(b'\n');
        out.write_all(&text)?;
    }
}

fn ask(command: Command, requests: &Sender<Request>, wake: &EventFd) -> Reply {
    let (reply, answer) = channel();
    let sent = requests.send(Request { command, reply }).is_ok() && wake.write(1).is_ok();
    sent.then(|| answer.recv().ok())
        .flatten()
        .unwrap_or_else(|| Reply::Refused { error: "the emulator is stopping".to_owned() })
}

/// Sends one command to a running emulator and returns its reply (the `control` subcommand).
pub fn send(path: &Path, line: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    writeln!(stream, "{line}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_they_are_documented() {
        assert_eq!("stats".parse(), Ok(Command::Stats));
        assert_eq!(" reset \n".parse(), Ok(Command::Reset));
        let outage = |length, kind, affects| Ok(Command::Outage { length, kind, affects });
        assert_eq!("outage 5s".parse(), outage(Duration::from_secs(5), Kind::Hold, Affects::Both));
        assert_eq!("outage 500ms down drop".parse(), outage(Duration::from_millis(500), Kind::Drop, Affects::Down));
    }

    #[test]
    fn an_unknown_command_is_refused_with_the_known_ones() {
        for (line, expected) in [
            ("", "expected stats, reset or outage"),
            ("stats now", "expected stats, reset or outage"),
            ("outage", "expected stats, reset or outage"),
            ("outage soon", "expected for example 5s"),
            ("outage 5s sideways", "expected hold, drop, up, down or both"),
        ] {
            let message = line.parse::<Command>().unwrap_err();
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
