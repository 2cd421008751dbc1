//! The settings of the file, one group of keys a file; what they are when left out stands where they are read.

mod dns;
mod edge;
mod shape;
mod tls;
mod transport;

use super::diagnostic::Problem;
use super::reader::{Reader, Section};
use super::settings::{Cache, Compress, Dns, Limits, Link, Listen, Proxy, Rewrite, Role, Termination, Upstream};
use crate::derive::Overrides;

/// Groups at the top of the file.
const TOP: &[&str] = &[
    "role",
    "link",
    "proxy",
    "listen",
    "upstream",
    "rewrite",
    "dns",
    "cache",
    "compress",
    "tls",
    "split",
    "page",
    "transport",
    "limits",
];

/// What could be read: None where a group has a problem of its own, so that nothing is concluded from half of it.
pub(super) struct Draft {
    pub(super) role: Option<Role>,
    pub(super) link: Option<Link>,
    pub(super) proxy: Option<Proxy>,
    pub(super) listen: Option<Listen>,
    pub(super) upstream: Option<Upstream>,
    pub(super) rewrite: Option<Rewrite>,
    pub(super) dns: Option<Dns>,
    pub(super) cache: Option<Cache>,
    pub(super) compress: Option<Compress>,
    pub(super) terminate: Option<Vec<Termination>>,
    pub(super) transport: Option<Overrides>,
    pub(super) limits: Option<Limits>,
}

/// Reads every group; problems are left with `reader`.
pub(super) fn read(reader: &mut Reader, root: &super::yaml::Node, lines: &dyn Fn(usize) -> usize) -> Option<Draft> {
    let top = reader.top(root, TOP)?;
    let role = role(reader, &top);
    refuse_split(reader, &top);
    warn_of_page(reader, &top);
    Some(Draft {
        role,
        link: edge::link(reader, &top),
        proxy: edge::proxy(reader, &top),
        listen: edge::listen(reader, &top),
        upstream: edge::upstream(reader, &top),
        rewrite: shape::rewrite(reader, &top),
        dns: dns::dns(reader, &top),
        cache: shape::cache(reader, &top),
        compress: shape::compress(reader, &top),
        terminate: tls::terminate(reader, &top),
        transport: transport::overrides(reader, &top, lines),
        limits: shape::limits(reader, &top),
    })
}

#[derive(Clone, Copy, PartialEq)]
enum WrittenRole {
    Edge,
    Remote,
    Ground,
}

fn role(reader: &mut Reader, top: &Section<'_>) -> Option<Role> {
    let words = [("edge", WrittenRole::Edge), ("remote", WrittenRole::Remote), ("ground", WrittenRole::Ground)];
    let Some(setting) = top.get("role") else { return Some(Role::Edge) };
    match reader.word(&setting, &words)? {
        WrittenRole::Edge => Some(Role::Edge),
        WrittenRole::Remote | WrittenRole::Ground => {
            let name = setting.text().unwrap_or_default();
            let problem = Problem::error(
                format!("role {name} is not available in this version"),
                setting.place(),
                "only `edge` is",
            );
            reader.problems.push(
                problem.help("see the status table in README.md; one box beside the wired Internet is `role: edge`"),
            );
            None
        }
    }
}

/// `split` belongs to roles this version does not have; with `edge` it is a contradiction.
fn refuse_split(reader: &mut Reader, top: &Section<'_>) {
    let Some(split) = top.get("split") else { return };
    let mut problem =
        Problem::error("`split` is for the roles remote and ground", split.key_place.clone(), "not with role edge");
    if let Some(role) = top.get("role") {
        problem = problem.and(role.place(), "the role is set here");
    }
    reader.problems.push(
        problem
            .help("remove `split`; the roles it is for are not available in this version (status table in README.md)"),
    );
}

/// `page` only speeds pages up, so a file that asks for it is not refused, but told.
fn warn_of_page(reader: &mut Reader, top: &Section<'_>) {
    let page = reader.section(top, "page", &["prefetch", "bundle", "inline"]);
    let words = [("off", false), ("false", false), ("on", true), ("true", true), ("auto", true)];
    for key in ["prefetch", "bundle", "inline"] {
        let Some(setting) = page.get(key) else { continue };
        if reader.word(&setting, &words) == Some(true) {
            reader.problems.push(
                Problem::warning(
                    format!("`{}` is not available in this version", setting.name),
                    setting.place(),
                    "has no effect",
                )
                .help("see the status table in README.md"),
            );
        }
    }
}
