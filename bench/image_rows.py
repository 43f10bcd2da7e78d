# SPDX-License-Identifier: BSD-3-Clause
"""Rows of bench/run.py about pictures: decoded, resized, augmented, normalised."""

import os
import pathlib
import subprocess
import sys
import threading

from parallel_rows import ratios

HERE = pathlib.Path(__file__).resolve().parent
# Ending and number of pictures, 500 x 375.
FOLDERS = {"jpg": 2000, "png": 300}


def photos(home, ending):
    """Pictures of make_photos.py, which are made once."""
    folder = home / f"photos-{ending}-{FOLDERS[ending]}"
    if not folder.exists():
        part = folder.with_suffix(".part")
        subprocess.run([sys.executable, HERE / "make_photos.py", part,
                        str(FOLDERS[ending]), ending], check=True)
        part.rename(folder)
    return folder


def memory_of(pid):
    """Megabytes of a process and its children; what they share counts once."""
    home = pathlib.Path(f"/proc/{pid}")
    try:
        rows = (home / "smaps_rollup").read_text().splitlines()
        children = (home / f"task/{pid}/children").read_text().split()
    except OSError:
        return 0  # it has ended
    own = next(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
    return own / 1024 + sum(memory_of(int(child)) for child in children)


class MemoryPeak(threading.Thread):
    """The most memory that a peer has inside of a `with`, ten looks a second."""

    def __init__(self, peer):
        super().__init__()
        self.pid = peer.process.pid
        self.most = 0
        self.ends = threading.Event()

    def run(self):
        while not self.ends.wait(0.1):
            self.most = max(self.most, memory_of(self.pid))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.join()


def rate(peer):
    """Images per second of a round, and the peak of memory."""
    with MemoryPeak(peer) as memory:
        images = peer.round()["images_per_s"]
    return images, memory.most


def compared(peer, ours, rounds):
    """Ratios of the rates and of the memory, ours by theirs."""
    measured = [(rate(peer), rate(ours)) for _ in range(rounds)]
    by_rate = ratios([(1 / p[0], 1 / o[0]) for p, o in measured])
    by_rate.update(peer=1 / by_rate["peer"], ours=1 / by_rate["ours"])
    memory = ratios([(p[1], o[1]) for p, o in measured])
    return by_rate, memory


def image_rows(open_peer, program, home, rounds, require):
    """torchvision's ImageFolder and DataLoader, and our loader, with as many
    workers; then our loader without and with a cache."""
    for ending in FOLDERS:
        folder = photos(home, ending)
        for kind, what in (("train", "random crop, flip"), ("test", "resize, crop")):
            for workers in (1, 2):
                with open_peer(sys.executable, HERE / "peer_images.py", folder,
                               workers, kind) as peer, \
                        open_peer(program, folder, workers, kind) as ours:
                    difference = abs(peer.ready["mean"] - ours.ready["mean"])
                    require(difference < 0.05, f"means differ by {difference}")
                    by_rate, memory = compared(peer, ours, rounds)
                name = f"{ending} {what}, {workers} workers each"
                yield f"torchvision -> ours, {name}", "img/s", by_rate
                yield f"memory, {name}", "MB", memory
    folder = photos(home, "jpg")
    os.environ["XDG_CACHE_HOME"] = str(home / "photos-cache")
    with open_peer(program, folder, 1, "test") as plain:
        for cache in ("ram", "disk"):
            with open_peer(program, folder, 1, "test", cache) as ours:
                require(plain.ready["mean"] == ours.ready["mean"],
                        "the cache has other pixels")
                yield (f"ours -> ours, --cache {cache}, jpg", "img/s",
                       compared(plain, ours, rounds)[0])
