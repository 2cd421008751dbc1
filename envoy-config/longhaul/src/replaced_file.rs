//! Replaces a file as a whole, so that no reader ever sees half of it.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;

/// The rights of a file that replaces none.
const READABLE: u32 = 0o644;

/// Writes `bytes` to a temporary file in the folder of `path`, and renames it. `mode` holds the permissions of the file.
///
/// # Errors
/// The folder does not exist, or the file cannot be written. `path` is unchanged then.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    replace_with(path, bytes, |file| file.set_permissions(Permissions::from_mode(mode)))
}

/// Writes `bytes` to `path` as [`replace`] does, with the owner and the permissions of the file `like`. If there is no such
/// file, everybody may read it.
///
/// # Errors
/// As for [`replace`], and if this user may not give the file to that owner.
pub(crate) fn replace_like(like: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let metadata = match like.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return replace(path, bytes, READABLE),
        Err(error) => return Err(error),
    };
    replace_with(path, bytes, |file| {
        fchown(file, Some(metadata.uid()), Some(metadata.gid()))?;
        file.set_permissions(Permissions::from_mode(metadata.mode() & 0o777))
    })
}

fn replace_with(path: &Path, bytes: &[u8], give_rights: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".longhaul-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    // A temporary file is readable only by its owner.
    give_rights(file.as_file())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
