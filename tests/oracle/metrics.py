# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of scikit-learn 1.9 and torchmetrics 1.9 for tests/metrics.

    metrics.py FILE

Writes FILE (JSON): cases with their inputs, "exact" (scikit-learn's float64, or
counts) and "torchmetrics" (mostly float32). null is NaN. Needs both packages,
which the tests do not: they read tests/metrics/golden/metrics.json, and run this
script instead if LOCKSTEP_ORACLE_PYTHON names a Python that has them.

Outputs are multiples of 1/8 between -4 and 4: float16 and bfloat16 hold them.
"""

import json
import math
import sys
import warnings

import numpy
import sklearn.metrics as sk
import torch
import torchmetrics as tm
from torchmetrics.segmentation import DiceScore

warnings.filterwarnings("ignore")
RANDOM = numpy.random.default_rng(36)
RATES = {"f1": (sk.f1_score, tm.classification.MulticlassF1Score),
         "precision": (sk.precision_score, tm.classification.MulticlassPrecision),
         "recall": (sk.recall_score, tm.classification.MulticlassRecall)}
LABEL_RATES = {"f1": tm.classification.MultilabelF1Score,
               "precision": tm.classification.MultilabelPrecision,
               "recall": tm.classification.MultilabelRecall}
CASES = []


def add(name, metric, outputs, targets, options, exact, torchmetrics, tables=None):
    CASES.append({
        "name": name, "metric": metric, "options": options,
        "outputs": {"shape": outputs.shape, "data": outputs.ravel().tolist()},
        "targets": {"shape": targets.shape, "data": targets.ravel().tolist(),
                    "is_integer": targets.dtype.kind in "iub"},
        "exact": exact, "torchmetrics": torchmetrics, "tables": tables or {}})


def logits(*shape):
    return numpy.clip(numpy.round(RANDOM.normal(0, 1.5, shape) * 8) / 8, -4, 4)


def distinct_logits(samples, classes):
    """No two outputs of a sample are equal."""
    levels = numpy.arange(-32, 33) / 8
    return numpy.stack([RANDOM.permutation(levels)[:classes]
                        for _ in range(samples)])


def tensors(outputs, targets):
    return torch.tensor(outputs, dtype=torch.float32), torch.tensor(targets)


def measured(metric, outputs, targets):
    return float(metric(*tensors(outputs, targets)))


def accuracy(name, outputs, targets, top, ignore=None):
    kept = targets != ignore if ignore is not None else targets == targets
    ranks = (outputs[kept] > numpy.take_along_axis(
        outputs[kept], targets[kept][:, None], 1)).sum(1)
    classes = outputs.shape[1]
    exact, theirs = {}, {}
    for k in top:
        exact[f"top{k}"] = 100 * float((ranks < k).mean()) if kept.any() else None
        if k < classes and kept.any():
            ours = 100 * sk.top_k_accuracy_score(
                targets[kept], outputs[kept], k=k, labels=range(classes))
            assert abs(exact[f"top{k}"] - ours) < 1e-9
            theirs[f"top{k}"] = 100 * measured(tm.classification.MulticlassAccuracy(
                classes, top_k=k, average="micro"), outputs[kept], targets[kept])
    add(name, "accuracy", outputs, targets,
        {"top": top, "ignore_index": ignore}, exact, theirs)


def per_class(counts, columns):
    """Of a confusion matrix, None for classes that do not occur."""
    hits, actual, predicted = counts.diagonal(), counts.sum(1), counts.sum(0)
    divided = lambda a, b: float(a / b) if b else 0.0
    rows = []
    for h, a, p in zip(hits, actual, predicted):
        every = {"f1": divided(2 * h, a + p), "dice": divided(2 * h, a + p),
                 "precision": divided(h, p), "recall": divided(h, a),
                 "iou": divided(h, a + p - h)}
        rows.append([every[c] if a + p else None for c in columns] +
                    [int(p), int(a)])
    return rows


def flat(outputs, targets, ignore):
    """Predicted and true classes that are counted, and the classes to average."""
    predicted, actual = outputs.argmax(1).ravel(), targets.ravel()
    kept = actual != ignore if ignore is not None else actual == actual
    predicted, actual = predicted[kept], actual[kept]
    labels = [c for c in numpy.union1d(predicted, actual) if c != ignore]
    return predicted, actual, labels


def confusion(name, outputs, targets, ignore=None, max_matrix=256):
    classes = outputs.shape[1]
    predicted, actual, labels = flat(outputs, targets, ignore)
    in_range = ignore is not None and 0 <= ignore < classes
    exact, theirs = {}, {}
    exact["balanced_acc"] = float(sk.balanced_accuracy_score(actual, predicted)) \
        if labels else None
    for rate, (function, kind) in RATES.items():
        for average in ("macro", "micro", "weighted"):
            key = f"{rate}_{average}"
            if average == "micro":
                value = sk.accuracy_score(actual, predicted) if labels else None
            else:
                value = function(actual, predicted, labels=labels, average=average,
                                 zero_division=0) if labels else None
            exact[key] = None if value is None else float(value)
            if classes > 1 and labels and not (in_range and average != "micro"):
                theirs[key] = measured(kind(
                    classes, average=average, ignore_index=ignore), outputs, targets)
    counts = sk.confusion_matrix(actual, predicted, labels=range(classes)) \
        if len(actual) else numpy.zeros((classes, classes), int)
    tables = {"per_class": per_class(counts, ("f1", "precision", "recall"))}
    if in_range:
        tables["per_class"][ignore][:3] = [None] * 3
    if classes <= max_matrix:
        tables["confusion"] = counts.tolist()
    add(name, "confusion", outputs, targets,
        {"num_classes": classes, "ignore_index": ignore,
         "max_matrix_classes": max_matrix}, exact, theirs, tables)


def segmentation(name, outputs, targets, ignore=255):
    classes = outputs.shape[1]
    predicted, actual, labels = flat(outputs, targets, ignore)
    exact = {"miou": None, "dice": None, "pixel_acc": None}
    theirs = {}
    if labels:
        share = {"labels": labels, "average": "macro", "zero_division": 0}
        exact = {"miou": float(sk.jaccard_score(actual, predicted, **share)),
                 "dice": float(sk.f1_score(actual, predicted, **share)),
                 "pixel_acc": float(sk.accuracy_score(actual, predicted))}
    in_range = ignore is not None and 0 <= ignore < classes
    if labels and classes > 1:
        theirs["miou"] = measured(tm.classification.MulticlassJaccardIndex(
            classes, ignore_index=ignore), outputs, targets)
        theirs["pixel_acc"] = measured(tm.classification.MulticlassAccuracy(
            classes, average="micro", ignore_index=ignore), outputs, targets)
        if not in_range:
            theirs["dice"] = measured(tm.classification.MulticlassF1Score(
                classes, average="macro", ignore_index=ignore), outputs, targets)
        if not (targets == ignore).any():
            dice = DiceScore(classes, average="macro", input_format="index",
                             aggregation_level="global")
            value = float(dice(torch.tensor(outputs.argmax(1)),
                               torch.tensor(targets)))
            assert abs(value - exact["dice"]) < 1e-6
    counts = sk.confusion_matrix(actual, predicted, labels=range(classes)) \
        if len(actual) else numpy.zeros((classes, classes), int)
    tables = {"per_class": per_class(counts, ("iou", "dice", "precision", "recall"))}
    if in_range:
        tables["per_class"][ignore][:4] = [None] * 4
    add(name, "segmentation", outputs, targets,
        {"num_classes": classes, "ignore_index": ignore}, exact, theirs, tables)


def multilabel(name, outputs, targets, threshold=0.5):
    samples, labels = outputs.shape
    predicted = (outputs > math.log(threshold / (1 - threshold))).astype(int)
    given, targets = targets, targets.astype(int)
    exact, theirs = {}, {}
    for rate, (function, _) in RATES.items():
        for average in ("macro", "micro"):
            key = f"{rate}_{average}"
            exact[key] = None
            if samples:
                flags = (targets, predicted) if labels > 1 or average == "micro" \
                    else (targets[:, 0], predicted[:, 0])
                how = average if labels > 1 else "binary"
                if labels == 1:
                    flags = (targets[:, 0], predicted[:, 0])
                exact[key] = float(function(*flags, average=how, zero_division=0))
                if labels > 1:
                    theirs[key] = measured(LABEL_RATES[rate](
                        labels, threshold=threshold, average=average),
                        outputs, targets)
    exact["exact_match"] = float((predicted == targets).all(1).mean()) \
        if samples else None
    if samples and labels > 1:
        assert exact["exact_match"] == sk.accuracy_score(targets, predicted)
        theirs["exact_match"] = measured(tm.classification.MultilabelExactMatch(
            labels, threshold=threshold), outputs, targets)
    rows = []
    for i in range(labels):
        pair = (targets[:, i], predicted[:, i])
        rows.append([float(RATES[r][0](*pair, zero_division=0)) if samples else None
                     for r in ("f1", "precision", "recall")] +
                    [int(predicted[:, i].sum()), int(targets[:, i].sum())])
    add(name, "multilabel", outputs, given,
        {"num_labels": labels, "threshold": threshold}, exact, theirs,
        {"per_label": rows})


def area(scores, is_positive, thresholds):
    """scikit-learn's, of scores that are equal between two thresholds."""
    if is_positive.all() or not is_positive.any():
        return None
    steps = torch.bucketize(scores, torch.linspace(0, 1, thresholds).to(scores.dtype),
                            right=True)
    return float(sk.roc_auc_score(is_positive.numpy(), steps.numpy()))


def mean(areas):
    known = [a for a in areas if a is not None]
    return float(numpy.mean(known)) if known else None


def auroc(name, outputs, targets, thresholds, ignore=None, compared=True):
    classes = outputs.shape[1]
    x, y = tensors(outputs, targets)
    if ignore is not None:
        x, y = x[y != ignore], y[y != ignore]
    scores = x.softmax(1)
    curves = [1] if classes == 2 else range(classes)
    areas = [area(scores[:, c], y == c, thresholds) for c in curves]
    theirs = {}
    if compared and classes == 2:
        theirs["auroc"] = float(tm.classification.BinaryAUROC(
            thresholds=thresholds)(scores[:, 1], y))
    elif compared:
        theirs["auroc"] = float(tm.classification.MulticlassAUROC(
            classes, thresholds=thresholds)(scores, y))
    add(name, "auroc", outputs, targets,
        {"num_classes": classes, "thresholds": thresholds, "ignore_index": ignore},
        {"auroc": mean(areas)}, theirs,
        {"per_class": [[a, int((y == c).sum())] for a, c in zip(areas, curves)]})


def multilabel_auroc(name, outputs, targets, thresholds, compared=True):
    x, y = tensors(outputs, targets)
    scores, labels = x.sigmoid(), outputs.shape[1]
    areas = [area(scores[:, i], y[:, i] == 1, thresholds) for i in range(labels)]
    theirs = {}
    if compared:
        theirs["auroc"] = float(tm.classification.MultilabelAUROC(
            labels, thresholds=thresholds)(scores, y))
    add(name, "multilabel_auroc", outputs, targets,
        {"num_labels": labels, "thresholds": thresholds},
        {"auroc": mean(areas)}, theirs,
        {"per_label": [[a, int(y[:, i].sum())] for i, a in enumerate(areas)]})


def regression(name, outputs, targets, num_outputs=1):
    flat_pair = (targets.reshape(-1, num_outputs), outputs.reshape(-1, num_outputs))
    count = len(flat_pair[0])
    if count == 0:
        exact = {"mae": None, "mse": None, "rmse": None, "r2": None}
    else:
        exact = {"mae": float(sk.mean_absolute_error(*flat_pair)),
                 "mse": float(sk.mean_squared_error(*flat_pair))}
        exact["rmse"] = math.sqrt(exact["mse"])
        exact["r2"] = float(sk.r2_score(*flat_pair)) if count > 1 else None
    theirs = {}
    pair = [torch.tensor(a) for a in reversed(flat_pair)]
    if count:
        theirs["mae"] = float(tm.MeanAbsoluteError()(*pair))
        theirs["mse"] = float(tm.MeanSquaredError()(*pair))
        theirs["rmse"] = float(tm.MeanSquaredError(squared=False)(*pair))
    if count > 1:
        theirs["r2"] = float(tm.R2Score()(*pair))
    tables = {}
    if num_outputs > 1 and count > 1:
        raw = [f(*flat_pair, multioutput="raw_values") for f in
               (sk.mean_absolute_error, sk.mean_squared_error, sk.r2_score)]
        tables["per_output"] = [[float(a), float(s), math.sqrt(s), float(r)]
                                for a, s, r in zip(*raw)]
    add(name, "regression", outputs, targets, {"num_outputs": num_outputs},
        exact, theirs, tables)


def pck(name, outputs, targets, threshold, scale):
    """By its definition: neither package has it."""
    samples, points, height, width = outputs.shape
    right, counted = numpy.zeros(points, int), numpy.zeros(points, int)
    for n in range(samples):
        for k in range(points):
            if targets[n, k].max() <= 0:
                continue
            y1, x1 = divmod(int(outputs[n, k].argmax()), width)
            y2, x2 = divmod(int(targets[n, k].argmax()), width)
            distance = {
                "longer_side": math.hypot(x1 - x2, y1 - y2) / max(height, width),
                "each_side": math.hypot((x1 - x2) / width, (y1 - y2) / height),
                "pixels": math.hypot(x1 - x2, y1 - y2)}[scale]
            counted[k] += 1
            right[k] += distance <= threshold
    total = int(counted.sum())
    add(name, "pck", outputs, targets,
        {"threshold": threshold, "scale": scale, "num_points": points},
        {"pck": int(right.sum()) / total if total else None}, {},
        {"per_point": [[int(r) / int(c) if c else None, int(c)]
                       for r, c in zip(right, counted)]})


def labels(*shape, of):
    return RANDOM.integers(0, of, shape)


def classes_but(absent, *shape, of):
    return RANDOM.choice([c for c in range(of) if c not in absent], shape)


def without_outputs(outputs, absent):
    outputs[:, absent] = -4
    return outputs


def some(targets, value, share=0.2):
    targets = targets.copy()
    targets[RANDOM.random(targets.shape) < share] = value
    return targets


def classification_cases():
    accuracy("plain", distinct_logits(23, 7), labels(23, of=7), [1, 5])
    accuracy("k above the classes", distinct_logits(9, 3), labels(9, of=3), [1, 2, 5])
    accuracy("ignored", distinct_logits(20, 6), some(labels(20, of=6), -100),
             [1, 3], -100)
    accuracy("one sample", distinct_logits(1, 4), labels(1, of=4), [1, 5])
    accuracy("one class", distinct_logits(5, 1), labels(5, of=1), [1])
    accuracy("nothing", distinct_logits(3, 4), labels(3, of=4) * 0 - 1, [1], -1)
    confusion("plain", logits(40, 5), labels(40, of=5))
    confusion("ties", numpy.round(logits(60, 4)), labels(60, of=4))
    confusion("absent class", without_outputs(logits(30, 5), 3),
              classes_but([3], 30, of=5))
    confusion("only predicted", logits(30, 4), classes_but([1], 30, of=4))
    confusion("never predicted", without_outputs(logits(30, 4), 2), labels(30, of=4))
    confusion("ignored", logits(40, 4), some(labels(40, of=4), -1), -1)
    confusion("a class ignored", logits(40, 4), labels(40, of=4), 2)
    confusion("one class", logits(6, 1), labels(6, of=1))
    confusion("one sample", logits(1, 3), labels(1, of=3))
    confusion("all ignored", logits(4, 3), labels(4, of=3) * 0 + 9, 9)
    confusion("pixels", logits(2, 3, 4, 5), labels(2, 4, 5, of=3))
    confusion("no matrix", logits(50, 9), some(labels(50, of=9), 255), 255, 8)
    auroc("plain", logits(50, 4), labels(50, of=4), 50)
    auroc("two classes", logits(40, 2), labels(40, of=2), 20)
    auroc("coarse", logits(40, 3), labels(40, of=3), 2)
    auroc("ignored", logits(40, 3), some(labels(40, of=3), -1), 100, -1)
    auroc("absent class", logits(40, 4), classes_but([2], 40, of=4), 30,
          compared=False)  # counted as 0 there
    auroc("one sample", logits(1, 3), labels(1, of=3), 10, compared=False)
    sure = logits(30, 2)
    sure[::4] *= 512  # probabilities of exactly 0 and 1
    auroc("sure", sure, labels(30, of=2), 10, compared=False)


def other_cases():
    segmentation("plain", logits(2, 4, 5, 6), labels(2, 5, 6, of=4))
    segmentation("ignored", logits(2, 3, 5, 6), some(labels(2, 5, 6, of=3), 255))
    segmentation("absent class", without_outputs(logits(3, 4, 4, 4), 1),
                 classes_but([1], 3, 4, 4, of=4))
    segmentation("background ignored", logits(2, 3, 5, 5), labels(2, 5, 5, of=3), 0)
    segmentation("one class", logits(1, 1, 3, 3), labels(1, 3, 3, of=1))
    segmentation("nothing", logits(1, 3, 2, 2), labels(1, 2, 2, of=1) + 255)
    multilabel("plain", logits(19, 4), labels(19, 4, of=2))
    multilabel("threshold", logits(19, 4), labels(19, 4, of=2), 0.3)
    absent = labels(15, 3, of=2)
    absent[:, 1] = 0
    multilabel("absent label", without_outputs(logits(15, 3), 1), absent)
    multilabel("one label", logits(12, 1), labels(12, 1, of=2))
    multilabel("one sample", logits(1, 3), labels(1, 3, of=2))
    multilabel("floating targets", logits(8, 3), labels(8, 3, of=2).astype(float))
    multilabel_auroc("plain", logits(40, 3), labels(40, 3, of=2), 40)
    multilabel_auroc("absent label", logits(15, 3), absent, 25, compared=False)
    regression("plain", logits(31), logits(31))
    regression("columns", logits(31, 3), logits(31, 3) * [1, 3, 9] + [0, 1, 50], 3)
    regression("maps", logits(2, 3, 4, 4), logits(2, 3, 4, 4))
    regression("equal targets", logits(7), numpy.full(7, 0.25))
    regression("right equal targets", numpy.full(7, 0.5), numpy.full(7, 0.5))
    regression("one value", logits(1), logits(1))
    regression("integers", logits(9), labels(9, of=20))
    for scale, threshold in (("longer_side", 0.25), ("each_side", 0.25),
                             ("pixels", 2.0)):
        targets = numpy.abs(logits(6, 3, 4, 8))
        targets[1, 0] = 0
        targets[:, 2] = 0
        pck(scale, numpy.abs(logits(6, 3, 4, 8)), targets, threshold, scale)
    pck("right", logits(2, 2, 5, 5), logits(2, 2, 5, 5), 100.0, "pixels")


classification_cases()
other_cases()
with open(sys.argv[1], "w") as file:
    lines = ",\n".join(json.dumps(case, allow_nan=False) for case in CASES)
    file.write(f"[\n{lines}\n]\n")
