"""The servers of client programs, beside the origins' DNS: Apache with the settings that many sites have, a gRPC server
and a WebSocket server."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from harness.host.artifacts import Missing
from harness.host.processes import Child
from harness.net.authority import KeyFiles
from harness.net.namespaces import Namespace

HERE = Path(__file__).resolve().parent
DOMAINS = {"steered": "example.org", "intercepted": "example.net"}
"""By the way to the box. Names below the first are on its list, and those below the second are not."""
SERVERS = {"files": "203.0.113.10", "other_host": "203.0.113.10", "grpc": "203.0.113.11", "sockets": "203.0.113.12"}
"""The address of each host, which exists in both domains."""
MODULES = Path("/usr/lib/apache2/modules")

CONFIG = """
ServerRoot {home}
ServerName files.example.org
PidFile {home}/pid
ErrorLog {home}/error.log
User nobody
Group nogroup
Listen {address}:80
Listen {address}:443 https
Protocols h2 h2c http/1.1
DocumentRoot {www}
FileETag MTime Size
TypesConfig /dev/null
AddType text/plain .txt
AddType application/json .json
AddType text/html .html
AddType video/mp4 .mp4
AddType application/x-tar .tar
AddType application/vnd.debian.binary-package .deb
# The manual of Apache has this line.
AddEncoding gzip .gz .tgz
DirectoryIndex index.html
DavLockDB {home}/locks
<Directory {www}>
  Require all granted
</Directory>
<Directory {dav}>
  Require all granted
  Dav on
</Directory>
Alias /dav {dav}
ScriptSock {home}/cgi.sock
SetEnv GIT_PROJECT_ROOT {git}
SetEnv GIT_HTTP_EXPORT_ALL 1
SetEnv GIT_CONFIG_COUNT 1
SetEnv GIT_CONFIG_KEY_0 safe.directory
SetEnv GIT_CONFIG_VALUE_0 *
ScriptAlias /git/ /usr/lib/git-core/git-http-backend/
<Directory /usr/lib/git-core>
  Require all granted
</Directory>
<VirtualHost {address}:443>
  ServerName files.example.org
  SSLEngine on
  SSLCertificateFile {cert}
  SSLCertificateKeyFile {key}
</VirtualHost>
"""
LOADED = (
    "mpm_event", "authz_core", "mime", "dir", "alias", "env", "cgid", "dav", "dav_fs", "http2", "ssl", "setenvif",
    "socache_shmcb",
)  # fmt: skip


def names() -> dict[str, str]:
    """Returns every name with its address."""
    return {f"{host}.{domain}": address for host, address in SERVERS.items() for domain in DOMAINS.values()}


def need_apache() -> None:
    """Raises `Missing` without Debian's Apache."""
    if shutil.which("apache2") is None or not MODULES.is_dir():
        raise Missing("needs the command apache2 (Debian package apache2-bin)")


@contextmanager
def serving(folder: Path, www: Path, internet: Namespace, certificate: KeyFiles, runs: Sequence[str]) -> Iterator[None]:
    """Runs all servers in a namespace. Each run of a program has a folder and a repository that it may write to."""
    home = folder / "apache"
    dav, git = home / "dav", home / "git"
    home.mkdir(mode=0o755)
    for run in runs:
        (dav / run).mkdir(parents=True)
        shutil.copytree(www / "git" / "sample.git", git / run / "sample.git")
    for path in (home, *home.rglob("*")):
        shutil.chown(path, "nobody", "nogroup")
    config = home / "apache.conf"
    modules = "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in LOADED)
    config.write_text(
        modules
        + CONFIG.format(
            home=home, www=www, dav=dav, git=git, address=SERVERS["files"], cert=certificate.cert, key=certificate.key
        )
    )
    python = [sys.executable]
    with ExitStack() as stack:
        for name, command in (
            ("apache", ["apache2", "-f", config, "-D", "FOREGROUND"]),
            ("grpc", [*python, HERE / "grpc_server.py", f"{SERVERS['grpc']}:80"]),
            ("sockets", [*python, HERE / "socket_server.py", SERVERS["sockets"]]),
        ):
            child = stack.enter_context(Child(internet.inside(command), home / f"{name}.log"))
            if name != "apache":
                child.wait_for_output("ready")
        yield
