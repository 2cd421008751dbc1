//! Seeds of the targets.

/// Returns JPEG files without pixels: orientation, a size by Exif data, fill bytes.
pub(crate) fn jpegs() -> Vec<Vec<u8>> {
    let frame = b"\xff\xc2\0\x11\x08\x01\x2c\x01\x90\x03\x01\x22\0\x02\x11\0\x03\x11\0";
    let scan = b"\xff\xda\0\x08\x01\x01\0\0\x3f\0xyz\xff\xd9";
    let exif = b"\xff\xe1\0\x2eExif\0\0MM\0*\0\0\0\x08\0\x02\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\x87\x69\0\x04\0\0\0\x01\0\0\0\x08\0\0\0\0";
    let little = b"\xff\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0\0\0\0\0";
    let start = &b"\xff\xd8"[..];
    vec![
        [start, b"\xff\xe0\0\x07JFIF\0", frame, scan].concat(),
        [start, exif, frame, scan].concat(),
        [start, little, frame, scan].concat(),
    ]
}

/// Returns PNG files without pixels.
pub(crate) fn pngs() -> Vec<Vec<u8>> {
    let start = &b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x01\x90\0\0\x01\x2c\x08\x06\0\0\0CRC."[..];
    let end = b"\0\0\0\x01IDATxCRC.\0\0\0\0IENDCRC.";
    let colours = b"\0\0\0\x04gAMA\0\0\xb1\x8fCRC.\0\0\0\x01sRGB\0CRC.";
    let exif = b"\0\0\0\x1aeXIfMM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x01\0\0\0\0\0\0CRC.";
    vec![[start, end].concat(), [start, colours, end].concat(), [start, exif, end].concat()]
}

/// Returns headers of requests and responses.
pub(crate) fn headers() -> Vec<Vec<u8>> {
    vec![
        b":method:GET\n:path:/a.jpg\naccept:image/avif,image/webp;q=0.8,*/*\nif-none-match:W/\"x;lh-webp75\", \"y\"".to_vec(),
        b":status:200\ncontent-type:image/jpeg\ncontent-length:5000\netag:\"x\"\ncache-control:max-age=60".to_vec(),
    ]
}

/// Byte strings that matter to a target but rarely arise at random. cargo-fuzz inserts them into inputs.
pub(crate) const TOKENS: &[&[u8]] =
    &[b"Exif\0\0", b"MM\0*", b"II*\0", b"MPF\0", b"acTL", b"eXIf", b"cHRM", b"IEND", b"/.lh-webp", b";lh-webp75"];
