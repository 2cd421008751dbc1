//! One end of the link: a TUN device in a network namespace.
//!
//! The device has no `IFF_VNET_HDR`. So the kernel delivers whole IP packets of at most the MTU with complete
//! checksums, and segmentation offload does not hide the packets of a real link. The device vanishes with its file
//! descriptor, however the process ends.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use serde::Serialize;
use tun_rs::{DeviceBuilder, SyncDevice};

/// Packets that the kernel keeps between two reads. The emulator reads at once, so this only has to cover the time in
/// which the process is not scheduled. The default of 500 overflows when a sender bursts on a busy machine.
const KERNEL_QUEUE_PACKETS: u32 = 10_000;

/// Unlike /proc/net and /sys, this path follows a thread into its namespace.
const COUNTERS: &str = "/proc/thread-self/net/dev";

/// The namespace's IPv6 addresses with their flags.
const IPV6_ADDRESSES: &str = "/proc/thread-self/net/if_inet6";

/// `IFA_F_TENTATIVE`: the address cannot be bound yet.
const TENTATIVE: u8 = 0x40;

/// The kernel ends the tentative state of a TUN device's address in a background task, within microseconds on an idle
/// machine.
const TENTATIVE_LIMIT: Duration = Duration::from_secs(5);

/// An address with its prefix length, such as 10.1.0.1/30.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// The device's address.
    pub address: IpAddr,
    /// Length of the prefix in bits.
    pub prefix_bits: u8,
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("`{text}` is not an address with a prefix length: expected for example 10.1.0.1/30");
        let (address, bits) = text.split_once('/').ok_or_else(expected)?;
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let prefix_bits: u8 = bits.parse().map_err(|_| expected())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if prefix_bits > most {
            return Err(expected());
        }
        Ok(Self { address, prefix_bits })
    }
}

impl std::fmt::Display for Subnet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix_bits)
    }
}

/// The settings of an end.
#[derive(Clone, Debug)]
pub struct EndSettings {
    /// Name (as in `ip netns`) or path of the namespace; `None` is the process's own.
    pub namespace: Option<String>,
    /// The device's name in that namespace.
    pub device: String,
    /// Its addresses.
    pub addresses: Vec<Subnet>,
    /// Its MTU.
    pub mtu_bytes: u16,
}

/// Why an end could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    /// The namespace does not exist, or the process may not enter it.
    #[error("cannot enter the network namespace {}: {reason} (create it first: ip netns add NAME)", path.display())]
    Namespace {
        /// The namespace's file.
        path: PathBuf,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// The kernel refused to create or configure the device.
    #[error("cannot set up the TUN device {device}{}: {reason}{}", place(namespace.as_deref()), hint(reason))]
    Device {
        /// The device's name.
        device: String,
        /// The namespace in which it should have been created.
        namespace: Option<String>,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// The thread that sets up the device panicked.
    #[error("the thread that sets up {device} stopped unexpectedly")]
    Thread {
        /// The device's name.
        device: String,
    },
}

fn place(namespace: Option<&str>) -> String {
    namespace.map(|name| format!(" in namespace {name}")).unwrap_or_default()
}

fn hint(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::PermissionDenied => " (run as root, or with CAP_NET_ADMIN)",
        io::ErrorKind::ResourceBusy => " (a device of that name exists already)",
        io::ErrorKind::NotFound => " (is the tun module loaded?)",
        _ => "",
    }
}

/// One end of the link, ready to carry packets.
pub struct End {
    device: SyncDevice,
    name: String,
    /// The namespace's table of devices. It was opened in the namespace, so any thread can read it.
    kernel_counters: File,
}

/// The kernel's own counters of the device: packets lost outside the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KernelDrops {
    /// Packets that the kernel dropped because this process did not read in time. If it is not zero, the run is not
    /// valid.
    pub before_the_link: u64,
    /// Packets that the kernel dropped after this process wrote them.
    pub after_the_link: u64,
}

impl End {
    /// Creates the device and brings it up.
    pub fn open(settings: &EndSettings) -> Result<Self, EndError> {
        let namespace = settings.namespace.as_deref().map(open_namespace).transpose()?;
        // `setns` changes the namespace of the calling thread for good, so it needs a thread of its own.
        let (device, kernel_counters) =
            in_namespace(namespace.as_ref(), || Ok((build_device(settings)?, File::open(COUNTERS)?)))
                .ok_or_else(|| EndError::Thread { device: settings.device.clone() })?
                .map_err(|reason| EndError::Device {
                    device: settings.device.clone(),
                    namespace: settings.namespace.clone(),
                    reason,
                })?;
        Ok(Self { device, name: settings.device.clone(), kernel_counters })
    }

    /// Reads the next packet that the namespace sends. Fails with `WouldBlock` if there is none.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.device.recv(buffer)
    }

    /// Writes a packet to the namespace.
    pub fn send(&self, packet: &[u8]) -> io::Result<usize> {
        self.device.send(packet)
    }

    /// Returns the packets that the kernel dropped on either side of this process, or `None` once the device is gone.
    pub fn kernel_drops(&self) -> Option<KernelDrops> {
        let mut file = &self.kernel_counters;
        let mut table = String::new();
        let read = file.rewind().and_then(|()| file.read_to_string(&mut table));
        read.ok().and_then(|_| parse_drops(&table, &self.name))
    }
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

fn open_namespace(name: &str) -> Result<File, EndError> {
    let path = if name.contains('/') { PathBuf::from(name) } else { Path::new("/run/netns").join(name) };
    File::open(&path).map_err(|reason| EndError::Namespace { path, reason })
}

/// Runs `act` on a thread inside a namespace. Returns `None` if that thread panicked.
fn in_namespace<T: Send>(
    namespace: Option<&File>,
    act: impl FnOnce() -> io::Result<T> + Send,
) -> Option<io::Result<T>> {
    thread::scope(|scope| {
        scope
            .spawn(|| {
                if let Some(namespace) = namespace {
                    setns(namespace, CloneFlags::CLONE_NEWNET)?;
                }
                act()
            })
            .join()
            .ok()
    })
}

fn build_device(settings: &EndSettings) -> io::Result<SyncDevice> {
    let device = DeviceBuilder::new()
        .name(&settings.device)
        .mtu(settings.mtu_bytes)
        .tx_queue_len(KERNEL_QUEUE_PACKETS)
        .packet_information(false)
        .offload(false)
        .enable(false)
        .build_sync()?;
    if !settings.addresses.iter().any(|subnet| subnet.address.is_ipv6()) {
        // Otherwise the kernel sends router solicitations and multicast reports over the link, and the counters include
        // them. A kernel without IPv6 has no such file and sends none of these.
        let switch = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", settings.device);
        let _ = std::fs::write(switch, "1");
    }
    for subnet in &settings.addresses {
        match subnet.address {
            IpAddr::V4(address) => device.add_address_v4(address, subnet.prefix_bits)?,
            IpAddr::V6(address) => device.add_address_v6(address, subnet.prefix_bits)?,
        }
    }
    device.enabled(true)?;
    wait_until_no_address_is_tentative(&settings.device)?;
    device.set_nonblocking(true)?;
    Ok(device)
}

/// Waits until programs can bind the device's IPv6 addresses. Fails with `TimedOut` after [`TENTATIVE_LIMIT`].
fn wait_until_no_address_is_tentative(device: &str) -> io::Result<()> {
    let deadline = Instant::now() + TENTATIVE_LIMIT;
    // A kernel without IPv6 has no such file.
    while std::fs::read_to_string(IPV6_ADDRESSES).is_ok_and(|table| has_tentative_address(&table, device)) {
        if Instant::now() > deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "an IPv6 address of the device stays tentative"));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Reads lines of `/proc/net/if_inet6`: address, device index, prefix length, scope, flags (all hexadecimal) and the
/// device's name.
fn has_tentative_address(table: &str, device: &str) -> bool {
    table.lines().any(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, _, flags, name] = columns[..] else { return false };
        name == device && u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & TENTATIVE != 0)
    })
}

/// Reads one line of /proc/net/dev: the name, then eight receive and eight transmit counters. The fourth of each counts
/// drops.
fn parse_drops(table: &str, device: &str) -> Option<KernelDrops> {
    let counters = table.lines().find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'))?;
    let counters: Vec<u64> = counters.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    // In the kernel's view the emulator's writes are receptions and its reads are transmissions.
    Some(KernelDrops { before_the_link: *counters.get(11)?, after_the_link: *counters.get(3)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_needs_an_address_and_a_prefix_length_that_fits_it() {
        assert_eq!("10.1.0.1/30".parse::<Subnet>().unwrap().to_string(), "10.1.0.1/30");
        assert_eq!("2001:db8::1/64".parse::<Subnet>().unwrap().prefix_bits, 64);
        for wrong in ["10.1.0.1", "10.1.0.1/33", "10.1.0/24", "/24", "2001:db8::1/129", ""] {
            let message = wrong.parse::<Subnet>().unwrap_err();
            assert!(message.contains("expected for example 10.1.0.1/30"), "{message}");
        }
    }

    #[test]
    fn the_kernels_drops_are_read_from_the_devices_own_line() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n \
                lo:     100       2    0    9    0     0          0         0      100       2    0    9    0     0       0          0\n \
              tun0: 7058284    5000    0    3    0     0          0         0  1234567    4000    0    5    0     0       0          0\n";
        assert_eq!(parse_drops(table, "tun0"), Some(KernelDrops { before_the_link: 5, after_the_link: 3 }));
        assert_eq!(parse_drops(table, "tun"), None);
    }

    #[test]
    fn only_a_tentative_address_of_the_device_itself_is_waited_for() {
        let table = "20010db8000000000000000000000001 02 40 00 c0     tun0\n\
                     20010db8000000000000000000000002 03 40 00 80     tun1\n";
        assert!(has_tentative_address(table, "tun0"));
        assert!(!has_tentative_address(table, "tun1"));
        assert!(!has_tentative_address(table, "tun"));
    }
}
