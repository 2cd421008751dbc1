//! The round trip to the ground, and the sizes of packets that pass.
//!
//! A connection with a smaller segment size sends smaller packets and gets smaller ones. So a connection of each size
//! shows which one passes, in both directions, and which value of `link.mtu` helps.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use longhaul_config::Link;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::frames;
use super::host::sysctl;
use crate::pair::Peer;

/// The sizes of packets that are tried beside the kernel's own, in bytes: of a tunnel, of two tunnels, the least of IPv6
/// (RFC 8200 section 5), and one that every tunnel in use carries.
const SIZES: [u32; 4] = [1400, 1300, 1280, 1200];
/// The headers before a segment, as `link.mtu` counts them: those of IPv6 and TCP. Those of IPv4 are shorter.
const HEADERS: u32 = 40 + 20;
const IPV4_HEADERS: u32 = 20 + 20;
/// The bytes that all tries send in one direction: handshakes and pings.
const LOAD_BYTES: u64 = 40_000;
/// The longest time for all sizes.
const LONGEST: Duration = Duration::from_secs(9);

/// The fate of packets of a size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Passage {
    /// They passed in both directions.
    Passed {
        /// The round trip of a small packet.
        round_trip: Duration,
    },
    /// The connection was accepted, and then bytes stayed away.
    Vanished,
    /// No connection, or it ended.
    Failed(String),
}

/// A size that was tried. None: the kernel's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tried {
    pub size: Option<u32>,
    pub passage: Passage,
}

/// The path to the ground.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathFact {
    pub tried: Vec<Tried>,
    /// True if the kernel looks for the size when packets vanish (`net.ipv4.tcp_mtu_probing`).
    pub probes: bool,
}

/// Tries each size, all at once, for as long as a link as `link` needs for it. `link.mtu` is one of the sizes.
pub(crate) fn path(peer: &Arc<Peer>, link: &Link) -> io::Result<PathFact> {
    let mut sizes: Vec<Option<u32>> = SIZES.into_iter().map(Some).chain([None, link.mtu]).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let needed = Duration::from_secs(3) + link.rtt * 10 + link.down.min(link.up).time_for(LOAD_BYTES);
    let patience = needed.min(LONGEST);
    let of_file = link.mtu;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tried = runtime.block_on(async {
        let mut tries = JoinSet::new();
        for size in sizes {
            let peer = peer.clone();
            // That of the file has the packets that Envoy sends with it. The others have this very size.
            let headers = if size == of_file || peer.address().is_ipv6() { HEADERS } else { IPV4_HEADERS };
            let segment = size.map(|size| size.saturating_sub(headers));
            tries.spawn(async move { Tried { size, passage: passage(&peer, segment, patience).await } });
        }
        tries.join_all().await
    });
    Ok(PathFact { tried, probes: sysctl("net.ipv4.tcp_mtu_probing").is_some_and(|value| value != "0") })
}

async fn passage(peer: &Peer, segment: Option<u32>, patience: Duration) -> Passage {
    let stream = match socket(peer.address(), segment) {
        Ok(socket) => match timeout(patience, socket.connect(peer.address())).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Passage::Failed(error.to_string()),
            Err(_) => return Passage::Failed("timed out".to_owned()),
        },
        Err(error) => return Passage::Failed(error.to_string()),
    };
    let round_trip = async {
        // The time for all of it ends first.
        let mut stream = peer.secure(stream, patience * 2).await?;
        frames::round_trip(&mut stream).await.map_err(|error| error.to_string())
    };
    match timeout(patience, round_trip).await {
        Ok(Ok(round_trip)) => Passage::Passed { round_trip },
        Ok(Err(error)) => Passage::Failed(error),
        Err(_) => Passage::Vanished,
    }
}

/// Returns a socket whose segments have this size at most, in both directions.
fn socket(to: SocketAddr, segment: Option<u32>) -> io::Result<TcpSocket> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(segment) = segment {
        socket.set_tcp_mss(segment)?;
    }
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    Ok(TcpSocket::from_std_stream(socket.into()))
}
