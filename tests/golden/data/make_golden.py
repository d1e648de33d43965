#!/usr/bin/env python3
"""Makes the files beside it: data in the formats that src/data reads, and what other programs make
of them. Needs python3-numpy, python3-pil, python3-torchaudio and sentencepiece of Debian 12; the
tests themselves need none of them. Run it again after a change, and look at what changed."""
import gzip
import io
import os
import struct
import subprocess
import tarfile

import numpy as np
import torch
import torchaudio
from PIL import Image

os.chdir(os.path.dirname(os.path.abspath(__file__)))
random = np.random.default_rng(20230601)


def picture(height, width):
    """Smooth colours with some noise."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [120 + 90 * np.sin(x / 7.0 + k) * np.cos(y / 9.0 - k) for k in range(3)]
    noisy = np.stack(planes, -1) + random.normal(0, 12, (height, width, 3))
    return noisy.clip(0, 255).astype(np.uint8)


def images():
    rgb = Image.fromarray(picture(40, 48))
    rgb.save("color.jpg", quality=85)
    rgb.save("progressive.jpg", quality=70, progressive=True)
    rgb.convert("L").save("gray.jpg", quality=90)
    rgb.save("lossy.webp", quality=60)
    rgb.save("lossless.webp", lossless=True)
    rgb.save("color.bmp")
    rgb.save("color.ppm")
    rgb.save("color.png")
    alpha = np.dstack([picture(12, 10), random.integers(0, 256, (12, 10), dtype=np.uint8)])
    Image.fromarray(alpha, "RGBA").save("alpha.png")
    palette = rgb.crop((0, 0, 16, 12)).quantize(7)
    palette.save("palette.png", bits=4)
    np.save("palette_indices.npy", np.asarray(palette))
    deep = (random.integers(0, 65536, (6, 5))).astype(np.uint16)
    Image.fromarray(deep).save("deep.png")
    for name in ("color.jpg", "progressive.jpg", "lossy.webp", "color.png", "palette.png"):
        np.save(name.replace(".", "_") + ".npy", np.asarray(Image.open(name).convert("RGB")))
    np.save("gray_jpg.npy", np.asarray(Image.open("gray.jpg")))
    np.save("color_png_luma.npy", np.asarray(Image.open("color.png").convert("L")))
    for height, width in ((17, 23), (64, 80), (40, 20)):
        small = Image.open("color.png").resize((width, height), Image.BILINEAR)
        np.save(f"resize_{height}x{width}.npy", np.asarray(small))


def sound():
    rate, count = 8000, 1711
    t = np.arange(count) / rate
    wave = 0.4 * np.sin(2 * np.pi * (300 * t + 2500 * t * t)) + random.normal(0, 0.02, count)
    pcm = (wave * 32767).round().clip(-32768, 32767).astype("<i2")
    with open("chirp.wav", "wb") as out:
        data = pcm.tobytes()
        out.write(b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt ")
        out.write(struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16))
        out.write(b"data" + struct.pack("<I", len(data)) + data)
    signal = torch.from_numpy(pcm.astype(np.float64) / 32768)[None]
    torch.set_default_dtype(torch.float64)
    at = torchaudio.transforms
    save = lambda name, value: np.save(name, value[0].T.numpy().astype(np.float32))
    save("spectrogram.npy", at.Spectrogram(n_fft=200, hop_length=80)(signal))
    save("spectrogram_256.npy",
         at.Spectrogram(n_fft=256, win_length=200, hop_length=80, center=False)(signal))
    mel = dict(sample_rate=rate, n_fft=256, win_length=200, hop_length=80, n_mels=20, f_min=20.0)
    save("mel.npy", at.MelSpectrogram(**mel)(signal))
    del mel["sample_rate"]
    save("mfcc.npy", at.MFCC(sample_rate=rate, n_mfcc=13, melkwargs=mel)(signal))
    for to in (16000, 5000):
        moved = torchaudio.functional.resample(signal, rate, to)
        np.save(f"resample_{to}.npy", moved[0].numpy().astype(np.float32))


def arrays():
    x = random.integers(0, 256, (6, 5, 4), dtype=np.uint8)
    y = np.array([0, 1, 2, 0, 1, 2], dtype=np.int32)
    np.savez("plain.npz", x_train=x, y_train=y, x_test=x[:2], y_test=y[:2])
    np.savez_compressed("packed.npz", x=x.astype(np.float64) / 7, y=y)
    np.save("fortran.npy", np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4)))
    idx = struct.pack(">BBBBIII", 0, 0, 8, 3, 6, 5, 4) + x.tobytes()
    labels = struct.pack(">BBBBI", 0, 0, 8, 1, 6) + y.astype(np.uint8).tobytes()
    for name, data in (("train-images-idx3-ubyte.gz", idx), ("train-labels-idx1-ubyte.gz", labels)):
        with open(name, "wb") as out:
            out.write(gzip.compress(data, mtime=0))
    with open("shorts.idx", "wb") as out:
        out.write(struct.pack(">BBBBII", 0, 0, 0x0B, 2, 2, 3))
        out.write(np.array([[1, -2, 300], [-32768, 32767, 0]], dtype=">i2").tobytes())


def archives():
    """Three dialects of tar around the same members."""
    long_name = "folder/" + "n" * 120 + ".png"
    png = io.BytesIO()
    Image.fromarray(picture(8, 8)).save(png, "png")
    for dialect, kind in (("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT),
                          ("pax", tarfile.PAX_FORMAT)):
        with tarfile.open(f"{dialect}.tar", "w", format=kind) as out:
            names = ["a.png", "a.cls", "b.c.png"] + ([long_name] if dialect != "ustar" else [])
            for name in names:
                data = b"3\n" if name.endswith("cls") else png.getvalue()
                member = tarfile.TarInfo(name)
                member.size = len(data)
                out.addfile(member, io.BytesIO(data))


def pieces():
    text = "the quick brown fox jumps over the lazy dog\nsphinx of black quartz judge my vow\n" * 4
    with open("pieces.txt", "w") as out:
        out.write(text)
    subprocess.run(["spm_train", "--input=pieces.txt", "--model_prefix=pieces", "--vocab_size=60",
                    "--hard_vocab_limit=false", "--minloglevel=2",
                    "--normalization_rule_name=identity"], check=True)
    os.remove("pieces.vocab")
    lines = text.splitlines()[:2]
    ids = subprocess.run(["spm_encode", "--model=pieces.model", "--output_format=id"],
                         input="\n".join(lines), capture_output=True, text=True, check=True)
    with open("pieces.ids", "w") as out:
        out.write(ids.stdout)
    with open("pieces.txt", "w") as out:
        out.write("\n".join(lines) + "\n")


images()
sound()
arrays()
archives()
pieces()
