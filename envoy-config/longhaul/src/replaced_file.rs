//! Replaces a file as a whole, so that no reader ever sees half of it.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Writes `bytes` to a temporary file in the folder of `path`, and renames it. `mode` holds the permissions of the file.
///
/// # Errors
/// The folder does not exist, or the file cannot be written. `path` is unchanged then.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".longhaul-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    // A temporary file is readable only by its owner.
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
