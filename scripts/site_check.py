#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails if a link of the built site leads nowhere: site_check.py FOLDER

Follows every href and src of every page to a file and its anchor. Nothing may be
loaded from another host; links for readers may lead to one.
"""

import html.parser
import pathlib
import sys
import urllib.parse

LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src",
         "source": "src"}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        for name in ("id", "name"):
            if attrs.get(name) and tag != "meta":
                self.anchors.add(attrs[name])
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag in LOADS and attrs.get(LOADS[tag]):
            if attrs.get("rel") not in ("canonical", "alternate", "next", "prev"):
                self.loads.append(attrs[LOADS[tag]])


def resolve(root, path, link):
    """The file that a link of a page leads to, and its anchor."""
    parts = urllib.parse.urlsplit(link)
    name = urllib.parse.unquote(parts.path)
    aim = path
    if name:
        aim = (root / name.lstrip("/") if name.startswith("/")
               else path.parent / name).resolve()
        if aim.is_dir() or name.endswith("/"):
            aim = aim / "index.html"
    return aim, urllib.parse.unquote(parts.fragment)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path.read_text(encoding="utf-8"))
             for path in sorted(root.rglob("*.html"))}
    problems, links = [], 0
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # shown at any address
        name = path.relative_to(root)
        for link in page.loads:
            if urllib.parse.urlsplit(link).netloc:
                problems.append(f"{name}: loads {link}")
        for link in page.links + page.loads:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            links += 1
            aim, anchor = resolve(root, path, link)
            if not aim.is_file():
                problems.append(f"{name}: {link} leads nowhere")
            elif anchor and aim in pages and anchor not in pages[aim].anchors:
                problems.append(f"{name}: {link}: no such anchor")
    for problem in sorted(set(problems)):
        print(f"site: {problem}", file=sys.stderr)
    if problems or not pages:
        sys.exit(1)
    print(f"site: ok, {len(pages)} pages, {links} links")


if __name__ == "__main__":
    main()
