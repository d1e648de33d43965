#!/usr/bin/python3
"""Speech to characters on the prompts of a telephone exchange (Debian's asterisk-core-sounds-en-wav:
one speaker, 8 kHz, with transcripts). A tenth of the prompts, chosen by a hash of their names, is
held out.

usage: speech.py DAIS [EPOCHS]      prints the character error rate on the held-out prompts
"""
import gzip
import hashlib
import os
import subprocess
import sys
import tempfile

SOUNDS = "/usr/share/asterisk/sounds/en_US_f_Allison"
TEXTS = "/usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz"
MELS, HIDDEN, LAYERS = 40, 192, 3


def prompts():
    """(file, words) of what is spoken; tones and pieces without words are left out."""
    with gzip.open(TEXTS, "rt", encoding="utf-8") as lines:
        for line in lines:
            name, _, words = line.strip().partition(": ")
            words = words.strip()
            path = os.path.join(SOUNDS, name + ".wav")
            if words and not words.startswith("[") and not line.startswith(";") and os.path.exists(path):
                yield name + ".wav", words


def held_out(name):
    return hashlib.sha256(name.encode()).digest()[0] < 26


def main():
    dais = os.path.abspath(sys.argv[1])
    epochs = sys.argv[2] if len(sys.argv) > 2 else "60"
    with tempfile.TemporaryDirectory() as folder:
        for part, wanted in (("train", False), ("test", True)):
            rows = [row for row in prompts() if held_out(row[0]) == wanted]
            print(f"{part}: {len(rows)} prompts, {sum(len(words) for _, words in rows)} characters", flush=True)
            with open(os.path.join(folder, part + ".txt"), "w", encoding="utf-8") as to:
                to.writelines(f"{name}: {words}\n" for name, words in rows)

        def run(*words):
            subprocess.run([dais, *words], check=True, cwd=folder)
        run("new", "deepspeech2", f"--features={MELS}", f"--hidden={HIDDEN}", f"--layers={LAYERS}",
            "--dropout=0.2", "--classes=39", "--seed", "1", "-o", "net.onnx")
        shared = ["--root", SOUNDS, "--feature", "mel", "--mels", str(MELS), "--sample-rate", "8000"]
        run("train", "net.onnx", "--data", "train.txt", "--val", "test.txt", *shared, "--epochs", epochs,
            "--validate-every", "10", "--batch", "16", "--optimiser", "adamw", "--lr", "0.002",
            "--lr-policy", "one-cycle", "--clip-norm", "5", "--time-masks", "2", "--time-mask-max", "10",
            "--frequency-masks", "2", "--frequency-mask-max", "8", "--precision", "bf16", "--out", "run")
        run("eval", "run", "--data", "test.txt", *shared)


main()
