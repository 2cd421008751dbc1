//! Applies changes to a run. A valid change is put in place, and the run waits until its children accept it. An invalid
//! change changes nothing.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use longhaul_config::{LoadError, Log, Settings, Termination, load, show_duration};
use longhaul_observe::report::{Refusal, SetUp};
use longhaul_render::RenderedTree;

use super::acceptance::Refused;
use super::access_log::Destination;
use super::cache_fit::FittedCache;
use super::clock::{Clock, MachineClock};
use super::envoy::{self, Envoy};
use super::events::Inbox;
use super::exchange::{Change, Owed, Paid, Parts, Side, Unconfirmed, exchange};
use super::generation::{COREFILE, Generation, RENEWALS, RunContext};
use super::log::Level;
use super::ports::{self, ListenSocket, Present};
use super::preflight::refuse;
use super::probe::XdsCounters;
use super::publisher;
use super::say;
use super::service::Service;
use super::supervisor::{Applied, Run};
use super::tree::{Written, write_tree};

impl Run {
    /// Checks the files and the machine. Applies a valid change, and reports an invalid one.
    ///
    /// Returns true if another check is due soon, because files may have changed in folders that were not watched yet.
    pub(super) fn check_files(&mut self) -> bool {
        let now = self.generation.inputs.again();
        let mut changed = now.changed_since(&self.generation.inputs);
        changed.extend(self.log_is_writable_again());
        let has_room = self.cache.is_mended();
        if !self.acceptance.is_to_be_tried(!changed.is_empty(), has_room, Instant::now()) {
            // A folder in which a file is awaited may have appeared.
            return self.watch.follow(&now);
        }
        self.generation.inputs = now;
        let outcome =
            self.pay().and_then(|()| self.next_generation()).map_err(Refused::from).and_then(|(next, cache)| {
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
                self.acceptance.accepted();
                let earlier = self.applied.config_sha256.clone();
                self.applied = Applied {
                    at: publisher::now(),
                    changes: self.applied.changes + 1,
                    config_sha256: self.generation.config_sha256(),
                };
                if self.applied.config_sha256 != earlier {
                    self.record(false);
                }
                self.set_up = SetUp::of(&self.generation.settings);
                self.watches.iter().for_each(|watch| watch.follow(&self.generation.settings));
                if let Some(notices) = &self.notices {
                    notices.follow(&self.generation.settings);
                }
                say(Level::Info, &format!("{changed} changed: {what}"));
            }
            Err(refused) => {
                if self.acceptance.refused(&refused, Instant::now()) {
                    let why = refused.why;
                    say(
                        Level::Error,
                        &format!(
                            "{changed} changed, and was refused:\n{why}\nthe previous configuration keeps running"
                        ),
                    );
                    self.last_refusal = Some(Refusal { at: publisher::now(), why, standing: true });
                }
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
        if self.generation.is_native() && next.engine.is_fallback {
            return Err(next.engine.why);
        }
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
            write_tree(&self.machine.root, &next.tree).map_err(|error| error.to_string())?;
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

    /// Puts `next` in force. Returns the effect of the `changed` files, for the operator.
    fn apply(&mut self, next: Generation, changed: &[String]) -> Result<String, Refused> {
        let restart = envoy::must_restart(&self.generation, &next);
        let next = self.told_apart(next)?;
        let (mut parts, owed) = self.parts(next.dns_ready);
        let change = Change { present: parts.tree, next: &next.tree, restart };
        let written = exchange(&mut parts, change, owed)?;
        next.access_log.report(Some(&self.generation.access_log));
        self.machine.dns_ready = next.dns_ready;
        self.generation = next;
        let waits = self.envoy.is_being_exchanged();
        let replaces = restart || self.envoy.has_given_up();
        if replaces {
            self.envoy.replace();
        }
        let exchange = replaces.then_some(if waits { Exchange::Later } else { Exchange::Now });
        Ok(effect(&written, exchange, self.list_effect(changed)))
    }

    /// Puts the files in force back, if an earlier change left others.
    fn pay(&mut self) -> Result<(), String> {
        let (mut parts, owed) = self.parts(self.generation.dns_ready);
        let present = parts.tree;
        let paid = owed.pay(&mut parts, present)?;
        if paid != Paid::Nothing {
            self.images.doubt();
            self.objects.doubt();
        }
        if paid == Paid::Bootstrap {
            self.envoy.replace();
        }
        Ok(())
    }

    /// Returns the children whose files are exchanged, and the files that an earlier change left. With the next files,
    /// CoreDNS reports on `ready_next` that it is ready.
    fn parts(&mut self, ready_next: SocketAddr) -> (LiveParts<'_>, &mut Owed) {
        let Self { machine, generation, envoy, dns, owed, events, .. } = self;
        let (root, tree) = (&machine.root, &generation.tree);
        let ready = [generation.dns_ready, ready_next];
        (LiveParts { root, tree, envoy, dns, ready, events }, owed)
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
}

/// The children of this machine, while their files are exchanged.
struct LiveParts<'r> {
    root: &'r Path,
    /// The files in force.
    tree: &'r RenderedTree,
    envoy: &'r mut Envoy,
    dns: &'r mut Service,
    /// The sockets on which CoreDNS reports that it is ready, with the files in force and with the next ones.
    ready: [SocketAddr; 2],
    events: &'r mut Inbox,
}

impl Clock for LiveParts<'_> {
    fn now(&self) -> Instant {
        MachineClock.now()
    }

    fn pause(&mut self, time: Duration) {
        MachineClock.pause(time);
    }
}

impl Parts for LiveParts<'_> {
    fn judge(&mut self, bootstrap: &str) -> Result<(), String> {
        self.envoy.judge(bootstrap)
    }

    fn write(&mut self, tree: &RenderedTree) -> Result<Written, String> {
        write_tree(self.root, tree).map_err(|error| error.to_string())
    }

    fn counters(&mut self) -> Option<XdsCounters> {
        XdsCounters::read(self.envoy.admin_interface())
    }

    fn envoy_runs(&mut self) -> bool {
        self.envoy.is_running()
    }

    fn unconfirmed(&mut self, why: Unconfirmed) {
        let text = match why {
            Unconfirmed::Ended => "Envoy has ended before it confirmed the change; the next one reads it at its start",
            Unconfirmed::Late => "Envoy has not confirmed the change within 10 s",
        };
        say(Level::Warning, text);
    }

    fn reload_names(&mut self) {
        self.dns.reload();
    }

    fn await_names(&mut self, side: Side) {
        let [present, next] = self.ready;
        self.dns.answers_at(if side == Side::Present { present } else { next });
    }

    fn names_respond(&mut self) -> bool {
        self.dns.responds()
    }

    fn names_run(&mut self) -> bool {
        self.dns.is_running()
    }

    fn tend_names(&mut self) {
        self.dns.tend();
    }

    fn is_asked_to_stop(&mut self) -> bool {
        self.events.has_stop()
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

/// Returns true if a file of the tree stands for renewed certificates.
fn is_renewal(path: &str) -> bool {
    path.strip_prefix(RENEWALS).is_some_and(|rest| rest.starts_with('/'))
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
