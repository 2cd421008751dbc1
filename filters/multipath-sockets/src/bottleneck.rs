//! Decides who bounds a connection: the application, or its links. Times and the kernel's counters in, the next congestion
//! control out. It knows no socket.
//!
//! The kernel marks the rate samples of a connection that has nothing to send, and BBR ignores them (draft-ietf-ccwg-bbr, section
//! 4.1.2.4, "Detecting application-limited phases"). Multipath TCP never marks them (Linux 6.18: `tcp_rate_check_app_limited` runs
//! in `tcp_sendmsg_locked` alone). After ten health checks, BBR believes in a link of one packet a round trip. It takes dozens of
//! round trips to find the real rate again. So BBR runs while the links bound the connection, and Reno holds the window in between:
//! it changes no window that is not used up. BBR that begins again paces by this window.

/// The shortest time between two looks, in milliseconds: half a round trip of a low orbit.
const LOOK_EVERY_MS: u32 = 20;
/// The time for which BBR stays after the last sign that the links bound the connection, in milliseconds. BBR forgets within ten
/// round trips.
const STAY_MS: u32 = 200;

/// The congestion control of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// While its links bound it.
    Bbr,
    /// While the application does.
    Reno,
}

impl Control {
    /// Returns the kernel's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bbr => "bbr",
            Self::Reno => "reno",
        }
    }
}

/// The knowledge of a connection. Times are in milliseconds since any moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its congestion control.
    pub control: Control,
    /// The time of the last look.
    pub looked_ms: u32,
    /// The time when its links bounded it last.
    pub bounded_ms: u32,
}

impl Known {
    /// A connection that has sent nothing yet, with BBR.
    pub(crate) fn begin(now_ms: u32) -> Self {
        let long_ago = now_ms.wrapping_sub(STAY_MS);
        Self { control: Control::Bbr, looked_ms: long_ago, bounded_ms: long_ago }
    }

    /// Returns true if it is time for a look.
    pub(crate) fn is_due(self, now_ms: u32) -> bool {
        now_ms.wrapping_sub(self.looked_ms) >= LOOK_EVERY_MS
    }

    /// Takes a look before bytes are written. Returns the congestion control to change to.
    pub(crate) fn look(&mut self, now_ms: u32, links_bound: bool) -> Option<Control> {
        self.looked_ms = now_ms;
        if links_bound {
            self.bounded_ms = now_ms;
        }
        let wanted = if now_ms.wrapping_sub(self.bounded_ms) < STAY_MS { Control::Bbr } else { Control::Reno };
        (self.control != wanted).then(|| {
            self.control = wanted;
            wanted
        })
    }
}

/// The head that the kernel puts before the subflows: `struct mptcp_subflow_data` of `linux/mptcp.h`.
const HEAD: usize = 16;
/// The bytes of each subflow: `struct tcp_info` of `linux/tcp.h` as far as `tcpi_notsent_bytes`.
const SUBFLOW: usize = 148;
/// The most subflows of a connection: the kernel has eight, and the first.
const MOST: usize = 9;
/// `TCP_ESTABLISHED` and `TCP_CLOSE_WAIT`: the states in which a subflow sends.
const SENDS: [u8; 2] = [1, 8];

/// Returns the head of a question to the kernel.
pub(crate) fn question() -> [u8; HEAD + MOST * SUBFLOW] {
    let mut bytes = [0; HEAD + MOST * SUBFLOW];
    // The size of the head, the number of subflows and the kernel's size of one, which it fills in, and the wanted size of one.
    let words = [HEAD, 0, 0, SUBFLOW].map(|word| u32::try_from(word).unwrap_or_default().to_ne_bytes());
    for (to, from) in bytes.iter_mut().zip(words.as_flattened()) {
        *to = *from;
    }
    bytes
}

/// Returns true if the window of a subflow is used up: bytes wait for it, or its packets under way fill it.
pub(crate) fn do_links_bound(response: &[u8]) -> bool {
    let word = |of: &[u8], at: usize| of.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let count = word(response, 4).and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
    response.get(HEAD..).unwrap_or_default().chunks_exact(SUBFLOW).take(count).any(|subflow| {
        let sends = subflow.first().is_some_and(|state| SENDS.contains(state));
        let [segment, under_way, window, waiting] = [16, 24, 80, 144].map(|at| word(subflow, at).unwrap_or_default());
        sends && (waiting >= segment || under_way >= window)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes at these times. Returns the changes, each with its time.
    fn changes(writes: impl IntoIterator<Item = (u32, bool)>) -> Vec<(u32, Control)> {
        let mut known = Known::begin(0);
        let looks = writes.into_iter().filter_map(|(at, bound)| {
            let due = known.is_due(at);
            due.then(|| known.look(at, bound).map(|to| (at, to))).flatten()
        });
        looks.collect()
    }

    #[test]
    fn health_checks_find_the_window_held_and_a_page_finds_bbr() {
        use Control::{Bbr, Reno};
        let pings = (1..60).map(|second| (second * 1000, false));
        assert_eq!(changes(pings.clone()), [(1000, Reno)], "before the first one");
        let page = (0..100).map(|at| (60_000 + at * 20, at >= 2));
        assert_eq!(changes(pings.chain(page)), [(1000, Reno), (60_040, Bbr)]);
    }

    #[test]
    fn a_download_stays_with_bbr_when_its_queue_is_empty_for_a_moment() {
        let download = (0..500).map(|at| (at * 10, at % 12 < 4));
        assert_eq!(changes(download), []);
        let slow_origin = (0..500).map(|at| (at * 10, at % 100 < 4));
        let found = changes(slow_origin);
        assert!((9..=10).contains(&found.len()), "once a second, each way: {found:?}");
    }

    #[test]
    fn writes_in_a_row_are_looked_at_seldom_and_clocks_may_begin_again() {
        let mut known = Known::begin(u32::MAX - 5);
        assert!(known.is_due(u32::MAX - 5));
        assert_eq!(known.look(u32::MAX - 5, true), None);
        assert!(!known.is_due(3));
        assert!(known.is_due(20));
        assert_eq!(known.look(20, false), None, "still within the time to stay");
        assert_eq!(known.look(300, false), Some(Control::Reno));
    }

    /// Returns a response of the kernel: state, segment, packets under way, window and waiting bytes of each subflow.
    fn response(subflows: &[(u8, u32, u32, u32, u32)]) -> Vec<u8> {
        let mut bytes = question().to_vec();
        bytes[4..8].copy_from_slice(&u32::try_from(subflows.len()).unwrap().to_ne_bytes());
        for (number, (state, segment, under_way, window, waiting)) in subflows.iter().enumerate() {
            let at = HEAD + number * SUBFLOW;
            bytes[at] = *state;
            for (place, value) in [(16, segment), (24, under_way), (80, window), (144, waiting)] {
                bytes[at + place..at + place + 4].copy_from_slice(&value.to_ne_bytes());
            }
        }
        bytes
    }

    #[test]
    fn a_full_window_or_waiting_bytes_show_that_the_links_bound_a_connection() {
        let (standby, idle) = ((1, 1448, 0, 10, 0), (1, 1448, 3, 154, 0));
        assert!(!do_links_bound(&response(&[standby, idle])));
        assert!(do_links_bound(&response(&[standby, (1, 1448, 154, 154, 0)])));
        assert!(do_links_bound(&response(&[(1, 1448, 2, 2984, 4_143_219), idle])));
        assert!(!do_links_bound(&response(&[standby, (1, 1448, 153, 154, 1447)])), "less than a segment");
        assert!(!do_links_bound(&response(&[standby, (4, 1448, 118, 1, 161_596)])), "a subflow that ends");
        assert!(!do_links_bound(&[]) && !do_links_bound(&response(&[])) && !do_links_bound(&response(&[idle])[..40]));
    }
}
