//! The connections of Multipath TCP in this process, by descriptor, and the questions to the kernel about them.
//!
//! Envoy leaves a descriptor to one thread at a time. The row of a closed one is harmless: the next descriptor with its number
//! is registered before it is written to, and no congestion control is changed without a look at the socket.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use rustix::net::{ipproto, sockopt};

use crate::bottleneck::{Control, Known, do_links_bound, question};

/// Descriptors from this number on are left alone. Envoy counts them from zero.
const MOST: usize = 1 << 16;
/// `SOL_MPTCP` and `MPTCP_TCPINFO` of `linux/mptcp.h`: the counters of each subflow. Since Linux 5.16.
const LEVEL: libc::c_int = 284;
const SUBFLOWS: libc::c_int = 2;

/// The knowledge of the connection behind a descriptor.
struct Slot {
    /// 0: nothing.
    control: AtomicU8,
    looked_ms: AtomicU32,
    bounded_ms: AtomicU32,
}

/// Zeros, of which the kernel makes pages only when they are written to.
static SLOTS: [Slot; MOST] =
    [const { Slot { control: AtomicU8::new(0), looked_ms: AtomicU32::new(0), bounded_ms: AtomicU32::new(0) } }; MOST];
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Slot {
    fn of(descriptor: i32) -> Option<&'static Self> {
        SLOTS.get(usize::try_from(descriptor).ok()?)
    }

    fn read(&self) -> Option<Known> {
        let control = match self.control.load(Relaxed) {
            1 => Control::Bbr,
            2 => Control::Reno,
            _ => return None,
        };
        Some(Known { control, looked_ms: self.looked_ms.load(Relaxed), bounded_ms: self.bounded_ms.load(Relaxed) })
    }

    fn write(&self, known: Option<Known>) {
        let control = match known {
            None => 0,
            Some(Known { control: Control::Bbr, .. }) => 1,
            Some(Known { control: Control::Reno, .. }) => 2,
        };
        self.control.store(control, Relaxed);
        if let Some(known) = known {
            self.looked_ms.store(known.looked_ms, Relaxed);
            self.bounded_ms.store(known.bounded_ms, Relaxed);
        }
    }
}

/// Notes a descriptor that was registered for events, or has another congestion control now. Those of Multipath TCP with BBR count.
pub(crate) fn note(socket: BorrowedFd<'_>) {
    let Some(slot) = Slot::of(socket.as_raw_fd()) else { return };
    if !is_multipath(socket) {
        slot.write(None);
    } else if has(socket, Control::Bbr) {
        slot.write(Some(Known::begin(now_ms())));
    } else if !has(socket, Control::Reno) || slot.read().is_none_or(|known| known.control != Control::Reno) {
        slot.write(None);
    }
}

/// Gives a connection the congestion control that it needs for the bytes to come. Call it before each write.
pub(crate) fn prepare(descriptor: i32) {
    let Some((slot, mut known)) = Slot::of(descriptor).and_then(|slot| Some((slot, slot.read()?))) else { return };
    let now_ms = now_ms();
    if !known.is_due(now_ms) {
        return;
    }
    // SAFETY: the caller of the replaced function owns the descriptor for the time of the call. A wrong number fails in the kernel.
    let socket = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let before = known.control;
    let done = ask(socket).is_some_and(|bound| match known.look(now_ms, bound) {
        None => true,
        Some(to) => {
            is_multipath(socket) && has(socket, before) && sockopt::set_tcp_congestion(socket, to.name()).is_ok()
        }
    });
    slot.write(done.then_some(known));
}

/// Returns true for a socket of Multipath TCP.
pub(crate) fn is_multipath(socket: BorrowedFd<'_>) -> bool {
    sockopt::socket_protocol(socket).is_ok_and(|protocol| protocol == Some(ipproto::MPTCP))
}

fn has(socket: BorrowedFd<'_>, control: Control) -> bool {
    sockopt::tcp_congestion(socket).is_ok_and(|name| name == control.name())
}

/// Returns true if the links bound the connection. None: the kernel does not say.
fn ask(socket: BorrowedFd<'_>) -> Option<bool> {
    let mut bytes = question();
    let mut length = libc::socklen_t::try_from(bytes.len()).ok()?;
    // SAFETY: `bytes` has `length` bytes, and both live until the call is over.
    let done =
        unsafe { libc::getsockopt(socket.as_raw_fd(), LEVEL, SUBFLOWS, bytes.as_mut_ptr().cast(), &raw mut length) };
    (done == 0).then(|| do_links_bound(&bytes))
}

fn now_ms() -> u32 {
    u32::try_from(START.elapsed().as_millis() & u128::from(u32::MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::fs;
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::net::{AddressFamily, SocketFlags, SocketType, accept, bind, connect, listen, socket_with};

    use super::*;

    /// Returns both ends of a connection of Multipath TCP with BBR. None: this kernel lacks one of them.
    fn connection() -> Option<(OwnedFd, OwnedFd)> {
        let has = |file: &str, what: &str| fs::read_to_string(file).is_ok_and(|text| text.contains(what));
        if !has("/proc/sys/net/mptcp/enabled", "1")
            || !has("/proc/sys/net/ipv4/tcp_available_congestion_control", "bbr")
        {
            return None;
        }
        let socket = || {
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::MPTCP)).unwrap()
        };
        let (server, client) = (socket(), socket());
        bind(&server, &"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap()).unwrap();
        listen(&server, 1).unwrap();
        sockopt::set_tcp_congestion(&client, "bbr").unwrap();
        connect(&client, &rustix::net::getsockname(&server).unwrap()).unwrap();
        let accepted = accept(&server).unwrap();
        Some((client, accepted))
    }

    /// `integration/e2e/test_two_links.py` sees BBR come back, by a link that bounds a download.
    #[test]
    fn a_quiet_connection_holds_its_window() {
        let Some((client, _reader)) = connection() else { return };
        note(client.as_fd());
        assert!(has(client.as_fd(), Control::Bbr));
        prepare(client.as_raw_fd());
        assert_eq!(ask(client.as_fd()), Some(false), "it has nothing to send");
        assert!(has(client.as_fd(), Control::Reno));
        note(client.as_fd());
        assert!(Slot::of(client.as_raw_fd()).unwrap().read().is_some(), "it may be registered again");
    }

    #[test]
    fn another_socket_with_the_same_number_is_left_alone() {
        let Some((client, _reader)) = connection() else { return };
        note(client.as_fd());
        let tcp = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let before = sockopt::tcp_congestion(&tcp).unwrap();
        let slot = Slot::of(tcp.as_raw_fd()).unwrap();
        slot.write(Some(Known::begin(now_ms())));
        prepare(tcp.as_raw_fd());
        assert!(slot.read().is_none());
        assert_eq!(sockopt::tcp_congestion(&tcp).unwrap(), before);
        // Whoever chose another congestion control keeps it.
        sockopt::set_tcp_congestion(&client, "reno").unwrap();
        prepare(client.as_raw_fd());
        assert!(Slot::of(client.as_raw_fd()).unwrap().read().is_none());
        assert!(has(client.as_fd(), Control::Reno));
        prepare(-1);
        prepare(i32::MAX);
    }
}
