//! `rewrite`, `cache`, `compress`, `limits`: changes to responses, and the bounds of their cost.

use std::net::SocketAddr;

use object_rules::plain::{PlainField, Unfit};

use crate::diagnostic::Problem;
use crate::names::{Host, HostPort};
use crate::reader::{Reader, Section, Setting};
use crate::settings::{Cache, Compress, CompressionLevel, Level, Limits, Rewrite, RoleName, TargetWish};
use crate::yaml::NodeValue;

use super::cache_groups;

pub(super) fn rewrite(reader: &mut Reader, top: &Section<'_>, kind: RoleName) -> Option<Rewrite> {
    let section = reader.section(top, "rewrite");
    // In a pair handshakes end at the remote, so moving URLs saves none.
    let level = reader.optional_unless(&section, "level", kind != RoleName::Edge, |reader, setting| {
        reader.word(setting, &[("off", Level::Off), ("safe", Level::Safe), ("full", Level::Full)])
    });
    let target = reader.optional(&section, "target", |reader, setting| {
        reader.word(setting, &[("auto", TargetWish::Auto), ("https", TargetWish::Https), ("http", TargetWish::Http)])
    });
    let exclude = reader.optional(&section, "exclude", |reader, setting| {
        let names = reader.list(setting, Reader::host_name);
        reader.without_duplicates(setting, names)
    });
    Some(Rewrite { level: level?, target: target?, exclude: exclude? })
}

pub(super) fn cache(reader: &mut Reader, top: &Section<'_>, kind: RoleName) -> Option<Cache> {
    let written = top.get("cache");
    if written.as_ref().is_some_and(Setting::is_off) {
        return Some(Cache::Off);
    }
    let is_assumed = written.is_none() && kind == RoleName::Remote;
    let section = reader.section(top, "cache");
    let dir = reader
        .optional(&section, "dir", |reader, setting| reader.path(setting, "a folder such as /var/cache/longhaul"));
    let size = reader.optional(&section, "size", Reader::size);
    let plain_fields = reader.optional(&section, "plain_fields", |reader, setting| {
        let fields = reader.list(setting, plain_field);
        reader.without_duplicates(setting, fields)
    });
    let parents = reader.optional(&section, "parent", |reader, setting| {
        if setting.is_off() { Some(None) } else { parents(reader, setting).map(Some) }
    });
    let groups = reader.optional(&section, "groups", |reader, setting| {
        let groups = reader.list(setting, cache_groups::group);
        reader.without_duplicates(setting, groups)
    });
    let (dir, size, plain_fields, groups) = (dir?, size?, plain_fields?, groups?);
    // A ground stores objects in br, which an edge would send to clients that do not accept it.
    let dir = match kind {
        RoleName::Edge => dir,
        RoleName::Ground | RoleName::Remote => dir.join(kind.as_str()),
    };
    let Some(parents) = parents? else { return Some(Cache::Disk { dir, size, plain_fields, groups, is_assumed }) };
    for unused in ["dir", "size", "plain_fields", "groups"].into_iter().filter_map(|key| section.get(key)) {
        let mut problem = Problem::warning(
            format!("`{}` has no effect beside `cache.parent`", unused.name),
            unused.place(),
            "not used",
        );
        if let Some(setting) = section.get("parent") {
            problem = problem.and(setting.place(), "the parent keeps the objects");
        }
        reader.problems.push(problem.help("remove it, or write `parent: null`"));
    }
    Some(Cache::Parents(parents))
}

/// Reads the name of a request field that changes no response. Refuses a field on which a response may depend.
fn plain_field(reader: &mut Reader, setting: &Setting<'_>) -> Option<PlainField> {
    let text = reader.text(setting, "the name of a request field such as x-app-version", "")?;
    let why = match PlainField::new(text) {
        Ok(field) => return Some(field),
        Err(why) => why,
    };
    let small = text.to_ascii_lowercase();
    let help = match why {
        Unfit::Name if PlainField::new(&small).is_ok() => format!("write `{small}`"),
        Unfit::Name => "write a name such as x-app-version: no colon, no space, no value".to_owned(),
        Unfit::Judged => "remove it: this key does not change how the cache handles the field".to_owned(),
        Unfit::Credential => "remove it: one client's responses would be served to others".to_owned(),
        Unfit::Chooses => "remove it: one client's choice would be served to others".to_owned(),
    };
    reader.bad(setting, format!("`{text}` is {why}"), help.as_str());
    None
}

/// Reads `ADDRESS:PORT` of a parent cache, or a list of them.
fn parents(reader: &mut Reader, setting: &Setting<'_>) -> Option<Vec<SocketAddr>> {
    let NodeValue::List(_) = &setting.node.value else { return parent(reader, setting).map(|one| vec![one]) };
    let parents = reader.list(setting, parent);
    let parents = reader.without_duplicates(setting, parents)?;
    if parents.is_empty() {
        reader.expected(
            setting,
            "at least one ADDRESS:PORT",
            "write [192.0.2.7:3128, 192.0.2.8:3128], or `parent: null`",
        );
        return None;
    }
    Some(parents)
}

/// Reads the address of a parent cache. Refuses a name: Envoy needs an address, and would not follow a change in DNS.
fn parent(reader: &mut Reader, setting: &Setting<'_>) -> Option<SocketAddr> {
    let HostPort { host, port } = reader.host_port(setting, "192.0.2.7:3128")?;
    match host {
        Host::Address(address) => Some(SocketAddr::new(address, port)),
        Host::Name(name) => {
            let help = "Envoy connects to a parent without a DNS query: write its address, such as 192.0.2.7:3128";
            reader.bad(setting, format!("`{name}` is a name"), help);
            None
        }
    }
}

pub(super) fn compress(reader: &mut Reader, top: &Section<'_>) -> Option<Compress> {
    if top.get("compress").is_some_and(|setting| setting.is_off()) {
        return Some(Compress { brotli: CompressionLevel::Off, gzip: CompressionLevel::Off });
    }
    let section = reader.section(top, "compress");
    let brotli = reader.optional(&section, "br", compression_level);
    let gzip = reader.optional(&section, "gzip", compression_level);
    Some(Compress { brotli: brotli?, gzip: gzip? })
}

fn compression_level(reader: &mut Reader, setting: &Setting<'_>) -> Option<CompressionLevel> {
    if setting.is_off() {
        return Some(CompressionLevel::Off);
    }
    if setting.text() == Some("auto") {
        return Some(CompressionLevel::Auto);
    }
    let level = u8::try_from(reader.number(setting)?).ok()?;
    Some(CompressionLevel::Set(level))
}

pub(super) fn limits(reader: &mut Reader, top: &Section<'_>) -> Option<Limits> {
    let section = reader.section(top, "limits");
    let page_memory = reader.optional(&section, "page_memory", Reader::size);
    let connections = reader.optional(&section, "connections", Reader::number);
    let header = reader.optional(&section, "header_bytes", Reader::size);
    let clients = reader.optional(&section, "clients", Reader::number);
    let new_names_per_client = reader.optional(&section, "new_names_per_client", Reader::number);
    let images = super::images::limits(reader, &section);
    Some(Limits {
        page_memory: page_memory?,
        connections: connections?,
        header: header?,
        clients: clients?,
        new_names_per_client: new_names_per_client?,
        images: images?,
    })
}
