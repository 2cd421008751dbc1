"""`cache: { engine: objects }`: a program beside Envoy keeps objects. Its death costs no request, and no client gets what
belongs to another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.boxes.objects_box import WWW, ObjectsBox, Shelf, objects_box


@dataclass
class Shop:
    """A box and its origin."""

    folder: Path
    box: ObjectsBox
    shelf: Shelf


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("objects")
    shelf = Shelf()
    with objects_box(folder, {WWW: shelf.address}) as box:
        yield Shop(folder, box, shelf)
    shelf.origin.close()


def test_an_object_is_served_from_the_cache_at_its_second_request(shop: Shop) -> None:
    path = shop.shelf.put("/second.png", b"p" * 5000)
    first, second = shop.box.get(path), shop.box.get(path)
    assert (first.status, first.body, second.status, second.body) == (200, b"p" * 5000, 200, b"p" * 5000)
    assert shop.shelf.asked(path) == 1
    assert (first.get("age"), second.get("age")) == (None, "0")
