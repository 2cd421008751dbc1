//! A network namespace of one test, with addresses and packet rules that leave nothing behind.

use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::envoy::skip;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Runs `test` in a namespace that has these addresses on its loopback device. Programs that the test starts are in it,
/// too. It has no name when the test begins, and ends with the last program in it.
pub(crate) fn inside(addresses: &[&str], test: impl FnOnce() + Send + 'static) {
    if !rustix::process::geteuid().is_root() {
        return skip("network namespaces need root");
    }
    for tool in ["ip", "nft"] {
        if Command::new(tool).arg("--version").output().is_err() && Command::new(tool).arg("-V").output().is_err() {
            return skip(&format!("no {tool}: install iproute2 and nftables"));
        }
    }
    let name = format!("longhaul-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    run("ip", &["netns", "add", &name]);
    let entered = File::open(format!("/run/netns/{name}"));
    run("ip", &["netns", "del", &name]);
    let namespace = entered.expect("the namespace is there");
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let named = thread::Builder::new().name(thread::current().name().unwrap_or("a test").to_owned());
    let thread = named.spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("the namespace is entered");
        run("ip", &["link", "set", "lo", "up"]);
        for address in addresses {
            run("ip", &["address", "add", &address, "dev", "lo"]);
        }
        test();
    });
    if let Err(failure) = thread.expect("a thread").join() {
        std::panic::resume_unwind(failure);
    }
}

/// Runs a tool that must succeed.
pub(crate) fn run(tool: &str, arguments: &[&str]) {
    let output = Command::new(tool).args(arguments).output().expect("the tool runs");
    assert!(output.status.success(), "{tool} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Connects from an address of the host.
pub(crate) fn connect_from(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddr::new(from, 0))?;
    connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}
