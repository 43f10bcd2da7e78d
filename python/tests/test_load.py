# SPDX-License-Identifier: BSD-3-Clause
"""What `load` gives: values, arrays, sharing. Needs numpy and the package only."""
import collections
import io
import json
import pickle
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

import numpy as np

import lockstep
from pt_files import TESTDATA, Storage, Tensor, pt_bytes, tensor, write_pt


def bits(value):
    return value.array if isinstance(value, lockstep.Tensor) else value


class Described:
    """What pickles as an array of 8 bytes with a dtype of this state."""

    def __init__(self, kind, state, data):
        self.kind, self.state, self.data = kind, state, data

    def __reduce__(self):
        reconstruct = np.arange(1).__reduce__()[0]
        return reconstruct, (np.ndarray, (0,), b"b"), (1, (len(self.data) // 4,), DescribedType(self), False, self.data)


class DescribedType:
    def __init__(self, array):
        self.array = array

    def __reduce__(self):
        return np.dtype, (self.array.kind, 0, 1), self.array.state


class Fixtures(unittest.TestCase):
    """Every valid file against the expectations beside it, which PyTorch made."""

    def check(self, path, expected):
        with lockstep.open(path, ml_dtypes=False) as file:
            rows = {row["name"]: row for row in expected["tensors"]}
            self.assertEqual(set(file.keys()), set(rows))
            for name, row in rows.items():
                info, value = file.info(name), bits(file[name])
                self.assertEqual((info.dtype, list(info.shape)), (row["dtype"], row["shape"]), name)
                self.assertEqual(info.requires_grad, row["requires_grad"], name)
                self.assertEqual(zlib.crc32(np.ascontiguousarray(value).tobytes()), row["crc32"], name)
                if isinstance(value, np.ndarray):
                    self.assertFalse(value.flags.writeable, name)
            lockstep.load(path)

    def test_valid_files(self):
        seen = 0
        for path in sorted((TESTDATA / "valid").glob("*.expect.json")):
            file = path.with_name(path.name.removesuffix(".expect.json"))
            expected = json.loads(path.read_text())
            if "tensors" in expected:
                with self.subTest(file=file.name):
                    self.check(file, expected)
                seen += 1
        self.assertGreater(seen, 20)

    def test_digests(self):
        rows = (TESTDATA / "digests.tsv").read_text().splitlines()[1:]
        for row in rows:
            name, digest = row.split("\t")
            with self.subTest(file=name):
                self.assertEqual(lockstep.digest(TESTDATA / name), digest)

    def test_corrupt_files_raise_their_code(self):
        for path in sorted((TESTDATA / "corrupt").glob("*.expect.json")):
            expected = json.loads(path.read_text())
            file = path.with_name(path.name.removesuffix(".expect.json"))
            with self.subTest(file=file.name):
                try:
                    lockstep.load(file, check_crc=True)
                except lockstep.LockstepError as error:
                    self.assertEqual(error.name, expected["code"])
                    self.assertEqual(error.code, expected.get("detail") or expected["code"])
                    self.assertEqual(error.path, str(file))
                else:
                    self.assertNotIn("code", expected)

    def test_nothing_is_imported(self):
        before = set(sys.modules)
        for path in sorted((TESTDATA / "hostile").iterdir()):
            if path.suffix != ".json":
                try:
                    lockstep.load(path)
                except lockstep.LockstepError:
                    pass
        self.assertEqual(set(sys.modules) - before, set())
        self.assertNotIn("torch", sys.modules)


class Arrays(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "a.pt"

    def load(self, tree, **options):
        return lockstep.load(write_pt(self.path, tree, **options))

    def test_views_are_strided_arrays_over_one_storage(self):
        base = Storage(np.arange(24, dtype=np.float32))
        got = self.load({
            "all": Tensor(base, (4, 6), (6, 1)), "turned": Tensor(base, (6, 4), (1, 6)),
            "part": Tensor(base, (2, 2), (12, 2), 3), "wide": Tensor(base, (3, 4), (0, 1), 20),
            "one": Tensor(base, (), (), 7), "odd": Tensor(base, (1, 3), (1 << 40, 1), 5)})
        whole = np.arange(24, dtype=np.float32)
        np.testing.assert_array_equal(got["all"], whole.reshape(4, 6))
        np.testing.assert_array_equal(got["turned"], whole.reshape(4, 6).T)
        np.testing.assert_array_equal(got["part"], [[3, 5], [15, 17]])
        np.testing.assert_array_equal(got["wide"], [[20, 21, 22, 23]] * 3)
        self.assertEqual((got["one"].shape, got["one"][()]), ((), 7))
        np.testing.assert_array_equal(got["odd"], [[5, 6, 7]])
        self.assertEqual(got["turned"].strides, (4, 24))
        for name, array in got.items():
            self.assertTrue(np.shares_memory(array, got["all"]), name)
            self.assertIs(array.base, got["all"].base)

    def test_tied_weights_alias_and_one_tensor_is_one_array(self):
        shared = tensor(np.ones((3, 2), np.float32))
        tied = Tensor(shared.storage, (6,), (1,))
        got = self.load({"a": shared, "b": shared, "c": tied, "d": tensor(np.ones(6, np.float32))})
        self.assertIs(got["a"], got["b"])
        self.assertTrue(np.shares_memory(got["a"], got["c"]))
        self.assertFalse(np.shares_memory(got["a"], got["d"]))

    def test_empty_tensors(self):
        empty = Storage(np.empty(0, np.float32))
        got = self.load({"a": Tensor(empty, (0,), (1,)), "b": Tensor(empty, (2, 0, 3), (1, 7, 1)),
                         "c": Tensor(Storage(np.ones(4, np.int64)), (0, 4), (4, 1), 4)})
        self.assertEqual([v.shape for v in got.values()], [(0,), (2, 0, 3), (0, 4)])
        self.assertEqual(got["c"].dtype, np.int64)

    def test_no_view_leaves_its_storage(self):
        base = Storage(np.arange(4, dtype=np.float32))
        for sizes, strides, offset in (((5,), (1,), 0), ((4,), (1,), 1), ((2,), (-1,), 1), ((2, 2), (1 << 62, 1), 0)):
            with self.subTest(sizes=sizes), self.assertRaises(lockstep.CorruptError):
                self.load({"w": Tensor(base, sizes, strides, offset)})

    def test_big_endian_and_deflated_files_have_the_same_values(self):
        for dtype in ("float32", "int16", "complex64", "bool", "uint8"):
            array = np.arange(6).astype(dtype).reshape(2, 3)
            for options in ({"byteorder": "big"}, {"deflate": True}):
                with self.subTest(dtype=dtype, **options):
                    got = self.load({"w": tensor(array)}, **options)["w"]
                    np.testing.assert_array_equal(got, array)
                    self.assertEqual(got.dtype, array.dtype)

    def test_a_file_that_does_not_say_its_byte_order(self):
        array = np.arange(3, dtype=np.int32)
        data = pt_bytes({"w": tensor(array)}, byteorder="big", says_order=False)
        self.assertEqual(lockstep.loads(data, byteorder="big")["w"].tolist(), [0, 1, 2])
        self.assertEqual(lockstep.loads(data)["w"].tolist(), array.byteswap().tolist())
        with self.assertRaises(ValueError):
            lockstep.loads(data, byteorder="middle")
        want = lockstep.digest(io.BytesIO(pt_bytes({"w": tensor(array)})))
        self.assertEqual(lockstep.digest(io.BytesIO(data), byteorder="big"), want)
        self.assertEqual(lockstep.digest_rows(io.BytesIO(data), byteorder="big")[0].name, "w")
        self.assertTrue(lockstep.verify(io.BytesIO(data), byteorder="big").is_sound)
        self.assertNotEqual(lockstep.digest(io.BytesIO(data)), want)

    def test_views_that_repeat_without_end_need_a_limit(self):
        wide = io.BytesIO(pt_bytes({"w": Tensor(Storage(np.ones(1, np.float32)), (1 << 40,), (0,))}))
        for use in (lockstep.digest, lambda f: lockstep.digest(f, limits={"max_expanded_bytes": 1 << 30})):
            wide.seek(0)
            with self.assertRaisesRegex(lockstep.UnsafeError, "'max_expanded_bytes': N"):
                use(wide)
        narrow = io.BytesIO(pt_bytes({"w": Tensor(Storage(np.ones(1, np.float32)), (999,), (0,))}))
        with self.assertRaises(lockstep.UnsafeError):
            lockstep.digest(narrow, limits={"max_expanded_bytes": 100})
        for limits in ({"max_depht": 3}, {"max_depth": -1}, {"max_depth": 1 << 64}):
            with self.assertRaises(ValueError):
                lockstep.load(narrow, limits=limits)
        for limits in ({"max_depth": "3"}, {"max_depth": 3.0}, [("max_depth", 3)], 5):
            with self.assertRaises(TypeError):
                lockstep.load(narrow, limits=limits)
        narrow.seek(0)
        self.assertEqual(lockstep.load(narrow, limits={"max_depth": np.int64(50)})["w"].shape, (999,))
        bomb = pt_bytes({"w": tensor(np.zeros(1 << 20, np.float32))}, deflate=True)
        with self.assertRaisesRegex(lockstep.UnsafeError, "'max_ratio': N"):
            lockstep.loads(bomb)
        self.assertEqual(lockstep.loads(bomb, limits={"max_ratio": 1 << 40})["w"].size, 1 << 20)

    def test_arrays_alias_the_file_and_copies_can_be_written(self):
        got = self.load({"w": tensor(np.zeros(1 << 20, np.float32))})["w"]
        maps = Path("/proc/self/maps").read_text()
        self.assertIn(str(self.path), maps)
        with self.assertRaises(ValueError):
            got[0] = 1
        with self.assertRaises(ValueError):
            got.flags.writeable = True
        copy = got.copy()
        copy[0] = 1
        self.assertEqual(got[0], 0)

    def test_bfloat16_without_ml_dtypes_says_what_it_is(self):
        numbers = np.array([1.5, -2, 0.125, np.inf], np.float32)
        raw = (numbers.view(np.uint32) >> 16).astype(np.uint16)
        data = pt_bytes({"w": Tensor(Storage(raw, "bfloat16"), (2, 2), (2, 1))})
        got = lockstep.loads(data, ml_dtypes=False)["w"]
        self.assertIsInstance(got, lockstep.Tensor)
        self.assertEqual((got.dtype, got.shape, got.array.dtype), ("bfloat16", (2, 2), np.uint16))
        np.testing.assert_array_equal(got.numbers(), numbers.reshape(2, 2))
        with self.assertRaises(TypeError):
            np.asarray(got)

    def test_bfloat16_with_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            with self.assertRaises(ImportError):
                lockstep.load(TESTDATA / "valid" / "tiny.pt", ml_dtypes=True)
            return
        raw = np.array([0x3FC0, 0xC000], np.uint16)
        got = lockstep.loads(pt_bytes({"w": Tensor(Storage(raw, "bfloat16"), (2,), (1,))}))["w"]
        self.assertEqual(got.dtype, ml_dtypes.bfloat16)
        self.assertEqual(got.astype(np.float32).tolist(), [1.5, -2])


class Values(unittest.TestCase):
    def load(self, tree):
        return lockstep.loads(pt_bytes(tree))

    def test_order_and_types_of_keys_stay(self):
        tree = {"z": 1, 3: "three", 1: None, (1, "a"): 2.5, b"k": True, None: [], 2.5: {}}
        got = self.load(tree)
        self.assertEqual(got, tree)
        self.assertEqual([(type(k), k) for k in got], [(type(k), k) for k in tree])

    def test_values(self):
        tree = {"i": -5, "big": 1 << 100, "neg": -(1 << 70), "u": (1 << 64) - 1, "f": 0.1, "nan": [float("inf")],
                "c": 1 + 2j, "s": "h\u00e9\U0001f600\ud800", "b": b"\x00\xff", "t": (1, (2,), ()), "set": {1, "a"},
                "e": ["", b"", 0]}
        self.assertEqual(self.load(tree), tree)

    def test_ordered_dicts_keep_class_and_attributes(self):
        state = collections.OrderedDict(w=1)
        state._metadata = {"": {"version": 2}}
        got = self.load({"state": state, "n": collections.Counter("aab")})
        self.assertIs(type(got["state"]), collections.OrderedDict)
        self.assertEqual(got["state"]._metadata, {"": {"version": 2}})
        self.assertEqual((type(got["n"]), got["n"]), (collections.Counter, collections.Counter(a=2, b=1)))

    def test_shared_nodes_and_cycles(self):
        shared = [1]
        loop = {"shared": shared, "again": shared}
        loop["self"] = loop
        loop["list"] = [loop]
        got = self.load(loop)
        self.assertIs(got["shared"], got["again"])
        self.assertIs(got["self"], got)
        self.assertIs(got["list"][0], got)

    def test_every_kind_of_value_may_be_reached_twice(self):
        import fractions
        for shared in ((1, 2), (), ((1,), [2]), [1], {"a": (1,)}, collections.OrderedDict(a=1), {1, 2},
                       b"bytes", "text", fractions.Fraction(1, 3), tensor(np.ones(2, np.float32)), ([(1,)],)):
            with self.subTest(shared=repr(shared)):
                tree = {"a": shared, "b": [shared, shared], "c": (shared, {"d": shared})}
                got = self.load(tree)
                once = got["a"]
                for again in (*got["b"], got["c"][0], got["c"][1]["d"]):
                    self.assertIs(again, once)
                if isinstance(shared, (tuple, list, dict, set, str, bytes, int)):
                    self.assertEqual(once, shared)
        pair = (1, 2)
        self.assertEqual(self.load([pair, {pair: pair}, {pair}]), [pair, {pair: pair}, {pair}])

    def test_groups_of_an_optimizer_share_their_betas(self):
        betas = (0.9, 0.999)
        groups = [{"lr": 0.1, "betas": betas, "params": [i]} for i in range(3)]
        self.assertEqual(self.load({"param_groups": groups}), {"param_groups": groups})

    def test_cycles_that_have_no_place_are_errors(self):
        inner = []
        loop = (inner,)
        inner.append(loop)
        with self.assertRaisesRegex(lockstep.UnsupportedError, "holds itself"):
            self.load({"x": loop, "w": 1})
        tree = {"child": {"n": 1}}
        tree["child"]["parent"] = tree
        file = lockstep.open(io.BytesIO(pt_bytes(tree)))
        with self.assertRaisesRegex(lockstep.UnsupportedError, "refers to one that holds it"):
            file["child"]
        self.assertEqual(file["child.n"], 1)
        whole = file.root()
        self.assertIs(whole["child"]["parent"], whole)

    def test_unknown_classes_are_described(self):
        import fractions
        got = self.load({"x": fractions.Fraction(1, 3)})["x"]
        self.assertEqual((got.global_name, got.args), ("fractions.Fraction", (1, 3)))
        self.assertEqual(repr(got), "<lockstep.Object 'fractions.Fraction', 2 args>")

    def test_tensors_as_keys(self):
        key = tensor(np.ones(2, np.float32))
        got = self.load({"d": {key: 1}, "w": key})
        wrapped = next(iter(got["d"]))
        self.assertIsInstance(wrapped, lockstep.Tensor)
        self.assertTrue(np.shares_memory(np.asarray(wrapped), got["w"]))

    def test_what_is_a_key_is_the_same_object_elsewhere(self):
        import fractions
        for shared in (fractions.Fraction(1, 3), (1, fractions.Fraction(1, 2)), frozenset([3])):
            got = self.load({"d": {shared: 1}, "again": {shared: 2}, "pair": {(shared, shared): 3}})
            (key,), (again,) = got["d"], got["again"]
            self.assertIs(key, again)
            ((one, two),) = got["pair"]
            self.assertIs(one, two)
            self.assertIs(one, key)
        shared = fractions.Fraction(1, 3)
        got = self.load({"list": [shared], "d": {shared: {"inner": np.float64(2)}}, "set": {shared}})
        self.assertEqual(got["d"][got["list"][0]], {"inner": 2.0})
        self.assertIn(got["list"][0], got["set"])

    def test_arrays_whose_types_would_hold_pointers_are_described(self):
        for order in ("O,", "V4,", "i4,", "2,", "M8[s],", "", "<<"):
            for kind in ("S0", "f4", "U1"):
                state = (3, order, None, None, None, -1, -1, 0)
                with self.subTest(order=order, kind=kind):
                    got = self.load({"a": Described(kind, state, b"A" * 8)})["a"]
                    self.assertIsInstance(got, lockstep.Object)
        for state in ({"a": 1}, {1: 1}, {1: "<"}, [3, "<"], (3,), 5):
            with self.subTest(state=state):
                self.assertIsInstance(self.load({"a": Described("f4", state, b"A" * 8)})["a"], lockstep.Object)
        usual = Described("f4", (3, "<", None, None, None, -1, -1, 0), np.arange(1, dtype="f4").tobytes())
        self.assertEqual(self.load({"a": usual})["a"].dtype, np.float32)

    def test_keys_that_are_one_key_in_python_are_refused(self):
        for pair in ((1, 1 + 0j), (0.0, -0.0), (2**70, 2.0**70)):
            code = pt_bytes(None, code=b"\x80\x02}" + b"".join(pickle.dumps(k, 2)[2:-1] + b"Ns" for k in pair) + b".")
            with self.assertRaisesRegex(lockstep.UnsupportedError, "one key in Python"):
                lockstep.loads(code)

    def test_keys_that_take_forever_to_hash_are_refused(self):
        # {((((), ()), ((), ())), ...): 1}, 2 ** 60 tuples in 120 bytes
        code = b"\x80\x02}" + b")" + b"2\x86" * 60 + b"K\x01s."
        with self.assertRaises(lockstep.UnsafeError):
            lockstep.loads(pt_bytes(None, code=code))
        # A tuple of 2 ** 13 in each of many keys.
        shared = b")" + b"2\x86" * 13 + b"q\x00"
        keys = b"".join(b"h\x00K" + bytes([i]) + b"\x86Ns" for i in range(250))
        with self.assertRaises(lockstep.UnsafeError):
            lockstep.loads(pt_bytes(None, code=b"\x80\x02" + shared + b"0}" + keys + b"."))

    def test_many_keys(self):
        base = Storage(np.arange(100_000, dtype=np.float32))
        got = self.load({f"layer.{i}.weight": Tensor(base, (1,), (1,), i) for i in range(100_000)})
        self.assertEqual(len(got), 100_000)
        self.assertEqual(got["layer.77777.weight"].tolist(), [77777.0])


if __name__ == "__main__":
    unittest.main()
