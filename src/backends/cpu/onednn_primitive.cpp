#include <optional>

#include "backends/cpu/onednn_packed.h"
#include "backends/cpu/onednn_run.h"
#include "backends/cpu/onednn_spec.h"
#include "base/error.h"

#ifdef DAIS_ONEDNN

namespace dais::onednn {
namespace {

dnnl_alg_kind_t algorithm_of(const Spec& spec) {
  return spec.winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
}

/// The calls that create a primitive descriptor; the caller looks at the status.
dnnl_status_t describe(const Spec& spec, const_dnnl_primitive_attr_t attr,
                       dnnl_primitive_desc_t* out) {
  const Library& dnnl = library();
  const auto src = spec.src.raw(), weights = spec.weights.raw(), bias = spec.bias.raw(),
             dst = spec.dst.raw();
#if DNNL_VERSION_MAJOR < 3
  const auto finish = [&](dnnl_status_t status, const auto& desc) {
    if (status != dnnl_success) return status;
    return dnnl.primitive_desc_create(out, &desc, attr, dnnl.engine, nullptr);
  };
  if (spec.form == Form::matmul) {
    dnnl_matmul_desc_t desc;
    return finish(dnnl.matmul_desc_init(&desc, src, weights, bias, dst), desc);
  }
  const Dims &strides = spec.strides, &dilates = spec.dilates;
  if (spec.form == Form::deconv) {
    dnnl_deconvolution_desc_t desc;
    return finish(
        dnnl.dilated_deconvolution_forward_desc_init(
            &desc, dnnl_forward_inference, dnnl_deconvolution_direct, src, weights, bias, dst,
            strides.data(), dilates.data(), spec.pads_begin.data(), spec.pads_end.data()),
        desc);
  }
  dnnl_convolution_desc_t desc;
  return finish(dnnl.dilated_convolution_forward_desc_init(
                    &desc, dnnl_forward_inference, algorithm_of(spec), src, weights, bias, dst,
                    strides.data(), dilates.data(), spec.pads_begin.data(), spec.pads_end.data()),
                desc);
#else
  if (spec.form == Form::matmul)
    return dnnl.matmul_primitive_desc_create(out, dnnl.engine, src, weights, bias, dst, attr);
  const bool deconv = spec.form == Form::deconv;
  const auto create = deconv ? dnnl.deconvolution_forward_primitive_desc_create
                             : dnnl.convolution_forward_primitive_desc_create;
  return create(out, dnnl.engine, dnnl_forward_inference,
                deconv ? dnnl_deconvolution_direct : algorithm_of(spec), src, weights, bias, dst,
                spec.strides.data(), spec.dilates.data(), spec.pads_begin.data(),
                spec.pads_end.data(), attr);
#endif
}

struct Described {
  PrimitiveDesc desc;
  std::string implementation;
  std::string reason;  ///< why not; empty when desc serves
};

Described describe(const Spec& spec, const Attributes& attributes) {
  Described out;
  if (!spec.src || !spec.plain_weights || !spec.dst) {
    out.reason = "oneDNN takes no zero or overlapping strides";
    return out;
  }
  dnnl_primitive_desc_t made = nullptr;
  const dnnl_status_t status = describe(spec, attributes.attr.get(), &made);
  out.desc.reset(made);
  if (status == dnnl_unimplemented || status == dnnl_invalid_arguments) {
    out.reason = "oneDNN " + version() + " does not implement these types, sizes or post-ops";
    return out;
  }
  check(status, "dnnl_primitive_desc_create");
  out.implementation = implementation_of(out.desc);
  if (out.implementation.starts_with("ref"))
    out.reason = "oneDNN " + version() + " has only its reference loops (" + out.implementation +
                 ") for this";
  if (spec.depthwise && out.implementation.find("gemm") != std::string::npos)
    out.reason = "oneDNN " + version() + " would run one tiny matrix product per channel";
  return out;
}

/// What create() settles on, and refusal() reports.
struct Choice {
  Spec spec;
  Attributes attributes;
  Described described;
};

Choice choose(Spec spec) {
  Attributes attributes = attributes_of(spec);
  if (spec.winograd) {
    Spec blocked = winograd_spec(spec);
    Described described = describe(blocked, attributes);
    if (described.reason.empty())
      return {std::move(blocked), std::move(attributes), std::move(described)};
    spec.winograd = false;
  }
  Described described = describe(spec, attributes);
  return {std::move(spec), std::move(attributes), std::move(described)};
}

/// Copies between the caller's channels-last activations and the blocked ones that Winograd's
/// kernel wants; the blocked ones lie in scratch memory.
struct Staging {
  Compiled in, out;
  Memory src, dst;
  size_t src_at = 0, dst_at = 0;
};

}  // namespace

Packed::Body::Body(const MemoryDesc& plain_desc, const MemoryDesc& private_desc)
    : desc(private_desc) {
  const size_t size = aligned(desc.bytes());
  bytes.reset(std::aligned_alloc(alignment, size));
  if (!bytes)
    throw Error(Code::exhausted, "no memory for " + std::to_string(size) + " bytes of weights",
                "packing weights", "Free memory or use a smaller model");
  memory = make_memory(desc);
  check(library().memory_set_data_handle(memory.get(), bytes.get()), "dnnl_memory_set_data_handle");
  plain = make_memory(plain_desc);
  reorder = make_reorder(plain_desc, desc);
  stream = make_stream();
}

bool Packed::Body::fill(const void* weights) noexcept {
  return set_data(plain, weights) && copy(reorder, stream, plain.get(), memory.get());
}

Packed::Packed(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Packed::~Packed() = default;
size_t Packed::bytes() const { return body_->desc.bytes(); }
const void* Packed::data() const { return body_->bytes.get(); }

struct Access {
  static const MemoryDesc& desc(const Packed& packed) { return packed.body_->desc; }
  static Created create(const Spec& spec);
};

const MemoryDesc& packed_desc(const Packed& packed) { return Access::desc(packed); }

struct Primitive::Body {
  Compiled compiled;
  Stream stream;
  std::string implementation;
  size_t scratch_bytes = 0;
  int team = 1;
  bool packs = true;
  std::optional<Staging> staging;
  MemoryDesc weights, plain_weights;
  std::vector<Operand> operands;  ///< keeps the values of constant ones alive

  std::vector<Memory> memories;  ///< one per entry of arguments
  std::vector<dnnl_exec_arg_t> arguments;
  static constexpr size_t src = 0, weights_at = 1, dst = 2, scratch = 3;
  size_t bias = 0, first_operand = 4;  ///< a bias of 0 means none

  void add(int argument, const MemoryDesc& desc) {
    memories.push_back(make_memory(desc));
    arguments.push_back({argument, memories.back().get()});
  }
  bool point(size_t index, const void* data) noexcept { return set_data(memories[index], data); }
  void add_arguments(const Spec& spec, const PrimitiveDesc& described);
  void stage(const Spec& spec, const PrimitiveDesc& described);
  bool execute(const Tensors& tensors) noexcept;
};

void Primitive::Body::add_arguments(const Spec& spec, const PrimitiveDesc& described) {
  const MemoryDesc scratch_desc = query(described, dnnl_query_scratchpad_md);
  scratch_bytes = scratch_desc.bytes();
  weights = query(described, dnnl_query_weights_md);
  add(DNNL_ARG_SRC, query(described, dnnl_query_src_md));
  add(DNNL_ARG_WEIGHTS, weights);
  add(DNNL_ARG_DST, query(described, dnnl_query_dst_md));
  add(DNNL_ARG_SCRATCHPAD, scratch_desc);
  if (spec.epilogue->bias) {
    bias = arguments.size();
    add(DNNL_ARG_BIAS, spec.bias);
  }
  first_operand = arguments.size();
  for (const Operand& operand : operands) {
    add(operand.argument, operand.desc);
    if (operand.constant()) DAIS_CHECK(set_data(memories.back(), operand.values.data()));
  }
}

void Primitive::Body::stage(const Spec& spec, const PrimitiveDesc& described) {
  const MemoryDesc src_blocked = query(described, dnnl_query_src_md);
  const MemoryDesc dst_blocked = query(described, dnnl_query_dst_md);
  staging.emplace();
  staging->in = make_reorder(spec.caller_src, src_blocked);
  staging->out = make_reorder(dst_blocked, spec.caller_dst);
  staging->src = make_memory(spec.caller_src);
  staging->dst = make_memory(spec.caller_dst);
  staging->src_at = aligned(scratch_bytes);
  staging->dst_at = staging->src_at + aligned(src_blocked.bytes());
  scratch_bytes = staging->dst_at + aligned(dst_blocked.bytes());
}

Created Access::create(const Spec& wanted) {
  Created out;
  const int team = team_size();
  Choice choice = choose(wanted);
  const Spec& spec = choice.spec;
  const PrimitiveDesc& described = choice.described.desc;
  if (!choice.described.reason.empty()) {
    out.reason = std::move(choice.described.reason);
    return out;
  }
  auto body = std::make_unique<Primitive::Body>();
  dnnl_primitive_t compiled = nullptr;
  check(library().primitive_create(&compiled, described.get()), "dnnl_primitive_create");
  body->compiled.reset(compiled);
  body->stream = make_stream();
  body->implementation = std::move(choice.described.implementation);
  body->team = team;
  body->packs = spec.packs;
  body->plain_weights = spec.plain_weights;
  body->operands = std::move(choice.attributes.operands);
  body->add_arguments(spec, described);
  if (spec.winograd) body->stage(spec, described);
  out.primitive.reset(new Primitive(std::move(body)));
  return out;
}

Primitive::Primitive(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Primitive::~Primitive() = default;
const std::string& Primitive::implementation() const { return body_->implementation; }
size_t Primitive::scratch_bytes() const { return body_->scratch_bytes; }
bool Primitive::packs() const { return body_->packs; }

bool Primitive::accepts(const Packed& packed) const noexcept {
  return body_->packs && packed.body_->desc == body_->weights;
}

std::shared_ptr<Packed> Primitive::pack(const void* weights) const {
  DAIS_CHECK(body_->packs);
  auto body = std::make_unique<Packed::Body>(body_->plain_weights, body_->weights);
  if (!body->fill(weights)) throw Error(Code::internal, "oneDNN failed to copy weights", "packing");
  return std::shared_ptr<Packed>(new Packed(std::move(body)));
}

bool Primitive::repack(const void* weights, Packed& packed) const noexcept {
  return accepts(packed) && packed.body_->fill(weights);
}

bool Primitive::Body::execute(const Tensors& tensors) noexcept {
  const auto run_it = [&] {
    return library().primitive_execute(compiled.get(), stream.get(),
                                       static_cast<int>(arguments.size()),
                                       arguments.data()) == dnnl_success;
  };
  if (!staging) return point(src, tensors.src) && point(dst, tensors.dst) && run_it();
  auto* const scratch_memory = static_cast<std::byte*>(tensors.scratch);
  return point(src, scratch_memory + staging->src_at) &&
         point(dst, scratch_memory + staging->dst_at) && set_data(staging->src, tensors.src) &&
         set_data(staging->dst, tensors.dst) &&
         copy(staging->in, stream, staging->src.get(), arguments[src].memory) && run_it() &&
         copy(staging->out, stream, arguments[dst].memory, staging->dst.get());
}

bool Primitive::run(const Tensors& tensors) noexcept {
  Body& body = *body_;
  bool ready = body.point(Body::scratch, tensors.scratch);
  if (body.packs)
    body.arguments[Body::weights_at].memory = tensors.packed->body_->memory.get();
  else
    ready = ready && body.point(Body::weights_at, tensors.weights);
  if (body.bias != 0) ready = ready && body.point(body.bias, tensors.bias);
  for (size_t index = 0; index < tensors.post.size(); ++index)
    ready = ready && body.point(body.first_operand + index, tensors.post[index]);
  if (!ready) return false;
  const TeamScope scope(body.team);
  return body.execute(tensors);
}

namespace {

template <typename Desc>
Created create_from(const Desc& desc) {
  Created out;
  out.reason = unavailable().empty() ? objection(desc) : unavailable();
  return out.reason.empty() ? Access::create(spec_of(desc)) : std::move(out);
}

template <typename Desc>
std::string refusal_of(const Desc& desc) {
  std::string reason = unavailable().empty() ? objection(desc) : unavailable();
  if (!reason.empty()) return reason;
  return choose(spec_of(desc)).described.reason;
}

}  // namespace

Created create(const ConvDesc& desc) { return create_from(desc); }
Created create(const DeconvDesc& desc) { return create_from(desc); }
Created create(const MatmulDesc& desc) { return create_from(desc); }

std::string refusal(const ConvDesc& desc) { return refusal_of(desc); }
std::string refusal(const DeconvDesc& desc) { return refusal_of(desc); }
std::string refusal(const MatmulDesc& desc) { return refusal_of(desc); }

const std::string& unavailable() { return library().missing; }
const std::string& version() { return library().version_text; }

}  // namespace dais::onednn

#endif
