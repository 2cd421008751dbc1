//! The time for which a packet occupies the transmitter.

use std::num::NonZeroU64;
use std::time::Duration;

/// A link's capacity in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Capacity in bits per second.
    pub bits_per_second: NonZeroU64,
    /// Framing that the link adds to each IP packet, in bytes. It takes time on the air but does not count as traffic.
    pub frame_overhead_bytes: u32,
}

impl Rate {
    /// Returns the time from the first to the last bit of a packet of this many bytes. It is rounded up to the
    /// nanosecond, so that rounding never exceeds the rate.
    pub fn serialisation(self, packet_bytes: usize) -> Duration {
        let bits = (packet_bytes as u128 + u128::from(self.frame_overhead_bytes)) * 8;
        let nanos = (bits * 1_000_000_000).div_ceil(u128::from(self.bits_per_second.get()));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bits_per_second: u64, frame_overhead_bytes: u32) -> Rate {
        Rate { bits_per_second: NonZeroU64::new(bits_per_second).unwrap(), frame_overhead_bytes }
    }

    #[test]
    fn a_full_packet_takes_its_bits_over_the_rate() {
        assert_eq!(rate(100_000_000, 0).serialisation(1500), Duration::from_micros(120));
        assert_eq!(rate(12_000, 0).serialisation(1500), Duration::from_secs(1));
    }

    #[test]
    fn framing_takes_time_too() {
        assert_eq!(rate(8_000, 18).serialisation(982), Duration::from_secs(1));
    }

    #[test]
    fn a_fraction_of_a_nanosecond_is_rounded_up() {
        assert_eq!(rate(3_000_000_000, 0).serialisation(1), Duration::from_nanos(3));
    }
}
