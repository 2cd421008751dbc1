//! `images-ssimulacra2 ORIGINAL COPY ...`: the SSIMULACRA2 score of each pair of PNG files (RGB, 8 bits), one a line. 100 is
//! equal, 90 is equal to the eye, 70 is high quality, 50 is medium.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use png::{BitDepth, ColorType, Decoder};
use ssimulacra2::{ColorPrimaries, Rgb, TransferCharacteristic, compute_frame_ssimulacra2};

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    for pair in files.chunks_exact(2) {
        println!("{:.2}", compute_frame_ssimulacra2(pixels(&pair[0])?, pixels(&pair[1])?)?);
    }
    Ok(())
}

fn pixels(file: &str) -> Result<Rgb, Box<dyn Error>> {
    let mut reader = Decoder::new(BufReader::new(File::open(file)?)).read_info()?;
    if reader.output_color_type() != (ColorType::Rgb, BitDepth::Eight) {
        return Err(format!("{file} is not RGB with 8 bits").into());
    }
    let mut samples = vec![0; reader.output_buffer_size().ok_or("too large")?];
    let frame = reader.next_frame(&mut samples)?;
    let (width, height) = (usize::try_from(frame.width)?, usize::try_from(frame.height)?);
    let (pixels, _) = samples.as_chunks();
    let pixels = pixels.iter().map(|pixel: &[u8; 3]| pixel.map(|sample| f32::from(sample) / 255.0)).collect();
    Ok(Rgb::new(pixels, width, height, TransferCharacteristic::SRGB, ColorPrimaries::BT709)?)
}
