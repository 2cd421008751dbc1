//! Finds the programs and filters of a run, and the host's certificate authorities and addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use longhaul_config::{ImagesWish, Settings};
use longhaul_render::{Filter, NativeModule, WasmModule};
use sha2::{Digest, Sha256};

use super::engine::NativePlace;

/// Paths of filters, by [`Filter::name`].
pub(crate) type FilterPaths = BTreeMap<&'static str, PathBuf>;

/// Paths from the command line. They come before every other place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overridden {
    /// Envoy.
    pub envoy: Option<PathBuf>,
    /// CoreDNS with the longhaul plugin.
    pub coredns: Option<PathBuf>,
    /// The program that recodes images.
    pub images: Option<PathBuf>,
    /// The program that caches objects.
    pub objects: Option<PathBuf>,
}

/// The programs that a run starts.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    /// Envoy.
    pub envoy: PathBuf,
    /// CoreDNS with the longhaul plugin.
    pub coredns: PathBuf,
}

/// A program or file that is missing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocateError {
    /// A program or filter.
    #[error("{what} was not found in {looked_at}. Set {named_by}, or run `make build`")]
    Missing {
        /// The program or filter, with its article.
        what: String,
        /// The option and the environment variable that name it.
        named_by: String,
        /// The paths that were tried.
        looked_at: String,
    },
    /// A filter that cannot be read.
    #[error("cannot read the filter {}: {error}", path.display())]
    Filter {
        /// Its path.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// No bundle of certificate authorities.
    #[error(
        "no certificate authorities found ({looked_at}); install the package ca-certificates, or set SSL_CERT_FILE"
    )]
    Authorities {
        /// The paths that were tried.
        looked_at: String,
    },
}

/// A file to find, and the option and the variable that may name it.
struct Lookup {
    what: String,
    file: String,
    /// None for a filter, which every package has beside the program.
    option: Option<&'static str>,
    variable: String,
}

impl Lookup {
    fn program(what: &str, name: &'static str) -> Self {
        let variable = format!("LONGHAUL_{}", name.to_ascii_uppercase());
        Self { what: what.to_owned(), file: name.to_owned(), option: Some(name), variable }
    }

    fn filter(filter: &Filter) -> Self {
        Self {
            what: format!("the {} filter", filter.name),
            file: filter.file(),
            option: None,
            variable: filter.variable(),
        }
    }
}

/// The places where distributions keep the bundle: Debian and Alpine, Fedora, openSUSE.
const CA_BUNDLES: &[&str] = &[
    longhaul_render::Artifacts::DEBIAN_CA_BUNDLE,
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Finds both programs: by option, by environment variable, beside this program, in `$LONGHAUL_DIST`.
///
/// # Errors
/// A program is missing.
pub(crate) fn locate(overridden: &Overridden) -> Result<Located, LocateError> {
    Ok(Located {
        envoy: find(&Lookup::program("Envoy", "envoy"), overridden.envoy.as_deref())?,
        coredns: find(&Lookup::program("CoreDNS with the longhaul plugin", "coredns"), overridden.coredns.as_deref())?,
    })
}

/// Finds the filters: by environment variable, beside this program, in `$LONGHAUL_DIST`. A filter that `settings` do not need may be missing. One that is found is
/// listed anyway, because a later change may need it.
///
/// # Errors
/// A filter that `settings` need is missing.
pub(crate) fn filters(settings: &Settings) -> Result<FilterPaths, LocateError> {
    let mut found = FilterPaths::new();
    for filter in Filter::ALL.iter().filter(|filter| !filter.is_native_only) {
        match find(&Lookup::filter(filter), None) {
            Ok(path) => drop(found.insert(filter.name, path)),
            Err(error) if (filter.needed)(settings) => return Err(error),
            Err(_) => {}
        }
    }
    Ok(found)
}

/// Finds the program that recodes images, in the same places. It may be missing where `page.images: auto` wants it, or
/// nothing does.
///
/// # Errors
/// The program is missing, and the file or an option names it.
pub(crate) fn images(settings: &Settings, overridden: Option<&Path>) -> Result<Option<PathBuf>, LocateError> {
    let lookup = Lookup {
        what: "the program that recodes images".to_owned(),
        file: "longhaul-images".to_owned(),
        option: Some("images"),
        variable: "LONGHAUL_IMAGES".to_owned(),
    };
    may_be_missing(&lookup, overridden, settings.images.wish == ImagesWish::On && settings.role.changes_pages())
}

/// Finds the program that caches objects, in the same places. It may be missing where the file does not want it.
///
/// # Errors
/// The program is missing, and the file or an option names it.
pub(crate) fn objects(settings: &Settings, overridden: Option<&Path>) -> Result<Option<PathBuf>, LocateError> {
    let lookup = Lookup {
        what: "the program that caches objects".to_owned(),
        file: "longhaul-objects".to_owned(),
        option: Some("objects"),
        variable: "LONGHAUL_OBJECTS".to_owned(),
    };
    may_be_missing(&lookup, overridden, settings.cache.is_on_disk() && !settings.cache.is_assumed())
}

fn may_be_missing(lookup: &Lookup, overridden: Option<&Path>, needed: bool) -> Result<Option<PathBuf>, LocateError> {
    match find(lookup, overridden) {
        Ok(path) => Ok(Some(path)),
        Err(error) if needed || overridden.is_some() => Err(error),
        Err(_) => Ok(None),
    }
}

/// Finds the library of Multipath TCP in the same places. Without it, a remote's connections are TCP.
pub(crate) fn multipath() -> Option<PathBuf> {
    let lookup = Lookup {
        what: "the library of Multipath TCP".to_owned(),
        file: "longhaul_multipath.so".to_owned(),
        option: None,
        variable: "LONGHAUL_MULTIPATH".to_owned(),
    };
    find(&lookup, None).ok()
}

/// Returns the parts of native filters on this machine, with the socket for their own requests in `folder`.
pub(crate) fn native_place(envoy: Option<PathBuf>, folder: &Path) -> NativePlace {
    let lookup = Lookup {
        what: "the module of native filters".to_owned(),
        file: "longhaul_filters.so".to_owned(),
        option: None,
        variable: "LONGHAUL_NATIVE_FILTERS".to_owned(),
    };
    let module = find(&lookup, None).map_err(|error| error.to_string());
    let copies = envoy.as_ref().map(|_| folder.to_owned()).filter(|folder| folder.is_dir());
    NativePlace { module, envoy, copies, calls: NativeModule::calls_below(folder), barred: None }
}

fn find(wanted: &Lookup, flag: Option<&Path>) -> Result<PathBuf, LocateError> {
    // A path that was given explicitly is used or refused, never skipped.
    let named = flag
        .map(Path::to_owned)
        .or_else(|| env::var_os(&wanted.variable).filter(|path| !path.is_empty()).map(PathBuf::from));
    let mut places: Vec<PathBuf> = match named {
        Some(path) => vec![path],
        None => [beside_this_program(), env::var_os("LONGHAUL_DIST").map(PathBuf::from)]
            .into_iter()
            .flatten()
            .map(|dir| dir.join(&wanted.file))
            .collect(),
    };
    places.dedup();
    places.iter().find(|path| path.is_file()).map(|path| absolute(path)).ok_or_else(|| LocateError::Missing {
        what: wanted.what.clone(),
        named_by: wanted.option.map(|option| format!("--{option} or ")).unwrap_or_default() + &wanted.variable,
        looked_at: places.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
    })
}

fn beside_this_program() -> Option<PathBuf> {
    env::current_exe().ok()?.parent().map(Path::to_owned)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the filters with the hashes that name their copies.
pub(super) fn wasm_modules(paths: &FilterPaths) -> Result<BTreeMap<&'static str, WasmModule>, LocateError> {
    paths.iter().map(|(name, path)| Ok((*name, wasm_module(path)?))).collect()
}

fn wasm_module(path: &Path) -> Result<WasmModule, LocateError> {
    let bytes = fs::read(path).map_err(|error| LocateError::Filter { path: path.to_owned(), error })?;
    Ok(WasmModule { path: path.to_owned(), sha256: hex::encode(Sha256::digest(&bytes)) })
}

/// Returns the host's bundle of certificate authorities. `SSL_CERT_FILE` names another one, as for OpenSSL.
pub(crate) fn trusted_ca() -> Result<PathBuf, LocateError> {
    let named = env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty()).map(PathBuf::from);
    let places: Vec<PathBuf> = named.map_or_else(|| CA_BUNDLES.iter().map(PathBuf::from).collect(), |path| vec![path]);
    places.iter().find(|path| path.is_file()).map(|path| absolute(path)).ok_or_else(|| LocateError::Authorities {
        looked_at: places.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
    })
}

/// Returns the host name. Empty if the system has none.
pub(super) fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Returns every address of this machine, sorted. Empty if the system does not list them.
pub(crate) fn local_addresses() -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> =
        if_addrs::get_if_addrs().unwrap_or_default().iter().map(if_addrs::Interface::ip).collect();
    addresses.sort();
    addresses.dedup();
    addresses
}
