//! The name by which the ground remembers what the cache of a remote holds. It lies beside the cache and lasts as long, so that a
//! remote that starts again gets no object twice.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use longhaul_config::{Cache, RoleName, Settings};
use rustls::crypto::ring;

/// The file in the folder of the cache.
const FILE: &str = "name";
/// The length of a name, in hexadecimal digits.
const DIGITS: usize = 16;

/// Returns the name of the cache of a remote. Makes one if there is none. None without a cache, and if the folder cannot be
/// written: then the name lasts as long as Envoy.
pub(super) fn of(settings: &Settings) -> Option<String> {
    match &settings.cache {
        Cache::Disk { dir, .. } if settings.role.name() == RoleName::Remote => read_or_make(dir).ok(),
        _ => None,
    }
}

fn read_or_make(folder: &Path) -> io::Result<String> {
    let path = folder.join(FILE);
    let is_name =
        |text: &String| text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if let Some(name) = fs::read_to_string(&path).ok().filter(is_name) {
        return Ok(name);
    }
    // Only this end and its ground know it: nobody else can tell the ground about this cache.
    let name = format!("{:016x}", random()?);
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(name.as_bytes())?;
    file.persist(path)?;
    Ok(name)
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_name_is_made_once_and_again_if_the_file_is_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let first = read_or_make(folder.path()).unwrap();
        assert_eq!(read_or_make(folder.path()).unwrap(), first);
        let path = folder.path().join(FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "longhaul").unwrap();
        let second = read_or_make(folder.path()).unwrap();
        assert!(second.len() == DIGITS && second != first, "{second}");
        assert!(read_or_make(&folder.path().join("absent")).is_err());
    }
}
