//! Calibration: measures the link from outside, with real TCP and real pings through real devices, and compares it with
//! its profile. If this fails, no figure measured on the link is valid.
//!
//! Run with `--nocapture` to see the figures: `cargo test -p longhaul-link --test calibration -- --nocapture`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]
#![allow(clippy::cast_precision_loss, reason = "bytes and times of a few seconds")]

mod bed;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bed::{Bed, Goodput, PING_BYTES, Sender, bulk, can_run, ping, with_a_sleeper};
use serde_json::Value;

/// Bytes of a full packet, including its headers.
const MTU_BYTES: f64 = 1500.0;

/// The largest relative deviation of the goodput from the rate after headers.
const GOODPUT_TOLERANCE: f64 = 0.03;

/// A lateness of a sleeper that makes a measurement of goodput invalid: packets that find the queue full cost a TCP
/// connection seconds of its rate.
const LATE: Duration = Duration::from_millis(10);

/// Threads that wake up one after the other for a ping: the link's in each direction, the far end's kernel, the sender.
/// Each is as late as the machine.
const WAKE_UPS_OF_A_PING: u32 = 4;

/// The most attempts of a measurement.
const ATTEMPTS: u32 = 3;

fn link(down_bps: u64, up_bps: u64, round_trip_ms: u64, queue_bytes: u64) -> Bed {
    link_started_by(Bed::start, (down_bps, up_bps), round_trip_ms, queue_bytes)
}

fn link_started_by(
    start: impl FnOnce(&[&str]) -> Bed,
    (down_bps, up_bps): (u64, u64),
    round_trip_ms: u64,
    queue_bytes: u64,
) -> Bed {
    let one_way = round_trip_ms as f64 / 2.0;
    let overrides = [
        format!("down = {{ rate_bps = {down_bps}, delay_ms = {one_way}, queue_bytes = {queue_bytes} }}"),
        format!("up = {{ rate_bps = {up_bps}, delay_ms = {one_way}, queue_bytes = {queue_bytes} }}"),
    ];
    start(&["--profile", "geo", "--set", &overrides[0], "--set", &overrides[1]])
}

/// Returns the part of the rate that remains after the headers of full packets.
fn expected_goodput(rate_bps: u64, measured: &Goodput) -> f64 {
    rate_bps as f64 * f64::from(measured.segment_bytes) / MTU_BYTES
}

/// The result of one attempt at a lower or upper bound that a late machine can break.
enum Attempt {
    Met,
    /// The bound was missed. This counts only if the machine was on time.
    Missed(String),
}

/// Measures up to three times, until the bound is met. Returns how late the machine was in its worst attempt if it was
/// later than `late` in each of them, and nothing if the bound was met.
///
/// A virtual machine whose host is busy stops for tens of milliseconds, with every process in it. Then pings arrive
/// late, and TCP loses packets that the link would have carried. A sleeper beside the measurement notices such stops.
///
/// # Panics
/// Every attempt missed the bound, and the machine was on time in one of them.
fn missed_by_a_late_machine(
    name: &str,
    late: Duration,
    mut measure: impl FnMut() -> Attempt + Send,
) -> Option<Duration> {
    let mut valid = None;
    let mut latest = Duration::ZERO;
    for attempt in 1..=ATTEMPTS {
        let (outcome, lateness) = with_a_sleeper(&mut measure);
        let Attempt::Missed(how) = outcome else { return None };
        println!("{name}: {how}, attempt {attempt} of {ATTEMPTS}; a sleeper woke up {lateness:?} late");
        latest = latest.max(lateness);
        if lateness <= late {
            valid = Some(how);
        }
    }
    assert!(valid.is_none(), "{name}: {} in each of {ATTEMPTS} attempts", valid.unwrap_or_default());
    Some(latest)
}

/// Measures TCP transfers, each on a new link, and compares them with the rate. Exceeding the rate is always a failure.
/// On a machine that is late each time, the best attempt must reach half of the rate.
fn check_goodput(
    name: &str,
    rate_bps: u64,
    start: impl Fn() -> Bed + Sync,
    sender: Sender,
    lengths: (Duration, Duration),
) {
    let mut best = f64::NEG_INFINITY;
    let late = missed_by_a_late_machine(name, LATE, || {
        let bed = start();
        let measured = bulk(&bed, sender, lengths.0, lengths.1);
        let statistics = bed.stop();
        let expected = expected_goodput(rate_bps, &measured);
        let off = measured.bits_per_second / expected - 1.0;
        println!(
            "{name}: goodput {:.0} bit/s, expected {expected:.0} ({:+.2} %); processor {:.1} of {:.1} s; lateness up {} down {}",
            measured.bits_per_second,
            off * 100.0,
            statistics["cpu_s"].as_f64().unwrap(),
            statistics["elapsed_s"].as_f64().unwrap(),
            statistics["up"]["lateness"],
            statistics["down"]["lateness"],
        );
        check_honesty(name, &statistics);
        assert!(off <= GOODPUT_TOLERANCE, "{name}: goodput is {:+.2} % off", off * 100.0);
        best = best.max(off);
        if off < -GOODPUT_TOLERANCE {
            return Attempt::Missed(format!("goodput is {:+.2} % off", off * 100.0));
        }
        Attempt::Met
    });
    assert!(late.is_none() || best >= -0.5, "{name}: goodput is {:+.2} % off at best", best * 100.0);
}

/// Fails if the run is invalid: the kernel lost packets outside the emulator, or packets are longer than the link
/// allows.
fn check_honesty(name: &str, statistics: &Value) {
    for counter in ["/kernel_drops_a", "/kernel_drops_b"] {
        let drops = statistics.pointer(counter).expect("the counter is there");
        assert_eq!(drops["before_the_link"], 0, "{name}: the kernel lost packets: {drops}");
        assert_eq!(drops["after_the_link"], 0, "{name}: the kernel lost packets: {drops}");
    }
    for way in ["up", "down"] {
        assert_eq!(statistics[way]["dropped"]["too_long"]["packets"], 0, "{name}: segmentation offload is on");
        assert_eq!(statistics[way]["dropped"]["device_refused"]["packets"], 0, "{name}");
    }
}

/// Compares the median of some pings with the delay. A ping that is too fast is always a failure. On a machine that is
/// late each time, the fastest ping may be as late as the wake-ups that it takes.
fn check_ping(name: &str, bed: &Bed, count: u16, (down_bps, up_bps): (u64, u64), round_trip_ms: u64) {
    // A ping is a packet, so it takes time on the air in both directions.
    let on_air = |rate_bps: u64| PING_BYTES as f64 * 8.0 / rate_bps as f64 * 1e3;
    let set_ms = round_trip_ms as f64;
    let expected_ms = set_ms + on_air(down_bps) + on_air(up_bps);
    let tolerance_ms = 2.0 + 0.01 * set_ms;
    let mut fastest_ms = f64::INFINITY;
    let late = Duration::from_secs_f64(tolerance_ms / 1e3) / WAKE_UPS_OF_A_PING;
    let late = missed_by_a_late_machine(name, late, || {
        let mut times_ms: Vec<f64> = ping(bed, count).iter().map(|time| time.as_secs_f64() * 1e3).collect();
        times_ms.sort_unstable_by(f64::total_cmp);
        let (first_ms, median_ms) = (times_ms[0], times_ms[times_ms.len() / 2]);
        println!(
            "{name}: ping min {first_ms:.2} median {median_ms:.2} max {:.2} ms, expected {expected_ms:.2} +- {tolerance_ms:.2}",
            times_ms[times_ms.len() - 1],
        );
        assert!(first_ms >= expected_ms - tolerance_ms, "{name}: a ping of {first_ms} ms");
        fastest_ms = fastest_ms.min(first_ms);
        if median_ms > expected_ms + tolerance_ms {
            return Attempt::Missed(format!("median {median_ms} ms"));
        }
        Attempt::Met
    });
    let Some(late) = late else { return };
    let excused_ms = (late * WAKE_UPS_OF_A_PING).as_secs_f64() * 1e3;
    assert!(fastest_ms <= expected_ms + tolerance_ms + excused_ms, "{name}: {fastest_ms} ms at best");
}

#[test]
fn a_link_of_35_kbits_carries_that_much_and_takes_the_time_set() {
    if !can_run("calibration at 35 kbit/s") {
        return;
    }
    let name = "35 kbit/s, 600 ms";
    let start = || link(35_000, 35_000, 600, 64_000);
    check_ping(name, &start(), 5, (35_000, 35_000), 600);
    check_goodput(name, 35_000, start, Sender::B, (Duration::from_secs(4), Duration::from_secs(14)));
}

#[test]
fn a_link_of_100_mbits_carries_that_much_both_ways_and_takes_the_time_set() {
    if !can_run("calibration at 100 Mbit/s") {
        return;
    }
    let rates = (100_000_000, 100_000_000);
    let name = "100 Mbit/s, 40 ms";
    // A queue of 80 ms keeps the packets that arrive while the machine stops. A loss holds TCP's reader up for a round
    // trip with a full queue, which must stay within the tolerance.
    let start = || link(rates.0, rates.1, 40, 1_000_000);
    check_ping(name, &start(), 20, rates, 40);
    for sender in [Sender::B, Sender::A] {
        let lengths = (Duration::from_secs(3), Duration::from_secs(6));
        check_goodput(&format!("{name}, {sender:?} sends"), 100_000_000, start, sender, lengths);
    }
    let name = "100 Mbit/s, 600 ms";
    check_ping(name, &link(rates.0, rates.1, 600, 7_500_000), 5, rates, 600);
}

#[test]
fn a_link_without_delay_adds_less_than_two_milliseconds() {
    if !can_run("calibration without delay") {
        return;
    }
    let bed = link(1_000_000_000, 1_000_000_000, 0, 1_000_000);
    check_ping("1 Gbit/s, 0 ms", &bed, 50, (1_000_000_000, 1_000_000_000), 0);
}

/// Not a test: it produces the figures for a paragraph of the README.
#[test]
#[ignore = "shows what the real-time priority is worth; needs setpriv and a machine to itself"]
fn beside_busy_processes_with_and_without_real_time_priority() {
    if !can_run("with and without real-time priority") {
        return;
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let _stop = StopOnDrop(&stop);
        for start in [Bed::start_ordinary, Bed::start] {
            let bed = link_started_by(start, (100_000_000, 100_000_000), 40, 500_000);
            let measured = bulk(&bed, Sender::B, Duration::from_secs(3), Duration::from_secs(6));
            let statistics = bed.stop();
            println!(
                "{}: {:+.2} % off; lateness {}",
                statistics["scheduling"],
                (measured.bits_per_second / expected_goodput(100_000_000, &measured) - 1.0) * 100.0,
                statistics["down"]["lateness"],
            );
        }
    });
}

/// Ends the busy threads even if a measurement fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
