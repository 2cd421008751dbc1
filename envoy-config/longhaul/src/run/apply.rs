//! Applies changes to a run. A valid change is put in place, and the run waits until its children accept it. An invalid
//! change changes nothing.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::units::show_duration;
use longhaul_config::{LoadError, Log, Settings, Termination, load};
use longhaul_observe::Endpoint;
use longhaul_observe::report::{Refusal, SetUp};
use longhaul_render::RenderedTree;

use super::access_log::Destination;
use super::cache_fit::FittedCache;
use super::envoy;
use super::generation::{COREFILE, Generation, RENEWALS, RunContext};
use super::log::Level;
use super::ports::{self, ListenSocket, Present};
use super::preflight::refuse;
use super::probe::{XdsCounters, is_ready};
use super::publisher;
use super::say;
use super::supervisor::{Applied, Run};
use super::tree::{Written, write_tree};

/// The time that a child has to accept a change.
const PATIENCE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(100);

impl Run {
    /// Checks the files and the machine. Applies a valid change, and reports an invalid one.
    ///
    /// Returns true if another check is due soon, because files may have changed in folders that were not watched yet.
    pub(super) fn look(&mut self) -> bool {
        let now = self.generation.inputs.again();
        let mut changed = now.changed_since(&self.generation.inputs);
        changed.extend(self.log_is_writable_again());
        // A change that was refused because a file was missing may succeed once the file exists, although no input has
        // changed.
        let has_room = self.cache.is_mended();
        if changed.is_empty() && self.refusal.is_none() && !has_room {
            // A folder in which a file is awaited may have appeared.
            return self.watch.follow(&now);
        }
        self.generation.inputs = now;
        let outcome = self.next_generation().and_then(|(next, cache)| {
            self.manager.reloading();
            let what = self.apply(next, &changed)?;
            self.cache = cache;
            Ok(what)
        });
        let changed = match changed.as_slice() {
            [] if has_room => "the disk of the cache".to_owned(),
            [] => "a file".to_owned(),
            several => several.join(", "),
        };
        match outcome {
            Ok(what) => {
                self.refusal = None;
                self.applied = Applied {
                    at: publisher::now(),
                    changes: self.applied.changes + 1,
                    config_sha256: self.generation.config_sha256(),
                };
                self.set_up = SetUp::of(&self.generation.settings);
                if let Some(resolvers) = &self.resolvers {
                    resolvers.follow(&self.generation.settings);
                }
                if let Some(link) = &self.link {
                    link.follow(&self.generation.settings);
                }
                if let Some(reports) = &self.ground_reports {
                    reports.follow(&self.generation.settings);
                }
                if let Some(silence) = &self.silence_watch {
                    silence.follow(&self.generation.settings);
                }
                if let Some(compare) = &self.compare {
                    compare.follow(&self.generation.settings);
                }
                say(Level::Info, &format!("{changed} changed: {what}"));
            }
            Err(why) => {
                if self.refusal.as_ref() != Some(&why) {
                    say(
                        Level::Error,
                        &format!(
                            "{changed} changed, and was refused:\n{why}\nthe previous configuration keeps running"
                        ),
                    );
                    self.last_refusal = Some(Refusal { at: publisher::now(), why: why.clone(), standing: true });
                }
                self.refusal = Some(why);
            }
        }
        self.watch.follow(&self.generation.inputs)
    }

    fn next_generation(&self) -> Result<(Generation, FittedCache), String> {
        let styled = self.options.log_form.is_styled();
        let loaded = load(&self.options.file).map_err(|error| match error {
            LoadError::Refused(report) => report.render(styled).trim_end().to_owned(),
            error @ LoadError::Unreadable { .. } => error.to_string(),
        })?;
        if !loaded.report.problems.is_empty() {
            say(Level::Warning, loaded.report.render(styled).trim_end());
        }
        let present = &self.generation.settings;
        let encrypted = present.encrypted_lookups().map(|lookups| lookups.transports).unwrap_or_default();
        let present = Present { dns: present.listen.dns.as_ref(), encrypted: &encrypted, may_end: false };
        let mut loaded = ports::for_a_run(loaded, present);
        let cache = self.cache.again(&mut loaded.settings).map_err(|error| error.to_string())?;
        let machine = RunContext { access_log: self.log_destination(&loaded.settings.log), ..self.machine.clone() };
        let next = Generation::of(loaded, &machine).map_err(|error| error.to_string())?;
        if let Some(path) = vanished(&next.settings, &self.generation.settings) {
            return Err(format!("{}, a certificate or key in use, does not exist any more", path.display()));
        }
        let mut ours = ports::wanted(&self.generation.settings);
        ours.extend(self.metrics_page.listens_on());
        ours.extend(self.status_page.listens_on());
        let new: Vec<ListenSocket> =
            ports::wanted(&next.settings).into_iter().filter(|wanted| !is_ours(wanted, &ours)).collect();
        refuse(ports::check(&new)).map_err(|error| error.to_string())?;
        Ok((next, cache))
    }

    /// Makes wasm run the filters from now on if Envoy keeps dying with native ones. Call it while no Envoy serves: the
    /// next one reads the files again.
    pub(super) fn leave_native_engine(&mut self) {
        let is_native = self.generation.engine.native.is_some() && self.machine.native.barred.is_none();
        if !is_native || !self.envoy.dies_often() {
            return;
        }
        let why = "Envoy died three times within ten minutes with native filters; the next start tries them again";
        self.machine.native.barred = Some(why.to_owned());
        let outcome = self.next_generation().and_then(|(next, cache)| {
            write_tree(&self.machine.root, &next.tree, Some(&self.generation.tree))
                .map_err(|error| error.to_string())?;
            (self.generation, self.cache) = (next, cache);
            Ok(())
        });
        match outcome {
            Ok(()) => say(Level::Error, &format!("wasm filters run from now on: {why}")),
            Err(error) => say(Level::Error, &format!("native filters stay, although Envoy keeps dying: {error}")),
        }
    }

    fn log_destination(&self, log: &Log) -> Destination {
        Destination::usable(log, self.options.access_log.as_ref(), &self.state.path)
    }

    /// Returns the reason to render again if an access log that could not be written can be written now.
    fn log_is_writable_again(&self) -> Option<String> {
        self.generation.access_log.refused.as_ref()?;
        let again = self.log_destination(&self.generation.settings.log);
        again.refused.is_none().then(|| "the access log's folder".to_owned())
    }

    /// Puts the files of `next` in place and waits until both children accept them. Restores the old files if one
    /// refuses. Returns the effect of the `changed` files, for the operator.
    fn apply(&mut self, next: Generation, changed: &[String]) -> Result<String, String> {
        let restart = envoy::must_restart(&self.generation, &next);
        if restart {
            let bootstrap = next.tree.get(envoy::BOOTSTRAP).unwrap_or_default();
            self.envoy.judge(bootstrap).map_err(|why| format!("Envoy refuses it: {why}"))?;
        }
        let next = self.told_apart(next)?;
        let taken = self.put_in_place(&next);
        let written = taken.map_err(|why| match self.put_back(&next) {
            Ok(()) => why,
            Err(error) => format!("{why}; and the old files could not be put back: {error}"),
        })?;
        next.access_log.report(Some(&self.generation.access_log));
        self.machine.dns_ready = next.dns_ready;
        self.generation = next;
        let waits = self.envoy.is_being_exchanged();
        if restart {
            self.envoy.replace();
        }
        let exchange = restart.then_some(if waits { Exchange::Later } else { Exchange::Now });
        Ok(effect(&written, exchange, self.list_effect(changed)))
    }

    /// Returns the effect of changed lists, which CoreDNS reads by itself. None if none of `changed` is a list.
    fn list_effect(&self, changed: &[String]) -> Option<String> {
        let dns = &self.generation.settings.dns;
        let mut lists = dns.domains.iter().chain(&dns.except_files);
        lists.any(|list| changed.contains(&list.display().to_string())).then(|| {
            if dns.reload.is_zero() {
                "CoreDNS does not read changed lists (`dns.reload: off`); restart longhaul to apply them".to_owned()
            } else {
                format!("CoreDNS reads changed lists within {}", show_duration(dns.reload))
            }
        })
    }

    /// Gives a changed Corefile a readiness port of its own. A response on this port shows that CoreDNS accepted the
    /// file.
    fn told_apart(&self, next: Generation) -> Result<Generation, String> {
        let same = next.tree.get(COREFILE) == self.generation.tree.get(COREFILE);
        if same {
            Ok(next)
        } else {
            ports::free_loopback(&ports::wanted(&next.settings))
                .map(|[socket]| next.ready_at(socket))
                .map_err(|error| error.to_string())
        }
    }

    fn put_in_place(&mut self, next: &Generation) -> Result<Written, String> {
        let admin = self.envoy.admin_interface();
        let present = &self.generation.tree;
        let renewed = are_renewed(present, &next.tree);
        let written = exchange_files(admin, &self.machine.root, present, &next.tree, renewed)?;
        if next.tree.get(COREFILE) != self.generation.tree.get(COREFILE) {
            self.dns.reload();
            self.wait_for_dns(next.dns_ready)?;
        }
        Ok(written)
    }

    fn put_back(&mut self, next: &Generation) -> Result<(), String> {
        let admin = self.envoy.admin_interface();
        let (root, present) = (&self.machine.root, &self.generation.tree);
        let both = present.with_clusters_of(&next.tree);
        let before = XdsCounters::read(admin).unwrap_or_default();
        let written = write_tree(root, &both, None).map_err(|error| error.to_string())?;
        // Envoy has had these files. A late refusal is that of the new ones.
        let _ = wait_for_envoy(admin, &before, &written, false);
        write_tree(root, present, Some(&next.tree)).map_err(|error| error.to_string())?;
        self.dns.answers_at(self.generation.dns_ready);
        if next.tree.get(COREFILE) != self.generation.tree.get(COREFILE) {
            self.dns.reload();
        }
        Ok(())
    }

    fn wait_for_dns(&mut self, ready: SocketAddr) -> Result<(), String> {
        self.dns.answers_at(ready);
        let deadline = Instant::now() + PATIENCE;
        while !is_ready(ready) {
            // If CoreDNS died, its service restarts it with the old file.
            if Instant::now() > deadline || !self.dns.is_running() {
                return Err("CoreDNS refuses it; its own message is above".to_owned());
            }
            thread::sleep(TICK);
        }
        Ok(())
    }
}

/// The replacement of Envoy by another process.
#[derive(Clone, Copy)]
enum Exchange {
    /// It has begun.
    Now,
    /// It waits for the end of an earlier one.
    Later,
}

/// Describes the effect of a change.
fn effect(written: &Written, exchange: Option<Exchange>, lists: Option<String>) -> String {
    let (renewals, files): (Vec<&str>, Vec<&str>) =
        written.changed.iter().map(String::as_str).partition(|path| is_renewal(path));
    let mut effects = Vec::new();
    if !files.is_empty() {
        effects.push(format!("applied ({})", files.join(", ")));
    }
    if !renewals.is_empty() {
        effects.push("Envoy uses the renewed certificates for new connections".to_owned());
    }
    effects.extend(lists);
    match exchange {
        Some(Exchange::Now) => {
            effects.push("another Envoy takes over, and the present one ends when its connections have".to_owned());
        }
        Some(Exchange::Later) => effects.push(
            "another Envoy takes over when the Envoy before the present one has ended its connections".to_owned(),
        ),
        None => {}
    }
    if effects.is_empty() {
        return "no running part depends on the change".to_owned();
    }
    effects.join("; ")
}

/// Returns true if certificates were renewed that both trees name. Envoy reads them again without another change.
fn are_renewed(old: &RenderedTree, new: &RenderedTree) -> bool {
    let path = format!("{RENEWALS}/certificates");
    let (Some(old), Some(new)) = (old.get(&path), new.get(&path)) else { return false };
    let paths =
        |text: &str| text.lines().filter_map(|line| Some(line.split_once("  ")?.1.to_owned())).collect::<Vec<_>>();
    old != new && paths(old) == paths(new)
}

/// Returns true if a file of the tree stands for renewed certificates.
fn is_renewal(path: &str) -> bool {
    path.strip_prefix(RENEWALS).is_some_and(|rest| rest.starts_with('/'))
}

/// Puts the files of `next` in place of those of `present`, and waits until Envoy has read them. Clusters and files that
/// only `present` has go last: until then, routes and filters of both are in use.
fn exchange_files(
    admin: &Endpoint,
    root: &Path,
    present: &RenderedTree,
    next: &RenderedTree,
    renewed: bool,
) -> Result<Written, String> {
    let both = next.with_clusters_of(present);
    let before = XdsCounters::read(admin).unwrap_or_default();
    let written = write_tree(root, &both, None).map_err(|error| error.to_string())?;
    wait_for_envoy(admin, &before, &written, renewed)?;
    let before = XdsCounters::read(admin).unwrap_or_default();
    let last = write_tree(root, next, Some(present)).map_err(|error| error.to_string())?;
    wait_for_envoy(admin, &before, &last, false)?;
    Ok(written)
}

/// Waits until Envoy has read the files, and the certificates if they are `renewed`. The error is Envoy's reason for
/// refusing them.
fn wait_for_envoy(admin: &Endpoint, before: &XdsCounters, written: &Written, renewed: bool) -> Result<(), String> {
    let expected = written.changed.iter().filter(|path| envoy::is_watched(path)).count();
    let expected = u64::try_from(expected).unwrap_or(u64::MAX);
    let deadline = Instant::now() + PATIENCE;
    while (expected > 0 || renewed) && Instant::now() < deadline {
        thread::sleep(TICK);
        let Some(now) = XdsCounters::read(admin) else { continue };
        let refused = now.refused_since(before);
        if !refused.is_empty() {
            return Err(format!("Envoy refuses it ({}); its own message is above", refused.join(", ")));
        }
        if now.settled_since(before) >= expected && (!renewed || now.renewed_since(before)) {
            return Ok(());
        }
    }
    if expected > 0 || renewed {
        say(Level::Warning, "Envoy has not confirmed the change within 10 s");
    }
    Ok(())
}

/// Returns a file of a certificate in use that is awaited again. ACME clients remove a link before they make the new
/// one, and TLS must not end meanwhile.
fn vanished<'s>(next: &'s Settings, present: &Settings) -> Option<&'s Path> {
    let awaited = next.acme.iter().flat_map(|acme| acme.awaited.values());
    let in_use = |entry: &&Termination| present.terminate.iter().any(|other| other.cert == entry.cert);
    let entry = awaited.into_iter().find(in_use)?;
    Some(if entry.cert.exists() { &entry.key } else { &entry.cert })
}

/// Returns true if a running child already has the socket. Another key may take it over, and a wider address may
/// replace a narrow one.
fn is_ours(wanted: &ListenSocket, ours: &[ListenSocket]) -> bool {
    ours.iter().any(|have| have.transport == wanted.transport && have.socket.port() == wanted.socket.port())
}
