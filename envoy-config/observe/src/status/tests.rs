use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;

use longhaul_config::Lifetime;

use super::*;
use crate::Endpoint;
use crate::compare::{Difference, Differences, Figures, Median};
use crate::measure::{Misfit, Silent};
use crate::report::{
    CacheFault, DnsReport, GroundReport, HostFault, PageLoad, PairReport, ProblemKind, ProblemRecord, SetUp, Silence,
};

const DAY_S: i64 = 24 * 60 * 60;
const PROXY: &str = "198.51.100.12";

fn report(role: &str) -> RunReport {
    let admin = Endpoint::Unix("/run/longhaul/private/admin.sock".into());
    RunReport {
        version: String::new(),
        role: role.to_owned(),
        pid: 1,
        draining: false,
        process_start: 0,
        started: 0,
        file: PathBuf::new(),
        config_sha256: String::new(),
        in_force_since: 0,
        changes: 0,
        refused: None,
        listen: Sockets {
            http: None,
            split: None,
            tls: None,
            dns: None,
            admin,
            dns_metrics: None,
            objects_metrics: None,
            metrics: None,
            status: None,
        },
        set_up: SetUp::default(),
        dns: DnsReport::default(),
        link: Noticed::default(),
        costs: crate::why::CostReport::default(),
        ground: None,
        other_end: PairReport::default(),
        problems: Vec::new(),
        state_fault: None,
        cache_fault: None,
        compared: None,
        groups: Vec::new(),
        who: None,
        pages: Vec::new(),
        access_log: longhaul_config::AccessLog::Off,
        access_log_fault: None,
        envoy: ChildReport::default(),
        coredns: ChildReport::default(),
        images: None,
        objects: None,
    }
}

/// Returns a box in which everything works.
pub(super) fn healthy(role: &str) -> Status {
    let mut status = Status::of(report(role), 0);
    status.envoy.up = true;
    status.coredns.up = true;
    status.config.is_the_file = true;
    status.dns = Some(DnsCounts::of(
        &Scrape::parse("coredns_longhaul_steering{} 1\ncoredns_longhaul_proxy_up{to=\"198.51.100.12:80\"} 1\n"),
        true,
    ));
    status
}

/// Returns the figures of a busy minute in which nothing is slow.
pub(super) fn measured() -> crate::why::Measured {
    let times = |median_us| Some(crate::why::Timed { median_us, count: 20 });
    crate::why::Measured {
        over_s: 60,
        requests: 200,
        peers: 1,
        rtt_us: Some(605_000),
        queue_us: Some(20_000),
        segments: 4000,
        down_bps: 5_000_000,
        up_bps: 200_000,
        lookups: times(15_000),
        connects: times(12_000),
        first_bytes: times(90_000),
        ..crate::why::Measured::default()
    }
}

/// Returns a box in which every text of others is `text`.
pub(super) fn hostile(text: &str) -> Status {
    let mut status = healthy("edge");
    status.config.file = PathBuf::from(text);
    status.config.refused = Some(Refusal { why: text.to_owned(), ..refusal(true) });
    status.certificates = vec![Certificate { of: text.to_owned(), file: PathBuf::from(text), ..certificate(90, 1) }];
    status.envoy.last_end = Some(text.to_owned());
    status.envoy.version = Some(text.to_owned());
    let counts = format!("coredns_longhaul_skips_total{{reason={text:?}}} 1\n");
    status.dns = Some(DnsCounts::of(&Scrape::parse(&counts), true));
    let counts = format!("longhaul_url_rewrite_urls_left_total{{reason={text:?}}} 1\n");
    status.traffic = Some(Traffic::of("edge", &Scrape::parse(&counts)));
    let mut load = PageLoad::parse("200 - 1 1 cut -").unwrap();
    load.left = vec![(text.to_owned(), 1)];
    load.bail_out = Some(text.to_owned());
    let (kind, of) = (ProblemKind::Certificate, text.to_owned());
    let record = ProblemRecord { kind, of, text: text.to_owned(), began: 0, ended: None };
    status.last_problems = vec![PastProblem::of(record, 0)];
    status.last_pages = vec![PageReport { number: 1, load }];
    status.problems = problems(&status, &Machine { now_s: 89 * DAY_S, ..here() });
    status
}

fn problems(status: &Status, machine: &Machine) -> Vec<Problem> {
    problem::problems(status, machine)
}

fn here() -> Machine {
    Machine::default()
}

fn refusal(standing: bool) -> Refusal {
    Refusal { at: 0, why: String::new(), standing }
}

fn certificate(life: i64, left: i64) -> Certificate {
    let validity = Validity { from_s: 0, until_s: life * DAY_S };
    let report = CertificateReport { of: "pep.example.net".to_owned(), file: PathBuf::from("pep.pem"), validity };
    Certificate::of(report, (life - left) * DAY_S)
}

#[test]
fn a_box_in_which_everything_works_has_neither_problem_nor_warning() {
    for role in ["edge", "remote", "ground"] {
        let status = healthy(role);
        assert_eq!(problems(&status, &here()), [], "{role}");
        assert_eq!(problem::warnings(&status, &here()), [], "{role}");
    }
}

#[test]
fn a_box_that_lists_no_names_has_no_problem_with_steering() {
    let mut status = healthy("edge");
    status.dns = Some(DnsCounts::of(&Scrape::parse("coredns_dns_requests_total{} 3\n"), false));
    assert_eq!(problems(&status, &here()), []);
}

#[test]
fn a_child_that_does_not_respond_is_a_problem_with_the_cause_of_its_last_death() {
    let mut status = healthy("edge");
    status.envoy.up = false;
    status.coredns.up = false;
    status.coredns.last_end = Some("was killed by signal 9".to_owned());
    let words: Vec<String> = problems(&status, &here()).iter().map(ToString::to_string).collect();
    assert_eq!(words, ["Envoy does not respond", "CoreDNS does not respond; it was killed by signal 9"]);
}

#[test]
fn a_dead_parent_is_a_warning_while_another_one_responds_and_then_a_problem() {
    let mut status = healthy("edge");
    let parent = |number: u8, up| ParentStatus { address: format!("192.0.2.{number}:3128"), up };
    status.parents = vec![parent(7, true), parent(8, false), parent(9, true)];
    assert_eq!(problems(&status, &here()), []);
    let words: Vec<String> = problem::warnings(&status, &here()).iter().map(ToString::to_string).collect();
    assert_eq!(words, ["192.0.2.8:3128 (`cache.parent`) does not respond; the other proxies serve its URLs"]);
    status.parents.iter_mut().for_each(|parent| parent.up = false);
    assert_eq!(problems(&status, &here()), [Problem::ParentsDown]);
    assert_eq!(problem::warnings(&status, &here()), []);
}

#[test]
fn a_refused_change_is_a_problem_while_it_stands() {
    let mut status = healthy("edge");
    status.config.refused = Some(refusal(true));
    status.config.is_the_file = false;
    assert!(matches!(&problems(&status, &here())[..], [Problem::ChangeRefused { .. }]));
    assert_eq!(problem::warnings(&status, &here()), []);
    status.config.refused = Some(refusal(false));
    assert_eq!(problems(&status, &here()), []);
    assert_eq!(problem::warnings(&status, &here()), [Warning::ChangePending]);
}

#[test]
fn a_refusal_is_told_with_what_was_found_and_the_help() {
    let why = "error: `split.ca` has not signed the certificate\n --> longhaul.yaml:5:73\n  |\n5 | split: { ca: pair-ca.pem }\n  |              ^^^^^^^^^^^ no authority signed it\n  |\n  = help: copy both";
    let mut status = healthy("edge");
    status.config.refused = Some(Refusal { why: why.to_owned(), ..refusal(true) });
    let [refused] = problems(&status, &here()).try_into().unwrap();
    assert_eq!(
        refused.to_string(),
        "the present files were refused, and an earlier configuration is in force: `split.ca` has not signed the \
         certificate; no authority signed it; copy both; `longhaul check` shows the place"
    );
}

#[test]
fn a_box_that_drains_has_that_problem_and_those_of_its_disks_alone() {
    let mut status = healthy("edge");
    (status.draining, status.envoy.up) = (true, false);
    assert_eq!(problems(&status, &here()), [Problem::Draining]);
    status.cache = Some(CacheReport { dir: "/cache".into(), size_bytes: 100 });
    let read_only = Machine { cache_is_read_only: true, ..here() };
    let expected = [Problem::Draining, Problem::CacheReadOnly { dir: "/cache".into() }];
    assert_eq!(problems(&status, &read_only), expected);
}

#[test]
fn a_remote_shows_what_its_ground_tells_and_an_end_knows_its_clock_and_its_packets() {
    let mut status = healthy("remote");
    let of = "192.0.2.53:53".to_owned();
    let text = "the resolver 192.0.2.53:53 (`upstream.resolvers`) does not respond".to_owned();
    let told = ProblemRecord { kind: ProblemKind::ResolverDown, of, text, began: 0, ended: None };
    status.other_end = PairReport {
        ground: GroundReport { problems: vec![told], clock_ahead_s: Some(172_800), costs: None },
        vanishing: Some(1500),
        ..PairReport::default()
    };
    status.every_query_fails = true;
    status.problems = problems(&status, &here());
    let words: Vec<String> = status.problems.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), 2, "the ground's resolver explains the failed queries: {words:?}");
    assert!(
        words[0].starts_with("packets of 1500 bytes vanish") && words[0].contains("`link: { mtu: 1280 }`"),
        "{words:?}"
    );
    assert!(words[1].starts_with("the ground reports: the resolver 192.0.2.53:53"), "{words:?}");
    let record = &status.present()[1];
    assert_eq!((record.kind, record.of.as_str()), (ProblemKind::GroundReports, "resolver_down 192.0.2.53:53"));
    let warnings = problem::warnings(&status, &here());
    assert!(
        warnings[0].to_string().starts_with("the clock of this machine is 2 d 0 h behind the ground's"),
        "{warnings:?}"
    );
    // A silent link explains more than the last words of the ground.
    status.pair = PairStatus::of("remote", &Scrape::default());
    status.other_end.silence = Some(Silence { kind: Silent::ReversePath, since: 0, port: 8443 });
    let silent = problems(&status, &here());
    assert!(silent[0].to_string().contains("sysctl -w net.ipv4.conf.all.rp_filter=2"), "{silent:?}");
    assert!(silent.iter().all(|one| !matches!(one, Problem::GroundReports(_))));
}

#[test]
fn a_resolver_that_asks_this_box_is_a_loop_and_not_silent() {
    let mut status = healthy("ground");
    let address = "192.0.2.53:53".parse().unwrap();
    status.resolvers = vec![ResolverReport { address, up: false, loops: true }];
    assert_eq!(problems(&status, &here()), [Problem::DnsLoop { address }]);
}

#[test]
fn a_machine_that_does_not_forward_is_a_problem_and_ipv6_that_passes_it_by_a_warning() {
    let status = healthy("edge");
    let machine = |fault| Machine { host_faults: vec![("lan0".to_owned(), fault)], ..here() };
    let off = machine(HostFault::NotForwarding { cure: "sysctl -w net.ipv4.ip_forward=1".to_owned() });
    let [problem] = problems(&status, &off).try_into().unwrap();
    assert!(problem.to_string().ends_with(": sysctl -w net.ipv4.ip_forward=1"), "{problem}");
    let ipv6 = machine(HostFault::Ipv6Passes { cure: "write it".to_owned() });
    assert_eq!(problems(&status, &ipv6), []);
    let warnings = problem::warnings(&status, &ipv6);
    assert_eq!(warnings[0].to_string(), "clients behind lan0 have IPv6, which passes this box by: write it");
    let unshaped = machine(HostFault::Unshaped { why: "wan0 has lost".to_owned(), cure: "again".to_owned() });
    assert_eq!(problems(&status, &unshaped), []);
    let words = problem::warnings(&status, &unshaped)[0].to_string();
    assert!(words.starts_with("wan0 has lost, so what bypasses") && words.ends_with(": again"), "{words}");
}

#[test]
fn only_a_remote_has_a_problem_without_its_other_end() {
    for (role, expected) in [("remote", vec![Problem::GroundDown { why: None }]), ("ground", Vec::new())] {
        let mut status = healthy(role);
        status.pair = PairStatus::of(role, &Scrape::default());
        assert_eq!(problems(&status, &here()), expected, "{role}");
    }
}

#[test]
fn a_silence_is_named_with_its_time_and_a_refused_handshake_with_its_reason() {
    let mut status = healthy("remote");
    let piped = "envoy_cluster_membership_healthy{envoy_cluster_name=\"pipe\"} 1\nenvoy_cluster_upstream_cx_active{envoy_cluster_name=\"pipe\"} 2\n";
    status.pair = PairStatus::of("remote", &Scrape::parse(piped));
    let machine = Machine { now_s: 109, ..here() };
    assert_eq!(problems(&status, &machine), []);
    status.other_end.silence = Some(Silence { kind: Silent::Link, since: 100, port: 8443 });
    (status.at, status.problems) = (109, problems(&status, &machine));
    let words = status.problems[0].to_string();
    assert!(words.starts_with("the ground has not responded for 9 s: nothing comes back"), "{words}");
    // Envoy still has its connections, and gives them up later. The problem stays the same one.
    let first = status.present();
    assert_eq!((first[0].kind, first[0].began), (ProblemKind::LinkSilent, 100));
    status.pair = PairStatus::of("remote", &Scrape::default());
    (status.at, status.problems) = (150, problems(&status, &Machine { now_s: 150, ..here() }));
    assert_eq!(status.present(), first);
    status.other_end =
        PairReport { handshake: Some("its certificate has expired".to_owned()), ..PairReport::default() };
    let [down] = problems(&status, &machine).try_into().unwrap();
    assert_eq!(down.to_string(), "the ground does not respond: its certificate has expired");
}

#[test]
fn every_kind_of_problem_has_a_label_of_its_own_that_is_read_again() {
    let mut labels: Vec<&str> = ProblemKind::ALL.iter().map(|kind| kind.label()).collect();
    for kind in ProblemKind::ALL {
        let text = serde_json::to_string(kind).unwrap();
        assert_eq!(text, format!("{:?}", kind.label()));
        assert_eq!(serde_json::from_str::<ProblemKind>(&text).unwrap(), *kind);
    }
    assert_eq!(serde_json::from_str::<ProblemKind>("\"of_tomorrow\"").unwrap(), ProblemKind::Other);
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), ProblemKind::ALL.len());
}

#[test]
fn names_that_are_listed_and_not_steered_are_a_problem() {
    let mut status = healthy("edge");
    let down = "coredns_longhaul_steering{} 0\ncoredns_longhaul_proxy_up{to=\"198.51.100.12:80\"} 0\n";
    status.dns = Some(DnsCounts::of(&Scrape::parse(down), true));
    let [problem] = problems(&status, &here()).try_into().unwrap();
    assert_eq!(problem.to_string(), "no name is steered, because the proxy does not respond at 198.51.100.12:80");
}

#[test]
fn a_silent_resolver_is_a_problem_and_explains_failed_queries() {
    let mut status = healthy("edge");
    status.every_query_fails = true;
    assert_eq!(problems(&status, &here()), [Problem::EveryQueryFails]);
    let [good, bad] = ["192.0.2.53:53", "192.0.2.54:53"].map(|address| address.parse().unwrap());
    status.resolvers = vec![
        ResolverReport { address: good, up: true, loops: false },
        ResolverReport { address: bad, up: false, loops: false },
    ];
    assert_eq!(problems(&status, &here()), [Problem::ResolverDown { address: bad }]);
}

#[test]
fn an_address_on_no_interface_is_a_problem_if_the_proxy_does_not_respond_there() {
    let address: IpAddr = PROXY.parse().unwrap();
    let machine = Machine { missing_addresses: vec![address], ..here() };
    let mut status = healthy("edge");
    assert_eq!(problems(&status, &machine), [], "a NAT leads here");
    assert_eq!(problem::warnings(&status, &machine), []);
    let down = "coredns_longhaul_steering{} 1\ncoredns_longhaul_proxy_up{to=\"198.51.100.12:80\"} 0\n";
    status.dns = Some(DnsCounts::of(&Scrape::parse(down), true));
    assert_eq!(problems(&status, &machine), [Problem::AddressMissing { address }]);
    status.dns = None;
    assert_eq!(problems(&status, &machine), []);
    assert_eq!(problem::warnings(&status, &machine), [Warning::AddressElsewhere { address }]);
}

#[test]
fn a_refused_list_is_a_problem_with_its_file() {
    let mut status = healthy("edge");
    let judged = |status: &mut Status, value: u64| {
        let text = format!(
            "coredns_longhaul_steering{{}} 1\ncoredns_longhaul_list_refused{{file=\"/etc/names.txt\"}} {value}\n"
        );
        status.dns = Some(DnsCounts::of(&Scrape::parse(&text), true));
        problems(status, &here()).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(judged(&mut status, 0), [""; 0]);
    let [problem] = &judged(&mut status, 1)[..] else { panic!("one problem") };
    assert!(problem.contains("the list /etc/names.txt is refused"), "{problem}");
}

#[test]
fn a_fault_of_the_packet_rules_is_a_problem_with_its_cure() {
    let mut status = healthy("edge");
    let mut judged = |fault| {
        let machine = Machine { host_faults: vec![("lan0".to_owned(), fault)], ..here() };
        status.problems = problems(&status, &machine);
        (status.problems[0].to_string(), status.present()[0].clone())
    };
    let cure = "systemctl restart longhaul-host@lan0".to_owned();
    let (words, record) = judged(HostFault::Gone { cure });
    let gone = "the packet rules for lan0 are gone, and clients pass this box by: systemctl restart longhaul-host@lan0";
    assert_eq!((words.as_str(), record.kind, record.of.as_str()), (gone, ProblemKind::RulesGone, "lan0"));
    let dropped = |packets, by: Option<&str>| HostFault::Dropped {
        packets,
        ports: "53".to_owned(),
        by: by.map(str::to_owned),
        cure: "ufw allow".to_owned(),
    };
    let (words, first) = judged(dropped(7, Some("ip filter INPUT")));
    assert_eq!(
        words,
        "the last 7 packets of clients behind lan0 to port 53 did not arrive: the chain `ip filter INPUT` drops them. \
         Let them in: ufw allow"
    );
    let (words, second) = judged(dropped(9, Some("ip filter INPUT")));
    assert!(words.starts_with("the last 9 packets"), "{words}");
    assert_eq!(first, second, "the record has no figures that change");
    assert!(judged(dropped(7, None)).0.contains("another firewall drops them"));
}

#[test]
fn a_cache_without_room_is_a_problem_with_the_reason() {
    let mut status = healthy("edge");
    let judged = |status: &mut Status, size_bytes| {
        let why = "no room".to_owned();
        status.cache_fault = Some(CacheFault { dir: PathBuf::from("/var/cache/longhaul"), why, size_bytes });
        problems(status, &here())[0].to_string()
    };
    assert!(judged(&mut status, None).starts_with("the cache is off: no room."));
    assert!(judged(&mut status, Some(64 << 20)).starts_with("the cache is only 64mib: no room."));
}

#[test]
fn a_certificate_warns_before_it_is_a_problem() {
    let judged = |life: i64, left: i64| {
        let mut status = healthy("edge");
        status.certificates = vec![certificate(life, left)];
        let machine = Machine { now_s: (life - left) * DAY_S, ..here() };
        (problems(&status, &machine).len(), problem::warnings(&status, &machine).len())
    };
    assert_eq!([judged(90, 40), judged(90, 15), judged(90, 5), judged(90, -1)], [(0, 0), (0, 1), (1, 0), (1, 0)]);
    let ending = Problem::Certificate {
        of: "pep.example.net".to_owned(),
        file: PathBuf::from("pep.pem"),
        left: Lifetime::Ending { days: 5 },
    };
    assert_eq!(ending.to_string(), "the certificate of pep.example.net ends in 5 days; renew pep.pem");
    let Problem::Certificate { of, file, .. } = ending else { panic!("another problem") };
    let early = Problem::Certificate { of, file, left: Lifetime::NotYet };
    assert_eq!(
        early.to_string(),
        "the certificate of pep.example.net is not valid yet; set the clock of this machine, or renew pep.pem"
    );
}

#[test]
fn an_access_log_that_is_not_written_is_a_problem_and_one_with_room_is_none() {
    let mut status = healthy("edge");
    let told = |status: &Status, free: u64| {
        let machine = Machine { log_free: Some(Bytes(free)), ..here() };
        problems(status, &machine).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(told(&status, 0).is_empty(), "there is no log");
    status.access_log = longhaul_config::AccessLog::File("/var/log/longhaul/access.log".into());
    assert!(told(&status, 1 << 30).is_empty());
    let [full] = told(&status, 4096).try_into().unwrap();
    assert!(full.starts_with("the disk of /var/log/longhaul/access.log is full: lines of the access log are lost"));
    status.access_log_fault = Some("/var/log/longhaul/access.log: Permission denied".to_owned());
    let [fault] = told(&status, 1 << 30).try_into().unwrap();
    assert!(fault.contains("access.log: Permission denied. Clients are served without it"), "{fault}");
}

#[test]
fn a_disk_on_which_the_cache_cannot_grow_to_its_size_is_a_problem() {
    let mut status = healthy("edge");
    status.cache = Some(CacheReport { dir: PathBuf::from("/var/cache/longhaul"), size_bytes: 1000 });
    let held = Scrape::parse("longhaul_objects_requests_total{reason=\"hit\"} 1\nlonghaul_objects_disk_bytes 600\n");
    let cache = CacheCounts::of_objects(&held, &Scrape::parse(""), 1000);
    status.traffic = Some(Traffic { cache, ..Traffic::of("edge", &Scrape::parse("")) });
    let with = |free| Machine { cache_free: Some(Bytes(free)), ..here() };
    assert_eq!(problems(&status, &with(400)), []);
    assert!(matches!(problems(&status, &with(399))[..], [Problem::CacheDisk { held: Bytes(600), .. }]));
}

#[test]
fn a_cache_of_objects_counts_the_hits_of_its_program_and_of_its_reader() {
    let (program, reader) = ("longhaul_objects_requests_total", "longhaul_object_reader_requests_total");
    let reasons = [("hit", 1), ("stale_if_error", 10), ("revalidated", 100), ("stored", 5), ("past", 7)];
    let counts =
        |name: &str| reasons.map(|(reason, count)| format!("{name}{{reason=\"{reason}\"}} {count}\n")).concat();
    let of_program = counts(program) + "longhaul_objects_disk_bytes 4096\n";
    let of = |envoy: &str| CacheCounts::of_objects(&Scrape::parse(&of_program), &Scrape::parse(envoy), 8192).unwrap();
    let (alone, both) = (of(""), of(&counts(reader)));
    assert_eq!((alone.hits, alone.stale, alone.misses, alone.uncacheable), (111, 10, 5, 7));
    assert_eq!((both.hits, both.uncacheable, both.bytes, both.limit_bytes), (112, 14, 4096, 8192));
    assert!(CacheCounts::of_objects(&Scrape::parse(""), &Scrape::parse(""), 1).is_none());
}

/// Returns groups of this many connections each: 600 ms without Longhaul, 1 ms with it.
pub(crate) fn compared(connections: usize) -> Compared {
    let median = |median_us| match connections {
        0..30 => Median::TooFew { connections, needed: 30 },
        _ => Median::Known { median_us, low_us: median_us, high_us: median_us, connections },
    };
    let figures = |time| Figures { set_up: median(time), first_bytes: median(time) };
    let (direct, accelerated) = (figures(600_000), figures(1_000));
    let between = Difference::between(direct.set_up, accelerated.set_up);
    let difference = Differences { set_up: between, first_bytes: between };
    Compared { percent: 5, fault: None, direct, accelerated, difference }
}

#[test]
fn rows_that_do_not_apply_have_no_counts() {
    let of = |role: &str, text: &str| Traffic::of(role, &Scrape::parse(text));
    assert!(of("edge", "").pages.is_some());
    assert!(of("ground", "").pages.is_none());
    assert!(of("ground", "longhaul_url_rewrite_pages_total{} 1\n").pages.is_some());
}

#[test]
fn an_envoy_that_takes_over_from_one_that_serves_is_no_problem() {
    let info = |state: &str, epoch: u64| serde_json::json!({ "state": state, "command_line_options": { "restart_epoch": epoch } });
    assert!(serves(&info("LIVE", 0)) && serves(&info("INITIALIZING", 1)));
    assert!(!serves(&info("INITIALIZING", 0)) && !serves(&serde_json::Value::Null));
}

#[test]
fn an_address_is_missing_if_no_interface_has_it() {
    assert!(!is_missing("127.0.0.1".parse().unwrap()));
    assert!(is_missing("192.0.2.77".parse().unwrap()));
}

#[test]
fn a_link_that_is_off_by_half_is_a_warning_and_no_problem() {
    let mut status = healthy("edge");
    let line = "link: { rtt: 82ms, down: 20mbit, up: 5mbit }".to_owned();
    status.link_measured.misfit = Some(Misfit { values: Vec::new(), line: line.clone() });
    assert_eq!(problems(&status, &here()), []);
    let [warning] = problem::warnings(&status, &here()).try_into().unwrap();
    assert_eq!(warning.to_string(), format!("this line fits: `{line}`"));
}

#[test]
fn groups_that_cannot_be_measured_are_a_warning_and_no_problem() {
    let mut status = healthy("edge");
    status.compared = Some(Compared { fault: Some("it needs CAP_NET_ADMIN".to_owned()), ..compared(0) });
    assert_eq!(problems(&status, &here()), []);
    let [warning] = problem::warnings(&status, &here()).try_into().unwrap();
    assert_eq!(warning.to_string(), "`compare` measures nothing: it needs CAP_NET_ADMIN");
}

#[test]
fn an_envoy_that_takes_over_is_waited_for_and_one_that_nobody_started_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("admin.sock");
    let run = |pid| {
        let mut run = report("edge");
        run.listen.admin = Endpoint::Unix(socket.clone());
        run.envoy.pid = pid;
        run
    };
    let began = Instant::now();
    assert!(!Status::gather(run(None)).envoy.up);
    assert!(began.elapsed() < TAKES_OVER);
    let successor = thread::spawn({
        let socket = socket.clone();
        move || {
            thread::sleep(TAKES_OVER / 8);
            let listener = UnixListener::bind(socket).unwrap();
            for page in [r#"{"state":"LIVE"}"#, ""] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().unwrap().unwrap() != "" {}
                write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{page}", page.len()).unwrap();
            }
        }
    });
    assert!(Status::gather(run(Some(std::process::id()))).envoy.up);
    successor.join().unwrap();
}

#[test]
fn each_of_several_links_is_shown_and_one_that_is_down_is_a_warning() {
    let link = |name: &str, alive| crate::report::LinkState {
        name: name.to_owned(),
        device: format!("{name}0"),
        used: if name == "lte" { "preferred" } else { "backup" }.to_owned(),
        alive,
        changed_at: 0,
        deaths: u32::from(!alive),
        rtt_ms: Some(86),
        address: Some("192.0.2.1".to_owned()),
        down_bytes: 3_000_000,
        up_bytes: 700,
        metered: name == "geo",
        stood_in_s: 0,
        stood_in_down_bytes: 0,
        stood_in_up_bytes: 0,
        multipath: 7,
        plain: 0,
        hindered: None,
    };
    let mut status = healthy("remote");
    assert!(!status.text().contains("lte"));
    status.at = 90;
    status.links = vec![link("lte", false), link("geo", true)];
    let text = status.text();
    assert!(text.contains("lte (lte0, preferred): DOWN 1 min"), "{text}");
    assert!(text.contains("geo (geo0, backup, metered): up 1 min") && text.contains("RTT 86 ms"), "{text}");
    let words = |status: &Status| {
        problem::warnings(status, &here()).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert!(words(&status).contains("the link lte (lte0) is down for 1 min"), "{}", words(&status));
    assert!(words(&status).contains("geo carries everything meanwhile"), "{}", words(&status));
    status.links = vec![link("lte", true), link("geo", true)];
    assert_eq!(words(&status), "");
    // A terminal breaks long rows.
    let text = |status: &Status| status.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text(&status).contains("700 B up, connections 7"), "{}", text(&status));
    (status.links[1].stood_in_s, status.links[1].stood_in_down_bytes) = (120, 2_000_000);
    status.links[1].stood_in_up_bytes = 40_000;
    assert!(text(&status).contains("; stood in for 2 min: 2.0 MB down, 40.0 kB up"), "{}", text(&status));
    (status.links[0].plain, status.links[0].hindered) = (8, Some("its connections end".to_owned()));
    assert!(text(&status).contains("connections 15 (8 of plain TCP)"), "{}", text(&status));
    assert!(words(&status).starts_with("the link lte (lte0): its connections end"), "{}", words(&status));
    status.other_end.vanishing = Some(1500);
    let found = problems(&status, &here()).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(found[0].contains("write `mtu: 1280` in the item of `links`. `longhaul netcheck`"), "{found:?}");
}
