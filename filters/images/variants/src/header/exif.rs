//! The parts of Exif data that change how a browser shows an image (Exif 2.32; the format is that of TIFF 6.0).

/// Types of values.
const SHORT: u16 = 3;
const LONG: u16 = 4;
const RATIONAL: u16 = 5;

/// The most entries of a directory that are read.
const MOST_ENTRIES: u16 = 512;

/// Exif data. A part that is missing or malformed is None, as browsers read it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Exif {
    /// The orientation as a number.
    pub(super) orientation: Option<u16>,
    /// Pixels per unit, horizontally.
    x_resolution: Option<f64>,
    /// Pixels per unit, vertically.
    y_resolution: Option<f64>,
    /// 2: the unit is an inch.
    unit: Option<u16>,
    /// The width that the image shall have, in CSS pixels.
    width: Option<u32>,
    /// The height that the image shall have, in CSS pixels.
    height: Option<u32>,
}

/// CSS pixels of an image per inch, unless it says otherwise.
const DEFAULT_RESOLUTION: f64 = 72.0;

impl Exif {
    /// Reads the content of an Exif segment, without its name.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut exif = Self::default();
        let little = match bytes.get(..4) {
            Some(b"II*\0") => true,
            Some(b"MM\0*") => false,
            _ => return exif,
        };
        let tiff = Tiff { bytes, little };
        let mut details = None;
        for entry in tiff.entries(tiff.u32(4)) {
            match entry.tag {
                0x0112 => exif.orientation = tiff.short(entry),
                0x011a => exif.x_resolution = tiff.rational(entry),
                0x011b => exif.y_resolution = tiff.rational(entry),
                0x0128 => exif.unit = tiff.short(entry),
                0x8769 => details = tiff.number(entry),
                _ => {}
            }
        }
        for entry in tiff.entries(details) {
            match entry.tag {
                0xa002 => exif.width = tiff.number(entry),
                0xa003 => exif.height = tiff.number(entry),
                _ => {}
            }
        }
        exif
    }

    /// Returns true if browsers give the image another size than its pixels: resolution and size agree that a CSS pixel
    /// is not a pixel of the image (<https://html.spec.whatwg.org/#density-corrected-natural-width-and-height>).
    pub(super) fn has_own_size(&self, width: u32, height: u32) -> bool {
        let says = |resolution: Option<f64>, size: Option<u32>, pixels: u32| {
            let (Some(resolution), Some(size)) = (resolution, size) else { return false };
            size != pixels && (f64::from(size) * resolution / DEFAULT_RESOLUTION - f64::from(pixels)).abs() < 2.0
        };
        self.unit == Some(2)
            && (says(self.x_resolution, self.width, width) || says(self.y_resolution, self.height, height))
    }
}

/// The bytes of a TIFF structure.
#[derive(Debug, Clone, Copy)]
struct Tiff<'a> {
    bytes: &'a [u8],
    little: bool,
}

/// An entry of a directory.
#[derive(Debug, Clone, Copy)]
struct Entry {
    tag: u16,
    kind: u16,
    /// The position of the value, or of the offset of a value of more than four bytes.
    value: usize,
}

impl<'a> Tiff<'a> {
    /// Returns the entries of the directory at `at`, as far as there are any.
    fn entries(self, at: Option<u32>) -> impl Iterator<Item = Entry> + use<'a> {
        let at = at.and_then(|at| usize::try_from(at).ok());
        let count = at.and_then(|at| self.u16(at)).unwrap_or(0).min(MOST_ENTRIES);
        (0..usize::from(count)).map_while(move |index| {
            let entry = at?.checked_add(2 + index * 12)?;
            let value = entry.checked_add(8)?;
            Some(Entry { tag: self.u16(entry)?, kind: self.u16(entry + 2)?, value })
        })
    }

    fn short(self, entry: Entry) -> Option<u16> {
        if entry.kind == SHORT { self.u16(entry.value) } else { None }
    }

    fn number(self, entry: Entry) -> Option<u32> {
        match entry.kind {
            SHORT => self.u16(entry.value).map(u32::from),
            LONG => self.u32(entry.value),
            _ => None,
        }
    }

    fn rational(self, entry: Entry) -> Option<f64> {
        let at = self.u32(entry.value).filter(|_| entry.kind == RATIONAL)?;
        let at = usize::try_from(at).ok()?;
        let (over, under) = (self.u32(at)?, self.u32(at.checked_add(4)?)?);
        (under != 0).then(|| f64::from(over) / f64::from(under))
    }

    fn u16(self, at: usize) -> Option<u16> {
        let bytes = self.bytes.get(at..)?.first_chunk()?;
        Some(if self.little { u16::from_le_bytes(*bytes) } else { u16::from_be_bytes(*bytes) })
    }

    fn u32(self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..)?.first_chunk()?;
        Some(if self.little { u32::from_le_bytes(*bytes) } else { u32::from_be_bytes(*bytes) })
    }
}
