//! `page`: prefetching and bundling of a page's objects, smaller variants of images, and the encoding of pages on a pair.

use crate::LinkModel;
use crate::diagnostic::Problem;
use crate::reader::{Reader, Section};
use crate::settings::{Delta, Images, Link, Page, RoleName};

use super::images::images;

pub(super) fn page(
    reader: &mut Reader,
    top: &Section<'_>,
    kind: RoleName,
    link: Option<&Link>,
) -> (Option<Page>, Option<Images>) {
    let section = reader.section(top, "page");
    (objects(reader, &section, kind, link), images(reader, &section, kind))
}

fn objects(reader: &mut Reader, section: &Section<'_>, kind: RoleName, link: Option<&Link>) -> Option<Page> {
    let switch = [("off", false), ("false", false), ("on", true), ("true", true)];
    let prefetch = reader.optional(section, "prefetch", |reader, setting| reader.word(setting, &switch));
    let bundle = reader
        .optional_or(section, "bundle", bundling_pays(kind, link), |reader, setting| reader.word(setting, &switch));
    if let Some(setting) = section.get("bundle").filter(|setting| kind == RoleName::Edge && !setting.is_off()) {
        let needs_a_pair = Problem::warning("`page.bundle` needs a pair", setting.place(), "has no effect");
        reader.problems.push(needs_a_pair.help("objects are sent to the box beside the clients: `role: remote` there"));
    }
    let delta = reader.optional(section, "delta", |reader, setting| {
        let words =
            [("auto", Delta::Auto), ("on", Delta::On), ("true", Delta::On), ("off", Delta::Off), ("false", Delta::Off)];
        reader.word(setting, &words)
    });
    if let Some(setting) = section.get("delta").filter(|setting| kind == RoleName::Edge && !setting.is_off()) {
        let needs_a_pair = Problem::warning("`page.delta` needs a pair", setting.place(), "has no effect");
        reader.problems.push(needs_a_pair.help("both ends of a pair keep pages: `role: remote` beside the clients"));
    }
    Some(Page { prefetch: prefetch?, bundle: bundle?, delta: delta? })
}

/// Returns the default of `page.bundle`. Objects sent before a request save request rounds, but cost bytes if the page
/// never requests them.
fn bundling_pays(kind: RoleName, link: Option<&Link>) -> bool {
    kind != RoleName::Edge && link.is_some_and(|link| LinkModel::of(link).saving_rounds_pays())
}
