//! The kernel's queue on the device of the link (`link.device`).
//!
//! Only the kernel sees all that crosses the link. The steps choose the best queue that this kernel makes, and leave a
//! device alone whose queue somebody else chose.

use longhaul_derive::{ClientAddress, Derived, LinkQueue, Shaping};

use super::link_device::{HANDLE, LinkDevice, QueueKind, RootQueue};
use super::machine::Machine;
use super::step::{Action, LeftOut, Step};

/// The class of `htb` for all packets, and the queue below it.
const CLASS: &str = "4170:1";
const LEAF: &str = "4171:";
/// The bytes of a whole packet of Ethernet. `htb` lends this much to one queue at a time.
const PACKET_BYTES: u64 = 1514;
/// The least bytes of a queue without fairness. A shorter one drops what a slow link needs to be full.
const LEAST_FIFO_BYTES: u64 = 16 * PACKET_BYTES;

/// The reason for leaving a device as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Obstacle {
    #[error("this machine has no such interface")]
    Missing,
    #[error("this machine has no program `tc` (package iproute2 or iproute-tc)")]
    NoProgram,
    #[error("it leads to the clients of this box, and a queue would slow down what they receive")]
    LeadsToClients,
    #[error("its queue `{0}` is somebody else's, and stays")]
    Foreign(String),
    #[error("this kernel limits no rate: it makes neither `cake` nor `htb`")]
    NoRate,
}

/// Returns the step that shapes the link's device, and what is left out.
pub(super) fn shape(derived: &Derived, machine: &Machine) -> (Option<Step>, Vec<LeftOut>) {
    let shaping = match &derived.link_queue {
        LinkQueue::Off => return (None, Vec::new()),
        LinkQueue::SeveralLinks => {
            let why = format!("`link.device` gets no queue: {}", LinkQueue::SEVERAL_LINKS);
            return (None, vec![LeftOut { why, commands: Vec::new() }]);
        }
        LinkQueue::Shaped(shaping) => shaping,
    };
    match possible(shaping, machine) {
        Err(obstacle) => {
            let why = format!("{} gets no queue: {obstacle}", shaping.device);
            (None, vec![LeftOut { why, commands: vec![cake(shaping)] }])
        }
        Ok((root, kinds)) => {
            let (step, missing) = shaped(shaping, root, kinds);
            (Some(step), missing.into_iter().collect())
        }
    }
}

impl Machine {
    /// Returns the reason why the device has no queue of Longhaul, although `longhaul host` could make one. None: it has one,
    /// or this machine cannot make one.
    #[must_use]
    pub fn lost_queue(&self, derived: &Derived) -> Option<String> {
        let LinkQueue::Shaped(shaping) = &derived.link_queue else { return None };
        let device = &shaping.device;
        match possible(shaping, self) {
            Ok((RootQueue::OfTheKernel, _)) => Some(format!("{device} has lost the queue of Longhaul")),
            Err(obstacle @ (Obstacle::Missing | Obstacle::Foreign(_))) => {
                Some(format!("{device} gets no queue: {obstacle}"))
            }
            _ => None,
        }
    }

    /// Returns a warning if more than the link is behind the device. Packets for other networks count as well.
    #[must_use]
    pub fn wide_device(&self, derived: &Derived) -> Option<String> {
        let LinkQueue::Shaped(Shaping { device, client: ClientAddress::Destination, .. }) = &derived.link_queue else {
            return None;
        };
        let Some(LinkDevice::Present { is_default_route: true, .. }) = &self.link else { return None };
        Some(format!(
            "{device} (`link.device`) also leads to the Internet, and what this box sends there counts as well. Name an \
             interface that leads to the link alone, such as a tunnel or a VLAN"
        ))
    }
}

/// Returns the present queue and the kinds that the kernel makes, or the reason for leaving the device as it is.
fn possible<'m>(shaping: &Shaping, machine: &'m Machine) -> Result<(&'m RootQueue, Option<&'m [QueueKind]>), Obstacle> {
    let (root, kinds) = match &machine.link {
        None | Some(LinkDevice::Missing) => return Err(Obstacle::Missing),
        Some(LinkDevice::NoProgram) => return Err(Obstacle::NoProgram),
        Some(LinkDevice::Present { root, kinds, .. }) => (root, kinds.as_deref()),
    };
    let leads_to_clients = machine.clients.iter().any(|one| one.name == shaping.device.as_str());
    if shaping.client == ClientAddress::Source && leads_to_clients {
        return Err(Obstacle::LeadsToClients);
    }
    if let RootQueue::Foreign(queue) = root {
        return Err(Obstacle::Foreign(queue.clone()));
    }
    let makes = |kind| kinds.is_none_or(|kinds| kinds.contains(&kind));
    if makes(QueueKind::Cake) || makes(QueueKind::Htb) { Ok((root, kinds)) } else { Err(Obstacle::NoRate) }
}

/// Returns the step for the best queue of this kernel, and what a better one would do.
fn shaped(shaping: &Shaping, root: &RootQueue, kinds: Option<&[QueueKind]>) -> (Step, Option<LeftOut>) {
    const PER_CONNECTION: &str = "this kernel makes no `cake`, so a client with many connections has a larger share";
    const UNFAIR: &str =
        "this kernel makes no fair queue (`cake`, `fq_codel`, `sfq`), so one client can take most of the link";
    let makes = |kind| kinds.is_none_or(|kinds| kinds.contains(&kind));
    let (made, share, missing) = if makes(QueueKind::Cake) {
        (vec![cake(shaping)], "each client has an equal share", None)
    } else if makes(QueueKind::FqCodel) {
        (htb(shaping, &fq_codel(shaping)), "each connection has an equal share", Some(PER_CONNECTION))
    } else if makes(QueueKind::Sfq) {
        (htb(shaping, "sfq perturb 60"), "each connection has an equal share", Some(PER_CONNECTION))
    } else {
        (htb(shaping, &fifo(shaping)), "nobody has a share", Some(UNFAIR))
    };
    let device = shaping.device.as_str();
    let undo = words(&format!("tc qdisc del dev {device} root handle {HANDLE}"));
    let again = (*root == RootQueue::Ours).then(|| undo.clone());
    let step = Step {
        why: format!("{device} sends at most {}, {}; {share}", shaping.rate, shaping.formula),
        action: Action::Queue { commands: again.into_iter().chain(made).collect(), undo },
    };
    let untried = "only root may try which queues this kernel makes, so it may lack `cake`";
    let left_out = match (kinds, missing) {
        (None, _) => Some(LeftOut { why: untried.to_owned(), commands: Vec::new() }),
        (Some(_), missing) => missing.map(|why| LeftOut { why: why.to_owned(), commands: vec![cake(shaping)] }),
    };
    (step, left_out)
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

/// Returns a queue that drops what waits above the target for longer than an interval. On a slow link, two packets take
/// longer than a round trip.
fn fq_codel(shaping: &Shaping) -> String {
    let interval = shaping.round_trip.max(shaping.target * 2);
    format!("fq_codel interval {}ms target {}ms", interval.as_millis(), shaping.target.as_millis())
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
    use std::time::Duration;

    use longhaul_config::{Settings, load_text};
    use longhaul_derive::{HostFacts, derive};

    use super::super::ClientInterface;
    use super::super::step::Plan;
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

    fn state(device: &str, link: Option<LinkDevice>) -> (Settings, Derived, Machine) {
        let text = format!(
            "link: {{ rtt: 700ms, down: 2mbit, up: 500kbit, device: {device} }}\n\
             proxy: {{ addresses: [198.51.100.12] }}\nupstream: {{ resolvers: [192.0.2.53] }}\n"
        );
        let settings = load_text("test.yaml".as_ref(), text).unwrap().settings;
        let clients = vec![ClientInterface { name: "lan0".to_owned(), ..ClientInterface::default() }];
        let machine = Machine { clients, link, ..Machine::default() };
        let derived = derive(&settings, &HostFacts::unknown());
        (settings, derived, machine)
    }

    fn planned(device: &str, link: Option<LinkDevice>) -> Plan {
        let (settings, derived, machine) = state(device, link);
        Plan::of(&settings, &derived, &machine)
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
            (Some(foreign), "its queue `fq 8001:` is somebody else's"),
            (Some(LinkDevice::Missing), "no such interface"),
            (Some(LinkDevice::NoProgram), "no program `tc`"),
            (None, "no such interface"),
        ] {
            let plan = planned("wan0", link);
            assert_eq!(commands(&plan), (Vec::new(), vec![CAKE.to_owned()]), "{why}");
            assert!(plan.left_out[0].why.contains(why), "{}", plan.left_out[0].why);
            let script = plan.script("test.yaml", "lan0");
            assert!(script.ends_with(&format!("# not run: {CAKE}\n")), "{script}");
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
    fn on_the_slowest_links_two_packets_may_wait() {
        let (_, mut derived, _) = state("wan0", None);
        let LinkQueue::Shaped(shaping) = &mut derived.link_queue else { panic!("not shaped") };
        (shaping.round_trip, shaping.target) = (Duration::from_millis(100), Duration::from_millis(637));
        assert_eq!(fq_codel(shaping), "fq_codel interval 1274ms target 637ms");
        shaping.rate.bits_per_second = 38_000;
        assert_eq!(fifo(shaping), "bfifo limit 24224");
    }

    #[test]
    fn a_remote_never_slows_down_what_its_clients_receive() {
        let (settings, mut derived, machine) = state("lan0", Some(present(RootQueue::OfTheKernel, &QueueKind::ALL)));
        let LinkQueue::Shaped(shaping) = &mut derived.link_queue else { panic!("not shaped") };
        shaping.client = ClientAddress::Source;
        let plan = Plan::of(&settings, &derived, &machine);
        assert_eq!(commands(&plan).0, [""; 0]);
        assert!(plan.left_out[0].why.contains("leads to the clients"), "{}", plan.left_out[0].why);
        assert_eq!(machine.lost_queue(&derived), None, "nothing to mend");
    }

    #[test]
    fn a_queue_is_lost_where_one_could_be() {
        let lost = |link| {
            let (_, derived, machine) = state("wan0", Some(link));
            machine.lost_queue(&derived)
        };
        let says = |link, words: &str| lost(link).is_some_and(|why| why.contains(words));
        assert!(says(present(RootQueue::OfTheKernel, &[QueueKind::Htb]), "wan0 has lost"));
        assert!(says(present(RootQueue::Foreign("fq 8001:".to_owned()), &[QueueKind::Htb]), "somebody else's"));
        assert!(says(LinkDevice::Missing, "no such interface"));
        assert_eq!(lost(present(RootQueue::Ours, &[QueueKind::Htb])), None);
        assert_eq!(lost(present(RootQueue::OfTheKernel, &[])), None);
        assert_eq!(lost(LinkDevice::NoProgram), None);
    }

    #[test]
    fn a_device_with_the_default_route_is_too_wide_at_the_wired_side_alone() {
        let device =
            |is_default_route| LinkDevice::Present { root: RootQueue::OfTheKernel, kinds: None, is_default_route };
        let (_, mut derived, machine) = state("wan0", Some(device(true)));
        assert!(machine.wide_device(&derived).is_some_and(|warning| warning.starts_with("wan0 (`link.device`)")));
        assert_eq!(Machine { link: Some(device(false)), ..machine.clone() }.wide_device(&derived), None);
        let LinkQueue::Shaped(shaping) = &mut derived.link_queue else { panic!("not shaped") };
        shaping.client = ClientAddress::Source;
        assert_eq!(machine.wide_device(&derived), None);
    }
}
