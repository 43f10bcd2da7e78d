#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Pages of the installed headers out of doxygen's XML.

    site_api.py --inputs [root]          the lines that the Doxyfile lacks
    site_api.py ROOT XML_FOLDER OUT...   api/HEADER.md in each folder OUT

A page is one header: what its banner says, then its types and functions in the
order of the header, with their declarations and comments.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

import site_pages as sp

HIDDEN = re.compile(r"(^|::)(internal|detail)(::|$)|@|<")
PLAIN = str.maketrans({c: f"\\{c}" for c in "\\*[]`_"} | {
    "<": "&lt;", ">": "&gt;", "{": "&#123;"})


def text_of(node):
    return "" if node is None else "".join(node.itertext())


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


class Words:
    """Doxygen's descriptions as Markdown."""

    def __init__(self, places):
        self.places = places  # refid -> (header, anchor)
        self.header = ""

    def inline(self, node):
        parts = [self.plain(node.text)]
        for child in node:
            parts.append(self.one(child))
            parts.append(self.plain(child.tail))
        return "".join(parts)

    @staticmethod
    def plain(text):
        return (text or "").translate(PLAIN)

    def one(self, node):
        if node.tag == "computeroutput":
            return f"`{squeeze(text_of(node))}`"
        if node.tag in ("bold", "emphasis"):
            mark = "**" if node.tag == "bold" else "*"
            return f"{mark}{self.inline(node).strip()}{mark}"
        if node.tag == "ref":
            return self.reference(node)
        if node.tag == "linebreak":
            return "  \n"
        if node.tag == "sp":
            return " "
        if node.tag == "ndash":
            return "--"
        return self.inline(node)

    def reference(self, node):
        place = self.places.get(node.get("refid"))
        if place is None:
            return self.inline(node)
        header, anchor = place
        up = "../" * self.header.removeprefix("lockstep/").count("/")
        page = "" if header == self.header else (
            f"{up}{header.removeprefix('lockstep/')}.md")
        target = page + (f"#{anchor}" if anchor else "")
        label = self.inline(node)
        return f"[{label}]({target})" if target else label

    def blocks(self, node):
        """Markdown of a description: paragraphs, lists, code."""
        out = []
        if node is None:
            return out
        for child in node:
            if child.tag == "para":
                out += self.paragraph(child)
            elif child.tag in ("sect1", "sect2", "parblock", "internal"):
                out += self.blocks(child)
        return out

    def paragraph(self, para):
        out, line = [], [self.plain(para.text)]

        def flush():
            if text := re.sub(r"[ \n]*\n[ \n]*|  +", " ",
                              "".join(line)).strip():
                out.append(text)
            line.clear()

        for child in para:
            block = self.block(child)
            if block is None:
                line.append(self.one(child))
            else:
                flush()
                out.extend(block)
            line.append(self.plain(child.tail))
        flush()
        return out

    def block(self, node):
        if node.tag in ("itemizedlist", "orderedlist"):
            items = []
            for item in node:
                text = "\n\n".join(self.blocks(item)).replace("\n", "\n    ")
                items.append(f"- {text}")
            return ["\n".join(items)]
        if node.tag in ("programlisting", "verbatim", "preformatted"):
            lines = ([self.code(line) for line in node.iter("codeline")]
                     or text_of(node).strip("\n").split("\n"))
            return ["```cpp\n" + "\n".join(lines) + "\n```"]
        if node.tag in ("simplesect", "parameterlist"):
            return self.blocks(node) or [self.inline(node)]
        return None

    def code(self, node):
        return (node.text or "") + "".join(
            (" " if child.tag == "sp" else self.code(child)) + (child.tail or "")
            for child in node)

    def description(self, node):
        """The brief and the detailed comment of a member or a class; doxygen
        cuts the first paragraph after its first sentence."""
        brief = self.blocks(node.find("briefdescription"))
        more = self.blocks(node.find("detaileddescription"))
        if len(brief) == 1 and more and not more[0].startswith(
                ("**", "- ", "```")):
            return [f"{brief[0]} {more[0]}", *more[1:]]
        return brief + more


def template_of(node):
    parameters = node.find("templateparamlist")
    if parameters is None:
        return ""
    parts = []
    for parameter in parameters:
        text = squeeze(text_of(parameter.find("type")))
        name = text_of(parameter.find("declname"))
        if name and name not in text.split():
            text += f" {name}"
        default = squeeze(text_of(parameter.find("defval")))
        parts.append(tidy(text + (f" = {default}" if default else "")))
    clause = squeeze(text_of(node.find("requiresclause")))
    return f"template <{', '.join(parts)}>\n" + (
        f"  requires {clause}\n" if clause else "")


def parameters_of(member):
    parts = []
    for parameter in member.findall("param"):
        kind = squeeze(text_of(parameter.find("type")))
        name = text_of(parameter.find("declname"))
        default = squeeze(text_of(parameter.find("defval")))
        array = text_of(parameter.find("array"))
        parts.append(f"{kind} {name}{array}".strip()
                     + (f" = {default}" if default else ""))
    return parts


def tidy(text):
    text = re.sub(r" ([&*]+) ?(?=[\w.,)>]|$)", r"\1 ", text)
    text = re.sub(r"< | >", lambda m: m[0].strip(), text).replace(" ,", ",")
    return text.replace("&& ...", "&&...").replace("& ...", "&...").strip()


def function_text(member):
    kind = tidy(squeeze(text_of(member.find("type"))))
    name = text_of(member.find("name"))
    parameters = [tidy(p) for p in parameters_of(member)]
    arguments = squeeze(text_of(member.find("argsstring")))
    behind = arguments[arguments.rfind(")") + 1:].replace("=", " = ").strip()
    front = "static " if member.get("static") == "yes" and (
        member.get("kind") == "function") else ""
    front += "explicit " if member.get("explicit") == "yes" else ""
    front += "virtual " if member.get("virt") != "non-virtual" else ""
    head = " ".join(f"{front}{kind} {name}".split())
    line = f"{head}({', '.join(parameters)}){' ' + behind if behind else ''};"
    if len(line) > 76 and parameters:
        inner = ",\n    ".join(parameters)
        line = f"{head}(\n    {inner}){' ' + behind if behind else ''};"
    return template_of(member) + line


def declaration(member):
    kind = member.get("kind")
    name = text_of(member.find("name"))
    if kind == "function":
        return function_text(member)
    if kind == "enum":
        values = [text_of(v.find("name")) + (
            " " + squeeze(text_of(v.find("initializer")))
            if v.find("initializer") is not None else "")
            for v in member.findall("enumvalue")]
        strong = "class " if member.get("strong") == "yes" else ""
        line = f"enum {strong}{name} {{ {', '.join(values)} }};"
        return line if len(line) <= 76 else (
            f"enum {strong}{name} {{\n  " + ",\n  ".join(values) + "\n};")
    if kind == "define":
        names = [text_of(p.find("defname")) for p in member.findall("param")]
        return f"#define {name}" + (f"({', '.join(names)})" if names else "")
    definition = squeeze(text_of(member.find("type")))
    if kind == "typedef":
        return f"{template_of(member)}using {name} = {tidy(definition)};"
    start = squeeze(text_of(member.find("initializer")))
    front = "static " if member.get("static") == "yes" else ""
    return f"{template_of(member)}{front}{tidy(definition)} {name} {start}".strip() + ";"


class Headers:
    def __init__(self, folder):
        self.folder = folder
        self.files = {}  # header -> compounddef
        self.classes = {}  # refid -> compounddef
        self.free = {}  # header -> memberdefs outside of classes
        self.places = {}
        for path in sorted(folder.glob("*.xml")):
            node = ElementTree.parse(path).getroot().find("compounddef")
            if node is None:
                continue
            header = node.find("location")
            header = "" if header is None else header.get("file")
            if node.get("kind") == "file" and header.endswith(".h"):
                self.files[header] = node
                self.places[node.get("id")] = (header, "")
            elif node.get("kind") in ("class", "struct", "union"):
                self.classes[node.get("id")] = node
                name = text_of(node.find("compoundname"))
                if not HIDDEN.search(name):
                    self.places[node.get("id")] = (header, anchor_of(name))
            if node.get("kind") in ("file", "namespace") and not HIDDEN.search(
                    text_of(node.find("compoundname"))):
                for member in node.findall("sectiondef/memberdef"):
                    where = member.find("location").get("file")
                    self.free.setdefault(where, {})[member.get("id")] = member

    def classes_of(self, header):
        refs = [inner.get("refid")
                for inner in self.files[header].findall("innerclass")]
        return [self.classes[ref] for ref in refs
                if ref in self.places and ref in self.classes]


def anchor_of(name):
    return re.sub(r"\W+", "-", name.removeprefix("lockstep::")).strip("-").lower()


def line_of(node):
    location = node.find("location")
    return int(location.get("line", 0)) if location is not None else 0


def is_shown(member, words):
    arguments = text_of(member.find("argsstring"))
    name = text_of(member.find("name"))
    is_default = arguments.endswith(("=delete", "=default"))
    return (member.get("prot") == "public" and member.get("kind") != "friend"
            and not name.startswith(("@", "~", "TORCH_MODULE"))
            and not (is_default and not words.description(member)))


def members_markdown(members, words, level):
    """Functions of one name share a heading; what has no comment of its own
    stands in the block of its neighbour above."""
    out, heading = [], None
    for member in members:
        name = text_of(member.find("name"))
        code = declaration(member)
        about = words.description(member)
        for value in member.findall("enumvalue"):
            if text := " ".join(words.description(value)):
                about.append(f"- `{text_of(value.find('name'))}`: {text}")
        if name != heading and level:
            out.append(f"{'#' * level} {name.replace('_', chr(92) + '_')}")
        elif not about and out and out[-1].startswith("```cpp"):
            out[-1] = out[-1].removesuffix("\n```") + f"\n{code}\n```"
            continue
        heading = name
        out += [f"```cpp\n{code}\n```", *about]
    return out


def class_markdown(node, words):
    name = text_of(node.find("compoundname")).removeprefix("lockstep::")
    bases = ", ".join(f"{base.get('prot')} {text_of(base)}"
                      for base in node.findall("basecompoundref"))
    head = (f"{template_of(node)}{node.get('kind')} {name}"
            + (f" : {bases}" if bases else ""))
    out = [f"## {name} {{ #{anchor_of(name)} }}", f"```cpp\n{head};\n```",
           *words.description(node)]
    members = sorted((m for m in node.iter("memberdef") if is_shown(m, words)),
                     key=line_of)
    return out + members_markdown(members, words, 0)


def page(root, headers, header):
    words = Words(headers.places)
    words.header = header
    parts = [(line_of(node), class_markdown(node, words))
             for node in headers.classes_of(header)]
    free = sorted((m for m in headers.free.get(header, {}).values()
                   if is_shown(m, words)), key=line_of)
    groups = []
    for member in free:
        name = text_of(member.find("name"))
        if groups and groups[-1][0] == name:
            groups[-1][1].append(member)
        else:
            groups.append((name, [member]))
    parts += [(line_of(members[0]), members_markdown(members, words, 2))
              for _, members in groups]
    out = ["---\nsearch:\n  boost: 0.5\n---", f"# {header}", f"`#include <{header}>`",
           banner_markdown(sp.banner(root / header))]
    for _, lines in sorted(parts, key=lambda part: part[0]):
        out += lines
    if not parts:
        out += contents(words, headers, header)
    return "\n\n".join(part for part in out if part) + "\n"


def contents(words, headers, header):
    """Of a header that only includes others, or specializes their templates."""
    file = headers.files[header]
    names = [text_of(inner).removeprefix("lockstep::")
             for inner in file.findall("innerclass")]
    links = [f"- {words.reference(node)}" for node in file.findall("includes")
             if node.get("refid") in headers.places]
    return ["\n".join(f"- `{tidy(name)}`" for name in names if "internal" not in name),
            "Includes:" if links else "", "\n".join(links)]


def banner_markdown(text):
    """Indented lines of a banner are code."""
    out, lines = [], text.split("\n")
    for line in lines:
        is_code = line.startswith("  ")
        if is_code and not (out and out[-1].startswith("```")):
            out.append("```cpp")
        elif not is_code and (not out or out[-1].startswith("```") or not line):
            out.append("")
        if is_code:
            out[-1] += f"\n{line[2:]}"
        else:
            words = re.split(r"(`[^`]+`)", line)
            line = "".join(w if w.startswith("`") else Words.plain(w)
                           for w in words)
            out[-1] = f"{out[-1]} {line}".strip()
    return "\n\n".join(f"{part}\n```" if part.startswith("```") else part
                       for part in out if part)


def overview(root, headers):
    rows = []
    for header in sorted(headers.files):
        short = header.removeprefix("lockstep/")
        about = " ".join(sp.banner(root / header).split())
        first = re.split(r"(?<=[.:])\s", about)[0].rstrip(":.")
        rows.append(f"| [{header}]({short}.md) | {Words.plain(first)} |\n")
    return ("---\nsearch:\n  boost: 0.3\n---\n\n# C++ API\n\nThe installed headers. `lockstep/lockstep.h` includes "
            "what programs with LibTorch need, `lockstep/ckpt.h` what needs no "
            "LibTorch.\n\n| Header | |\n|---|---|\n" + "".join(rows))


def main():
    if sys.argv[1:2] == ["--inputs"]:
        root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".")
        print("INPUT =", " ".join(sp.installed_headers(root)))
        return
    root, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    headers = Headers(folder)
    for out in map(pathlib.Path, sys.argv[3:]):
        for header in headers.files:
            path = out / "api" / f"{header.removeprefix('lockstep/')}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page(root, headers, header), encoding="utf-8")
        (out / "api/README.md").write_text(overview(root, headers),
                                           encoding="utf-8")
    print(f"api: {len(headers.files)} headers")


if __name__ == "__main__":
    main()
