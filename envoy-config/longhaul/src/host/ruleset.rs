//! Reads the packet rules of this machine, as `nft -j list ruleset` prints them, and asks what they do with a packet of a
//! client.
//!
//! Rules may match by anything. A match that is not understood here makes the outcome unsure, and nothing is said about an
//! unsure outcome: a warning that is wrong costs more than one that is missing.

use serde_json::Value;

use longhaul_render::host::TABLE;

/// A packet that begins a connection of a client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet<'p> {
    /// The interface on which it comes in.
    pub(super) interface: &'p str,
    /// `tcp` or `udp`.
    pub(super) protocol: &'static str,
    /// Its destination port.
    pub(super) port: u16,
    /// True if it is for this machine.
    pub(super) is_local: bool,
}

/// The rules of this machine.
#[derive(Debug)]
pub(super) struct Ruleset {
    items: Vec<Value>,
}

/// A chain of another program, as nft names it: `inet filter input`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Foreign {
    pub(super) family: String,
    pub(super) table: String,
    pub(super) chain: String,
    /// The number of the rule that decides, if it is one.
    pub(super) handle: Option<u64>,
}

/// The outcome of a chain or a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Accept,
    Drop,
    /// The packet gets another destination.
    Redirect,
    /// The next rule decides.
    Continue,
    /// The caller's next rule decides.
    Return,
    Unsure,
}

/// The truth of a match. None: unsure.
type Truth = Option<bool>;

/// The deepest nesting of chains that is followed. The kernel allows 16.
const DEEPEST: usize = 16;
/// The priority of `dstnat`.
const OURS: i64 = -100;

impl Ruleset {
    /// Parses the JSON of nft. None if it is none.
    pub(super) fn parse(json: &str) -> Option<Self> {
        let mut parsed: Value = serde_json::from_str(json).ok()?;
        match parsed.get_mut("nftables")?.take() {
            Value::Array(items) => Some(Self { items }),
            _ => None,
        }
    }

    fn of_kind<'r>(&'r self, kind: &'r str) -> impl Iterator<Item = &'r Value> {
        self.items.iter().filter_map(move |item| item.get(kind))
    }

    /// Returns true if the rules of Longhaul are loaded.
    pub(super) fn has_ours(&self) -> bool {
        self.of_kind("table").any(is_ours)
    }

    /// Returns the packets that a counter of Longhaul's rules has seen.
    pub(super) fn counted(&self, name: &str) -> Option<u64> {
        let counter = self.of_kind("counter").find(|one| is_ours(one) && text(one, "name") == name)?;
        counter.get("packets")?.as_u64()
    }

    /// Returns the foreign chain that surely drops this packet, which is for this machine.
    pub(super) fn dropped_by(&self, packet: &Packet<'_>) -> Option<Foreign> {
        self.foreign_base_chains("filter", "input").find_map(|chain| {
            let (verdict, handle) = self.through(chain, packet, 0);
            let policy = text(chain, "policy") == "drop";
            let drops = verdict == Verdict::Drop || (policy && matches!(verdict, Verdict::Continue | Verdict::Return));
            drops.then(|| Foreign::of(chain, handle.filter(|_| verdict == Verdict::Drop)))
        })
    }

    /// Returns the foreign chain that surely leads this packet elsewhere before the rules of Longhaul see it.
    pub(super) fn redirected_by(&self, packet: &Packet<'_>) -> Option<Foreign> {
        let before = |chain: &&Value| chain.get("prio").and_then(Value::as_i64).is_some_and(|prio| prio < OURS);
        self.foreign_base_chains("nat", "prerouting").filter(before).find_map(|chain| {
            let (verdict, handle) = self.through(chain, packet, 0);
            (verdict == Verdict::Redirect).then(|| Foreign::of(chain, handle))
        })
    }

    /// Returns true if ufw or firewalld made rules.
    pub(super) fn has_chain_of(&self, prefix: &str) -> bool {
        self.of_kind("chain").any(|chain| text(chain, "name").starts_with(prefix))
            || self.of_kind("table").any(|table| text(table, "name").starts_with(prefix))
    }

    fn foreign_base_chains<'r>(&'r self, kind: &'r str, hook: &'r str) -> impl Iterator<Item = &'r Value> {
        self.of_kind("chain").filter(move |chain| {
            !is_ours(chain)
                && text(chain, "type") == kind
                && text(chain, "hook") == hook
                && matches!(text(chain, "family"), "ip" | "inet")
        })
    }

    /// Returns the verdict of a chain, and the number of the rule that made it.
    fn through(&self, chain: &Value, packet: &Packet<'_>, depth: usize) -> (Verdict, Option<u64>) {
        if depth > DEEPEST {
            return (Verdict::Unsure, None);
        }
        let of_chain = |rule: &&Value| {
            ["family", "table"].iter().all(|key| text(rule, key) == text(chain, key))
                && text(rule, "chain") == text(chain, "name")
        };
        for rule in self.of_kind("rule").filter(of_chain) {
            match self.rule(rule, chain, packet, depth) {
                (Verdict::Continue, _) => {}
                (verdict, inner) => return (verdict, inner.or(rule.get("handle").and_then(Value::as_u64))),
            }
        }
        (Verdict::Continue, None)
    }

    fn rule(&self, rule: &Value, chain: &Value, packet: &Packet<'_>, depth: usize) -> (Verdict, Option<u64>) {
        let mut truth: Truth = Some(true);
        for statement in rule.get("expr").and_then(Value::as_array).into_iter().flatten() {
            let Some((kind, of)) = statement.as_object().and_then(|object| object.iter().next()) else { continue };
            let verdict = match kind.as_str() {
                "match" => {
                    truth = both(truth, matches(of, packet));
                    if truth == Some(false) {
                        return (Verdict::Continue, None);
                    }
                    continue;
                }
                // These match by state, or are not shown.
                "limit" | "xt" | "quota" | "ct count" | "meter" | "set" => {
                    truth = both(truth, None);
                    continue;
                }
                "accept" => (Verdict::Accept, None),
                "drop" | "reject" => (Verdict::Drop, None),
                "redirect" | "dnat" | "tproxy" => (Verdict::Redirect, None),
                "return" => (Verdict::Return, None),
                "queue" | "vmap" => (Verdict::Unsure, None),
                "jump" | "goto" => self.jump(of, chain, packet, depth, kind == "goto"),
                _ => continue,
            };
            return match (truth, verdict) {
                (Some(true), verdict) => verdict,
                // An unsure drop may be none. Whatever else may happen makes all that follows unsure.
                (_, (Verdict::Drop | Verdict::Continue, _)) => (Verdict::Continue, None),
                _ => (Verdict::Unsure, None),
            };
        }
        (Verdict::Continue, None)
    }

    fn jump(
        &self,
        to: &Value,
        from: &Value,
        packet: &Packet<'_>,
        depth: usize,
        is_goto: bool,
    ) -> (Verdict, Option<u64>) {
        let is_target = |chain: &&Value| {
            ["family", "table"].iter().all(|key| text(chain, key) == text(from, key))
                && text(chain, "name") == text(to, "target")
        };
        let Some(target) = self.of_kind("chain").find(is_target) else { return (Verdict::Unsure, None) };
        match self.through(target, packet, depth + 1) {
            (Verdict::Continue | Verdict::Return, _) if is_goto => (Verdict::Return, None),
            (Verdict::Continue | Verdict::Return, _) => (Verdict::Continue, None),
            decided => decided,
        }
    }
}

impl Foreign {
    fn of(chain: &Value, handle: Option<u64>) -> Self {
        let word = |key| text(chain, key).to_owned();
        Self { family: word("family"), table: word("table"), chain: word("name"), handle }
    }

    /// Returns it as nft writes it.
    pub(super) fn name(&self) -> String {
        format!("{} {} {}", self.family, self.table, self.chain)
    }
}

fn text<'v>(of: &'v Value, key: &str) -> &'v str {
    of.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn is_ours(item: &Value) -> bool {
    let table = if item.get("table").is_some() { text(item, "table") } else { text(item, "name") };
    TABLE.split_once(' ').is_some_and(|(family, name)| family == text(item, "family") && name == table)
}

fn both(one: Truth, other: Truth) -> Truth {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Returns whether the packet matches `{"op", "left", "right"}`.
fn matches(of: &Value, packet: &Packet<'_>) -> Truth {
    let (left, right) = (of.get("left")?, of.get("right")?);
    let is = if let Some(meta) = left.get("meta") {
        match text(meta, "key") {
            "iifname" | "iif" => is_one_of(right, &|name| name.as_str().map(|name| names(name, packet.interface))),
            "l4proto" => is_one_of(right, &|name| Some(name.as_str()? == packet.protocol)),
            "nfproto" => is_one_of(right, &|name| Some(name.as_str()? == "ipv4")),
            "protocol" => is_one_of(right, &|name| Some(name.as_str()? == "ip")),
            _ => None,
        }
    } else if let Some(payload) = left.get("payload") {
        match (text(payload, "protocol"), text(payload, "field")) {
            ("tcp" | "udp", _) if text(payload, "protocol") != packet.protocol => return Some(false),
            ("tcp" | "udp" | "th", "dport") => is_one_of(right, &|port| holds(port, packet.port)),
            ("ip", "protocol") => is_one_of(right, &|name| Some(name.as_str()? == packet.protocol)),
            _ => None,
        }
    } else if left.get("ct").is_some_and(|ct| text(ct, "key") == "state") {
        is_one_of(right, &|state| Some(state.as_str()? == "new"))
    } else if left.get("fib").is_some_and(|fib| text(fib, "result") == "type") {
        is_one_of(right, &|kind| Some((kind.as_str()? == "local") == packet.is_local))
    } else {
        None
    };
    match text(of, "op") {
        "==" | "in" => is,
        "!=" => is.map(|is| !is),
        _ => None,
    }
}

/// Returns whether `test` is true for a value, or for one of a list or set.
fn is_one_of(right: &Value, test: &dyn Fn(&Value) -> Truth) -> Truth {
    let several = right.as_array().or_else(|| right.get("set").and_then(Value::as_array));
    let Some(several) = several else { return test(right) };
    several.iter().map(test).try_fold(false, |any, one| Some(any || one?))
}

fn names(pattern: &str, interface: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == interface, |prefix| interface.starts_with(prefix))
}

fn holds(ports: &Value, port: u16) -> Truth {
    if let Some(range) = ports.get("range").and_then(Value::as_array) {
        let [from, to] = range.as_slice() else { return None };
        return Some((from.as_u64()?..=to.as_u64()?).contains(&u64::from(port)));
    }
    Some(ports.as_u64()? == u64::from(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of `nft -j list ruleset` (nftables 1.0.6) for these rules: an input chain with `policy drop` that accepts
    /// established connections, `lo`, ssh and `more`, and a redirect of port 80 and 443 at priority -101.
    fn ruleset(more: &str) -> Ruleset {
        let json = format!(
            r#"{{"nftables": [{{"metainfo": {{"json_schema_version": 1}}}},
            {{"table": {{"family": "inet", "name": "longhaul", "handle": 1}}}},
            {{"counter": {{"family": "inet", "name": "to_80", "table": "longhaul", "handle": 3, "packets": 7, "bytes": 420}}}},
            {{"chain": {{"family": "inet", "table": "filter", "name": "input", "handle": 2, "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}}}},
            {{"chain": {{"family": "inet", "table": "filter", "name": "more", "handle": 9}}}},
            {{"rule": {{"family": "inet", "table": "filter", "chain": "input", "handle": 4, "expr": [{{"match": {{"op": "in", "left": {{"ct": {{"key": "state"}}}}, "right": ["established", "related"]}}}}, {{"accept": null}}]}}}},
            {{"rule": {{"family": "inet", "table": "filter", "chain": "input", "handle": 5, "expr": [{{"match": {{"op": "==", "left": {{"meta": {{"key": "iifname"}}}}, "right": "lo"}}}}, {{"accept": null}}]}}}},
            {{"rule": {{"family": "inet", "table": "filter", "chain": "input", "handle": 6, "expr": [{{"match": {{"op": "==", "left": {{"payload": {{"protocol": "tcp", "field": "dport"}}}}, "right": 22}}}}, {{"accept": null}}]}}}},
            {{"rule": {{"family": "inet", "table": "filter", "chain": "input", "handle": 7, "expr": [{{"jump": {{"target": "more"}}}}]}}}},
            {{"rule": {{"family": "inet", "table": "filter", "chain": "more", "handle": 8, "expr": [{more}]}}}},
            {{"chain": {{"family": "ip", "table": "foreign", "name": "p", "handle": 1, "type": "nat", "hook": "prerouting", "prio": -101, "policy": "accept"}}}},
            {{"rule": {{"family": "ip", "table": "foreign", "chain": "p", "handle": 3, "expr": [{{"match": {{"op": "==", "left": {{"payload": {{"protocol": "tcp", "field": "dport"}}}}, "right": {{"set": [80, 443]}}}}}}, {{"redirect": {{"port": 3128}}}}]}}}}
            ]}}"#
        );
        Ruleset::parse(&json).unwrap()
    }

    fn packet(protocol: &'static str, port: u16) -> Packet<'static> {
        Packet { interface: "lan0", protocol, port, is_local: true }
    }

    const IIF: &str =
        r#"{"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": {"set": ["lan0", "x*"]}}}"#;

    #[test]
    fn a_policy_drops_what_no_rule_accepts() {
        let rules = ruleset(r#"{"log": {"prefix": "x"}}"#);
        let by = rules.dropped_by(&packet("udp", 53)).unwrap();
        assert_eq!((by.name().as_str(), by.handle), ("inet filter input", None));
        assert!(rules.dropped_by(&packet("tcp", 80)).is_some());
        assert_eq!(rules.dropped_by(&packet("tcp", 22)), None);
        assert!(rules.dropped_by(&packet("udp", 22)).is_some(), "another protocol");
        let from_lo = Packet { interface: "lo", ..packet("tcp", 80) };
        assert_eq!(rules.dropped_by(&from_lo), None);
        let accepts = ruleset(&format!(r#"{IIF}, {{"counter": {{"packets": 0, "bytes": 0}}}}, {{"accept": null}}"#));
        assert_eq!(accepts.dropped_by(&packet("tcp", 80)), None);
        let drops = ruleset(&format!(r#"{IIF}, {{"reject": null}}"#));
        assert_eq!(drops.dropped_by(&packet("tcp", 80)).unwrap().handle, Some(8));
        assert_eq!(drops.dropped_by(&Packet { interface: "wan0", ..packet("tcp", 80) }).unwrap().handle, None);
    }

    #[test]
    fn nothing_is_said_of_a_rule_that_is_not_understood() {
        let by_source = r#"{"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, "right": "192.0.2.7"}}"#;
        assert_eq!(ruleset(&format!(r#"{by_source}, {{"accept": null}}"#)).dropped_by(&packet("tcp", 80)), None);
        assert_eq!(ruleset(r#"{"xt": null}, {"accept": null}"#).dropped_by(&packet("tcp", 80)), None);
        // It drops in any case.
        assert!(ruleset(&format!(r#"{by_source}, {{"drop": null}}"#)).dropped_by(&packet("tcp", 80)).is_some());
    }

    #[test]
    fn a_redirect_before_ours_is_found_with_its_rule() {
        let rules = ruleset(r#"{"return": null}"#);
        let elsewhere = |protocol, port| rules.redirected_by(&Packet { is_local: false, ..packet(protocol, port) });
        let by = elsewhere("tcp", 443).unwrap();
        assert_eq!((by.name().as_str(), by.handle), ("ip foreign p", Some(3)));
        assert_eq!(elsewhere("udp", 53), None);
        assert!(rules.has_ours() && rules.counted("to_80") == Some(7) && rules.counted("at_80").is_none());
        assert!(Ruleset::parse("{}").is_none() && !Ruleset::parse(r#"{"nftables": []}"#).unwrap().has_ours());
    }
}
