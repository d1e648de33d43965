// How examples/fashion/fashion.onnx came about: a small convolutional network, trained on
// every fifth of the 60,000 pictures of Fashion-MNIST with plain stochastic gradient descent,
// written as ONNX. Usage: train FOLDER OUT.onnx [EPOCHS], with the unpacked idx files of the data
// set in FOLDER.
//
// Every chunk of a batch sums its own gradients, and chunks are added in order: the same file
// comes out whatever the number of threads.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Floats = std::vector<float>;

constexpr int kClasses = 10, kSide = 28, kPixels = kSide * kSide, kPool = 4;
constexpr int kBatch = 32, kChunks = 4, kEvery = 5;

struct Images {
  Floats pixels;  ///< 0..1
  std::vector<uint8_t> labels;
  size_t count() const { return labels.size(); }
};

std::vector<uint8_t> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Images load(const std::string& folder, const std::string& part) {
  const auto pictures = read(folder + "/" + part + "-images-idx3-ubyte");
  const auto labels = read(folder + "/" + part + "-labels-idx1-ubyte");
  Images out;
  out.labels.assign(labels.begin() + 8, labels.end());
  for (size_t i = 16; i < pictures.size(); ++i) out.pixels.push_back(pictures[i] / 255.0f);
  return out;
}

/// A 3x3 convolution with padding 1, ReLU, then 4x4 maximum: [in, side, side] to
/// [out, side/4, side/4].
struct Block {
  int in, out, side;
  size_t weights() const { return static_cast<size_t>(in) * out * 9; }

  /// `winner` keeps where each maximum came from, -1 where ReLU stopped it.
  void forward(const float* x, const float* w, const float* b, float* y, int* winner) const {
    Floats full(static_cast<size_t>(side) * side);
    for (int o = 0; o < out; ++o) {
      std::fill(full.begin(), full.end(), b[o]);
      each_tap(o, [&](size_t at, int c, int row, int to, int from, int count) {
        const float* source = x + (c * side + row) * side;
        for (int k = 0; k < count; ++k) full[to + k] += w[at] * source[from + k];
      });
      pool(full, o, y, winner);
    }
  }

  /// Adds to dw and db.
  void backward(const float* x, const float* dy, const int* winner, float* dw, float* db) const {
    Floats full(static_cast<size_t>(side) * side);
    const int cells = (side / kPool) * (side / kPool);
    for (int o = 0; o < out; ++o) {
      std::fill(full.begin(), full.end(), 0.0f);
      for (int i = o * cells; i < (o + 1) * cells; ++i)
        if (winner[i] >= 0) full[winner[i]] += dy[i];
      db[o] += std::accumulate(full.begin(), full.end(), 0.0f);
      each_tap(o, [&](size_t at, int c, int row, int to, int from, int count) {
        const float* source = x + (c * side + row) * side;
        float sum = 0;
        for (int k = 0; k < count; ++k) sum += full[to + k] * source[from + k];
        dw[at] += sum;
      });
    }
  }

 private:
  template <typename Body>
  void each_tap(int o, Body&& body) const {
    for (int c = 0; c < in; ++c)
      for (int ky = 0; ky < 3; ++ky)
        for (int kx = 0; kx < 3; ++kx)
          for (int y = std::max(0, 1 - ky); y < std::min(side, side + 1 - ky); ++y) {
            const int first = std::max(0, 1 - kx), last = std::min(side, side + 1 - kx);
            body(((static_cast<size_t>(o) * in + c) * 3 + ky) * 3 + kx, c, y + ky - 1,
                 y * side + first, first + kx - 1, last - first);
          }
  }

  void pool(const Floats& full, int o, float* y, int* winner) const {
    const int cells = side / kPool;
    for (int r = 0; r < cells; ++r)
      for (int c = 0; c < cells; ++c) {
        const int corner = kPool * (r * side + c), at = (o * cells + r) * cells + c;
        int best = corner;
        for (int i = 0; i < kPool * kPool; ++i) {
          const int candidate = corner + i / kPool * side + i % kPool;
          if (full[candidate] > full[best]) best = candidate;
        }
        winner[at] = full[best] > 0 ? best : -1;
        y[at] = std::max(full[best], 0.0f);
      }
  }
};

constexpr Block kBlock{1, 8, kSide};
constexpr int kFeatures = 8 * 7 * 7;

/// All parameters in one vector, in the order of the file.
struct Layout {
  size_t w1 = 0, b1 = w1 + kBlock.weights(), w2 = b1 + 8, b2 = w2 + kFeatures * kClasses,
         end = b2 + kClasses;
};
const Layout kAt;

struct Pass {
  Floats features = Floats(kFeatures), probability = Floats(kClasses);
  std::vector<int> winners = std::vector<int>(kFeatures);

  int forward(const float* image, const Floats& p) {
    kBlock.forward(image, &p[kAt.w1], &p[kAt.b1], features.data(), winners.data());
    int best = 0;
    for (int c = 0; c < kClasses; ++c) {
      const float* row = &p[kAt.w2 + static_cast<size_t>(c) * kFeatures];
      probability[c] = std::inner_product(features.begin(), features.end(), row, p[kAt.b2 + c]);
      if (probability[c] > probability[best]) best = c;
    }
    const float top = probability[best];
    float sum = 0;
    for (float& value : probability) sum += value = std::exp(value - top);
    for (float& value : probability) value /= sum;
    return best;
  }

  void backward(const float* image, int label, const Floats& p, Floats& gradient) {
    Floats dfeatures(kFeatures);
    for (int c = 0; c < kClasses; ++c) {
      const float d = probability[c] - (c == label ? 1.0f : 0.0f);
      const size_t row = kAt.w2 + static_cast<size_t>(c) * kFeatures;
      for (int i = 0; i < kFeatures; ++i) {
        gradient[row + i] += d * features[i];
        dfeatures[i] += d * p[row + i];
      }
      gradient[kAt.b2 + c] += d;
    }
    kBlock.backward(image, dfeatures.data(), winners.data(), &gradient[kAt.w1], &gradient[kAt.b1]);
  }
};

/// Calls body(chunk) for every chunk, on all cores.
template <typename Body>
void each_chunk(Body&& body) {
  const int workers =
      std::max(1, std::min<int>(kChunks, static_cast<int>(std::thread::hardware_concurrency())));
  if (workers == 1) {
    for (int chunk = 0; chunk < kChunks; ++chunk) body(chunk);
    return;
  }
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker)
    threads.emplace_back([&, worker] {
      for (int chunk = worker; chunk < kChunks; chunk += workers) body(chunk);
    });
  for (auto& thread : threads) thread.join();
}

double accuracy(const Images& images, const Floats& p) {
  std::vector<size_t> right(kChunks);
  each_chunk([&](int chunk) {
    Pass pass;
    for (size_t i = chunk; i < images.count(); i += kChunks)
      right[chunk] += pass.forward(&images.pixels[i * kPixels], p) == images.labels[i];
  });
  return static_cast<double>(std::accumulate(right.begin(), right.end(), size_t{0})) /
         static_cast<double>(images.count());
}

Floats start(std::mt19937& random) {
  Floats p(kAt.end);
  auto fill = [&](size_t at, size_t count, int fan_in) {
    std::normal_distribution<float> normal(0, std::sqrt(2.0f / static_cast<float>(fan_in)));
    for (size_t i = 0; i < count; ++i) p[at + i] = normal(random);
  };
  fill(kAt.w1, kBlock.weights(), 9);
  fill(kAt.w2, kFeatures * kClasses, kFeatures);
  return p;
}

Floats train(const Images& images, const Images& test, int epochs) {
  std::mt19937 random(1);
  Floats p = start(random), velocity(p.size());
  std::vector<Floats> gradients(kChunks, Floats(p.size()));
  std::vector<size_t> order;  // every fifth picture: enough for an example, in seconds
  for (size_t i = 0; i < images.count(); i += kEvery) order.push_back(i);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random() % (i + 1)]);
    const double done = static_cast<double>(epoch) / epochs;
    const auto rate = static_cast<float>(0.05 * (1 + std::cos(3.14159265 * done)) / 2 + 0.0005);
    for (size_t first = 0; first + kBatch <= order.size(); first += kBatch) {
      each_chunk([&](int chunk) {
        Pass pass;
        std::fill(gradients[chunk].begin(), gradients[chunk].end(), 0.0f);
        for (int i = chunk; i < kBatch; i += kChunks) {
          const size_t picture = order[first + i];
          const float* image = &images.pixels[picture * kPixels];
          pass.forward(image, p);
          pass.backward(image, images.labels[picture], p, gradients[chunk]);
        }
      });
      for (size_t k = 0; k < p.size(); ++k) {
        float sum = 0;
        for (const Floats& gradient : gradients) sum += gradient[k];
        velocity[k] = 0.9f * velocity[k] - rate * (sum / kBatch + 1e-4f * p[k]);
        p[k] += velocity[k];
      }
    }
    std::printf("epoch %2d of %d: %.2f %% of the test pictures\n", epoch + 1, epochs,
                100 * accuracy(test, p));
    std::fflush(stdout);
  }
  return p;
}

/// The little of the protobuf wire format that an ONNX file needs.
class Message {
 public:
  Message& number(int field, uint64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Message& bytes(int field, const std::string& value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& add(int field, const Message& value) { return bytes(field, value.bytes_); }
  const std::string& text() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

Message ints(const std::string& name, const std::vector<int>& values) {
  Message out;
  out.bytes(1, name).number(20, 7);
  for (int value : values) out.number(8, static_cast<uint64_t>(value));
  return out;
}
Message integer(const std::string& name, int value) {
  return Message().bytes(1, name).number(20, 2).number(3, static_cast<uint64_t>(value));
}

Message node(const std::string& op, const std::vector<std::string>& in, const std::string& out,
             const std::vector<Message>& attributes = {}) {
  Message node;
  for (const auto& name : in) node.bytes(1, name);
  node.bytes(2, out).bytes(3, out).bytes(4, op);
  for (const auto& attribute : attributes) node.add(5, attribute);
  return node;
}

Message tensor(const std::string& name, const std::vector<int>& dims, const float* values) {
  Message out;
  size_t bytes = sizeof(float);
  for (int dim : dims) {
    out.number(1, static_cast<uint64_t>(dim));
    bytes *= static_cast<size_t>(dim);
  }
  return out.number(2, 1).bytes(8, name).bytes(
      9, std::string(reinterpret_cast<const char*>(values), bytes));
}

Message value_info(const std::string& name, const std::vector<int>& sizes) {
  Message shape;
  shape.add(1, Message().bytes(2, "N"));
  for (int size : sizes) shape.add(1, Message().number(1, static_cast<uint64_t>(size)));
  const Message type = Message().add(1, Message().number(1, 1).add(2, shape));
  return Message().bytes(1, name).add(2, type);
}

std::string onnx(const Floats& p) {
  const std::vector<Message> conv{ints("kernel_shape", {3, 3}), ints("pads", {1, 1, 1, 1})};
  const std::vector<Message> pool{ints("kernel_shape", {4, 4}), ints("strides", {4, 4})};
  Message graph;
  graph.add(1, node("Conv", {"image", "conv.weight", "conv.bias"}, "conv", conv))
      .add(1, node("Relu", {"conv"}, "relu"))
      .add(1, node("MaxPool", {"relu"}, "pool", pool))
      .add(1, node("Flatten", {"pool"}, "features"))
      .add(1, node("Gemm", {"features", "fc.weight", "fc.bias"}, "score", {integer("transB", 1)}))
      .add(1, node("Softmax", {"score"}, "probability"))
      .bytes(2, "fashion")
      .add(5, tensor("conv.weight", {8, 1, 3, 3}, &p[kAt.w1]))
      .add(5, tensor("conv.bias", {8}, &p[kAt.b1]))
      .add(5, tensor("fc.weight", {kClasses, kFeatures}, &p[kAt.w2]))
      .add(5, tensor("fc.bias", {kClasses}, &p[kAt.b2]))
      .add(11, value_info("image", {1, kSide, kSide}))
      .add(12, value_info("probability", {kClasses}));
  return Message()
      .number(1, 8)
      .bytes(2, "dais/examples/fashion")
      .add(7, graph)
      .add(8, Message().bytes(1, "").number(2, 17))
      .text();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: train FOLDER OUT.onnx [EPOCHS]\n");
    return 2;
  }
  try {
    const Images images = load(argv[1], "train"), test = load(argv[1], "t10k");
    const std::string bytes = onnx(train(images, test, argc > 3 ? std::stoi(argv[3]) : 1));
    std::ofstream file(argv[2], std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return file.flush() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train: %s\n", error.what());
    return 1;
  }
}
