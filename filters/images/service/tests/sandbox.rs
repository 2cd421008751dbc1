//! The rights that are left to a child process, tried by one.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs::File;
use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::{env, fs, thread};

use longhaul_images::sandbox::{Limits, close};

const PORT: &str = "LONGHAUL_TEST_PORT";

/// Runs in a process of its own, which the next test starts. The filter holds for the thread that closes the sandbox.
#[test]
#[ignore = "a process that gives up its rights; the next test starts it"]
fn inside() {
    let address = format!("127.0.0.1:{}", env::var(PORT).unwrap());
    assert!(File::open("/etc/passwd").is_ok() && TcpStream::connect(&address).is_ok(), "before, all is allowed");
    close(Limits { memory_bytes: 1 << 30, cpu_s: 5 }).unwrap();
    let tried: [(&str, io::Result<()>); 6] = [
        ("read a file", File::open("/etc/passwd").map(drop)),
        ("write a file", File::create("/tmp/longhaul-images-sandbox").map(drop)),
        ("connect", TcpStream::connect(&address).map(drop)),
        ("a socket", UnixStream::pair().map(drop)),
        ("a process", Command::new("/bin/true").spawn().map(drop)),
        ("a thread", thread::Builder::new().spawn(|| ()).map(drop)),
    ];
    for (what, result) in tried {
        println!("\n{what}: {}", if result.is_err() { "refused" } else { "ALLOWED" });
    }
    let much = Vec::<u8>::new().try_reserve_exact(2 << 30).is_err();
    println!("\nmemory: {}", if much { "refused" } else { "ALLOWED" });
}

#[test]
fn a_child_has_no_files_no_network_no_processes_and_little_memory() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = origin.local_addr().unwrap().port();
    let test = ["--ignored", "--exact", "inside", "--nocapture"];
    let output = Command::new(env::current_exe().unwrap()).args(test).env(PORT, port.to_string()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    for what in ["read a file", "write a file", "connect", "a socket", "a process", "a thread", "memory"] {
        assert!(said.contains(&format!("\n{what}: refused")), "{what} in {said}");
    }
}

#[test]
fn the_sandbox_is_closed_before_an_image_is_read() {
    let program = env!("CARGO_BIN_EXE_longhaul-images");
    let mut child = Command::new(program)
        .args(["--worker", "134217728", "5"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let of = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap();
    let (status, limits) = (of("status"), of("limits"));
    drop(child.stdin.take());
    assert!(!child.wait().unwrap().success(), "no task came");
    assert!(status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1"), "{status}");
    let words: Vec<Vec<&str>> = limits.lines().map(|line| line.split_whitespace().collect()).collect();
    for limit in ["Max address space 134217728 134217728 bytes", "Max cpu time 5 5 seconds", "Max file size 0 0 bytes"]
    {
        assert!(words.iter().any(|line| line.join(" ") == limit), "{limit} in {limits}");
    }
}
