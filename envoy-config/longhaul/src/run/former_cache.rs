//! The files of Envoy's own cache, which earlier releases used. Nothing reads them, and nothing else would remove them.

use std::fs;
use std::path::Path;

use longhaul_config::Cache;

use super::log::Level;
use super::say;

/// The names in the folder of that cache are this word and decimal digits.
const PREFIX: &str = "cache-";

/// Removes the files from the folder of the cache, and says so.
pub(super) fn clear(cache: &Cache) {
    let Cache::Disk { dir, .. } = cache else { return };
    let removed = remove(dir);
    if removed > 0 {
        let text = format!("removed the cache of an earlier release, {removed} files, from {}", dir.display());
        say(Level::Info, &text);
    }
}

/// Removes the files from `dir`. Returns their number. Links and folders stay, whatever their name.
fn remove(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let former = files.filter(|entry| entry.file_name().to_str().is_some_and(is_former));
    former.filter(|entry| fs::remove_file(entry.path()).is_ok()).count()
}

fn is_former(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_with_the_names_of_that_cache_go() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let kept = ["cache-", "cache-12a", "cachet-1", "objects.json", "12"];
        for name in kept.into_iter().chain(["cache-1", "cache-18446744073709551615"]) {
            fs::write(at(name), "a").unwrap();
        }
        fs::create_dir(at("cache-2")).unwrap();
        symlink(at("12"), at("cache-3")).unwrap();
        assert_eq!(remove(folder.path()), 2);
        assert!(kept.iter().chain(&["cache-2", "cache-3"]).all(|name| at(name).symlink_metadata().is_ok()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), kept.len() + 2);
        assert_eq!((remove(folder.path()), remove(&at("absent"))), (0, 0));
    }
}
