//! The rules of this machine's packet filter, from `nft -j list ruleset` (libnftables-json(5)).
//!
//! Only what decides about a packet is read. Unknown statements are kept as JSON, and count as conditions that may hold.

use serde::Deserialize;
use serde_json::Value;

/// A base chain, or one that another chain jumps to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Chain {
    pub(super) family: String,
    pub(super) table: String,
    pub(super) name: String,
    /// `filter` or `nat`. None for a chain without a hook.
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) hook: Option<String>,
    #[serde(default)]
    pub(super) prio: i64,
    pub(super) policy: Option<String>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Rule {
    pub(super) family: String,
    pub(super) table: String,
    pub(super) chain: String,
    #[serde(default)]
    pub(super) handle: u64,
    #[serde(default)]
    pub(super) expr: Vec<Value>,
}

/// All rules.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ruleset {
    pub(super) chains: Vec<Chain>,
    pub(super) rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Listing {
    nftables: Vec<Value>,
}

impl Ruleset {
    /// Parses the output of nft.
    ///
    /// # Errors
    /// It is not the JSON of nft.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let listing: Listing = serde_json::from_str(text)?;
        let mut rules = Self::default();
        for item in listing.nftables {
            let Value::Object(item) = item else { continue };
            for (kind, value) in item {
                match kind.as_str() {
                    "chain" => rules.chains.push(serde_json::from_value(value)?),
                    "rule" => rules.rules.push(serde_json::from_value(value)?),
                    _ => {}
                }
            }
        }
        Ok(rules)
    }

    /// Returns the foreign base chains at a hook that see IPv4 packets.
    pub(super) fn foreign(&self, hook: &str) -> impl Iterator<Item = &Chain> {
        let sees_ipv4 = |chain: &Chain| matches!(chain.family.as_str(), "ip" | "inet");
        self.chains
            .iter()
            .filter(move |chain| chain.hook.as_deref() == Some(hook) && sees_ipv4(chain) && !is_ours(&chain.table))
    }

    pub(super) fn chain(&self, like: &Chain, name: &str) -> Option<&Chain> {
        self.chains.iter().find(|chain| chain.family == like.family && chain.table == like.table && chain.name == name)
    }

    pub(super) fn rules_of(&self, chain: &Chain) -> impl Iterator<Item = &Rule> {
        self.rules
            .iter()
            .filter(move |rule| rule.family == chain.family && rule.table == chain.table && rule.chain == chain.name)
    }

    /// Returns true if a chain has such a name.
    pub(super) fn has_chain(&self, is: impl Fn(&str) -> bool) -> bool {
        self.chains.iter().any(|chain| is(&chain.name))
    }

    /// Returns the interface of the clients, by Longhaul's own rules. None if they are not loaded.
    pub(crate) fn clients(&self) -> Option<String> {
        let own = self.rules.iter().filter(|rule| is_ours(&rule.table));
        own.flat_map(|rule| &rule.expr).find_map(|expr| {
            let is_interface = expr.pointer("/match/left/meta/key").is_some_and(|key| key == "iifname");
            let right = expr.pointer("/match/right").filter(|_| is_interface)?;
            let names = right.get("set").and_then(Value::as_array).map_or(std::slice::from_ref(right), Vec::as_slice);
            names.iter().filter_map(Value::as_str).find(|name| *name != "lo").map(str::to_owned)
        })
    }

    /// Returns true if Longhaul's own rules are loaded.
    pub(crate) fn has_ours(&self) -> bool {
        self.chains.iter().any(|chain| is_ours(&chain.table))
    }
}

/// Returns true for the tables of `longhaul host`.
fn is_ours(table: &str) -> bool {
    table == "longhaul" || table.starts_with("longhaul_") || table.starts_with("longhaul-")
}
