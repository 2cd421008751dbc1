//! The device of the link (`link.device`): its queue, and the queues that the kernel makes.

/// The handle of Longhaul's queue. Queues that the kernel makes by itself have none, and other
/// programs get theirs from `8001:` on. So this one is known among others, and removed alone.
pub(super) const HANDLE: &str = "4170:";
/// The handle of a queue that the kernel made by itself.
const OF_THE_KERNEL: &str = "0:";

/// A kind of queue that not every kernel makes. `bfifo` comes with every kernel that has queues at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueKind {
    /// A rate, and an equal share for each client and each of its connections.
    Cake,
    /// A rate.
    Htb,
    /// An equal share for each connection, and a bound on the time that packets wait.
    FqCodel,
    /// An equal share for each connection.
    Sfq,
}

impl QueueKind {
    /// All kinds, the best first.
    pub const ALL: [Self; 4] = [Self::Cake, Self::Htb, Self::FqCodel, Self::Sfq];

    /// Returns the word of `tc`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cake => "cake",
            Self::Htb => "htb",
            Self::FqCodel => "fq_codel",
            Self::Sfq => "sfq",
        }
    }
}

/// The state of the link's device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkDevice {
    /// This machine has no program `tc`.
    NoProgram,
    /// This machine has no such interface, or not yet.
    Missing,
    /// The interface exists.
    Present {
        /// Its queue.
        root: RootQueue,
        /// The kinds of queue that the kernel makes. None: this user may not try.
        kinds: Option<Vec<QueueKind>>,
        /// True if the way to all other networks is over it.
        is_default_route: bool,
    },
}

impl LinkDevice {
    /// Returns true if the kernel made its queue by itself.
    #[must_use]
    pub fn has_the_kernels_queue(&self) -> bool {
        matches!(self, Self::Present { root: RootQueue::OfTheKernel, .. })
    }
}

/// The queue of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootQueue {
    /// The kernel made it by itself, and makes it again.
    OfTheKernel,
    /// Longhaul made it.
    Ours,
    /// Somebody else made it: its kind and handle.
    Foreign(String),
}

impl RootQueue {
    /// Reads the output of `tc qdisc show dev NAME`.
    #[must_use]
    pub fn of(shown: &str) -> Self {
        let roots = shown.lines().filter(|line| line.split_whitespace().any(|word| word == "root"));
        let mut named = roots.filter_map(|line| {
            let mut words = line.strip_prefix("qdisc ")?.split_whitespace();
            Some((words.next()?, words.next()?))
        });
        match named.next() {
            None | Some((_, OF_THE_KERNEL)) => Self::OfTheKernel,
            Some((_, HANDLE)) => Self::Ours,
            Some((kind, handle)) => Self::Foreign(format!("{kind} {handle}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_of_the_kernel_has_no_handle() {
        let of = RootQueue::of;
        for shown in [
            "",
            "qdisc noqueue 0: root refcnt 2 \n",
            "qdisc mq 0: root \nqdisc fq_codel 0: parent :2 limit 10240p\nqdisc fq_codel 0: parent :1 limit 10240p\n",
            "qdisc pfifo_fast 0: root refcnt 2 bands 3 priomap 1 2 2\nqdisc ingress ffff: parent ffff:fff1 ---------------- \n",
        ] {
            assert_eq!(of(shown), RootQueue::OfTheKernel, "{shown}");
        }
        assert_eq!(
            of("qdisc htb 4170: root refcnt 2 r2q 10 default 0x1\nqdisc bfifo 4171: parent 4170:1\n"),
            RootQueue::Ours
        );
        assert_eq!(of("qdisc cake 8003: dev wan0 root refcnt 2\n"), RootQueue::Foreign("cake 8003:".to_owned()));
        // A queue of the same handle on another device is not shown.
        assert_eq!(of("qdisc mq 1: root\nqdisc htb 4170: parent 1:1\n"), RootQueue::Foreign("mq 1:".to_owned()));
    }
}
