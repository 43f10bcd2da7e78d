#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the built site: site_pictures.py HTML_FOLDER OUT [PAGE...]

Each page ("own_data/") in two widths, light and dark, English and Chinese; says
which elements are wider than the window. Needs playwright (pip) and Chromium.
"""

import functools
import http.server
import pathlib
import shutil
import sys
import threading

from playwright.sync_api import sync_playwright

PAGES = ["", "own_data/", "look_into_a_file/", "performance/", "api/ckpt/load.h/"]
WIDE = """() => [...document.querySelectorAll('.md-content *')]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1 &&
               !e.closest('.md-typeset__scrollwrap, pre, .md-code__content, svg'))
  .slice(0, 5).map(e => e.tagName + ' ' + e.textContent.slice(0, 60))"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main():
    folder, out = sys.argv[1], pathlib.Path(sys.argv[2])
    pages = sys.argv[3:] or PAGES
    out.mkdir(parents=True, exist_ok=True)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}/"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            for width in (1400, 400):
                context = browser.new_context(
                    color_scheme=scheme,
                    viewport={"width": width, "height": 1000})
                tab = context.new_page()
                tab.on("request", lambda r: r.url.startswith(base) or print(
                    f"asks another host: {r.url}"))
                tab.on("pageerror", lambda e: print(f"error: {e}"))
                for page in pages:
                    for language in ("", "zh/"):
                        tab.goto(base + language + page)
                        tab.wait_for_timeout(300)
                        name = (language + page).strip("/").replace("/", "_")
                        tab.screenshot(path=out / (
                            f"{name or 'home'}-{width}-{scheme}.png"))
                        for element in tab.evaluate(WIDE):
                            print(f"{name} at {width}: wide: {element}")
                context.close()
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
