//! The child: closes its sandbox, recodes one image, and ends. An image that takes it over finds nothing, and no next
//! image.

use std::io::{self, Read, Write};

use image_recode::{Left, recode};
use rustix::time::{ClockId, clock_gettime};

use crate::message::{Outcome, TASK_BYTES, Task};
use crate::sandbox::{self, Limits};

/// Runs the child on its standard input and output.
///
/// # Errors
/// If the sandbox stays open, or the parent is gone.
pub fn run(limits: Limits) -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    // The first call looks up the kernel's clock by a system call that the sandbox forbids.
    cpu_us();
    let landlock = sandbox::close(limits)?;
    output.write_all(&[u8::from(landlock)])?;
    output.flush()?;
    let mut task = [0; TASK_BYTES];
    input.read_exact(&mut task)?;
    let task = Task::from_bytes(task).ok_or(io::ErrorKind::InvalidData)?;
    let mut image = vec![0; usize::try_from(task.length).map_err(io::Error::other)?];
    input.read_exact(&mut image)?;
    let recoded = recode(task.source, &image, &task.policy);
    let length =
        recoded.as_ref().map_err(|left| *left).and_then(|file| u32::try_from(file.len()).map_err(|_| Left::Large));
    output.write_all(&Outcome { length, cpu_us: cpu_us() }.to_bytes())?;
    output.write_all(&recoded.unwrap_or_default())?;
    output.flush()
}

/// The processor time of this process, in microseconds.
fn cpu_us() -> u32 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let us = time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_nsec / 1_000);
    u32::try_from(us).unwrap_or(u32::MAX)
}
