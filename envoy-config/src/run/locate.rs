//! Finding what a run needs: the programs, the filter, the host's certificate authorities and addresses.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use sha2::{Digest, Sha256};

use crate::config::{Cache, Role, Settings};
use crate::render::WasmModule;

/// Paths given on the command line, before any other place is looked at.
#[derive(Debug, Clone, Default)]
pub struct Overridden {
    /// Envoy.
    pub envoy: Option<PathBuf>,
    /// CoreDNS with the longhaul plugin.
    pub coredns: Option<PathBuf>,
    /// The url-rewrite filter.
    pub url_rewrite: Option<PathBuf>,
    /// The header-compression filter.
    pub header_compression: Option<PathBuf>,
    /// The bundling filter.
    pub bundling: Option<PathBuf>,
    /// The cache-admission filter.
    pub cache_admission: Option<PathBuf>,
    /// The name-budget filter.
    pub name_budget: Option<PathBuf>,
}

/// Everything a run needs, found.
#[derive(Debug, Clone)]
pub struct Located {
    /// Envoy.
    pub envoy: PathBuf,
    /// CoreDNS with the longhaul plugin.
    pub coredns: PathBuf,
    /// The url-rewrite filter.
    pub url_rewrite: PathBuf,
}

/// Something is not there.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// A program or filter.
    #[error("{what} was not found; looked at {looked_at}. Give --{flag} or {variable}, or run `make build`")]
    Missing {
        /// What it is.
        what: &'static str,
        /// The command line's way to name it.
        flag: &'static str,
        /// The environment's way to name it.
        variable: &'static str,
        /// Where it was looked for.
        looked_at: String,
    },
    /// The filter cannot be read.
    #[error("cannot read the filter {}: {error}", path.display())]
    Filter {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// No bundle of certificate authorities.
    #[error(
        "no certificate authorities found ({looked_at}); install the package ca-certificates, or set SSL_CERT_FILE"
    )]
    Authorities {
        /// Where they were looked for.
        looked_at: String,
    },
}

/// What is looked for, and under which names.
struct Wanted {
    what: &'static str,
    file: &'static str,
    flag: &'static str,
    variable: &'static str,
}

const ENVOY: Wanted = Wanted { what: "Envoy", file: "envoy", flag: "envoy", variable: "LONGHAUL_ENVOY" };
const COREDNS: Wanted =
    Wanted { what: "CoreDNS with the longhaul plugin", file: "coredns", flag: "coredns", variable: "LONGHAUL_COREDNS" };
const URL_REWRITE: Wanted = Wanted {
    what: "the url-rewrite filter",
    file: "url_rewrite.wasm",
    flag: "url-rewrite",
    variable: "LONGHAUL_URL_REWRITE",
};

const HEADER_COMPRESSION: Wanted = Wanted {
    what: "the header-compression filter",
    file: "header_compression.wasm",
    flag: "header-compression",
    variable: "LONGHAUL_HEADER_COMPRESSION",
};

const BUNDLING: Wanted =
    Wanted { what: "the bundling filter", file: "bundling.wasm", flag: "bundling", variable: "LONGHAUL_BUNDLING" };

const CACHE_ADMISSION: Wanted = Wanted {
    what: "the cache-admission filter",
    file: "cache_admission.wasm",
    flag: "cache-admission",
    variable: "LONGHAUL_CACHE_ADMISSION",
};

const NAME_BUDGET: Wanted = Wanted {
    what: "the name-budget filter",
    file: "name_budget.wasm",
    flag: "name-budget",
    variable: "LONGHAUL_NAME_BUDGET",
};

/// Where distributions keep the bundle: Debian and Alpine, Fedora, openSUSE.
const CA_BUNDLES: &[&str] = &[
    crate::render::Artifacts::DEBIAN_CA_BUNDLE,
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Finds all three: by flag, by environment, beside this program, in `$LONGHAUL_DIST`.
pub fn locate(overridden: &Overridden) -> Result<Located, LocateError> {
    Ok(Located {
        envoy: find(&ENVOY, overridden.envoy.as_deref())?,
        coredns: find(&COREDNS, overridden.coredns.as_deref())?,
        url_rewrite: find(&URL_REWRITE, overridden.url_rewrite.as_deref())?,
    })
}

/// Finds the filter alone.
pub(crate) fn url_rewrite(overridden: &Overridden) -> Result<PathBuf, LocateError> {
    find(&URL_REWRITE, overridden.url_rewrite.as_deref())
}

/// The filters that only some configurations use.
#[derive(Debug, Clone, Default)]
pub(crate) struct MoreFilters {
    /// Decides which requests the cache sees.
    pub(crate) cache_admission: Option<PathBuf>,
    /// Bounds the new names of a client.
    pub(crate) name_budget: Option<PathBuf>,
    /// Packs headers.
    pub(crate) header_compression: Option<PathBuf>,
    /// Bundles objects of pages.
    pub(crate) bundling: Option<PathBuf>,
}

impl MoreFilters {
    /// Finds those that the configuration uses.
    pub(crate) fn of(settings: &Settings, overridden: &Overridden) -> Result<Self, LocateError> {
        let bundling = find(&BUNDLING, overridden.bundling.as_deref());
        let cache_admission = find(&CACHE_ADMISSION, overridden.cache_admission.as_deref());
        let caches = matches!(settings.cache, Cache::Disk { .. });
        let cache_admission = if caches { cache_admission.map(Some)? } else { cache_admission.ok() };
        let name_budget = find(&NAME_BUDGET, overridden.name_budget.as_deref());
        let looks_up = settings.role.reaches_origins();
        let name_budget = if looks_up { name_budget.map(Some)? } else { name_budget.ok() };
        match settings.role {
            Role::Edge => Ok(Self { cache_admission, name_budget, ..Self::default() }),
            Role::Remote(_) | Role::Ground(_) => Ok(Self {
                cache_admission,
                name_budget,
                header_compression: find(&HEADER_COMPRESSION, overridden.header_compression.as_deref()).map(Some)?,
                // Not there, it can still be done without where nobody asks for it.
                bundling: if settings.page.bundle { bundling.map(Some)? } else { bundling.ok() },
            }),
        }
    }
}

fn find(wanted: &Wanted, flag: Option<&Path>) -> Result<PathBuf, LocateError> {
    // What was named explicitly is used or refused, never passed over.
    let named = flag
        .map(Path::to_owned)
        .or_else(|| env::var_os(wanted.variable).filter(|path| !path.is_empty()).map(PathBuf::from));
    let places: Vec<PathBuf> = match named {
        Some(path) => vec![path],
        None => [beside_this_program(), env::var_os("LONGHAUL_DIST").map(PathBuf::from)]
            .into_iter()
            .flatten()
            .map(|dir| dir.join(wanted.file))
            .collect(),
    };
    places.iter().find(|path| path.is_file()).map(|path| absolute(path)).ok_or_else(|| LocateError::Missing {
        what: wanted.what,
        flag: wanted.flag,
        variable: wanted.variable,
        looked_at: places.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
    })
}

fn beside_this_program() -> Option<PathBuf> {
    env::current_exe().ok()?.parent().map(Path::to_owned)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The filter with the hash its copy will be named by.
pub(crate) fn wasm_module(path: &Path) -> Result<WasmModule, LocateError> {
    let bytes = fs::read(path).map_err(|error| LocateError::Filter { path: path.to_owned(), error })?;
    Ok(WasmModule { path: path.to_owned(), sha256: hex(&Sha256::digest(&bytes)) })
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The host's bundle of certificate authorities; `SSL_CERT_FILE` names another, as for OpenSSL.
pub(crate) fn trusted_ca() -> Result<PathBuf, LocateError> {
    let named = env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty()).map(PathBuf::from);
    let places: Vec<PathBuf> = named.map_or_else(|| CA_BUNDLES.iter().map(PathBuf::from).collect(), |path| vec![path]);
    places.iter().find(|path| path.is_file()).cloned().ok_or_else(|| LocateError::Authorities {
        looked_at: places.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
    })
}

/// Every address of this machine, sorted; empty where the system does not say.
pub(crate) fn local_addresses() -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> =
        if_addrs::get_if_addrs().unwrap_or_default().iter().map(if_addrs::Interface::ip).collect();
    addresses.sort();
    addresses.dedup();
    addresses
}
