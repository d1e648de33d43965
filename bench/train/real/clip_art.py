#!/usr/bin/python3
"""Boxes around clip art (Debian's openclipart-png): draws pictures with one to four of 32 drawings in
eight classes, at sizes of 28 to 64 pixels, turned by up to 15 degrees, mirrored or not, over grounds
of noise and stripes, trains the SSD on them and measures it on pictures drawn with another seed.
The drawings are the same in both sets; places, sizes, neighbours and grounds are not.

usage: clip_art.py DAIS [PICTURES [EPOCHS]]      prints the mean average precision
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

ART = "/usr/share/openclipart/png"
SIDE, PER_CLASS = 128, 4
CLASSES = ["animals", "buildings", "computer", "food", "people", "plants", "recreation", "tools"]


def drawings():
    """The first square-ish drawings of each class that cover enough of their frame."""
    found = []
    for number, name in enumerate(CLASSES):
        mine = []
        for folder, _, files in sorted(os.walk(os.path.join(ART, name))):
            for file in sorted(files):
                if len(mine) == PER_CLASS or not file.endswith(".png"):
                    continue
                art = Image.open(os.path.join(folder, file))
                if max(art.size) > 2000:
                    continue
                art = art.convert("RGBA")
                box = art.getbbox()
                art = art.crop(box) if box else art
                solid = np.asarray(art)[..., 3] > 128
                if 0.7 < art.width / art.height < 1.4 and 0.4 < solid.mean() < 0.95:
                    art.thumbnail((128, 128))
                    mine.append(art)
        found += [(number, art) for art in mine]
    return found


def ground(random):
    colour = random.integers(60, 256, 3)
    stripes = random.integers(0, 50) * np.sin(np.arange(SIDE) * random.uniform(0.05, 0.8))
    noise = random.normal(0, random.uniform(2, 12), (SIDE, SIDE, 3))
    turned = random.random() < 0.5
    picture = colour + (stripes[:, None, None] if turned else stripes[None, :, None]) + noise
    return Image.fromarray(picture.clip(0, 255).astype(np.uint8))


def covers(box, others):
    """A third of either under the other would hide it."""
    for other in others:
        width = min(box[2], other[2]) - max(box[0], other[0])
        height = min(box[3], other[3]) - max(box[1], other[1])
        area = min((b[2] - b[0]) * (b[3] - b[1]) for b in (box, other))
        if width > 0 and height > 0 and width * height > area / 3:
            return True
    return False


def draw(arts, random):
    picture, boxes, labels = ground(random), [], []
    for _ in range(random.integers(1, 5)):
        label, art = arts[random.integers(len(arts))]
        size = random.uniform(28, 64) / max(art.size)
        art = art.resize([max(8, round(side * size)) for side in art.size])
        if random.random() < 0.5:
            art = art.transpose(Image.FLIP_LEFT_RIGHT)
        art = art.rotate(random.uniform(-15, 15), expand=True, resample=Image.BILINEAR)
        art = art.crop(art.getbbox())
        for _ in range(20):
            x, y = (int(random.integers(0, SIDE - side + 1)) for side in art.size)
            box = (x, y, x + art.width, y + art.height)
            if not covers(box, boxes):
                picture.paste(art, (x, y), art)
                boxes.append(box)
                labels.append(label)
                break
    return picture, boxes, labels


def write(folder, arts, count, seed):
    random = np.random.default_rng(seed)
    os.makedirs(folder)
    images, annotations = [], []
    for number in range(count):
        picture, boxes, labels = draw(arts, random)
        name = f"{number:05}.png"
        picture.save(os.path.join(folder, name))
        images.append({"id": number, "file_name": name, "width": SIDE, "height": SIDE})
        for (x0, y0, x1, y1), label in zip(boxes, labels):
            annotations.append({"id": len(annotations), "image_id": number, "category_id": label,
                                "bbox": [x0, y0, x1 - x0, y1 - y0], "iscrowd": 0,
                                "area": (x1 - x0) * (y1 - y0)})
    categories = [{"id": number, "name": name} for number, name in enumerate(CLASSES)]
    with open(os.path.join(folder, "boxes.json"), "w") as to:
        json.dump({"images": images, "annotations": annotations, "categories": categories}, to)


def main():
    dais = os.path.abspath(sys.argv[1])
    pictures = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    epochs = sys.argv[3] if len(sys.argv) > 3 else "20"
    arts = drawings()
    with tempfile.TemporaryDirectory() as folder:
        write(os.path.join(folder, "train"), arts, pictures, 1)
        write(os.path.join(folder, "test"), arts, 500, 2)

        def run(*words):
            subprocess.run([dais, *words], check=True, cwd=folder)
        run("new", "ssd", f"--input=3x{SIDE}x{SIDE}", "--width=16", "--classes", str(len(CLASSES)),
            "--seed", "1", "-o", "net.onnx")
        run("train", "net.onnx", "--data", "train/boxes.json", "--epochs", epochs, "--batch", "32",
            "--optimiser", "adamw", "--lr", "0.003", "--lr-policy", "one-cycle", "--flip",
            "--precision", "bf16", "--out", "run")
        run("eval", "run", "--data", "test/boxes.json")


main()
