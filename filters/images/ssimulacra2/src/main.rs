//! `images-ssimulacra2 ORIGINAL COPY ...`: the SSIMULACRA2 score of each pair of PNG files, one a line. 100 is equal, 90 is
//! equal to the eye, 70 is high quality, 50 is medium.

use std::error::Error;

use ssimulacra2::{ColorPrimaries, Rgb, TransferCharacteristic, compute_frame_ssimulacra2};

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    for pair in files.chunks_exact(2) {
        println!("{:.2}", compute_frame_ssimulacra2(pixels(&pair[0])?, pixels(&pair[1])?)?);
    }
    Ok(())
}

fn pixels(file: &str) -> Result<Rgb, Box<dyn Error>> {
    let image = image::open(file)?.to_rgb32f();
    let (width, height) = (usize::try_from(image.width())?, usize::try_from(image.height())?);
    let pixels = image.pixels().map(|pixel| pixel.0).collect();
    Ok(Rgb::new(pixels, width, height, TransferCharacteristic::SRGB, ColorPrimaries::BT709)?)
}
