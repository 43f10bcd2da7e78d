# SPDX-License-Identifier: BSD-3-Clause
"""check_pages.py on small trees, and what scripts/site_stage.py makes of ours."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import bench_tables  # noqa: E402
import site_pages  # noqa: E402

NAV = """
[[section]]
en = "Tasks"
zh = "任务"
entries = [
  { page = "README.md", en = "Start", zh = "开始" },
  { page = "a.md", en = "A", zh = "甲" },
  { made = "error_table.md", en = "Errors", zh = "错误" },
]
"""


class Tree(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name)
        self.put("docs/site/nav.toml", NAV)
        self.put("docs/README.md", "# Index\n[a](a.md) ([中文](a.zh.md))\n")
        self.put("docs/a.md", "# A\n([中文](a.zh.md)) [x](#on-c-and-e_crc)\n\n"
                              "## On C++ and `E_CRC`\n")
        self.put("docs/a.zh.md", "# 甲\n（[English](a.md)）[乙](#乙-与-丙)\n\n"
                                 "## 乙 与 丙！\n")

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def add(self, name, text):
        path = self.root / name
        self.put(name, path.read_text(encoding="utf-8") + text)

    def check(self):
        return subprocess.run(
            [sys.executable, ROOT / "scripts/check_pages.py", self.root],
            capture_output=True, text=True, check=False)

    def assert_fails(self, reason):
        result = self.check()
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(reason, result.stderr)

    def test_a_good_tree_passes(self):
        result = self.check()
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_link_to_no_file(self):
        self.add("docs/a.md", "[b](../src/b.h)\n")
        self.assert_fails("docs/a.md: leads to ../src/b.h, which does not exist")

    def test_a_link_to_no_heading(self):
        self.add("docs/README.md", "[b](a.md#on-c)\n")
        self.assert_fails("a.md#on-c: 0 headings of that name")

    def test_a_link_to_one_of_two_headings(self):
        self.add("docs/a.md", "## On C++ and `E_CRC`\n")
        self.assert_fails("2 headings of that name")

    def test_links_in_code_do_not_count(self):
        self.add("docs/a.md", "`[b](b.md)`\n\n```cpp\n[](c.md)\n# x\n```\n")
        result = self.check()
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_page_that_the_menu_and_the_index_lack(self):
        self.put("docs/b.md", "# B\n")
        self.assert_fails("nav.toml: does not name docs/b.md")
        self.assert_fails("docs/README.md: does not name b.md")

    def test_an_entry_without_a_page(self):
        self.add("docs/site/nav.toml", NAV.replace("a.md", "gone.md"))
        self.assert_fails("names gone.md, which does not exist")
        self.assert_fails("names README.md twice")

    def test_an_entry_without_a_chinese_title(self):
        self.put("docs/site/nav.toml", NAV.replace(', zh = "甲"', ""))
        self.assert_fails("needs titles en and zh")

    def test_languages_that_do_not_link(self):
        self.put("docs/a.zh.md", "# 甲\n")
        self.assert_fails("docs/a.zh.md: the two languages do not link")

    def test_a_chinese_page_that_leads_to_an_english_one(self):
        self.put("docs/README.zh.md", "# 索引\n[甲](a.md)（[English](README.md)）\n")
        self.assert_fails("leads to a.md, and there is a.zh.md")

    def test_output_that_no_session_has(self):
        self.put("tests/cli/golden/ls.txt", "$ lockstep ckpt ls a\nw\nexit 0\n")
        self.add("docs/a.md", "```\n$ build/bin/lockstep ckpt ls a\nw\n```\n")
        self.assertEqual(self.check().returncode, 0)
        self.add("docs/a.md", "```\n$ lockstep ckpt ls a\nv\n```\n")
        self.assert_fails("no golden session of lockstep prints this")


class Stage(unittest.TestCase):
    """The pages of the repository, laid out for mkdocs without mkdocs."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.out = pathlib.Path(cls.scratch.name)
        subprocess.run([sys.executable, ROOT / "scripts/site_stage.py", ROOT,
                        cls.out], check=True, capture_output=True)

    def text(self, name):
        return (self.out / "docs" / name).read_text(encoding="utf-8")

    def test_every_link_of_a_staged_page_leads_to_a_file(self):
        headers = {f"api/{name.removeprefix('lockstep/')}.md"
                   for name in site_pages.installed_headers(ROOT)}
        links = 0
        for language in ("en", "zh"):
            folder = self.out / "docs" / language
            for path in folder.rglob("*.md"):
                for _, target in site_pages.links(path.read_text("utf-8")):
                    file = target.partition("#")[0]
                    if not file or site_pages.is_elsewhere(target):
                        continue
                    links += 1
                    aim = (path.parent / file).resolve()
                    is_api = aim.relative_to(folder.resolve()).as_posix() in headers
                    self.assertTrue(is_api or aim.is_file(), f"{path}: {target}")
        self.assertGreater(links, 500)

    def test_the_menu_names_files(self):
        for language in ("en", "zh"):
            config = json.loads(
                (self.out / f"mkdocs.{language}.yml").read_text("utf-8"))
            for section in config["nav"]:
                for entries in section.values():
                    for place in (p for e in entries for p in e.values()
                                  if isinstance(p, str)):
                        self.assertTrue(
                            (self.out / "docs" / language / place).is_file(), place)

    def test_languages_lead_to_each_other(self):
        self.assertIn('<a href="../zh/own_data/">中文</a>',
                      self.text("en/own_data.md"))
        self.assertIn('<a href="../../own_data/">English</a>',
                      self.text("zh/own_data.md"))
        self.assertIn("本页只有英文版", self.text("zh/performance.md"))
        self.assertNotIn("本页只有英文版", self.text("zh/own_data.md"))

    def test_the_table_of_errors_has_every_code(self):
        details = (ROOT / "docs/error_details.md").read_text("utf-8")
        table = self.text("en/error_table.md")
        for _, code in site_pages.headings(details)[1:]:
            self.assertIn(f"[`{code}`](error_details.md#{code.lower()})", table)


class BenchTables(unittest.TestCase):
    def test_a_row_is_a_row(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({
                "machine": {"date": "2026-01-02", "processor": "P", "cores": 2,
                            "torch": "2.13.0", "python": "3.11.2",
                            "revision": "abc"},
                "rounds": 5, "titles": {"data": "One epoch.\nMore."},
                "results": [{"row": "data", "name": "a | b", "unit": "img/s",
                             "peer": 1234.5, "ours": 0.01234, "ratio": 2.5,
                             "low": 2, "high": 3}]}, file)
            file.flush()
            text = bench_tables.page_part(file.name)
        self.assertIn("2026-01-02: P, 2 cores, torch 2.13.0", text)
        self.assertIn("## data\n\nOne epoch.\n\n", text)
        self.assertIn("| a \\| b | img/s | 1,230 | 0.0123 | 2.50 | 2.00 to 3.00 |",
                      text)


if __name__ == "__main__":
    unittest.main()
