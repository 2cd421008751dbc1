//! The program on real devices: its counters, its commands, the errors it reports, and its cleanup.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

mod bed;

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use bed::{
    A, B, Bed, Namespaces, PROGRAM, accept, can_run, command, eventually, in_namespace, ip, ping, readme_block, udp,
};
use nix::sys::signal::Signal;
use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use serde_json::{Value, json};
use simple_dns::{CLASS, Name, Packet, QCLASS, QTYPE, Question, TYPE};

/// Returns the arguments for a link without impairments, and more.
fn clear_with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["--profile", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clear.toml")][..], more].concat()
}

/// Sends numbered datagrams from B to A as fast as possible and returns the numbers that arrive. `count` is at most
/// 200, because they wait in the receiving socket's buffer.
fn datagrams_that_arrive(bed: &Bed, count: u32, length: usize) -> Vec<u32> {
    let receiver = udp(&bed.namespaces.a, A, 7000);
    let sender = udp(&bed.namespaces.b, B, 7000);
    for number in 0..count {
        let mut datagram = vec![0; length];
        datagram[..4].copy_from_slice(&number.to_be_bytes());
        sender.send_to(&datagram, (A, 7000)).expect("it is sent");
    }
    eventually("every datagram has arrived or is lost", || {
        let down = &bed.tell("stats")["down"];
        let gone = down["delivered"]["packets"].as_u64().unwrap() + dropped(down);
        gone >= u64::from(count)
    });
    receiver.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2000];
    let mut numbers = Vec::new();
    loop {
        match receiver.recv(&mut buffer) {
            Ok(_) => numbers.push(u32::from_be_bytes(buffer[..4].try_into().unwrap())),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return numbers,
            Err(error) => panic!("{error}"),
        }
    }
}

fn dropped(direction: &Value) -> u64 {
    direction["dropped"].as_object().unwrap().values().map(|tally| tally["packets"].as_u64().unwrap()).sum()
}

#[test]
fn connections_and_queries_are_counted_with_addresses_and_names() {
    if !can_run("connections and queries are counted") {
        return;
    }
    let bed = Bed::start(&clear_with(&[]));
    let listener = bed.in_b(|| TcpListener::bind((B, 8080)).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..3 {
                accept(&listener).write_all(&[7; 5000]).unwrap();
            }
        });
        for _ in 0..3 {
            let mut stream = bed.in_a(|| TcpStream::connect((B, 8080)).unwrap());
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            assert_eq!(all.len(), 5000);
        }
    });
    let refused = bed.in_a(|| TcpStream::connect((B, 8081))).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

    let server = udp(&bed.namespaces.b, B, 53);
    let client = udp(&bed.namespaces.a, A, 0);
    for (id, name, kind) in [(1, "www.example.org", TYPE::A), (2, "www.example.org", TYPE::HTTPS)] {
        let mut query = Packet::new_query(id);
        query.questions.push(Question::new(
            Name::new(name).unwrap(),
            QTYPE::TYPE(kind),
            QCLASS::CLASS(CLASS::IN),
            false,
        ));
        client.send_to(&query.build_bytes_vec().unwrap(), (B, 53)).unwrap();
        let mut buffer = [0; 512];
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        buffer[2] |= 0x80;
        server.send_to(&buffer[..length], from).unwrap();
        client.recv(&mut buffer).unwrap();
    }

    let statistics = bed.stop();
    let tcp = &statistics["tcp"];
    assert_eq!((&tcp["connections"], &tcp["syn_packets"]), (&json!(4), &json!(4)));
    let first = &tcp["list"][0];
    assert_eq!(first["server"], json!(SocketAddr::from((B, 8080)).to_string()));
    assert_eq!(first["way"], "up");
    assert!(first["bytes_down"].as_u64().unwrap() > 5000);
    assert!(first["answered_ms"].as_f64().unwrap() >= first["opened_ms"].as_f64().unwrap());
    assert_eq!(tcp["list"][3]["closed_by"], "reset");
    let dns = &statistics["dns"];
    assert_eq!((&dns["queries"], &dns["answers"], &dns["unread"]), (&json!(2), &json!(2), &json!(0)));
    let asked: Vec<_> = dns["list"].as_array().unwrap().iter().map(|query| (&query["name"], &query["type"])).collect();
    let www = json!("www.example.org");
    assert_eq!(asked, [(&www, &json!("A")), (&www, &json!("HTTPS"))]);
    assert!(dns["list"][0]["answered_ms"].is_f64());
    assert_eq!(statistics["packets"]["other"], 0, "nothing else crosses an idle link: {}", statistics["packets"]);
    assert_eq!(statistics["packets"]["icmp"], 0);
}

#[test]
fn the_same_seed_loses_the_same_packets_again_and_another_seed_others() {
    if !can_run("the same seed loses the same packets") {
        return;
    }
    let lost_with = |seed| {
        let arguments = clear_with(&["--set", "down.random_loss = 0.1", "--seed", seed]);
        let bed = Bed::start(&arguments);
        assert!(bed.ready.contains(&format!("seed={seed} ")), "{}", bed.ready);
        let arrived: BTreeSet<_> = datagrams_that_arrive(&bed, 200, 100).into_iter().collect();
        let lost: Vec<u32> = (0..200).filter(|number| !arrived.contains(number)).collect();
        let statistics = bed.stop();
        assert_eq!(statistics["down"]["dropped"]["random_loss"]["packets"], json!(lost.len()));
        lost
    };
    let lost = lost_with("11");
    assert!((5..=40).contains(&lost.len()), "{} of 200 lost at one in ten", lost.len());
    assert_eq!(lost, lost_with("11"));
    assert_ne!(lost, lost_with("12"));
}

#[test]
fn a_burst_beyond_the_queue_is_cut_at_its_tail() {
    if !can_run("a burst beyond the queue is cut") {
        return;
    }
    // A packet has 1,028 bytes with its headers, so 19 fit into 20,000 bytes. At 100 kbit/s one leaves every 82 ms. So
    // few packets leave while the burst arrives, even if the sender has to wait for a processor.
    let bed = Bed::start(&clear_with(&["--set", "down = { rate_bps = 100_000, queue_bytes = 20_000 }"]));
    let arrived = datagrams_that_arrive(&bed, 100, 1000);
    let statistics = bed.stop();
    let highest = statistics["down"]["queue"]["highest_bytes"].as_u64().unwrap();
    assert!((18_972..=20_000).contains(&highest), "highest level {highest}");
    assert_eq!(arrived[..19], (0..19).collect::<Vec<_>>()[..]);
    assert!(arrived.len() <= 25, "{} of 100 got through", arrived.len());
    assert_eq!(statistics["down"]["dropped"]["queue_full"]["packets"], json!(100 - arrived.len()));
}

#[test]
fn an_outage_on_command_holds_packets_until_it_ends() {
    if !can_run("an outage on command") {
        return;
    }
    let bed = Bed::start(&clear_with(&[]));
    let is_open = || ping(&bed, 5).into_iter().min() < Some(Duration::from_millis(100));
    assert!(is_open());
    let began = Instant::now();
    assert_eq!(bed.tell("outage 700ms up"), json!({"done": "outage"}));
    ping(&bed, 1);
    let waited = began.elapsed();
    assert!((690..3000).contains(&waited.as_millis()), "{waited:?}");
    assert!(is_open());
    assert!(bed.tell("outage forever")["error"].as_str().unwrap().contains("expected for example 5s"));
}

#[test]
fn a_reset_begins_counting_afresh_and_hands_over_what_was_counted() {
    if !can_run("a reset begins afresh") {
        return;
    }
    let bed = Bed::start(&clear_with(&["--timeline-ms", "100"]));
    ping(&bed, 3);
    let before = bed.tell("reset");
    assert_eq!(before["up"]["delivered"], json!({"packets": 3, "bytes": 84}));
    ping(&bed, 1);
    let after = bed.stop();
    assert_eq!(after["up"]["delivered"], json!({"packets": 1, "bytes": 28}));
    assert!(after["elapsed_s"].as_f64().unwrap() < before["elapsed_s"].as_f64().unwrap() + 5.0);
    assert_eq!((&before["packets"]["icmp"], &after["packets"]["icmp"]), (&json!(6), &json!(2)));
    let timeline = &after["up"]["timeline"];
    let bytes: u64 = timeline["bytes"].as_array().unwrap().iter().map(|bytes| bytes.as_u64().unwrap()).sum();
    assert_eq!((timeline["slice_ms"].as_f64(), bytes), (Some(100.0), 28));
}

/// Returns the paths of all keys. The first element of a list stands for all of them.
fn keys(value: &Value, path: &str) -> BTreeSet<String> {
    match value {
        Value::Object(object) => object
            .iter()
            .flat_map(|(key, value)| {
                let path = format!("{path}.{key}");
                keys(value, &path).into_iter().chain([path])
            })
            .collect(),
        Value::Array(list) => list.first().map(|first| keys(first, path)).unwrap_or_default(),
        _ => BTreeSet::new(),
    }
}

#[test]
fn the_readme_shows_the_statistics_as_they_are() {
    if !can_run("the README shows the statistics") {
        return;
    }
    let bed = Bed::start(&clear_with(&["--timeline-ms", "100"]));
    drop(bed.in_a(|| TcpStream::connect((B, 80))));
    let mut query = Packet::new_query(1);
    let class = QCLASS::CLASS(CLASS::IN);
    query.questions.push(Question::new(Name::new("example.org").unwrap(), QTYPE::TYPE(TYPE::A), class, false));
    let client = udp(&bed.namespaces.a, A, 0);
    for port in [53, 443] {
        client.send_to(&query.build_bytes_vec().unwrap(), (B, port)).unwrap();
    }
    eventually("both are counted", || bed.tell("stats")["packets"]["udp"] == 2);
    let mut shown: Value = serde_json::from_str(readme_block("json")).unwrap();
    shown["down"] = shown["up"].clone();
    assert_eq!(keys(&shown, ""), keys(&bed.stop(), ""));
}

#[test]
fn sigusr1_writes_the_statistics_and_the_link_goes_on() {
    if !can_run("SIGUSR1 writes the statistics") {
        return;
    }
    let mut bed = Bed::start(&clear_with(&[]));
    ping(&bed, 2);
    bed.signal(Signal::SIGUSR1);
    assert_eq!(bed.next_json()["up"]["delivered"]["packets"], 2);
    ping(&bed, 1);
    assert_eq!(bed.stop()["up"]["delivered"]["packets"], 3);
}

#[test]
fn the_devices_have_no_offloads_and_the_mtu_of_the_profile_and_vanish_with_the_process() {
    if !can_run("the devices vanish") {
        return;
    }
    let mut bed = Bed::start(&clear_with(&["--set", "mtu_bytes = 1280"]));
    let device = |bed: &Bed| ip(&["-n", &bed.namespaces.a, "-d", "link", "show", "dev", "tun0"]);
    let shown = device(&bed);
    assert!(shown.contains("mtu 1280") && shown.contains("vnet_hdr off"), "{shown}");
    let addresses = ip(&["-n", &bed.namespaces.a, "addr", "show", "dev", "tun0"]);
    assert!(addresses.contains("192.0.2.1/30") && !addresses.contains("inet6"), "{addresses}");
    // SIGKILL leaves the emulator no chance to clean up.
    bed.signal(Signal::SIGKILL);
    bed.child.wait().unwrap();
    for name in [&bed.namespaces.a, &bed.namespaces.b] {
        eventually("the device is gone", || !ip(&["-n", name, "link"]).contains("tun"));
    }
}

#[test]
fn a_device_deleted_under_the_link_is_an_error_and_the_statistics_are_written_all_the_same() {
    if !can_run("a device deleted under the link") {
        return;
    }
    let mut bed = Bed::start(&clear_with(&[]));
    ping(&bed, 1);
    ip(&["-n", &bed.namespaces.a, "link", "del", "tun0"]);
    assert_eq!(bed.next_json()["up"]["delivered"]["packets"], 1);
    assert_eq!(bed.child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_device_that_is_down_for_a_while_loses_packets_and_says_so() {
    if !can_run("a device that is down") {
        return;
    }
    let bed = Bed::start(&clear_with(&["--set", "down.delay_ms = 200"]));
    let sender = udp(&bed.namespaces.b, B, 7000);
    sender.send_to(b"on its way", (A, 7000)).unwrap();
    ip(&["-n", &bed.namespaces.a, "link", "set", "tun0", "down"]);
    eventually("the packet is refused", || bed.tell("stats")["down"]["dropped"]["device_refused"]["packets"] == 1);
    ip(&["-n", &bed.namespaces.a, "link", "set", "tun0", "up"]);
    assert_eq!(ping(&bed, 1).len(), 1);
    assert_eq!(bed.stop()["down"]["delivered"]["packets"], 1);
}

#[test]
fn a_capture_holds_what_the_end_sees() {
    if !can_run("a capture holds what the end sees") {
        return;
    }
    let file = std::env::temp_dir().join(format!("longhaul-link-{}.pcap", std::process::id()));
    let bed = Bed::start(&clear_with(&["--set", "down.delay_ms = 50", "--a-pcap", file.to_str().unwrap()]));
    ping(&bed, 2);
    bed.stop();
    let mut capture = PcapReader::new(std::fs::File::open(&file).unwrap()).unwrap();
    assert_eq!(capture.header().datalink, DataLink::RAW);
    let mut packets = Vec::new();
    while let Some(packet) = capture.next_packet() {
        let packet = packet.unwrap();
        packets.push((packet.timestamp, packet.data[20]));
    }
    std::fs::remove_file(&file).unwrap();
    // Requests (8) when they are sent, responses (0) when they have arrived.
    assert_eq!(packets.iter().map(|(_, kind)| *kind).collect::<Vec<_>>(), [8, 0, 8, 0]);
    assert!(packets[1].0 >= packets[0].0 + Duration::from_millis(50));
}

#[test]
fn ipv6_crosses_where_it_is_asked_for() {
    if !can_run("IPv6 crosses") {
        return;
    }
    let bed = Bed::start(&clear_with(&["--a-addr", "2001:db8::1/64", "--b-addr", "2001:db8::2/64"]));
    let listener = bed.in_b(|| TcpListener::bind("[2001:db8::2]:80").unwrap());
    bed.in_a(|| TcpStream::connect("[2001:db8::2]:80").unwrap());
    accept(&listener);
    let statistics = bed.stop();
    assert_eq!(statistics["tcp"]["list"][0]["server"], "[2001:db8::2]:80");
}

// ------------------------------------------------------------------------------------------------- what is refused

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_wrong_profile_namespace_or_address_is_refused_with_what_to_do() {
    let run = |arguments: &[&str]| refused(&Command::new(PROGRAM).args(arguments).output().unwrap());
    let message = run(&["--profile", "moon"]);
    assert!(message.contains("no profile is called `moon`; there are geo, "), "{message}");
    let message = run(&["--profile", "geo", "--a-netns", "no-such-namespace"]);
    assert!(message.contains("/run/netns/no-such-namespace") && message.contains("ip netns add NAME"), "{message}");
    let message = run(&["--profile", "geo", "--a-addr", "192.0.2.1"]);
    assert!(message.contains("expected for example 10.1.0.1/30"), "{message}");
    assert!(run(&[]).contains("--profile"));
    let message = run(&["control", "/no/such/socket", "stats"]);
    assert!(message.contains("no emulator listens on /no/such/socket"), "{message}");
}

#[test]
fn without_root_it_says_what_it_needs() {
    if !can_run("without root it says what it needs") {
        return;
    }
    // Makes a copy that an unprivileged user can execute, with another process. If this process wrote it, a program
    // that another test starts meanwhile would inherit the descriptor. A file that is open for writing cannot be
    // executed.
    let copy = std::env::temp_dir().join(format!("longhaul-link-{}", std::process::id()));
    assert!(Command::new("cp").args([PROGRAM.as_ref(), copy.as_os_str()]).status().unwrap().success());
    let nobody = 65_534;
    let output = Command::new(&copy).args(["--profile", "geo"]).uid(nobody).gid(nobody).output();
    std::fs::remove_file(&copy).unwrap();
    let message = refused(&output.unwrap());
    assert!(message.contains("run as root, or with CAP_NET_ADMIN"), "{message}");
}

#[test]
fn a_device_name_in_use_is_refused_and_the_one_in_use_is_left_alone() {
    if !can_run("a device name in use") {
        return;
    }
    let namespaces = Namespaces::new();
    ip(&["-n", &namespaces.a, "tuntap", "add", "dev", "tun0", "mode", "tap"]);
    let message = refused(&command(&namespaces).args(["--profile", "geo"]).output().unwrap());
    assert!(message.contains("tun0") && message.contains(&namespaces.a), "{message}");
    assert!(ip(&["-n", &namespaces.a, "link"]).contains("tun0"));
    assert!(!ip(&["-n", &namespaces.b, "link"]).contains("tun1"));
}

#[test]
fn a_namespace_keeps_its_own_devices_of_the_same_name() {
    if !can_run("the same name at both ends") {
        return;
    }
    let bed = Bed::start(&clear_with(&["--b-dev", "tun0"]));
    ping(&bed, 1);
    assert!(in_namespace(&bed.namespaces.b, || ip(&["link"])).contains("tun0"));
}
