//! New fields for stored responses.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use http_semantics::FieldList;
use object_rules::Life;
use rustix::fs::OFlags;

use crate::disk::Disk;
use crate::files::about;
use crate::fill::{Fill, invalid};
use crate::head::{Head, Kind, Placed, encode};
use crate::object::Object;
use crate::read::{Broken, Start, Wait, read_full};

const CHUNK: usize = 128 * 1024;

/// Puts new fields over the old ones, or copies the file if they need more room.
pub(crate) fn refresh(disk: &Arc<Disk>, object: &Object, fields: FieldList, life: Life) -> io::Result<Arc<Object>> {
    disk.check()?;
    let Some((file, seen)) = disk.health.watch(disk.folder.find(object.key, OFlags::RDWR))? else {
        return Err(replaced());
    };
    // The head goes over the one that was read from the same open file. So it never stands before another body.
    let old = Start::read(&file, seen.size, Wait::Disk).map_err(|broken| match broken {
        Broken::Disk(error) => error,
        Broken::Torn | Broken::Head(_) => replaced(),
    })?;
    let old = old.placed;
    if old.stamp != object.stamp {
        return Err(replaced());
    }
    let Placed { head: old, body_at, stamp } = old;
    let placed = Placed { head: Head { fields, life, ..old }, body_at, stamp };
    let encoded = encode(&placed).map_err(invalid)?;
    if encoded.len() as u64 > body_at && placed.head.kind == Kind::Slices {
        // A copy of gigabytes would take longer than a client waits.
        disk.remove_torn(object.key, seen.inode);
        return Err(replaced());
    }
    if encoded.len() as u64 > body_at {
        let mut copy = Fill::begin(disk, object.key, placed.head.clone())?;
        let mut chunk = vec![0; CHUNK];
        let end = body_at.saturating_add(placed.head.length);
        let mut at = body_at;
        while at < end {
            let most = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
            let part = chunk.get_mut(..most).unwrap_or_default();
            if read_full(&file, at, part, Wait::Disk)? < most {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            copy.append(part)?;
            at += most as u64;
        }
        return copy.commit();
    }
    if let Err(error) = file.write_all_at(&encoded, 0) {
        // Half a head is of no use to anybody.
        disk.remove_torn(object.key, seen.inode);
        return disk.health.watch(Err(error));
    }
    let object = Object::new(object.key, placed, object.body.clone());
    disk.hot.put(&object, about(&file)?.into());
    Ok(object)
}

fn replaced() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the response was removed or replaced")
}
