# SPDX-License-Identifier: BSD-3-Clause
"""What users do with files and arrays: close, share, replace, pickle, name."""
import copy
import errno
import gc
import io
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import lockstep
from pt_files import TESTDATA, Storage, Tensor, pt_bytes, tensor, write_pt

TINY = TESTDATA / "valid" / "tiny.pt"
TRAINING = TESTDATA / "valid" / "training.pth.tar"


def is_mapped(path):
    return str(path) in pathlib.Path("/proc/self/maps").read_text()


class Lifetimes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "a.pt"
        write_pt(self.path, {"w": tensor(np.arange(1 << 16, dtype=np.int32)), "n": 1})

    def test_the_mapping_lives_as_long_as_an_array(self):
        tree = lockstep.load(self.path)
        part = tree["w"][5:9][::-1]
        del tree
        gc.collect()
        self.assertTrue(is_mapped(self.path))
        self.assertEqual(part.tolist(), [8, 7, 6, 5])
        del part
        gc.collect()
        self.assertFalse(is_mapped(self.path))

    def test_arrays_live_on_when_the_file_is_closed(self):
        with lockstep.open(self.path) as file:
            array = file["w"]
            self.assertEqual(file["n"], 1)
        self.assertTrue(file.closed)
        self.assertEqual(array[-1], (1 << 16) - 1)
        for use in (lambda: file["w"], lambda: list(file), lambda: file.info("w"), lambda: "w" in file):
            with self.assertRaises(ValueError):
                use()
        self.assertEqual(repr(file), "<lockstep.File zip, closed>")

    def test_a_replaced_file_stays_as_it_was_for_those_who_mapped_it(self):
        array = lockstep.load(self.path)["w"]
        other = write_pt(self.path.with_name("b.pt"), {"w": tensor(np.full(1 << 16, 7, np.int32))})
        os.replace(other, self.path)
        self.assertEqual(array[3], 3)
        self.assertEqual(lockstep.load(self.path)["w"][3], 7)
        os.remove(self.path)
        self.assertEqual(int(array.sum()), sum(range(1 << 16)))

    def test_without_a_mapping_a_shortened_file_hurts_nobody(self):
        array = lockstep.load(self.path, mmap=False)["w"]
        self.assertFalse(is_mapped(self.path))
        os.truncate(self.path, 0)
        self.assertEqual(int(array.sum()), sum(range(1 << 16)))
        self.assertFalse(array.flags.writeable)

    def test_a_mapped_file_that_is_shortened_ends_the_process(self):
        code = ("import lockstep, os, sys; w = lockstep.load(sys.argv[1])['w'];"
                "os.truncate(sys.argv[1], 0); w.sum()")
        done = subprocess.run([sys.executable, "-c", code, self.path], capture_output=True)
        self.assertEqual(done.returncode, -7)  # SIGBUS, as documented

    def test_arrays_can_be_pickled_copied_and_sent(self):
        tree = lockstep.load(self.path)
        for again in (pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree)):
            np.testing.assert_array_equal(again["w"], tree["w"])
            again["w"][0] = 5
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            self.assertEqual(pool.map(np.sum, [tree["w"]]), [tree["w"].sum()])

    def test_threads(self):
        failures = []
        file = lockstep.open(self.path)

        def work():
            try:
                for _ in range(50):
                    assert lockstep.load(self.path)["w"][77] == 77
                    assert file["w"][78] == 78 and file.keys()
                    lockstep.digest(self.path)
            except BaseException as error:  # noqa: BLE001
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_no_references_are_lost(self):
        path = TRAINING

        def once():
            lockstep.load(path)
            with lockstep.open(path) as file:
                [file[name] for name in file]
            with self.assertRaises(lockstep.LockstepError):
                lockstep.load(TESTDATA / "corrupt" / "conflict.pt")
            lockstep.scan(path), lockstep.verify(path), lockstep.digest(path)

        for _ in range(20):
            once()
        gc.collect()
        before = sys.getrefcount(None), resident()
        for _ in range(300):
            once()
        gc.collect()
        self.assertLess(sys.getrefcount(None) - before[0], 100)
        self.assertLess(resident() - before[1], 4 << 20)


def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Sources(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_paths_files_and_bytes(self):
        data = TINY.read_bytes()
        want = lockstep.load(TINY)["w"].tolist()
        for source in (str(TINY), TINY, io.BytesIO(data), io.BytesIO(b"xx" + data)):
            with self.subTest(source=type(source).__name__):
                if isinstance(source, io.BytesIO) and source.getbuffer()[:2] == b"xx":
                    source.seek(2)
                self.assertEqual(lockstep.load(source)["w"].tolist(), want)
        with open(TINY, "rb") as file:
            self.assertEqual(lockstep.load(file)["w"].tolist(), want)
        for buffer in (data, bytearray(data), memoryview(data)):
            self.assertEqual(lockstep.loads(buffer)["w"].tolist(), want)

    def test_a_changed_buffer_changes_no_array(self):
        data = bytearray(TINY.read_bytes())
        got = lockstep.loads(data)["w"]
        want = got.tolist()
        data[:] = bytes(len(data))
        self.assertEqual(got.tolist(), want)

    def test_what_is_no_source(self):
        for source in (TINY.read_bytes(), 5, None, io.StringIO("text")):
            with self.subTest(source=type(source).__name__), self.assertRaisesRegex(TypeError, "^expected a .*, got "):
                lockstep.load(source)
        with self.assertRaises(ValueError):
            lockstep.load("a\0b")
        for use in (lambda file: file[0], lambda file: file.info(0)):
            with self.assertRaisesRegex(TypeError, "expected a name, got int"):
                use(lockstep.open(TINY))
        self.assertEqual(list(lockstep.load(TINY, mmap=None, check_crc=1)), ["w"])

    def test_names_of_files(self):
        for name in ("gr\u00fc\u00dfe \u6a21\u578b.pt", "new\nline.pt", "-", "-x.pt", os.fsdecode(b"\xff\xfe.pt")):
            with self.subTest(name=ascii(name)):
                path = self.folder / name
                path.write_bytes(TINY.read_bytes())
                self.assertEqual(list(lockstep.load(path)), ["w"])
                self.assertEqual(lockstep.scan(path).path, str(path))
                self.assertTrue(lockstep.verify(path).is_sound)
                out = self.folder / "out.safetensors"
                lockstep.convert(path, out, overwrite=True)
                self.assertEqual(lockstep.digest(out), lockstep.digest(path))

    def test_a_missing_file(self):
        path = self.folder / "nope.pt"
        with self.assertRaises(FileNotFoundError) as caught:
            lockstep.load(path)
        error = caught.exception
        self.assertIsInstance(error, lockstep.MissingFileError)
        for told in (error, pickle.loads(pickle.dumps(error))):
            self.assertEqual((told.filename, told.path, told.name), (str(path), str(path), "kNotFound"))
            self.assertEqual((told.errno, told.strerror), (errno.ENOENT, os.strerror(errno.ENOENT)))
        with self.assertRaises(lockstep.LockstepError):
            lockstep.load(self.folder)

    def test_a_missing_name(self):
        file = lockstep.open(TRAINING)
        name = next(iter(file))
        with self.assertRaises(KeyError) as caught:
            file[name[:-1]]
        self.assertIsInstance(caught.exception, lockstep.MissingKeyError)
        self.assertIn(name, caught.exception.hint + str(caught.exception))
        self.assertNotIn(name[:-1], file)
        self.assertIsNone(file.get(name[:-1]))

    def test_errors_have_all_parts_and_can_be_sent(self):
        path = TESTDATA / "corrupt" / "crc_data.pt"
        with self.assertRaises(lockstep.CorruptError) as caught:
            lockstep.load(path, check_crc=True)
        error = caught.exception
        self.assertEqual((error.code, error.name, error.path), ("E_CRC", "kCorrupt", str(path)))
        self.assertTrue(error.record.endswith("data/0"), error.record)
        self.assertIn("E_CRC", [p.code for p in lockstep.verify(path).errors])
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(again), str(again), again.record), (type(error), str(error), error.record))
        lockstep.load(path)  # tensors are not compared without check_crc
        with self.assertRaises(lockstep.CorruptError) as caught:
            lockstep.load(TESTDATA / "corrupt" / "crc_pickle.pt")
        self.assertEqual(caught.exception.code, "E_CRC")


class Values(unittest.TestCase):
    def test_entries_by_name(self):
        with lockstep.open(TRAINING) as file:
            tree = lockstep.load(TRAINING)
            self.assertEqual(file["epoch"], tree["epoch"])
            self.assertEqual(file.format, "zip")
            self.assertIn("epoch", file)
            self.assertEqual(list(file), lockstep.keys(TRAINING))
            self.assertEqual(len(file), len(list(file)))
            self.assertEqual(list(file.root()), list(tree))
            name = next(iter(file))
            self.assertEqual(file.info(name).shape, file[name].shape)
            with self.assertRaises(lockstep.InvalidArgumentError):
                file.info("epoch")
            self.assertNotEqual(file, lockstep.open(TRAINING))

    def test_a_name_of_two_values_is_refused(self):
        one, two = (tensor(np.full(1, i, np.float32)) for i in (1, 2))
        file = lockstep.open(io.BytesIO(pt_bytes({"a.b": one, "a": {"b": two}, "c": one})))
        self.assertEqual(list(file), ["a.b", "c"])
        self.assertIn("a.b", file)
        for use in (file.info, file.__getitem__, file.get):
            with self.assertRaises(lockstep.InvalidArgumentError) as caught:
                use("a.b")
            self.assertEqual(caught.exception.code, "E_AMBIGUOUS")
        self.assertEqual(file.root()["a"]["b"].tolist(), [2])

    def test_names_that_are_no_text(self):
        one, two = (tensor(np.full(1, i, np.float32)) for i in (1, 2))
        for raw in (b"\xffab", b"\xed\xb2\x80"):
            text = b"X" + bytes([len(raw), 0, 0, 0]) + raw
            data = pt_bytes({"KEY": one, "other": two}, edit=lambda code: code.replace(b"X\x03\0\0\0KEY", text))
            file = lockstep.open(io.BytesIO(data))
            name = next(iter(file))
            self.assertEqual(file[name].tolist(), [1])
            self.assertEqual(file.info(name).name, name)

    def test_oddities_are_warnings(self):
        data = io.BytesIO()
        np.savez(data, texts=np.array(["x"]), b=np.arange(2))
        with self.assertWarnsRegex(lockstep.LockstepWarning, "texts.*W_ARRAY"):
            lockstep.loads(data.getvalue())
        data.seek(0)
        with self.assertWarns(lockstep.LockstepWarning) as caught:
            lockstep.load(data)
        self.assertEqual(caught.filename, __file__)
        with self.assertWarnsRegex(lockstep.LockstepWarning, "trailing.pt: "):
            lockstep.load(TESTDATA / "hostile" / "trailing.pt")

    def test_a_conversion_of_elements_is_a_copy(self):
        value = lockstep.Tensor("int64", (2,), np.array([1, 2]))
        self.assertEqual(np.asarray(value, np.float16).tolist(), [1, 2])
        with self.assertRaises(ValueError):
            value.__array__(np.float16, copy=False)

    def test_small_stacks(self):
        code = b"\x80\x02" + b"]" * 900 + b"a" * 899 + b"."
        data = pt_bytes(None, code=code)
        got = lockstep.loads(data)
        for _ in range(899):
            (got,) = got
        before = threading.stack_size(256 << 10)
        try:
            thread = threading.Thread(target=lockstep.loads, args=(data,))
            thread.start()
            thread.join()
        finally:
            threading.stack_size(before)

    def test_reprs_are_short(self):
        base = Storage(np.zeros(4, np.uint16), "bfloat16")
        got = lockstep.loads(pt_bytes({"w": Tensor(base, (4,), (1,))}), ml_dtypes=False)["w"]
        self.assertEqual(repr(got), "<lockstep.Tensor bfloat16 [4]>")


if __name__ == "__main__":
    unittest.main()
