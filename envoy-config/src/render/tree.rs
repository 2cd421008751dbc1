//! The rendered files, and the order in which a running Envoy must meet them.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Files by their path below [`super::Artifacts::root`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedTree {
    files: BTreeMap<String, String>,
    modules: Vec<ModuleCopy>,
}

/// A filter that must stand in the tree before the file that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleCopy {
    /// The built filter.
    pub from: PathBuf,
    /// Its place below the root; carries its hash, so an existing file of this name is the same file.
    pub to: String,
}

/// Referred to before referring: a listener that names a route or a certificate not there yet would wait for it, and
/// requests would meet a route to a cluster that does not exist. Bootstrap last: it is read once, at start.
const APPLY_ORDER: [&str; 6] = ["sds/", "cds.yaml", "rds/", "ecds/", "lds.yaml", "bootstrap.yaml"];

impl RenderedTree {
    pub(super) fn put(&mut self, path: impl Into<String>, content: String) {
        self.files.insert(path.into(), content);
    }

    pub(super) fn copy(&mut self, module: ModuleCopy) {
        self.modules.push(module);
    }

    /// Adds a file that is not Envoy's, such as the Corefile.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, content: String) -> Self {
        self.put(path, content);
        self
    }

    /// Every file, by path.
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// One file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Filters to be copied before any file is put in place.
    pub fn modules(&self) -> &[ModuleCopy] {
        &self.modules
    }

    /// The files in the order in which they may be put in place while Envoy runs; others than Envoy's come first.
    pub fn in_apply_order(&self) -> Vec<(&str, &str)> {
        let rank = |path: &str| APPLY_ORDER.iter().position(|prefix| path.starts_with(prefix));
        let mut files: Vec<_> = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        files.sort_by_key(|(path, _)| rank(path));
        files
    }
}
