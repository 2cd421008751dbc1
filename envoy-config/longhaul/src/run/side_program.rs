//! A program beside Envoy: the one that recodes images, and the one that caches objects. Each runs while the configuration
//! has it, and no request needs it.

use std::path::{Path, PathBuf};

use longhaul_observe::Endpoint;
use longhaul_observe::report::ChildReport;
use longhaul_render::{IMAGES_FILE, OBJECTS_FILE, ProgramSockets, RenderedTree};

use super::child::{Program, Running};
use super::log::Dialect;
use super::service::{Ready, Service};
use super::shifts::Shifts;

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

/// The program and its processes.
#[derive(Debug)]
pub(super) struct SideProgram {
    kind: Kind,
    /// The program and its sockets. None: it was not found.
    found: Option<(PathBuf, ProgramSockets)>,
    shifts: Shifts<Service, Running>,
}

impl SideProgram {
    pub(super) fn new(kind: Kind, program: Option<PathBuf>, sockets: Option<ProgramSockets>) -> Self {
        Self { kind, found: program.zip(sockets), shifts: Shifts::new() }
    }

    /// Starts, exchanges or ends the program so that its process has the configuration in `tree`. Restarts it after a
    /// death. Call it often.
    pub(super) fn tend(&mut self, tree: &RenderedTree, root: &Path) {
        let Kind { name, config: file } = self.kind;
        let Self { found, shifts, .. } = self;
        let wanted = found.as_ref().zip(tree.get(file));
        shifts.follow(
            wanted.map(|(_, config)| config),
            || {
                wanted.map(|((path, sockets), _)| {
                    let program = Program {
                        name,
                        path: path.clone(),
                        folder: None,
                        dialect: Dialect::Side(name),
                        arguments: vec![root.join(file).into()],
                        environment: Vec::new(),
                    };
                    Service::due(program, Ready::Socket(sockets.program.clone()))
                })
            },
            |mut service| service.retire(),
        );
        shifts.forget_retired(|process| process.ended().is_some());
        if let Some(service) = shifts.present_mut() {
            service.tend();
        }
    }

    /// Records that its process may have read another configuration than that in force.
    pub(super) fn doubt(&mut self) {
        self.shifts.doubt();
    }

    /// Returns true while its process has started and does not respond yet.
    pub(super) fn is_starting(&mut self) -> bool {
        self.shifts.present_mut().is_some_and(|service| service.is_running() && !service.responds())
    }

    /// Returns the socket of its counters. None if it was not found.
    pub(super) fn metrics(&self) -> Option<Endpoint> {
        self.found.as_ref().map(|(_, sockets)| Endpoint::Unix(sockets.metrics.clone()))
    }

    /// Returns its processes.
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.shifts.present().and_then(Service::pid).into_iter().chain(self.shifts.retired().iter().map(Running::pid))
    }

    /// Returns its state for `longhaul status`. None: the configuration does not have it.
    pub(super) fn report(&self) -> Option<ChildReport> {
        self.shifts.present().map(Service::report)
    }

    /// Gives away all processes, so that the caller can stop them.
    pub(super) fn take_all(&mut self) -> Vec<Running> {
        self.shifts.take_all(|mut service| service.take())
    }
}
