//! The cache that this machine has room for. A full disk or a broken folder costs the cache, and never the service.

use std::fs;

use longhaul_config::{Bytes, Cache, Settings};
use longhaul_observe::report::CacheFault;

use super::disk_space;
use super::error::RunError;
use super::log::Level;
use super::say;

/// The part of the disk that a cache may take which the file does not mention: one in so many.
const ASSUMED_PART: u64 = 10;
/// A smaller cache is of no use.
const LEAST: Bytes = Bytes(64 << 20);

/// The cache of the file, and the fault that keeps a run from having it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FittedCache {
    /// The cache of the file.
    pub(super) configured: Cache,
    /// The one in force, if the file does not mention a cache.
    assumed: Option<Cache>,
    /// The reason why the one in force is smaller, or off.
    pub(super) fault: Option<CacheFault>,
}

impl FittedCache {
    /// Makes the cache of `settings` as large as the machine allows, and its folder.
    pub(super) fn of(settings: &mut Settings) -> Self {
        let configured = settings.cache.clone();
        if configured.is_assumed() {
            settings.cache = assumed(&configured);
            return Self { configured, assumed: Some(settings.cache.clone()), fault: None };
        }
        let fault = prepare(&configured).err().and_then(|error| {
            let Cache::Disk { dir, size, .. } = &mut settings.cache else { return None };
            let fitting = Some(&error).and_then(fitting).filter(|_| make(dir).is_ok());
            let fault = CacheFault { dir: dir.clone(), why: error.to_string(), size_bytes: fitting.map(|size| size.0) };
            match fitting {
                Some(fitting) => *size = fitting,
                None => settings.cache = Cache::Off,
            }
            Some(fault)
        });
        Self { configured, assumed: None, fault }
    }

    /// Takes the cache over for the next `settings`. A cache that is in force already stays, however full its disk is. One
    /// that did not fit is tried again.
    ///
    /// # Errors
    /// The file wants another cache, and the machine has no room for it.
    pub(super) fn again(&self, settings: &mut Settings) -> Result<Self, RunError> {
        if settings.cache != self.configured {
            if !settings.cache.is_assumed() {
                prepare(&settings.cache)?;
            }
            return Ok(Self::of(settings));
        }
        if let Some(assumed) = &self.assumed {
            settings.cache = assumed.clone();
        }
        Ok(if self.fault.is_none() { self.clone() } else { Self::of(settings) })
    }

    /// Returns true if the cache did not fit, and does now.
    pub(super) fn is_mended(&self) -> bool {
        self.fault.is_some() && prepare(&self.configured).is_ok()
    }
}

/// Returns the cache of a box whose file does not mention one: at most a tenth of the disk, and none without a place for it.
fn assumed(cache: &Cache) -> Cache {
    let Cache::Disk { dir, size, .. } = cache else { return Cache::Off };
    let sized = |size| {
        let mut sized = cache.clone();
        if let Cache::Disk { size: own, .. } = &mut sized {
            *own = size;
        }
        sized
    };
    let share = disk_space::of_disk(dir).map_or(Bytes(0), |disk| Bytes(disk.0 / ASSUMED_PART)).min(*size);
    let cache = sized(share);
    let fitted = match prepare(&cache) {
        Ok(()) if share >= LEAST => return cache,
        Ok(()) => Err(format!("a tenth of the disk is less than {LEAST}")),
        Err(why) => fitting(&why).filter(|_| make(dir).is_ok()).map(sized).ok_or_else(|| why.to_string()),
    };
    fitted.unwrap_or_else(|why| {
        say(Level::Info, &format!("no cache: {why}. To have one, write `cache: {{ dir: FOLDER }}` into the file"));
        Cache::Off
    })
}

/// Returns the size of a cache that leaves half of the room to others.
fn fitting(error: &RunError) -> Option<Bytes> {
    let RunError::CacheTooLarge { room, .. } = error else { return None };
    let half = Bytes(((room.0 / 2) >> 20) << 20);
    (half >= LEAST).then_some(half)
}

/// Makes the folder of the cache.
///
/// # Errors
/// The disk is smaller than the cache, or the folder cannot be written.
pub(super) fn prepare(cache: &Cache) -> Result<(), RunError> {
    let Cache::Disk { dir, size, .. } = cache else { return Ok(()) };
    if let Some(refusal) = disk_space::refusal(dir, *size) {
        return Err(refusal);
    }
    make(dir)
}

fn make(dir: &std::path::Path) -> Result<(), RunError> {
    let error = |error| RunError::CacheFolder { path: dir.to_owned(), error };
    fs::create_dir_all(dir).map_err(error)?;
    // Envoy would start and cache nothing, without a message.
    tempfile::Builder::new().prefix(".longhaul-").tempfile_in(dir).map_err(error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longhaul_config::load_text;

    use super::*;

    fn settings(dir: &Path, size: &str) -> Settings {
        let text = format!(
            "link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
             upstream: {{ resolvers: [192.0.2.53] }}\ncache: {{ dir: {}, size: {size} }}\n",
            dir.display()
        );
        load_text(Path::new("longhaul.yaml"), text).unwrap().settings
    }

    #[test]
    fn a_cache_that_fits_is_made_as_configured() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings(&folder.path().join("cache"), "64mib");
        let before = settings.cache.clone();
        let fitted = FittedCache::of(&mut settings);
        assert_eq!((fitted.fault.clone(), &settings.cache), (None, &before));
        assert!(folder.path().join("cache").is_dir() && !fitted.is_mended());
    }

    #[test]
    fn a_disk_that_is_too_small_costs_a_part_of_the_cache_and_a_broken_folder_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut large = settings(folder.path(), "900tib");
        let fitted = FittedCache::of(&mut large);
        let fault = fitted.fault.clone().unwrap();
        assert!(fault.why.contains("`cache.size` is"), "{}", fault.why);
        let Cache::Disk { size, .. } = large.cache else { panic!("no cache") };
        assert_eq!(fault.size_bytes, Some(size.0));
        assert!(!fitted.is_mended());

        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let mut broken = settings(&file, "64mib");
        let fitted = FittedCache::of(&mut broken);
        assert_eq!((broken.cache.clone(), fitted.fault.as_ref().unwrap().size_bytes), (Cache::Off, None));
        fs::remove_file(&file).unwrap();
        assert!(fitted.is_mended(), "the folder can be made now");
        let mut next = settings(&file, "64mib");
        assert_eq!(fitted.again(&mut next).unwrap().fault, None);
        assert_ne!(next.cache, Cache::Off);
    }

    #[test]
    fn a_cache_that_the_file_does_not_mention_takes_a_tenth_of_the_disk_or_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let unwritten = |dir: &Path, size| {
            let mut settings = settings(dir, size);
            if let Cache::Disk { is_assumed, .. } = &mut settings.cache {
                *is_assumed = true;
            }
            settings
        };
        let mut large = unwritten(folder.path(), "900tib");
        let fitted = FittedCache::of(&mut large);
        let Cache::Disk { size, .. } = large.cache.clone() else { panic!("no cache") };
        let disk = disk_space::of_disk(folder.path()).unwrap();
        assert!(size.0 <= disk.0 / ASSUMED_PART && fitted.fault.is_none(), "{size}");

        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let mut broken = unwritten(&file, "64mib");
        let without = FittedCache::of(&mut broken);
        assert_eq!((broken.cache.clone(), without.fault.clone(), without.is_mended()), (Cache::Off, None, false));
        for (fitted, dir, in_force) in [(fitted, folder.path(), large.cache), (without, file.as_path(), Cache::Off)] {
            let mut same = unwritten(dir, if in_force == Cache::Off { "64mib" } else { "900tib" });
            assert_eq!(fitted.again(&mut same).unwrap(), fitted);
            assert_eq!(same.cache, in_force, "a reload changes nothing");
        }
    }

    #[test]
    fn a_change_that_asks_for_a_cache_without_room_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let fitted = FittedCache::of(&mut settings(folder.path(), "64mib"));
        assert!(fitted.again(&mut settings(folder.path(), "900tib")).is_err());
        assert!(fitted.again(&mut settings(folder.path(), "64mib")).is_ok());
    }
}
