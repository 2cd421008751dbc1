//! Probes of a link: TCP handshakes with the ground, bound to the interface. Any response shows that the link works.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

/// The time after which a probe is given up. A response of a full queue is late.
const GIVEN_UP: Duration = Duration::from_secs(10);
/// The most probes of a link that wait for a response.
const MOST: usize = 16;

/// The probes of one link that wait for a response.
#[derive(Debug, Default)]
pub(super) struct Probes(Vec<(Instant, Socket)>);

impl Probes {
    /// Sends a probe to `ground`. An interface that cannot send is one without a response.
    pub(super) fn send(&mut self, device: &str, from: IpAddr, ground: SocketAddr) {
        if let Ok(socket) = begin(device, from, ground) {
            self.0.push((Instant::now(), socket));
            if self.0.len() > MOST {
                self.0.remove(0);
            }
        }
    }

    /// Gives up all probes.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the round trip of a probe that got a response. Earlier ones are forgotten then.
    pub(super) fn answered(&mut self) -> Option<Duration> {
        let mut found = None;
        self.0.retain(|(sent, socket)| match is_answered(socket) {
            None => sent.elapsed() < GIVEN_UP,
            Some(answered) => {
                if answered {
                    found = Some(sent.elapsed());
                }
                false
            }
        });
        found
    }
}

/// Begins a handshake. A reset ends it, which costs the ground nothing.
fn begin(device: &str, from: IpAddr, ground: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(ground), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.bind_device(Some(device.as_bytes()))?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.set_linger(Some(Duration::ZERO))?;
    match socket.connect(&ground.into()) {
        Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => Ok(socket),
        Err(error) => Err(error),
        Ok(()) => Ok(socket),
    }
}

/// Returns None while a probe waits, and then whether the other end responded.
fn is_answered(socket: &Socket) -> Option<bool> {
    match socket.take_error() {
        Ok(Some(error)) => Some(error.kind() == io::ErrorKind::ConnectionRefused),
        Ok(None) if socket.peer_addr().is_ok() => Some(true),
        Ok(None) => None,
        Err(_) => Some(false),
    }
}

/// Waits for a response to any probe, for `time` at most.
pub(super) fn wait<'p>(probes: impl Iterator<Item = &'p Probes>, time: Duration) {
    let sockets: Vec<&Socket> = probes.flat_map(|probes| probes.0.iter().map(|(_, socket)| socket)).collect();
    let mut waiting: Vec<PollFd<'_>> = sockets.iter().map(|socket| PollFd::new(socket, PollFlags::OUT)).collect();
    let time = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
    // A signal ends the wait sooner.
    let _ = poll(&mut waiting, Some(&time));
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};

    use super::*;

    fn probed(ground: SocketAddr) -> Option<Duration> {
        let mut probes = Probes::default();
        probes.send("lo", ground.ip(), ground);
        for _ in 0..10 {
            if let Some(time) = probes.answered() {
                return Some(time);
            }
            wait([&probes].into_iter(), Duration::from_millis(100));
        }
        None
    }

    #[test]
    fn a_handshake_and_a_refusal_are_both_signs_of_life() {
        for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            // This machine may have no IPv6.
            let Ok(listener) = TcpListener::bind((address, 0)) else { continue };
            let at = listener.local_addr().unwrap();
            assert!(probed(at).is_some(), "{at}");
            drop(listener);
            assert!(probed(at).is_some(), "a refusal came from the other end");
        }
    }

    #[test]
    fn an_interface_that_is_not_there_gives_no_response() {
        let mut probes = Probes::default();
        probes.send("nothere0", Ipv4Addr::LOCALHOST.into(), ([127, 0, 0, 1], 9).into());
        assert_eq!(probes.answered(), None);
    }
}
