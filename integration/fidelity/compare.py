"""The differences between a page without Longhaul and with it. Parts that differ without Longhaul anyway are left
out."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from PIL import Image, ImageChops, ImageFilter

from .observe import Observation

VISIBLE = 24
"""The least difference of a colour channel, of 255, that counts. Smaller ones come from antialiasing."""


@dataclass(frozen=True)
class Difference:
    """One difference with Longhaul."""

    dimension: str
    what: str
    """Begins with `only without:` or `only with:`."""


@dataclass
class Verdict:
    """The outcome for one page at one level."""

    differences: list[Difference] = field(default_factory=list)
    unstable: dict[str, str] = field(default_factory=dict)
    """Dimensions in which two loads of one kind differ from each other, each with an example."""
    picture: Image.Image | None = None
    """Pixels that differ, white on black, where any do."""


def compare(without: Sequence[Observation], ours: Sequence[Observation]) -> Verdict:
    """Judges a page by its loads without Longhaul and with it, at least one of each.

    A difference between two loads of one kind says nothing about Longhaul. It is left out, as unstable.
    """
    verdict = Verdict()
    upgraded = set().union(*(load.upgraded for load in [*without, *ours]))
    for dimension in without[0].dimensions:
        theirs = [_as_the_browser_asks(load.dimensions[dimension], upgraded) for load in without]
        mine = [_as_the_browser_asks(load.dimensions[dimension], upgraded) for load in ours]
        shaky = _shaky(theirs) | _shaky(mine)
        if shaky:
            verdict.unstable[dimension] = f"not in every load: {min(shaky)}"
        shapes = {_shape(text) for text in shaky}
        one, other = theirs[0], mine[0]
        for text in sorted(one | other):
            if one[text] != other[text] and text not in shaky and _shape(text) not in shapes:
                side = "without" if one[text] > other[text] else "with"
                times = f" ({one[text]} times without, {other[text]} with)" if one[text] and other[text] else ""
                verdict.differences.append(Difference(dimension, f"only {side}: {text}{times}"))
    _compare_pictures([load.screenshot for load in without], [load.screenshot for load in ours], verdict)
    return verdict


def _shaky(loads: list[Counter[str]]) -> set[str]:
    return {text for load in loads for text in load if len({one[text] for one in loads}) > 1}


def _as_the_browser_asks(texts: Counter[str], upgraded: set[str]) -> Counter[str]:
    """Applies the browser's own list of hosts that it requests only over https, whatever the page says."""
    if not upgraded:
        return texts
    names = "|".join(re.escape(host) for host in sorted(upgraded))
    asked: Counter[str] = Counter()
    for text, count in texts.items():
        asked[re.sub(rf"http://({names})(?=[/:?#]|$)", r"https://\1", text)] += count
    return asked


def _shape(text: str) -> str:
    """Removes digits and queries from a text. A value that a script generates for each load then keeps its shape."""
    return re.sub(r"\d+", "0", re.sub(r"\?\S*", "?", text))


def _compare_pictures(without: list[bytes], ours: list[bytes], verdict: Verdict) -> None:
    theirs = [_picture(png) for png in without]
    mine = [_picture(png) for png in ours]
    sizes = sorted({one.size for one in (*theirs, *mine)})
    if len(sizes) > 1:
        verdict.differences.append(Difference("pixels", f"only with: pictures of sizes {sizes}"))
        return
    differing = _differing(theirs[0], mine[0])
    changing = Image.new("L", sizes[0])
    for loads in (theirs, mine):
        for other in loads[1:]:
            changing = ImageChops.lighter(changing, _differing(loads[0], other))
    if changing.getbbox():
        verdict.unstable["pixels"] = f"{_count(changing)} pixels differ between two loads, within {changing.getbbox()}"
        # An animation may stop at another pixel.
        differing = ImageChops.subtract(differing, changing.filter(ImageFilter.MaxFilter(9)))
    if differing.getbbox():
        verdict.picture = differing
        verdict.differences.append(
            Difference("pixels", f"only with: {_count(differing)} pixels within {differing.getbbox()}")
        )


def _picture(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")


def _differing(left: Image.Image, right: Image.Image) -> Image.Image:
    channels = ImageChops.difference(left, right).split()
    most = ImageChops.lighter(ImageChops.lighter(channels[0], channels[1]), channels[2])
    return most.point(lambda value: 255 if value >= VISIBLE else 0)


def _count(picture: Image.Image) -> int:
    return picture.histogram()[255]
