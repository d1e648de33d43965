#include "backends/cpu/onednn_run.h"
#include "backends/cpu/onednn_spec.h"
#include "base/error.h"

#ifdef DAIS_ONEDNN

namespace dais::onednn {
namespace {

dnnl_status_t describe(const Spec& spec, const_dnnl_primitive_attr_t attr,
                       dnnl_primitive_desc_t* out) {
  const Library& dnnl = library();
  const auto src = spec.src.raw(), weights = spec.weights.raw(), none = MemoryDesc().raw(),
             dst = spec.dst.raw();
#if DNNL_VERSION_MAJOR < 3
  dnnl_convolution_desc_t desc;
  const dnnl_status_t status = dnnl.dilated_convolution_backward_weights_desc_init(
      &desc, dnnl_convolution_direct, src, weights, none, dst, spec.strides.data(),
      spec.dilates.data(), spec.pads_begin.data(), spec.pads_end.data());
  if (status != dnnl_success) return status;
  return dnnl.primitive_desc_create(out, &desc, attr, dnnl.engine, nullptr);
#else
  // Newer generations insist on the forward convolution as a hint.
  dnnl_primitive_desc_t forward = nullptr;
  const dnnl_status_t status = dnnl.convolution_forward_primitive_desc_create(
      &forward, dnnl.engine, dnnl_forward_training, dnnl_convolution_direct, src, weights, none,
      dst, spec.strides.data(), spec.dilates.data(), spec.pads_begin.data(), spec.pads_end.data(),
      attr);
  if (status != dnnl_success) return status;
  const PrimitiveDesc hint(forward);
  return dnnl.convolution_backward_weights_primitive_desc_create(
      out, dnnl.engine, dnnl_convolution_direct, src, weights, none, dst, spec.strides.data(),
      spec.dilates.data(), spec.pads_begin.data(), spec.pads_end.data(), hint.get(), attr);
#endif
}

}  // namespace

struct WeightsGradient::Body {
  Compiled compiled, reorder;
  Stream stream;
  std::string implementation;
  int team = 1;
  Memory src, diff_dst, diff_weights, plain, scratch;
  size_t weights_at = 0, scratch_bytes = 0;
  std::vector<dnnl_exec_arg_t> arguments;
};

struct GradientAccess {
  static CreatedGradient create(const Spec& spec);
};

CreatedGradient GradientAccess::create(const Spec& spec) {
  CreatedGradient out;
  if (!spec.src || !spec.plain_weights || !spec.dst) {
    out.reason = "oneDNN takes no zero or overlapping strides";
    return out;
  }
  const Attributes attributes = attributes_of(spec);
  dnnl_primitive_desc_t made = nullptr;
  const dnnl_status_t status = describe(spec, attributes.attr.get(), &made);
  const PrimitiveDesc described(made);
  if (status == dnnl_unimplemented || status == dnnl_invalid_arguments) {
    out.reason = "oneDNN " + version() + " does not implement these types or sizes";
    return out;
  }
  check(status, "dnnl_primitive_desc_create");
  auto body = std::make_unique<WeightsGradient::Body>();
  body->implementation = implementation_of(described);
  if (body->implementation.starts_with("ref")) {
    out.reason = "oneDNN " + version() + " has only its reference loops for this";
    return out;
  }
  dnnl_primitive_t compiled = nullptr;
  check(library().primitive_create(&compiled, described.get()), "dnnl_primitive_create");
  body->compiled.reset(compiled);
  body->stream = make_stream();
  body->team = team_size();
  const MemoryDesc weights = query(described, dnnl_query_diff_weights_md);
  const MemoryDesc scratch = query(described, dnnl_query_scratchpad_md);
  body->src = make_memory(query(described, dnnl_query_src_md));
  body->diff_dst = make_memory(query(described, dnnl_query_diff_dst_md));
  body->diff_weights = make_memory(weights);
  body->scratch = make_memory(scratch);
  body->scratch_bytes = body->weights_at = aligned(scratch.bytes());
  if (!(weights == spec.plain_weights)) {
    body->plain = make_memory(spec.plain_weights);
    body->reorder = make_reorder(weights, spec.plain_weights);
    body->scratch_bytes += aligned(weights.bytes());
  }
  body->arguments = {{DNNL_ARG_SRC, body->src.get()},
                     {DNNL_ARG_DIFF_DST, body->diff_dst.get()},
                     {DNNL_ARG_DIFF_WEIGHTS, body->diff_weights.get()},
                     {DNNL_ARG_SCRATCHPAD, body->scratch.get()}};
  out.primitive.reset(new WeightsGradient(std::move(body)));
  return out;
}

WeightsGradient::WeightsGradient(std::unique_ptr<Body> body) : body_(std::move(body)) {}
WeightsGradient::~WeightsGradient() = default;
const std::string& WeightsGradient::implementation() const { return body_->implementation; }
size_t WeightsGradient::scratch_bytes() const { return body_->scratch_bytes; }

bool WeightsGradient::run(const void* src, const void* diff_dst, void* diff_weights,
                          void* scratch) noexcept {
  Body& body = *body_;
  void* own = body.reorder ? static_cast<std::byte*>(scratch) + body.weights_at : diff_weights;
  if (!set_data(body.src, src) || !set_data(body.diff_dst, diff_dst) ||
      !set_data(body.diff_weights, own) || !set_data(body.scratch, scratch))
    return false;
  const TeamScope scope(body.team);
  if (library().primitive_execute(body.compiled.get(), body.stream.get(),
                                  static_cast<int>(body.arguments.size()),
                                  body.arguments.data()) != dnnl_success)
    return false;
  return !body.reorder ||
         (set_data(body.plain, diff_weights) &&
          copy(body.reorder, body.stream, body.diff_weights.get(), body.plain.get()));
}

CreatedGradient create_weights_gradient(const ConvDesc& forward) {
  CreatedGradient out;
  out.reason = unavailable().empty() ? objection(forward) : unavailable();
  return out.reason.empty() ? GradientAccess::create(spec_of(forward)) : std::move(out);
}

}  // namespace dais::onednn

#endif
