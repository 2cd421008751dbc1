//! Makes Envoy's connections to a ground Multipath TCP (RFC 8684), as a library that `longhaul run` preloads.
//!
//! Envoy has a switch for Multipath TCP at listeners, and none at clusters. So this library replaces two functions of the C
//! library:
//!
//! - `epoll_ctl` notes the last descriptor that this thread registered, and connections of Multipath TCP.
//! - `setsockopt` knows one option as a [mark]. Envoy sets it on each connection to a ground, right after it has registered
//!   the socket, because `longhaul render` writes it there. The socket behind the descriptor is then exchanged for one of
//!   Multipath TCP, and registered again.
//!
//! Two more functions, `send` and `writev`, give such a connection the congestion control that it needs for the bytes to come
//! ([`bottleneck`]). They do so for connections that Envoy accepts, too.
//!
//! Laws:
//!
//! - Only a marked socket is exchanged. Listeners stay TCP, and so do connections to origins, caches and resolvers.
//! - Only a socket of Multipath TCP with BBR gets another congestion control.
//! - The mark changes nothing where the library is missing: it sets an option to its default.
//! - Where the kernel makes no such socket, the old one stays. Where the other end or the way between refuses Multipath TCP,
//!   the kernel goes on in plain TCP.
//! - An option that Multipath TCP does not have, such as `TCP_USER_TIMEOUT`, is ignored on its sockets alone.
//! - The state is one note for each thread, and a row of numbers for each descriptor. Nothing is locked.
//!
//! The other ways were judged by reading, and the relay by a measurement. A BPF program at the kernel's hook
//! `update_socket_protocol` sees the socket before anything tells a listener from a connection, and loading it needs more rights
//! than the whole box has. A relay in front of Envoy takes four times the processor time of a download. Replacing `socket` turns
//! every socket, also listeners, and has to turn those back.

#![allow(unsafe_code, reason = "four functions of the C library, and descriptors that their callers own")]

mod bottleneck;
mod connections;

use std::cell::Cell;
use std::ffi::{c_int, c_long, c_void};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use libc::{EPOLL_CTL_ADD, epoll_event, iovec, socklen_t};
use rustix::fs::{fcntl_getfl, fcntl_setfl};
use rustix::io::{DupFlags, Errno, dup3};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with, sockopt};

/// The mark: `SO_RCVLOWAT` with its default, 1. Envoy never sets this option by itself.
pub mod mark {
    /// The level of the option.
    pub const LEVEL: i32 = libc::SOL_SOCKET;
    /// The name of the option.
    pub const NAME: i32 = libc::SO_RCVLOWAT;
    /// Its value.
    pub const VALUE: i32 = 1;
}

/// A descriptor that this thread has registered for events.
#[derive(Clone, Copy)]
struct Registered {
    queue: c_int,
    descriptor: c_int,
    events: u32,
    data: u64,
}

thread_local! {
    /// The last one.
    static LAST: Cell<Option<Registered>> = const { Cell::new(None) };
}

/// Replaces `epoll_ctl(2)`: notes a new registration.
///
/// # Safety
/// As for the function that it replaces: `event` is null or points to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(
    queue: c_int,
    operation: c_int,
    descriptor: c_int,
    event: *mut epoll_event,
) -> c_int {
    // SAFETY: the arguments are those of the caller, who vouches for the pointer.
    let done = unsafe { libc::syscall(libc::SYS_epoll_ctl, queue, operation, descriptor, event) };
    if done == 0 && operation == EPOLL_CTL_ADD && !event.is_null() {
        // SAFETY: it is not null, and the kernel has just read it.
        let event = unsafe { event.read_unaligned() };
        LAST.set(Some(Registered { queue, descriptor, events: event.events, data: event.u64 }));
        connections::note(borrow(&descriptor));
    }
    narrow(done)
}

/// Replaces `send(2)`: looks at the congestion control of the connection first.
///
/// # Safety
/// As for the function that it replaces: `bytes` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(descriptor: c_int, bytes: *const c_void, length: usize, flags: c_int) -> isize {
    connections::prepare(descriptor);
    let (nobody, no_length) = (ptr::null::<c_void>(), 0);
    // SAFETY: the arguments are those of the caller, who vouches for the pointer. A connected socket needs no address.
    let sent = unsafe { libc::syscall(libc::SYS_sendto, descriptor, bytes, length, flags, nobody, no_length) };
    isize::try_from(sent).unwrap_or(-1)
}

/// Replaces `writev(2)`: looks at the congestion control of the connection first.
///
/// # Safety
/// As for the function that it replaces: `parts` points to `count` parts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(descriptor: c_int, parts: *const iovec, count: c_int) -> isize {
    connections::prepare(descriptor);
    // SAFETY: the arguments are those of the caller, who vouches for the pointer.
    let written = unsafe { libc::syscall(libc::SYS_writev, descriptor, parts, count) };
    isize::try_from(written).unwrap_or(-1)
}

/// Replaces `setsockopt(2)`: exchanges a marked socket, and ignores options that Multipath TCP does not have.
///
/// # Safety
/// As for the function that it replaces: `value` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    descriptor: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    if (level, name) == (mark::LEVEL, mark::NAME) && length == 4 && !value.is_null() {
        // SAFETY: the caller vouches for `length` bytes, and any four bytes are a number.
        let value = unsafe { value.cast::<i32>().read_unaligned() };
        let registered = LAST.get().filter(|last| last.descriptor == descriptor);
        if let (mark::VALUE, Some(registered)) = (value, registered) {
            return if exchange(registered) { 0 } else { -1 };
        }
    }
    // SAFETY: the arguments are those of the caller, who vouches for the pointer.
    let done = unsafe { libc::syscall(libc::SYS_setsockopt, descriptor, level, name, value, length) };
    if done == 0 && (level, name) == (libc::IPPROTO_TCP, libc::TCP_CONGESTION) {
        connections::note(borrow(&descriptor));
    }
    if done == 0 || !is_missing_option() || !connections::is_multipath(borrow(&descriptor)) { narrow(done) } else { 0 }
}

fn narrow(result: c_long) -> c_int {
    if result == 0 { 0 } else { -1 }
}

/// Returns true if the last call failed because the protocol has no such option.
fn is_missing_option() -> bool {
    matches!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOPROTOOPT | libc::EOPNOTSUPP))
}

/// Borrows the descriptor that a caller of these functions passed.
fn borrow(descriptor: &c_int) -> BorrowedFd<'_> {
    // SAFETY: the caller owns it for the time of the call. A wrong number fails in the kernel.
    unsafe { BorrowedFd::borrow_raw(*descriptor) }
}

/// Puts a socket of Multipath TCP behind the descriptor. Changes nothing if that is not possible. Returns false if the
/// descriptor has lost its registration: then the connection has to fail.
fn exchange(registered: Registered) -> bool {
    // SAFETY: the caller of `setsockopt` owns the descriptor for the time of the call, and nothing here closes it:
    // `ManuallyDrop` leaves it to the caller.
    let mut own = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(registered.descriptor) });
    let Ok(other) = multipath_like(&own) else { return true };
    if dup3(&other, &mut own, DupFlags::CLOEXEC).is_err() {
        return true;
    }
    let mut event = epoll_event { events: registered.events, u64: registered.data };
    let (queue, descriptor) = (registered.queue, registered.descriptor);
    // SAFETY: the event lives until the call is over. The old socket took its registration along.
    let done = unsafe { libc::syscall(libc::SYS_epoll_ctl, queue, EPOLL_CTL_ADD, descriptor, &raw mut event) == 0 };
    connections::note(own.as_fd());
    done
}

/// Returns a socket of Multipath TCP with the properties that Envoy gives a connection before the mark.
fn multipath_like(socket: &OwnedFd) -> Result<OwnedFd, Errno> {
    let domain = sockopt::socket_domain(socket)?;
    let is_tcp = sockopt::socket_type(socket)? == SocketType::STREAM
        && sockopt::socket_protocol(socket)? == Some(ipproto::TCP)
        && [AddressFamily::INET, AddressFamily::INET6].contains(&domain);
    if !is_tcp {
        return Err(Errno::PROTONOSUPPORT);
    }
    let other = socket_with(domain, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::MPTCP))?;
    fcntl_setfl(&other, fcntl_getfl(socket)?)?;
    if sockopt::socket_keepalive(socket)? {
        sockopt::set_socket_keepalive(&other, true)?;
        sockopt::set_tcp_keepidle(&other, sockopt::tcp_keepidle(socket)?)?;
        sockopt::set_tcp_keepintvl(&other, sockopt::tcp_keepintvl(socket)?)?;
        sockopt::set_tcp_keepcnt(&other, sockopt::tcp_keepcnt(socket)?)?;
    }
    Ok(other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::fs;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    /// A descriptor for events, and a TCP socket that is registered there.
    struct Client {
        queue: OwnedFd,
        socket: OwnedFd,
    }

    impl Client {
        fn new() -> Self {
            // SAFETY: the kernel has just made the descriptor, and nobody else has it.
            let queue = unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(0)) };
            let flags = SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
            Self { queue, socket }
        }

        fn register(&self) {
            let mut event = epoll_event { events: libc::EPOLLOUT as u32, u64: 4711 };
            let (queue, socket) = (self.queue.as_raw_fd(), self.socket.as_raw_fd());
            // SAFETY: the event lives until the call is over.
            assert_eq!(unsafe { epoll_ctl(queue, EPOLL_CTL_ADD, socket, &raw mut event) }, 0);
        }

        fn set(&self, level: c_int, name: c_int, value: c_int) -> c_int {
            // SAFETY: the value lives until the call is over.
            unsafe { setsockopt(self.socket.as_raw_fd(), level, name, (&raw const value).cast(), 4) }
        }

        fn mark(&self) {
            assert_eq!(self.set(mark::LEVEL, mark::NAME, mark::VALUE), 0);
        }

        fn is_multipath(&self) -> bool {
            connections::is_multipath(self.socket.as_fd())
        }
    }

    /// Returns true if this kernel makes sockets of Multipath TCP.
    fn kernel_has_it() -> bool {
        fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|on| on.trim() == "1")
    }

    #[test]
    fn a_marked_connection_is_multipath_and_keeps_its_events_and_its_keep_alives() {
        let client = Client::new();
        sockopt::set_socket_keepalive(&client.socket, true).unwrap();
        sockopt::set_tcp_keepidle(&client.socket, std::time::Duration::from_secs(61)).unwrap();
        client.register();
        client.mark();
        assert_eq!(client.is_multipath(), kernel_has_it());
        assert_eq!(sockopt::tcp_keepidle(&client.socket).unwrap().as_secs(), 61);
        // Multipath TCP lacks TCP_USER_TIMEOUT.
        assert_eq!(client.set(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 70_000), 0);
        // A server that knows TCP alone.
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::connect(&client.socket, &server.local_addr().unwrap()).unwrap();
        let (mut accepted, _) = server.accept().unwrap();
        let mut event = epoll_event { events: 0, u64: 0 };
        // SAFETY: there is room for the one event.
        let ready = unsafe { libc::epoll_wait(client.queue.as_raw_fd(), &raw mut event, 1, 5000) };
        assert_eq!((ready, { event.u64 }), (1, 4711), "the event is the registered one");
        TcpStream::from(client.socket).write_all(b"whole").unwrap();
        let mut read = String::new();
        accepted.read_to_string(&mut read).unwrap();
        assert_eq!(read, "whole");
    }

    #[test]
    fn other_sockets_stay_as_they_are() {
        let client = Client::new();
        client.mark();
        assert!(!client.is_multipath(), "it is not registered");
        client.register();
        assert_eq!(client.set(mark::LEVEL, mark::NAME, 2), 0);
        assert_eq!(client.set(libc::IPPROTO_TCP, libc::TCP_NODELAY, 1), 0);
        assert!(!client.is_multipath(), "it has another option");
        assert_eq!(client.set(libc::IPPROTO_TCP, 4711, 1), -1, "an option that TCP lacks stays an error");
        let other = Client::new();
        other.register();
        client.mark();
        assert!(!client.is_multipath() && !other.is_multipath(), "another one was registered since");
    }
}
