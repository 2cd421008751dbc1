//! The rendered files, and the order in which they may be written while Envoy runs.

use std::collections::{BTreeMap, BTreeSet};
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

const CLUSTERS: &str = "cds.yaml";
const CERTIFICATES: &str = "sds/";

/// Returns the resources of a rendered file. Each begins with a line at the left margin.
fn resources(file: &str) -> impl Iterator<Item = &str> {
    const BEGIN: &str = "\n- \"@type\":";
    let starts: Vec<usize> = file.match_indices(BEGIN).map(|(at, _)| at + 1).collect();
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([file.len()]).collect();
    starts.into_iter().zip(ends).filter_map(|(start, end)| file.get(start..end))
}

/// Returns the name of a resource.
fn name_of(resource: &str) -> Option<&str> {
    resource.lines().find_map(|line| line.strip_prefix("  name: "))
}

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

    /// Returns these files with the clusters that only `earlier` has. While Envoy goes from one to the other, routes of both
    /// are in use, and a route whose cluster is gone would fail requests.
    #[must_use]
    pub fn with_clusters_of(&self, earlier: &Self) -> Self {
        let mut both = self.clone();
        let (Some(new), Some(old)) = (both.files.get_mut(CLUSTERS), earlier.files.get(CLUSTERS)) else { return both };
        let names: BTreeSet<&str> = resources(new).filter_map(name_of).collect();
        let gone: String =
            resources(old).filter(|one| name_of(one).is_some_and(|name| !names.contains(name))).collect();
        if !new.ends_with('\n') {
            new.push('\n');
        }
        new.push_str(&gone);
        both
    }

    /// Returns these files with the clusters of `other`, and with the certificates that those name.
    #[must_use]
    pub fn with_clusters_as(&self, other: &Self) -> Self {
        let is_of_clusters = |path: &str| path == CLUSTERS || path.starts_with(CERTIFICATES);
        let theirs = other.files.iter().filter(|(path, _)| is_of_clusters(path));
        let mut mixed = self.clone();
        mixed.files.extend(theirs.map(|(path, text)| (path.clone(), text.clone())));
        mixed
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(clusters: &str) -> RenderedTree {
        let mut tree = RenderedTree::default();
        tree.put(CLUSTERS, clusters.to_owned());
        tree
    }

    #[test]
    fn clusters_that_are_gone_stay_for_the_change() {
        let old = tree("# head\nresources:\n- \"@type\": C\n  name: a\n  x: 1\n# b\n- \"@type\": C\n  name: b\n");
        let new = tree("# head\nresources:\n- \"@type\": C\n  name: a\n  x: 2\n");
        let both = "# head\nresources:\n- \"@type\": C\n  name: a\n  x: 2\n- \"@type\": C\n  name: b\n";
        assert_eq!(new.with_clusters_of(&old), tree(both));
        assert_eq!(new.with_clusters_of(&new), new);
        assert_eq!(old.with_clusters_of(&new), old);
        let routed = old.clone().with("rds/a.yaml", "old".to_owned());
        let other = new.clone().with("rds/a.yaml", "new".to_owned()).with("sds/key", "new".to_owned());
        let mixed = new.clone().with("rds/a.yaml", "old".to_owned()).with("sds/key", "new".to_owned());
        assert_eq!(routed.with_clusters_as(&other), mixed);
    }
}
