#!/usr/bin/python3
"""Tables with an MLP: dais and scikit-learn's MLPClassifier from the same settings on the same rows.

usage: tables.py DAIS [--rda FOLDER] [--seeds N] [TABLE...]

iris, wine, breast_cancer and digits are scikit-learn's (Debian's python3-sklearn). letter, shuttle
and vowel come from r-cran-mlbench: --rda names the folder of its .rda files; `apt-get download
r-cran-mlbench` and `dpkg -x` unpack them without R. A fifth of the rows is held out; prints a table
of the share of right answers on it, the mean over seeds: both at a fixed rate, and dais also with the
one-cycle policy.
"""
import argparse
import csv
import json
import os
import subprocess
import tempfile
import warnings

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

import rda

HIDDEN = 100
RATES = {"fixed": 1e-3, "one-cycle": 4e-3}
RDA = {"letter": ("LetterRecognition", "lettr"), "shuttle": ("Shuttle", "Class"),
       "vowel": ("Vowel", "Class")}
# Passes through the rows, and rows of a batch.
PASSES = {"iris": (300, 24), "wine": (200, 24), "breast_cancer": (100, 32), "digits": (60, 64),
          "letter": (60, 200), "shuttle": (15, 200), "vowel": (300, 64)}


def load(name, folder):
    if name not in RDA:
        x, y = getattr(datasets, "load_" + name)(return_X_y=True)
        return x, np.array([f"c{label}" for label in y])
    file, target = RDA[name]
    columns = dict(rda.read_frame(os.path.join(folder, file + ".rda")))
    y = np.array([f"c{label}" for label in columns.pop(target)])
    return np.array([[float(v) for v in values] for values in columns.values()]).T, y


def write(path, x, y):
    with open(path, "w", newline="") as to:
        table = csv.writer(to)
        table.writerow([f"x{i}" for i in range(x.shape[1])] + ["label"])
        table.writerows([*row, label] for row, label in zip(x, y))


def by_dais(dais, folder, x, passes, batch, classes, seed, policy):
    def run(*words):
        return subprocess.run([dais, *words], check=True, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, cwd=folder).stdout
    run("new", "mlp", "--input", str(x.shape[1]), "--hidden", str(HIDDEN), "--classes",
        str(classes), "--seed", str(seed), "-o", f"net{seed}.onnx")
    out = run("train", f"net{seed}.onnx", "--data", "train.csv", "--val", "test.csv", "--standardise",
              "--epochs", str(passes), "--batch", str(batch), "--optimiser", "adam", "--lr",
              str(RATES[policy]), "--lr-policy", policy, "--validate-every",
              str(passes), "--threads", "1", "--seed", str(seed), "--out", f"run-{policy}-{seed}",
              "--json")
    return json.loads(out.splitlines()[-1])["accuracy"]


def by_sklearn(train, test, passes, batch, seed):
    scale = StandardScaler().fit(train[0])
    net = MLPClassifier((HIDDEN,), batch_size=batch, learning_rate_init=RATES["fixed"],
                        max_iter=passes, n_iter_no_change=passes, tol=0, random_state=seed)
    net.fit(scale.transform(train[0]), train[1])
    return net.score(scale.transform(test[0]), test[1])


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("dais")
    arguments.add_argument("--rda")
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("tables", nargs="*")
    given = arguments.parse_intermixed_args()
    warnings.simplefilter("ignore")
    print("| table | rows | passes, batch | scikit-learn | dais | dais, one-cycle |\n"
          "|---|---|---|---|---|---|")
    for name in given.tables or [n for n in PASSES if n not in RDA or given.rda]:
        x, y = load(name, given.rda)
        passes, batch = PASSES[name]
        x, x_test, y, y_test = train_test_split(x, y, test_size=0.2, random_state=0, stratify=y)
        seeds = range(given.seeds)
        theirs = [by_sklearn((x, y), (x_test, y_test), passes, batch, seed) for seed in seeds]
        with tempfile.TemporaryDirectory() as folder:
            write(os.path.join(folder, "train.csv"), x, y)
            write(os.path.join(folder, "test.csv"), x_test, y_test)
            ours = [np.mean([by_dais(os.path.abspath(given.dais), folder, x, passes, batch,
                                     len(set(y)), seed, policy) for seed in seeds])
                    for policy in ("fixed", "one-cycle")]
        print(f"| {name} | {len(y) + len(y_test)} | {passes}, {batch} | {np.mean(theirs):.2%} | "
              f"{ours[0]:.2%} | {ours[1]:.2%} |", flush=True)


main()
