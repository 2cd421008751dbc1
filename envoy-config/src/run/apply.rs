//! Changes to a run: what is new and right is put in place and seen to be taken; what is not changes nothing.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::envoy;
use super::generation::{COREFILE, Generation};
use super::ports::{self, Wanted};
use super::probe::{XdsCounters, is_ready};
use super::report::{self, Refusal};
use super::say;
use super::supervisor::{Applied, Run, prepare_folders, refuse};
use super::tree::{Written, write_tree};
use crate::config::{LoadError, load};

/// How long a child has to take what it was given.
const PATIENCE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(100);

impl Run {
    /// Looks at the files and the machine; applies what is new and right, reports what is not.
    ///
    /// True: look again soon, because files may have changed where nobody watched.
    pub(super) fn look(&mut self) -> bool {
        let now = self.generation.inputs.again();
        let changed = now.changed_since(&self.generation.inputs);
        // What was refused for want of a file may be right once the file is there, though none of ours changed.
        if changed.is_empty() && self.refusal.is_none() {
            return false;
        }
        self.generation.inputs = now;
        let changed = if changed.is_empty() { "a file".to_owned() } else { changed.join(", ") };
        let outcome = self.next_generation().and_then(|next| {
            self.manager.reloading();
            self.apply(next)
        });
        match outcome {
            Ok(what) => {
                self.refusal = None;
                self.applied = Applied {
                    at: report::now(),
                    changes: self.applied.changes + 1,
                    config_sha256: self.generation.config_sha256(),
                };
                say(&format!("{changed} changed: {what}"));
            }
            Err(why) => {
                if self.refusal.as_ref() != Some(&why) {
                    say(&format!(
                        "{changed} changed, and was refused:\n{why}\nthe previous configuration keeps running"
                    ));
                    self.last_refusal = Some(Refusal { at: report::now(), why: why.clone(), standing: true });
                }
                self.refusal = Some(why);
            }
        }
        self.watch.follow(&self.generation.inputs)
    }

    fn next_generation(&self) -> Result<Generation, String> {
        let styled = io::stderr().is_terminal();
        let loaded = load(&self.options.file).map_err(|error| match error {
            LoadError::Refused(report) => report.render(styled).trim_end().to_owned(),
            error @ LoadError::Unreadable { .. } => error.to_string(),
        })?;
        if !loaded.report.problems.is_empty() {
            eprint!("{}", loaded.report.render(styled));
        }
        let next = Generation::of(loaded, &self.machine).map_err(|error| error.to_string())?;
        let ours = ports::wanted(&self.generation.settings);
        let new: Vec<Wanted> =
            ports::wanted(&next.settings).into_iter().filter(|wanted| !is_ours(wanted, &ours)).collect();
        refuse(ports::check(&new)).map_err(|error| error.to_string())?;
        prepare_folders(&next.settings).map_err(|error| error.to_string())?;
        Ok(next)
    }

    /// Puts the files of `next` in place and sees to it that both children took them; puts the old ones back where not.
    fn apply(&mut self, next: Generation) -> Result<String, String> {
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
        self.machine.dns_ready = next.dns_ready;
        self.generation = next;
        let waits = self.envoy.is_being_exchanged();
        if restart {
            self.envoy.replace();
        }
        let files = written.changed.join(", ");
        Ok(match (files.is_empty(), restart) {
            (true, false) => "nothing of it concerns a running part".to_owned(),
            (false, false) => format!("applied ({files})"),
            (_, true) if waits => format!(
                "applied ({files}): another Envoy takes over once the one before the present has ended its connections"
            ),
            (_, true) => format!(
                "applied ({files}): another Envoy takes over, and the present one ends when its connections have"
            ),
        })
    }

    /// A Corefile that differs says that it is ready on a port of its own: that is how one knows that it was taken.
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
        // Not that of the settings: a change of it may still wait for its process.
        let admin = self.envoy.admin().unwrap_or(self.generation.settings.listen.admin);
        let before = XdsCounters::read(admin).unwrap_or_default();
        let written = write_tree(&self.machine.root, &next.tree, Some(&self.generation.tree))
            .map_err(|error| error.to_string())?;
        wait_for_envoy(admin, &before, &written)?;
        if next.tree.get(COREFILE) != self.generation.tree.get(COREFILE) {
            self.dns.reload();
            self.wait_for_dns(next.dns_ready)?;
        }
        Ok(written)
    }

    fn put_back(&mut self, next: &Generation) -> Result<(), String> {
        write_tree(&self.machine.root, &self.generation.tree, Some(&next.tree)).map_err(|error| error.to_string())?;
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
            // One that died is noticed and started again by whoever tends it, with the old file.
            if Instant::now() > deadline || !self.dns.is_running() {
                return Err("CoreDNS refuses it; its own message is above".to_owned());
            }
            thread::sleep(TICK);
        }
        Ok(())
    }
}

/// Waits until Envoy has read what was written; Err: what it refused.
fn wait_for_envoy(admin: SocketAddr, before: &XdsCounters, written: &Written) -> Result<(), String> {
    let expected = written.changed.iter().filter(|path| envoy::is_watched(path)).count();
    let expected = u64::try_from(expected).unwrap_or(u64::MAX);
    let deadline = Instant::now() + PATIENCE;
    while expected > 0 && Instant::now() < deadline {
        thread::sleep(TICK);
        let Some(now) = XdsCounters::read(admin) else { continue };
        let refused = now.refused_since(before);
        if !refused.is_empty() {
            return Err(format!("Envoy refuses it ({}); its own message is above", refused.join(", ")));
        }
        if now.settled_since(before) >= expected {
            return Ok(());
        }
    }
    if expected > 0 {
        say("Envoy has not said yet whether it takes the change");
    }
    Ok(())
}

/// A socket that a running child of ours has: another key may take it over, and a wider address may replace a narrow one.
fn is_ours(wanted: &Wanted, ours: &[Wanted]) -> bool {
    ours.iter().any(|have| have.transport == wanted.transport && have.socket.port() == wanted.socket.port())
}
