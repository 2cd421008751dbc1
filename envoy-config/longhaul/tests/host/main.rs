//! `longhaul host` on its own machine: a network namespace that ends with the test.
//!
//! The tests need root, `ip`, `nft` and `unshare`. Otherwise they are skipped, or fail with `LONGHAUL_REQUIRE_ALL=1`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod queue;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::{env, fs, thread};

use snapbox::{Assert, Data};

const CONFIG: &str = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\n\
                      proxy: { addresses: [198.51.100.12] }\n\
                      listen: { http: [0.0.0.0:8080, \"[::]:8080\"], intercept: redirect }\n\
                      upstream: { resolvers: [192.0.2.53] }\n";

/// The commands that print the state of the host, to compare it.
const STATE: &str = "ip -4 route show dev lan0; ip -6 route show dev lan0; ip -4 rule show; ip -6 rule show; nft list ruleset; \
                     cat /proc/sys/net/ipv4/tcp_wmem /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_slow_start_after_idle /proc/sys/net/ipv4/ip_forward; echo =====";

/// Makes the pair of the quick start, and prints the packet rules of its ship.
const SHIP: &str = "$program pair init ship 198.51.100.40:8443 --rtt 600ms --down 20mbit --up 5mbit --clients 192.0.2.1 \
                    --resolver 203.0.113.53 > init.txt; $program host pair/ship/longhaul.yaml --clients lan0 \
                    --record \"$record\" > rules.sh 2> warnings; sed -n '/^table inet longhaul {/,/^}/p' rules.sh";

fn skip(reason: &str) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    assert!(env::var_os("LONGHAUL_REQUIRE_ALL").is_none_or(|value| value != "1"), "skipped: {reason}");
    eprintln!("skipped: {test}: {reason}");
    if let Some(list) = env::var_os("LONGHAUL_SKIPS") {
        let mut list = File::options().append(true).create(true).open(list).unwrap();
        writeln!(list, "envoy-config {test}: {reason}").unwrap();
    }
}

/// Runs a shell script in a namespace with an interface `lan0`. `$longhaul` is the command on the configuration and
/// that interface. `state` prints the state of the host.
fn on_a_host(config: &str, script: &str) -> Option<String> {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !rustix::process::geteuid().is_root() || !["ip", "nft", "unshare"].into_iter().all(has) {
        skip("needs root, ip, nft and unshare");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("longhaul.yaml");
    fs::write(&file, config).unwrap();
    let program = env!("CARGO_BIN_EXE_longhaul");
    let record = folder.path().join("record.json");
    let longhaul = format!("{program} host {} --clients lan0 --record {}", file.display(), record.display());
    let script = format!(
        "set -eu\nprogram={program}\nrecord={}\nlonghaul() {{ {longhaul} \"$@\"; }}\nstate() {{ {STATE}; }}\n\
         ip link set lo up\nip link add lan0 type veth peer name far0\nip link set far0 up\nip addr add 192.0.2.1/24 dev lan0\nip addr add 2001:db8:1::1/64 dev lan0 nodad\nip link set lan0 up\n\
         ip route add 203.0.113.0/24 via 192.0.2.7\n{script}",
        record.display()
    );
    let Output { status, stdout, stderr } = Command::new("unshare")
        .args(["--net", "sh", "-c", &script])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{stdout}\n{stderr}");
    Some(format!("{stdout}{stderr}"))
}

fn parts(text: &str) -> Vec<&str> {
    text.split("=====\n").collect()
}

/// A remote with two links. The certificates are those of the tests of files.
fn two_links() -> String {
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/config/files");
    format!(
        "role: remote\nlinks:\n- {{ name: lte, device: lte0, rtt: 80ms, down: 8mbit, up: 2mbit }}\n\
         - {{ name: geo, device: geo0, rtt: 600ms, down: 20mbit, up: 5mbit, price: metered }}\n\
         proxy: {{ addresses: [192.0.2.1] }}\n\
         split: {{ peer: \"198.51.100.40:8443\", cert: {files}/pep.pem, key: {files}/pep.key, ca: {files}/pep.pem }}\n"
    )
}

#[test]
fn a_cut_of_one_of_several_links_is_no_firewall_for_the_kernel() {
    is_set_for_several_links("blackhole_timeout", "0\n");
}

#[test]
fn a_connection_without_a_subflow_ends_within_seconds() {
    is_set_for_several_links("close_timeout", "20\n");
}

/// Looks at a setting of Multipath TCP before a plan, after it, and after its end. Older kernels have none of this name.
fn is_set_for_several_links(name: &str, wanted: &str) {
    if !fs::exists(format!("/proc/sys/net/mptcp/{name}")).unwrap() {
        return;
    }
    let value = format!("cat /proc/sys/net/mptcp/{name}; echo =====");
    let script = format!("{value}; longhaul --apply > /dev/null; {value}; longhaul --undo > /dev/null; {value}");
    let Some(text) = on_a_host(&two_links(), &script) else { return };
    let [before, applied, undone, _] = parts(&text)[..] else { panic!("{text}") };
    assert_eq!(applied, wanted);
    assert_ne!(before, applied);
    assert_eq!(before, undone);
    let Some(text) = on_a_host(CONFIG, &format!("{value}; longhaul --apply > /dev/null; {value}")) else { return };
    let [before, applied, _] = parts(&text)[..] else { panic!("{text}") };
    assert_eq!(before, applied, "one link needs nothing");
}

#[test]
fn a_watch_keeps_routes_of_each_link_that_has_an_address_and_undoes_them_at_its_end() {
    let script = "ip link add lte0 type veth peer name lte9; ip addr add 203.0.113.2/30 dev lte0; ip link set lte0 up; ip link set lte9 up\n\
                  ip route add default via 203.0.113.1 dev lte0\n\
                  rules() { ip rule show | grep -c 418 || true; }\nrules\n\
                  $program host longhaul.yaml --clients lan0 --watch --report report.json 2> said & watch=$!\n\
                  for i in $(seq 100); do [ \"$(rules)\" = 3 ] && grep -q 'geo is down' said && break; sleep 0.1; done\n\
                  rules; ip route show table 4180; ip rule show | grep 4181; cat said\n\
                  kill $watch; wait $watch\nrules; ip route show default";
    let Some(text) = on_a_host(&two_links(), script) else { return };
    assert!(text.starts_with("0\n3\ndefault via 203.0.113.1 dev lte0 src 203.0.113.2 \n"), "{text}");
    assert!(text.contains("from 203.0.113.2 fwmark 0 lookup 4182"), "{text}");
    assert!(text.contains("the link geo is down: geo0 has no address"), "{text}");
    assert!(text.contains("\n0\ndefault via 203.0.113.1 dev lte0 \n"), "{text}");
}

#[test]
fn apply_changes_the_host_and_undo_restores_it() {
    let script = "state; longhaul --apply > /dev/null; state; longhaul --undo > /dev/null; state";
    let Some(text) = on_a_host(CONFIG, script) else { return };
    let [before, applied, undone, _] = parts(&text)[..] else { panic!("{text}") };
    for route in [
        "192.0.2.0/24 proto kernel scope link src 192.0.2.1 initcwnd 173 initrwnd 173",
        "203.0.113.0/24 via 192.0.2.7 initcwnd 173 initrwnd 173",
        "2001:db8:1::/64 proto kernel metric 256 initcwnd 173 initrwnd 173",
    ] {
        assert!(applied.contains(route), "{route}\n{applied}");
    }
    for rule in [
        "tcp dport 80 counter name \"to_80\" redirect to :8080",
        "tcp dport 443 counter name \"to_443\" redirect to :443",
        "udp dport 53 counter name \"to_53\" redirect to :53",
    ] {
        assert!(applied.contains(rule), "{rule}\n{applied}");
    }
    assert!(applied.contains("6000000\n"), "{applied}");
    assert_ne!(before, applied);
    assert_eq!(before, undone);
}

#[test]
fn the_printed_script_does_the_same_as_apply() {
    let script = "longhaul --print > script; sh script > /dev/null; state; \
                  nft delete table inet longhaul; longhaul --apply > /dev/null; state";
    let Some(text) = on_a_host(CONFIG, script) else { return };
    let [printed, applied, _] = parts(&text)[..] else { panic!("{text}") };
    assert_eq!(printed, applied);
}

#[test]
fn tproxy_marks_what_it_takes_and_keeps_it_here() {
    let config = CONFIG.replace("intercept: redirect", "intercept: tproxy, dns: off");
    let script =
        "state; longhaul --apply > /dev/null; state; ip route show table 4170; longhaul --undo > /dev/null; state";
    let Some(text) = on_a_host(&config, script) else { return };
    let [before, applied, after, _] = parts(&text)[..] else { panic!("{text}") };
    assert!(
        applied.contains("tcp dport 80 counter name \"to_80\" tproxy ip to :8080 meta mark set 0x0000104a accept"),
        "{applied}"
    );
    assert!(
        applied.contains("tcp dport 80 counter name \"to_80\" tproxy ip6 to :8080 meta mark set 0x0000104a accept"),
        "{applied}"
    );
    assert_eq!(applied.matches("fwmark 0x104a lookup 4170").count(), 2, "{applied}");
    assert!(!applied.contains("dport 53"), "{applied}");
    assert!(after.starts_with("local default dev lo"), "{after}");
    assert_eq!(after.split_once('\n').map(|(_, rest)| rest), Some(before));
}

#[test]
fn other_ports_are_taken_but_for_private_destinations_and_those_of_this_host() {
    let pem = |suffix: &str| format!("{}/tests/config/files/pep.{suffix}", env!("CARGO_MANIFEST_DIR"));
    for (intercept, tcp, dialled, took) in [
        ("redirect", "[22, 993]", "{ 22, 993 }", "redirect to :4170"),
        ("redirect", "all", "!= { 25, 53, 80, 443 }", "redirect to :4170"),
        ("tproxy", "[22, 993]", "{ 22, 993 }", "tproxy ip6 to :4170 meta mark set 0x0000104a accept"),
    ] {
        let config = format!(
            "role: remote\nlink: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
             listen: {{ tcp: {tcp}, intercept: {intercept} }}\ncompare: 1%\n\
             split: {{ peer: \"198.51.100.40:8443\", cert: {0}, key: {1}, ca: {0} }}\n",
            pem("pem"),
            pem("key")
        );
        let script = "longhaul --apply > /dev/null; nft list table inet longhaul; echo =====";
        let Some(text) = on_a_host(&config, script) else { return };
        let at = |rule: &str| text.find(rule).unwrap_or_else(|| panic!("no rule `{rule}`:\n{text}"));
        let taken = at(&format!("tcp dport {dialled} counter name \"to_tcp\" {took}"));
        // A range of each family, from the table of special addresses.
        for (family, range) in [("ip", "10.0.0.0/8, "), ("ip6", "fc00::/7, ")] {
            let private = at(&format!("tcp dport {dialled} {family} daddr {{ "));
            let rule = text[private..].lines().next().unwrap();
            assert!(rule.contains(range) && rule.ends_with("} accept"), "{rule}");
            assert!(at("fib daddr type local accept") < private && private < taken, "{text}");
        }
        assert!(at(&format!("tcp dport {dialled} jhash ip saddr mod 100 seed 0x104a 0-0 accept")) < taken, "{text}");
        let arrived = match intercept {
            "tproxy" => "ct state new tcp dport { 22, 993 } fib daddr type != local counter name \"at_tcp\"",
            _ => "ct state new tcp dport 4170 counter name \"at_tcp\"",
        };
        at(arrived);
        let guarded = text.lines().find(|line| line.contains("reject with tcp reset")).unwrap();
        assert!(guarded.contains("4170"), "strangers reach the listener: {guarded}");
    }
    let Some(text) = on_a_host(CONFIG, "longhaul --apply > /dev/null; nft list table inet longhaul") else { return };
    assert!(!text.contains("4170") && !text.contains("to_tcp"), "{text}");
}

#[test]
fn a_share_of_the_clients_passes_before_any_listener_and_both_groups_are_copied() {
    let accounting = "/proc/sys/net/netfilter/nf_conntrack_acct";
    for intercept in ["redirect", "tproxy"] {
        let config = CONFIG.replace("intercept: redirect", &format!("intercept: {intercept}")) + "compare: 1%\n";
        let script = format!(
            "all() {{ [ ! -e {accounting} ] || cat {accounting}; state; }}; \
             all; longhaul --apply > /dev/null; all; longhaul --undo > /dev/null; all"
        );
        let Some(text) = on_a_host(&config, &script) else { return };
        let [before, applied, undone, _] = parts(&text)[..] else { panic!("{text}") };
        let at = |rule: &str| applied.find(rule).unwrap_or_else(|| panic!("no rule `{rule}`:\n{applied}"));
        if intercept == "tproxy" {
            let (begun, any) = ("socket transparent 1 socket wildcard 0 meta mark", "socket transparent 1 meta mark");
            let pass = at("jhash ip saddr mod 100 seed 0x104a 0-0 accept");
            assert!(
                at(begun) < pass && pass < at(any),
                "a listener for any address would take the packets:\n{applied}"
            );
        }
        for (family, taken) in [
            ("ip", format!("tcp dport 80 counter name \"to_80\" {intercept} ")),
            ("ip6", format!("tcp dport 443 counter name \"to_443\" {intercept} ")),
        ] {
            let pass = format!("tcp dport {{ 80, 443 }} jhash {family} saddr mod 100 seed 0x104a 0-0 accept");
            assert!(at(&pass) < at(&taken), "{applied}");
            at(&format!(
                "fib daddr type != local jhash {family} saddr mod 100 seed 0x104a 0-0 log prefix \"longhaul-direct\""
            ));
            at(&format!(
                "tcp dport {{ 443, 8080 }} fib daddr type local jhash {family} saddr mod 100 seed 0x104a 1-1 log"
            ));
            at(&format!(
                "tcp sport {{ 80, 443, 8080 }} jhash {family} daddr mod 100 seed 0x104a 1-1 log prefix \"longhaul-accelerated\""
            ));
        }
        assert_eq!(before, undone);
    }
}

#[test]
fn applying_twice_is_refused_because_the_way_back_would_be_lost() {
    let script = "longhaul --apply; longhaul --apply && exit 9; longhaul --undo; longhaul --undo && exit 9; true";
    let Some(text) = on_a_host(CONFIG, script) else { return };
    assert!(text.contains("records that rules are applied already"), "{text}");
    assert!(text.contains("nothing is applied"), "{text}");
}

#[test]
fn a_step_that_fails_takes_back_the_ones_before_it() {
    // The rules are the last step.
    let script = "state; printf '#!/bin/sh\\necho broken >&2; exit 1\\n' > nft; chmod +x nft; \
                  PATH=$PWD:$PATH longhaul --apply && exit 9; state";
    let Some(text) = on_a_host(CONFIG, script) else { return };
    let [before, after, rest] = parts(&text)[..] else { panic!("{text}") };
    assert_eq!(before.lines().collect::<Vec<_>>(), after.lines().collect::<Vec<_>>());
    assert!(rest.contains("broken; nothing was changed"), "{rest}");
}

#[test]
fn a_remote_refuses_quic_only_where_configured_and_its_pipe_takes_a_page_at_once() {
    let config = |udp443: &str| {
        let files = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/config/files");
        format!(
            "role: remote\n\
             link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\n\
             proxy: {{ addresses: [198.51.100.12] }}\n\
             split: {{ peer: \"198.51.100.40:8443\", cert: {files}/pep.pem, key: {files}/pep.key, ca: {files}/pep.pem, udp443: {udp443} }}\n"
        )
    };
    let rule = "iifname \"lan0\" udp dport 443 reject";
    let Some(refused) = on_a_host(&config("refuse"), "longhaul --apply > /dev/null; state") else { return };
    assert!(refused.contains(rule), "{refused}");
    // Half of the default is the first window of the pipe: 173 segments of 1460 bytes.
    assert!(refused.contains("4096\t505160\t"), "{refused}");
    let compared = config("refuse") + "compare: 5%\n";
    let Some(compared) = on_a_host(&compared, "longhaul --apply > /dev/null; state") else { return };
    let pass = compared.find("udp dport 443 jhash ip saddr mod 100 seed 0x104a 0-4 accept");
    assert!(pass.is_some() && pass < compared.find(rule), "{compared}");
    let Some(edge) = on_a_host(CONFIG, "longhaul --apply > /dev/null; state") else { return };
    assert!(!edge.contains("\t505160\t"), "{edge}");
    let Some(passed) = on_a_host(&config("pass"), "longhaul --apply > /dev/null; state") else { return };
    assert!(!passed.contains("udp dport 443"), "{passed}");
}

#[test]
fn acme_servers_reach_the_listener_for_challenges_and_no_other_only_where_it_is_set() {
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/config/files");
    let config = |acme: &str| {
        let names = CONFIG.replace("proxy: {", "proxy: { secure_names: [pep.example.net],");
        let entry = format!("{{ names: [pep.example.net], cert: {files}/pep.pem, key: {files}/pep.key }}");
        format!("{names}tls: {{ terminate: [ {entry} ], acme: {acme} }}\n")
    };
    let rule = "meta nfproto ipv4 fib daddr type local tcp dport 80 redirect to :8402";
    let script = "state; longhaul --apply > /dev/null; state; longhaul --undo > /dev/null; state";
    let webroot = config(&format!("{{ webroot: {files} }}"));
    let Some(text) = on_a_host(&webroot, script) else { return };
    let [before, applied, undone, _] = parts(&text)[..] else { panic!("{text}") };
    assert!(applied.contains(rule), "{applied}");
    assert!(applied.contains("tcp dport { 53, 443, 853, 8080, 8443 } reject with tcp reset"), "{applied}");
    assert!(applied.contains("udp dport { 53, 443, 853 } reject"), "{applied}");
    assert_eq!(before, undone);
    for acme in ["off".to_owned(), format!("{{ webroot: {files}, listen: off }}")] {
        let Some(text) = on_a_host(&config(&acme), script) else { return };
        assert!(!text.contains("8402") && !text.contains("chain challenges"), "{text}");
    }
}

#[test]
fn an_interface_that_does_not_exist_is_refused_with_those_that_do() {
    let script = "state; $program host longhaul.yaml --clients eth9 --record $record --apply && exit 9; state";
    let Some(text) = on_a_host(CONFIG, script) else { return };
    let [before, after, rest] = parts(&text)[..] else { panic!("{text}") };
    assert_eq!(before, after);
    assert!(rest.contains("there is no network interface `eth9`; this machine has far0, "), "{rest}");
}

/// The names of a unit may have a colon, and no comma.
#[test]
fn clients_may_be_behind_several_interfaces_with_one_record() {
    let cable = "ip link add lan1 type veth peer name far1; ip addr add 192.0.2.129/25 dev lan1; \
                 ip link set lan1 up; ip link set far1 up";
    let all = "all() { state; ip -4 route show dev lan1; }";
    for list in ["lan0,lan1", "lan0:lan1"] {
        let script = format!(
            "{cable}; {all}; host=\"$program host longhaul.yaml --clients {list} --record $record\"; \
             all; $host --apply > /dev/null; all; $host --undo > /dev/null; all; $host --print | grep -- --apply"
        );
        let config = CONFIG.replace("intercept: redirect", "intercept: redirect, tls: off") + "compare: 1%\n";
        let config =
            config.replace("addresses: [198.51.100.12]", "addresses: [198.51.100.12], siblings: [198.51.100.42]");
        let Some(text) = on_a_host(&config, &script) else { return };
        let [before, applied, undone, printed] = parts(&text)[..] else { panic!("{text}") };
        for rule in
            ["iifname != { \"lan0\", \"lan1\" } accept", "oifname { \"lan0\", \"lan1\" } ip daddr 198.51.100.12 drop"]
        {
            assert!(applied.contains(rule), "{rule}\n{applied}");
        }
        // nft chooses the order in a set.
        let open = applied.lines().find(|line| line.trim_start().starts_with("iifname {")).unwrap_or_default();
        assert!(["\"lan0\"", "\"lan1\"", "\"lo\""].iter().all(|name| open.contains(name)), "{applied}");
        assert!(undone.starts_with("192.0.2.128/25 proto kernel scope link src 192.0.2.129 initcwnd 173"), "{undone}");
        let without_routes = |text: &str| text.split_once("192.0.2.0/24").map(|(_, rest)| rest.to_owned());
        assert_eq!(without_routes(before), without_routes(undone));
        assert!(printed.contains(&format!("--clients {list} --apply")), "{printed}");
    }
    let script = "for list in lan0, lan0,lan0 lan0,a/b lan0,nowhere9; do \
                  $program host longhaul.yaml --clients $list --record $record --apply && exit 9; done; nft list tables";
    let Some(text) = on_a_host(CONFIG, script) else { return };
    for words in ["or several: lan0,lan0.20", "lan0 is named twice", "no network interface `nowhere9`"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(!text.contains("table inet"), "{text}");
}

#[test]
fn undo_needs_neither_the_file_nor_the_interface_and_every_hint_names_the_record() {
    let script = "state; longhaul --apply; longhaul --apply && exit 9; rm longhaul.yaml; \
                  $program host --undo --record $record > /dev/null; state";
    let Some(text) = on_a_host(CONFIG, script) else { return };
    let [before, after, rest] = parts(&text)[..] else { panic!("{text}") };
    let (hint, after) = after.split_once('\n').unwrap();
    assert_eq!(before, after);
    for text in [hint, rest] {
        assert!(text.contains("longhaul host --undo --record /"), "{text}");
    }
}

#[test]
fn a_second_configuration_does_not_replace_the_rules_of_the_first() {
    let script = "longhaul --apply > /dev/null; state; \
                  $program host longhaul.yaml --clients far0 --record other.json --apply && exit 9; state; \
                  longhaul --undo > /dev/null; $program host longhaul.yaml --clients far0 --record other.json --apply";
    let Some(text) = on_a_host(CONFIG, script) else { return };
    let [first, still, rest] = parts(&text)[..] else { panic!("{text}") };
    assert_eq!(first, still);
    assert!(rest.contains("nft delete table inet longhaul; nothing was changed"), "{rest}");
    assert!(rest.contains("applied "), "{rest}");
}

/// Wrappers of `ip` and `nft` that stand first in PATH. They count the calls that change something. The call with the
/// number in the file `fail` fails.
const FAULTS: &str = "mkdir bin; for tool in ip nft; do real=$(command -v $tool); cat > bin/$tool <<X\n\
                      #!/bin/sh\n\
                      case \"\\$*\" in *show*|*list*) exec $real \"\\$@\";; esac\n\
                      echo >> $PWD/calls\n\
                      [ \\$(wc -l < $PWD/calls) = \\$(cat $PWD/fail) ] && { echo broken >&2; exit 1; }\n\
                      exec $real \"\\$@\"\n\
                      X\n\
                      chmod +x bin/$tool; done\n";

#[test]
fn a_fault_at_any_step_of_apply_leaves_nothing_changed() {
    // Two routes and one of IPv6, two for TPROXY and two of IPv6, the rules.
    let script = FAULTS.to_owned()
        + "for fault in 1 2 3 4 5 6 7 8; do echo $fault > fail; rm -f calls; state; \
           PATH=$PWD/bin:$PATH longhaul --apply && exit 9; state; [ -e $record ] && exit 8; done; \
           echo 9 > fail; rm -f calls; PATH=$PWD/bin:$PATH longhaul --apply";
    let Some(text) = on_a_host(&CONFIG.replace("intercept: redirect", "intercept: tproxy"), &script) else { return };
    let states = parts(&text);
    assert_eq!(states.len(), 17, "{text}");
    assert!(states.iter().take(16).all(|state| Some(state) == states.first()), "{text}");
    assert_eq!(text.matches("broken; nothing was changed").count(), 8, "{text}");
    assert!(text.contains("applied "), "a fault after the last step is none: {text}");
}

#[test]
fn a_record_that_cannot_be_written_leaves_nothing_changed() {
    let script =
        "state; $program host longhaul.yaml --clients lan0 --record longhaul.yaml/record --apply && exit 9; state";
    let Some(text) = on_a_host(CONFIG, script) else { return };
    let [before, after, rest] = parts(&text)[..] else { panic!("{text}") };
    assert_eq!(before, after);
    assert!(rest.contains("cannot use the record") && rest.contains("nothing was changed"), "{rest}");
}

#[test]
fn an_undo_with_a_fault_at_any_step_can_be_run_again() {
    let script = FAULTS.to_owned()
        + "state; for fault in 1 2 3 4 5 6 7 8; do longhaul --apply > /dev/null; echo $fault > fail; rm -f calls; \
           PATH=$PWD/bin:$PATH longhaul --undo && exit 9; [ -e $record ] || exit 8; \
           longhaul --undo > /dev/null; [ -e $record ] && exit 7; state; done";
    let Some(text) = on_a_host(&CONFIG.replace("intercept: redirect", "intercept: tproxy"), &script) else { return };
    let states = parts(&text);
    assert_eq!(states.len(), 10, "{text}");
    assert!(states.iter().take(9).all(|state| Some(state) == states.first()), "{text}");
    assert_eq!(text.matches("try again: longhaul host --undo --record").count(), 8, "{text}");
}

#[test]
fn listeners_without_ipv6_leave_its_packets_and_routes_alone_and_the_operator_is_warned() {
    let config = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\n\
                  proxy: { addresses: [198.51.100.12] }\n\
                  listen: { http: 0.0.0.0:80, tls: 0.0.0.0:443, dns: 0.0.0.0:53, intercept: tproxy }\n\
                  upstream: { resolvers: [192.0.2.53] }\n";
    let Some(text) = on_a_host(config, "longhaul --apply > /dev/null; state") else { return };
    assert!(text.contains("meta nfproto ipv4 tcp dport 53 counter name \"to_53\" redirect to :53"), "{text}");
    assert_eq!(text.matches("fwmark 0x104a lookup 4170").count(), 1, "{text}");
    for absent in ["tproxy ip6", "metric 256 initcwnd"] {
        assert!(!text.contains(absent), "{absent}\n{text}");
    }
    assert!(text.contains("lan0 has IPv6, and IPv6 traffic of clients bypasses this box"), "{text}");
    let Some(both) = on_a_host(CONFIG, "longhaul --apply > /dev/null") else { return };
    assert!(!both.contains("bypasses") && both.contains("does not forward IPv6"), "{both}");
}

#[test]
fn a_machine_without_ipv6_gets_no_step_for_it() {
    let off = "sysctl -qw net.ipv6.conf.all.disable_ipv6=1; longhaul --apply; state";
    let Some(text) = on_a_host(&CONFIG.replace("intercept: redirect", "intercept: tproxy"), off) else { return };
    assert!(text.contains("applied "), "{text}");
    assert_eq!(text.matches("fwmark 0x104a lookup 4170").count(), 1, "{text}");
    assert!(!text.contains("warning"), "{text}");
}

#[test]
fn siblings_of_each_family_get_the_connections_that_are_not_here() {
    let config = CONFIG.replace(
        "addresses: [198.51.100.12]",
        "addresses: [198.51.100.12, \"2001:db8::12\"], siblings: [198.51.100.42, 198.51.100.46, \"2001:db8:5::2\"]",
    );
    let script = "all() { cat /proc/sys/net/ipv4/conf/all/accept_local; state; }; \
                  all; longhaul --apply > /dev/null; all; longhaul --undo > /dev/null; all";
    let Some(text) = on_a_host(&config, script) else { return };
    let [before, applied, undone, _] = parts(&text)[..] else { panic!("{text}") };
    assert!(before.starts_with("0\n") && applied.starts_with("1\n"), "{text}");
    for rule in [
        "dup to 198.51.100.42 dup to 198.51.100.46 drop",
        "dup to 2001:db8:5::2 drop",
        "update @sources { ip saddr limit rate over 10/second burst 500 packets } accept",
        "update @sources { ip6 saddr & ffff:ffff:ffff:ffff:: limit rate over 10/second burst 500 packets } accept",
        "ip daddr 198.51.100.12 tcp dport { 443, 8080 } goto to_proxy",
        "ip6 daddr 2001:db8::12 tcp dport { 443, 8080 } goto to_proxy",
        "tcp dport { 80, 443 } fib daddr type != local goto to_origin",
        "meta l4proto tcp ct state established ct direction original accept",
    ] {
        assert!(applied.contains(rule), "{rule}\n{applied}");
    }
    assert_eq!(before, undone);
}

#[test]
fn copies_back_are_believed_from_the_interface_of_the_siblings_alone() {
    let config = CONFIG.replace("addresses: [198.51.100.12]", "addresses: [198.51.100.12], siblings: [198.51.100.42]");
    let with = |cable: &str| on_a_host(&config, &format!("{cable}\nlonghaul --apply > /dev/null; state"));
    let cable = "ip link add sibling0 type veth peer name far1; ip addr add 198.51.100.41/24 dev sibling0; \
                 ip link set sibling0 up; ip link set far1 up";
    let Some(known) = with(cable) else { return };
    let believed =
        |text: &str| text.lines().filter(|line| line.contains("update @elsewhere")).map(str::to_owned).collect();
    let lines: Vec<String> = believed(&known);
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("iifname \"sibling0\" ")), "{known}");
    // A tunnel may come up after the rules.
    let Some(unknown) = with("") else { return };
    let lines: Vec<String> = believed(&unknown);
    assert!(!lines.is_empty() && lines.iter().all(|line| !line.contains("sibling0")), "{unknown}");
}

#[test]
fn siblings_get_no_connection_that_tproxy_would_give_to_a_listener() {
    let config = CONFIG
        .replace("intercept: redirect", "intercept: tproxy")
        .replace("addresses: [198.51.100.12]", "addresses: [198.51.100.12], siblings: [198.51.100.42]");
    let Some(text) = on_a_host(&config, "longhaul --apply > /dev/null; state") else { return };
    assert!(text.contains("goto to_proxy") && !text.contains("to_origin"), "{text}");
}

#[test]
fn rules_that_another_firewall_has_flushed_are_undone_and_can_be_applied_again() {
    let config = CONFIG.replace("intercept: redirect", "intercept: tproxy, dns: off");
    let script = "longhaul --apply > /dev/null; nft flush ruleset; ip rule flush; ip rule add lookup main; \
                  longhaul --undo > /dev/null && [ ! -e $record ] || exit 9; \
                  longhaul --apply > /dev/null && nft list table inet longhaul > /dev/null || exit 8; \
                  longhaul --undo > /dev/null; nft list tables";
    let Some(text) = on_a_host(&config, script) else { return };
    assert!(!text.contains("longhaul"), "{text}");
}

#[test]
fn rules_of_a_lost_record_are_removed_by_the_command_in_the_message() {
    let config = CONFIG.replace("addresses: [198.51.100.12]", "addresses: [198.51.100.12], siblings: [198.51.100.42]");
    let script = "longhaul --apply > /dev/null; rm $record; longhaul --apply && exit 9; \
                  nft delete table inet longhaul && nft delete table ip longhaul; nft list tables";
    let Some(text) = on_a_host(&config, script) else { return };
    assert!(
        text.contains("undo them first: nft delete table inet longhaul && nft delete table ip longhaul;"),
        "{text}"
    );
    assert!(!text.contains("table ip6 longhaul"), "{text}");
}

#[test]
fn without_siblings_there_is_no_table_of_one_family() {
    let script = "longhaul --apply > /dev/null; cat /proc/sys/net/ipv4/conf/all/accept_local; state";
    let Some(text) = on_a_host(CONFIG, script) else { return };
    assert!(text.starts_with("0\n"), "{text}");
    assert!(!text.contains("table ip ") && !text.contains("ct direction"), "{text}");
}

/// Follows `--watch`: `faults` prints the faults of the last report. `far` runs a command as a client behind `lan0`.
const WATCH: &str = "ip netns 2>/dev/null || true\n\
    unshare --net sleep 100 & client=$!\nsleep 0.5\nip link set far0 netns $client\n\
    far() { nsenter --net=/proc/$client/ns/net \"$@\"; }\n\
    far ip link set far0 up; far ip addr add 192.0.2.2/24 dev far0; far ip route add default via 192.0.2.1\n\
    trap 'kill $client $watch 2>/dev/null || true' EXIT\n\
    longhaul --apply 2>&1; $program host longhaul.yaml --clients lan0 --watch --report report.json & watch=$!\n\
    ask() { far python3 -c 'import socket, sys\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nfor _ in range(4): s.sendto(b\"q\", (sys.argv[1], 53))' $1; }\n\
    faults() { sed -n '/faults/,$p' report.json; }\n\
    until_says() { for _ in $(seq 60); do if grep -q \"$1\" report.json 2>/dev/null; then return; fi; ask 198.51.100.53; sleep 0.3; done; echo \"never: $1\"; cat report.json; exit 1; }\n";

#[test]
fn a_watch_names_dropped_and_redirected_packets_and_rules_that_are_gone_and_the_named_cures_mend_them() {
    let script = format!(
        "{WATCH}\
         until_says '\"faults\": \\[\\]'; ask 198.51.100.53; ask 198.51.100.54; ask 198.51.100.55; sleep 7; faults; echo =====\n\
         nft add table inet filter; nft 'add chain inet filter input {{ type filter hook input priority 0; policy drop; }}'\n\
         nft add rule inet filter input ct state established accept; nft add rule inet filter input tcp dport 22 accept\n\
         until_says '\"dropped\"'; faults; echo =====\n\
         cure=$(sed -n 's/.*\"cure\": \"\\(.*\\)\"/\\1/p' report.json); sh -c \"$cure\"\n\
         until_says '\"faults\": \\[\\]'; faults; echo =====\n\
         nft 'add table ip foreign'; nft 'add chain ip foreign p {{ type nat hook prerouting priority -101; }}'\n\
         nft add rule ip foreign p tcp dport 80 redirect to :3128\n\
         until_says '\"redirected\"'; faults; echo =====\n\
         cure=$(sed -n 's/.*\"cure\": \"\\(.*\\)\"/\\1/p' report.json); sh -c \"$cure\"\n\
         until_says '\"faults\": \\[\\]'\n\
         nft flush ruleset; until_says '\"gone\"'; faults"
    );
    let Some(text) = on_a_host(CONFIG, &script) else { return };
    let [well, dropped, mended, redirected, gone] = parts(&text)[..] else { panic!("{text}") };
    assert!(well.contains("\"faults\": []") && mended.contains("\"faults\": []"), "{text}");
    assert!(dropped.contains("\"ports\": \"53\"") && dropped.contains("\"by\": \"inet filter input\""), "{dropped}");
    assert!(dropped.contains("udp dport '{ 53 }' accept"), "{dropped}");
    assert!(
        redirected.contains("\"ports\": \"80\"") && redirected.contains("\"by\": \"ip foreign p\""),
        "{redirected}"
    );
    assert!(gone.contains("systemctl restart longhaul-host@lan0"), "{gone}");
}

#[test]
fn apply_warns_of_rules_that_drop_or_take_packets_of_clients() {
    let foreign = "nft add table inet filter; nft 'add chain inet filter input { type filter hook input priority 0; policy drop; }'\n\
                   nft add rule inet filter input iifname lo accept; nft add rule inet filter input tcp dport 80 accept\n";
    let Some(text) = on_a_host(CONFIG, &format!("{foreign}longhaul --apply 2>&1")) else { return };
    assert!(
        text.contains("warning: the chain `inet filter input` drops packets of clients to port 53, 80, 443"),
        "{text}"
    );
    let open = foreign.replace("policy drop", "policy accept");
    let Some(text) = on_a_host(CONFIG, &format!("{open}longhaul --apply 2>&1")) else { return };
    assert!(!text.contains("warning: the chain"), "{text}");
}

/// A picture of the guide shows these rules. `SNAPSHOTS=overwrite` writes them again, and `make pictures` the picture.
#[test]
fn the_rules_of_a_ship_are_those_that_the_guide_draws() {
    let Some(text) = on_a_host(CONFIG, SHIP) else { return };
    let kept = Data::read_from(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/host/ship.nft"), None);
    Assert::new().action_env("SNAPSHOTS").eq(text, kept.raw());
}
