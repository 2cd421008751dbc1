//! Tells the operator's program when a problem begins and when it ends (`notify.command`).
//!
//! The program runs as the user of this process, one at a time, for a bounded time. It gets its facts by environment
//! variables, so no shell reads a text that somebody else wrote. Notices wait in a bounded queue, so a program that hangs
//! costs notices and nothing else.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::{Notify, Settings};
use longhaul_observe::report::ProblemRecord;

use super::child::{Program, Running, describe};
use super::locate::host_name;
use super::log::{Dialect, Level};
use super::problem_log::News;
use super::say;

/// The notices that may wait.
const QUEUE: usize = 64;
/// The longest time for one notice. A program that sends over a satellite link needs seconds.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The way to the program.
#[derive(Debug, Clone)]
pub(super) struct Notices {
    queue: SyncSender<News>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    told: Mutex<Told>,
    /// The process that runs. 0: none does.
    pid: AtomicU32,
}

/// The program, and what it learns about this box.
#[derive(Debug, Clone, Default)]
struct Told {
    notify: Option<Notify>,
    name: String,
    role: &'static str,
}

impl Notices {
    /// Starts the thread that starts the program.
    pub(super) fn start(settings: &Settings) -> io::Result<Self> {
        let (queue, news) = sync_channel(QUEUE);
        let shared = Arc::new(Shared::default());
        let notices = Self { queue, shared: Arc::clone(&shared) };
        notices.follow(settings);
        // The kernel ends a child with the thread that started it, and this one lives as long as the process.
        thread::Builder::new().name("notices".to_owned()).spawn(move || tell_all(&news, &shared, PATIENCE))?;
        Ok(notices)
    }

    /// Uses the program of `settings` from now on.
    pub(super) fn follow(&self, settings: &Settings) {
        let told = Told {
            notify: settings.notify.clone(),
            name: settings.id.clone().unwrap_or_else(host_name),
            role: settings.role.as_str(),
        };
        *self.shared.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
    }

    /// Tells the program, as soon as it has heard of everything before.
    pub(super) fn tell(&self, news: &News) {
        if self.shared.told().notify.is_some() && self.queue.try_send(news.clone()).is_err() {
            say(Level::Error, &format!("`notify.command` did not hear of {}: {QUEUE} notices wait", label(news)));
        }
    }

    /// Returns the process of the program, while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        Some(self.shared.pid.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }
}

impl Shared {
    fn told(&self) -> Told {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn tell_all(news: &Receiver<News>, shared: &Shared, patience: Duration) {
    for one in news {
        let told = shared.told();
        let Some(notify) = &told.notify else { continue };
        if let Err(why) = tell(notify, variables(&one, &told.name, told.role), shared, patience) {
            let program = notify.program.display();
            say(Level::Error, &format!("`notify.command` did not hear of {}: {program} {why}", label(&one)));
        }
        shared.pid.store(0, Ordering::Relaxed);
    }
}

/// Runs the program to its end. Returns what went wrong.
fn tell(
    notify: &Notify,
    environment: Vec<(&'static str, String)>,
    shared: &Shared,
    patience: Duration,
) -> Result<(), String> {
    let program = Program {
        name: "notify.command",
        path: notify.program.clone(),
        folder: Some(Path::new("/").to_owned()),
        dialect: Dialect::Side("notify"),
        arguments: notify.arguments.iter().map(Into::into).collect(),
        environment: environment.into_iter().map(|(name, value)| (name, value.into())).collect(),
    };
    let mut running = Running::start(&program).map_err(|error| format!("cannot be started: {error}"))?;
    shared.pid.store(running.pid(), Ordering::Relaxed);
    let deadline = Instant::now() + patience;
    loop {
        match running.ended() {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(describe(status)),
            None if Instant::now() >= deadline => {
                running.kill_group();
                return Err(format!("did not end within {} s and was killed", patience.as_secs()));
            }
            None => thread::sleep(LOOK_EVERY),
        }
    }
}

fn label(news: &News) -> String {
    let (News::Began(problem) | News::Ended(problem)) = news;
    format!("the {} of {}", event(news), problem.kind.label())
}

/// Returns the word for what happened.
pub(super) fn event(news: &News) -> &'static str {
    match news {
        News::Began(_) => "begin",
        News::Ended(_) => "end",
    }
}

/// Returns the environment of one notice. `name` and `role` are those of this box.
fn variables(news: &News, name: &str, role: &str) -> Vec<(&'static str, String)> {
    let (News::Began(problem) | News::Ended(problem)) = news;
    let ProblemRecord { kind, of, text, began, ended } = problem;
    // No variable may have a byte of zero, and a text of several lines is one line less to quote.
    let clean = |text: &str| text.replace(['\0', '\n'], " ");
    vec![
        ("LONGHAUL_EVENT", event(news).to_owned()),
        ("LONGHAUL_PROBLEM", kind.label().to_owned()),
        ("LONGHAUL_OF", clean(of)),
        ("LONGHAUL_TEXT", clean(text)),
        ("LONGHAUL_BEGAN", began.to_string()),
        ("LONGHAUL_SECONDS", ended.map_or(0, |ended| ended.saturating_sub(*began)).to_string()),
        ("LONGHAUL_BOX", clean(name)),
        ("LONGHAUL_ROLE", role.to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use longhaul_observe::report::ProblemKind;

    use super::*;

    fn problem(ended: Option<u64>) -> ProblemRecord {
        let text = "two\nlines; $(rm -r /)".to_owned();
        ProblemRecord { kind: ProblemKind::ResolverDown, of: "192.0.2.53:53".to_owned(), text, began: 100, ended }
    }

    #[test]
    fn a_notice_names_the_box_the_problem_and_its_duration() {
        let value = |news: &News, wanted: &str| {
            let all = variables(news, "ship-7", "remote");
            all.into_iter().find(|(name, _)| *name == wanted).unwrap().1
        };
        let began = News::Began(problem(None));
        assert_eq!(value(&began, "LONGHAUL_EVENT"), "begin");
        assert_eq!(value(&began, "LONGHAUL_SECONDS"), "0");
        assert_eq!(value(&began, "LONGHAUL_TEXT"), "two lines; $(rm -r /)");
        let ended = News::Ended(problem(Some(175)));
        assert_eq!(value(&ended, "LONGHAUL_EVENT"), "end");
        assert_eq!(value(&ended, "LONGHAUL_SECONDS"), "75");
        assert_eq!(
            (value(&ended, "LONGHAUL_OF"), value(&ended, "LONGHAUL_BOX")),
            ("192.0.2.53:53".into(), "ship-7".into())
        );
    }
}
