//! The event loop. It reads packets from the devices, passes them through the two directions, and writes them when they
//! are due.
//!
//! It sleeps in `epoll` until a packet or a command arrives, or until the timer fires. The timer leads to the moment
//! at which the next packet is due, in nanoseconds on the monotonic clock. One thread is enough and needs no locks: 100
//! Mbit/s takes a third of a core, most of it in the kernel (README).

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::{TimeSpec, TimeVal, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::Way;
use crate::capture::Capture;
use crate::control::{Command, ControlSocket, Reply};
use crate::direction::Direction;
use crate::end::End;
use crate::impairment::outage::Outage;
use crate::observe::Tap;
use crate::profile::Profile;
use crate::random::Seed;
use crate::scheduling::{Rank, Scheduling, be_prompt};
use crate::statistics::{DirectionStatistics, Statistics};
use crate::time::Moment;

/// Packets that the loop reads from one device before the other sources get their turn.
const READS_PER_TURN: usize = 64;

/// Bytes of the longest packet that a TUN device can deliver.
const LONGEST_PACKET_BYTES: usize = 65_536;

/// The source of an event that wakes the loop.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
enum Source {
    EndA = 1,
    EndB = 2,
    Timer = 3,
    Signal = 4,
    Control = 5,
}

/// Why the loop returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// SIGINT or SIGTERM: stop.
    Stop,
    /// SIGUSR1: write the statistics and go on.
    Report,
}

/// Blocks the signals that the loop handles, and returns them. Call it before any thread starts.
pub fn block_signals() -> nix::Result<SigSet> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGUSR1);
    signals.thread_block()?;
    Ok(signals)
}

/// The settings of a link, besides its two ends.
#[derive(Debug)]
pub struct Settings {
    /// Name or path of the profile, for the report.
    pub profile_name: String,
    /// Properties of the link.
    pub profile: Profile,
    /// Seed of all random decisions.
    pub seed: Seed,
    /// Source of commands.
    pub control: Option<ControlSocket>,
    /// Capture files of end A and end B.
    pub capture_files: (Option<PathBuf>, Option<PathBuf>),
    /// Length of the slices of time in which the engine counts bytes.
    pub timeline_slice: Option<Duration>,
}

/// A running link.
pub struct Engine {
    profile_name: String,
    seed: Seed,
    a: End,
    b: End,
    up: Direction,
    down: Direction,
    tap: Tap,
    captures: (Option<Capture>, Option<Capture>),
    control: Option<ControlSocket>,
    scheduling: Scheduling,
    signals: SignalFd,
    timer: TimerFd,
    armed: Option<Moment>,
    epoll: Epoll,
    started: Instant,
    counting_since: Moment,
    buffer: Vec<u8>,
}

impl Engine {
    /// Creates a link between two ends. `signals` comes from [`block_signals`].
    pub fn new(settings: Settings, (a, b): (End, End), signals: &SigSet) -> io::Result<Self> {
        let signals = SignalFd::with_flags(signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        watch(&epoll, &a, Source::EndA)?;
        watch(&epoll, &b, Source::EndB)?;
        watch(&epoll, &timer, Source::Timer)?;
        watch(&epoll, &signals, Source::Signal)?;
        if let Some(control) = &settings.control {
            watch(&epoll, control.wake.as_ref(), Source::Control)?;
        }
        let Settings { profile_name, profile, seed, control, capture_files, timeline_slice } = settings;
        let direction = |way, direction| {
            let outages = profile.outages.iter().filter(|(affects, _)| affects.includes(way));
            let outages = outages.map(|(_, outage)| *outage).collect();
            Direction::new(way, direction, outages, usize::from(profile.mtu_bytes), seed).with_timeline(timeline_slice)
        };
        let (up, down) = (direction(Way::Up, &profile.up), direction(Way::Down, &profile.down));
        let started = Instant::now();
        let wall_clock = SystemTime::now();
        let capture = |path: Option<PathBuf>| path.map(|path| Capture::create(&path, wall_clock)).transpose();
        Ok(Self {
            profile_name,
            seed,
            a,
            b,
            up,
            down,
            tap: Tap::default(),
            captures: (capture(capture_files.0)?, capture(capture_files.1)?),
            control,
            signals,
            timer,
            armed: None,
            epoll,
            started,
            counting_since: Moment::START,
            buffer: vec![0; LONGEST_PACKET_BYTES],
            // This comes last. Every thread that starts later inherits the priority, and the capture writers above need
            // none.
            scheduling: be_prompt(Rank::Link),
        })
    }

    /// Carries packets until a signal arrives. An error means that a device is gone.
    pub fn run(&mut self) -> io::Result<Woken> {
        loop {
            self.sleep()?;
            self.receive(Way::Up)?;
            self.receive(Way::Down)?;
            self.deliver(Way::Up)?;
            self.deliver(Way::Down)?;
            self.obey();
            if let Some(signal) = self.signals.read_signal()? {
                let report = i64::from(signal.ssi_signo) == Signal::SIGUSR1 as i64;
                return Ok(if report { Woken::Report } else { Woken::Stop });
            }
        }
    }

    /// Returns the scheduling of the event loop.
    pub fn scheduling(&self) -> Scheduling {
        self.scheduling
    }

    /// Stops the link and closes the captures. Returns the number of packets that are missing from them.
    pub fn finish(self) -> io::Result<u64> {
        let missing = |capture: Option<Capture>| capture.map_or(Ok(0), Capture::finish);
        Ok(missing(self.captures.0)? + missing(self.captures.1)?)
    }

    /// Returns all counters.
    pub fn statistics(&mut self) -> Statistics {
        let now = self.now();
        self.up.advance(now);
        self.down.advance(now);
        Statistics {
            profile: self.profile_name.clone(),
            scheduling: self.scheduling,
            seed: self.seed.0,
            elapsed_s: now.since(self.counting_since).as_secs_f64(),
            cpu_s: cpu_seconds(),
            up: DirectionStatistics::new(&self.up),
            down: DirectionStatistics::new(&self.down),
            kernel_drops_a: self.a.kernel_drops(),
            kernel_drops_b: self.b.kernel_drops(),
            observed: self.tap.report(self.counting_since),
        }
    }

    fn now(&self) -> Moment {
        Moment::after_start(self.started.elapsed())
    }

    fn sleep(&mut self) -> io::Result<()> {
        let next = match (self.up.next_event(), self.down.next_event()) {
            (Some(up), Some(down)) => Some(up.min(down)),
            (one, other) => one.or(other),
        };
        let now = self.now();
        let timeout = match next {
            Some(moment) if moment <= now => EpollTimeout::ZERO,
            Some(moment) => {
                if self.armed != next {
                    let wait = first_wait(moment.since(now));
                    self.timer.set(Expiration::OneShot(TimeSpec::from_duration(wait)), TimerSetTimeFlags::empty())?;
                    self.armed = next;
                }
                EpollTimeout::NONE
            }
            None => EpollTimeout::NONE,
        };
        let mut events = [EpollEvent::empty(); 8];
        let woken = match self.epoll.wait(&mut events, timeout) {
            Ok(woken) => woken,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        if events.iter().take(woken).any(|event| event.data() == Source::Timer as u64) {
            // Reading the timer clears its event. The next turn of the loop sets it again.
            self.timer.wait()?;
            self.armed = None;
        }
        Ok(())
    }

    fn receive(&mut self, way: Way) -> io::Result<()> {
        for _ in 0..READS_PER_TURN {
            let from = match way {
                Way::Up => &self.a,
                Way::Down => &self.b,
            };
            let length = match from.receive(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let now = self.now();
            let Some(packet) = self.buffer.get(..length) else { continue };
            self.tap.see(now, way, packet);
            let (direction, capture) = match way {
                Way::Up => (&mut self.up, &mut self.captures.0),
                Way::Down => (&mut self.down, &mut self.captures.1),
            };
            if let Some(capture) = capture {
                capture.record(now, packet);
            }
            direction.offer(now, packet.to_vec());
        }
        Ok(())
    }

    fn deliver(&mut self, way: Way) -> io::Result<()> {
        loop {
            let now = self.now();
            let (direction, to, capture) = match way {
                Way::Up => (&mut self.up, &self.b, &mut self.captures.1),
                Way::Down => (&mut self.down, &self.a, &mut self.captures.0),
            };
            let Some(delivery) = direction.deliver(now) else { return Ok(()) };
            if let Some(capture) = capture {
                capture.record(now, &delivery.packet);
            }
            match to.send(&delivery.packet) {
                Ok(_) => {}
                Err(error) if is_gone(&error) => return Err(error),
                Err(_) => direction.refused_by_device(delivery.packet.len()),
            }
        }
    }

    fn obey(&mut self) {
        let Some(control) = &self.control else { return };
        // The counter only wakes the loop; the commands are in the channel.
        let _ = control.wake.read();
        while let Some(request) = self.control.as_ref().and_then(|control| control.requests.try_recv().ok()) {
            let reply = match request.command {
                Command::Stats => Reply::Statistics(Box::new(self.statistics())),
                Command::Reset => {
                    let statistics = self.statistics();
                    let now = self.now();
                    self.up.reset_counters(now);
                    self.down.reset_counters(now);
                    self.tap.restart();
                    self.counting_since = now;
                    Reply::Statistics(Box::new(statistics))
                }
                Command::Outage { length, kind, affects } => {
                    let now = self.now();
                    let outage = Outage { start: now, length, every: None, kind };
                    for (way, direction) in [(Way::Up, &mut self.up), (Way::Down, &mut self.down)] {
                        if affects.includes(way) {
                            direction.begin_outage(now, outage);
                        }
                    }
                    Reply::Done { done: "outage" }
                }
            };
            // The send fails only if the client did not wait for the reply.
            let _ = request.reply.send(reply);
        }
    }
}

/// Returns the user and system time of this process in seconds.
fn cpu_seconds() -> f64 {
    let seconds = |time: TimeVal| time.num_microseconds() as f64 / 1e6;
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// The wait for which the timer is set, of a wait of this length. A long wait ends a little early, and the next turn of
/// the loop sets the timer for the rest.
///
/// On some virtual machines the clock and the timer run at rates that differ by up to a hundredth. A timer of 300 ms is
/// then 3 ms late, and one of 5 ms by 0.05 ms.
fn first_wait(wait: Duration) -> Duration {
    const SHORT: Duration = Duration::from_millis(5);
    if wait <= SHORT { wait } else { wait.saturating_sub((wait / 64).max(SHORT / 2)) }
}

fn watch(epoll: &Epoll, what: impl AsFd, source: Source) -> nix::Result<()> {
    epoll.add(what, EpollEvent::new(EpollFlags::EPOLLIN, source as u64))
}

/// Returns true if a device no longer exists, for example because an operator deleted it.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EBADFD as i32)
}
