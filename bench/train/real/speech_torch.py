"""The torch side of speech.py: the same features, network, weights, masks, rate and loss, and
batches of sounds of similar length; the order of the sounds and the draws are its own."""
import math
import os
import re
import wave

import numpy as np
import torch
import torch.nn.functional as F

import make_curves

RATE_OF_SOUND, WINDOW, HOP = 8000, 200, 80


def mel_filters(mels):
    bins = WINDOW // 2 + 1
    top = 2595 * math.log10(1 + RATE_OF_SOUND / 2 / 700)
    points = 700 * (10 ** (np.linspace(0, top, mels + 2) / 2595) - 1)
    hz = np.linspace(0, RATE_OF_SOUND / 2, bins)[:, None]
    rise = (hz - points[:-2]) / (points[1:-1] - points[:-2])
    fall = (points[2:] - hz) / (points[2:] - points[1:-1])
    return torch.from_numpy(np.maximum(0, np.minimum(rise, fall)))


def features(path, filters):
    """Log mel powers [mels, frames], each band to mean 0 and deviation 1."""
    with wave.open(path) as sound:
        samples = np.frombuffer(sound.readframes(sound.getnframes()), np.int16) / 32768.0
    window = torch.hann_window(WINDOW, periodic=True, dtype=torch.float64)
    spectrum = torch.stft(torch.from_numpy(samples), WINDOW, HOP, WINDOW, window,
                          return_complex=True)
    mel = (spectrum.abs() ** 2).t() @ filters
    values = mel.clamp(min=1e-10).log()
    values = values - values.mean(0)
    return (values / values.std(0, unbiased=False).clamp(min=1e-8)).float().t().contiguous()


def plain(words):
    return " ".join(re.sub(r"[^a-z0-9']", " ", words.lower()).split())


class Net(make_curves.DeepSpeech):
    def __init__(self, dropout, *sizes):
        super().__init__(*sizes)
        self.dropout = self.recurrent.dropout = dropout

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)))
        x = self.recurrent(x.permute(3, 0, 1, 2).flatten(2))[0]
        return self.head(F.dropout(x, self.dropout, self.training))


def masked(x, draws, times, frequencies):
    """SpecAugment; `times` and `frequencies` are (how many, the widest)."""
    x = x.clone()
    for axis, (count, widest) in ((0, frequencies), (1, times)):
        for _ in range(count):
            width = min(x.shape[axis], draws.integers(widest + 1))
            first = draws.integers(x.shape[axis] - width + 1)
            x.narrow(axis, first, width).zero_()
    return x


def batch_of(sounds):
    longest = max(x.shape[1] for x in sounds)
    return torch.stack([F.pad(x, (0, longest - x.shape[1])) for x in sounds])[:, None]


def frames_of(lengths, steps):
    """How many of the scores' steps stand for each sound."""
    longest = max(lengths)
    return [-(-length * steps // longest) for length in lengths]


def edits(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def error_rate(net, rows, letters):
    wrong = total = 0
    net.eval()
    with torch.no_grad():
        for x, words in rows:
            path = torch.unique_consecutive(net(x[None, None])[:, 0].argmax(-1)).tolist()
            wrong += edits("".join(letters[k - 1] for k in path if k), words)
            total += len(words)
    net.train()
    return wrong / total


def batches(rows, batch, buckets, draws):
    """Whole batches of sounds of similar length: sorted within so many batches of a random order."""
    order, run = draws.permutation(len(rows)), batch * buckets
    near = [i for at in range(0, len(rows), run)
            for i in sorted(order[at:at + run], key=lambda i: rows[i][0].shape[1])]
    for at in draws.permutation(len(rows) // batch) * batch:
        yield [rows[i] for i in near[at:at + batch]]


def one_cycle(peak, done, rise=0.3):
    between = lambda a, b, part: b + (a - b) * (1 + math.cos(math.pi * part)) / 2
    if done < rise:
        return between(peak / 25, peak, done / rise)
    return between(peak, peak / 25e4, (done - rise) / (1 - rise))


def train(dais, parts, root, s, say):
    """The character error rate on the held-out part. `parts` are rows of (file, words)."""
    torch.manual_seed(s["seed"])
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    filters, draws = mel_filters(s["mels"]), np.random.default_rng(s["seed"])
    known, held_out = ([(features(f"{root}/{name}", filters), plain(words)) for name, words in part]
                       for part in parts)
    letters = sorted({letter for _, words in known for letter in words})
    settings = {"features": s["mels"], "channels": s["channels"], "hidden": s["hidden"], "layers": s["layers"],
                "classes": len(letters) + 1}
    net = Net(s["dropout"], s["mels"], s["channels"], s["hidden"], s["layers"], len(letters) + 1)
    net.load(make_curves.initial_weights(dais, "deepspeech2", settings))
    decayed = [p for p in net.parameters() if p.dim() > 1]
    rest = [p for p in net.parameters() if p.dim() < 2]
    update = torch.optim.AdamW([{"params": decayed}, {"params": rest, "weight_decay": 0}], s["rate"])
    per_epoch = len(known) // s["batch"]
    for epoch in range(s["epochs"]):
        for step, part in enumerate(batches(known, s["batch"], s["buckets"], draws)):
            x = [masked(x, draws, s["time_masks"], s["frequency_masks"]) for x, _ in part]
            targets = [[letters.index(letter) + 1 for letter in words] for _, words in part]
            done = (epoch * per_epoch + step) / (s["epochs"] * per_epoch - 1)
            for group in update.param_groups:
                group["lr"] = one_cycle(s["rate"], done)
            update.zero_grad(set_to_none=True)
            with torch.autocast("cpu", torch.bfloat16):
                scores = net(batch_of(x))
            steps = frames_of([sound.shape[1] for sound in x], len(scores))
            loss = F.ctc_loss(scores.float().log_softmax(-1), torch.tensor(sum(targets, [])),
                              torch.tensor(steps), torch.tensor([len(t) for t in targets]),
                              zero_infinity=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), s["clip"])
            update.step()
        if epoch % 10 == 9 or epoch == s["epochs"] - 1:
            rate = error_rate(net, held_out, letters)
            say(f"PyTorch, epoch {epoch + 1}: loss {loss.item():.3f}, held-out {100 * rate:.1f} %")
    return rate
