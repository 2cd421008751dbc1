"""The programs: for each its commands, and what of their results must be the same with Longhaul and without it."""

from __future__ import annotations

from dataclasses import dataclass, field

from .content import PARTIAL_BYTES

ARCHIVE = "http://files.$D/archive.tar.gz"
"""The server labels it with `Content-Encoding: gzip`."""
LARGE = "http://files.$D/large.tar.gz"
SMALL = "http://files.$D/small.txt"
GUIDE = "docs/src/troubleshooting.md, messages that Envoy refuses"
CURL = "curl -sS -o kept/out -w %{http_code}"
LITMUS = "litmus -k http://files.$D/dav/$RUN/ 2>&1 | grep -aE '[0-9]+ tests run|FAIL|SKIPPED' | tr '\\r' '\\n'"
S_CLIENT = "openssl s_client -connect files.$D:443 -CAfile $CA -verify_return_error"
REQUEST = "printf 'GET /small.txt HTTP/1.1\\r\\nHost: files\\r\\nConnection: close\\r\\n\\r\\n'"


@dataclass(frozen=True)
class Program:
    """One row. Its commands run in a shell, in an empty folder. Standard output, the exit status and the files that are
    left in the folder `kept` are compared.

    The shell has `$D`, the domain, `$CA`, the authority's certificate, and `$WWW`, the served files. `$RUN` names a
    folder of the server that only this run writes to. `$PY` and `$HERE` are Python and the folder of its programs.
    `$JAVA` is the folder of the compiled Java program. `fields FILE` prints those header fields of a dump that
    describe the body.
    """

    name: str
    commands: tuple[str, ...]
    """The programs that the machine needs."""
    script: str
    proof: str
    """Is in what a run without Longhaul leaves, which has the exit status, the files and the output. A program that
    fails everywhere proves nothing."""
    long: bool = False
    """For `make test-long` alone."""
    steered: bool = True
    """False for what only the dialled address can tell: a client that was sent to the box by DNS dialled the box."""
    timeout_s: float = 60.0
    documented: dict[str, str] = field(default_factory=dict)
    """The ways on which it differs, by a word of the way, with the place that documents it. It must differ there: a row
    loses the entry together with the fault."""

    def is_documented(self, way: str) -> bool:
        """Returns whether it must differ on a way."""
        return any(word in way for word in self.documented)


PROGRAMS = [
    # ------------------------------------------------------------------------------------------------- downloads
    Program(
        "curl a labelled archive", ("curl",),
        f"curl -sS -D head -o kept/out {ARCHIVE}; echo $?; fields head",
        proof="content-encoding: gzip",
    ),
    Program(
        "curl a labelled archive, no encoding accepted", ("curl",),
        f"curl -sS -D head -o kept/out -H 'Accept-Encoding: identity' {ARCHIVE}; echo $?; fields head",
        proof="content-encoding: gzip",
    ),
    Program(
        "curl ranges", ("curl",),
        f"for r in 0-999 1000-1999 -500 999999999-; do curl -sS -D head -r $r {ARCHIVE} | sha256sum; fields head; done",
        proof="content-range: bytes 1000-1999/",
    ),
    Program(
        "curl ranges of a file without a label", ("curl",),
        "for r in 0-99 100-199 -50; do curl -sS -D head -r $r http://files.$D/noise.bin | sha256sum; fields head; done",
        proof="content-range: bytes 100-199/",
    ),
    Program(
        "curl resumes", ("curl",),
        f"head -c {PARTIAL_BYTES} $WWW/archive.tar.gz > kept/out; curl -sS -C - -o kept/out {ARCHIVE}; echo $?",
        proof="out 1168",
    ),
    Program("curl decodes", ("curl",), f"curl -sS --compressed -o kept/out {ARCHIVE}", proof="out 778240 "),
    Program(
        "curl text, encoded", ("curl",), "curl -sS --compressed -o kept/out http://files.$D/large.json",
        proof="out 1222642 ",
    ),
    Program("curl HEAD", ("curl",), f"curl -sSI {ARCHIVE} > head; fields head", proof="content-length: 1168"),
    Program("curl OPTIONS *", ("curl",), f"{CURL} -X OPTIONS --request-target '*' http://files.$D/", proof="200",
        documented={"": GUIDE},
    ),
    Program("curl HTTP/1.0", ("curl",), f"{CURL} -0 {SMALL}", proof="out 520 "),
    Program(
        "HTTP/1.0 without Host", (),
        "exec 3<>/dev/tcp/files.$D/80; printf 'GET /small.txt HTTP/1.0\\r\\n\\r\\n' >&3; grep -ac 'a small text' <&3",
        proof="40", steered=False,
    ),
    # It does not try the next address, as gRPC does.
    Program(
        "curl h2c", ("curl",), f"{CURL} --http2-prior-knowledge {SMALL}", proof="out 520 ",
        documented={"edge steered": GUIDE},
    ),
    Program("curl Upgrade: h2c", ("curl",), f"{CURL} --http2 {SMALL}", proof="out 520 "),
    Program(
        "curl uploads", ("curl",),
        "head -c 400000 $WWW/large.tar.gz > up; url=http://files.$D/dav/$RUN/up\n"
        "for expect in '100-continue' ''; do curl -sS -T up -H \"Expect: $expect\" -o /dev/null -w '%{http_code}\\n'"
        " $url; curl -sS -o kept/out$expect $url; done",
        proof="out 400000 ",
    ),
    Program(
        "curl https", ("curl",), f"{CURL} --cacert $CA -w '%{{http_version}}\\n' https://files.$D/large.tar.gz",
        proof="out 5001720 ",
    ),
    Program(
        "curl, a name with an underscore", ("curl",),
        f"for s in http https; do {CURL} -k $s://other_host.$D/small.txt; done",
        proof="200200",
    ),
    Program(
        "curl https, a name that only the client knows", ("curl", "getent"),
        "address=$(getent hosts files.$D | cut -d' ' -f1)\n"
        f"{CURL} -k --resolve printer.local:443:$address https://printer.local/small.txt",
        proof="200", steered=False,
    ),
    Program(
        "curl http, a name that only the client knows", ("curl", "getent"),
        "address=$(getent hosts files.$D | cut -d' ' -f1)\n"
        f"{CURL} --resolve printer.local:80:$address http://printer.local/small.txt",
        proof="200", steered=False, documented={"": GUIDE},
    ),
    Program("wget", ("wget",), f"wget -q -P kept {ARCHIVE} {LARGE}", proof="archive.tar.gz 1168"),
    Program(
        "wget -c", ("wget",),
        f"head -c {PARTIAL_BYTES} $WWW/archive.tar.gz > kept/archive.tar.gz; wget -q -t 3 -c -P kept {ARCHIVE}",
        proof="archive.tar.gz 1168",
    ),
    Program(
        "aria2c", ("aria2c",),
        f"aria2c -q --no-conf -x 4 -s 4 -k 1M -d kept {LARGE}; aria2c -q --no-conf -d kept {ARCHIVE}",
        proof="large.tar.gz 5001720 ",
    ),
    # ---------------------------------------------------------------------------------------------- package managers
    Program(
        "apt", ("apt-get",),
        "mkdir -p etc/apt.conf.d etc/preferences.d lists/partial cache/archives/partial; touch status\n"
        "echo \"deb [trusted=yes] http://files.$D/debian ./\" > etc/sources.list\n"
        "export APT_CONFIG=$PWD/conf; cat > conf <<END\n"
        "Dir::Etc \"$PWD/etc\"; Dir::Etc::parts \"$PWD/etc/apt.conf.d\"; Dir::State::lists \"$PWD/lists\";\n"
        "Dir::State::status \"$PWD/status\"; Dir::Cache \"$PWD/cache\"; APT::Sandbox::User \"root\";\n"
        "Acquire::Languages \"none\"; Acquire::Retries \"0\";\n"
        "END\n"
        "apt-get -qq update > log 2>&1; echo $?; grep -ao 'Hash Sum mismatch' log | head -1\n"
        "cd kept && apt-get -qq download sample > ../log 2>&1; echo $?",
        proof="sample_1.0_all.deb ",
    ),
    Program(
        "pip", (),
        "$PY -m pip download -q --no-deps --no-cache-dir --disable-pip-version-check --retries 0 -d kept "
        "--trusted-host files.$D --index-url http://files.$D/simple/ sample 2> log; echo $?",
        proof="sample-1.0.tar.gz ",
    ),
    Program(
        "git clone, over http and https", ("git",),
        "git clone -q http://files.$D/git/$RUN/sample.git one && git -C one rev-parse HEAD && git -C one fsck\n"
        "git -c http.sslCAInfo=$CA clone -q --depth 1 https://files.$D/git/$RUN/sample.git two\n"
        "git -C two rev-parse HEAD",
        proof="exit 0",
    ),
    Program(
        "git push", ("git",),
        "git clone -q http://files.$D/git/$RUN/sample.git one && cd one && head -c 300000 $WWW/large.tar.gz > more\n"
        "export GIT_AUTHOR_DATE=2025-11-02T00:00:00Z GIT_COMMITTER_DATE=2025-11-02T00:00:00Z\n"
        "git add more && git -c user.name=N -c user.email=n@example.org commit -qm more\n"
        "git -c http.postBuffer=100000 push -q origin HEAD:refs/heads/pushed 2> ../log; echo $?\n"
        "git ls-remote http://files.$D/git/$RUN/sample.git refs/heads/pushed",
        proof="refs/heads/pushed",
    ),
    # ------------------------------------------------------------------------------------------- other protocols
    Program(
        "ffmpeg seeks in a video", ("ffmpeg",),
        "ffmpeg -v error -ss 1 -i http://files.$D/video.mp4 -f framemd5 -bitexact - | grep -v '^#' > kept/frames",
        proof="frames 2000 ",
    ),
    Program("gRPC", (), "$PY $HERE/grpc_client.py grpc.$D:80", proof="trailers b'cba' 3", timeout_s=180.0,
    ),
    Program("WebSocket", (), "$PY $HERE/socket_client.py ws://sockets.$D/", proof="at once"),
    Program("litmus, files", ("litmus",), f"TESTS='basic copymove http' {LITMUS}", proof="16 passed"),
    Program(
        "litmus, properties and locks", ("litmus",), f"TESTS='props locks' {LITMUS}", proof="41 passed", long=True
    ),
    Program(
        "openssl s_client", ("openssl",),
        f"{S_CLIENT} -servername files.$D < /dev/null 2> log | openssl x509 -noout -fingerprint -sha256\n"
        f"{REQUEST} | {S_CLIENT} -servername files.$D -quiet 2> log | grep -c 'a small text'",
        proof="40",
    ),
    Program(
        "openssl s_client, kinds of hello", ("openssl",),
        "for options in -tls1_2 '-alpn h2,http/1.1' '-servername other_host.'$D; do\n"
        f"{S_CLIENT} $options < /dev/null > log 2>&1; echo $?; grep -aE '^(New|ALPN)|Verification' log; done",
        proof="ALPN protocol: h2",
    ),
    Program(
        "openssl s_client without a name", ("openssl",),
        f"{S_CLIENT} -noservername < /dev/null 2> log | openssl x509 -noout -fingerprint -sha256",
        proof="Fingerprint", steered=False,
    ),
    Program(
        "Java", ("java", "javac"),
        f"java -XX:TieredStopAtLevel=1 -cp $JAVA Get {SMALL} 2> log; echo $?; grep -a Exception log",
        proof="upgrade to TLS 200",
    ),
]  # fmt: skip
