//! The threads and the memory of Envoy, by the limits of its control group.

use std::time::Duration;

use longhaul_config::units::Bytes;
use longhaul_config::{Cache, CacheEngine, Settings, Workers};

use super::cgroup::CgroupLimits;
use super::host::HostFacts;

/// Envoy's share of the machine, with a reason for each number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// The number of Envoy's worker threads (`--concurrency`), at least one.
    pub workers: Reasoned<u32>,
    /// The size of Envoy's heap at which it sheds load.
    pub heap: Reasoned<Bytes>,
    /// The number of URLs that Envoy's cache may remember before another Envoy takes over.
    pub urls: Reasoned<u32>,
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
/// The smallest heap. An idle Envoy uses about this much.
const LEAST_HEAP: Bytes = Bytes(64 << 20);
/// The part of the heap for the notes of the cache, and the size of a note about one URL.
const URLS_PART: u64 = 4;
const URL: Bytes = Bytes(1 << 10);
/// The open files of the shipped systemd unit (`LimitNOFILE`), for a machine that is not known.
const UNIT_FILES: u64 = 131_072;
/// The files of a client's connection: one to the client and one to the origin.
const FILES_PER_CONNECTION: u64 = 2;
/// The files that Envoy has open without clients: sockets of listeners and workers, pipes, logs.
const OTHER_FILES: u64 = 1024;
/// The cache gets this part of the files also if connections could take all of them. Connections seldom do.
const LEAST_FILES_PART: u64 = 8;
/// The time for a start on one processor or more. A busy machine takes most of it.
const START_PATIENCE: Duration = Duration::from_mins(3);
/// The smallest share of a processor that prolongs a start: a hundredth.
const LEAST_THOUSANDTHS: u32 = 10;

impl Capacity {
    pub(super) fn of(settings: &Settings, host: &HostFacts) -> Self {
        let heap = heap(settings.limits.connections, host.cgroup.memory);
        Self {
            workers: workers(settings, host),
            urls: urls(settings, &heap, host.open_files),
            heap,
            start_patience: start_patience(host.cgroup),
        }
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

fn heap(connections: u32, limit: Option<Bytes>) -> Reasoned<Bytes> {
    let wanted = Bytes(HEAP_BASE.0 + u64::from(connections) * HEAP_PER_CONNECTION.0);
    let within = |limit: Bytes| Bytes((limit.0.saturating_sub(BESIDE_HEAP.0) / 4 * 3).max(LEAST_HEAP.0));
    match limit.map(|limit| (limit, within(limit))) {
        Some((limit, fits)) if fits < wanted => Reasoned {
            value: fits,
            reason: format!(
                "3/4 of the control group's memory limit of {limit}, less {BESIDE_HEAP} for the rest of the box"
            ),
        },
        _ => Reasoned { value: wanted, reason: format!("{HEAP_BASE} + `limits.connections` x {HEAP_PER_CONNECTION}") },
    }
}

fn urls(settings: &Settings, heap: &Reasoned<Bytes>, open_files: Option<u64>) -> Reasoned<u32> {
    let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let in_heap = Reasoned {
        value: count(heap.value.0 / URLS_PART / URL.0),
        reason: format!("a quarter of the heap of {}, at {URL} each", heap.value),
    };
    let given = settings.limits.urls.map(|value| Reasoned { value, reason: "`limits.urls`".to_owned() });
    // Without Envoy's cache, no file is open.
    let of_envoy = matches!(settings.cache, Cache::Disk { engine: CacheEngine::Envoy { .. }, .. });
    let in_files = of_envoy.then(|| files(settings.limits.connections, open_files));
    // Of equal ones the first: what the operator wrote.
    let bounds = [given, in_files.map(|files| Reasoned { value: count(files.value), reason: files.reason })];
    bounds.into_iter().flatten().chain([in_heap.clone()]).min_by_key(|bound| bound.value).unwrap_or(in_heap)
}

/// Returns the files for the cache. Envoy keeps the file of every URL open for as long as it remembers the URL.
fn files(connections: u32, limit: Option<u64>) -> Reasoned<u64> {
    let files = limit.unwrap_or(UNIT_FILES);
    let others = u64::from(connections) * FILES_PER_CONNECTION + OTHER_FILES;
    let least = files / LEAST_FILES_PART;
    let rest = files.saturating_sub(others);
    if rest < least {
        return Reasoned {
            value: least,
            reason: format!("an eighth of the limit of {files} open files (LimitNOFILE)"),
        };
    }
    Reasoned {
        value: rest,
        reason: format!(
            "the limit of {files} open files (LimitNOFILE), less {others} for `limits.connections` and others"
        ),
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
        with_files(text, processors, cgroup, Some(u64::MAX))
    }

    fn with_files(text: &str, processors: u32, cgroup: CgroupLimits, open_files: Option<u64>) -> Capacity {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("longhaul.yaml");
        let rest = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\nproxy: { addresses: [198.51.100.12] }\n\
                    upstream: { resolvers: [192.0.2.53] }\n";
        std::fs::write(&file, format!("{rest}{text}")).unwrap();
        let settings = longhaul_config::load(&file).unwrap().settings;
        Capacity::of(&settings, &HostFacts { processors: Some(processors), cgroup, open_files, ..HostFacts::unknown() })
    }

    #[test]
    fn remembered_urls_leave_files_for_connections() {
        let urls = |text: &str, files| with_files(text, 2, UNLIMITED, files).urls;
        for (text, files, expected) in [
            // The shipped unit, and a machine that is not known.
            ("", Some(131_072), 131_072 - 100_000 - 1024),
            ("", None, 131_072 - 100_000 - 1024),
            ("limits: { connections: 1000 }\n", None, 131_072 - 2000 - 1024),
            // The limit of the fault: connections alone could take more than all files.
            ("", Some(20_000), 2500),
            ("limits: { urls: 16000 }\n", Some(20_000), 2500),
            // What fits is as it was.
            ("limits: { urls: 2000 }\n", Some(20_000), 2000),
            ("limits: { urls: 20000 }\n", None, 20_000),
            ("", Some(1 << 40), 131_072 + 16 * 50_000),
            // Without a cache on disk, no URL has a file.
            ("cache: off\n", Some(1024), 131_072 + 16 * 50_000),
        ] {
            assert_eq!(urls(text, files).value, expected, "{text:?} {files:?}");
        }
        assert!(urls("", Some(20_000)).reason.contains("20000 open files"));
        assert_eq!(urls("limits: { urls: 2000 }\n", Some(20_000)).reason, "`limits.urls`");
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
    fn a_memory_limit_bounds_the_heap_and_the_urls_only_if_it_is_the_smaller_bound() {
        let limit = |bytes| CgroupLimits { memory: Some(Bytes(bytes)), ..UNLIMITED };
        let free = capacity("", 2, UNLIMITED);
        assert_eq!(free.heap.value, Bytes((512 << 20) + 50_000 * (64 << 10)));
        assert_eq!(free.urls.value, 131_072 + 16 * 50_000);
        assert_eq!(capacity("", 2, limit(64 << 30)), free);
        let small = capacity("", 2, limit(1 << 30));
        assert_eq!(small.heap.value, Bytes(672 << 20));
        assert_eq!(small.urls.value, 672 << 8);
        assert!(small.heap.reason.contains("memory limit of 1gib"), "{}", small.heap.reason);
        // The heap has a floor, below which Envoy would refuse every connection.
        assert_eq!(capacity("", 2, limit(1 << 20)).heap.value, LEAST_HEAP);
        // Fewer connections need less than the group has.
        let few = capacity("limits: { connections: 100, urls: 1000 }\n", 2, limit(1 << 30));
        assert_eq!((few.heap.value, few.urls.value), (Bytes((512 << 20) + 100 * (64 << 10)), 1000));
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
