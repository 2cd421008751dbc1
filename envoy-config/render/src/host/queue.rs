//! The kernel's queue on the device of the link (`link.device`).
//!
//! Only the kernel sees all that crosses the link. The steps choose the best queue that this kernel makes, and leave a
//! device alone whose queue somebody else chose.

use longhaul_config::{Role, Settings};
use longhaul_derive::{ClientAddress, Derived, LinkQueue, Shaping};

use super::machine::Machine;
use super::plan::{Action, LeftOut, Step};

/// The handle of Longhaul's queue, and of the queue below it. Queues that the kernel makes by itself have none, and other
/// programs get theirs from `8001:` on. So this one is known among others, and removed alone.
const HANDLE: &str = "4170:";
const CLASS: &str = "4170:1";
const LEAF: &str = "4171:";
/// The handle of a queue that the kernel made by itself.
const OF_THE_KERNEL: &str = "0:";
/// The bytes of a whole packet of Ethernet. `htb` lends this much to one queue at a time.
const PACKET_BYTES: u64 = 1514;
/// The least bytes of a queue without fairness. A shorter one drops what a slow link needs to be full.
const LEAST_FIFO_BYTES: u64 = 16 * PACKET_BYTES;

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

/// Returns the step that shapes the link's device, and what is left out.
pub(super) fn shape(settings: &Settings, derived: &Derived, machine: &Machine) -> (Option<Step>, Vec<LeftOut>) {
    let shaping = match &derived.link_queue {
        LinkQueue::Off => return (None, Vec::new()),
        LinkQueue::Unshaped(why) => {
            let why = format!("`link.device` gets no queue: {}", why.reason());
            return (None, vec![LeftOut { why, commands: Vec::new() }]);
        }
        LinkQueue::Shaped(shaping) => shaping,
    };
    match obstacle(settings, shaping, machine) {
        Some(why) => (None, vec![LeftOut { why, commands: vec![cake(shaping)] }]),
        None => shaped(shaping, machine),
    }
}

/// Returns the reason for leaving the device alone.
fn obstacle(settings: &Settings, shaping: &Shaping, machine: &Machine) -> Option<String> {
    let device = &shaping.device;
    let (root, kinds) = match &machine.link {
        None | Some(LinkDevice::Missing) => return Some(format!("this machine has no interface `{device}`")),
        Some(LinkDevice::NoProgram) => {
            return Some(format!("{device} gets no queue without the program `tc` (package iproute2 or iproute-tc)"));
        }
        Some(LinkDevice::Present { root, kinds, .. }) => (root, kinds.as_deref()),
    };
    let leads_to_clients = machine.clients.iter().any(|one| one.name == device.as_str());
    if matches!(settings.role, Role::Remote(_)) && leads_to_clients {
        return Some(format!("{device} leads to the clients of this box: a queue would slow down what they receive"));
    }
    if let RootQueue::Foreign(queue) = root {
        return Some(format!("{device} has the queue `{queue}`, which somebody else made and which stays"));
    }
    let has = |kind| kinds.is_none_or(|kinds| kinds.contains(&kind));
    (!has(QueueKind::Cake) && !has(QueueKind::Htb))
        .then(|| format!("this kernel limits no rate: it makes neither `cake` nor `htb`, so {device} gets no queue"))
}

fn shaped(shaping: &Shaping, machine: &Machine) -> (Option<Step>, Vec<LeftOut>) {
    let Some(LinkDevice::Present { root, kinds, .. }) = &machine.link else { return (None, Vec::new()) };
    let has = |kind| kinds.as_ref().is_some_and(|kinds| kinds.contains(&kind));
    let device = shaping.device.as_str();
    let (made, gets) = if kinds.is_none() || has(QueueKind::Cake) {
        (vec![cake(shaping)], "each client has an equal share")
    } else if has(QueueKind::FqCodel) {
        (htb(shaping, &fq_codel(shaping)), "each connection has an equal share")
    } else if has(QueueKind::Sfq) {
        (htb(shaping, "sfq perturb 60"), "each connection has an equal share")
    } else {
        (htb(shaping, &fifo(shaping)), "nobody has a share")
    };
    let undo = words(&format!("tc qdisc del dev {device} root handle {HANDLE}"));
    let again = (*root == RootQueue::Ours).then(|| undo.clone());
    let why = format!("{device} sends at most {}, {}; {gets}", shaping.rate, shaping.formula);
    let step = Step { why, action: Action::Queue { commands: again.into_iter().chain(made).collect(), undo } };
    let missing = if kinds.is_none() {
        Some("this user may not try which queues this kernel makes; root may")
    } else if has(QueueKind::Cake) {
        None
    } else if has(QueueKind::FqCodel) || has(QueueKind::Sfq) {
        Some("this kernel makes no `cake`, so a client with many connections has a larger share")
    } else {
        Some("this kernel makes no fair queue (`cake`, `fq_codel`, `sfq`), so one client can take most of the link")
    };
    let left_out = missing.map(|why| LeftOut {
        why: why.to_owned(),
        commands: if kinds.is_none() { Vec::new() } else { vec![cake(shaping)] },
    });
    (Some(step), left_out.into_iter().collect())
}

/// Returns the command for `cake`. `besteffort`: a client that marks its own packets as urgent gets no more than others.
fn cake(shaping: &Shaping) -> Vec<String> {
    let Shaping { device, rate, round_trip, .. } = shaping;
    let clients = match shaping.client {
        ClientAddress::Source => "dual-srchost nat",
        ClientAddress::Destination => "dual-dsthost",
    };
    words(&format!(
        "tc qdisc add dev {device} root handle {HANDLE} cake bandwidth {}bit besteffort {clients} rtt {}ms",
        rate.bits_per_second,
        round_trip.as_millis()
    ))
}

/// Returns the commands for a rate above the queue `leaf`. The bursts are a millisecond of the rate.
fn htb(shaping: &Shaping, leaf: &str) -> Vec<Vec<String>> {
    let Shaping { device, rate, .. } = shaping;
    let bits = rate.bits_per_second;
    let burst = (bits / 8000).max(PACKET_BYTES);
    let commands = [
        format!("tc qdisc add dev {device} root handle {HANDLE} htb default 1"),
        format!(
            "tc class add dev {device} parent {HANDLE} classid {CLASS} htb rate {bits}bit ceil {bits}bit burst {burst} \
             cburst {burst} quantum {PACKET_BYTES}"
        ),
        format!("tc qdisc add dev {device} parent {CLASS} handle {LEAF} {leaf}"),
    ];
    commands.iter().map(|command| words(command)).collect()
}

fn fq_codel(shaping: &Shaping) -> String {
    format!("fq_codel interval {}ms target {}ms", shaping.round_trip.as_millis(), shaping.target.as_millis())
}

/// Returns a queue of at most a round trip: it keeps the link full, and no longer wait helps anybody.
fn fifo(shaping: &Shaping) -> String {
    format!("bfifo limit {}", shaping.rate.bytes_in(shaping.round_trip).max(LEAST_FIFO_BYTES))
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use longhaul_config::load_text;
    use longhaul_derive::{HostFacts, derive};

    use super::super::plan::{Plan, plan};
    use super::super::{ClientInterface, script};
    use super::*;

    const KERNELS: [(&str, &[QueueKind]); 5] = [
        ("cake", &QueueKind::ALL),
        ("fq_codel", &[QueueKind::Htb, QueueKind::FqCodel, QueueKind::Sfq]),
        ("sfq", &[QueueKind::Htb, QueueKind::Sfq]),
        ("bfifo", &[QueueKind::Htb]),
        ("nothing", &[QueueKind::FqCodel, QueueKind::Sfq]),
    ];

    fn present(root: RootQueue, kinds: &[QueueKind]) -> LinkDevice {
        LinkDevice::Present { root, kinds: Some(kinds.to_vec()), is_default_route: false }
    }

    fn planned(device: &str, link: Option<LinkDevice>) -> Plan {
        let text = format!(
            "link: {{ rtt: 700ms, down: 2mbit, up: 500kbit, device: {device} }}\n\
             proxy: {{ addresses: [198.51.100.12] }}\nupstream: {{ resolvers: [192.0.2.53] }}\n"
        );
        let settings = load_text("test.yaml".as_ref(), text).unwrap().settings;
        let clients = vec![ClientInterface { name: "lan0".to_owned(), ..ClientInterface::default() }];
        let machine = Machine { clients, link, ..Machine::default() };
        plan(&settings, &derive(&settings, &HostFacts::unknown()), &machine)
    }

    /// Returns the commands of the queue, and the commands that are left out.
    fn commands(plan: &Plan) -> (Vec<String>, Vec<String>) {
        let joined = |commands: &[Vec<String>]| commands.iter().map(|one| one.join(" ")).collect::<Vec<_>>();
        let steps = plan.steps.iter().filter_map(|step| match &step.action {
            Action::Queue { commands, .. } => Some(joined(commands)),
            _ => None,
        });
        (steps.flatten().collect(), plan.left_out.iter().flat_map(|one| joined(&one.commands)).collect())
    }

    const CAKE: &str =
        "tc qdisc add dev wan0 root handle 4170: cake bandwidth 1900000bit besteffort dual-dsthost rtt 700ms";

    #[test]
    fn each_kernel_gets_the_best_queue_that_it_makes_and_is_told_what_it_lacks() {
        let rate = "1900000bit ceil 1900000bit burst 1514 cburst 1514 quantum 1514";
        let below = |leaf: &str| {
            vec![
                "tc qdisc add dev wan0 root handle 4170: htb default 1".to_owned(),
                format!("tc class add dev wan0 parent 4170: classid 4170:1 htb rate {rate}"),
                format!("tc qdisc add dev wan0 parent 4170:1 handle 4171: {leaf}"),
            ]
        };
        for (best, kinds) in KERNELS {
            let plan = planned("wan0", Some(present(RootQueue::OfTheKernel, kinds)));
            let (made, left_out) = commands(&plan);
            let expected = match best {
                "cake" => vec![CAKE.to_owned()],
                "fq_codel" => below("fq_codel interval 700ms target 35ms"),
                "sfq" => below("sfq perturb 60"),
                "bfifo" => below("bfifo limit 166250"),
                _ => Vec::new(),
            };
            assert_eq!(made, expected, "{best}");
            assert_eq!(left_out, if best == "cake" { Vec::new() } else { vec![CAKE.to_owned()] }, "{best}");
            let why: String = plan.left_out.iter().map(|one| one.why.as_str()).collect();
            let said = match best {
                "cake" => "",
                "bfifo" => "one client can take most of the link",
                "nothing" => "limits no rate",
                _ => "no `cake`",
            };
            assert!(why.contains(said) && why.is_empty() == said.is_empty(), "{best}: {why}");
        }
    }

    #[test]
    fn a_device_that_is_somebody_elses_or_missing_stays_as_it_is() {
        let foreign = present(RootQueue::Foreign("fq 8001:".to_owned()), &QueueKind::ALL);
        for (link, why) in [
            (Some(foreign), "`fq 8001:`, which somebody else made"),
            (Some(LinkDevice::Missing), "no interface `wan0`"),
            (Some(LinkDevice::NoProgram), "without the program `tc`"),
            (None, "no interface `wan0`"),
        ] {
            let plan = planned("wan0", link);
            assert_eq!(commands(&plan), (Vec::new(), vec![CAKE.to_owned()]), "{why}");
            assert!(plan.left_out[0].why.contains(why), "{}", plan.left_out[0].why);
            let script = script(&plan, "test.yaml", "lan0");
            assert!(script.ends_with(&format!("# To do later, by hand:\n# {CAKE}\n")), "{script}");
        }
        let off = planned("off", Some(present(RootQueue::OfTheKernel, &QueueKind::ALL)));
        assert_eq!((commands(&off), off.left_out), ((Vec::new(), Vec::new()), Vec::new()));
    }

    #[test]
    fn an_edge_shapes_the_way_to_its_clients_and_a_queue_from_before_is_replaced() {
        let (made, _) = commands(&planned("lan0", Some(present(RootQueue::OfTheKernel, &QueueKind::ALL))));
        assert_eq!(made, [CAKE.replace("wan0", "lan0")]);
        let plan = planned("wan0", Some(present(RootQueue::Ours, &QueueKind::ALL)));
        assert_eq!(commands(&plan).0, ["tc qdisc del dev wan0 root handle 4170:", CAKE]);
        let Some(Step { action: Action::Queue { undo, .. }, .. }) = plan.steps.last() else { panic!("not last") };
        assert_eq!(undo.join(" "), "tc qdisc del dev wan0 root handle 4170:");
    }

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
