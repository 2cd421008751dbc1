//! `page.images`: smaller variants of images, and the limits of their cost.

use crate::diagnostic::Problem;
use crate::reader::{Reader, Section, Setting};
use crate::settings::{ImageLimits, Images, ImagesWish, RoleName};
use crate::yaml::NodeValue;

const EXAMPLE: &str = "write `images: { quality: 75 }`, `images: auto` or `images: off`";

pub(super) fn images(reader: &mut Reader, page: &Section<'_>, kind: RoleName) -> Option<Images> {
    let setting = page.get("images");
    if let Some(setting) = setting.as_ref().filter(|setting| kind == RoleName::Remote && !setting.is_off()) {
        let is_the_grounds = Problem::warning("`page.images` is for the ground", setting.place(), "has no effect");
        reader.problems.push(is_the_grounds.help("the ground recodes images before they cross the link: set it there"));
    }
    let group = match &setting {
        Some(setting) if matches!(setting.node.value, NodeValue::Map(_)) => Some(reader.group(setting, EXAMPLE)?),
        _ => None,
    };
    let wish = match (&group, &setting) {
        (Some(_), _) => ImagesWish::On,
        (None, Some(setting)) => wish(reader, setting)?,
        (None, None) => ImagesWish::Auto,
    };
    // Without the group, every key below it has its default.
    let group = group.unwrap_or_else(|| page.without_keys("images"));
    let quality = reader.optional(&group, "quality", percent);
    let png_quality = reader.optional(&group, "png_quality", |reader, setting| match setting.text() {
        Some("lossless") => Some(None),
        _ => percent(reader, setting).map(Some),
    });
    let formats = reader.optional(&group, "formats", |reader, setting| {
        let formats = reader.list(setting, |reader, item| {
            if item.text() == Some("webp") {
                return Some(());
            }
            reader.expected(item, "`webp`", "clients get no other format yet");
            None
        })?;
        if formats.is_empty() {
            reader.expected(setting, "at least one format", EXAMPLE);
            return None;
        }
        Some(())
    });
    let min = reader.optional(&group, "min", Reader::size);
    let max = reader.optional(&group, "max", Reader::size);
    if let (Some(min), Some(max), Some(setting)) = (min, max, group.get("min").or_else(|| group.get("max")))
        && min > max
    {
        let title = "`page.images.min` is larger than `page.images.max`";
        let problem = Problem::error(title, setting.place(), format!("`min` is {min}, and `max` is {max}"));
        reader.problems.push(problem.help("lower `min` or raise `max`: no image would be recoded"));
    }
    let exclude = reader.optional(&group, "exclude", |reader, setting| {
        let names = reader.list(setting, Reader::host_name);
        reader.without_duplicates(setting, names)
    });
    formats?;
    Some(Images { wish, quality: quality?, png_quality: png_quality?, min: min?, max: max?, exclude: exclude? })
}

fn wish(reader: &mut Reader, setting: &Setting<'_>) -> Option<ImagesWish> {
    if setting.is_off() {
        return Some(ImagesWish::Off);
    }
    if setting.text() == Some("auto") {
        return Some(ImagesWish::Auto);
    }
    reader.expected(setting, "`auto`, `off` or a group of keys", EXAMPLE);
    None
}

fn percent(reader: &mut Reader, setting: &Setting<'_>) -> Option<u8> {
    reader.number_between(setting, 1, 100).and_then(|number| u8::try_from(number).ok())
}

pub(super) fn limits(reader: &mut Reader, section: &Section<'_>) -> Option<ImageLimits> {
    let workers = reader.optional(section, "image_workers", Reader::number);
    let memory = reader.optional(section, "image_memory", Reader::size);
    let pixels = reader.optional(section, "image_pixels", Reader::number);
    let time = reader.optional(section, "image_time", Reader::time);
    Some(ImageLimits { workers: workers?, memory: memory?, pixels: pixels?, time: time? })
}
