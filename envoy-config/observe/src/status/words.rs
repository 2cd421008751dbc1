//! Numbers in words, for the terminal and the page.

/// Returns a time in its two largest units.
pub fn time(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// Returns bytes in decimal units, as links count them.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.iter().find(|(factor, _)| bytes >= *factor) {
        Some((factor, unit)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(*factor);
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

/// Returns bits per second in decimal units.
pub(super) fn bit_rate(bits: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")];
    match UNITS.iter().find(|(factor, _)| bits >= *factor) {
        Some((factor, unit)) => {
            let tenths = u128::from(bits) * 10 / u128::from(*factor);
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bits} bit/s"),
    }
}

/// Returns microseconds as milliseconds. Short times have one digit behind the point.
pub(super) fn millis(micros: u64) -> String {
    if micros < 10_000 {
        let tenths = (micros + 50) / 100;
        format!("{}.{} ms", tenths / 10, tenths % 10)
    } else {
        format!("{} ms", micros.saturating_add(500) / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_its_two_largest_units() {
        assert_eq!([5, 300, 7500, 90_000].map(time), ["5 s", "5 min", "2 h 5 min", "1 d 1 h"]);
    }

    #[test]
    fn short_times_have_one_digit_behind_the_point() {
        assert_eq!(
            [0, 149, 1_250, 9_960, 10_400, 619_500].map(millis),
            ["0.0 ms", "0.1 ms", "1.3 ms", "10.0 ms", "10 ms", "620 ms"]
        );
    }

    #[test]
    fn a_size_has_one_digit_behind_the_point() {
        assert_eq!(
            [0, 999, 1_000, 1_999, 20_500_000, u64::MAX].map(size),
            ["0 B", "999 B", "1.0 kB", "1.9 kB", "20.5 MB", "18446744073.7 GB"]
        );
    }
}
