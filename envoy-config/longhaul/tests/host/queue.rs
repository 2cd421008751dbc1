//! `link.device`: the kernel's queue in front of the link, on the kernel of this machine.

use std::process::Command;

use super::{CONFIG, WATCH, on_a_host, parts, skip};

/// The device of the link. Its other end is in a namespace of its own, where `cloud` runs a command.
const LINK: &str = "unshare --net sleep 100 & cloud=$!\n\
    trap 'kill $cloud $client $watch 2>/dev/null || true' EXIT; client= watch=\n\
    own() { readlink /proc/$1/ns/net; }; while [ \"$(own $cloud)\" = \"$(own self)\" ]; do sleep 0.1; done\n\
    ip link add wan0 type veth peer name cloud0; ip link set cloud0 netns $cloud\n\
    cloud() { nsenter --net=/proc/$cloud/ns/net \"$@\"; }\n\
    ip addr add 203.0.113.129/25 dev wan0; ip link set wan0 up\n\
    cloud ip addr add 203.0.113.130/25 dev cloud0; cloud ip link set cloud0 up\n\
    queue() { tc qdisc show dev wan0; tc class show dev wan0; }\n";

/// Sends datagrams for three seconds, three times as fast as the queue lets them pass. Prints the rate at which they arrive,
/// in kbit/s of whole packets.
const RATE: &str = r#"rate() {
cloud python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("203.0.113.130", 9)); s.settimeout(2)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
open("bound", "w").close()
s.recv(2000); first = last = time.monotonic(); count = 0
while last - first < 2.5:
    try: s.recv(2000)
    except TimeoutError: break
    last = time.monotonic(); count += 1
print("rate", round(count * 1442 * 8 / (last - first) / 1000))
' & measured=$!
until [ -e bound ]; do sleep 0.1; done; rm bound
python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); began = time.monotonic(); sent = 0
while (now := time.monotonic() - began) < 3:
    while sent < now * 5000:
        s.sendto(bytes(1400), ("203.0.113.130", 9)); sent += 1
    time.sleep(0.001)
'
wait $measured
}
"#;

fn config() -> String {
    CONFIG.replace("up: 5mbit }", "up: 5mbit, device: wan0 }")
}

/// Runs a script on a host with a device of the link. None without `tc`, or where the kernel limits no rate.
fn on_a_link(script: &str) -> Option<String> {
    let tried = "tc qdisc add dev lo root htb 2>&1 && echo made";
    let tried = Command::new("unshare").args(["--net", "sh", "-c", tried]).output();
    if !tried.is_ok_and(|tried| String::from_utf8_lossy(&tried.stdout).contains("made")) {
        skip("needs root, tc and a kernel with htb");
        return None;
    }
    on_a_host(&config(), &format!("{LINK}{script}"))
}

/// The rate of `RATE`, in kbit/s.
fn rate(text: &str) -> f64 {
    let rate = text.lines().find_map(|line| line.strip_prefix("rate ")).unwrap_or_else(|| panic!("no rate: {text}"));
    rate.parse().unwrap()
}

#[test]
fn the_device_sends_at_the_stated_rate_until_undo_gives_back_its_own_queue() {
    let script = format!(
        "{RATE}queue; rate; echo =====; longhaul --apply 2>&1; queue; rate; echo =====\n\
         longhaul --undo > /dev/null; queue; rate; echo =====; [ ! -e $record ]"
    );
    let Some(text) = on_a_link(&script) else { return };
    let [before, applied, undone, _] = parts(&text)[..] else { panic!("{text}") };
    assert!(applied.contains("4170: root"), "{applied}");
    let (free, shaped) = (rate(before), rate(applied));
    assert!((shaped / 19_000.0 - 1.0).abs() < 0.05, "19 Mbit/s are 95 % of 20: {shaped} kbit/s\n{text}");
    assert!(free > 1.5 * shaped && rate(undone) > 1.5 * shaped, "{text}");
    let queue = |text: &str| text.lines().filter(|line| !line.starts_with("rate ")).map(str::to_owned).collect();
    let (before, undone): (Vec<String>, Vec<String>) = (queue(before), queue(undone));
    assert_eq!(before, undone);
}

#[test]
fn the_script_makes_the_same_queue_and_trying_leaves_nothing_behind() {
    // A counter of packets is no part of the queue: the kernel may send one by itself.
    let script = "all() { tc qdisc show | sed 's/ direct_packets_stat [0-9]*//'; tc class show dev wan0; echo =====; }\n\
                  all; longhaul --print > script; all; sh script > /dev/null; all\n\
                  nft delete table inet longhaul; tc qdisc del dev wan0 root; longhaul --apply > /dev/null 2>&1; all\n\
                  grep '^# off again: tc qdisc del dev wan0 root handle 4170:' script";
    let Some(text) = on_a_link(script) else { return };
    let [before, tried, printed, applied, _] = parts(&text)[..] else { panic!("{text}") };
    assert_eq!(before, tried);
    assert_eq!(printed, applied);
    assert_ne!(before, applied);
}

#[test]
fn a_queue_of_somebody_else_stays_and_the_rest_is_applied() {
    let script = "tc qdisc add dev wan0 root handle 8001: pfifo limit 77; queue; echo =====\n\
                  longhaul --apply 2>&1; nft list tables; echo =====; queue; longhaul --undo > /dev/null; echo =====; queue";
    let Some(text) = on_a_link(script) else { return };
    let [before, said, applied, undone] = parts(&text)[..] else { panic!("{text}") };
    assert!(before.contains("pfifo 8001: root"), "{before}");
    assert_eq!((before, before), (applied, undone));
    assert!(said.contains("warning: wan0 gets no queue: its queue `pfifo 8001:` is somebody else's"), "{said}");
    assert!(said.contains("  not run: tc qdisc add dev wan0 root handle 4170: cake bandwidth 19000000bit"), "{said}");
    assert!(said.contains("table inet longhaul") && said.contains("applied "), "{said}");
}

#[test]
fn a_missing_device_and_a_missing_program_are_named_and_the_rest_is_applied() {
    let script = "ip link del wan0; longhaul --apply 2>&1; nft list tables; longhaul --undo > /dev/null";
    let Some(text) = on_a_link(script) else { return };
    assert!(text.contains("warning: wan0 gets no queue: this machine has no such interface"), "{text}");
    assert!(text.contains("table inet longhaul"), "{text}");
    let script = "mkdir bin; for tool in ip nft; do ln -s $(command -v $tool) bin; done\n\
                  queue; echo =====; PATH=$PWD/bin longhaul --apply 2>&1; nft list tables; echo =====; queue\n\
                  PATH=$PWD/bin longhaul --undo > /dev/null";
    let Some(text) = on_a_link(script) else { return };
    let [before, said, after] = parts(&text)[..] else { panic!("{text}") };
    assert_eq!(before, after);
    assert!(said.contains("warning: wan0 gets no queue: this machine has no program `tc`"), "{said}");
    assert!(said.contains("table inet longhaul"), "{said}");
}

#[test]
fn tc_reads_the_commands_for_a_kernel_with_cake() {
    let script = "tc qdisc add dev wan0 root handle 8001: pfifo; longhaul --print | sed -n 's/^# not run: //p' > later\n\
                  cat later; tc qdisc del dev wan0 root; sh later 2>&1 || true";
    let Some(text) = on_a_link(script) else { return };
    assert!(text.contains("cake bandwidth 19000000bit besteffort dual-dsthost rtt 600ms"), "{text}");
    let (_, said) = text.split_once("rtt 600ms\n").unwrap();
    assert!(!said.contains("Usage") && !said.contains("What is"), "{text}");
}

#[test]
fn check_names_a_device_that_is_missing_somebody_elses_or_too_wide() {
    let script = "checked() { $program check longhaul.yaml 2>&1 | grep -e 'link.device' -e 'wan0 gets' || true; echo =====; }\n\
                  checked; ip route add default via 203.0.113.130; checked; ip route del default\n\
                  tc qdisc add dev wan0 root handle 8001: pfifo; checked; ip link del wan0; checked";
    let Some(text) = on_a_link(script) else { return };
    let [well, wide, foreign, missing, _] = parts(&text)[..] else { panic!("{text}") };
    assert_eq!(well.trim(), "", "before `longhaul host`, the kernel's own queue is as it should be");
    assert!(wide.contains("wan0 (`link.device`) also leads to the Internet"), "{wide}");
    assert!(foreign.contains("its queue `pfifo 8001:` is somebody else's"), "{foreign}");
    assert!(missing.contains("wan0 gets no queue: this machine has no such interface"), "{missing}");
}

#[test]
fn a_fault_of_tc_costs_the_queue_alone() {
    // The first command always changes something. A kernel without cake gets three.
    let script = "mkdir bin; real=$(command -v tc); cat > bin/tc <<X\n\
                  #!/bin/sh\n\
                  case \"\\$*\" in *show*|*ingress_block*|*del*) exec $real \"\\$@\";; esac\n\
                  echo >> $PWD/calls\n\
                  [ \\$(wc -l < $PWD/calls) = \\$(cat $PWD/fail) ] && { echo broken >&2; exit 1; }\n\
                  exec $real \"\\$@\"\n\
                  X\n\
                  chmod +x bin/tc\n\
                  queue; echo =====\n\
                  echo 9 > fail; PATH=$PWD/bin:$PATH longhaul --apply > /dev/null 2>&1; wc -l < calls > all; longhaul --undo > /dev/null\n\
                  for fault in $(seq $(cat all)); do echo $fault > fail; rm -f calls\n\
                  PATH=$PWD/bin:$PATH longhaul --apply 2>&1; nft list tables; grep -c 4170: $record && exit 9; echo =====\n\
                  queue; longhaul --undo > /dev/null; echo =====; done";
    let Some(text) = on_a_link(script) else { return };
    let states = parts(&text);
    assert!(states.len() >= 4, "{text}");
    for applied in states[1..states.len() - 1].chunks(2) {
        let [said, queue] = applied else { panic!("{text}") };
        assert!(said.contains("warning: not done: tc ") && said.contains(": broken"), "{said}");
        assert!(said.contains("table inet longhaul") && said.contains("applied "), "{said}");
        assert_eq!(*queue, states[0]);
    }
}

#[test]
fn undo_needs_no_queue_and_takes_nobody_elses() {
    let script = "longhaul --apply > /dev/null 2>&1; tc qdisc del dev wan0 root; longhaul --undo; [ ! -e $record ]\n\
                  longhaul --apply > /dev/null 2>&1; tc qdisc del dev wan0 root; tc qdisc add dev wan0 root handle 8001: pfifo\n\
                  longhaul --undo; [ ! -e $record ]; queue; tc qdisc del dev wan0 root\n\
                  longhaul --apply > /dev/null 2>&1; ip link del wan0; longhaul --undo; [ ! -e $record ]";
    let Some(text) = on_a_link(script) else { return };
    assert_eq!(text.matches("taken back").count(), 3, "{text}");
    assert!(text.contains("pfifo 8001: root") && !text.contains("warning"), "{text}");
}

#[test]
fn a_watch_names_a_device_that_lost_its_queue_until_it_has_one_again() {
    let script = format!(
        "{WATCH}trap 'kill $cloud $client $watch 2>/dev/null || true' EXIT\n\
         until_says '\"faults\": \\[\\]'; tc qdisc del dev wan0 root; until_says '\"unshaped\"'; faults; echo =====\n\
         longhaul --undo > /dev/null; longhaul --apply > /dev/null 2>&1; until_says '\"faults\": \\[\\]'; faults; echo =====\n\
         ip link del wan0; until_says '\"unshaped\"'; faults"
    );
    let Some(text) = on_a_link(&script) else { return };
    let [lost, made, gone] = parts(&text)[..] else { panic!("{text}") };
    assert!(lost.contains("wan0 has lost the queue of Longhaul"), "{lost}");
    assert!(lost.contains("systemctl restart longhaul-host@lan0"), "{lost}");
    assert!(made.contains("\"faults\": []"), "{made}");
    assert!(gone.contains("wan0 gets no queue: this machine has no such interface"), "{gone}");
}
