#![allow(clippy::needless_pass_by_value, reason = "the values are written in place")]

use serde_json::{Value, json};

use super::*;

const WEB: [Port; 3] =
    [Port { udp: false, number: 80 }, Port { udp: false, number: 443 }, Port { udp: true, number: 53 }];

fn chain(table: &str, name: &str, hook: Option<(&str, &str, i64)>, policy: &str) -> Value {
    let mut chain = json!({ "family": "inet", "table": table, "name": name, "handle": 1 });
    if let Some((kind, hook, prio)) = hook {
        chain["type"] = kind.into();
        chain["hook"] = hook.into();
        chain["prio"] = prio.into();
        chain["policy"] = policy.into();
    }
    json!({ "chain": chain })
}

fn rule(table: &str, chain: &str, handle: u64, expr: Value) -> Value {
    json!({ "rule": { "family": "inet", "table": table, "chain": chain, "handle": handle, "expr": expr } })
}

fn ruleset(items: Vec<Value>) -> Ruleset {
    let items: Vec<Value> = [json!({ "metainfo": { "json_schema_version": 1 } })].into_iter().chain(items).collect();
    Ruleset::parse(&json!({ "nftables": items }).to_string()).unwrap()
}

fn input(policy: &str, rules: Vec<Value>) -> Ruleset {
    let mut items = vec![chain("filter", "input", Some(("filter", "input", 0)), policy)];
    items.extend(rules);
    ruleset(items)
}

fn matches(left: Value, right: Value) -> Value {
    json!({ "match": { "op": "==", "left": left, "right": right } })
}

fn dport(protocol: &str, right: Value) -> Value {
    matches(json!({ "payload": { "protocol": protocol, "field": "dport" } }), right)
}

fn meta(key: &str, right: Value) -> Value {
    matches(json!({ "meta": { "key": key } }), right)
}

fn established() -> Value {
    json!({ "match": { "op": "in", "left": { "ct": { "key": "state" } }, "right": ["established", "related"] } })
}

fn ports(found: &[Obstacle]) -> Vec<Vec<u16>> {
    found.iter().map(|one| one.ports.iter().map(|port| port.number).collect()).collect()
}

#[test]
fn a_policy_that_drops_takes_what_no_rule_accepts() {
    let accept = json!({ "accept": null });
    let usual = || {
        vec![
            rule("filter", "input", 2, json!([established(), { "accept": null }])),
            rule("filter", "input", 3, json!([meta("iifname", json!("lo")), { "accept": null }])),
            rule("filter", "input", 4, json!([dport("tcp", json!(22)), { "counter": {} }, { "accept": null }])),
        ]
    };
    let found = obstacles(&input("drop", usual()), &WEB, Some("lan0"));
    assert_eq!(ports(&found), [[80, 443, 53]]);
    assert_eq!(found[0].harm, Harm::Drops { rule: None });
    let mut opened = usual();
    opened.push(rule(
        "filter",
        "input",
        5,
        json!([dport("tcp", json!({ "set": [53, { "range": [80, 90] }] })), accept]),
    ));
    assert_eq!(ports(&obstacles(&input("drop", opened), &WEB, Some("lan0"))), [[443, 53]]);
    assert!(obstacles(&input("accept", usual()), &WEB, Some("lan0")).is_empty());
}

#[test]
fn a_rule_that_drops_is_named_and_one_that_may_drop_is_not() {
    let drop = |condition: Value| {
        input(
            "accept",
            vec![rule("filter", "input", 7, json!([condition, dport("tcp", json!(443)), { "drop": null }]))],
        )
    };
    let found = obstacles(&drop(meta("l4proto", json!("tcp"))), &WEB, None);
    assert_eq!((ports(&found), &found[0].harm), (vec![vec![443]], &Harm::Drops { rule: Some(7) }));
    let source = matches(json!({ "payload": { "protocol": "ip", "field": "saddr" } }), json!("@blocked"));
    assert!(obstacles(&drop(source), &WEB, None).is_empty(), "the list of another program");
    assert!(obstacles(&drop(meta("iifname", json!("wan0"))), &WEB, Some("lan0")).is_empty());
    assert_eq!(ports(&obstacles(&drop(meta("iifname", json!("lan*"))), &WEB, Some("lan0"))), [[443]]);
    let not = json!({ "match": { "op": "!=", "left": { "meta": { "key": "iifname" } }, "right": "lan0" } });
    assert!(obstacles(&drop(not), &WEB, Some("lan0")).is_empty());
}

#[test]
fn chains_are_followed_and_a_verdict_in_one_counts() {
    let rules = |verdict: Value| {
        let mut items = vec![
            chain("filter", "input", Some(("filter", "input", 0)), "drop"),
            chain("filter", "ufw-user-input", None, ""),
        ];
        items.push(rule("filter", "input", 2, json!([{ "jump": { "target": "ufw-user-input" } }])));
        items.push(rule("filter", "ufw-user-input", 3, json!([dport("udp", json!(53)), verdict])));
        ruleset(items)
    };
    let found = obstacles(&rules(json!({ "accept": null })), &WEB, None);
    assert_eq!(ports(&found), [[80, 443]]);
    assert_eq!(found[0].keeper, Keeper::Ufw);
    let found = obstacles(&rules(json!({ "return": null })), &WEB, None);
    assert_eq!(ports(&found), [[80, 443, 53]]);
}

#[test]
fn a_verdict_map_and_an_unknown_condition_may_let_packets_pass() {
    let map = json!({ "vmap": { "key": { "payload": { "protocol": "tcp", "field": "dport" } },
        "data": { "set": [[80, { "accept": null }], [443, { "drop": null }]] } } });
    let found = obstacles(&input("drop", vec![rule("filter", "input", 9, json!([map]))]), &WEB, None);
    let harm: Vec<_> = found.iter().map(|one| (&one.harm, one.ports.len())).collect();
    assert_eq!(harm, [(&Harm::Drops { rule: Some(9) }, 1), (&Harm::Drops { rule: None }, 1)]);
    let unknown = json!([{ "xt": { "type": "match", "name": "owner" } }, { "accept": null }]);
    assert!(obstacles(&input("drop", vec![rule("filter", "input", 9, unknown)]), &WEB, None).is_empty());
}

#[test]
fn a_redirect_before_ours_is_named_if_it_is_for_the_port() {
    let redirect = |prio, port: u16| {
        ruleset(vec![
            chain("nat", "prerouting", Some(("nat", "prerouting", prio)), "accept"),
            rule("nat", "prerouting", 4, json!([dport("tcp", json!(port)), { "redirect": { "port": 3128 } }])),
        ])
    };
    let found = obstacles(&redirect(-101, 80), &WEB, Some("lan0"));
    assert_eq!((ports(&found), &found[0].harm), (vec![vec![80]], &Harm::Redirects { rule: 4 }));
    assert!(obstacles(&redirect(-101, 8080), &WEB, Some("lan0")).is_empty());
    assert!(obstacles(&redirect(-99, 80), &WEB, Some("lan0")).is_empty(), "ours comes first");
}

#[test]
fn our_own_rules_are_no_obstacle_and_name_the_interface_of_the_clients() {
    let not_lan = json!({ "match": { "op": "!=", "left": { "meta": { "key": "iifname" } }, "right": "lan0" } });
    let rules = ruleset(vec![
        chain("longhaul", "listeners", Some(("filter", "input", 0)), "accept"),
        rule("longhaul", "listeners", 2, json!([not_lan, { "accept": null }])),
        rule("longhaul", "listeners", 3, json!([dport("tcp", json!(80)), { "reject": null }])),
    ]);
    assert!(obstacles(&rules, &WEB, None).is_empty());
    assert_eq!(rules.clients().as_deref(), Some("lan0"));
    assert!(rules.has_ours() && !ruleset(Vec::new()).has_ours());
}

#[test]
fn a_forward_chain_that_drops_takes_the_other_ports_of_clients() {
    let rules = ruleset(vec![
        chain("filter", "FORWARD", Some(("filter", "forward", 0)), "drop"),
        chain("filter", "DOCKER-USER", None, ""),
        rule("filter", "FORWARD", 2, json!([{ "jump": { "target": "DOCKER-USER" } }])),
    ]);
    let found = not_forwarded(&rules, &[Port { udp: false, number: 22 }], Some("lan0"));
    assert_eq!((ports(&found), found[0].keeper), (vec![vec![22]], Keeper::Docker));
    assert!(not_forwarded(&input("drop", Vec::new()), &WEB, None).is_empty());
}
