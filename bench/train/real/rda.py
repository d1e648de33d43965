"""Reads a data frame from an .rda file (R's XDR serialisation) into a list of (name, values)."""
import bz2
import gzip
import lzma
import struct

NIL, GLOBAL_ENV, SYMBOL, PAIR_LIST, CHARS, LOGICAL, INTEGER, REAL, STRINGS, LIST = \
    254, 253, 1, 2, 9, 10, 13, 14, 16, 19
REFERENCE, ALTREP, ATTRIBUTE_LIST = 255, 238, 239
HAS_ATTRIBUTES, HAS_TAG = 1 << 9, 1 << 10


class Reader:
    def __init__(self, data):
        self.data, self.at, self.seen = data, 0, []

    def take(self, form):
        out = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return out

    def whole(self):
        return self.take("i")[0]

    def item(self):
        """(kind, value, attributes)"""
        flags = self.whole()
        kind = flags & 255
        if kind in (NIL, GLOBAL_ENV):
            return kind, None, {}
        if kind == REFERENCE:
            return kind, self.seen[(flags >> 8) - 1], {}
        if kind == SYMBOL:
            name = self.item()[1]
            self.seen.append(name)
            return kind, name, {}
        if kind in (PAIR_LIST, ATTRIBUTE_LIST):
            return kind, self.pairs(flags), {}
        if kind == CHARS:
            size = self.whole()
            text = self.data[self.at:self.at + max(size, 0)].decode("latin-1")
            self.at += max(size, 0)
            return kind, text if size >= 0 else None, {}
        if kind == ALTREP:
            return self.compact()
        count = self.whole()
        if kind in (LOGICAL, INTEGER):
            value = list(self.take(f"{count}i"))
        elif kind == REAL:
            value = list(self.take(f"{count}d"))
        elif kind in (STRINGS, LIST):
            value = [self.item() for _ in range(count)]
        else:
            raise ValueError(f"an R value of kind {kind}")
        attributes = self.item()[1] if flags & HAS_ATTRIBUTES else {}
        return kind, value, attributes

    def pairs(self, flags):
        out = {}
        while True:
            if flags & HAS_ATTRIBUTES:
                self.item()
            name = self.item()[1] if flags & HAS_TAG else None
            out[name] = self.item()
            flags = self.whole()
            if flags & 255 == NIL:
                return out

    def compact(self):
        """A sequence that is stored as its length, start and step."""
        name = list(self.item()[1].values())[0][1]
        state = self.item()[1]
        self.item()
        if not name.startswith("compact"):
            raise ValueError(f"an R value of class {name}")
        count, start, step = (int(x) for x in state)
        return INTEGER, [start + i * step for i in range(count)], {}


def unpacked(path):
    data = open(path, "rb").read()
    for start, module in ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7zXZ", lzma)):
        if data.startswith(start):
            return module.decompress(data)
    return data


def read_frame(path):
    """Columns of the first object of the file; factors become the texts of their levels."""
    data = unpacked(path)
    if data[:7] not in (b"RDX2\nX\n", b"RDX3\nX\n"):
        raise ValueError(f"{path} is no .rda file in XDR form")
    reader = Reader(data[7:])
    version = reader.whole()
    reader.take("ii")
    if version == 3:  # the name of the encoding
        size = reader.whole()
        reader.at += size
    frame = list(reader.item()[1].values())[0]
    names = [name[1] for name in frame[2]["names"][1]]
    columns = []
    for name, (kind, values, attributes) in zip(names, frame[1]):
        if attributes and "levels" in attributes:
            levels = [level[1] for level in attributes["levels"][1]]
            values = [levels[value - 1] for value in values]
        elif kind == STRINGS:
            values = [value[1] for value in values]
        columns.append((name, values))
    return columns
