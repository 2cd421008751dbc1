//! The threads and the memory of Envoy, by the limits of its control group.

use std::time::Duration;

use longhaul_config::{Bytes, Cache, Settings, Workers};

use super::cgroup::CgroupLimits;
use super::host::HostFacts;

/// Envoy's share of the machine, with a reason for each number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// The number of Envoy's worker threads (`--concurrency`), at least one.
    pub workers: Reasoned<u32>,
    /// The size of Envoy's heap at which it sheds load.
    pub heap: Reasoned<Bytes>,
    /// The memory for small objects that many clients request. The program that caches objects and the reader in Envoy have as
    /// much each, and objects on their way to clients the same.
    pub objects: Bytes,
    /// The longest time for a start of Envoy or CoreDNS. Compiling the filters takes most of it.
    pub start_patience: Duration,
}

/// A number and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reasoned<T> {
    /// The number.
    pub value: T,
    /// The reason, for `longhaul check` and the rendered files.
    pub reason: String,
}

/// The memory of Envoy with its filters before any connection.
const HEAP_BASE: Bytes = Bytes(512 << 20);
/// The memory of a busy connection: buffers on both hops, stream and parser state.
const HEAP_PER_CONNECTION: Bytes = Bytes(64 << 10);
/// The memory of the other processes of a box: 20 MiB of CoreDNS, 10 MiB of `longhaul`, and Envoy's memory outside its
/// heap, which is the filters' code for the most part.
const BESIDE_HEAP: Bytes = Bytes(128 << 20);
/// The memory for small objects in one place: at most this much, and these parts of `cache.size` and of a memory limit.
const MOST_OBJECTS: Bytes = Bytes(64 << 20);
const OBJECTS_PART: u64 = 16;
const OBJECTS_LIMIT_PART: u64 = 32;
/// The places of such memory: the program, the reader in Envoy, and objects on their way.
const OBJECTS_PLACES: u64 = 3;
/// The smallest heap. An idle Envoy uses about this much.
const LEAST_HEAP: Bytes = Bytes(64 << 20);
/// The time for a start on one processor or more. A busy machine takes most of it.
const START_PATIENCE: Duration = Duration::from_mins(3);
/// The smallest share of a processor that prolongs a start: a hundredth.
const LEAST_THOUSANDTHS: u32 = 10;

impl Capacity {
    pub(super) fn of(settings: &Settings, host: &HostFacts) -> Self {
        let objects = objects(settings, host.cgroup.memory);
        let beside = Bytes(BESIDE_HEAP.0 + objects.0 * OBJECTS_PLACES);
        let heap = heap(settings.limits.connections, host.cgroup.memory, beside);
        Self { objects, workers: workers(settings, host), heap, start_patience: start_patience(host.cgroup) }
    }
}

fn workers(settings: &Settings, host: &HostFacts) -> Reasoned<u32> {
    let share = |value, reason: &str| Reasoned { value, reason: reason.to_owned() };
    if let Workers::Count(count) = settings.workers {
        return share(count, "`workers`");
    }
    let processors = host.processors.unwrap_or(1);
    let of_quota = host.cgroup.cpu_thousandths.map(|thousandths| (thousandths, thousandths.div_ceil(1000).max(1)));
    match (of_quota, host.processors) {
        (Some((thousandths, count)), _) if count < processors => {
            let quota = f64::from(thousandths) / 1000.0;
            share(count, &format!("the control group's limit of {quota} processors, rounded up"))
        }
        (_, Some(_)) => share(processors, "the processors that this process may use"),
        (_, None) => share(processors, "the processors are not known"),
    }
}

fn objects(settings: &Settings, limit: Option<Bytes>) -> Bytes {
    let Cache::Disk { size, .. } = &settings.cache else { return Bytes(0) };
    let of_limit = limit.map_or(u64::MAX, |limit| limit.0 / OBJECTS_LIMIT_PART);
    Bytes((size.0 / OBJECTS_PART).min(MOST_OBJECTS.0).min(of_limit))
}

fn heap(connections: u32, limit: Option<Bytes>, beside: Bytes) -> Reasoned<Bytes> {
    let wanted = Bytes(HEAP_BASE.0 + u64::from(connections) * HEAP_PER_CONNECTION.0);
    let within = |limit: Bytes| Bytes((limit.0.saturating_sub(beside.0) / 4 * 3).max(LEAST_HEAP.0));
    match limit.map(|limit| (limit, within(limit))) {
        Some((limit, fits)) if fits < wanted => Reasoned {
            value: fits,
            reason: format!(
                "3/4 of the control group's memory limit of {limit}, less {beside} for the rest of the box"
            ),
        },
        _ => Reasoned { value: wanted, reason: format!("{HEAP_BASE} + `limits.connections` x {HEAP_PER_CONNECTION}") },
    }
}

fn start_patience(limits: CgroupLimits) -> Duration {
    let thousandths = limits.cpu_thousandths.map_or(1000, |thousandths| thousandths.clamp(LEAST_THOUSANDTHS, 1000));
    START_PATIENCE * 1000 / thousandths
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNLIMITED: CgroupLimits = CgroupLimits { cpu_thousandths: None, memory: None };

    fn capacity(text: &str, processors: u32, cgroup: CgroupLimits) -> Capacity {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("longhaul.yaml");
        let rest = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\nproxy: { addresses: [198.51.100.12] }\n\
                    upstream: { resolvers: [192.0.2.53] }\n";
        std::fs::write(&file, format!("{rest}{text}")).unwrap();
        let settings = longhaul_config::load(&file).unwrap().settings;
        Capacity::of(&settings, &HostFacts { processors: Some(processors), cgroup, ..HostFacts::unknown() })
    }

    #[test]
    fn workers_are_the_processors_or_the_limit_of_the_group_rounded_up() {
        let quota = |thousandths| CgroupLimits { cpu_thousandths: Some(thousandths), ..UNLIMITED };
        for (processors, limits, workers) in [
            (8, UNLIMITED, 8),
            (8, quota(1500), 2),
            (8, quota(100), 1),
            (8, quota(1), 1),
            (8, quota(2000), 2),
            // A group may have a limit above the processors, or beside fewer ones.
            (2, quota(16_000), 2),
            (1, quota(1500), 1),
        ] {
            assert_eq!(capacity("", processors, limits).workers.value, workers, "{processors} {limits:?}");
        }
        let found = capacity("workers: 3\n", 8, quota(1500)).workers;
        assert_eq!((found.value, found.reason.as_str()), (3, "`workers`"));
        let found = capacity("workers: auto\n", 8, quota(1500)).workers;
        assert_eq!(found.reason, "the control group's limit of 1.5 processors, rounded up");
    }

    #[test]
    fn a_memory_limit_bounds_the_heap_only_if_it_is_the_smaller_bound() {
        let limit = |bytes| CgroupLimits { memory: Some(Bytes(bytes)), ..UNLIMITED };
        let free = capacity("", 2, UNLIMITED);
        assert_eq!((free.objects, free.heap.value), (MOST_OBJECTS, Bytes((512 << 20) + 50_000 * (64 << 10))));
        assert_eq!(capacity("", 2, limit(64 << 30)), free);
        let off = capacity("cache: off\n", 2, limit(1 << 30));
        assert_eq!((off.objects, off.heap.value), (Bytes(0), Bytes(672 << 20)));
        assert_eq!(capacity("cache: { size: 64mib }\n", 2, UNLIMITED).objects, Bytes(4 << 20));
        let small = capacity("", 2, limit(1 << 30));
        // 128 MiB and three times 32 MiB are for others.
        assert_eq!((small.objects, small.heap.value), (Bytes(32 << 20), Bytes(600 << 20)));
        assert!(small.heap.reason.contains("memory limit of 1gib"), "{}", small.heap.reason);
        // The heap has a floor, below which Envoy would refuse every connection.
        assert_eq!(capacity("", 2, limit(1 << 20)).heap.value, LEAST_HEAP);
        // Fewer connections need less than the group has.
        let few = capacity("limits: { connections: 100 }\n", 2, limit(1 << 30));
        assert_eq!(few.heap.value, Bytes((512 << 20) + 100 * (64 << 10)));
    }

    #[test]
    fn a_small_share_of_a_processor_prolongs_the_patience_with_a_start() {
        let patience = |thousandths| start_patience(CgroupLimits { cpu_thousandths: thousandths, ..UNLIMITED });
        assert_eq!(patience(None), Duration::from_mins(3));
        assert_eq!(patience(Some(4000)), Duration::from_mins(3));
        assert_eq!(patience(Some(100)), Duration::from_mins(30));
        assert_eq!(patience(Some(1)), Duration::from_hours(5));
    }
}
