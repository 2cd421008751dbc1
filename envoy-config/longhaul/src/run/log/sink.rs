//! stderr, behind a bounded queue. A reader of stderr that stands still stops neither this program nor its children.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::native::{self, Journal};
use super::record::{Form, Level, Record, foreign};

/// The messages that may wait for stderr.
const QUEUE: usize = 4096;
/// The longest time for which the end of the program waits for the last messages.
const FLUSH: Duration = Duration::from_secs(1);

static SINK: OnceLock<Sink> = OnceLock::new();

struct Sink {
    form: Form,
    queue: SyncSender<Item>,
    dropped: Arc<AtomicU64>,
    /// True if the journal of systemd reads stderr.
    has_journal: bool,
    /// True while the run serves.
    serves: AtomicBool,
    /// Has one owner more for each child that is being read.
    children: Arc<()>,
}

enum Item {
    Text(String),
    /// An entry of the journal, and the text for stderr if the journal does not take it.
    Entry(Vec<u8>, String),
    /// Sends back when everything before it is written.
    Flush(SyncSender<()>),
}

/// Starts the log in `form`. Until then, messages go to stderr without one.
///
/// # Errors
/// The system gives no thread.
pub(crate) fn start(form: Form) -> io::Result<()> {
    let (queue, items) = sync_channel(QUEUE);
    let dropped = Arc::new(AtomicU64::new(0));
    let lost = Arc::clone(&dropped);
    thread::Builder::new().name("log".to_owned()).spawn(move || write_all(form, &items, &lost))?;
    let has_journal = form == Form::Journal && Form::of_stderr() == Form::Journal;
    let serves = AtomicBool::new(false);
    let _ = SINK.set(Sink { form, queue, dropped, has_journal, serves, children: Arc::default() });
    Ok(())
}

/// Says whether the run serves. Messages have fields in the journal meanwhile. Before and after, they go by stderr: the
/// journal looks up the unit of a process when it reads the entry, and the process may have ended by then.
pub(in super::super) fn serves(is_so: bool) {
    if let Some(sink) = SINK.get() {
        sink.serves.store(is_so, Ordering::Relaxed);
    }
}

fn write_all(form: Form, items: &Receiver<Item>, dropped: &AtomicU64) {
    let mut journal = None;
    // A closed stderr is no reason to stop.
    for item in items {
        match item {
            Item::Text(text) => drop(io::stderr().write_all(text.as_bytes())),
            Item::Entry(entry, text) => {
                // The journal may have been restarted.
                journal = journal.or_else(|| Journal::open(Path::new(native::SOCKET)).ok());
                if journal.as_ref().is_none_or(|journal| journal.send(&entry).is_err()) {
                    journal = None;
                    drop(io::stderr().write_all(text.as_bytes()));
                }
            }
            Item::Flush(done) => drop(done.try_send(())),
        }
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let message = format!("{lost} log messages were dropped, because stderr did not take them in time");
            let record = Record { level: Level::Warning, part: "longhaul".to_owned(), message };
            drop(io::stderr().write_all(record.text(form, SystemTime::now()).as_bytes()));
        }
    }
}

/// Logs `record`.
pub(super) fn emit(record: &Record) {
    emit_with(record, &[]);
}

/// Logs `record`, in the journal with `fields` beside it.
pub(super) fn emit_with(record: &Record, fields: &[(&str, &str)]) {
    match SINK.get() {
        Some(sink) => {
            let text = record.text(sink.form, SystemTime::now());
            let has_fields = sink.has_journal && sink.serves.load(Ordering::Relaxed);
            sink.put(if has_fields { Item::Entry(native::entry(record, fields), text) } else { Item::Text(text) });
        }
        None => eprintln!("{}: {}", record.part, record.message),
    }
}

/// Logs a line that has a form of its own.
pub(super) fn emit_foreign(line: &str) {
    if let Some(sink) = SINK.get() {
        sink.put(Item::Text(foreign(line, sink.form)));
    }
}

/// Returns an owner for a thread that reads a child. [`flush`] waits until it is dropped.
pub(super) fn child() -> Option<Arc<()>> {
    SINK.get().map(|sink| Arc::clone(&sink.children))
}

/// Waits until children that have ended are read to their end, and all messages are written.
pub(crate) fn flush() {
    let Some(sink) = SINK.get() else { return };
    let deadline = Instant::now() + FLUSH;
    while Arc::strong_count(&sink.children) > 1 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    let (done, written) = sync_channel(1);
    let mut item = Item::Flush(done);
    while let Err(TrySendError::Full(back)) = sink.queue.try_send(item) {
        if Instant::now() >= deadline {
            return;
        }
        item = back;
        thread::sleep(Duration::from_millis(5));
    }
    let _ = written.recv_timeout(FLUSH);
}

impl Sink {
    fn put(&self, item: Item) {
        if self.queue.try_send(item).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
