"""The operator's guide: it builds, and its links work. Its quick starts lead from a package to a page on fresh
machines."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.boxes.pep import command
from harness.delivery.packages import packages
from harness.delivery.roots import fresh_debian
from harness.delivery.walkthrough import BLOCK, Client, Machine, Step, Typist, configuration, steps, typed
from harness.host.artifacts import REPOSITORY, Missing
from harness.host.scripts import load_tool
from harness.lab.line import NEAR_DEVICE, Line
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.topology import CLIENT, PROXY, RESOLVER, Topology, site_addresses
from harness.origins.program import Origins, Site

GUIDE = REPOSITORY / "docs" / "src"
QUICK_STARTS = ("quick-start-pair.md", "quick-start-one-box.md")
GROUND = "198.51.100.40"
"""The ground's address in the quick start."""
HOME = "/root"

WWW, IMG = "www.example.org", "img.example.org"
PAGE = f'<!doctype html><title>A page</title><img src="http://{IMG}/picture.png" alt="">\n'

MOST_COMMANDS, MOST_YAML = 11, 12
"""From a package on the operator's computer to a page through a pair: three installations with two copies, the pair
with four commands of its own, and the page."""

links = load_tool("links")


class Targets(HTMLParser):
    """The links and the anchors of a built page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if tag == "a" and name == "href" and value and links.is_local(value):
                self.links.add(value)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Targets]:
    """Every page of the built guide. `tools/links` checks the sources in each `make lint`."""
    mdbook = next((REPOSITORY / "target" / "tools").glob("mdbook-*"), None)
    if mdbook is None:
        raise Missing("mdBook is not in target/tools: run `make docs` first")
    built = tmp_path_factory.mktemp("guide")
    done = subprocess.run(
        [mdbook, "build", REPOSITORY / "docs", "--dest-dir", built], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not re.search(r"\b(WARN|ERROR)\b", done.stderr), done.stderr
    return {path: Targets(path.read_text()) for path in built.rglob("*.html")}


@pytest.mark.long
def test_every_link_of_the_built_guide_leads_to_a_page_and_a_heading(book: dict[Path, Targets]) -> None:
    broken = []
    for path, page in book.items():
        for link in page.links:
            file, _, fragment = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            if target not in book or (fragment and fragment not in book[target].anchors):
                broken.append(f"{path.name}: {link}")
    assert not broken


@pytest.mark.long
def test_the_reference_of_the_guide_holds_every_key_and_documents_of_the_repository(book: dict[Path, Targets]) -> None:
    text = {path.name: path.read_text() for path in book}
    keys = (REPOSITORY / "envoy-config" / "config" / "src" / "keys" / "table.rs").read_text()
    for key in ("link.rtt", "split.peer", "dns.domains"):
        assert f'"{key}"' in keys
        assert f"<code>{key.removeprefix('split.')}</code>" in text["keys.html"]
    assert "<code>longhaul_url_rewrite_pages_total</code>" in text["metrics.html"]
    assert "{{#include" not in "".join(text.values())


@pytest.fixture
def repository(folder: Path) -> Path:
    """A small repository with a guide."""
    (folder / "docs" / "src").mkdir(parents=True)
    (folder / "docs" / "src" / "SUMMARY.md").write_text("[One](one.md)\n")
    (folder / "docs" / "src" / "one.md").write_text("# One\n\n[Two](../../TWO.md#a-heading)\n")
    (folder / "TWO.md").write_text("# Two\n\n## A heading\n")
    return folder


def found_in(root: Path) -> list[str]:
    documents = links.files_of(root, (".md",))
    tests = links.untested(root, documents, links.files_of(root, links.SOURCES))
    return [*links.broken(root, documents), *tests, *links.unlisted(root / "docs" / "src")]


def test_a_link_to_a_file_or_a_heading_that_does_not_exist_is_found(repository: Path) -> None:
    assert found_in(repository) == []
    two = repository / "TWO.md"
    two.write_text("# Two\n\n```\n## A heading\n[in code](none.md)\n```\n\n[gone](none.md) and [there](#two)\n")
    (repository / "docs" / "src" / "orphan.md").write_text("# Nobody lists this\n")
    assert found_in(repository) == [
        "TWO.md:8: error: no such file: none.md",
        "docs/src/one.md:3: error: TWO.md has no heading #a-heading",
        "orphan.md: error: docs/src/SUMMARY.md does not list this page",
    ]


def test_a_test_that_a_document_names_and_no_source_has_is_found(repository: Path) -> None:
    (repository / "tests").mkdir()
    (repository / "tests" / "guard.rs").write_text("fn a_port_is_refused() {}\n")
    (repository / "tests" / "test_pair.py").write_text("def test_a_pair() -> None: ...\n")
    two = repository / "TWO.md"
    known = (
        "`guard::a_port_…`, `run::guard::a_port_is_refused`, `tests/test_pair.py::test_a_pair`, `test_pair.py::test_…`"
    )
    two.write_text(f"# Two\n\n## A heading\n\n{known} `Guard::a_port`\n")
    assert found_in(repository) == []
    two.write_text("# Two\n\n## A heading\n\n`guard::a_port_is`\n`test_guard.py::a_port_…`\n`pair::a_port_…`\n")
    assert found_in(repository) == [
        "TWO.md:5: error: no such test: `guard::a_port_is`",
        "TWO.md:6: error: no such test: `test_guard.py::a_port_…`",
        "TWO.md:7: error: no such test: `pair::a_port_…`",
    ]


def test_a_document_in_the_guide_links_to_pages_and_to_nothing_outside_of_it(repository: Path) -> None:
    guide = repository / "docs" / "src"
    two = repository / "TWO.md"
    two.write_text(
        "# Two\n\n[One](docs/src/one.md), [code](src/main.rs), `[as](it.md)`, [site](https://example.org/)\n"
    )
    page = guide / "two.md"
    book = links.Book(guide, {two: page})
    assert book.chapter(page, "{{#include ../../TWO.md}}\n") == (
        "# Two\n\n[One](one.md), code, `[as](it.md)`, [site](https://example.org/)\n"
    )
    assert book.chapter(guide / "one.md", "[Two](../../TWO.md#two)\n") == "[Two](two.md#two)\n"


def test_a_block_that_belongs_nowhere_is_an_error() -> None:
    fine = "<!-- on: ship -->\n```sh\n# a comment\nlonghaul \\\n  status\n```\n"
    [step] = steps(fine)
    assert step == Step(2, ("ship",), ("longhaul status",))
    [step] = steps(fine.replace("on: ship", "on: ship; Ubuntu"))
    assert step == Step(2, ("ship",), ("longhaul status",), only="Ubuntu")
    with pytest.raises(ValueError, match="line 8: no comment"):
        steps(f"{fine}\n```sh\nlonghaul check\n```\n")


def test_the_quick_starts_of_the_readme_are_those_of_the_guide() -> None:
    known = [step for page in QUICK_STARTS for step in steps((GUIDE / page).read_text())]
    commands, files = {command for step in known for command in step.commands}, {step.content for step in known}
    readme = (REPOSITORY / "README.md").read_text()
    sections = re.findall(r"^## [^\n]* in five minutes$(.*?)(?=^## )", readme, re.M | re.S)
    assert len(sections) == len(QUICK_STARTS)
    for section in sections:
        blocks = list(BLOCK.finditer(section))
        assert blocks
        for block in blocks:
            assert block["body"] in files or set(typed(block["body"])) <= commands, block["body"]


CALL = re.compile(r"(?:^ *|`|[|;] )longhaul (?P<command>(?:pair )?[a-z]+)(?P<rest>(?: [^\s`|;]+)*)", re.M)
CODE = re.compile(r"^ *```sh\n.*?^ *```$|`[^`\n]+`", re.M | re.S)


def test_each_command_and_option_that_the_guide_names_exists() -> None:
    pages = [*GUIDE.glob("*.md"), REPOSITORY / "deploy" / "OPERATING.md", REPOSITORY / "README.md"]
    calls: dict[str, set[str]] = {}
    for page in pages:
        for code in CODE.findall(page.read_text()):
            for call in CALL.finditer(re.sub(r" *\\\n *", " ", code)):
                options = calls.setdefault(call["command"], set())
                options.update(re.findall(r"(?<=\s)--[a-z-]+", call["rest"]))
    assert {"check", "explain", "pair init", "status"} <= calls.keys()
    for name, options in calls.items():
        shown = command(*name.split(), "--help")
        assert shown.returncode == 0, f"`longhaul {name}`: {shown.stderr}"
        unknown = {one for one in options if not re.search(rf"^ +(?:-\w, )?{one}\b", shown.stdout, re.M)}
        assert not unknown, f"`longhaul {name}` has no {unknown}"


RECIPE = re.compile(r"<!-- config: (?P<role>\w+) -->\n```yaml\n(?P<text>.*?)^```$", re.M | re.S)


def test_check_accepts_every_recipe(folder: Path) -> None:
    pairs = {"ship": ("ship", "ground.example.org"), "plane": ("plane", GROUND), "tunnel": ("ship", "10.9.0.2")}
    for home, (name, ground) in pairs.items():
        made = command("pair", "init", name, f"{ground}:8443", "--dir", folder / home)
        assert made.returncode == 0, made.stderr
    recipes = list(RECIPE.finditer((GUIDE / "gateways.md").read_text()))
    assert [recipe["role"] for recipe in recipes] == ["remote", "remote", "remote", "ground", "edge"]
    homes = ("ship/ship", "plane/plane", "tunnel/ship", "tunnel/ground", "cell")
    for recipe, home in zip(recipes, homes, strict=True):
        place = folder / home
        place.mkdir(parents=True, exist_ok=True)
        (place / "domains.txt").write_text("example.org\n")
        (place / "longhaul.yaml").write_text(recipe["text"])
        checked = command("check", place / "longhaul.yaml")
        assert checked.returncode == 0, checked.stderr
        assert f"role {recipe['role']}" in checked.stdout


def test_the_quick_start_of_a_pair_leads_from_a_package_to_a_page(root_bed: None, folder: Path) -> None:  # noqa: ARG001
    with Line(folder, "geo", seed=1) as line, ExitStack() as stack:
        line.gateway.ip("address", "add", f"{GROUND}/32", "dev", "lo")
        rename(line.near, NEAR_DEVICE, "lan0")
        places = ("desk", stack.enter_context(Namespace("desk"))), ("ground", line.gateway), ("ship", line.near)
        machines = {name: stack.enter_context(fresh_machine(folder / name, namespace)) for name, namespace in places}
        hosts = {f"root@{GROUND}": "ground", "root@ship": "ship"}
        with origins(folder, line) as there:
            walked = walk("quick-start-pair.md", folder, line, machines, hosts)
            assert asked_by(there) == {"198.51.100.1"}
        page_at = walked.first_page
        commands = sum(len(step.commands) * len(step.machines) for step in walked.steps[: page_at + 1])
        assert commands <= MOST_COMMANDS
        ends = machines["ground"], machines["ship"]
        written = [machine.root.path("/etc/longhaul/longhaul.yaml").read_text() for machine in ends]
        assert sum(len(configuration(text)) for text in written) <= MOST_YAML
        assert walked.page == PAGE


def test_the_quick_start_of_one_box_leads_from_a_package_to_a_rewritten_page(
    root_bed: None,  # noqa: ARG001
    folder: Path,
) -> None:
    with Topology(folder) as topology, fresh_machine(folder / "gateway", topology.gateway) as gateway:
        name, certificate = "pep.example.net", Authority(folder).issue("pep.example.net")
        for source in (certificate.cert, certificate.key):
            shutil.copy(source, gateway.root.path(f"{HOME}/pep{source.suffix}"))
        with origins(folder, topology, {name: [PROXY]}) as there:
            walked = walk("quick-start-one-box.md", folder, topology, {"gateway": gateway}, {})
            assert asked_by(there) == {"198.51.100.1"}
        assert walked.page == PAGE.replace(f"http://{IMG}/", f"https://{name}/{IMG}/")


class Walked:
    """The outcome of typing a page of the guide."""

    def __init__(self, all_steps: list[Step], page: str) -> None:
        self.steps = all_steps
        self.page = page

    @property
    def first_page(self) -> int:
        """The number of the step in which a client loads a page."""
        return next(number for number, step in enumerate(self.steps) if step.machines == ("client",))


def walk(
    name: str, folder: Path, topology: Topology, machines: Mapping[str, Machine], hosts: Mapping[str, str]
) -> Walked:
    """Types a page of the guide from its top to its end."""
    home = folder / "home"
    home.mkdir()
    client = Client(topology.clients.inside([]), home, {"CURL_CA_BUNDLE": str(folder / "ca.pem")})
    desk = Typist({**machines, "client": client}, hosts)
    all_steps = [step for step in steps((GUIDE / name).read_text()) if step.only in ("", "Debian")]
    printed: dict[str, str] = {}
    for step in all_steps:
        if step.path:
            machines[step.machines[0]].root.path(step.path).write_text(step.content)
        for machine in step.machines:
            for line in step.commands:
                if step.printed_by:
                    said = next(text for earlier, text in printed.items() if earlier.startswith(step.printed_by))
                    assert f"  {line}\n" in said, f"line {step.line}: `{step.printed_by}` prints no such command"
                printed[line] = desk.type(machine, line)
    return Walked(all_steps, (home / "page.html").read_text())


@contextmanager
def fresh_machine(folder: Path, namespace: Namespace) -> Iterator[Machine]:
    """A Debian as it comes, with the package in the folder of its user root."""
    package = packages().file("deb")
    folder.mkdir()
    with fresh_debian(folder / "root", namespace) as root:
        shutil.copy(package, root.path(HOME))
        with Machine(root, folder) as machine:
            yield machine


@contextmanager
def origins(folder: Path, topology: Topology, records: Mapping[str, list[str]] | None = None) -> Iterator[Origins]:
    """Two hosts: a page, and its picture."""
    authority = Authority(folder)
    content = folder / "site"
    content.mkdir()
    (content / "index.html").write_text(PAGE)
    www, img = (address for _, address in zip(range(2), site_addresses(), strict=False))
    site = Site(dns=[f"{RESOLVER}:53"], https_port=443, ca=authority.files.as_dict(), records=dict(records or {}))
    site.hosts = {WWW: {"address": www, "root": str(content)}, IMG: {"address": img, "generate": True}}
    with Origins(site.write(folder / "site.json"), folder, topology.internet) as running:
        yield running


def asked_by(there: Origins) -> set[str]:
    """The addresses from which the page was requested. A client's own would be a page without Longhaul."""
    there.wait_for_request(host=WWW)
    found = {one["remote"].rpartition(":")[0] for one in there.requests(host=WWW)}
    assert CLIENT not in found
    return found


def rename(namespace: Namespace, device: str, name: str) -> None:
    """Gives a device another name. Its addresses stay, and the kernel makes its routes again."""
    for change in (("down",), ("name", name), ("up",)):
        namespace.ip("link", "set", device if change != ("up",) else name, *change)
