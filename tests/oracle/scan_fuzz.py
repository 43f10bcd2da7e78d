# SPDX-License-Identifier: BSD-3-Clause
"""Random pickles, and the names that Python's unpicklers ask for in each.

    python tests/oracle/scan_fuzz.py SEED COUNT FILE
Writes COUNT times: u32 length, the pickle, u32 number of names, and for each u32
length and "module.name" as ckpt::dotted_name has it. A name counts that the
unpickler in C or the one in Python asks `find_class` for; what it gets is a class
that takes every call, so that they go on as far as the bytes allow. Nothing is
imported or run. Needs nothing but Python 3.8 or newer.
"""
import copyreg
import io
import pickle
import random
import resource
import struct
import sys
import warnings

WORDS = ["os", "system", "posix", "cmy-module", "m\u00fcnchen", "a.b", "a.b.c", "", "x y", "os\r",
         "collections", "OrderedDict", "builtins", "getattr", "__builtin__", "eval", "f:g", "\ud800",
         "\U0001f600", "te\\st", "it's", 'say"', "\u2028", "text", "x" * 300, "\\u0041", "\\\\u0041",
         "torch._utils", "_rebuild_tensor_v2", "tab\there", "\x00", "line\nfeed", "numpy", "dtype",
         "extmod", "."]
ASCII = [word for word in WORDS if word.isascii()]
LINES = [word for word in WORDS if "\n" not in word and "\ud800" not in word]
EXTENSIONS = {1: ("extmod", "one"), 300: ("extmod", "two"), 70000: ("extmod", "three")}
NUMBERS = ["{}", "+{}", " {}", "{} ", "00{}", "{}\r", "{}\x00z", "-{}", "{}_0", "9999999999999999999999{}"]
EMPTY = [b"(", b")", b"]", b"}", b"N", b"\x88", b"\x89", b"\x8f", b"K\x07", b"G" + bytes(8), b"I01\n",
         b"I7\n", b"L5L\n", b"F1.5\n", b"\x8a\x01\x05", b"\x8b\x01\0\0\0\x05", b"J\1\0\0\0", b"M\1\2",
         b"C\x02ab", b"B\2\0\0\0ab", b"\x8e\1\0\0\0\0\0\0\0a", b"\x96\1\0\0\0\0\0\0\0a", b"\x97"]
# What needs values on the stack, in the order of how many.
ONE = [b"0", b"2", b"\x85", b"Q", b"\x98", b"q\1", b"p2\n", b"r\3\0\0\0", b"\x94"]
TWO = [b"\x86", b"R", b"\x81", b"b", b"a", b"\x93"]
MARKED = [b"t", b"l", b"d", b"e", b"u", b"o", b"\x90", b"\x91", b"1"]


class Meta(type):
    def __getattr__(cls, name):
        if name in ("__getinitargs__", "readonly"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None

    def __setitem__(cls, key, value):
        pass


class Inert(metaclass=Meta):
    """Takes what a pickle does to it."""

    def __new__(cls, *args, **kwargs):
        return object.__new__(cls)

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return self

    def __setitem__(self, key, value):
        pass

    def __setstate__(*args):
        pass

    def append(*args):
        pass

    extend = add = update = append


class Text(Inert):
    """A call that gives a text, which STACK_GLOBAL may take."""

    def __new__(cls, *args, **kwargs):
        return "made"


class Recorder:
    def find_class(self, module, name):
        self.asked.append((module, name))
        return Text if name == "text" else Inert

    def persistent_load(self, pid):
        return "pers" if pid == "text" else Inert()


class InC(Recorder, pickle.Unpickler):
    pass


class InPython(Recorder, pickle._Unpickler):
    pass


def asked(data):
    names = []
    for unpickler in (InC, InPython):
        # As torch.load has it; the default, ASCII, stops earlier.
        loader = unpickler(io.BytesIO(data), encoding="utf-8", buffers=[b"ab"] * 5)
        loader.asked = []
        try:
            loader.load()
        except Exception:
            pass
        names += [name for name in loader.asked if name not in names]
    return names


def escape(rng, raw):
    """A text of STRING: what `repr` would write, and what it would not."""
    out = []
    for byte in raw:
        char = chr(byte)
        if byte >= 0x7F or byte < 0x20 or char in "\\'\"" or rng.random() < 0.1:
            out.append(rng.choice([f"\\x{byte:02x}", f"\\{byte:03o}"]))
        else:
            out.append(char)
    return "".join(out) + rng.choice(["", "", "", "", "\\q", "\\7"])


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def word(self):
        return self.rng.choice(WORDS)

    def text(self, word=None):
        rng = self.rng
        word = rng.choice(WORDS) if word is None else word
        raw = word.encode("utf-8", "surrogatepass")
        kind = rng.randrange(7)
        if kind == 0:
            quote = rng.choice("'\"")
            return f"S{quote}{escape(rng, raw)}{quote}\n".encode()
        if kind == 1:
            return b"T" + struct.pack("<i", len(raw)) + raw
        if kind == 2 and len(raw) < 256:
            return b"U" + bytes([len(raw)]) + raw
        if kind == 3:
            line = word.encode("raw_unicode_escape") if rng.random() < 0.7 else raw
            if rng.random() < 0.2:
                line = b"".join(b"\\u%04x" % ord(c) if ord(c) < 65536 else b"\\U%08x" % ord(c)
                                for c in word)
            return b"V" + line.replace(b"\n", b"\\u000a") + b"\n"
        if kind == 4 and len(raw) < 256:
            return b"\x8c" + bytes([len(raw)]) + raw
        if kind == 5:
            return b"\x8d" + struct.pack("<Q", len(raw)) + raw
        return b"X" + struct.pack("<I", len(raw)) + raw

    def index(self):
        return self.rng.choice((0, 1, 2, 3, 4, 5, 7, 255))

    def put(self):
        rng, at = self.rng, self.index()
        return rng.choice([
            b"\x94", b"q" + bytes([at]), b"r" + struct.pack("<I", at),
            ("p" + self.number(at) + "\n").encode()])

    def get(self):
        rng, at = self.rng, self.index()
        return rng.choice([
            b"h" + bytes([at]), b"j" + struct.pack("<I", at),
            ("g" + self.number(at) + "\n").encode()])

    def number(self, at):
        rng = self.rng
        return (rng.choice(NUMBERS) if rng.random() < 0.3 else "{}").format(at)

    def lines(self):
        rng = self.rng
        pool = ASCII if rng.random() < 0.5 else LINES
        pair = [rng.choice(pool).replace("\n", "") for _ in range(2)]
        return ("\n".join(pair) + "\n").encode("utf-8", "surrogatepass")

    def naming(self):
        """Something that asks for a name."""
        rng = self.rng
        kind = rng.randrange(8)
        if kind < 2:
            return b"c" + self.lines()
        if kind == 2:
            return (b"(" if rng.random() < 0.8 else b"") + self.text() + b"i" + self.lines()
        if kind == 3:
            return b"(c" + self.lines() + self.text() + b"o"
        if kind == 4:
            code = rng.choice([1, 300, 70000, 9, 0])
            return (b"\x84" + struct.pack("<i", code) if code > 65535 else
                    b"\x83" + struct.pack("<H", code) if code > 255 else b"\x82" + bytes([code]))
        if kind == 5:  # out of the memo
            return (self.text() + b"p8\n0" + self.text() + b"q\x09" + b"0" + rng.choice([b"h\x08", b"g8\n"])
                    + b"j\x09\0\0\0\x93")
        if kind == 6:
            return self.text() + self.put() + self.text() + self.put() + b"\x93"
        return self.text() + self.text() + b"\x93"

    def piece(self):
        rng = self.rng
        roll = rng.random()
        if roll < 0.28:
            return self.naming()
        if roll < 0.40:
            return self.text()
        if roll < 0.52:
            return rng.choice(EMPTY)
        if roll < 0.60:
            return rng.choice(ONE)
        if roll < 0.70:
            return self.naming() + rng.choice([b")", b"(t", self.text() + b"\x85"]) + rng.choice(TWO)
        if roll < 0.74:
            return b"(" + rng.choice(EMPTY) + self.text() + rng.choice(MARKED)
        if roll < 0.80:
            return b"]" + rng.choice([b"Na", b"(NNe", b"("]) if rng.random() < 0.5 else b"}(" + self.text() + b"Nu"
        if roll < 0.85:
            return self.put()
        if roll < 0.89:
            return self.get()
        if roll < 0.93:
            return b"\x80" + bytes([rng.choice([0, 1, 2, 3, 4, 5, 5, 6])])
        if roll < 0.95:
            return b"\x95" + struct.pack("<Q", rng.choice([0, 1, 5, rng.randrange(40), 40, 1000, 2**63]))
        if roll < 0.97:
            return b"P" + rng.choice([b"text", b"7"]) + b"\n"
        return self.naming() + b")}\x92"

    def stream(self):
        rng = self.rng
        data = b"" if rng.random() < 0.5 else b"\x80" + bytes([rng.choice([0, 1, 2, 3, 4, 5])])
        data += b"".join(self.piece() for _ in range(rng.randrange(1, 14)))
        return data + (b"." if rng.random() < 0.8 else b"")

    def dumped(self):
        """What a pickler writes, framed or not."""
        rng = self.rng
        value = [self.word().replace("\ud800", "") for _ in range(rng.randrange(5))]
        value = rng.choice([value, {"k": value}, {(1, 2): {3.5, None}}, bytes(7), 2**80, print, io.BytesIO])
        data = pickle.dumps([value, len, value], protocol=rng.randrange(6))
        return data[2:] if data[:1] == b"\x80" and rng.random() < 0.3 else data

    def damaged(self, data):
        rng = self.rng
        data = bytearray(data)
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(data) + 1)
            kind = rng.randrange(5)
            if kind == 0 and at < len(data):
                data[at] = rng.randrange(256)
            elif kind == 1:
                data[at:at] = bytes([rng.randrange(256)])
            elif kind == 2:
                del data[at:at + rng.randrange(1, 4)]
            elif kind == 3:
                data[at:at] = self.piece()
            else:
                del data[at:]
        return bytes(data)

    def case(self):
        rng = self.rng
        roll = rng.random()
        if roll < 0.02:
            return bytes(rng.randrange(256) for _ in range(rng.randrange(60)))
        data = self.dumped() if roll < 0.12 else self.stream()
        if rng.random() < 0.1:
            data += self.stream()
        return self.damaged(data) if rng.random() < 0.4 else data


def spelled(module, name):
    full = f"{module}{':' if '.' in name else '.'}{name}"
    return full.encode("utf-8", "surrogatepass")


def main():
    seed, count, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    warnings.simplefilter("ignore")
    # A memo number of four bytes makes the unpickler in C ask for 64 GiB.
    resource.setrlimit(resource.RLIMIT_AS, (1 << 27, 1 << 27))
    for code, (module, name) in EXTENSIONS.items():
        copyreg.add_extension(module, name, code)
    maker = Maker(random.Random(seed))
    with open(path, "wb") as out:
        for _ in range(count):
            data = maker.case()
            copyreg._extension_cache.clear()
            names = [spelled(*pair) for pair in asked(data)]
            out.write(struct.pack("<I", len(data)) + data + struct.pack("<I", len(names)))
            for name in names:
                out.write(struct.pack("<I", len(name)) + name)


if __name__ == "__main__":
    main()
