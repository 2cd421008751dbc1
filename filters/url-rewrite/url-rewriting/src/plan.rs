//! The checked and compiled configuration. It is immutable, and all streams of a worker share it.

use crate::config::{Config, Targets};
use page_scanner::Limits;
use serde::de::DeserializeOwned;
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

impl<Admission: DeserializeOwned> Config<Admission> {
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

/// The plans for clients of both address families. They differ in the targets of moved URLs.
#[derive(Debug)]
pub struct Plans {
    plan: Rc<Plan>,
    ipv6: Option<Rc<Plan>>,
}

impl Plans {
    /// Checks and compiles a configuration.
    ///
    /// # Errors
    /// Names the key and the expected value.
    pub fn new<Admission: Clone>(config: &Config<Admission>) -> Result<Self, PlanError> {
        let of_ipv6 = |targets: &Targets| Plan::new(&Config { targets: targets.clone(), ..config.clone() });
        Ok(Self { plan: Plan::new(config)?, ipv6: config.ipv6_targets.as_ref().map(of_ipv6).transpose()? })
    }

    /// Returns true if the proxy's access log prints an account of each page.
    pub fn keep_account(&self) -> bool {
        self.plan.keeps_account
    }

    /// Returns the plan for a client. `address` returns its address as Envoy writes it: `192.0.2.1:80` or
    /// `[2001:db8::1]:80`. It is not called if both families share one plan.
    pub fn of_client(&self, address: impl FnOnce() -> Vec<u8>) -> Rc<Plan> {
        match &self.ipv6 {
            Some(ipv6) if address().starts_with(b"[") => Rc::clone(ipv6),
            _ => Rc::clone(&self.plan),
        }
    }
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
    pub fn new<Admission>(config: &Config<Admission>) -> Result<Rc<Self>, PlanError> {
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
fn fingerprint<Admission>(config: &Config<Admission>) -> u64 {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    // Prefetching, the account, admission to the cache and fields of requests change no page. The targets for IPv6 stand
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
        admission: _,
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
        let plans = |json: &str| Plans::new(&<Config>::from_json(json.as_bytes()).unwrap()).unwrap();
        let moved = |plans: &Plans, client: &str| {
            let page = Base::new(Scheme::Http, "www.example.org", "/").unwrap();
            let plan = plans.of_client(|| client.as_bytes().to_vec());
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
        assert_ne!(both.plan.fingerprint(), both.of_client(|| b"[::1]:1".to_vec()).fingerprint());
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
