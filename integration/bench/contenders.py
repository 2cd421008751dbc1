"""The contenders: programs on one core each, in front of one origin, that replace the hosts of URLs in different ways.

All of them are child processes on free loopback ports. Each has one worker, keep-alive on both sides, no compression
and no log. The peers' packages are Debian's nginx and apache2-bin.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.envoy import TARGET, bootstrap
from bench.real_pages import RealPage
from harness.boxes.pep import gateway_config, write_config
from harness.host.artifacts import Missing, built, dist
from harness.host.ports import free_ports
from harness.host.processes import Child
from harness.host.usage import cores, cpu_seconds, pinned
from harness.host.waiting import Timeout, wait_for
from harness.net.authority import Authority
from harness.results.comparison import Contender, Track

ORIGIN_ADDRESS = "127.78.0.1"
"""Not 127.0.0.1: the rendered edge treats that as its own address and refuses it as an origin."""

APACHE_MODULES = Path("/usr/lib/apache2/modules")


@dataclass(frozen=True)
class Running:
    """A contender while it runs."""

    name: str
    port: int
    child: Child

    def cpu_seconds(self) -> float:
        """Returns the processor time of all its processes so far."""
        return cpu_seconds(self.child.process.pid)


@dataclass
class CoreTrack(Track):
    """One origin, its pages, the filter under test, and one without work of its own where a bench compares with it."""

    origin: tuple[str, int]
    pages: list[RealPage]
    wasm: Path
    put_back: Path | None = None


Command = list[str | Path]


def nothing_missing() -> str | None:
    """The build makes these contenders, so nothing is missing."""
    return None


@dataclass(frozen=True)
class OneCore(Contender[CoreTrack]):
    """A program on the contender's core, which listens on a loopback port."""

    name: str  # pyrefly: ignore[bad-override] - frozen, unlike that of its base
    command: Callable[[CoreTrack, Path, int], Command]
    """Writes its configuration into a folder, and returns the command that listens on a port."""
    lacks: Callable[[], str | None] = nothing_missing

    def missing(self) -> str | None:
        """Returns why it cannot run: the Debian package that is not installed."""
        return self.lacks()

    @contextmanager
    def started(self, track: CoreTrack) -> Iterator[Running]:
        """Starts it, and waits until it listens."""
        port = free_ports(1)[0]
        command = self.command(track, track.folder_of(self.name), port)
        with Child(pinned(command, cores()[0]), track.folder / f"{self.name}.log") as child:
            wait_until_listening(child, "127.0.0.1", port)
            yield Running(self.name, port, child)


def wait_until_listening(child: Child, address: str, port: int, timeout_s: float = 60.0) -> None:
    """Waits for the first accepted connection. An error shows the log of a program that ended."""

    def accepts() -> bool:
        if child.process.poll() is not None:
            raise Timeout(f"{child.command} ended:\n{child.output()[-3000:]}")
        with socket.socket() as probe:
            return probe.connect_ex((address, port)) == 0

    wait_for(f"{child.command[3]} to listen on port {port}", accepts, timeout_s)


def found(program: str) -> str | None:
    """Returns the path of a peer's program. Services are outside a user's PATH."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")


def lacks(program: str, package: str) -> Callable[[], str | None]:
    """Makes a check that returns an error message if a program is not installed."""
    return lambda: None if found(program) else f"{program} is not installed (Debian package {package})"


# ---------------------------------------------------------------------------------------------------------- nginx


def nginx(folder: Path, http: str) -> Command:
    """nginx in the foreground with one worker. `http` is the content of its http block."""
    program = found("nginx")
    if program is None:
        raise Missing("nginx is not installed (Debian package nginx)")
    temporary = "".join(
        f"  {kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.geteuid() == 0 else ""
    configuration = folder / "nginx.conf"
    configuration.write_text(f"""{user}daemon off;
worker_processes 1;
pid {folder}/pid;
error_log stderr error;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_requests 1000000000;
{temporary}{http}}}
""")
    return [program, "-e", "stderr", "-p", folder, "-c", configuration]


def start_origin(folder: Path, pages: list[RealPage], objects: dict[str, bytes], stack: ExitStack) -> tuple[str, int]:
    """Starts nginx with the pages as text/html and a few objects. Returns its address."""
    port = free_ports(1, ORIGIN_ADDRESS)[0]
    root, own = folder / "root", folder / "origin"
    (root / "pages").mkdir(parents=True)
    (root / "objects").mkdir()
    own.mkdir()
    for page in pages:
        shutil.copyfile(page.file, root / "pages" / page.file.name)
    for name, content in objects.items():
        (root / "objects" / name).write_bytes(content)
    command = nginx(
        own,
        f"""
  types {{ text/html html; image/png png; }}
  open_file_cache max=100;
  server {{ listen {ORIGIN_ADDRESS}:{port}; root {root}; }}
""",
    )
    child = stack.enter_context(Child(pinned(command, cores()[1]), folder / "origin.log"))
    wait_until_listening(child, ORIGIN_ADDRESS, port)
    return ORIGIN_ADDRESS, port


def passing_nginx(track: CoreTrack, folder: Path, port: int, replacement: str = "") -> Command:
    """nginx in front of the origin, which changes nothing by itself."""
    return nginx(
        folder,
        f"""
  upstream origin {{ server {track.origin[0]}:{track.origin[1]}; keepalive 64; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_buffer_size 32k;
      proxy_buffers 8 32k;
      proxy_max_temp_file_size 0;
{replacement}    }}
  }}
""",
    )


def sub_filter(track: CoreTrack, folder: Path, port: int) -> Command:
    """nginx with a literal replacement, which does not parse URLs."""
    replacement = f"      sub_filter_once off;\n      sub_filter http:// https://{TARGET}/;\n"
    return passing_nginx(track, folder, port, replacement)


# --------------------------------------------------------------------------------------------------------- Apache


def lacks_apache() -> str | None:
    """Returns an error message if Apache is missing, or the module that some builds lack."""
    if not (APACHE_MODULES / "mod_proxy_html.so").exists():
        return f"mod_proxy_html.so is not in {APACHE_MODULES} (Debian package apache2-bin)"
    return lacks("apache2", "apache2-bin")()


def mod_proxy_html(track: CoreTrack, folder: Path, port: int) -> Command:
    """Apache with a parser (libxml2) that writes its own markup. It changes only links that load something."""
    modules = "".join(
        f"LoadModule {name}_module {APACHE_MODULES}/mod_{name}.so\n"
        for name in ("mpm_event", "authz_core", "filter", "proxy", "proxy_http", "xml2enc", "proxy_html")
    )
    user = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
    configuration = folder / "apache.conf"
    configuration.write_text(f"""{modules}{user}ServerRoot {folder}
DefaultRuntimeDir {folder}
PidFile {folder}/pid
ServerName bench.test
ErrorLog /dev/stderr
LogLevel error
Listen 127.0.0.1:{port}
StartServers 1
ServerLimit 1
ThreadsPerChild 32
MaxRequestWorkers 32
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
ProxyRequests Off
ProxyPreserveHost On
ProxyPass / http://{track.origin[0]}:{track.origin[1]}/
ProxyHTMLEnable On
ProxyHTMLURLMap http:// https://{TARGET}/
ProxyHTMLLinks img src
ProxyHTMLLinks script src
ProxyHTMLLinks link href
ProxyHTMLLinks iframe src
ProxyHTMLLinks frame src
ProxyHTMLLinks embed src
ProxyHTMLLinks object data
ProxyHTMLLinks input src
ProxyHTMLLinks body background
""")
    return [found("apache2") or "apache2", "-D", "FOREGROUND", "-f", configuration]


# ---------------------------------------------------------------------------------------------------------- Envoy


def simple_envoy(track: CoreTrack, folder: Path, port: int, module: Path | None, engine: str = "wasm") -> Command:
    """Envoy with one listener and one cluster."""
    configuration = folder / "envoy.json"
    configuration.write_text(bootstrap(port, track.origin, module, engine))
    return [*envoy_command(), "-c", configuration]


def envoy_command() -> list[str | Path]:
    """Envoy with one worker that logs only errors."""
    named = os.environ.get("LONGHAUL_ENVOY")
    envoy = named if named and Path(named).exists() else built("envoy")
    return [envoy, "--concurrency", "1", "--disable-hot-restart", "-l", "error"]


def rendered_edge(track: CoreTrack, folder: Path, port: int, programs: Path | None = None, **changes: str) -> Command:
    """Renders a common configuration: content encodings, cache and guard around the filter.

    `programs` is the folder of another build. `changes` are further keys.
    """
    wasm = programs / track.wasm.name if programs else track.wasm
    tls, dns, metrics = free_ports(3)
    (folder / "cache").mkdir()  # `longhaul run` makes it; without it Envoy starts and caches nothing
    certificate = Authority(folder).issue(TARGET).as_dict()
    config = write_config(folder, gateway_config(
        folder, certificate,
        proxy={"addresses": ["127.0.0.1"], "secure_names": [TARGET]},
        listen={
            "http": f"127.0.0.1:{port}", "tls": f"127.0.0.1:{tls}", "dns": f"127.0.0.1:{dns}",
            "metrics": f"127.0.0.1:{metrics}", "intercept": "none",
        },
        upstream={
            "resolvers": [f"{ORIGIN_ADDRESS}:{dns}"], "ports": [80, 443], "allow_private": [f"{ORIGIN_ADDRESS}/32"],
            "map": {page.host: f"{track.origin[0]}:{track.origin[1]}" for page in track.pages},
        },
        rewrite={"level": "safe", "target": "https"},
        **changes,
    ), steered=[page.host for page in track.pages])  # fmt: skip
    return rendered(config, folder / "rendered", programs or dist(), LONGHAUL_URL_REWRITE=str(wasm))


def rendered(config: Path, out: Path, programs: Path, **environment: str) -> Command:
    """Renders a configuration, and returns the command of its Envoy and of the program that caches objects."""
    command = [str(programs / "longhaul"), "render", str(config), "--out", str(out)]
    variables = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=variables)
    if done.returncode:
        raise RuntimeError(f"longhaul render refused the bench's configuration:\n{done.stderr}{done.stdout}")
    envoy = [*envoy_command(), "-c", out / "bootstrap.yaml"]
    objects, cache = programs / "longhaul-objects", out / "objects.json"
    if not cache.exists():
        return envoy
    # In one session, so that the time of both counts.
    both = f"{shlex.join([str(objects), str(cache)])} & exec {shlex.join(map(str, envoy))}"
    return ["sh", "-c", both]


EDGE = OneCore("edge", partial(rendered_edge, engine="wasm"))
"""The rendered edge as a contender, with wasm filters."""
NATIVE_EDGE = OneCore("native_edge", partial(rendered_edge, engine="native"))
"""The same edge with native filters."""

PLAIN_ENVOY = OneCore("plain_envoy", lambda track, folder, port: simple_envoy(track, folder, port, None))
"""Envoy without the filter: it replaces nothing."""
NGINX = OneCore("nginx", passing_nginx, lacks("nginx", "nginx"))
"""nginx as a proxy that changes nothing: what another program needs for the same work."""
FILTER = OneCore("filter", lambda track, folder, port: simple_envoy(track, folder, port, track.wasm))
"""Envoy with the filter and nothing else."""
NATIVE_FILTER = OneCore(
    "native_filter",
    lambda track, folder, port: simple_envoy(track, folder, port, built("longhaul_filters.so"), "native"),
)
"""The same filter as machine code in Envoy's process."""

PUT_BACK = OneCore("put_back", lambda track, folder, port: simple_envoy(track, folder, port, track.put_back))
"""Envoy with a filter that puts pages back unchanged, and nothing else."""

ALL = (
    OneCore("sub_filter", sub_filter, lacks("nginx", "nginx")),
    OneCore("mod_proxy_html", mod_proxy_html, lacks_apache),
    PLAIN_ENVOY,
    PUT_BACK,
    FILTER,
    NATIVE_FILTER,
    EDGE,
    NATIVE_EDGE,
)
"""In the order of the table. A peer may be absent, but Longhaul's own may not."""
