//! Readers of the settings, one file for each group of keys. The table of keys (`config::keys`) holds names, ranges and
//! defaults.

mod cache_groups;
mod clients;
mod compare;
mod cut_dial;
mod dns;
mod edge;
mod images;
mod links;
mod list;
mod log;
mod notify;
mod other_end;
mod page;
mod peer;
mod pem;
mod ports;
mod shape;
mod sockets;
mod split;
mod tls;
mod tracing;
mod transport;

use super::reader::Reader;
use super::settings::Draft;

/// Reads every group. Adds problems to `reader`.
pub(super) fn read(reader: &mut Reader, root: &super::yaml::Node, lines: &dyn Fn(usize) -> usize) -> Option<Draft> {
    let top = reader.top(root)?;
    let written = split::kind(reader, &top);
    let kind = written.unwrap_or_else(|| split::likely_kind(&top));
    if written.is_some() {
        split::refuse_what_is_not_here(reader, &top, kind);
    }
    let (link, several) = links::link_or_links(reader, &top, kind);
    let role = written.and_then(|kind| split::role(reader, &top, kind));
    let listen = edge::listen(reader, &top);
    let listen = match (listen, &role) {
        (Some(listen), Some(role)) => Some(split::listen_of(role, listen)),
        (listen, _) => listen,
    };
    let health = listen.as_ref().is_some_and(|listen| listen.health.is_some());
    let drain = edge::drain(reader, &top, health);
    let tls = tls::tls(reader, &top);
    let (page, images) = page::page(reader, &top, kind, link.as_ref());
    Some(Draft {
        id: edge::id(reader, &top),
        workers: edge::workers(reader, &top),
        engine: edge::engine(reader, &top),
        role,
        link,
        links: several,
        compare: compare::compare(reader, &top, kind),
        clients: clients::clients(reader, &top, kind),
        proxy: edge::proxy(reader, &top, kind),
        listen,
        drain,
        log: log::log(reader, &top, kind),
        notify: notify::notify(reader, &top),
        upstream: edge::upstream(reader, &top, kind),
        rewrite: shape::rewrite(reader, &top, kind),
        dns: dns::dns(reader, &top),
        cache: shape::cache(reader, &top, kind),
        compress: shape::compress(reader, &top),
        page,
        images,
        terminate: tls.0,
        acme: tls.1,
        transport: transport::overrides(reader, &top, lines),
        limits: shape::limits(reader, &top),
        tracing: tracing::tracing(reader, &top, kind),
    })
}
