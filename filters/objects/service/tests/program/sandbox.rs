//! The rights that are left to the program: tried by a process that gives them up, and used by the program itself.

use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::{env, thread};

use rustix::process::{Pid, getppid, test_kill_process};
use side_program::sandbox::lack_calls;

use crate::bed::{Bed, Sizes, bytes, wait};
use crate::origin::Answer;

const FRESH: &str = "cache-control: max-age=60\netag: \"1\"";
const FOLDER: &str = "LONGHAUL_TEST_FOLDER";

/// Rights that the program uses. `below` is the folder of the store.
fn used(below: &Path, socket: &Path) -> Vec<(&'static str, io::Result<()>)> {
    let (old, new) = (below.join("new/1"), below.join("ab/1"));
    let sub = new.parent().unwrap();
    vec![
        ("make folders", fs::create_dir_all(sub).and_then(|()| fs::create_dir_all(below.join("new")))),
        ("write", fs::write(&old, "a")),
        ("rename", fs::rename(&old, &new)),
        ("replace", fs::write(&old, "b").and_then(|()| fs::rename(&old, &new))),
        ("truncate", File::create(&new).map(drop)),
        ("read", fs::read(&new).map(drop)),
        ("list", fs::read_dir(sub).map(|entries| assert_eq!(entries.count(), 1))),
        ("remove", fs::remove_file(&new)),
        ("connect to a socket of Unix", UnixStream::connect(socket).map(drop)),
        ("a thread", thread::Builder::new().spawn(|| ()).map(|thread| thread.join().unwrap())),
    ]
}

/// Rights that the program does not need. `outside` is another folder, `port` a server's, and `parent` another process.
fn unused(below: &Path, outside: &Path, port: u16, parent: Pid) -> Vec<(&'static str, io::Result<()>)> {
    let free = |name: &str| outside.join(name);
    vec![
        ("read a file", File::open("/etc/passwd").map(drop)),
        ("list a folder", fs::read_dir("/").map(drop)),
        ("write a file", File::create(free("file")).map(drop)),
        ("move a file out", fs::write(below.join("2"), "").and_then(|()| fs::rename(below.join("2"), free("2")))),
        ("remove a file", fs::remove_file(free("kept"))),
        ("change a mode", fs::set_permissions(below, fs::Permissions::from_mode(0o700))),
        ("a link", symlink("/etc", below.join("link"))),
        ("a socket of Unix", UnixListener::bind(below.join("sock")).map(drop)),
        ("TCP", TcpStream::connect(("127.0.0.1", port)).map(drop)),
        ("a TCP port", TcpListener::bind("127.0.0.1:0").map(drop)),
        ("UDP", UdpSocket::bind("127.0.0.1:0").map(drop)),
        ("a process", Command::new("/bin/true").spawn().and_then(|mut child| child.wait()).map(drop)),
        ("a signal", test_kill_process(parent).map_err(io::Error::from)),
    ]
}

/// Runs in a process of its own, which the next test starts.
#[test]
#[ignore = "a process that gives up its rights; the next test starts it"]
fn inside() {
    let outside = env::var_os(FOLDER).unwrap();
    let (outside, below, before) =
        (Path::new(&outside), Path::new(&outside).join("store"), tempfile::tempdir().unwrap());
    let socket = outside.join("origin.sock");
    let (_origin, tcp) = (UnixListener::bind(&socket).unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let (port, parent) = (tcp.local_addr().unwrap().port(), getppid().unwrap());
    fs::write(before.path().join("kept"), "").unwrap();
    fs::write(outside.join("kept"), "").unwrap();
    fs::create_dir(&below).unwrap();
    fs::create_dir(before.path().join("store")).unwrap();
    for (what, result) in unused(&before.path().join("store"), before.path(), port, parent) {
        assert!(result.is_ok(), "before, all is allowed: {what}: {result:?}");
    }
    let folder = File::open(&below).unwrap();
    let missing = longhaul_objects::sandbox::close(folder.as_fd());
    if missing.iter().any(|line| line.contains("no Landlock")) {
        println!("skipped: {missing:?}");
        return;
    }
    assert_eq!(missing, Vec::<String>::new());
    for (what, result) in used(&below, &socket) {
        assert!(result.is_ok(), "{what}: {result:?}");
    }
    let in_thread = thread::spawn(|| File::open("/etc/passwd").map(drop)).join().unwrap();
    for (what, result) in unused(&below, outside, port, parent).into_iter().chain([("read in a thread", in_thread)]) {
        let error = result.expect_err(what);
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{what}: {error}");
    }
}

#[test]
fn the_program_keeps_what_it_uses_and_nothing_else() {
    let outside = tempfile::tempdir().unwrap();
    let test = ["--ignored", "--exact", "sandbox::inside", "--nocapture"];
    let output = Command::new(env::current_exe().unwrap()).args(test).env(FOLDER, outside.path()).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert!(outside.path().join("kept").exists());
}

/// Returns the states of all threads, and the limits.
fn states(id: u32) -> (Vec<String>, String) {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let threads = fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let states = threads.map(|thread| read(&thread.unwrap().path().join("status"))).filter(|state| !state.is_empty());
    (states.collect(), read(Path::new(&format!("/proc/{id}/limits"))))
}

#[test]
fn every_thread_of_a_program_that_serves_has_the_filter() {
    let bed = Bed::new();
    for length in [10, 300_000] {
        bed.stores(&format!("/{length}"), FRESH, &bytes(length));
    }
    let (threads, limits) = states(bed.program.id());
    assert!(threads.len() > 1, "a thread waits for the disk");
    for state in threads {
        assert!(state.contains("Seccomp:\t2") && state.contains("NoNewPrivs:\t1"), "{state}");
    }
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().collect::<Vec<_>>()[4..6], ["0", "0"]);
}

#[test]
fn a_folder_that_others_change_is_filled_again() {
    let mut bed = Bed::with(Sizes { hot: 0, ..Sizes::default() }, &[]);
    bed.stores("/first", FRESH, &bytes(300_000));
    for entry in fs::read_dir(bed.store()).unwrap() {
        fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    for path in ["/first", "/second"] {
        bed.stores(path, FRESH, &bytes(300_000));
        assert!(bed.get(path, "").is_stored(), "{path}");
    }
    assert_eq!(bed.files().len(), 2);
    // The rights hold for the folder itself, wherever it is.
    let moved = bed.store().with_file_name("moved");
    fs::rename(bed.store(), &moved).unwrap();
    fs::create_dir(bed.store()).unwrap();
    bed.stores("/third", FRESH, &bytes(300_000));
    assert!(bed.get("/first", "").is_stored() && bed.get("/third", "").is_stored());
    assert_eq!(fs::read_dir(bed.store()).unwrap().count(), 0);
    bed.program.ask_to_end();
    wait("the program ends", || bed.program.ended().is_some());
    assert!(bed.program.ended().unwrap().success());
}

/// Becomes the program of the last two arguments, on a system without Landlock and without filters of system calls.
#[test]
#[ignore = "a process that becomes another one; the next test starts it"]
fn in_a_container() {
    let words: Vec<_> = env::args_os().collect();
    let [.., program, config] = words.as_slice() else { panic!("a program and its configuration") };
    lack_calls(&[libc::SYS_landlock_create_ruleset, libc::SYS_seccomp]).unwrap();
    panic!("{}", Command::new(program).arg(config).exec());
}

#[test]
fn a_system_without_the_layers_costs_a_line_each() {
    let folder = tempfile::tempdir().unwrap();
    let (said, test) = (folder.path().join("said"), env::current_exe().unwrap());
    let script =
        format!("exec {} --ignored --exact sandbox::in_a_container \"$@\" 2> {}", test.display(), said.display());
    let bed = Bed::with(Sizes::default(), &["sh", "-c", &script, "sh"]);
    for length in [10, 300_000] {
        let path = format!("/{length}");
        bed.origin.plays(&path, [Answer::whole(FRESH, &bytes(length))]);
        assert!(bed.get(&path, "").is_whole);
        bed.is_kept(&path);
        assert!(bed.get(&path, "").is_stored());
    }
    let said = fs::read_to_string(said).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let [landlock, filter, ready] = lines.as_slice() else { panic!("three lines: {said}") };
    assert!(landlock.contains("no Landlock") && filter.contains("filter of system calls"), "{said}");
    assert_eq!(*ready, "longhaul-objects: ready");
}
