//! The addresses of origins that Envoy saves, so that no request after a restart waits for a lookup made before it.
//!
//! Envoy 1.40 saves an address whose record has a TTL of 0, and refuses it at the next start ("0 is not a valid ttl"). It
//! then reads no entry behind it. So these TTLs become one second, before Envoy reads the file. Envoy looks the name up
//! again when that second is over.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::{fs, io};

use crate::replaced_file::replace;

/// The end of the names of Envoy's files, which `part/dns_cache.yaml` gives them.
const SUFFIX: &str = "addresses";
/// A TTL of 0, between an address and the time of its last use. Neither a name nor an address has a `|`.
const NO_TTL: &[u8; 3] = b"|0|";
/// The shortest TTL that Envoy reads. It has as many bytes: the file has the lengths of its entries.
const SHORTEST_TTL: &[u8; 3] = b"|1|";

/// Mends the files of saved addresses in `folder`.
///
/// # Errors
/// A file cannot be read or replaced. It is unchanged then, and Envoy still starts: it only knows fewer addresses.
pub(super) fn mend(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|suffix| suffix != SUFFIX) {
            continue;
        }
        let mut bytes = fs::read(&path)?;
        if with_a_ttl(&mut bytes) {
            replace(&path, &bytes, fs::metadata(&path)?.permissions().mode())?;
        }
    }
    Ok(())
}

/// Gives each saved address a TTL. Returns true if one had none.
fn with_a_ttl(bytes: &mut [u8]) -> bool {
    let places: Vec<usize> =
        bytes.windows(NO_TTL.len()).enumerate().filter(|(_, window)| window == NO_TTL).map(|(at, _)| at).collect();
    for place in &places {
        if let Some(ttl) = bytes.get_mut(*place..place + NO_TTL.len()) {
            ttl.copy_from_slice(SHORTEST_TTL);
        }
    }
    !places.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_ttl_gets_one_and_every_other_byte_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("origins.addresses");
        let other = folder.path().join("other");
        let saved = "16\nwww.example.org:8018\n203.0.113.5:80|0|212\nexample.org:19\n203.0.113.6:80|60|1";
        fs::write(&file, saved).unwrap();
        fs::write(&other, saved).unwrap();
        for _ in 0..2 {
            mend(folder.path()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), saved.replace("|0|", "|1|"));
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), saved);
    }
}
