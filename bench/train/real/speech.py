#!/usr/bin/python3
"""Speech to characters on the prompts of a telephone exchange (Debian's asterisk-core-sounds-en-wav:
one speaker, 8 kHz, with transcripts). A tenth of the prompts, chosen by a hash of their names, is
held out; of the others those above LONGEST are not trained on: the longest, of 73 seconds, would
with its padded batch be half of the work.

usage: speech.py DAIS EPOCHS [dais|torch]...   prints the character error rate on the held-out prompts
of each, dais alone without a name
"""
import gzip
import hashlib
import os
import subprocess
import sys
import tempfile
import wave

SOUNDS = "/usr/share/asterisk/sounds/en_US_f_Allison"
TEXTS = "/usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz"
LONGEST = 16  # seconds
HERE = os.path.dirname(os.path.abspath(__file__))
SETTINGS = {"mels": 40, "channels": 16, "hidden": 192, "layers": 3, "dropout": 0.2, "seed": 1, "batch": 16,
            "rate": 0.002, "clip": 5, "time_masks": (2, 10), "frequency_masks": (2, 8),
            "buckets": 8}


def prompts():
    """(file, words) of what is spoken; tones and pieces without words are left out."""
    with gzip.open(TEXTS, "rt", encoding="utf-8") as lines:
        for line in lines:
            name, _, words = line.strip().partition(": ")
            words = words.strip()
            path = os.path.join(SOUNDS, name + ".wav")
            if words and not words.startswith("[") and not line.startswith(";") and os.path.exists(path):
                yield name + ".wav", words


def seconds(name):
    with wave.open(os.path.join(SOUNDS, name)) as sound:
        return sound.getnframes() / sound.getframerate()


def held_out(name):
    return hashlib.sha256(name.encode()).digest()[0] < 26


def by_dais(dais, parts, epochs):
    s = SETTINGS
    shared = ["--root", SOUNDS, "--feature", "mel", "--mels", str(s["mels"]), "--sample-rate", "8000"]
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in zip(("train.txt", "test.txt"), parts):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as to:
                to.writelines(f"{file}: {words}\n" for file, words in rows)

        def run(*words):
            subprocess.run([dais, *map(str, words)], check=True, cwd=folder)
        run("new", "deepspeech2", "--features", s["mels"], "--channels", s["channels"], "--hidden", s["hidden"], "--layers",
            s["layers"], "--dropout", s["dropout"], "--classes=39", "--seed", s["seed"], "-o", "net.onnx")
        run("train", "net.onnx", "--data", "train.txt", "--val", "test.txt", *shared, "--epochs", epochs,
            "--validate-every", 10, "--batch", s["batch"], "--optimiser", "adamw", "--lr", s["rate"],
            "--lr-policy", "one-cycle", "--clip-norm", s["clip"], "--time-masks", s["time_masks"][0],
            "--time-mask-max", s["time_masks"][1], "--frequency-masks", s["frequency_masks"][0],
            "--frequency-mask-max", s["frequency_masks"][1], "--buckets", s["buckets"], "--pad-multiple", 16,
            "--cache-mb", 300, "--precision", "bf16", "--out", "run")
        run("eval", "run", "--data", "test.txt", *shared, "--batch", 1)


def by_torch(dais, parts, epochs):
    sys.path[:0] = [HERE, os.path.join(HERE, "../../../tests/golden")]
    import speech_torch
    speech_torch.train(dais, parts, SOUNDS, {**SETTINGS, "epochs": epochs},
                       lambda line: print(line, flush=True))


def main():
    dais, epochs = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    parts = [[row for row in prompts() if not held_out(row[0]) and seconds(row[0]) <= LONGEST],
             [row for row in prompts() if held_out(row[0])]]
    for name, rows in zip(("train", "test"), parts):
        print(f"{name}: {len(rows)} prompts, {sum(len(words) for _, words in rows)} characters", flush=True)
    for side in sys.argv[3:] or ["dais"]:
        {"dais": by_dais, "torch": by_torch}[side](dais, parts, epochs)


main()
