//! A program beside Envoy: the one that recodes images, and the one that caches objects. Each runs while the configuration
//! has it, and no request needs it.

use std::path::{Path, PathBuf};

use longhaul_observe::Endpoint;
use longhaul_observe::report::ChildReport;
use longhaul_render::{IMAGES_FILE, OBJECTS_FILE, ProgramSockets, RenderedTree};

use super::child::{Program, Running};
use super::log::Dialect;
use super::service::{Ready, Service};

/// One of the programs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// Its name, also of its file.
    name: &'static str,
    /// The name of its configuration in the rendered tree.
    config: &'static str,
}

/// The program that recodes images.
pub(super) const IMAGES: Kind = Kind { name: "longhaul-images", config: IMAGES_FILE };
/// The program that caches objects.
pub(super) const OBJECTS: Kind = Kind { name: "longhaul-objects", config: OBJECTS_FILE };

/// The program, and the configuration of its present process.
#[derive(Debug)]
pub(super) struct SideProgram {
    kind: Kind,
    /// The program and its sockets. None: it was not found.
    found: Option<(PathBuf, ProgramSockets)>,
    /// None: the configuration does not have it.
    running: Option<(Service, String)>,
    /// Processes with an earlier configuration, which end their requests.
    retired: Vec<Running>,
}

impl SideProgram {
    pub(super) fn new(kind: Kind, program: Option<PathBuf>, sockets: Option<ProgramSockets>) -> Self {
        Self { kind, found: program.zip(sockets), running: None, retired: Vec::new() }
    }

    /// Starts, exchanges or ends the program so that its process has the configuration in `tree`. Restarts it after a
    /// death. Call it often.
    pub(super) fn tend(&mut self, tree: &RenderedTree, root: &Path) {
        let Kind { name, config: file } = self.kind;
        let wanted = self.found.as_ref().zip(tree.get(file));
        let present = self.running.as_ref().map(|(_, config)| config.as_str());
        if wanted.map(|(_, config)| config) != present {
            let next = wanted.map(|((path, sockets), config)| {
                let program = Program {
                    name,
                    path: path.clone(),
                    folder: None,
                    dialect: Dialect::Side(name),
                    arguments: vec![root.join(file).into()],
                    environment: Vec::new(),
                };
                (Service::due(program, Ready::Socket(sockets.program.clone())), config.to_owned())
            });
            let before = std::mem::replace(&mut self.running, next);
            self.retired.extend(before.and_then(|(mut service, _)| service.retire()));
        }
        self.retired.retain_mut(|process| process.ended().is_none());
        if let Some((service, _)) = &mut self.running {
            service.tend();
        }
    }

    /// Returns true while its process has started and does not respond yet.
    pub(super) fn is_starting(&mut self) -> bool {
        self.running.as_mut().is_some_and(|(service, _)| service.is_running() && !service.responds())
    }

    /// Returns the socket of its counters. None if it was not found.
    pub(super) fn metrics(&self) -> Option<Endpoint> {
        self.found.as_ref().map(|(_, sockets)| Endpoint::Unix(sockets.metrics.clone()))
    }

    /// Returns its processes.
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.running.iter().filter_map(|(service, _)| service.pid()).chain(self.retired.iter().map(Running::pid))
    }

    /// Returns its state for `longhaul status`. None: the configuration does not have it.
    pub(super) fn report(&self) -> Option<ChildReport> {
        self.running.as_ref().map(|(service, _)| service.report())
    }

    /// Gives away all processes, so that the caller can stop them.
    pub(super) fn take_all(&mut self) -> Vec<Running> {
        let present = self.running.take().and_then(|(mut service, _)| service.take());
        self.retired.drain(..).chain(present).collect()
    }
}
