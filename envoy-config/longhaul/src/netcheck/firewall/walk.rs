//! The way of one packet through the chains. A condition that this program cannot judge may hold or not.

use serde_json::Value;

use super::ruleset::{Chain, Rule, Ruleset};

/// Chains deeper than this are not followed. nft itself allows 16.
const MOST_JUMPS: usize = 16;

/// The first packet of a connection of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    /// `tcp` or `udp`.
    pub(super) protocol: &'a str,
    pub(super) port: u16,
    /// The interface on which it arrives. None if it is not known.
    pub(super) interface: Option<&'a str>,
    /// True if its address is one of this machine.
    pub(super) is_local: bool,
}

/// The end of a packet's way through a base chain.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate<'a> {
    /// It passes, or may pass.
    Passes,
    /// A rule drops or rejects it.
    Dropped(&'a Rule),
    /// No rule accepts it, and the policy drops it.
    DroppedByPolicy,
    /// A rule sends it to another port or address.
    Redirected(&'a Rule),
}

/// A condition's value. `Maybe` stands for what depends on more than this packet's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Truth {
    No,
    Maybe,
    Yes,
}

impl Truth {
    fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    fn negated(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
            Self::Yes => Self::No,
        }
    }
}

/// Returns the fate of `packet` in a base chain.
pub(super) fn walk<'a>(rules: &'a Ruleset, base: &'a Chain, packet: &Packet<'_>) -> Fate<'a> {
    let mut walker = Walker { rules, packet, may_pass: false };
    match walker.chain(base, Truth::Yes, 0) {
        Some(fate) => fate,
        None if base.policy.as_deref() == Some("drop") && !walker.may_pass => Fate::DroppedByPolicy,
        None => Fate::Passes,
    }
}

struct Walker<'a, 'p> {
    rules: &'a Ruleset,
    packet: &'p Packet<'p>,
    /// True after a rule that accepts the packet under a condition which may hold.
    may_pass: bool,
}

impl<'a> Walker<'a, '_> {
    /// Follows a chain that the packet enters with this certainty. None: it comes out at the end.
    fn chain(&mut self, chain: &'a Chain, entered: Truth, depth: usize) -> Option<Fate<'a>> {
        for rule in self.rules.rules_of(chain) {
            let mut holds = entered;
            for expr in &rule.expr {
                match self.step(chain, rule, expr, holds, depth) {
                    Step::Condition(truth) => holds = holds.min(truth),
                    Step::End(fate) => return Some(fate),
                    Step::Return => return None,
                    Step::Nothing => {}
                }
                if holds == Truth::No {
                    break;
                }
            }
        }
        None
    }

    fn step(&mut self, chain: &'a Chain, rule: &'a Rule, expr: &'a Value, holds: Truth, depth: usize) -> Step<'a> {
        let Some((kind, value)) = expr.as_object().and_then(|object| object.iter().next()) else {
            return Step::Nothing;
        };
        let sure = holds == Truth::Yes;
        match kind.as_str() {
            "match" => Step::Condition(condition(value, self.packet)),
            "limit" | "xt" => Step::Condition(Truth::Maybe),
            "accept" if sure => Step::End(Fate::Passes),
            "accept" | "queue" => {
                self.may_pass = true;
                Step::Nothing
            }
            "drop" | "reject" if sure => Step::End(Fate::Dropped(rule)),
            // A packet may be redirected by its address, so that is told even if it depends on that.
            "redirect" | "dnat" | "tproxy" if self.names_port(rule) => Step::End(Fate::Redirected(rule)),
            "return" if sure => Step::Return,
            "jump" | "goto" => self.jump(chain, value, kind == "goto", holds, depth),
            "vmap" => self.map(chain, rule, value, holds, depth),
            _ => Step::Nothing,
        }
    }

    fn jump(&mut self, chain: &'a Chain, value: &'a Value, is_goto: bool, holds: Truth, depth: usize) -> Step<'a> {
        let target = value.get("target").and_then(Value::as_str);
        let Some(target) = target.and_then(|name| self.rules.chain(chain, name)) else { return Step::Nothing };
        if depth >= MOST_JUMPS {
            self.may_pass = true;
            return Step::Nothing;
        }
        match self.chain(target, holds, depth + 1) {
            Some(fate) => Step::End(fate),
            None if is_goto && holds == Truth::Yes => Step::Return,
            None => Step::Nothing,
        }
    }

    /// Follows a verdict map, whose entries are conditions with a verdict each.
    fn map(&mut self, chain: &'a Chain, rule: &'a Rule, value: &'a Value, holds: Truth, depth: usize) -> Step<'a> {
        let entries = value.pointer("/data/set").and_then(Value::as_array);
        let Some((entries, key)) = entries.zip(value.get("key")) else {
            self.may_pass = true;
            return Step::Nothing;
        };
        for entry in entries.iter().filter_map(Value::as_array) {
            let [right, verdict] = entry.as_slice() else { continue };
            let truth = holds.min(compare(key, right, self.packet));
            if truth == Truth::No {
                continue;
            }
            match self.step(chain, rule, verdict, truth, depth) {
                Step::Nothing => {}
                step => return step,
            }
        }
        Step::Nothing
    }

    /// Returns true if the rule names the packet's port. Rules for all ports lead whole networks elsewhere.
    fn names_port(&self, rule: &Rule) -> bool {
        rule.expr.iter().any(|expr| {
            let port = |pointer: &str| expr.pointer(pointer).is_some_and(|field| field == "dport");
            port("/match/left/payload/field")
                && expr
                    .pointer("/match/right")
                    .is_some_and(|right| contains(right, &Value::from(self.packet.port)) == Truth::Yes)
        })
    }
}

enum Step<'a> {
    Condition(Truth),
    End(Fate<'a>),
    Return,
    Nothing,
}

fn condition(value: &Value, packet: &Packet<'_>) -> Truth {
    let (Some(left), Some(right)) = (value.get("left"), value.get("right")) else { return Truth::Maybe };
    let truth = compare(left, right, packet);
    match value.get("op").and_then(Value::as_str) {
        Some("!=") => truth.negated(),
        Some("==" | "in") | None => truth,
        Some(_) => Truth::Maybe,
    }
}

/// Compares the packet's value of `left` with `right`.
fn compare(left: &Value, right: &Value, packet: &Packet<'_>) -> Truth {
    let at = |pointer: &str| left.pointer(pointer).and_then(Value::as_str);
    if let (Some(protocol), Some(field)) = (at("/payload/protocol"), at("/payload/field")) {
        return match (protocol, field) {
            ("th", "dport") => contains(right, &Value::from(packet.port)),
            (one, "dport") if one == packet.protocol => contains(right, &Value::from(packet.port)),
            ("ip", "protocol") => contains(right, &Value::from(packet.protocol)),
            ("ip" | "th", _) => Truth::Maybe,
            (one, _) if one == packet.protocol => Truth::Maybe,
            // Another protocol, such as icmp or ip6.
            _ => Truth::No,
        };
    }
    match (at("/meta/key"), at("/ct/key"), at("/fib/result")) {
        (Some("l4proto"), ..) => protocol(right, packet.protocol),
        (Some("nfproto"), ..) => contains(right, &Value::from("ipv4")),
        (Some("iifname" | "iif"), ..) => interface(right, packet.interface),
        (_, Some("state"), _) => contains(right, &Value::from("new")),
        (.., Some("type")) if packet.is_local => contains(right, &Value::from("local")),
        _ => Truth::Maybe,
    }
}

fn protocol(right: &Value, name: &str) -> Truth {
    let number = if name == "tcp" { 6 } else { 17 };
    contains(right, &Value::from(name)).max(contains(right, &Value::from(number)))
}

/// Compares the name of an interface. A packet of a client never arrives on `lo`.
fn interface(right: &Value, known: Option<&str>) -> Truth {
    match (right.as_str(), known) {
        (Some("lo"), _) => Truth::No,
        (Some(pattern), Some(name)) => match pattern.strip_suffix('*') {
            Some(start) => Truth::of(name.starts_with(start)),
            None => Truth::of(name == pattern),
        },
        (None, Some(name)) => contains(right, &Value::from(name)),
        (_, None) => Truth::Maybe,
    }
}

/// Returns whether `right`, which is a value, a range, a set or a list of them, contains `value`.
fn contains(right: &Value, value: &Value) -> Truth {
    match right {
        Value::Array(items) => items.iter().map(|item| contains(item, value)).max().unwrap_or(Truth::No),
        Value::Object(object) => {
            if let Some(set) = object.get("set") {
                return contains(set, value);
            }
            if let Some(elem) = object.get("elem").and_then(|elem| elem.get("val")) {
                return contains(elem, value);
            }
            let range = object.get("range").and_then(Value::as_array).map(Vec::as_slice);
            match (range, value.as_u64()) {
                (Some([from, to]), Some(number)) => match (from.as_u64(), to.as_u64()) {
                    (Some(from), Some(to)) => Truth::of((from..=to).contains(&number)),
                    _ => Truth::Maybe,
                },
                _ => Truth::Maybe,
            }
        }
        // A named set, whose elements may be any.
        Value::String(name) if name.starts_with('@') => Truth::Maybe,
        other => Truth::of(other == value),
    }
}
