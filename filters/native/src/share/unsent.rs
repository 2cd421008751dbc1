//! The bytes that the kernel has not sent yet to the other end of a link.

use std::io;
use std::time::Duration;

use kernel_sockets::{KernelSockets, Selection, tcp_info};
use netlink_packet_sock_diag::inet::StateFlags;
use netlink_packet_sock_diag::inet::nlas::TcpInfo;

/// The least time between two readings. A dump goes through the kernel's whole table, which takes milliseconds on a large machine.
const PAUSE: Duration = Duration::from_millis(50);
/// A connection without an acknowledgement for so long sends nothing, and nobody should wait for it.
const SILENCE_MS: u32 = 3000;

/// The last reading.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    kernel: Option<KernelSockets>,
    /// True if the kernel gives no figures.
    is_refused: bool,
    read_at: Option<Duration>,
    bytes: u64,
}

impl Unsent {
    /// Returns the most unsent bytes of a connection to these ports, `now` or some milliseconds ago. 0 where the kernel gives no
    /// figures.
    pub(super) fn to(&mut self, ports: &[u16], now: Duration) -> u64 {
        if ports.is_empty() || self.is_refused {
            return 0;
        }
        if self.read_at.is_none_or(|at| now.saturating_sub(at) >= PAUSE) {
            self.read_at = Some(now);
            let bytes = self.read(ports);
            self.is_refused = bytes.is_err();
            self.bytes = bytes.unwrap_or_default();
        }
        self.bytes
    }

    fn read(&mut self, ports: &[u16]) -> io::Result<u64> {
        let kernel = match self.kernel.take() {
            Some(kernel) => kernel,
            None => KernelSockets::open()?,
        };
        let kernel = self.kernel.insert(kernel);
        ports.iter().try_fold(0, |most, port| Ok(unsent_to(kernel, *port)?.max(most)))
    }
}

/// Returns the most unsent bytes of a connection to this port.
fn unsent_to(kernel: &KernelSockets, destination_port: u16) -> io::Result<u64> {
    let selection = Selection::tcp(0, destination_port, StateFlags::ESTABLISHED);
    let mut most = 0;
    kernel.each(&selection, |response| most = most.max(tcp_info(response).map_or(0, unsent)))?;
    Ok(most)
}

fn unsent(info: &TcpInfo) -> u64 {
    if info.last_ack_recv < SILENCE_MS { u64::from(info.notsent_bytes) } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const NEVER: Duration = Duration::ZERO;

    #[test]
    fn what_a_connection_has_not_sent_is_seen_in_both_families_and_read_again_after_a_pause() {
        for bind in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(bind) else { continue };
            let port = listener.local_addr().unwrap().port();
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (_accepted, _) = listener.accept().unwrap();
            let mut unsent = Unsent::default();
            assert_eq!((unsent.to(&[], NEVER), unsent.to(&[port], NEVER)), (0, 0));
            // Nobody reads, so the window closes.
            stream.set_nonblocking(true).unwrap();
            while stream.write(&[0; 4096]).is_ok() {}
            assert_eq!(unsent.to(&[port], PAUSE / 2), 0, "too soon");
            assert!(unsent.to(&[port], PAUSE) > 0);
            assert_eq!(unsent.to(&[1], PAUSE * 2), 0, "another port");
        }
    }
}
