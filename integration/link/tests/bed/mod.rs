//! Two namespaces with a running emulator between them, and the few network tools that the tests need. So the tests
//! need no package but iproute2. Dropping a [`Bed`] removes everything, even after a failure.

#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::cast_precision_loss, reason = "bytes of a few seconds")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_link::scheduling::{Rank, be_prompt};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};

/// The emulator under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_longhaul-link");

/// Address of end A in every bed.
pub(crate) const A: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Address of end B.
pub(crate) const B: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// Returns true if tests that need root and network namespaces can run. Otherwise it prints the reason and records it
/// for `make test`. It fails where skipping is not allowed.
pub(crate) fn can_run(test: &str) -> bool {
    let reason = if !Uid::effective().is_root() {
        "needs root, to make network namespaces"
    } else if Command::new("ip").arg("-V").output().is_err() {
        "needs the program ip (Debian package iproute2)"
    } else if !std::path::Path::new("/dev/net/tun").exists() {
        "needs /dev/net/tun"
    } else {
        return true;
    };
    eprintln!("SKIPPED {test}: {reason}");
    if let Some(path) = std::env::var_os("LONGHAUL_SKIPS") {
        let line = format!("longhaul-link {test}: {reason}\n");
        let noted =
            File::options().create(true).append(true).open(path).and_then(|mut file| file.write_all(line.as_bytes()));
        noted.expect("the skip can be noted");
    }
    assert!(std::env::var_os("LONGHAUL_REQUIRE_ALL").is_none(), "{test} must not be skipped here: {reason}");
    false
}

/// Makes tests use beds one at a time, because a measurement must not share the machine with another test.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A pair of namespaces, A and B.
pub(crate) struct Namespaces {
    pub(crate) a: String,
    pub(crate) b: String,
    _turn: MutexGuard<'static, ()>,
}

impl Namespaces {
    pub(crate) fn new() -> Self {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("lhl-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let namespaces = Self { a: format!("{name}-a"), b: format!("{name}-b"), _turn: turn };
        ip(&["netns", "add", &namespaces.a]);
        ip(&["netns", "add", &namespaces.b]);
        namespaces
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in [&self.a, &self.b] {
            // A failed test must still clean up what it can.
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

/// Runs the program `ip` and returns its output.
pub(crate) fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().expect("ip runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "ip {}: {error}", arguments.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The emulator, running between two namespaces.
pub(crate) struct Bed {
    pub(crate) child: Child,
    pub(crate) ready: String,
    output: BufReader<ChildStdout>,
    pub(crate) control: PathBuf,
    // Last, so that the namespaces are removed after the processes in them.
    pub(crate) namespaces: Namespaces,
}

impl Bed {
    /// Starts the emulator with these arguments and those that name the ends, and waits until it is ready.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let namespaces = Namespaces::new();
        let command = command(&namespaces);
        Self::start_command(namespaces, command, arguments)
    }

    /// Starts the emulator without the right to a real-time priority.
    pub(crate) fn start_ordinary(arguments: &[&str]) -> Self {
        let namespaces = Namespaces::new();
        let plain = command(&namespaces);
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", "-sys_nice"]).arg(plain.get_program()).args(plain.get_args());
        Self::start_command(namespaces, command, arguments)
    }

    fn start_command(namespaces: Namespaces, mut command: Command, arguments: &[&str]) -> Self {
        let control = std::env::temp_dir().join(format!("{}.sock", namespaces.a));
        let mut child = command
            .arg("--control")
            .arg(&control)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the emulator starts");
        let mut output = BufReader::new(child.stdout.take().expect("its output is piped"));
        let mut ready = String::new();
        output.read_line(&mut ready).expect("its output can be read");
        assert!(ready.starts_with("ready "), "instead of a ready line: {ready:?}");
        Self { child, ready, output, control, namespaces }
    }

    /// Sends a command and returns the reply.
    pub(crate) fn tell(&self, command: &str) -> Value {
        let answer = longhaul_link::control::send(&self.control, command).expect("the emulator replies");
        serde_json::from_str(&answer).expect("in JSON")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"));
        kill(pid, signal).expect("the emulator runs");
    }

    /// Returns the next line of the emulator's output, as JSON.
    pub(crate) fn next_json(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("its output can be read");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// Stops the emulator as an operator would and returns its statistics.
    pub(crate) fn stop(mut self) -> Value {
        self.signal(Signal::SIGTERM);
        let statistics = self.next_json();
        assert!(self.child.wait().expect("it ends").success());
        statistics
    }

    pub(crate) fn in_a<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        in_namespace(&self.namespaces.a, act)
    }

    pub(crate) fn in_b<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        in_namespace(&self.namespaces.b, act)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.control);
    }
}

/// Returns the emulator's command line for these namespaces.
pub(crate) fn command(namespaces: &Namespaces) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["--exit-with-parent", "--a-netns", &namespaces.a, "--b-netns", &namespaces.b]);
    command.args(["--a-addr", &format!("{A}/30"), "--b-addr", &format!("{B}/30")]);
    command
}

/// Runs `act` on a thread inside a namespace. Sockets created there stay there.
pub(crate) fn in_namespace<T: Send>(name: &str, act: impl FnOnce() -> T + Send) -> T {
    let namespace = File::open(format!("/run/netns/{name}")).expect("the namespace is there");
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            setns(namespace, CloneFlags::CLONE_NEWNET).expect("it can be entered");
            act()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Returns a UDP socket in a namespace, with a read timeout of 10 s.
pub(crate) fn udp(namespace: &str, address: Ipv4Addr, port: u16) -> UdpSocket {
    let socket = in_namespace(namespace, || UdpSocket::bind((address, port)).expect("the address is free"));
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout can be set");
    socket
}

/// Bytes of the smallest ping: IP and ICMP headers.
pub(crate) const PING_BYTES: usize = 28;

/// Returns the round-trip times of pings from A to B, one after the other. The kernel replies.
pub(crate) fn ping(bed: &Bed, count: u16) -> Vec<Duration> {
    let socket = bed.in_a(|| Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).expect("root may"));
    socket.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout can be set");
    socket.connect(&SocketAddr::from((B, 0)).into()).expect("there is a route");
    let mut socket = socket;
    promptly(move || (0..count).map(|sequence| one_ping(&mut socket, sequence)).collect())
}

fn one_ping(socket: &mut Socket, sequence: u16) -> Duration {
    let request = echo_request(sequence);
    let sent = Instant::now();
    socket.write_all(&request).expect("it is sent");
    loop {
        let mut answer = [0; 100];
        let length = socket.read(&mut answer).expect("a reply within a minute");
        // After the IP header of 20 bytes: an echo reply (type 0) with the expected sequence number.
        if length >= PING_BYTES && answer[20] == 0 && answer[26..28] == sequence.to_be_bytes() {
            return sent.elapsed();
        }
    }
}

/// Measures on a thread with a real-time priority. On a busy machine an ordinary thread receives a reply many
/// milliseconds after its arrival, and the measurement would blame the link.
fn promptly<T: Send>(measure: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            be_prompt(Rank::Measuring);
            measure()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs `act` beside a thread with a real-time priority that sleeps a millisecond at a time. Returns the greatest
/// lateness, which is the time in which the machine ran none of our threads.
pub(crate) fn with_a_sleeper<T: Send>(act: impl FnOnce() -> T + Send) -> (T, Duration) {
    const NAP: Duration = Duration::from_millis(1);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            promptly(|| {
                let mut latest = Duration::ZERO;
                while !done.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    thread::sleep(NAP);
                    latest = latest.max(began.elapsed().saturating_sub(NAP));
                }
                latest
            })
        });
        // Catches a panic, because otherwise the scope would wait for the sleeper for ever.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        done.store(true, Ordering::Relaxed);
        let lateness = sleeper.join().expect("the sleeper ends");
        (result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), lateness)
    })
}

/// Returns an ICMP echo request without payload (RFC 792), with its checksum (RFC 1071).
fn echo_request(sequence: u16) -> Vec<u8> {
    let words: [u16; 4] = [0x0800, 0, 0x1234, sequence];
    let sum: u32 = words.iter().map(|word| u32::from(*word)).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !u16::try_from(folded & 0xffff).expect("16 bits");
    [words[0], checksum, words[2], words[3]].iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The end that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    A,
    B,
}

/// The result of a bulk transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goodput {
    /// Payload bits per second, between the first and the last read after the warm-up.
    pub(crate) bits_per_second: f64,
    /// The connection's payload bytes in a full packet.
    pub(crate) segment_bytes: u32,
}

/// Sends as fast as one TCP connection can, and measures the arrivals after the warm-up.
pub(crate) fn bulk(bed: &Bed, sender: Sender, warm_up: Duration, measured: Duration) -> Goodput {
    let (sends, receives, address) = match sender {
        Sender::A => (&bed.namespaces.a, &bed.namespaces.b, B),
        Sender::B => (&bed.namespaces.b, &bed.namespaces.a, A),
    };
    let listener = in_namespace(receives, || TcpListener::bind((address, 5001)).expect("the port is free"));
    let to = SocketAddr::V4(SocketAddrV4::new(address, 5001));
    thread::scope(|scope| {
        let sending = scope.spawn(move || {
            be_prompt(Rank::Measuring);
            let socket = in_namespace(sends, || {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
                // The machine's default may pace below the rate (BBR stays 1 % below the rate that it measures).
                socket.set_tcp_congestion(b"cubic").expect("cubic is always there");
                socket.connect(&to.into()).expect("the other end accepts");
                socket
            });
            let segment_bytes = socket.tcp_mss().expect("it has a segment size");
            let mut stream = TcpStream::from(socket);
            let chunk = vec![0; 65_536];
            while stream.write_all(&chunk).is_ok() {}
            segment_bytes
        });
        let mut stream = accept(&listener);
        let bits_per_second = promptly(|| receive_rate(&mut stream, warm_up, measured));
        // A reset stops the sender at once. The data still on the link does not matter.
        let stream = Socket::from(stream);
        stream.set_linger(Some(Duration::ZERO)).expect("a reset can be set");
        drop(stream);
        let segment_bytes = sending.join().expect("the sender ends");
        Goodput { bits_per_second, segment_bytes }
    })
}

/// Returns the bits per second between the first and the last read after the warm-up.
fn receive_rate(stream: &mut TcpStream, warm_up: Duration, measured: Duration) -> f64 {
    let mut buffer = vec![0; 1 << 20];
    let began = Instant::now();
    let mut first = None;
    let mut last = began;
    let mut bytes = 0;
    while began.elapsed() < warm_up + measured {
        let length = stream.read(&mut buffer).expect("the transfer goes on");
        last = Instant::now();
        if first.is_some() {
            bytes += length;
        } else if began.elapsed() >= warm_up {
            first = Some(last);
        }
    }
    let time = last.duration_since(first.expect("something came after the warm-up"));
    bytes as f64 * 8.0 / time.as_secs_f64()
}

/// Returns the next connection. Fails if none arrives, where a plain accept would wait for ever.
pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).expect("it can be non-blocking");
    let mut accepted = None;
    eventually("a client connects", || {
        accepted = listener.accept().ok();
        accepted.is_some()
    });
    let (stream, _) = accepted.expect("a client connected");
    stream.set_nonblocking(false).expect("its reads wait");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("but not for ever");
    stream
}

/// Returns the first block of this kind in the README.
pub(crate) fn readme_block(kind: &str) -> &'static str {
    let readme = include_str!("../../README.md");
    let (_, rest) = readme.split_once(&format!("```{kind}\n")).expect("the README has such a block");
    rest.split_once("\n```").expect("and it ends").0
}

/// Waits until `is_so` returns true. Fails after 30 s.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < patience, "not within half a minute: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
