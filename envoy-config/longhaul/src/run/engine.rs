//! Which engine runs the filters: wasm modules, or the native module in Envoy's own process.
//!
//! The module needs Envoy's interface of exactly its own version. For another version Envoy writes a warning and loads
//! it anyway. So a process of its own loads the module first, and says whether the versions agree.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use longhaul_config::EngineWish;
use longhaul_render::NativeModule;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

/// The parts of native filters on this machine.
#[derive(Debug, Clone)]
pub(crate) struct NativePlace {
    /// The module, or where it was looked for.
    pub(crate) module: Result<PathBuf, String>,
    /// The Envoy that is to load it. None: another machine's, which is not asked.
    pub(crate) envoy: Option<PathBuf>,
    /// The folder from which Envoy loads its copy. None: not known. Its file system may forbid programs (`noexec`).
    pub(crate) copies: Option<PathBuf>,
    /// The socket for filters' own requests. None: its path is too long.
    pub(crate) calls: Option<PathBuf>,
    /// The reason why wasm runs until the next start, whatever the file says.
    pub(crate) barred: Option<String>,
}

/// The engine of a generation.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    /// The native module. None: wasm modules run.
    pub(crate) native: Option<NativeModule>,
    /// The reason, in the words of `check`.
    pub(crate) why: String,
    /// True if wasm runs because the module cannot.
    pub(crate) is_fallback: bool,
}

/// `engine: native` cannot run here.
#[derive(Debug, thiserror::Error)]
#[error(
    "`engine: native` cannot run here: {0}. Write `engine: auto`, which runs wasm until that is cured, or `engine: wasm`"
)]
pub(crate) struct NoNative(String);

impl Engine {
    /// Returns the name in the file.
    pub(crate) fn name(&self) -> &'static str {
        if self.native.is_some() { "native" } else { "wasm" }
    }

    /// Chooses the engine. The first choice for a module takes the time in which Envoy loads it.
    ///
    /// # Errors
    /// The file says `native`, and that engine cannot run.
    pub(crate) fn choose(wish: EngineWish, place: &NativePlace) -> Result<Self, NoNative> {
        let wasm = |why: String| Self { native: None, why, is_fallback: false };
        match (wish, &place.barred) {
            (EngineWish::Wasm, _) => Ok(wasm("set by `engine`".to_owned())),
            (_, Some(why)) => Ok(wasm(why.clone())),
            (EngineWish::Native, None) => {
                let native = Some(offered(place).map_err(NoNative)?);
                Ok(Self { native, why: "set by `engine`".to_owned(), is_fallback: false })
            }
            (EngineWish::Auto, None) if place.envoy.is_none() => {
                Ok(wasm("no Envoy is known here that loads the module".to_owned()))
            }
            (EngineWish::Auto, None) => Ok(match offered(place) {
                Ok(native) => {
                    Self { native: Some(native), why: "this Envoy loads the module".to_owned(), is_fallback: false }
                }
                Err(why) => Self { is_fallback: true, ..wasm(why) },
            }),
        }
    }
}

/// Returns the module if this machine's Envoy loads it, or the reason why not.
fn offered(place: &NativePlace) -> Result<NativeModule, String> {
    let path = place.module.clone()?;
    let calls = place.calls.clone().ok_or("the path of the state folder is too long for sockets")?;
    let bytes = fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let sha256 = hex::encode(Sha256::digest(&bytes));
    if let Some(envoy) = &place.envoy {
        proved(envoy, &path, place.copies.as_deref(), &sha256)?;
    }
    Ok(NativeModule { path, sha256, calls })
}

/// The outcome for each module that Envoy was asked to load, by its hash.
static PROVED: Mutex<BTreeMap<String, Result<(), String>>> = Mutex::new(BTreeMap::new());

fn proved(envoy: &Path, module: &Path, copies: Option<&Path>, sha256: &str) -> Result<(), String> {
    let known = PROVED.lock().unwrap_or_else(PoisonError::into_inner).get(sha256).cloned();
    known.unwrap_or_else(|| {
        let outcome = match copies {
            Some(folder) => copied(module, folder).and_then(|copy| load(envoy, copy.path())),
            None => load(envoy, module),
        };
        PROVED.lock().unwrap_or_else(PoisonError::into_inner).insert(sha256.to_owned(), outcome.clone());
        outcome
    })
}

/// Copies the module to where Envoy will load it. The copy goes with the value.
fn copied(module: &Path, folder: &Path) -> Result<NamedTempFile, String> {
    let copy = || -> io::Result<_> {
        let copy = tempfile::Builder::new().prefix("longhaul-").suffix(".so").tempfile_in(folder)?;
        fs::copy(module, copy.path())?;
        Ok(copy)
    };
    copy().map_err(|error| format!("cannot copy {} to {}: {error}", module.display(), folder.display()))
}

/// Makes Envoy load the module in a process that serves nobody. The smallest filter needs no other part of a configuration.
fn load(envoy: &Path, module: &Path) -> Result<(), String> {
    let asked = (|| -> io::Result<_> {
        let mut file = tempfile::Builder::new().prefix("longhaul-").suffix(".yaml").tempfile()?;
        file.write_all(trial(module).as_bytes())?;
        Command::new(envoy)
            .args(["--mode", "validate", "-l", "info", "--log-format", "%v", "-c"])
            .arg(file.path())
            .stdin(Stdio::null())
            .output()
    })();
    let output = asked.map_err(|error| format!("Envoy could not be asked to load the module: {error}"))?;
    judge(output.status.success(), &String::from_utf8_lossy(&output.stderr))
}

/// Reads what Envoy wrote while it loaded the module.
fn judge(is_accepted: bool, log: &str) -> Result<(), String> {
    let last = || log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given").trim().to_owned();
    let version = log.lines().find(|line| line.starts_with("Dynamic module ABI version"));
    match (is_accepted, version) {
        (false, _) => Err(format!("Envoy does not load the module: {}", last())),
        (true, Some(line)) if line.contains("matched") => Ok(()),
        (true, Some(line)) => Err(format!("the module is for another version of Envoy: {line}")),
        (true, None) => Err("Envoy does not say which interface the module has, so it is another version".to_owned()),
    }
}

/// A bootstrap with one filter of the module.
fn trial(module: &Path) -> String {
    // JSON is YAML. A path may hold any character.
    let filter = serde_json::json!({
        "name": "trial",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter",
            "dynamic_module_config": {
                "module": { "local": { "filename": module.display().to_string() } },
                "do_not_close": true,
            },
            "filter_name": "name-budget",
            "filter_config": {
                "@type": "type.googleapis.com/google.protobuf.StringValue",
                "value": "{\"per_client\": 64}",
            },
        },
    });
    let router = serde_json::json!({
        "name": "envoy.filters.http.router",
        "typed_config": { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
    });
    let manager = serde_json::json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "trial",
        "route_config": {},
        "http_filters": [filter, router],
    });
    serde_json::json!({
        "static_resources": {
            "listeners": [{
                "name": "trial",
                "address": { "socket_address": { "address": "127.0.0.1", "port_value": 0 } },
                "filter_chains": [{ "filters": [{ "name": "trial", "typed_config": manager }] }],
            }],
        },
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_module_of_the_same_interface_is_taken() {
        let log = |line: &str| format!("loading 1 listener(s)\n{line}\nconfiguration OK\n");
        assert_eq!(judge(true, &log("Dynamic module ABI version v0.2.0 matched.")), Ok(()));
        let other = judge(true, &log("Dynamic module ABI version v0.1.0 is deprecated. Please recompile."));
        assert!(other.unwrap_err().contains("another version of Envoy"));
        assert!(judge(true, &log("")).unwrap_err().contains("another version"));
        let missing = judge(false, "Failed to load dynamic module: undefined symbol: x\n\n");
        assert_eq!(
            missing.unwrap_err(),
            "Envoy does not load the module: Failed to load dynamic module: undefined symbol: x"
        );
    }

    #[test]
    fn the_file_decides_and_auto_falls_back_with_the_reason() {
        let nothing = NativePlace {
            module: Err("the module is nowhere".to_owned()),
            envoy: None,
            copies: None,
            calls: Some("/run/calls.sock".into()),
            barred: None,
        };
        assert_eq!(Engine::choose(EngineWish::Wasm, &nothing).unwrap().name(), "wasm");
        let auto = Engine::choose(EngineWish::Auto, &nothing).unwrap();
        assert_eq!((auto.name(), auto.why.contains("no Envoy")), ("wasm", true));
        let unbuilt = NativePlace { envoy: Some("/bin/false".into()), ..nothing.clone() };
        let auto = Engine::choose(EngineWish::Auto, &unbuilt).unwrap();
        assert_eq!((auto.name(), auto.why.contains("nowhere")), ("wasm", true));
        assert!(Engine::choose(EngineWish::Native, &nothing).is_err());

        let folder = tempfile::tempdir().unwrap();
        let module = folder.path().join("longhaul_filters.so");
        fs::write(&module, "x").unwrap();
        let place = NativePlace { module: Ok(module), ..nothing };
        assert_eq!(Engine::choose(EngineWish::Auto, &place).unwrap().name(), "wasm");
        assert_eq!(Engine::choose(EngineWish::Native, &place).unwrap().name(), "native");
        let refuses = NativePlace { envoy: Some("/bin/false".into()), ..place.clone() };
        let auto = Engine::choose(EngineWish::Auto, &refuses).unwrap();
        assert_eq!((auto.name(), auto.why.contains("does not load the module")), ("wasm", true));
        let barred = NativePlace { barred: Some("Envoy died".to_owned()), ..place };
        let engine = Engine::choose(EngineWish::Native, &barred).unwrap();
        assert_eq!((engine.name(), engine.why.as_str()), ("wasm", "Envoy died"));
    }
}
