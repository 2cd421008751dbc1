//! Renders checked settings to the files that Envoy and CoreDNS run. Rendering is pure, so that every line can be
//! reviewed and tested before anything starts.
//!
//! Envoy is configured from files alone (filesystem xDS). Settings that change often have files of their own. A change
//! of them leaves the listeners byte-identical and cuts no connection:
//!
//! | file | holds | changes with |
//! |---|---|---|
//! | `bootstrap.yaml` | admin, overload manager, metric labels | limits, `id`: needs a restart |
//! | `lds.yaml` | listeners, filter chains | addresses, names with certificates, transport, compression, cache, resolvers |
//! | `cds.yaml` | clusters | `upstream.map`, resolvers, transport |
//! | `rds/*.yaml` | routes | `upstream.map`, `tls.acme`, `proxy.secure_names` with `tls.acme` |
//! | `ecds/guard.yaml` | what must not be reached | `upstream.ports`, `upstream.allow_private`, addresses |
//! | `ecds/share*.yaml` | the shares of the links of a ground's remotes, and of a remote with groups | the names of remotes, `clients`, a quota that is used up; `ecds/link-share.yaml` with native filters, and the rate of the links in use |
//! | `ecds/NAME.yaml` | a position of a filter in [`Filter::ALL`], and its configuration | the settings that the configuration holds, a new module |
//! | `objects.json` | the configuration of `longhaul-objects` | `cache.dir`, `cache.size`, `cache.plain_fields`, `cache.groups` |
//! | `images.json` | the configuration of `longhaul-images` | `page.images`, `limits.image_*` |
//! | `parent/*` | access lists for Squid and Traffic Server as `cache.parent` | the guard's ranges |
//! | `sds/*.yaml` | certificates | `tls.terminate`, `split.cert` |
//! | `sds/authority.yaml` | who may be at the other end of a pair | `split.peer`, `split.ca` |
//!
//! The two ends of a pair have the same files except for routes: the remote has `rds/remote.yaml`, and the ground
//! `rds/pipe.yaml`. A remote that goes to origins itself while the ground does not respond also has `rds/direct.yaml`
//! and the guard.
//!
//! This module knows no processes. `run` decides who writes the tree, in which order and when.

mod artifacts;
mod corefile;
mod engine;
mod filters;
mod gateway;
mod guard;
pub mod host;
mod images;
mod marks;
mod objects;
mod parent;
mod tree;
mod view;
mod weighing;
mod weights;

pub use {
    artifacts::{Artifacts, Emptied, NativeModule, NearSockets, ProgramSockets, WasmModule},
    corefile::{CorefileContext, DNS_FAILURES},
    engine::RenderError,
    filters::{Filter, url_rewrite::filter_config},
    gateway::{ControlPlane, Gateway, GatewayError},
    guard::{Guard, Refused},
    images::FILE as IMAGES_FILE,
    marks::Mark,
    objects::{FILE as OBJECTS_FILE, folder as objects_folder},
    tree::{ModuleCopy, RenderedTree},
    view::share::{NAMES_KEY, names_socket},
    weighing::{HeardReport, Weighing},
};

use engine::Engine;
use filters::PlacedFilter;
use longhaul_config::{Remote, Role, Settings, WhenDown};
use longhaul_derive::Derived;
use view::View;

/// Renders every file of one configuration. It does no I/O: the same arguments give the same bytes.
///
/// # Errors
/// A template that does not match its values, which is a bug in this program.
pub fn render(settings: &Settings, derived: &Derived, artifacts: &Artifacts) -> Result<RenderedTree, RenderError> {
    let view = View::new(settings, derived, artifacts)?;
    let engine = Engine::new()?;
    let mut tree = RenderedTree::default();
    for certificate in &view.certificates {
        tree.put(certificate.file.clone(), engine.render_with("sds.yaml", &view, "certificate", certificate)?);
    }
    if let Some(pair) = &view.pair {
        let certificate = &pair.certificate;
        tree.put(certificate.file.clone(), engine.render_with("sds.yaml", &view, "certificate", certificate)?);
        let authority = &pair.authority;
        tree.put(authority.file, engine.render_with("sds_authority.yaml", &view, "authority", authority)?);
    }
    for (file, list) in parent::access_lists(settings, &artifacts.local_addresses) {
        tree.put(file, list);
    }
    for (file, template) in files(&settings.role) {
        tree.put(*file, engine.render(template, &view)?);
    }
    let image_sockets = images::sockets(settings, derived, artifacts);
    let recodes_images = image_sockets.is_some();
    if let Some(sockets) = image_sockets {
        tree.put(images::FILE, images::config(settings, sockets)?);
    }
    if let Some(config) = objects::config(settings, artifacts, derived.capacity.objects, recodes_images)? {
        tree.put(objects::FILE, config);
    }
    if settings.acme.is_some() {
        tree.put("rds/challenges.yaml", engine.render("rds_challenges.yaml", &view)?);
    }
    for filter in view.filters.values().flatten() {
        put_filter(&mut tree, &view, &engine, filter)?;
        let copy = ModuleCopy { from: filter.from.clone(), to: filter.module_file.clone() };
        if !tree.modules.contains(&copy) {
            tree.copy(copy);
        }
    }
    put_shares(&mut tree, &view, &engine)?;
    tree.put("lds.yaml", engine.render("lds.yaml", &view)?);
    tree.put("bootstrap.yaml", engine.render("bootstrap.yaml", &view)?);
    Ok(tree)
}

impl RenderedTree {
    /// Renders the files of shares again, with other weights in `artifacts`. This tree is the rest of the same configuration.
    ///
    /// # Errors
    /// As [`render()`].
    pub fn with_weights(
        &self,
        settings: &Settings,
        derived: &Derived,
        artifacts: &Artifacts,
    ) -> Result<Self, RenderError> {
        let mut tree = self.clone();
        let (view, engine) = (View::new(settings, derived, artifacts)?, Engine::new()?);
        if let Some(Some(filter)) = view.filters.get(filters::link_share::FILTER.name) {
            put_filter(&mut tree, &view, &engine, filter)?;
        }
        put_shares(&mut tree, &view, &engine)?;
        Ok(tree)
    }

    /// Renders the clusters again, with other emptied pools in `artifacts`. This tree is the rest of the same configuration.
    ///
    /// # Errors
    /// As [`render()`].
    pub fn with_emptied_pools(
        &self,
        settings: &Settings,
        derived: &Derived,
        artifacts: &Artifacts,
    ) -> Result<Self, RenderError> {
        let mut tree = self.clone();
        tree.put(CLUSTERS, Engine::new()?.render(CLUSTERS, &View::new(settings, derived, artifacts)?)?);
        Ok(tree)
    }
}

fn put_filter(tree: &mut RenderedTree, view: &View, engine: &Engine, filter: &PlacedFilter) -> Result<(), RenderError> {
    tree.put(filter.file(), engine.render_with("ecds_filter.yaml", view, "filter", filter)?);
    Ok(())
}

fn put_shares(tree: &mut RenderedTree, view: &View, engine: &Engine) -> Result<(), RenderError> {
    for name in view.shares_in_files() {
        tree.put(format!("ecds/{name}.yaml"), engine.render_with("ecds_share.yaml", view, "share_name", name)?);
    }
    Ok(())
}

/// The file of the clusters, and its template.
const CLUSTERS: &str = "cds.yaml";

/// Returns the files of a role, each with its template.
fn files(role: &Role) -> &'static [(&'static str, &'static str)] {
    match role {
        Role::Edge => &[
            (CLUSTERS, CLUSTERS),
            ("rds/edge.yaml", "rds_edge.yaml"),
            ("rds/inner.yaml", "rds_inner.yaml"),
            ("rds/tunnel.yaml", "rds_tunnel.yaml"),
            ("ecds/guard.yaml", "ecds_guard.yaml"),
        ],
        Role::Ground(_) => &[
            (CLUSTERS, CLUSTERS),
            ("rds/pipe.yaml", "rds_pipe.yaml"),
            ("rds/inner.yaml", "rds_inner.yaml"),
            ("rds/tunnel.yaml", "rds_tunnel.yaml"),
            ("ecds/guard.yaml", "ecds_guard.yaml"),
        ],
        Role::Remote(Remote { when_down: WhenDown::Error, .. }) => {
            &[(CLUSTERS, CLUSTERS), ("rds/remote.yaml", "rds_remote.yaml")]
        }
        Role::Remote(Remote { when_down: WhenDown::Direct, .. }) => &[
            (CLUSTERS, CLUSTERS),
            ("rds/remote.yaml", "rds_remote.yaml"),
            ("rds/direct.yaml", "rds_direct.yaml"),
            ("ecds/guard.yaml", "ecds_guard.yaml"),
        ],
    }
}
