#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Lays the site out for mkdocs: site_stage.py [root] [build folder]

For each language a folder of pages and a file mkdocs.LANGUAGE.yml. Pages are
those of docs/ under their own names and the root's below project/; where a page
has no Chinese form the Chinese site shows the English one, and says so. Links to
installed headers lead to the API pages that site_api.py writes, links to other
files to copies below source/, so that no link leaves the site.
"""

import json
import os
import pathlib
import re
import shutil
import sys
import textwrap

import site_made
import site_pages as sp

ENGLISH_ONLY = '!!! note ""\n    本页只有英文版。\n'
CPP_BLOCK = re.compile(r"^(```cpp\n)(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL_WORDS = ("lockstep ", "build/", "make ", "cmake ", "source ", "find ",
               "scripts/", "git ", "pip ", "python3 ")
LANGUAGE_OF = {".cpp": "cpp", ".h": "cpp", ".py": "python", ".sh": "sh",
               ".json": "json", ".toml": "toml", ".txt": "text", ".cu": "cpp"}


class Stage:
    def __init__(self, root, build, language):
        self.root = root
        self.language = language
        self.build = build
        self.out = build / "docs" / language
        self.sources = set()  # files and folders that pages lead to
        nav = sp.read_nav(root)
        self.titles = {
            os.path.relpath(root / "docs" / entry["page"], root): entry for entry in sp.nav_entries(nav) if "page" in entry}
        self.tasks = {f"docs/{entry['page']}"
                      for entry in nav["section"][0]["entries"]} - {"docs/README.md"}

    # Where things are in the site, from the root of the repository.

    def place(self, name):
        """The staged path of a file or folder of the repository."""
        path = self.root / name
        if path.is_dir():
            if name == "docs/schemas" or name == "docs/formats":
                return f"{name.removeprefix('docs/')}/README.md"
            self.sources.add(name)
            return f"source/{name}/README.md"
        if name.startswith("docs/") and name.endswith(".md"):
            return name.removeprefix("docs/").replace(".zh.md", ".md")
        if "/" not in name and name.endswith(".md"):
            stem = "overview" if name == "README.md" else name[:-3].lower()
            return f"project/{stem}.md"
        if sp.is_installed(name):
            return f"api/{name.removeprefix('lockstep/')}.md"
        if name.startswith(("docs/images/", "docs/schemas/")):
            return name.removeprefix("docs/")
        self.sources.add(name)
        return f"source/{name}.md"

    def put(self, place, text, boost=1.0):
        """Writes a page; `boost` weighs it in the search."""
        path = self.out / place
        if boost != 1 and place.endswith(".md"):
            text = f"---\nsearch:\n  boost: {boost:g}\n---\n{text}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    # Pages.

    def link(self, page, here, target):
        """A link of the repository's file `page`, staged at `here`."""
        if sp.is_elsewhere(target):
            return target
        file, _, anchor = target.partition("#")
        if not file:
            return target
        aim = (self.root / page).parent / file
        name = os.path.relpath(aim, self.root)
        place = self.place(name)
        anchor = self.anchor(aim, anchor)
        start = pathlib.PurePosixPath(here).parent
        return os.path.relpath(place, start) + (f"#{anchor}" if anchor else "")

    def anchor(self, aim, anchor):
        """The anchor of the same heading in the language that `aim` has here."""
        other = sp.chinese(aim)
        if self.language == "en" or not anchor or not other.exists():
            return anchor
        english, chinese = (sp.anchors(path.read_text(encoding="utf-8"))
                            for path in (aim, other))
        if anchor in chinese or len(english) != len(chinese):
            return anchor if anchor in chinese else ""
        return chinese[english.index(anchor)]

    def crosses(self, page, here, target):
        """The staged path of a page that is meant in the other language; None
        if a link stays in this one."""
        file = target.partition("#")[0]
        name = os.path.relpath((self.root / page).parent / file, self.root)
        if not name.endswith(".md") or not file or not sp.chinese(
                self.root / english_name(name)).exists():
            return None
        if name.endswith(".zh.md"):
            return self.place(name) if self.language == "en" else None
        is_own = self.language == "zh" and page.endswith(".zh.md")
        return here if is_own and self.place(name) == here else None

    def label(self, page, target, label):
        """Names of files become titles: "resume.md" in "[resume.md](resume.md)"."""
        file = target.partition("#")[0]
        name = os.path.relpath((self.root / page).parent / file, self.root)
        english = english_name(name)
        if label.endswith(".md") and english in self.titles:
            return self.titles[english]["zh" if page.endswith(".zh.md") else "en"]
        return label

    def rewritten(self, text, page, here):
        """`text` of the repository's file `page` as it is staged at `here`."""
        parts, end = [], 0
        for match in sp.LINK.finditer(sp.without_code(text)):
            parts.append(text[end:match.start()])
            label = text[match.start(2):match.end(2)]
            if other := self.crosses(page, here, match[3]):
                parts.append(self.switch(here, other, label))
            else:
                label = self.label(page, match[3], label)
                parts.append(f"{match[1]}[{label}]"
                             f"({self.link(page, here, match[3])})")
            end = match.end()
        return style_blocks("".join(parts) + text[end:])

    def switch(self, here, other, label):
        """A link from the page `here` to one of the other language's site."""
        depth = url_of(here).count("/") + (self.language == "zh")
        front = "zh/" if self.language == "en" else ""
        return f'<a href="{"../" * depth}{front}{url_of(other)}">{label}</a>'

    def stage_page(self, path):
        english = path.relative_to(self.root).as_posix()
        chinese = sp.chinese(path)
        is_translated = self.language == "zh" and chinese.exists()
        page = (chinese if is_translated else path).relative_to(
            self.root).as_posix()
        here = self.place(english)
        text = self.rewritten((self.root / page).read_text(encoding="utf-8"),
                              page, here)
        if self.language == "zh" and not is_translated:
            text = text.replace("\n", f"\n\n{ENGLISH_ONLY}", 1)
        self.put(here, text, self.boost(here, page))

    def boost(self, here, page):
        """Tasks first, then pages, then what there is of the repository."""
        boost = 3 if english_name(page) in self.tasks else 1
        if here.startswith(("project/", "formats/")):
            boost = 0.3
        is_foreign = self.language == "zh" and not page.endswith(".zh.md")
        return boost * (0.5 if is_foreign else 1)

    def stage_pages(self):
        for path in sp.all_pages(self.root):
            if not path.name.endswith(".zh.md"):
                self.stage_page(path)
        for folder in ("images", "schemas"):
            shutil.copytree(self.root / "docs" / folder, self.out / folder,
                            dirs_exist_ok=True)
        self.put("assets/site.css",
                 (self.root / "docs/site/site.css").read_text())

    # Sources that pages lead to.

    def stage_sources(self):
        self.sources.add("examples")
        pending = sorted(self.sources)
        done = set()
        while pending:
            name = pending.pop()
            if name in done:
                continue
            done.add(name)
            path = self.root / name
            if path.is_dir():
                self.stage_folder(name)
            else:
                self.stage_source(name)
            pending += sorted(self.sources - done)

    def stage_source(self, name):
        path = self.root / name
        text = path.read_text(encoding="utf-8", errors="replace")
        language = LANGUAGE_OF.get(path.suffix, "text")
        if path.name == "CMakeLists.txt":
            language = "cmake"
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        self.put(f"source/{name}.md",
                 f"# {name}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n", 0.1)

    def stage_folder(self, name):
        folder = self.root / name
        rows = []
        for path in sorted(folder.iterdir()):
            child = path.relative_to(self.root).as_posix()
            if path.name.startswith((".", "__")) or path.suffix == ".svg":
                continue
            place = os.path.relpath(self.place(child), f"source/{name}")
            first = site_made.first_sentence(path) if path.is_file() else ""
            rows.append(f"| [{path.name}]({place}) | {first} |\n")
        self.put(f"source/{name}/README.md",
                 f"# {name}\n\n| File | |\n|---|---|\n{''.join(rows)}", 0.1)

    # The menu.

    def menu(self):
        sections = []
        for section in sp.read_nav(self.root)["section"]:
            rows = []
            for entry in section["entries"]:
                title = entry[self.language]
                if entry.get("made") == "api":
                    rows.append({title: site_made.api_menu(self.root)})
                elif "made" in entry:
                    rows.append({title: entry["made"]})
                else:
                    name = os.path.relpath(self.root / "docs" / entry["page"],
                                           self.root)
                    rows.append({title: self.place(name)})
            sections.append({section[self.language]: rows})
        return sections

    def config(self):
        settings = sp.read_nav(self.root)["site"]
        is_chinese = self.language == "zh"
        site_url = os.environ.get("LOCKSTEP_SITE_URL", settings["site_url"])
        config = {
            "INHERIT": os.path.relpath(self.root / "docs/site/mkdocs.yml",
                                       self.build),
            "docs_dir": f"docs/{self.language}",
            "site_dir": "html/zh" if is_chinese else "html",
            "site_url": site_url and site_url.rstrip("/") + (
                "/zh/" if is_chinese else "/"),
            "repo_url": os.environ.get("LOCKSTEP_REPO_URL",
                                       settings["repo_url"]),
            "edit_uri": "",
            "theme": {"language": self.language,
                      "custom_dir": os.path.relpath(
                          self.root / "docs/site/overrides", self.build)},
            "plugins": {"material/search": {
                "lang": ["zh", "en"] if is_chinese else ["en"],
                "pipeline": ["stopWordFilter"],
                "separator": r"[\s\u200b\u3000\-,:!=\[\]()\"`/.]+"
                             r"|(?!\b)(?=[A-Z][a-z])"}},
            "extra": {"alternate": True},
            "nav": self.menu(),
        }
        (self.build / f"mkdocs.{self.language}.yml").write_text(
            json.dumps(config, indent=1, ensure_ascii=False), encoding="utf-8")


def english_name(name):
    return name.replace(".zh.md", ".md")


def url_of(place):
    """formats/flat.md -> formats/flat/"""
    stem = place.removesuffix(".md")
    return stem.removesuffix("README") if stem.endswith("README") else f"{stem}/"


def kind_of(line):
    """The language of a block that names none, by its first line."""
    if line.startswith("$ "):
        return "console"
    return "sh" if line.startswith(SHELL_WORDS) else "text"


def style_blocks(text):
    """Blocks without a language get one."""
    lines, fence = text.split("\n"), None
    for i, line in enumerate(lines):
        mark = re.match(r" *(```+)(.*)", line)
        if mark and fence is None:
            fence = mark[1]
            if not mark[2].strip() and i + 1 < len(lines):
                lines[i] += kind_of(lines[i + 1].lstrip())
        elif mark and mark[1] == fence and not mark[2].strip():
            fence = None
    return CPP_BLOCK.sub(
        lambda block: block[1] + textwrap.dedent(block[2]) + "```",
        "\n".join(lines))


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    build = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else
                         root / "build/site").resolve()
    shutil.rmtree(build / "docs", ignore_errors=True)
    for language in ("en", "zh"):
        stage = Stage(root, build, language)
        stage.stage_pages()
        site_made.write_pages(stage)
        stage.stage_sources()
        stage.config()
    print(f"site: {len(list((build / 'docs/en').rglob('*.md')))} pages "
          "in each language")


if __name__ == "__main__":
    main()
