//! Keeps the map of the packet rules from addresses that names have before the truth is known to their true ones
//! (`dns.instant`).
//!
//! CoreDNS tells the addresses on a socket, and lacks the right to change packet rules. This process has that right and
//! believes little: an address must be one of the range, and a true one must belong to a server on the Internet.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{self, BufRead, BufReader, ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use http_semantics::addresses::is_refused;
use ipnet::Ipv4Net;
use longhaul_config::Settings;
use longhaul_render::host::{Truth, keep};

/// The pause before another attempt to connect.
const AGAIN: Duration = Duration::from_secs(1);
/// The longest time between two signs of life in the packet rules, a third of the time for which they believe one.
const SIGN: Duration = Duration::from_secs(5);
/// The time for which mappings are collected, so that one `nft` takes many.
const GATHER: Duration = Duration::from_millis(20);
/// The time after which the packet rules have forgotten a mapping by themselves.
const FORGOTTEN: Duration = Duration::from_mins(15);
/// The most mappings, those of all names that CoreDNS gives addresses.
const MOST: usize = 16384;

/// The address of a name, and the truth about it.
type Mapping = (Ipv4Addr, Truth);

/// A keeper of the map.
#[derive(Debug)]
pub(crate) struct Keeper {
    range: Ipv4Net,
    sockets: Vec<PathBuf>,
}

impl Keeper {
    /// Keeps the map for as long as the process lives. Does nothing if no name has an address before the truth is known.
    /// `sockets` are the places where CoreDNS may be.
    pub(crate) fn start(settings: &Settings, sockets: Vec<PathBuf>) {
        let Ok(range) = settings.first_visits() else { return };
        let keeper = Self { range, sockets };
        thread::spawn(move || {
            let mut last = String::new();
            loop {
                let Err(error) = keeper.connect().and_then(|stream| keeper.keep(stream));
                // A run that is not there yet, or rules that are gone, are said once.
                let said = error.to_string();
                if said != last {
                    eprintln!("warning: other ports of instant addresses are rejected: {said}");
                    last = said;
                }
                thread::sleep(AGAIN);
            }
        });
    }

    fn connect(&self) -> io::Result<UnixStream> {
        let mut tried = self.sockets.iter().map(|socket| {
            UnixStream::connect(socket).map_err(|error| io::Error::other(format!("{}: {error}", socket.display())))
        });
        let first = tried.next().unwrap_or_else(|| Err(io::Error::other("no socket")));
        first.or_else(|error| tried.find_map(Result::ok).ok_or(error))
    }

    /// Keeps the map until the connection or `nft` fails.
    fn keep(&self, stream: UnixStream) -> io::Result<Infallible> {
        let mut lines = BufReader::new(stream);
        let mut map = Map::default();
        let mut line = String::new();
        nft(&keep(&[], true))?;
        let mut signed = Instant::now();
        loop {
            let wait = if map.new.is_empty() { SIGN.saturating_sub(signed.elapsed()) } else { GATHER };
            lines.get_ref().set_read_timeout(Some(wait.max(GATHER)))?;
            match lines.read_line(&mut line) {
                Ok(0) => return Err(io::Error::other("CoreDNS ended the connection")),
                Ok(_) => {
                    map.new.extend(self.mapping(&line));
                    line.clear();
                    if map.new.len() < MOST {
                        continue;
                    }
                }
                // A part of a line stays in `line`.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
            nft(&map.commands(Instant::now()))?;
            signed = Instant::now();
        }
    }

    /// Reads a line: an address, and the true one, `-` or `absent`.
    fn mapping(&self, line: &str) -> Option<Mapping> {
        let (instant, truth) = line.trim_end().split_once(' ')?;
        let instant = instant.parse::<Ipv4Addr>().ok().filter(|instant| self.range.contains(instant))?;
        let truth = match truth {
            "-" => Truth::Nowhere,
            "absent" => Truth::Absent,
            address => match address.parse::<Ipv4Addr>().ok()? {
                refused if is_refused(IpAddr::V4(refused)) => Truth::Nowhere,
                address => Truth::At(address),
            },
        };
        Some((instant, truth))
    }
}

/// The mappings that the packet rules know.
#[derive(Debug, Default)]
struct Map {
    known: BTreeMap<Ipv4Addr, (Truth, Instant)>,
    new: Vec<Mapping>,
}

impl Map {
    /// Takes over what is new. Returns the commands that tell the packet rules, which also say that the map is kept.
    fn commands(&mut self, now: Instant) -> String {
        self.known.retain(|_, (_, since)| now.duration_since(*since) < FORGOTTEN);
        let mut other = false;
        let mut added = Vec::new();
        for (instant, truth) in self.new.drain(..) {
            let had = self.known.get(&instant).map(|(had, _)| *had);
            if had.is_none() && self.known.len() >= MOST {
                continue;
            }
            other |= had.is_some_and(|had| had != truth);
            if had.is_none_or(|had| had != truth) {
                self.known.insert(instant, (truth, now));
                added.push((instant, truth));
            }
        }
        if other {
            // nft changes no element, so all are written again.
            added = self.known.iter().map(|(instant, (truth, _))| (*instant, *truth)).collect();
        }
        keep(&added, other)
    }
}

fn nft(commands: &str) -> io::Result<()> {
    let mut child = Command::new("nft")
        .args(["-f", "-"])
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read its input reports the reason by its status.
        let _ = input.write_all(commands.as_bytes());
    }
    let done = child.wait_with_output()?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(io::Error::other(format!("nft: {}", said.lines().next().unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_learn_each_address_once_and_all_again_where_one_changed() {
        let [one, two, server, other] =
            ["198.18.0.1", "198.18.0.2", "9.9.9.9", "9.9.9.10"].map(|text| text.parse().unwrap());
        let (mut map, now) = (Map::default(), Instant::now());
        map.new = vec![(one, Truth::At(server)), (two, Truth::Nowhere), (two, Truth::Nowhere)];
        assert_eq!(map.commands(now), keep(&[(one, Truth::At(server)), (two, Truth::Nowhere)], false));
        map.new = vec![(one, Truth::At(server))];
        assert_eq!(map.commands(now), keep(&[], false));
        map.new = vec![(one, Truth::At(other))];
        assert_eq!(map.commands(now), keep(&[(one, Truth::At(other)), (two, Truth::Nowhere)], true));
        map.new = vec![(two, Truth::Nowhere)];
        assert_eq!(map.commands(now + FORGOTTEN), keep(&[(two, Truth::Nowhere)], false), "the rules have forgotten it");
    }

    #[test]
    fn a_line_is_believed_if_its_addresses_can_be_true() {
        let keeper = Keeper { range: "198.18.0.0/15".parse().unwrap(), sockets: Vec::new() };
        let of = |line: &str| keeper.mapping(line);
        let [instant, server] = ["198.18.3.4", "9.9.9.9"].map(|text| text.parse().unwrap());
        assert_eq!(of("198.18.3.4 9.9.9.9\n"), Some((instant, Truth::At(server))));
        assert_eq!(of("198.18.3.4 absent\n"), Some((instant, Truth::Absent)));
        for none in ["198.18.3.4 -\n", "198.18.3.4 10.0.0.1\n", "198.18.3.4 127.0.0.1\n", "198.18.3.4 198.18.3.5\n"] {
            assert_eq!(of(none), Some((instant, Truth::Nowhere)), "{none}");
        }
        for wrong in ["192.0.2.1 9.9.9.9\n", "198.18.3.4\n", "\n", "198.18.3.4 9.9.9.9; flush ruleset\n", "a b\n"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
