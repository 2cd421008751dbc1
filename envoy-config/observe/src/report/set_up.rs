//! The facts of the configuration in force that the report of a run states.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use longhaul_config::{Cache, Settings, Validity, show_duration};
use serde::{Deserialize, Serialize};

/// The parts of a configuration that `longhaul status` compares with the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetUp {
    /// The slow link, as the file writes it.
    pub(crate) link: LinkReport,
    /// True if there are names to steer.
    pub(crate) lists_names: bool,
    /// `proxy.addresses`
    pub(crate) proxy_addresses: Vec<IpAddr>,
    /// The cache on this machine's disk, if there is one.
    pub(crate) cache: Option<CacheReport>,
    /// The certificates that Envoy presents, in the order of the file.
    pub(crate) certificates: Vec<CertificateReport>,
}

/// The slow link, in the notation of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkReport {
    /// `link.rtt`
    pub rtt: String,
    /// The same in milliseconds.
    pub rtt_ms: u64,
    /// `link.down`
    pub down: String,
    /// `link.up`
    pub up: String,
    /// `link.down`, in bits per second. 0 from a run of an earlier version.
    #[serde(default)]
    pub down_bps: u64,
    /// `link.up`, in bits per second.
    #[serde(default)]
    pub up_bps: u64,
}

/// The cache on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CacheReport {
    /// `cache.dir`
    pub dir: PathBuf,
    /// `cache.size`, in bytes.
    pub size_bytes: u64,
}

/// A cache that the machine has no room for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheFault {
    /// `cache.dir`
    pub dir: PathBuf,
    /// The reason, with a cure.
    pub why: String,
    /// The size of the cache in force, in bytes. None: it is off.
    pub size_bytes: Option<u64>,
}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CertificateReport {
    /// Its names, or its place in the pair.
    pub of: String,
    /// Its file.
    pub file: PathBuf,
    /// Its beginning and its end.
    pub validity: Validity,
}

impl SetUp {
    /// Reads the certificates again.
    pub fn of(settings: &Settings) -> Self {
        let link = &settings.link;
        let own = settings.role.identity();
        let pair = own.iter().flat_map(|own| [("this end of the pair", &own.cert), ("the pair's authority", &own.ca)]);
        let pair = pair.map(|(of, file)| (of.to_owned(), file));
        let terminated = settings.terminate.iter().map(|entry| (listed(&entry.names), &entry.cert));
        Self {
            link: LinkReport {
                rtt: show_duration(link.rtt),
                rtt_ms: u64::try_from(link.rtt.as_millis()).unwrap_or(u64::MAX),
                down: link.down.to_string(),
                up: link.up.to_string(),
                down_bps: link.down.bits_per_second,
                up_bps: link.up.bits_per_second,
            },
            lists_names: settings.steers(),
            proxy_addresses: settings.proxy.addresses.clone(),
            cache: match &settings.cache {
                Cache::Disk { dir, size, .. } => Some(CacheReport { dir: dir.clone(), size_bytes: size.0 }),
                _ => None,
            },
            certificates: pair.chain(terminated).filter_map(|(of, file)| CertificateReport::read(of, file)).collect(),
        }
    }
}

impl CertificateReport {
    fn read(of: String, file: &Path) -> Option<Self> {
        let validity = Validity::of_pem(&fs::read_to_string(file).ok()?)?;
        Some(Self { of, file: file.to_owned(), validity })
    }
}

fn listed<T: ToString>(names: &[T]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
