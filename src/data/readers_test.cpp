#include "data/readers.h"

#include "data/shards.h"
#include "data/testing/files.h"

namespace dais::data {
namespace {

namespace fs = std::filesystem;

class DataReaders : public DataTest {
 protected:
  static const Finding* finding(const Dataset& dataset, const std::string& what) {
    for (const auto& found : dataset.description().findings)
      if (found.what == what) return &found;
    return nullptr;
  }
};

TEST_F(DataReaders, AFolderOfImagesPerClass) {
  copy("color.png", "cat/a.png");
  copy("color.jpg", "cat/deep/b.JPG");
  copy("gray.jpg", "dog/c.jpg");
  write("dog/notes.txt", "no image");
  write("dog/.hidden.png", "hidden");
  write("broken.png", "x");
  fs::create_directories(folder_ / "empty");
  const auto dataset = open_dataset(folder_);
  EXPECT_EQ(dataset->description().format, "image folder");
  EXPECT_EQ(dataset->description().classes, (std::vector<std::string>{"cat", "dog", "empty"}));
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->label(2), 1);
  EXPECT_EQ(dataset->description().input_shape, (Shape{40, 48, 3}));
  const Sample gray = dataset->read(2);
  EXPECT_EQ(gray.input.shape(), (Shape{40, 48, 3}));  // colour, as others are
  EXPECT_EQ(gray.target.to_ints(), (std::vector<int64_t>{1}));
  ASSERT_NE(finding(*dataset, "class without samples"), nullptr);
  EXPECT_EQ(finding(*dataset, "class without samples")->examples[0], "empty");
  EXPECT_NE(finding(*dataset, "image outside the folders of the classes"), nullptr);
  EXPECT_EQ(dataset->raw(0).extension, "png");
}

TEST_F(DataReaders, LinksOutOfTheFolderAreNotFollowed) {
  copy("color.png", "data/a/x.png");
  copy("color.png", "elsewhere/y.png");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "data/a/out");
  fs::create_symlink(folder_ / "elsewhere/y.png", folder_ / "data/a/z.png");
  const auto dataset = open_dataset(folder_ / "data");
  EXPECT_EQ(dataset->size(), 1);
  ASSERT_NE(finding(*dataset, "link that leaves the folder"), nullptr);
  EXPECT_EQ(finding(*dataset, "link that leaves the folder")->count, 2);
}

TEST_F(DataReaders, PartsOfAFolder) {
  copy("color.png", "train/a/x.png");
  copy("color.png", "train/b/x.png");
  copy("color.png", "test/a/x.png");
  EXPECT_EQ(open_dataset(folder_)->size(), 2);
  OpenOptions options;
  options.part = "test";
  EXPECT_EQ(open_dataset(folder_, options)->size(), 1);
}

TEST_F(DataReaders, AListOfImagesAndLabels) {
  copy("color.png", "my images/a b.png");
  copy("gray.jpg", "g.jpg");
  const auto list = write("list.txt",
                          "# images\nmy images/a b.png cat\ng.jpg\tdog\n../escape.png cat\n"
                          "/etc/passwd dog\nmissing.png cat\n");
  const auto dataset = open_dataset(list);
  EXPECT_EQ(dataset->description().format, "text list");
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->label(0), 0);
  EXPECT_EQ(dataset->label(1), 1);
  EXPECT_EQ(finding(*dataset, "path that leaves the folder")->count, 2);
  EXPECT_EQ(finding(*dataset, "file that does not exist")->count, 1);

  const auto numbers = write("numbers.txt", "g.jpg 4\ng.jpg 1\n");
  EXPECT_EQ(open_dataset(numbers)->description().class_count, 5);
  const auto names = write("names.txt", "zero\none\n");
  OpenOptions options;
  options.labels = names;
  const auto wrong = open_dataset(numbers, options);
  EXPECT_EQ(wrong->size(), 1);
  EXPECT_EQ(finding(*wrong, "label outside the classes")->count, 1);
}

TEST_F(DataReaders, MasksBesideImages) {
  copy("palette.png", "images/a.png");
  copy("palette.png", "masks/a.png");
  copy("palette.png", "images/alone.png");
  OpenOptions options;
  options.image.height = 6;
  options.image.width = 8;
  const auto dataset = open_dataset(folder_, options);
  EXPECT_EQ(dataset->description().task, Task::segmentation);
  EXPECT_EQ(dataset->description().class_count, 7);
  ASSERT_EQ(dataset->size(), 1);
  const Sample sample = dataset->read(0);
  EXPECT_EQ(sample.input.shape(), (Shape{6, 8, 3}));
  EXPECT_EQ(sample.target.shape(), (Shape{6, 8}));
  const Tensor whole = golden("palette_indices.npy");
  EXPECT_EQ(sample.target.to_double(8 + 1), whole.to_double(3 * 16 + 3));
}

TEST_F(DataReaders, KittiBoxes) {
  copy("color.png", "images/1.png");  // 40 x 48
  write("labels/1.txt",
        "Car 0.00 0 -1.5 12.0 10.0 24.0 30.0 1 2 3 4 5 6 0\n"
        "DontCare -1 -1 -10 0 0 5 5 -1 -1 -1 -1000 -1000 -1000 -10\n"
        "Tram 0 0 0 30 30 30 35 0 0 0 0 0 0 0\nCar x\n");
  OpenOptions options;
  options.image.height = 20;
  options.image.width = 48;
  const auto dataset = open_dataset(folder_, options);
  EXPECT_EQ(dataset->description().format, "kitti");
  EXPECT_EQ(dataset->description().classes, (std::vector<std::string>{"Car", "Tram"}));
  const Sample sample = dataset->read(0);
  EXPECT_TRUE(sample.target.identical(Tensor::of<float>({1, 4}, {12, 5, 24, 15})));
  EXPECT_EQ(sample.classes.to_ints(), (std::vector<int64_t>{0}));
  EXPECT_EQ(finding(*dataset, "box without area")->count, 1);
  EXPECT_EQ(finding(*dataset, "line that is no box")->count, 1);
}

TEST_F(DataReaders, CocoBoxes) {
  copy("color.png", "images/1.png");
  write("instances.json",
        R"({"info": {"name": "x", "list": [1, {"id": 5}]},
            "images": [{"id": 7, "file_name": "1.png", "height": 40},
                       {"id": 8, "file_name": "../../secret.png"},
                       {"id": 9, "file_name": "gone.png"}],
            "annotations": [
              {"image_id": 7, "category_id": 3, "bbox": [1, 2.5, 10, 20], "iscrowd": 0,
               "segmentation": [[1, 2, 3, 4]], "id": 1},
              {"image_id": 7, "category_id": 3, "bbox": [0, 0, 9, 9], "iscrowd": 1},
              {"image_id": 7, "category_id": 99, "bbox": [0, 0, 9, 9]}],
            "categories": [{"id": 3, "name": "thing"}, {"id": 4, "name": "other"}]})");
  const auto dataset = open_dataset(folder_ / "instances.json");
  EXPECT_EQ(dataset->description().format, "coco");
  ASSERT_EQ(dataset->size(), 1);
  const Sample sample = dataset->read(0);
  EXPECT_TRUE(sample.target.identical(Tensor::of<float>({1, 4}, {1, 2.5, 11, 22.5})));
  EXPECT_EQ(finding(*dataset, "path that leaves the folder")->count, 1);
  EXPECT_EQ(finding(*dataset, "file that does not exist")->count, 1);
  EXPECT_EQ(finding(*dataset, "annotation without box or category")->count, 1);
  write("broken.json", R"({"images": [{"id": 1, "file_name": "1.png"})");
  expect_refused([&] { open_dataset(folder_ / "broken.json"); }, "COCO");
}

TEST_F(DataReaders, IdxFiles) {
  copy("train-images-idx3-ubyte.gz", "train-images-idx3-ubyte.gz");
  copy("train-labels-idx1-ubyte.gz", "train-labels-idx1-ubyte.gz");
  const auto dataset = open_dataset(folder_);
  EXPECT_EQ(dataset->description().format, "idx");
  EXPECT_EQ(dataset->size(), 6);
  EXPECT_EQ(dataset->description().class_count, 3);
  EXPECT_EQ(dataset->description().input_shape, (Shape{5, 4, 1}));
  const auto archive = open_dataset(golden_path("plain.npz"));
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_TRUE(dataset->read(i).input.identical(archive->read(i).input));
    EXPECT_EQ(dataset->label(i), archive->label(i));
  }
  EXPECT_TRUE(parse_idx(golden_file("shorts.idx"), "x")
                  .identical(Tensor::of<int16_t>({2, 3}, {1, -2, 300, -32768, 32767, 0})));
}

TEST_F(DataReaders, HostileIdxFilesAreRefused) {
  const auto parse = [](const std::string& bytes) {
    parse_idx(blob_of({bytes.begin(), bytes.end()}), "x");
  };
  expect_refused([&] { parse(""); }, "first bytes");
  expect_refused([&] { parse(std::string("\0\0\x07\1\0\0\0\0", 8)); }, "element type");
  expect_refused([&] { parse(std::string("\0\0\x08\3\0\0", 6)); }, "ends early");
  expect_refused([&] { parse(std::string("\0\0\x08\x02\xff\xff\xff\xff\xff\xff\xff\xff", 12)); },
                 "more data");
  expect_refused([&] { parse(std::string("\0\0\x0e\1\0\0\0\1\0\0\0\0", 12)); }, "bytes of data");
}

TEST_F(DataReaders, FashionMnist) {
  const fs::path folder = "/usr/share/datasets/fashion-mnist";
  if (!fs::exists(folder)) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  for (const auto& [part, count] : {std::pair("train", 60000), std::pair("test", 10000)}) {
    OpenOptions options;
    options.part = part;
    const auto dataset = open_dataset(folder, options);
    ASSERT_EQ(dataset->size(), count);
    EXPECT_EQ(dataset->description().input_shape, (Shape{28, 28, 1}));
    std::vector<int64_t> counts(10);
    for (int64_t i = 0; i < dataset->size(); ++i)
      ++counts.at(static_cast<size_t>(dataset->label(i)));
    EXPECT_EQ(counts, std::vector<int64_t>(10, count / 10));
  }
}

TEST_F(DataReaders, CifarBinary) {
  std::string sample(3073, '\0');
  for (size_t i = 0; i < 3072; ++i) sample[1 + i] = static_cast<char>(i / 1024 * 50 + i % 32);
  sample[0] = 4;
  write("data_batch_1.bin", sample + sample);
  sample[0] = 9;
  write("data_batch_2.bin", sample);
  write("test_batch.bin", sample);
  const auto dataset = open_dataset(folder_);
  EXPECT_EQ(dataset->description().format, "cifar");
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->label(2), 9);
  const Sample first = dataset->read(0);
  EXPECT_EQ(first.input.shape(), (Shape{32, 32, 3}));
  EXPECT_EQ(first.input.to_double(3 * 5 + 2), 105);  // blue of the sixth pixel
  write("data_batch_3.bin", sample + "x");
  expect_refused([&] { open_dataset(folder_); }, "side by side");
  write("data_batch_3.bin", sample + "xyz");
  expect_refused([&] { open_dataset(folder_); }, "multiple");
}

TEST_F(DataReaders, Tables) {
  const auto path = write("flowers.csv",
                          "length;kind;width;color\n1.5;setosa;2;red\n3;\"vir;gin\"\"ica\";?;blue\n"
                          "2;setosa;4;red\n");
  OpenOptions options;
  options.table.label = "kind";
  const auto dataset = open_dataset(path, options);
  EXPECT_EQ(dataset->description().format, "csv");
  EXPECT_EQ(dataset->description().classes, (std::vector<std::string>{"setosa", "vir;gin\"ica"}));
  ASSERT_EQ(dataset->size(), 3);
  // length, width (its mean where missing), color as blue and red.
  EXPECT_TRUE(dataset->read(1).input.identical(Tensor::of<float>({4}, {3, 3, 1, 0})));
  EXPECT_TRUE(dataset->read(2).input.identical(Tensor::of<float>({4}, {2, 4, 0, 1})));
  EXPECT_EQ(dataset->label(1), 1);
  EXPECT_EQ(finding(*dataset, "missing value")->count, 1);
  options.table.label = "lenght";
  expect_refused([&] { open_dataset(path, options); }, "Did you mean 'length'?");
}

TEST_F(DataReaders, TablesOfNumbers) {
  const auto classes = write("a.csv", "1,2,10\r\n3,4,9\r\n5,6,10\r\n");
  const auto dataset = open_dataset(classes);
  EXPECT_EQ(dataset->description().classes, (std::vector<std::string>{"9", "10"}));
  EXPECT_EQ(dataset->description().input_shape, (Shape{2}));
  const auto numbers = open_dataset(write("b.csv", "x y\n1 0.5\n2 1.25\n"));
  EXPECT_EQ(numbers->description().task, Task::regression);
  EXPECT_TRUE(numbers->read(1).target.identical(Tensor::of<float>({1}, {1.25})));
  expect_refused([&] { open_dataset(write("c.csv", "1,2\n3,4\n5\n")); }, "other lengths");
  expect_refused([&] { open_dataset(write("d.csv", "a,\"b\n")); }, "does not end");
  expect_refused([&] { open_dataset(write("e.csv", "")); }, "empty");
}

TEST_F(DataReaders, NumpyArrays) {
  const auto packed = open_dataset(golden_path("packed.npz"));
  const auto plain = open_dataset(golden_path("plain.npz"));
  EXPECT_EQ(plain->description().input, InputKind::image);
  EXPECT_EQ(packed->description().input, InputKind::array);
  EXPECT_EQ(packed->description().task, Task::classification);
  for (int64_t k = 0; k < 20; ++k)
    EXPECT_EQ(packed->read(4).input.to_double(k), plain->read(4).input.to_double(k) / 7);
  OpenOptions options;
  options.part = "test";
  EXPECT_EQ(open_dataset(golden_path("plain.npz"), options)->size(), 2);
  options.input_key = "z";
  expect_refused([&] { open_dataset(golden_path("plain.npz"), options); }, "x_train");
  const auto fortran = open_dataset(golden_path("fortran.npy"));
  EXPECT_TRUE(fortran->read(1).input.identical(Tensor::of<float>({4}, {4, 5, 6, 7})));
  const std::string whole(golden_file("packed.npz").text());
  for (size_t size = 0; size < whole.size(); size += 11)
    EXPECT_THROW(open_dataset(write("cut.npz", whole.substr(0, size))), Error);
}

TEST_F(DataReaders, SpeechManifests) {
  copy("chirp.wav", "sounds/one.wav");
  copy("chirp.wav", "sounds/two.wav");
  OpenOptions options;
  options.root = folder_ / "sounds";
  options.format = "speech";
  const auto colons =
      write("core.txt", "; comment\none: Hello, it's me!\ntwo: [beep] You\nthree: gone\n");
  const auto dataset = open_dataset(colons, options);
  EXPECT_EQ(dataset->description().task, Task::transcription);
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(finding(*dataset, "line without file or words")->count, 1);
  const Sample sample = dataset->read(0);
  EXPECT_EQ(sample.input.shape(), (Shape{dataset->length(0), 80}));
  std::string text;
  for (const int64_t token : sample.target.to_ints())
    text += dataset->description().classes[static_cast<size_t>(token)];
  EXPECT_EQ(text, "hello it's me");

  const auto lines = write("sounds/m.jsonl",
                           "{\"audio_filepath\": \"one.wav\", \"text\": \"a b\"}\n"
                           "{\"audio_filepath\": \"../../etc/x.wav\", \"text\": \"c\"}\n");
  EXPECT_EQ(open_dataset(lines)->size(), 1);
  const auto table = write("sounds/m.tsv", "path\tsize\tsentence\none.wav\t3\thi\n");
  EXPECT_EQ(open_dataset(table)->description().classes,
            (std::vector<std::string>{"<blank>", "h", "i"}));
}

TEST_F(DataReaders, SoundsPerClass) {
  copy("chirp.wav", "yes/1.wav");
  copy("chirp.wav", "no/1.wav");
  write("no/2.wav", "RIFFbroken");
  const auto dataset = open_dataset(folder_);
  EXPECT_EQ(dataset->description().format, "audio folder");
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->label(2), 1);
  EXPECT_EQ(finding(*dataset, "unreadable file")->examples[0], "no/2.wav");
  EXPECT_THROW(dataset->read(1), Error);
}

TEST_F(DataReaders, TextInWindows) {
  const auto path = write("t.txt",
                          "abcabd\xc3\xa9"
                          "a");
  OpenOptions options;
  options.text.window = 3;
  const auto dataset = open_dataset(path, options);
  EXPECT_EQ(dataset->description().classes,
            (std::vector<std::string>{"a", "b", "c", "d", "\xc3\xa9"}));
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->read(1).input.to_ints(), (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(dataset->read(1).target.to_ints(), (std::vector<int64_t>{1, 3, 4}));
  options.text.stride = 1;
  EXPECT_EQ(open_dataset(path, options)->size(), 5);
  options.text.tokens = Tokens::byte;
  EXPECT_EQ(open_dataset(path, options)->description().class_count, 256);
  EXPECT_EQ(open_dataset(path, options)->description().classes[0xC3], "<0xC3>");
  options.text.window = 20;
  expect_refused([&] { open_dataset(path, options); }, "do not fill one window");
  options = {};
  options.text.window = 1;
  options.text.held_out = 0.5;
  const auto train = open_dataset(path, options);
  options.part = "val";
  const auto val = open_dataset(path, options);
  EXPECT_EQ(train->size(), 3);
  EXPECT_EQ(val->size(), 3);
  EXPECT_EQ(val->read(0).input.to_ints(), (std::vector<int64_t>{1}));
}

TEST_F(DataReaders, SentencePieces) {
  OpenOptions options;
  options.text.tokens = Tokens::sentencepiece;
  options.text.model = golden_path("pieces.model");
  options.text.window = 1;
  const auto dataset = open_dataset(golden_path("pieces.txt"), options);
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < dataset->size(); ++i)
    tokens.push_back(dataset->read(i).input.to_ints()[0]);
  tokens.push_back(dataset->read(dataset->size() - 1).target.to_ints()[0]);
  std::vector<int64_t> wanted;
  const Blob ids = golden_file("pieces.ids");
  for (const auto line : lines_of(ids.text())) {
    if (!wanted.empty()) wanted.push_back(2);  // the end of a sentence
    std::string numbers(line);
    for (char* at = numbers.data(); *at != 0;) wanted.push_back(std::strtol(at, &at, 10));
  }
  EXPECT_EQ(tokens, wanted);
  options.text.model = golden_path("color.png");
  expect_refused([&] { open_dataset(golden_path("pieces.txt"), options); }, "SentencePiece model");
}

TEST_F(DataReaders, TarArchivesOfThreeDialects) {
  const Tensor a = Tensor::ints(std::vector<int64_t>{3});
  for (const char* name : {"ustar.tar", "gnu.tar", "pax.tar"}) {
    SCOPED_TRACE(name);
    const Blob file = golden_file(name);
    const auto members = parse_tar(file.bytes, name);
    ASSERT_EQ(members.size(), name == std::string("ustar.tar") ? 3U : 4U);
    EXPECT_EQ(members[0].name, "a.png");
    EXPECT_EQ(std::string(members[1].data.begin(), members[1].data.end()), "3\n");
    if (members.size() == 4) {
      EXPECT_EQ(members[3].name, "folder/" + std::string(120, 'n') + ".png");
    }
    const auto dataset = open_dataset(golden_path(name));
    EXPECT_EQ(dataset->description().task, Task::classification);
    EXPECT_TRUE(dataset->read(0).target.identical(a.reshaped({})));
    EXPECT_EQ(finding(*dataset, "label outside the classes")->count, dataset->size() - 1);
  }
  std::string broken(golden_file("gnu.tar").text());
  broken[124] = '7';
  expect_refused([&] { open_dataset(write("x.tar", broken)); }, "wrong sum");
  for (size_t size = 0; size < broken.size(); size += 100) {
    try {
      open_dataset(copy("gnu.tar", "cut" + std::to_string(size) + "/x.tar"));
      fs::resize_file(folder_ / ("cut" + std::to_string(size)) / "x.tar", size);
      open_dataset(folder_ / ("cut" + std::to_string(size)));
    } catch (const Error&) {
    }
  }
}

TEST_F(DataReaders, ShardsGiveBackWhatWasBuilt) {
  copy("color.png", "in/cat/a.png");
  copy("color.jpg", "in/cat/b.jpg");
  copy("progressive.jpg", "in/dog/c.jpg");
  write("in/dog/broken.jpg", "\xff\xd8\xff nonsense");
  const auto source = open_dataset(folder_ / "in");
  BuildOptions options;
  options.shard_bytes = 1;
  const BuildResult result = build_shards(*source, folder_ / "out", options);
  EXPECT_EQ(result.samples, 3);
  EXPECT_EQ(result.shards, 3);
  EXPECT_EQ(result.unreadable.count, 1);
  const auto shards = open_dataset(folder_ / "out");
  ASSERT_EQ(shards->size(), 3);
  EXPECT_EQ(shards->description().classes, source->description().classes);
  const int64_t origin[] = {0, 1, 3};
  for (int64_t i = 0; i < 3; ++i) {
    const Sample mine = shards->read(i), wanted = source->read(origin[i]);
    EXPECT_TRUE(mine.input.identical(wanted.input));
    EXPECT_TRUE(mine.target.identical(wanted.target));
  }
  EXPECT_TRUE(verify_shards(folder_ / "out").empty());
  expect_refused([&] { build_shards(*source, folder_ / "out", options); }, "holds shards already");
  const auto shard = folder_ / "out/shard-000001.tar";
  std::string bytes(load_file(shard, 1 << 20).text());
  bytes[700] ^= 1;
  std::ofstream(shard, std::ios::binary) << bytes;
  EXPECT_EQ(verify_shards(folder_ / "out"), std::vector<std::string>{"shard-000001.tar"});
  fs::resize_file(shard, 1000);
  expect_refused([&] { open_dataset(folder_ / "out"); }, "missing or cut off");
}

TEST_F(DataReaders, ShardsOfOtherTasks) {
  copy("color.png", "boxes/images/1.png");
  write("boxes/labels/1.txt", "Car 0 0 0 12 10 24 30\n");
  copy("palette.png", "masks/images/a.png");
  copy("palette.png", "masks/masks/a.png");
  copy("chirp.wav", "speech/one.wav");
  write("speech/m.tsv", "one.wav\tgood day\n");
  write("table.csv", "1,2,0.5\n3,4,0.25\n");
  for (const char* name : {"boxes", "masks", "speech", "table.csv"}) {
    SCOPED_TRACE(name);
    const auto source = open_dataset(folder_ / name);
    const auto out = folder_ / (std::string(name) + "-shards");
    build_shards(*source, out, {});
    const auto shards = open_dataset(out);
    EXPECT_EQ(shards->description().task, source->description().task);
    EXPECT_EQ(shards->description().class_count, source->description().class_count);
    const Sample mine = shards->read(0), wanted = source->read(0);
    EXPECT_TRUE(mine.input.identical(wanted.input));
    EXPECT_TRUE(mine.target.identical(wanted.target));
    if (wanted.classes) {
      EXPECT_TRUE(mine.classes.identical(wanted.classes));
    }
  }
}

TEST_F(DataReaders, SubsetsNameTheirSource) {
  write("t.csv", "1,0\n2,1\n3,0\n4,1\n");
  write("part.json", R"({"dais_subset": 1, "source": "t.csv", "samples": 4, "indices": [3, 1]})");
  const auto part = open_dataset(folder_ / "part.json");
  ASSERT_EQ(part->size(), 2);
  EXPECT_EQ(part->read(0).input.to_double(), 4);
  write("bad.json", R"({"dais_subset": 1, "source": "t.csv", "samples": 4, "indices": [4]})");
  expect_refused([&] { open_dataset(folder_ / "bad.json"); }, "outside a dataset");
  write("old.json", R"({"dais_subset": 1, "source": "t.csv", "samples": 5, "indices": [0]})");
  expect_refused([&] { open_dataset(folder_ / "old.json"); }, "Split it again");
}

TEST_F(DataReaders, WhatIsNoDataIsRefused) {
  expect_refused([&] { open_dataset(folder_ / "nothing"); }, "no such file");
  expect_refused([&] { open_dataset(folder_); }, "no known kind of data");
  OpenOptions options;
  options.format = "imagefolder";
  expect_refused([&] { open_dataset(folder_, options); }, "image-folder");
}

TEST_F(DataReaders, CompressedBombsAreRefused) {
  // 1 GiB of zeros would come out of these bytes; the limit stops it early.
  const std::string gz(golden_file("train-images-idx3-ubyte.gz").text());
  expect_refused([&] { load_file(golden_path("pieces.txt"), 1), inflate({}, true, 10, "x"); }, "x");
  const auto path = copy("train-images-idx3-ubyte.gz", "b.gz");
  expect_refused([&] { load_file(path, 50); }, "more than 50 bytes");
}

}  // namespace
}  // namespace dais::data
