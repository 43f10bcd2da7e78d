#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails if the documents do not hang together: check_pages.py [root]

Links of docs/ and of the root's pages lead to files and headings; each page is
in the index (docs/README.md) and in the menu of the site (docs/site/nav.toml);
each entry of the menu exists; Chinese pages stand beside English ones, link
there and back, and lead to Chinese pages where there are some. What pages show
of `lockstep ckpt` is part of a session in tests/cli/golden.
"""

import pathlib
import re

import site_pages as sp
from check_common import finish, root_from_arguments


class Pages:
    def __init__(self, root):
        self.root = root
        self.texts = {path: path.read_text(encoding="utf-8")
                      for path in sp.all_pages(root)}
        self.targets = {path: [target for _, target in sp.links(text)]
                        for path, text in self.texts.items()}
        self.links = sum(map(len, self.targets.values()))

    def name(self, path):
        return path.relative_to(self.root).as_posix()

    def link_problems(self):
        for path, targets in self.targets.items():
            for target in targets:
                if not sp.is_elsewhere(target):
                    yield from self.problems_of(path, target)

    def problems_of(self, path, target):
        file, _, anchor = target.partition("#")
        aim = (path.parent / file).resolve() if file else path
        if not aim.exists():
            yield f"{self.name(path)}: leads to {target}, which does not exist"
            return
        if anchor and aim in self.texts:
            found = sp.anchors(self.texts[aim]).count(anchor)
            if found != 1:
                yield (f"{self.name(path)}: {target}: "
                       f"{found} headings of that name, expected 1")
        if path.name.endswith(".zh.md") and aim in self.texts:
            yield from self.language_problems(path, aim, target)

    def language_problems(self, path, aim, target):
        """A Chinese page leads to Chinese ones, but for its own English form."""
        better = sp.chinese(aim)
        if better in self.texts and better != path:
            yield (f"{self.name(path)}: leads to {target}, "
                   f"and there is {better.name}")

    def pair_problems(self):
        for path in self.texts:
            if not path.name.endswith(".zh.md"):
                continue
            english = path.with_name(path.name.removesuffix(".zh.md") + ".md")
            if english not in self.texts:
                yield f"{self.name(path)}: has no English page"
            elif (path.name not in self.targets[english]
                  or english.name not in self.targets[path]):
                yield f"{self.name(path)}: the two languages do not link"

    def index_problems(self):
        """docs/README.md names all pages; its Chinese form names each once, in
        Chinese where it can."""
        pages = [path for path in self.texts if path.parent != self.root
                 and not path.name.startswith("README.")]
        for index in (path for path in self.texts
                      if path.parent == self.root / "docs"
                      and path.name.startswith("README.")):
            is_chinese = index.name == "README.zh.md"
            for page in pages:
                name = page.relative_to(index.parent).as_posix()
                is_needed = not is_chinese or sp.chinese(page) not in self.texts
                if is_needed and name not in self.targets[index]:
                    yield f"{self.name(index)}: does not name {name}"

    def session_problems(self):
        """What `lockstep ckpt` prints on a page is part of a golden session."""
        folder = self.root / "tests/cli/golden"
        golden = "".join(path.read_text(encoding="utf-8").replace("stderr: ", "")
                         for path in sorted(folder.glob("*.txt")))
        for path, text in self.texts.items():
            for block in sp.FENCE.finditer(text):
                shown = re.sub(r"^\$ \S*/lockstep ", "$ lockstep ",
                               block[0].split("\n", 1)[1].rsplit("\n", 1)[0])
                if (shown.startswith("$ lockstep ckpt ")
                        and f"{shown}\nexit " not in golden):
                    yield (f"{self.name(path)}: no golden session of lockstep "
                           f"prints this: {shown.splitlines()[0]}")

    def nav_problems(self):
        if not (self.root / sp.NAV).exists():
            yield f"{sp.NAV}: is missing"
            return
        nav = sp.read_nav(self.root)
        seen = set()
        for entry in sp.nav_entries(nav):
            if not entry.get("en") or not entry.get("zh"):
                yield f"{sp.NAV}: {entry} needs titles en and zh"
            if "page" not in entry:
                continue
            page = (self.root / "docs" / entry["page"]).resolve()
            if page in seen:
                yield f"{sp.NAV}: names {entry['page']} twice"
            seen.add(page)
            if page not in self.texts:
                yield f"{sp.NAV}: names {entry['page']}, which does not exist"
        for path in self.texts:
            if path not in seen and not path.name.endswith(".zh.md"):
                yield f"{sp.NAV}: does not name {self.name(path)}"


def main():
    pages = Pages(pathlib.Path(root_from_arguments()))
    problems = [*pages.link_problems(), *pages.pair_problems(),
                *pages.index_problems(), *pages.session_problems(),
                *pages.nav_problems()]
    finish("pages", problems, f"{len(pages.texts)} pages, {pages.links} links")


if __name__ == "__main__":
    main()
