//! `recode FOLDER`: the bytes of each image of a folder before and after, or the reason why it stays.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a tool that ends at the first fault"
)]

use std::path::PathBuf;
use std::time::Instant;

use image_recode::{Policy, Source, recode};

fn main() {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).expect("a folder");
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("a folder").flatten().map(|file| file.path()).collect();
    files.sort();
    let mut totals = [(0, 0), (0, 0)];
    for file in files {
        let (source, total) = match file.extension().and_then(|end| end.to_str()) {
            Some("jpg") => (Source::Jpeg, 0),
            Some("png") => (Source::Png, 1),
            _ => continue,
        };
        let bytes = std::fs::read(&file).expect("a file");
        let start = Instant::now();
        let result = recode(source, &bytes, &Policy::default());
        let out = result.as_ref().map_or(bytes.len(), Vec::len);
        totals[total].0 += bytes.len();
        totals[total].1 += out;
        let said = result.map_or_else(|left| left.as_str().to_owned(), |_| format!("{:?}", start.elapsed()));
        println!("{:28} {:8} {:8} {said}", file.file_name().unwrap_or_default().display(), bytes.len(), out);
    }
    println!("JPEG {:.3}, PNG {:.3}", ratio(totals[0]), ratio(totals[1]));
}

#[expect(clippy::cast_precision_loss, reason = "sums of files")]
fn ratio((before, after): (usize, usize)) -> f64 {
    after as f64 / before as f64
}
