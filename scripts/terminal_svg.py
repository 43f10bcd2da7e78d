#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws what a command prints as a picture of a terminal.

    make demo | tail -n 20 | scripts/terminal_svg.py --title 'make demo' > demo.svg

Plain text in, SVG out; a line that begins with '$ ' or '== ' stands out. The
picture follows the reader's light or dark theme.
"""
import argparse
import html
import sys

WIDTH, HEIGHT, MARGIN, BAR = 8.4, 18, 16, 34  # pixels: a character, the frame

STYLE = """
  .frame { fill: #f6f8fa; stroke: #d0d7de; }
  text { font: 14px ui-monospace, 'DejaVu Sans Mono', Menlo, monospace;
         fill: #1f2328; white-space: pre; }
  .title { fill: #59636e; }
  .strong { fill: #0550ae; font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    .frame { fill: #151b23; stroke: #3d444d; }
    text { fill: #e6edf3; }
    .title { fill: #9198a1; }
    .strong { fill: #79c0ff; }
  }"""


def text_element(x, y, css, text):
    return (f'<text x="{x:.1f}" y="{y}" class="{css}" '
            f'xml:space="preserve">{html.escape(text)}</text>')


def draw(lines, title):
    columns = max(map(len, lines), default=0)
    width = round(2 * MARGIN + WIDTH * max(columns, len(title)))
    height = BAR + HEIGHT * len(lines) + MARGIN
    body = [text_element(MARGIN, 22, "title", title)]
    for row, line in enumerate(lines):
        css = "strong" if line.startswith(("$ ", "== ")) else "plain"
        body.append(text_element(MARGIN, BAR + HEIGHT * (row + 1) - 4, css, line))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{html.escape(title)}</title>",
        f"<style>{STYLE}\n</style>",
        f'<rect class="frame" x="0.5" y="0.5" width="{width - 1}" '
        f'height="{height - 1}" rx="8"/>',
        *body,
        "</svg>",
    ])


def main():
    parser = argparse.ArgumentParser(description="text to a picture")
    parser.add_argument("--title", default="")
    arguments = parser.parse_args()
    print(draw(sys.stdin.read().expandtabs().splitlines(), arguments.title))


if __name__ == "__main__":
    main()
