//! A box of one test: its address, its files, an origin, and the `longhaul run` under test.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, io, process, thread};

use rustix::process::{Pid, Signal, kill_process};

/// The time limit of every wait, for a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// The page's own name; its object stands on `img.example.test`.
pub(crate) const PAGE: &str = "www.example.test";

/// Waits until `holds`, or fails with `what`.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never came true: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The programs that a run needs. If one is missing, says why the test does not run and returns None.
struct Programs {
    envoy: PathBuf,
    coredns: PathBuf,
    filter: PathBuf,
    name_budget: PathBuf,
    native: PathBuf,
}

impl Programs {
    fn find() -> Option<Self> {
        Some(Self {
            envoy: find("LONGHAUL_ENVOY", "envoy")?,
            coredns: find("LONGHAUL_COREDNS", "coredns")?,
            filter: find("LONGHAUL_URL_REWRITE", "url_rewrite.wasm")?,
            name_budget: find("LONGHAUL_NAME_BUDGET", "name_budget.wasm")?,
            native: find("LONGHAUL_NATIVE_FILTERS", "longhaul_filters.so")?,
        })
    }
}

fn find(variable: &str, file: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).map(PathBuf::from);
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/dist").join(file);
    let found = named.into_iter().chain([built]).find(|path| path.is_file());
    if found.is_none() {
        skip(&format!("no {file}: set {variable}, or `make build`"));
    }
    found
}

pub(crate) fn skip(reason: &str) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    assert!(env::var_os("LONGHAUL_REQUIRE_ALL").is_none_or(|value| value != "1"), "skipped: {reason}");
    eprintln!("skipped: {test}: {reason}");
    if let Some(list) = env::var_os("LONGHAUL_SKIPS") {
        let mut list = File::options().append(true).create(true).open(list).unwrap();
        writeln!(list, "envoy-config {test}: {reason}").unwrap();
    }
}

/// Everything one test has.
pub(crate) struct Host {
    pub(crate) address: IpAddr,
    programs: Programs,
    folder: tempfile::TempDir,
}

impl Host {
    /// Returns None if a program to run is not here.
    pub(crate) fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let first = u32::from(Ipv4Addr::new(127, 112, 0, 0));
        let own = (process::id() % 4096) * 64 + NEXT.fetch_add(1, Ordering::Relaxed) % 64;
        let address = IpAddr::V4(Ipv4Addr::from(first + own));
        let programs = Programs::find()?;
        let folder = tempfile::tempdir().unwrap();
        let made = Self { address, programs, folder };
        made.write("domains.txt", "example.test\n");
        made.write("longhaul.yaml", &made.config());
        made.serve_origin();
        made.serve_names();
        Some(made)
    }

    /// The configuration of the box. Tests replace text in it.
    pub(crate) fn config(&self) -> String {
        let at = self.address;
        let cache = self.path("cache");
        format!(
            "link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\n\
             proxy: {{ addresses: [{at}] }}\n\
             listen: {{ http: {at}:8080, tls: off, dns: {at}:1053, metrics: {at}:9153, status: {at}:9900, intercept: none }}\n\
             upstream:\n  resolvers: [{at}:5300]\n  map: {{ {PAGE}: {at}:8081, img.example.test: {at}:8081 }}\n\
             rewrite: {{ level: safe, target: http }}\n\
             dns: {{ domains: [domains.txt], www: false }}\n\
             cache: {{ dir: {}, size: 16mib }}\n",
            cache.display()
        )
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn socket(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.address, port)
    }

    /// Writes a file as a careful editor does: beside the old one, then renamed.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let new = self.path(&format!(".{name}.new"));
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path(name)).unwrap();
    }

    /// Replaces `from` with `to` in the configuration, and puts it in place.
    pub(crate) fn change(&self, from: &str, to: &str) {
        let text = fs::read_to_string(self.path("longhaul.yaml")).unwrap();
        assert!(text.contains(from), "{from}");
        self.write("longhaul.yaml", &text.replace(from, to));
    }

    /// A page with an image on another host, for as long as the test's process lives.
    fn serve_origin(&self) {
        let listener = TcpListener::bind(self.socket(8081)).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || answer(stream));
            }
        });
    }

    /// A resolver that knows no name, for as long as the test's process lives.
    fn serve_names(&self) {
        let socket = UdpSocket::bind(self.socket(5300)).unwrap();
        thread::spawn(move || {
            let mut message = [0; 1500];
            while let Ok((length, client)) = socket.recv_from(&mut message) {
                // A response with the code NXDOMAIN and no additional section.
                message[2] |= 0x80;
                message[3] = 0x80 | 3;
                let _ = socket.send_to(message.get(..length).unwrap_or_default(), client);
            }
        });
    }

    /// A copy of the filter that a test may exchange.
    pub(crate) fn own_filter(&mut self) -> PathBuf {
        let own = self.path("url_rewrite.wasm");
        fs::copy(&self.programs.filter, &own).unwrap();
        self.programs.filter.clone_from(&own);
        own
    }

    pub(crate) fn command(&self) -> Command {
        self.command_for("run")
    }

    /// `longhaul` with another word for its file, in the same environment.
    pub(crate) fn command_for(&self, word: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command
            .arg(word)
            .arg(self.path("longhaul.yaml"))
            .arg("--state")
            .arg(self.path("state"))
            .env("LONGHAUL_ENVOY", &self.programs.envoy)
            .env("LONGHAUL_COREDNS", &self.programs.coredns)
            .env("LONGHAUL_URL_REWRITE", &self.programs.filter)
            .env("LONGHAUL_NAME_BUDGET", &self.programs.name_budget)
            .env("LONGHAUL_NATIVE_FILTERS", &self.programs.native)
            // Programs are those named above, also if a caller's environment names a folder.
            .env_remove("LONGHAUL_DIST")
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end, for configurations that are refused.
    pub(crate) fn run_refused(&self) -> (ExitStatus, String, String) {
        let output = self.command().output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status, text(&output.stdout), text(&output.stderr))
    }

    /// `longhaul status` of the run of this box.
    pub(crate) fn status(&self, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command.arg("status").arg("--state").arg(self.path("state")).args(more).output().unwrap()
    }

    /// The shared memory of Envoy, as long as there is any.
    pub(crate) fn shared_memory(&self) -> Option<PathBuf> {
        let base_id = fs::read_to_string(self.path("state/rendered/.envoy-base-id")).ok()?;
        let path = PathBuf::from(format!("/dev/shm/envoy_shared_memory_{}0", base_id.trim()));
        path.exists().then_some(path)
    }

    /// Starts it and waits for `ready`.
    pub(crate) fn start(&self) -> Run {
        self.start_with(&[])
    }

    /// The same with more variables in its environment.
    pub(crate) fn start_with(&self, environment: &[(&str, &str)]) -> Run {
        self.start_by(|mut command| {
            command.envs(environment.iter().copied());
            command
        })
    }

    /// The same by another command, made of the usual one.
    pub(crate) fn start_by(&self, made: impl FnOnce(Command) -> Command) -> Run {
        let log = self.path("longhaul.log");
        let mut child =
            made(self.command()).stdout(Stdio::piped()).stderr(File::create(&log).unwrap()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let run = Run { child, log, ready: line };
        assert!(run.ready.starts_with("ready "), "{:?}\n{}", run.ready, run.log());
        run
    }

    /// The page of `listen.metrics`; empty if there is none.
    pub(crate) fn metrics(&self) -> String {
        let response = ureq::get(format!("http://{}/metrics", self.socket(9153))).call();
        response.ok().and_then(|mut response| response.body_mut().read_to_string().ok()).unwrap_or_default()
    }

    /// The page of Envoy's admin interface at `path`; empty if there is none.
    pub(crate) fn admin(&self, path: &str) -> String {
        let page = || {
            let mut stream = UnixStream::connect(self.path("state/private/admin.sock"))?;
            stream.set_read_timeout(Some(Duration::from_secs(20)))?;
            write!(stream, "GET {path} HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n")?;
            chunked_body(&mut BufReader::new(stream))
        };
        page().unwrap_or_default()
    }

    /// The page through the proxy; empty if there is none.
    pub(crate) fn page(&self, port: u16) -> String {
        self.get(port, "/")
    }

    /// The same under another path. The origin serves it under every path.
    pub(crate) fn get(&self, port: u16, path: &str) -> String {
        let url = format!("http://{}{path}", self.socket(port));
        let agent = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(20))).build().new_agent();
        let answer = agent.get(url).header("host", PAGE).call();
        answer.ok().and_then(|mut answer| answer.body_mut().read_to_string().ok()).unwrap_or_default()
    }

    /// The status, headers and body of a request to the status page under the name `host`.
    pub(crate) fn status_page(&self, method: &str, path: &str, host: &str) -> String {
        let Ok(mut stream) = TcpStream::connect(self.socket(9900)) else { return String::new() };
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut answer = String::new();
        write!(stream, "{method} {path} HTTP/1.1\r\nhost: {host}\r\n\r\n").unwrap();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    /// Returns true if the image of the page was moved to the proxy.
    pub(crate) fn page_is_rewritten(&self) -> bool {
        let moved = format!("http://{}/img.example.test/plane.jpg", self.socket(8080));
        self.page(8080).contains(&moved)
    }

    /// Sends an A query for `name`. Returns the response, or None if there is none.
    pub(crate) fn asks(&self, name: &str) -> Option<Vec<u8>> {
        self.asks_at(1053, name)
    }

    /// The same at another port.
    pub(crate) fn asks_at(&self, port: u16, name: &str) -> Option<Vec<u8>> {
        let socket = UdpSocket::bind((self.address, 0)).ok()?;
        socket.set_read_timeout(Some(Duration::from_secs(3))).ok()?;
        let mut query = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            query.push(u8::try_from(label.len()).ok()?);
            query.extend(label.bytes());
        }
        query.extend([0, 0, 1, 0, 1]);
        socket.send_to(&query, self.socket(port)).ok()?;
        let mut answer = vec![0; 512];
        let size = socket.recv(&mut answer).ok()?;
        answer.truncate(size);
        Some(answer)
    }
}

/// Reads the body of a response that is sent in chunks, as all of Envoy's admin interface are.
fn chunked_body(response: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if response.read_line(&mut line)? == 0 {
            return Ok(String::new());
        }
    }
    let mut body = Vec::new();
    loop {
        line.clear();
        response.read_line(&mut line)?;
        let length = u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        if length == 0 {
            return String::from_utf8(body).map_err(io::Error::other);
        }
        response.by_ref().take(length).read_to_end(&mut body)?;
        response.read_line(&mut line)?;
    }
}

impl Drop for Host {
    /// A killed `longhaul` cleans up at its next start, and a test does not wait for it.
    fn drop(&mut self) {
        if let Some(path) = self.shared_memory() {
            let _ = fs::remove_file(path);
        }
    }
}

fn answer(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut line = String::new();
        let mut slow = false;
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            slow |= line.starts_with("GET /slow");
            if line == "\r\n" {
                break;
            }
        }
        let page = "<html><img src=\"http://img.example.test/plane.jpg\"></html>\n";
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\r\n",
            page.len()
        );
        if stream.write_all(head.as_bytes()).is_err() {
            return;
        }
        if slow {
            thread::sleep(Duration::from_secs(3));
        }
        if stream.write_all(page.as_bytes()).is_err() {
            return;
        }
    }
}

/// A `longhaul run` under test. Dropping it stops it, then kills it.
pub(crate) struct Run {
    child: Child,
    log: PathBuf,
    pub(crate) ready: String,
}

impl Run {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns its stderr so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn says(&self, text: &str) {
        eventually(&format!("{text:?} on stderr, which is:\n{}", self.log()), || self.log().contains(text));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        signal_process(self.pid(), signal);
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("longhaul ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// The process of its child `name`, the youngest if there are several.
    pub(crate) fn child_named(&self, name: &str) -> Option<u32> {
        let named = children(self.pid()).into_iter().filter(|child| child.command == name);
        named.max_by_key(|child| child.started).map(|child| child.pid)
    }

    pub(crate) fn children(&self) -> Vec<u32> {
        children(self.pid()).into_iter().map(|child| child.pid).collect()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("longhaul said:\n{}", self.log());
        }
        if self.child.try_wait().unwrap().is_none() {
            self.signal(Signal::INT);
            let deadline = Instant::now() + Duration::from_secs(10);
            while self.child.try_wait().unwrap().is_none() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(20));
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

pub(crate) fn signal_process(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Returns true if `pid` can still hold a socket.
pub(crate) fn is_alive(pid: u32) -> bool {
    // A process that nobody has waited for yet is dead all the same, but only once its other threads are gone too:
    // until the last of them has ended, its ports stay taken behind a first thread that is a zombie already.
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    threads > 1 || stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

struct Process {
    pid: u32,
    command: String,
    /// The start time in the kernel's ticks. The kernel reuses process numbers once they are used up.
    started: u64,
}

fn children(parent: u32) -> Vec<Process> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let mut stat = String::new();
        if File::open(entry.path().join("stat")).and_then(|mut file| file.read_to_string(&mut stat)).is_err() {
            continue;
        }
        let Some((before, after)) = stat.rsplit_once(") ") else { continue };
        // The third field of proc_pid_stat(5) and those after it.
        let field = |number: usize| after.split(' ').nth(number - 3).unwrap_or_default();
        if field(4) == parent.to_string() && field(3) != "Z" {
            let command = before.split_once('(').map_or("", |(_, command)| command).to_owned();
            found.push(Process { pid, command, started: field(22).parse().unwrap() });
        }
    }
    found
}

/// The files of a folder, by name; empty if there is no such folder.
pub(crate) fn listing(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>()).unwrap_or_default();
    entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
