//! The program that recodes images. It runs while the configuration has it, and no request needs it.

use std::path::{Path, PathBuf};

use longhaul_observe::report::ChildReport;
use longhaul_render::{IMAGES_FILE, ImageSockets, RenderedTree};

use super::child::{Program, Running};
use super::log::Dialect;
use super::service::{Ready, Service};

/// The program, and the configuration of its present process.
#[derive(Debug)]
pub(super) struct ImageProgram {
    /// The program and its sockets. None: it was not found.
    found: Option<(PathBuf, ImageSockets)>,
    /// None: images stay as they are.
    running: Option<(Service, String)>,
    /// Processes with an earlier configuration, which end their requests.
    retired: Vec<Running>,
}

impl ImageProgram {
    pub(super) fn new(program: Option<PathBuf>, sockets: Option<ImageSockets>) -> Self {
        Self { found: program.zip(sockets), running: None, retired: Vec::new() }
    }

    /// Starts, exchanges or ends the program so that its process has the configuration in `tree`. Restarts it after a
    /// death. Call it often.
    pub(super) fn tend(&mut self, tree: &RenderedTree, root: &Path) {
        let wanted = self.found.as_ref().zip(tree.get(IMAGES_FILE));
        let present = self.running.as_ref().map(|(_, config)| config.as_str());
        if wanted.map(|(_, config)| config) != present {
            let next = wanted.map(|((path, sockets), config)| {
                let program = Program {
                    name: "longhaul-images",
                    path: path.clone(),
                    folder: None,
                    dialect: Dialect::Images,
                    arguments: vec![root.join(IMAGES_FILE).into()],
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
