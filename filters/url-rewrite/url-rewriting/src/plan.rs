//! The checked and compiled configuration. It is immutable, and all streams of a worker share it.

use crate::config::{Config, Targets};
use page_scanner::Limits;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use thiserror::Error;
use url_mapping::{Mapper, RuleError, Rules};

/// The reason why a configuration is refused.
#[derive(Debug, Error)]
pub enum PlanError {
    /// Not the expected JSON. The message names line and column.
    #[error("url-rewrite configuration: {0}")]
    Syntax(#[from] serde_json::Error),
    /// Well-formed, but with a value that makes no sense.
    #[error("url-rewrite configuration: {0}")]
    Rule(#[from] RuleError),
    /// A limit of zero, which would turn rewriting off in a way that is hard to find.
    #[error("url-rewrite configuration: limits.{0}: expected at least 1, found `0`; use level off to move nothing")]
    ZeroLimit(&'static str),
}

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// Names the place in the text and the expected value.
    pub fn from_json(json: &[u8]) -> Result<Self, PlanError> {
        Ok(serde_json::from_slice(json)?)
    }
}

/// The compiled configuration, which its streams share.
#[derive(Debug)]
pub struct Plan {
    mapper: Mapper,
    limits: Limits,
    fingerprint: u64,
    peer_fields: Vec<String>,
    keeps_account: bool,
}

/// The plans for connections of both address families. They differ in the targets of moved URLs.
#[derive(Debug)]
pub struct Plans {
    any: Choice,
    ipv6: Option<Choice>,
}

/// The plan for one set of targets, and the one for connections that must not have them.
#[derive(Debug)]
struct Choice {
    plan: Rc<Plan>,
    /// The addresses to which a connection must have come, and the plan for every other one.
    only_at: Option<(Vec<String>, Rc<Plan>)>,
}

/// The ends of a client's connection. Each is `ADDRESS:PORT` as Envoy writes it: `192.0.2.1:80` or `[2001:db8::1]:80`.
pub trait Ends {
    /// Returns the end of the client.
    fn client(&self) -> Vec<u8>;
    /// Returns the end that the client has connected to. A packet rule may have led the connection here.
    fn server(&self) -> Vec<u8>;
}

impl Plans {
    /// Checks and compiles a configuration.
    ///
    /// # Errors
    /// Names the key and the expected value.
    pub fn new(config: &Config) -> Result<Self, PlanError> {
        let of_ipv6 = |targets: &Targets| Choice::new(&Config { targets: targets.clone(), ..config.clone() });
        Ok(Self { any: Choice::new(config)?, ipv6: config.ipv6_targets.as_ref().map(of_ipv6).transpose()? })
    }

    /// Returns true if the proxy's access log prints an account of each page.
    pub fn keep_account(&self) -> bool {
        self.any.plan.keeps_account
    }

    /// Returns the plan for a connection. Asks only for the ends that decide.
    pub fn of_connection(&self, ends: &impl Ends) -> Rc<Plan> {
        let choice = match &self.ipv6 {
            Some(ipv6) if ends.client().starts_with(b"[") => ipv6,
            _ => &self.any,
        };
        match &choice.only_at {
            Some((addresses, elsewhere)) if !is_at(&ends.server(), addresses) => Rc::clone(elsewhere),
            _ => Rc::clone(&choice.plan),
        }
    }
}

impl Choice {
    fn new(config: &Config) -> Result<Self, PlanError> {
        let only_at = &config.targets.only_at;
        let elsewhere = || Plan::new(&Config { targets: Targets::default(), ..config.clone() });
        let only_at = (!only_at.is_empty()).then(|| Ok::<_, PlanError>((only_at.clone(), elsewhere()?)));
        Ok(Self { plan: Plan::new(config)?, only_at: only_at.transpose()? })
    }
}

/// Returns true if the address of an end is one of `addresses`.
fn is_at(end: &[u8], addresses: &[String]) -> bool {
    let Some(colon) = end.iter().rposition(|byte| *byte == b':') else { return false };
    let address = end.get(..colon).unwrap_or_default();
    let address = address.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or(address);
    addresses.iter().any(|own| own.as_bytes() == address)
}

impl Plan {
    /// Reads, checks and compiles a configuration. Ignores the sections of other crates.
    ///
    /// # Errors
    /// Names the place in the text or the key, and the expected value.
    pub fn from_json(json: &[u8]) -> Result<Rc<Self>, PlanError> {
        Self::new(&<Config>::from_json(json)?)
    }

    /// Checks and compiles a configuration.
    ///
    /// # Errors
    /// Names the key and the expected value.
    pub fn new(config: &Config) -> Result<Rc<Self>, PlanError> {
        let limits = config.limits;
        let zero = [
            ("page_memory_bytes", limits.page_memory_bytes),
            ("url_bytes", limits.url_bytes),
            ("srcset_candidates", limits.srcset_candidates),
            ("output_growth_bytes", limits.output_growth_bytes),
        ];
        if let Some((name, _)) = zero.into_iter().find(|&(_, value)| value == 0) {
            return Err(PlanError::ZeroLimit(name));
        }
        let mapper = Mapper::new(&Rules {
            https_targets: config.targets.https.clone(),
            http_targets: config.targets.http.clone(),
            own: config.own.clone(),
            level: config.level,
            exclude: config.exclude.clone(),
            ports: config.ports.clone(),
            url_bytes: limits.url_bytes,
        })?;
        Ok(Rc::new(Self {
            mapper,
            limits,
            fingerprint: fingerprint(config),
            peer_fields: config.peer_fields.clone(),
            keeps_account: config.account,
        }))
    }

    /// Returns the mapper of URLs.
    pub fn mapper(&self) -> &Mapper {
        &self.mapper
    }

    /// Returns the bounds of one page.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns true if the proxy at the other end of the link may set this field of a request.
    pub fn is_peer_field(&self, name: &[u8]) -> bool {
        self.peer_fields.iter().any(|field| field.as_bytes() == name)
    }

    /// Returns a hash of everything that can change a rewritten page: the configuration and this crate's version. The
    /// entity tags of rewritten pages contain it, so that a copy from before a change is not revalidated.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// Hashes with fixed keys by `DefaultHasher::new()`. If a compiler release changes them, browsers fetch each page once
/// more.
fn fingerprint(config: &Config) -> u64 {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    // Prefetching, the way past the cache, the account and fields of requests change no page. The targets for IPv6 stand
    // in `targets` of a plan of their own.
    let Config {
        targets,
        own,
        level,
        exclude,
        ports,
        limits,
        ipv6_targets: _,
        prefetch: _,
        bypass: _,
        peer_fields: _,
        account: _,
    } = config;
    (&targets.https, &targets.http, own, level, exclude, ports).hash(&mut hasher);
    format!("{limits:?}").hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use url_mapping::{Base, Outcome, Scheme, Use};

    const FULL: &str = r#"{
        "targets": {"https": ["pep.example.net"], "http": ["198.51.100.12:8080"]},
        "own": ["pep.example.net", "198.51.100.12:8080"],
        "level": "safe", "exclude": ["bank.example"], "ports": [80, 443],
        "limits": {"page_memory_bytes": 262144, "url_bytes": 8192, "srcset_candidates": 256, "nesting": 4, "output_growth_bytes": 8388608}
    }"#;
    /// The ends of a client's connection.
    struct Connection(&'static str, &'static str);

    impl Ends for Connection {
        fn client(&self) -> Vec<u8> {
            self.0.as_bytes().to_vec()
        }
        fn server(&self) -> Vec<u8> {
            self.1.as_bytes().to_vec()
        }
    }

    fn plans(json: &str) -> Plans {
        Plans::new(&<Config>::from_json(json.as_bytes()).unwrap()).unwrap()
    }

    const LEAST: &str = r#"{"targets": {}, "own": [], "level": "off", "ports": []}"#;

    #[test]
    fn a_configuration_may_be_complete_or_least() {
        let full = Plan::from_json(FULL.as_bytes()).unwrap();
        assert!(!full.mapper().moves_nothing());
        assert_eq!(full.limits(), &Limits::default());
        assert!(Plan::from_json(LEAST.as_bytes()).unwrap().mapper().moves_nothing());
    }

    #[test]
    fn a_configuration_that_cannot_be_meant_is_refused_with_place_and_expectation() {
        let refusal = |json: &str| Plan::from_json(json.as_bytes()).map(|_| ()).unwrap_err().to_string();
        for (from, to, said) in [
            ("exclude", "exlude", "unknown field `exlude`, expected one of"),
            ("\"safe\"", "\"bold\"", "unknown variant `bold`, expected one of `off`, `safe`, `full` at line 4 column"),
            ("[80, 443]", "[80, 70000]", "expected u16 at line 4"),
            ("[80, 443]", "[0]", "ports[0]: expected a port from 1 to 65535, found `0`"),
            ("\"url_bytes\": 8192", "\"url_bytes\": 0", "limits.url_bytes: expected at least 1"),
            ("url_bytes", "url_chars", "unknown field `url_chars`"),
            (
                "[\"pep.example.net\"]",
                "[\"other.example\"]",
                "targets.https[0]: expected one of the authorities listed under `own`",
            ),
        ] {
            let message = refusal(&FULL.replace(from, to));
            assert!(message.contains(said), "{message}");
        }
        assert!(refusal("").contains("EOF"));
    }

    #[test]
    fn pages_of_ipv6_clients_have_targets_of_their_own() {
        const BOTH: &str = r#"{
            "targets": {"http": ["198.51.100.12"]}, "ipv6_targets": {"http": ["[2001:db8::12]"]},
            "own": ["198.51.100.12", "[2001:db8::12]"], "level": "safe", "ports": [80]}"#;
        let moved = |plans: &Plans, client: &'static str| {
            let page = Base::new(Scheme::Http, "www.example.org", "/").unwrap();
            let plan = plans.of_connection(&Connection(client, "192.0.2.80:80"));
            match plan.mapper().forward(&page, "http://i.example.org/a.png", Use::Image) {
                Outcome::Moved(url) => url,
                left => format!("{left:?}"),
            }
        };
        let both = plans(BOTH);
        assert_eq!(moved(&both, "192.0.2.1:50000"), "http://198.51.100.12/i.example.org/a.png");
        assert_eq!(moved(&both, "[2001:db8::1]:50000"), "http://[2001:db8::12]/i.example.org/a.png");
        let ipv4_alone = plans(&BOTH.replace(r#"{"http": ["[2001:db8::12]"]}"#, "{}"));
        assert!(moved(&ipv4_alone, "[2001:db8::1]:50000").starts_with("Left("), "no target that the client can reach");
        let one = plans(FULL);
        assert!(one.ipv6.is_none());
        let of_ipv6 = both.of_connection(&Connection("[::1]:1", ""));
        assert_ne!(both.any.plan.fingerprint(), of_ipv6.fingerprint());
    }

    #[test]
    fn a_page_that_came_to_another_address_keeps_its_urls() {
        const PRIVATE: &str = r#"{
            "targets": {"http": ["192.168.1.1"], "only_at": ["192.168.1.1"]},
            "ipv6_targets": {"http": ["[fd00::1]"], "only_at": ["fd00::1"]},
            "own": ["192.168.1.1", "[fd00::1]"], "level": "safe", "ports": [80]}"#;
        let plans = plans(PRIVATE);
        for (client, server, moves) in [
            ("192.168.1.2:50000", "192.168.1.1:80", true),
            ("192.168.1.2:50000", "203.0.113.5:80", false),
            ("192.168.1.2:50000", "192.168.1.11:80", false),
            ("192.168.1.2:50000", "", false),
            ("[fd00::2]:50000", "[fd00::1]:80", true),
            ("[fd00::2]:50000", "[2001:db8::5]:80", false),
        ] {
            let plan = plans.of_connection(&Connection(client, server));
            assert_eq!(plan.mapper().moves_nothing(), !moves, "{client} to {server}");
        }
    }

    #[test]
    fn the_fingerprint_follows_the_configuration() {
        let of = |json: &str| Plan::from_json(json.as_bytes()).unwrap().fingerprint();
        assert_eq!(of(FULL), of(FULL));
        assert_eq!(of(FULL), of(&FULL.replace("\"level\"", "\"account\": true, \"level\"")), "no page changes by it");
        for (from, to) in [("safe", "full"), ("[80, 443]", "[80]"), ("8192", "8193"), ("bank.", "shop.")] {
            assert_ne!(of(FULL), of(&FULL.replace(from, to)));
        }
    }
}
