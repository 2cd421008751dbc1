//! Colour profiles. One that says sRGB is left out, because images without a profile are sRGB. Any other is kept.

use image_variants::Left;
use moxcms::{ColorProfile, DataColorSpace, Layout, TransformOptions};

/// The longest profile that is kept, in bytes.
const MOST_BYTES: usize = 256 * 1024;

/// Samples that a profile of sRGB may move by rounding.
const ROUNDING: u8 = 2;

/// Returns the profile that a variant has. None: sRGB.
///
/// # Errors
/// If the profile is not for RGB colours, or cannot be read: a browser may read it.
pub fn kept(profile: Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Left> {
    let Some(bytes) = profile else { return Ok(None) };
    let profile = ColorProfile::new_from_slice(&bytes).map_err(|_| Left::Colours)?;
    if profile.color_space != DataColorSpace::Rgb || bytes.len() > MOST_BYTES {
        return Err(Left::Colours);
    }
    Ok(if is_srgb(&profile) { None } else { Some(bytes) })
}

/// Returns true if the profile moves no colour of a grid.
fn is_srgb(profile: &ColorProfile) -> bool {
    let steps = || (0..=8u16).map(|step| u8::try_from((step * 32).min(255)).unwrap_or(u8::MAX));
    let grid: Vec<u8> = steps()
        .flat_map(|red| steps().flat_map(move |green| steps().flat_map(move |blue| [red, green, blue])))
        .collect();
    let mut out = vec![0; grid.len()];
    let srgb = ColorProfile::new_srgb();
    let transform = profile.create_transform_8bit(Layout::Rgb, &srgb, Layout::Rgb, TransformOptions::default());
    let moved = transform.and_then(|transform| transform.transform(&grid, &mut out));
    moved.is_ok() && grid.iter().zip(&out).all(|(before, after)| before.abs_diff(*after) <= ROUNDING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn srgb_is_left_out_and_other_profiles_are_kept() {
        let encoded = |profile: ColorProfile| profile.encode().unwrap();
        assert_eq!(kept(None), Ok(None));
        assert_eq!(kept(Some(encoded(ColorProfile::new_srgb()))), Ok(None));
        let wide = encoded(ColorProfile::new_display_p3());
        assert_eq!(kept(Some(wide.clone())), Ok(Some(wide)));
        let grey = encoded(ColorProfile::new_gray_with_gamma(2.2));
        assert_eq!(kept(Some(grey)), Err(Left::Colours));
        assert_eq!(kept(Some(b"junk".to_vec())), Err(Left::Colours));
    }
}
