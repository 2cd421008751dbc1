//! `page`: what is done for a page's objects before a browser asks for them.

use crate::config::diagnostic::Problem;
use crate::config::reader::{Reader, Section};
use crate::config::settings::{Inline, Link, Page};
use crate::derive::{LinkClass, LinkModel};

use super::split::Kind;

/// Keys a file may hold for a later version. They only speed pages up, so a file that asks for one is not refused, but
/// told.
const LATER: &[&str] = &["inline"];

pub(super) fn page(reader: &mut Reader, top: &Section<'_>, kind: Kind, link: Option<&Link>) -> Option<Page> {
    let section = reader.section(top, "page", &["prefetch", "bundle", "inline"]);
    let switch = [("off", false), ("false", false), ("on", true), ("true", true)];
    let prefetch = reader.optional(&section, "prefetch", true, |reader, setting| reader.word(setting, &switch));
    let bundle =
        reader.optional(&section, "bundle", bundling_pays(kind, link), |reader, setting| reader.word(setting, &switch));
    let inline = reader.optional(&section, "inline", Inline::Off, |reader, setting| {
        let words = [
            ("auto", Inline::Auto),
            ("on", Inline::On),
            ("true", Inline::On),
            ("off", Inline::Off),
            ("false", Inline::Off),
        ];
        reader.word(setting, &words)
    });
    for setting in LATER.iter().filter_map(|key| section.get(key)).filter(|setting| !setting.is_off()) {
        reader.problems.push(
            Problem::warning(
                format!("`{}` is not available in this version", setting.name),
                setting.place(),
                "has no effect",
            )
            .help("see the status table in README.md"),
        );
    }
    if let Some(setting) = section.get("bundle").filter(|setting| kind == Kind::Edge && !setting.is_off()) {
        let needs_a_pair = Problem::warning("`page.bundle` needs a pair", setting.place(), "has no effect");
        reader.problems.push(needs_a_pair.help("objects are sent to the box beside the clients: `role: remote` there"));
    }
    Some(Page { prefetch: prefetch?, bundle: bundle?, inline: inline? })
}

/// Sending objects unasked saves request rounds. Where a page takes longer for its bytes than for those, it saves nothing,
/// and what nobody asks for after all costs.
fn bundling_pays(kind: Kind, link: Option<&Link>) -> bool {
    kind != Kind::Edge && link.is_some_and(|link| LinkModel::of(link).class != LinkClass::ByteBound)
}
