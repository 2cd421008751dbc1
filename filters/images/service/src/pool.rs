//! Child processes, one for each image, and images that wait for them. The memory of [`crate::body`] bounds the queue.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, io};

use image_recode::{Left, Policy, Source};
use image_variants::Config;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::log;
use crate::message::{Outcome, RESULT_BYTES, Task};
use crate::slots::{Owner, Slots};

/// The argument with which the program is a child.
pub const WORKER: &str = "--worker";

/// The pool.
#[derive(Debug)]
pub struct Pool {
    slots: Slots,
    /// Started and waiting for a task, so that an image waits for no start.
    spare: Mutex<Vec<Child>>,
    workers: usize,
    program: OsString,
    limits: [String; 2],
    policy: Policy,
    time: Duration,
    without_landlock: AtomicBool,
}

/// A recoded image.
#[derive(Debug)]
pub struct Recoded {
    /// The result.
    pub file: Result<Vec<u8>, Left>,
    /// The processor time of the child in microseconds, if it said so.
    pub cpu_us: u32,
}

impl Pool {
    /// Makes a pool whose children run this program.
    ///
    /// # Errors
    /// If the program does not find itself.
    pub fn new(config: &Config) -> io::Result<Self> {
        let workers = usize::from(config.workers.max(1));
        let time = Duration::from_millis(config.time_ms.into());
        let policy = Policy {
            jpeg_quality: config.jpeg_quality,
            png_quality: config.png_quality,
            method: config.method,
            pixels: config.pixels,
        };
        Ok(Self {
            slots: Slots::new(config.workers.max(1).into(), time),
            spare: Mutex::default(),
            workers,
            program: program()?,
            // The limit counts whole seconds. The parent's clock is the exact one.
            limits: [config.memory_bytes.to_string(), u64::from(config.time_ms).div_ceil(1000).max(1).to_string()],
            policy,
            time,
            without_landlock: AtomicBool::new(false),
        })
    }

    /// Starts children until each worker has one that waits.
    pub fn fill(&self) {
        let Ok(mut spare) = self.spare.lock() else { return };
        while spare.len() < self.workers {
            match self.start() {
                Ok(child) => spare.push(child),
                Err(error) => {
                    log::line(&format!("cannot start a child process: {error}"));
                    return;
                }
            }
        }
    }

    /// Recodes an image of a client. Waits for a free worker, up to half of the time for an image. The images of one page
    /// arrive together, and the link that carries them is slower than the workers.
    pub async fn recode(&self, client: Owner, source: Source, image: &[u8]) -> Recoded {
        let failed = |left| Recoded { file: Err(left), cpu_us: 0 };
        let Some(_slot) = self.slots.take(client).await else { return failed(Left::Busy) };
        let spare = self.spare.lock().ok().and_then(|mut spare| spare.pop());
        let Some(mut child) = spare.or_else(|| self.start().ok()) else { return failed(Left::Busy) };
        let result = timeout(self.time, self.exchange(&mut child, source, image)).await;
        // A child that has not ended is killed here: it took too long, or said nonsense.
        let _ = child.start_kill();
        let _ = child.wait().await;
        self.fill();
        match result {
            Ok(Ok(recoded)) => recoded,
            Ok(Err(_)) | Err(_) => failed(Left::Worker),
        }
    }

    async fn exchange(&self, child: &mut Child, source: Source, image: &[u8]) -> io::Result<Recoded> {
        let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let landlock = output.read_u8().await? != 0;
        if !landlock && !self.without_landlock.swap(true, Ordering::Relaxed) {
            log::line("this kernel has no Landlock; child processes have the filter of system calls alone");
        }
        let length = u32::try_from(image.len()).map_err(io::Error::other)?;
        input.write_all(&Task { source, policy: self.policy, length }.to_bytes()).await?;
        input.write_all(image).await?;
        drop(input);
        let mut result = [0; RESULT_BYTES];
        output.read_exact(&mut result).await?;
        let Outcome { length, cpu_us } = Outcome::from_bytes(result);
        let file = match length {
            // What a child says is foreign, too: a variant is never longer than its original.
            Ok(length) if usize::try_from(length).is_ok_and(|length| length < image.len()) => {
                let mut file = Vec::new();
                output.take(length.into()).read_to_end(&mut file).await?;
                if file.len() == length as usize && is_webp(&file) { Ok(file) } else { Err(Left::Worker) }
            }
            Ok(_) => Err(Left::Worker),
            Err(left) => Err(left),
        };
        Ok(Recoded { file, cpu_us })
    }

    fn start(&self) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.arg0("longhaul-images").arg(WORKER).args(&self.limits).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn()
    }
}

/// This program, also after an upgrade has replaced its file.
fn program() -> io::Result<OsString> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.into()) } else { Ok(env::current_exe()?.into_os_string()) }
}

fn is_webp(file: &[u8]) -> bool {
    file.starts_with(b"RIFF") && file.get(8..12) == Some(b"WEBP")
}
