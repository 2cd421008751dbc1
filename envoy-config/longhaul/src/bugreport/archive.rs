//! The archive: texts in a tar file, compressed by gzip.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The folder in the archive.
const FOLDER: &str = "longhaul-bugreport";
const OWNER_ALONE: u32 = 0o600;

/// Writes `texts`, by their names, to a new file.
pub(super) fn write(out: &Path, texts: &[(String, String)]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(OWNER_ALONE).open(out)?;
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    for (name, text) in texts {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(OWNER_ALONE);
        archive.append_data(&mut header, format!("{FOLDER}/{name}"), text.as_bytes())?;
    }
    archive.into_inner()?.finish()?.flush()
}
