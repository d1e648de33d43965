#include <cstdio>

#include "base/error.h"
#include "cli/command.h"
#include "cli/data_flags.h"
#include "cli/model_choice.h"
#include "cli/run_options.h"
#include "cli/train_report.h"

namespace dais::cli {
namespace {

struct Options {
  ModelChoice choice;
  DataFlags data;
  std::string loss;
  int threads = 0;
  DeviceFlags place;
  bool json = false, by_class = false;
};

void run(const Options& options) {
  if (options.data.data.empty())
    throw Error(Code::invalid_argument, "there are no data to evaluate on", "", "Give --data PATH");
  onnx::Model model = load_choice(options.choice);
  const auto dataset = data::open_dataset(options.data.data, data_options(model, options.data));
  data::LoaderOptions how = validation_loader(training_loader(options.data, *dataset, 0));
  fit_features(how, *model.graph);
  how.normalise = stored_normalise(model, how.normalise);
  data::Loader loader(dataset, how);
  train::LossOptions loss;
  const data::Task task = dataset->description().task;
  loss.kind = options.loss.empty() ? train::usual_loss(task) : train::loss_from_name(options.loss);
  for (const auto& note : train::check_data(model, *dataset, loss.kind))
    std::fprintf(stderr, "note: %s\n", note.c_str());
  train::Evaluator evaluator(model, loss, {}, options.threads, options.place.open());
  const train::Evaluation found = evaluator.run(loader);
  const auto& classes = dataset->description().classes;
  if (options.json)
    std::printf("%s\n", evaluation_json(found, classes).c_str());
  else
    print_evaluation(found, classes, options.by_class);
}

}  // namespace

void add_eval(Program& program) {
  auto* command = program.app.add_subcommand("eval", "Measure a network on labelled data");
  const auto options = std::make_shared<Options>();
  add_model_choice(*command, options->choice);
  add_data_flags(*command, options->data);
  command->add_option("--mean", options->data.mean, "Mean of each channel, if the file has none");
  command->add_option("--deviation", options->data.deviation, "Deviation of each channel");
  command->add_option("--loss", options->loss, "Loss; by the kind of data when left out");
  command->add_option("--threads", options->threads, "Threads to use; 0: all usable cores")
      ->check(CLI::NonNegativeNumber);
  add_device_flags(*command, options->place);
  command->add_flag("--classes", options->by_class,
                    "Also precision and recall of each class, and the confusion matrix");
  command->add_flag("--json", options->json, "One JSON object");
  command->footer("Example: dais eval run --data /usr/share/datasets/fashion-mnist --part test");
  command->callback([options] { run(*options); });
}

}  // namespace dais::cli
