# SPDX-License-Identifier: BSD-3-Clause
"""The pages of docs/, their links and anchors: for check_pages.py and the site.

Only the standard library, so that lint needs no virtual environment.
"""

import pathlib
import re
import tomllib

NAV = "docs/site/nav.toml"
FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
HEADING = re.compile(r"^(#{1,6}) +(.+?) *#*$", re.MULTILINE)


def without_code(text):
    """The text with code blanked out: same length, same lines."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    return SPAN.sub(blank, FENCE.sub(blank, text))


def links(text):
    """(position of the target, target) of each link outside of code."""
    return [(m.start(3), m[3]) for m in LINK.finditer(without_code(text))]


def slugify(heading, separator="-"):
    """The anchor that code hosts give a heading: lower case, letters of any
    script, digits, '_' and '-'; spaces become '-'."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", separator)


def plain(heading):
    """A heading's text without links, backticks and emphasis."""
    return re.sub(r"[`*]", "", LINK.sub(lambda m: m[2], heading))


def headings(text):
    """(level, text) of each heading."""
    without_blocks = FENCE.sub("", text)
    return [(len(m[1]), plain(m[2])) for m in HEADING.finditer(without_blocks)]


def anchors(text):
    return [slugify(heading) for _, heading in headings(text)]


def read_nav(root):
    return tomllib.loads((root / NAV).read_text(encoding="utf-8"))


def nav_entries(nav):
    return [entry for section in nav["section"] for entry in section["entries"]]


def chinese(path):
    """own_data.md -> own_data.zh.md"""
    return path.with_name(path.name.removesuffix(".md") + ".zh.md")


def all_pages(root):
    """Markdown of docs/ and of the root, in order."""
    return sorted((root / "docs").rglob("*.md")) + sorted(root.glob("*.md"))


def is_elsewhere(target):
    return re.match(r"[a-z][a-z+.-]*:", target) is not None


def is_installed(name):
    """True for a header that users include ("lockstep/ckpt/load.h"); what lies
    in internal/, in rooms, in report and sim is not installed."""
    return re.fullmatch(
        r"lockstep/(?!(ckpt|distributed|train)/.*/|(report|sim)/|.*/internal/)"
        r".*\.h", name) is not None


def installed_headers(root):
    return sorted(
        name for path in (root / "lockstep").rglob("*.h")
        if is_installed(name := path.relative_to(root).as_posix()))


def banner(path):
    """The comment at the top of a source, below the licence, as text."""
    lines = []
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if not re.match(r"//|#!|# ", line):
            if lines or line.strip():
                break
            continue
        if "SPDX" not in line and not line.startswith("#!"):
            lines.append(re.sub(r"^(//|#) ?", "", line))
    return "\n".join(lines).strip("\n")
