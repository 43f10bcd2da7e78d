# SPDX-License-Identifier: BSD-3-Clause
"""Pages of the site that are made of other files: the table of errors, the
measurements, lists of schemas and formats, the menu of the API."""

import re

import bench_tables
import site_pages as sp

TITLES = {
    "errors": {
        "en": ("Error table", "Every code that an error, a warning or `--json` can "
               "end with. The same text: `lockstep explain CODE`.",
               "| Code | What it means | What to do |"),
        "zh": ("错误一览表", "错误、警告和 `--json` 中可能出现的全部代码。`lockstep explain CODE` "
               "显示同样的内容（英文）。", "| 代码 | 含义 | 处理办法 |")},
    "schemas": {
        "en": ("JSON schemas", "What `--json` prints, command by command "
               "([how to use it](../ckpt_reading.md)).", "| Schema | Of |"),
        "zh": ("JSON 模式", "各命令的 `--json` 输出（[用法](../ckpt_reading.md)）。",
               "| 模式 | 内容 |")},
    "formats": {
        "en": ("Formats", "The file formats, byte by byte.", "| Page | |"),
        "zh": ("文件格式", "各种文件格式的逐字节说明。", "| 页面 | |")},
    "measured": {
        "en": ("Measurements",
               "Tables that `bench/run.py --json FILE` measured, made of the files in "
               "`bench/results`. A ratio above 1 is in Lockstep's favour for rates, "
               "below 1 for times. The tables of [Training on CPUs](performance.md) "
               "and [Training on GPUs](gpu.md) are older, and were typed in from the "
               "output of the commands that those pages name.",
               "No file is in `bench/results` yet: on an idle machine "
               "`scripts/bench.sh --json bench/results/NAME.json` makes one."),
        "zh": ("测量结果",
               "下表由 `bench/run.py --json FILE` 测得，取自 `bench/results` 中的文件。单位是速率时，比值大于 1 "
               "表示 Lockstep 更快；单位是时间时，小于 1 表示更快。[在 CPU 上训练](performance.md)"
               "和[在 GPU 上训练](gpu.md)中的表格更早，是按这两页所说命令的输出手工录入的。",
               "`bench/results` 中还没有文件：在空闲的机器上用 "
               "`scripts/bench.sh --json bench/results/NAME.json` 生成。")},
}

# Schemas that are not called like their command.
COMMANDS = {"args": "...", "tune": "bench --tune", "explain.list": "explain"}


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def first_sentence(path):
    """What the banner of a source says first; empty if it has none."""
    try:
        if path.suffix == ".py":
            match = re.search(r'^"""(.+?)(?:\.\s|\n\n|""")', path.read_text(),
                              re.MULTILINE | re.DOTALL)
            text = match[1] if match else ""
        elif path.suffix in (".h", ".cpp", ".cu", ".sh"):
            text = sp.banner(path)
        else:
            return ""
    except UnicodeDecodeError:
        return ""
    prose = re.split(r"\n  ", text)[0]  # indented lines are code
    sentence = re.split(r"(?<=\.)\s", " ".join(prose.split()))[0].rstrip(".:")
    return cell(sentence.replace("<", "&lt;"))


def error_rows(root):
    """(code, page, meaning, remedy) of each section of the two error pages."""
    for page in ("errors.md", "error_details.md"):
        text = (root / "docs" / page).read_text(encoding="utf-8")
        for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            code, _, body = section.partition("\n")
            meaning, _, remedy = body.partition("What to do:")
            if "- Meaning:" in meaning:
                meaning = re.search(r"- Meaning: (.*)", meaning)[1]
            first = meaning.strip().split("\n\n")[0]
            yield code.strip(), page, first, remedy.strip().split("\n\n")[0]


def error_table(root, language):
    title, text, head = TITLES["errors"][language]
    rows = [f"| [`{code}`]({page}#{sp.slugify(code)}) | {cell(meaning)} "
            f"| {cell(remedy)} |\n"
            for code, page, meaning, remedy in error_rows(root)]
    return f"# {title}\n\n{text}\n\n{head}\n|---|---|---|\n{''.join(rows)}"


def schema_list(root, language):
    title, text, head = TITLES["schemas"][language]
    rows = []
    for path in sorted((root / "docs/schemas").glob("*.json")):
        command = COMMANDS.get(
            path.stem, path.stem.removesuffix(".files").replace(".", " "))
        rows.append(f"| [{path.stem}]({path.name}) "
                    f"| `lockstep {command} --json` |\n")
    return f"# {title}\n\n{text}\n\n{head}\n|---|---|\n{''.join(rows)}"


def format_list(root, language):
    title, text, head = TITLES["formats"][language]
    rows = []
    for path in sorted((root / "docs/formats").glob("*.md")):
        heading = sp.headings(path.read_text(encoding="utf-8"))[0][1]
        rows.append(f"| [{path.stem}]({path.name}) | {heading} |\n")
    return f"# {title}\n\n{text}\n\n{head}\n|---|---|\n{''.join(rows)}"


def measured(root, language):
    title, text, none = TITLES["measured"][language]
    files = sorted((root / "bench/results").glob("*.json"))
    tables = "\n".join(bench_tables.page_part(path) for path in files)
    return f"# {title}\n\n{text}\n\n{tables or none}\n"


def write_pages(stage):
    for place, make in (("error_table.md", error_table),
                        ("schemas/README.md", schema_list),
                        ("formats/README.md", format_list),
                        ("measured.md", measured)):
        text = make(stage.root, stage.language)
        stage.put(place, stage.rewritten(text, f"docs/{place}", place))


def api_menu(root):
    """The headers for programs first, then a group for each folder."""
    groups, top = {}, ["api/README.md"]
    for name in sp.installed_headers(root):
        short = name.removeprefix("lockstep/")
        folder = short.rpartition("/")[0]
        row = {short.rpartition("/")[2]: f"api/{short}.md"}
        (groups.setdefault(folder, []) if folder else top).append(row)
    return top + [{folder: rows} for folder, rows in groups.items()]
