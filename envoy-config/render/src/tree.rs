//! The rendered files, and the order in which they may be written while Envoy runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The rendered files, by their path below [`super::Artifacts::root`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedTree {
    /// The files with their content.
    pub files: BTreeMap<String, String>,
    /// The modules to copy before any file is written.
    pub modules: Vec<ModuleCopy>,
}

/// A copy of a module. It must be in the tree before the file that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleCopy {
    /// The path of the built module.
    pub from: PathBuf,
    /// The path of the copy, below the root. It contains the hash, so an existing file of this name is the same file.
    pub to: String,
}

/// The order of Envoy's files: a file comes after the files that it refers to.
///
/// A listener would wait for a route or a certificate that does not exist yet. A request would find a route to a
/// cluster that does not exist. The bootstrap is last, because Envoy reads it only at start.
const APPLY_ORDER: [&str; 6] = ["sds/", "cds.yaml", "rds/", "ecds/", "lds.yaml", "bootstrap.yaml"];

impl RenderedTree {
    pub(super) fn put(&mut self, path: impl Into<String>, content: String) {
        self.files.insert(path.into(), content);
    }

    pub(super) fn copy(&mut self, module: ModuleCopy) {
        self.modules.push(module);
    }

    /// Adds a file that is not for Envoy, such as the Corefile.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, content: String) -> Self {
        self.put(path, content);
        self
    }

    /// Returns the content of one file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns the files in the order in which they may be written while Envoy runs. Files that are not Envoy's come
    /// first.
    pub fn in_apply_order(&self) -> Vec<(&str, &str)> {
        let rank = |path: &str| APPLY_ORDER.iter().position(|prefix| path.starts_with(prefix));
        let mut files: Vec<_> = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        files.sort_by_key(|(path, _)| rank(path));
        files
    }
}
