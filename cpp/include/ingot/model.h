// A compiled model as an object to call: values, derivatives, parameters, status. Calls are checked as
// Python checks them; threads may share a model.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backend.h"
#include "cuda.h"
#include "stub.h"

namespace ingot {

// How a model is loaded.
struct Options {
  std::string device = "cpu";                   // cpu, cuda or cuda:1
  std::string backend = "";                     // kernel or inductor; "": the kernel where there is one
  std::string dtype = "";                       // refuse a package of another precision than this
  int threads = 0;                              // of a call at most; 0: OMP_NUM_THREADS, or as many as cores
  std::map<std::string, Rules> rules;           // of solves by their names, in the place of the package's
  bool components_outermost = false;            // whether outputs that a call makes lie as (components, points)
  std::function<void(const std::string&)> log;  // is told which code runs, if not the best
};

// What a call does beside its results.
struct With {
  std::vector<Status>* status = nullptr;  // receives what became of every point, one for each solve
  void* stream = nullptr;                 // CUstream of a call on a GPU
};

// Many steps: `(steps, *batch, *axes, *base)` of inputs given at every step, and step 0 of the others.
struct Transient {
  int64_t steps = 0;
  Arrays prescribed, initial;
};

// What came out: `(steps, *batch, *axes, *base)`; step 0 holds what was given, or zeros.
struct History {
  Arrays outputs;
  std::vector<Status> status;
};

// Derivative blocks by output and input, `(*batch, *axes, *axes, *base, *base)`.
class Blocks {
 public:
  Array& at(const std::string& output, const std::string& input) { return blocks_.at(output + ":" + input); }
  const Array& at(const std::string& output, const std::string& input) const {
    return blocks_.at(output + ":" + input);
  }
  // Where a call shall write a block.
  void put(const std::string& output, const std::string& input, Array to) {
    blocks_[output + ":" + input] = std::move(to);
  }
  size_t size() const { return blocks_.size(); }
  Arrays& all() { return blocks_; }  // by names such as `stress:strain`
  const Arrays& all() const { return blocks_; }

 private:
  Arrays blocks_;
};

namespace detail {

using MakeGraphs = std::function<std::shared_ptr<Backend>(const Metadata&, const std::map<std::string, std::string>&)>;
inline MakeGraphs& graphs() {  // what runs graphs, once torch.h is included
  static MakeGraphs made;
  return made;
}

template <class Work> auto by_dtype(DType dtype, Work work) {
  return dtype == DType::float64 ? work(double()) : work(float());
}

}  // namespace detail

class Model {
 public:
  // The model of a package's folder, of the folder above those of devices, or of a stub.
  static Model load(const std::string& place, const Options& options = {}) {
    using namespace detail;
    const auto is_here = [](const std::string& kind) {
      return kind == "cpu" || (kind == "cuda" && Driver::count() > 0);
    };
    const bool is_stub = ends_with(place, ".i");
    Stub stub;
    if (is_stub) stub = read_stub(place);
    raise_if(find_wrong_words(options));
    auto core = std::make_shared<Core>();
    std::string folder;
    Metadata& meta = core->meta = find_package(is_stub ? stub.place : place, options.device, folder, is_here);
    if (meta.device != kind_of(options.device))
      throw refuse("other device",
                   {{"held", meta.device}, {"device", options.device}, {"fix", fix_device(meta.device, is_here)}});
    if (!options.dtype.empty() && options.dtype != meta.dtype)
      throw refuse("other precision", {{"held", meta.dtype}, {"dtype", options.dtype}});
    const std::map<std::string, std::string> contents = read_files(meta, folder);
    const std::string chosen = !options.backend.empty() ? options.backend : meta.kernel ? "kernel" : "inductor";
    if (!(chosen == "kernel" ? bool(meta.kernel) : chosen == "inductor" && meta.inductor))
      throw refuse("no backend", {{"backend", chosen}});
    if (meta.sums) throw refuse("sums", {{"name", meta.name}});
    if (is_stub) require_program(stub, meta);
    if (is_stub) apply_rules(stub, meta);
    if (chosen == "inductor" && !graphs()) throw refuse("no torch", {{"name", meta.name}});
    if (chosen == "inductor") core->backend = graphs()(meta, contents);
    else if (meta.device == "cuda")
      core->backend = std::make_shared<CudaBackend>(meta, contents, options.device, options.log);
    else core->backend = std::make_shared<KernelBackend>(meta, open_kernel(meta, contents, options.log));
    core->dtype = meta.dtype == "float64" ? DType::float64 : DType::float32;
    core->threads = options.threads > 0 ? options.threads : default_threads();
    core->outermost = options.components_outermost;
    core->prepare();
    Model made(std::move(core));
    for (const auto& [name, rules] : options.rules) made = made.with_rules(name, rules);
    return made;
  }
  static Model load(const std::string& place, const std::string& device) {
    Options options;
    options.device = device;
    return load(place, options);
  }

  // A copy shares the code and has parameters of its own.
  Model(const Model& other) : core_(other.core_), parameters_(other.held()) {}
  Model& operator=(const Model& other) {
    if (this == &other) return *this;
    auto held = other.held();
    core_ = other.core_;
    const std::lock_guard<std::mutex> lock(lock_);
    parameters_ = std::move(held);
    return *this;
  }

  // The same code under other rules of one solve.
  Model with_rules(const std::string& solve, const Rules& rules) const {
    detail::raise_if(detail::find_wrong_rules(rules));
    auto core = std::make_shared<Core>(*core_);
    Model made(*this);
    for (Solver& s : core->meta.solvers)
      if (s.name == solve) {
        s.rules = rules;
        s.rules.min_its = 0;
        made.core_ = std::move(core);
        return made;
      }
    std::vector<std::string> known;
    for (const Solver& s : core->meta.solvers) known.push_back(s.name);
    const std::string fix = detail::did_you_mean(solve, known);
    throw detail::refuse(
        "unknown solve",
        {{"name", solve},
         {"fix", fix.empty() ? "its solves are: " + (known.empty() ? "none" : detail::join(known)) : fix}});
  }

  const Metadata& metadata() const { return core_->meta; }
  std::string backend() const { return core_->backend->name(); }
  std::string device() const { return core_->backend->device(); }
  DType dtype() const { return core_->dtype; }
  const std::vector<Variable>& inputs() const { return core_->meta.inputs; }
  const std::vector<Variable>& outputs() const { return core_->meta.outputs; }
  std::vector<std::string> parameters() const {
    std::vector<std::string> names;
    for (const Parameter& p : core_->meta.parameters) names.push_back(p.variable.name);
    return names;
  }

  // A promoted parameter by its name, or by an end of it that is unique; what it is, and another value.
  Array parameter(const std::string& name) const { return (*held())[resolve(name)]; }
  void set_parameter(const std::string& name, const Array& value) {
    using namespace detail;
    const size_t which = resolve(name);
    const Variable& v = core_->meta.parameters[which].variable;
    std::vector<Problem> problems;
    check_layout(v.name, value, problems);
    raise_if(problems);
    const Array same = converted(value);
    misfits(v, same, problems);
    raise_if(problems);
    find_outside(core_->meta.parameters[which], same, problems);
    raise_if(problems);
    Array own = copied(same);
    const std::lock_guard<std::mutex> lock(lock_);
    auto next = std::make_shared<std::vector<Array>>(*parameters_);
    (*next)[which] = std::move(own);
    parameters_ = std::move(next);
  }

  // Memory of the device for an array of this one, and back; on CPUs the array itself.
  Array to_device(const Array& x, void* stream = nullptr) const { return core_->backend->to_device(x, stream); }
  Array to_host(const Array& x, void* stream = nullptr) const { return core_->backend->to_host(x, stream); }

  // The outputs of inputs `(*batch, *axes, *base)`. Outputs that the caller gives are written to, also
  // those that take the place of an input; others are made.
  Arrays forward(const Arrays& inputs, With with = {}) const {
    Arrays made;
    forward(inputs, made, with);
    return made;
  }
  void forward(const Arrays& inputs, Arrays& outputs, With with = {}) const {
    const Call call = checked(inputs);
    compute(call, detail::Entry::forward, {}, outputs, nullptr, nullptr, with);
  }

  // The blocks of the compiled pairs with inputs; one that is the same for all points has no batch.
  Blocks jacobian(const Arrays& inputs, With with = {}) const {
    Arrays outputs;
    Blocks blocks;
    jacobian(inputs, outputs, blocks, with);
    return blocks;
  }
  void jacobian(const Arrays& inputs, Arrays& outputs, Blocks& blocks, With with = {}) const {
    blocks_by(inputs, names(core_->meta.inputs), outputs, blocks, with);
  }

  // The blocks with promoted parameters, all or some, which are called as they are asked for.
  Blocks param_jacobian(const Arrays& inputs, const std::vector<std::string>& params = {}, With with = {}) const {
    const auto asked = asked_for(params);
    std::vector<std::string> by;
    for (const auto& [word, name] : asked) by.push_back(name);
    Arrays outputs;
    Blocks found, made;
    blocks_by(inputs, by, outputs, found, with);
    for (const auto& [word, name] : asked)
      for (const Block& b : core_->meta.derivatives)
        if (b.input == name) made.put(b.output, word, found.at(b.output, name));
    return made;
  }

  // The change of outputs along tangents of inputs or promoted parameters: of those that have a
  // compiled pair with each of them.
  Arrays jvp(const Arrays& inputs, const Arrays& tangents, With with = {}) const {
    using namespace detail;
    const Call call = checked(inputs);
    require_derivatives(false);
    const Arrays own = named(tangents);
    const Along along = directions(own, known_inputs(), "input", call);
    const Both both = evaluate(call, with);
    std::vector<std::string> whole;
    for (const Variable& y : core_->meta.outputs) {
      bool all = true;
      for (const auto& [x, tangent] : along.values) all &= has_pair(y.name, x);
      if (all) whole.push_back(y.name);
    }
    if (whole.empty() && !core_->meta.outputs.empty() && !along.values.empty())
      refuse_pair(core_->meta.outputs[0].name, first_missing_by(along.values, core_->meta.outputs[0].name), "");
    const Shape batch = spread_batch(along.batch, both);
    Arrays made;
    for (const std::string& y : whole) {
      Array sum = zeros(batch, variable(y));
      for (const auto& [x, tangent] : along.values) multiply(both, y, x, *tangent, sum, batch, false);
      if (!along.values.empty()) made[y] = core_->backend->to_device(sum, with.stream);
    }
    return made;
  }

  // The gradient by inputs of the sum of outputs times cotangents, point by point.
  Arrays vjp(const Arrays& inputs, const Arrays& cotangents, With with = {}) const {
    return gradient(inputs, cotangents, names(core_->meta.inputs), with);
  }

  // The gradient by promoted parameters, summed over the points that share one.
  Arrays param_vjp(const Arrays& inputs, const Arrays& cotangents, const std::vector<std::string>& params = {},
                   With with = {}) const {
    const auto asked = asked_for(params);
    std::vector<std::string> by;
    for (const auto& [word, name] : asked)
      if (!detail::has(by, name)) by.push_back(name);
    const Arrays pulled = gradient(inputs, cotangents, by, with);
    Arrays made;
    for (const auto& [word, name] : asked)
      if (const Array* found = pulled.find(name)) made[word] = summed_to(*found, parameter(name).shape(), with.stream);
    return made;
  }

  // Many steps in one call; values of the step before are carried over inside.
  History transient(const Transient& given, With with = {}) const;

 private:
  struct Core {
    Metadata meta;
    std::shared_ptr<detail::Backend> backend;
    DType dtype = DType::float64;
    int threads = 1;
    bool outermost = false;
    std::vector<Array> initial, constants;

    Array stored(const Parameter& p) const {
      Array host = dtype == DType::float64 ? Array(std::vector<double>(p.values), p.shape)
                                           : Array(std::vector<float>(p.values.begin(), p.values.end()), p.shape);
      return backend->to_device(host, nullptr);
    }
    void prepare() {
      for (const Parameter& p : meta.parameters) initial.push_back(stored(p));
      for (const Parameter& p : meta.constants) constants.push_back(stored(p));
    }
  };

  // Words that name no device, precision or backend of any package.
  static std::vector<Problem> find_wrong_words(const Options& options) {
    using namespace detail;
    std::vector<Problem> problems;
    const std::vector<std::string> devices = {"cpu", "cuda"};
    if (const std::string kind = kind_of(options.device); !has(devices, kind)) {
      const std::string fix = did_you_mean(kind, devices);
      problems.push_back(tell("no device name", {{"name", options.device},
                                                 {"fix", fix.empty() ? "give 'cpu', 'cuda' or 'cuda:1'" : fix}}));
    }
    if (!options.dtype.empty()) find_no_choice("dtype", options.dtype, {"float64", "float32"}, problems);
    if (!options.backend.empty()) find_no_choice("backend", options.backend, {"kernel", "inductor"}, problems);
    return problems;
  }

  // The values of a call in their order, checked, and the parameters as they were when it began.
  struct Call {
    std::vector<const Array*> inputs;
    std::shared_ptr<const std::vector<Array>> parameters;
  };
  // Tangents or cotangents by name, and the batch that all values have together.
  struct Along {
    std::vector<std::pair<std::string, const Array*>> values;
    Shape batch;
  };
  // Outputs and blocks on the host, row-major, a block at every point; which points failed, if any did.
  struct Both {
    Shape batch;
    std::map<std::string, Array> outputs, blocks;
    std::vector<bool> failed;
  };

  explicit Model(std::shared_ptr<const Core> core)
      : core_(std::move(core)), parameters_(std::make_shared<std::vector<Array>>(core_->initial)) {}

  std::shared_ptr<const Core> core_;
  std::shared_ptr<const std::vector<Array>> parameters_;
  mutable std::mutex lock_;

  std::shared_ptr<const std::vector<Array>> held() const {
    const std::lock_guard<std::mutex> lock(lock_);
    return parameters_;
  }

  // names

  static std::vector<std::string> names(const std::vector<Variable>& row) {
    std::vector<std::string> made;
    for (const Variable& v : row) made.push_back(v.name);
    return made;
  }
  const Variable& variable(const std::string& name) const {
    for (const Variable& v : core_->meta.inputs)
      if (v.name == name) return v;
    for (const Parameter& p : core_->meta.parameters)
      if (p.variable.name == name) return p.variable;
    return output(name);
  }
  const Variable& output(const std::string& name) const {
    for (const Variable& v : core_->meta.outputs)
      if (v.name == name) return v;
    return core_->meta.outputs.at(0);
  }
  std::vector<const Variable*> known_inputs() const {
    std::vector<const Variable*> made;
    for (const Variable& v : core_->meta.inputs) made.push_back(&v);
    for (const Parameter& p : core_->meta.parameters) made.push_back(&p.variable);
    return made;
  }

  std::vector<size_t> find_named(const std::string& word) const {
    const std::vector<Parameter>& all = core_->meta.parameters;
    std::vector<size_t> found;
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].variable.name == word) return {i};
    for (size_t i = 0; i < all.size(); ++i)
      if (detail::has(all[i].spellings, word)) found.push_back(i);
    if (!found.empty()) return found;
    for (size_t i = 0; i < all.size(); ++i) {
      bool ends = detail::ends_with(all[i].variable.name, "." + word);
      for (const std::string& other : all[i].spellings) ends |= detail::ends_with(other, "." + word);
      if (ends) found.push_back(i);
    }
    return found;
  }
  // As much of the end of a parameter's name as means it alone.
  std::string shorten(size_t parameter) const {
    const std::string& name = core_->meta.parameters[parameter].variable.name;
    for (size_t at = name.size(); at-- > 0;)
      if (name[at] == '.' && find_named(name.substr(at + 1)) == std::vector<size_t>{parameter})
        return name.substr(at + 1);
    return name;
  }
  size_t resolve(const std::string& word) const {
    using namespace detail;
    const std::vector<size_t> found = find_named(word);
    if (found.size() == 1) return found[0];
    const std::vector<std::string> all = parameters();
    if (!found.empty()) {
      std::vector<std::string> may;
      for (size_t i : found) may.push_back(shorten(i));
      std::sort(may.begin(), may.end());
      throw refuse("ambiguous", {{"name", word}, {"found", join(may, " or ")}, {"first", may[0]}});
    }
    std::vector<std::string> known = all, ends;
    for (const std::string& name : all) ends.push_back(name.substr(name.rfind('.') + 1));
    for (const std::string& end : ends)
      if (std::count(ends.begin(), ends.end(), end) == 1) known.push_back(end);
    std::string fix = did_you_mean(word, known);
    if (fix.empty())
      fix = "compile with " + spell(core_->meta, "parameter", "NAME") + ", a name that `ingot show FILE MODEL` prints";
    throw refuse("not promoted", {{"name", word}, {"fix", fix}});
  }
  std::vector<std::pair<std::string, std::string>> asked_for(const std::vector<std::string>& params) const {
    const std::vector<std::string> all = parameters();
    std::vector<std::pair<std::string, std::string>> made;
    if (params.empty())
      for (const std::string& name : all) made.emplace_back(name, name);
    for (const std::string& word : params) made.emplace_back(word, all[resolve(word)]);
    return made;
  }

  // Tangents by the names of what they belong to, where they have others.
  Arrays named(const Arrays& tangents) const {
    Arrays made;
    std::map<std::string, std::string> found;
    for (const auto& [word, value] : tangents) {
      std::string name = word;
      if (!detail::has(names(core_->meta.inputs), word)) {
        const std::vector<size_t> means = find_named(word);
        if (!means.empty()) name = parameters()[means.size() > 1 ? resolve(word) : means[0]];
      }
      if (found.count(name)) {
        if (found[name] == word) throw detail::refuse("named twice", {{"name", word}});
        throw detail::refuse("twice", {{"first", found[name]}, {"second", word}});
      }
      found[name] = word;
      made[name] = value;
    }
    return made;
  }

  // checks

  std::string fix_dtype(const std::string& kind) const {
    return kind == "float32" || kind == "float64" ? "compile with " + detail::spell(core_->meta, "dtype", kind) : "";
  }

  // What no array may be: a view that points nowhere, or has other strides than axes.
  static bool check_layout(const std::string& name, const Array& x, std::vector<Problem>& problems) {
    using namespace detail;
    for (int64_t n : x.shape())
      if (n < 0) {
        problems.push_back(tell("negative size", {{"name", name}, {"shape", tuple(x.shape())}}));
        return false;
      }
    const size_t before = problems.size();
    double reach = 0;  // in numbers, from the first to the last
    for (size_t i = 0; i < std::min(x.shape().size(), x.strides().size()); ++i)
      reach += std::abs(double(x.strides()[i])) * double(std::max<int64_t>(x.shape()[i] - 1, 0));
    if (x.strides().size() != x.shape().size())
      problems.push_back(tell(
          "strides", {{"name", name}, {"count", std::to_string(x.strides().size())}, {"shape", tuple(x.shape())}}));
    else if (x.size() > INT64_MAX / 64 || reach > 0x1p57)
      problems.push_back(tell("too large", {{"points", tuple(x.shape())}}));
    else if (x.size() && !x.address()) problems.push_back(tell("null", {{"name", name}}));
    else if (reinterpret_cast<uintptr_t>(x.address()) % uintptr_t(size_of(x.dtype())))
      problems.push_back(tell("alignment", {{"name", name}, {"dtype", name_of(x.dtype())}}));
    return problems.size() == before;
  }

  static std::string expected(const Shape& want) {
    std::string made = "(*batch";
    for (int64_t n : want) made += ", " + std::to_string(n);
    return made + ")";
  }

  static std::string full_device(const std::string& device) { return device == "cuda" ? "cuda:0" : device; }

  void misfits(const Variable& v, const Array& x, std::vector<Problem>& problems) const {
    using namespace detail;
    const Metadata& meta = core_->meta;
    if (x.dtype() != core_->dtype) {
      const std::string kind = name_of(x.dtype()), flag = fix_dtype(kind);
      problems.push_back(tell("precision", {{"name", v.name},
                                            {"dtype", kind},
                                            {"who", "the package"},
                                            {"held", meta.dtype},
                                            {"other", flag.empty() ? "" : ", or " + flag}}));
    }
    if (full_device(x.device()) != device())
      problems.push_back(
          tell("device", {{"name", v.name}, {"device", x.device()}, {"who", "the package"}, {"held", device()}}));
    const Shape want = v.shape();
    if (x.shape().size() >= want.size() &&
        std::equal(want.begin(), want.end(), x.shape().end() - std::ptrdiff_t(want.size())))
      return;
    std::string fix = find_extents(v, x);
    if (fix.empty()) fix = "give the batch axes first";
    problems.push_back(
        tell("shape", {{"name", v.name}, {"shape", tuple(x.shape())}, {"wanted", expected(want)}, {"fix", fix}}));
  }

  // The first number out of the range of a parameter; those on a GPU are not looked at.
  static void find_outside(const Parameter& p, const Array& x, std::vector<Problem>& problems) {
    using namespace detail;
    if (!p.range.is_set || x.device() != "cpu") return;
    by_dtype(x.dtype(), [&](auto real) {
      const auto* from = static_cast<const decltype(real)*>(x.address());
      x.each([&](int64_t, int64_t place) {
        const double value = from[place];
        if (p.range.holds(value) || !problems.empty()) return;
        problems.push_back(tell("wrong value", {{"name", p.variable.name},
                                                {"expected", tell_range(p.range)},
                                                {"verb", x.shape().empty() ? "is" : "holds"},
                                                {"shown", show_number(value, false)},
                                                {"fix", "give one such as " + find_example(p.range)}}));
      });
      return 0;
    });
  }

  // What to compile for a value that fits in all but its extents, which are compiled in.
  std::string find_extents(const Variable& v, const Array& x) const {
    const size_t rank = v.sub_batch.size() + v.base.size(), have = x.shape().size();
    if (v.sub_batch.empty() || have < rank) return "";
    std::string sizes;
    for (size_t i = have - rank; i < have - v.base.size(); ++i) {
      if (x.shape()[i] == 0) return "";
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(x.shape()[i]);
    }
    if (!std::equal(v.base.begin(), v.base.end(), x.shape().end() - std::ptrdiff_t(v.base.size()))) return "";
    const std::string extents = v.name + "=(; " + sizes + ")", command = core_->meta.command;
    if (command.empty() || command == "ingot.compile")
      return "compile the model again with " + detail::spell(core_->meta, "example_batch_shape", extents);
    return "compile the model again: " + command + " --example-batch-shape '" + extents + "'";
  }

  // Arrays in the order of what is known; all that is wrong with them.
  std::vector<std::pair<std::string, const Array*>> read(const Arrays& values,
                                                         const std::vector<const Variable*>& known,
                                                         const std::string& word,
                                                         std::vector<Problem>& problems) const {
    using namespace detail;
    std::vector<std::string> list;
    for (const Variable* v : known) list.push_back(v->name);
    std::set<std::string> seen;
    for (const auto& [name, value] : values) {
      if (!seen.insert(name).second) problems.push_back(tell("named twice", {{"name", name}}));
      if (has(list, name)) continue;
      const std::string fix = did_you_mean(name, list);
      problems.push_back(tell(word == "input" ? "unknown input" : "unknown direction",
                              {{"word", word}, {"name", name}, {"fix", fix.empty() ? "one of: " + join(list) : fix}}));
    }
    std::vector<std::pair<std::string, const Array*>> made;
    for (const Variable* v : known) {
      const Array* found = values.find(v->name);
      if (!found) continue;
      if (check_layout(v->name, *found, problems)) misfits(*v, *found, problems);
      made.emplace_back(v->name, found);
    }
    return made;
  }

  Call checked(const Arrays& inputs) const {
    std::vector<const Variable*> known;
    for (const Variable& v : core_->meta.inputs) known.push_back(&v);
    std::vector<Problem> problems;
    const auto found = read(inputs, known, "input", problems);
    for (const Variable* v : known)
      if (!inputs.find(v->name)) problems.push_back(detail::tell("missing input", {{"name", v->name}}));
    detail::raise_if(problems);
    Call call;
    for (const auto& [name, value] : found) call.inputs.push_back(value);
    call.parameters = held();
    return call;
  }

  Along directions(const Arrays& along, const std::vector<const Variable*>& known, const std::string& word,
                   const Call& call) const {
    std::vector<Problem> problems;
    Along made;
    made.values = read(along, known, word, problems);
    detail::raise_if(problems);
    std::vector<Shape> shapes;
    for (size_t i = 0; i < call.inputs.size(); ++i)
      shapes.push_back(detail::batch_of(*call.inputs[i], rank(core_->meta.inputs[i])));
    for (size_t i = 0; i < call.parameters->size(); ++i)
      shapes.push_back(detail::batch_of((*call.parameters)[i], rank(core_->meta.parameters[i].variable)));
    for (const auto& [name, value] : made.values)
      shapes.push_back(detail::batch_of(*value, rank(word == "output" ? output(name) : variable(name))));
    made.batch = detail::join_batches(shapes);
    return made;
  }

  static size_t rank(const Variable& v) { return v.sub_batch.size() + v.base.size(); }

  // A value of a parameter in the precision of the package, the same where that would lose any of it.
  Array converted(const Array& x) const {
    if (x.dtype() == core_->dtype || x.device() != "cpu") return x;
    return detail::by_dtype(core_->dtype, [&](auto real) {
      using T = decltype(real);
      std::vector<T> made(size_t(x.size()));
      bool exact = true;
      const auto take = [&](auto one) {
        using S = decltype(one);
        const S* from = static_cast<const S*>(x.address());
        x.each([&](int64_t at, int64_t place) {
          made[size_t(at)] = T(from[place]);
          exact &= S(made[size_t(at)]) == from[place] || from[place] != from[place];
        });
      };
      switch (x.dtype()) {
        case DType::float64: take(double()); break;
        case DType::float32: take(float()); break;
        case DType::int64: take_whole<int64_t>(x, made, exact); break;
        case DType::int32: take(int32_t()); break;
        case DType::int16: take(int16_t()); break;
        case DType::int8: take(int8_t()); break;
        case DType::uint8:
        case DType::boolean: take(uint8_t()); break;
      }
      return exact && x.shape().size() < 64 ? Array(std::move(made), x.shape()) : x;
    });
  }
  template <class S, class T> static void take_whole(const Array& x, std::vector<T>& made, bool& exact) {
    const S* from = static_cast<const S*>(x.address());
    x.each([&](int64_t at, int64_t place) {
      made[size_t(at)] = T(from[place]);
      const bool small = from[place] <= (S(1) << 53) && from[place] >= -(S(1) << 53);
      exact &= small && S(made[size_t(at)]) == from[place];
    });
  }

  // The same numbers, row-major, in memory of their own.
  Array copied(const Array& x) const {
    if (x.device() != "cpu") return core_->backend->to_device(core_->backend->to_host(x, nullptr), nullptr);
    Array made = Array::empty(x.dtype(), x.shape());
    detail::by_dtype(x.dtype(), [&](auto real) { detail::gather(x, made.data<decltype(real)>()); });
    return core_->backend->to_device(made, nullptr);
  }

  // calls

  // A value as the code reads it, in the batch of a call; copied where its strides are more than two.
  detail::Flat lay_out(const Array& x, const Variable& v, const Shape& batch, int64_t points, void* stream) const {
    detail::Flat made;
    const Shape own = detail::batch_of(x, rank(v));
    const bool one = detail::product(own) == 1 && points != 0;
    const Array spread = one ? x : detail::expand(x, batch, rank(v));
    if (!detail::flatten(spread, rank(v), made)) {
      Array host = core_->backend->to_host(spread, stream), copy = Array::empty(host.dtype(), host.shape());
      detail::by_dtype(host.dtype(), [&](auto real) { detail::gather(host, copy.data<decltype(real)>()); });
      detail::flatten(core_->backend->to_device(copy, stream), rank(v), made);
    }
    if (one) made.point = 0, made.points = 1;
    return made;
  }

  Shape batch_of_call(const Call& call, const std::vector<std::pair<std::string, const Array*>>& cotangents) const {
    std::vector<Shape> shapes;
    for (size_t i = 0; i < call.inputs.size(); ++i)
      shapes.push_back(detail::batch_of(*call.inputs[i], rank(core_->meta.inputs[i])));
    for (const auto& [name, value] : cotangents) shapes.push_back(detail::batch_of(*value, rank(output(name))));
    for (size_t i = 0; i < call.parameters->size(); ++i)
      shapes.push_back(detail::batch_of((*call.parameters)[i], rank(core_->meta.parameters[i].variable)));
    for (size_t i = 0; i < core_->constants.size(); ++i)
      shapes.push_back(detail::batch_of(core_->constants[i], rank(core_->meta.constants[i].variable)));
    return detail::join_batches(shapes);
  }

  static Shape plus(const Shape& batch, const Shape& rest) {
    Shape made = batch;
    made.insert(made.end(), rest.begin(), rest.end());
    return made;
  }
  Shape block_shape(const Block& b) const {
    const Variable &y = output(b.output), &x = variable(b.input);
    return plus(plus(y.sub_batch, x.sub_batch), plus(y.base, x.base));
  }

  struct Written {
    std::string name;
    Array* array;
    detail::Flat flat;
    Array staged;  // written instead of an array with more than two strides
  };

  // Room for a result: what the caller gives, which must fit, or memory that is made.
  Written room(const std::string& name, Array& given, const Shape& batch, const Shape& rest) const {
    using namespace detail;
    Written made{name, &given, {}, {}};
    const Shape wanted = plus(batch, rest);
    if (!given.address() && given.shape().empty() && !given.is_writable())
      given = core_->backend->allocate(core_->dtype, wanted, core_->outermost ? rest.size() : 0);
    std::vector<Problem> problems;
    if (check_layout(name, given, problems)) {
      if (given.dtype() != core_->dtype)
        problems.push_back(tell("precision", {{"name", name},
                                              {"dtype", name_of(given.dtype())},
                                              {"who", "the package"},
                                              {"held", core_->meta.dtype},
                                              {"other", ""}}));
      if (full_device(given.device()) != device())
        problems.push_back(
            tell("device", {{"name", name}, {"device", given.device()}, {"who", "the package"}, {"held", device()}}));
      if (given.shape() != wanted)
        problems.push_back(
            tell("output shape", {{"name", name}, {"shape", tuple(given.shape())}, {"wanted", tuple(wanted)}}));
      else if (!given.is_writable())
        problems.push_back(tell("overlap", {{"name", name}, {"other", "what is only read"}}));
      else if (writes_twice(given)) problems.push_back(tell("overlap", {{"name", name}, {"other", name}}));
    }
    raise_if(problems);
    if (!flatten(given, rest.size(), made.flat)) {
      made.staged = core_->backend->allocate(core_->dtype, wanted, 0);
      flatten(made.staged, rest.size(), made.flat);
    }
    return made;
  }

  // Whether two numbers of an array that is written may lie at one place.
  static bool writes_twice(const Array& x) {
    std::vector<std::pair<int64_t, int64_t>> axes;
    for (size_t i = 0; i < x.shape().size(); ++i)
      if (x.shape()[i] > 1) axes.emplace_back(std::abs(x.strides()[i]), x.shape()[i]);
    if (x.size() == 0) return false;
    std::sort(axes.begin(), axes.end());
    int64_t reach = 1;
    for (const auto& [stride, count] : axes) {
      if (stride < reach) return true;
      reach = stride * (count - 1) + reach;
    }
    return false;
  }

  // Whether memory that is written may meet other memory of the call.
  bool meets(const detail::Flat& a, const detail::Flat& b, int64_t points) const {
    const int64_t size = size_of(core_->dtype);
    struct Reach {
      intptr_t low, high;
    };
    const auto reach = [&](const detail::Flat& x) {
      Reach made{reinterpret_cast<intptr_t>(x.data), reinterpret_cast<intptr_t>(x.data)};
      for (const int64_t span :
           {x.point * ((x.points == 1 ? 1 : points) - 1) * size, x.component * (x.width - 1) * size})
        (span < 0 ? made.low : made.high) += span;
      made.high += size;
      return made;
    };
    const Reach p = reach(a), q = reach(b);
    if (p.low >= q.high || q.low >= p.high) return false;
    // records of one length that hold both apart: by points, or by components
    const auto apart = [&](int64_t outer_a, int64_t outer_b, int64_t inner_a, int64_t inner_b) {
      if (outer_a != outer_b || outer_a <= 0 || (p.low - q.low) % size) return false;
      const int64_t d = (((q.low - p.low) / size) % outer_a + outer_a) % outer_a;
      return d >= inner_a && d + inner_b <= outer_a;
    };
    const int64_t na = a.points == 1 ? 1 : points, nb = b.points == 1 ? 1 : points;
    return !apart(a.point, b.point, std::abs(a.component) * (a.width - 1) + 1,
                  std::abs(b.component) * (b.width - 1) + 1) &&
           !apart(a.component, b.component, std::abs(a.point) * (na - 1) + 1, std::abs(b.point) * (nb - 1) + 1);
  }

  // Runs an entry: outputs, and blocks or adjoints in their order, into arrays that are given or made.
  void compute(const Call& call, detail::Entry entry,
               const std::vector<std::pair<std::string, const Array*>>& cotangents, Arrays& outputs, Arrays* more,
               std::vector<bool>* failed, With with) const {
    using namespace detail;
    const Metadata& meta = core_->meta;
    const Shape batch = batch_of_call(call, cotangents);
    const int64_t points = product(batch);
    int64_t widest = 1;
    for (const Variable& v : meta.outputs) widest = std::max(widest, v.size);
    if (points > INT64_MAX / 64 / widest) throw refuse("too large", {{"points", std::to_string(points)}});
    std::vector<Flat> held;
    std::vector<std::string> read_names;
    const auto take = [&](const Array& x, const Variable& v) {
      held.push_back(lay_out(x, v, batch, points, with.stream));
      read_names.push_back(v.name);
    };
    for (size_t i = 0; i < call.inputs.size(); ++i) take(*call.inputs[i], meta.inputs[i]);
    Array zero;
    if (entry == Entry::vjp) {
      for (const Variable& y : meta.outputs) {
        const Array* found = nullptr;
        for (const auto& [name, value] : cotangents)
          if (name == y.name) found = value;
        if (!found && !zero.address())
          zero = core_->backend->to_device(core_->dtype == DType::float64 ? Array(0.0) : Array(0.0F), with.stream);
        if (found) take(*found, y);
        else held.push_back({zero.address(), 0, 0, y.size, 1, zero.owner()}), read_names.push_back(y.name);
      }
    }
    for (size_t i = 0; i < call.parameters->size(); ++i) take((*call.parameters)[i], meta.parameters[i].variable);
    for (size_t i = 0; i < core_->constants.size(); ++i) take(core_->constants[i], meta.constants[i].variable);

    std::vector<Problem> problems;
    for (const auto& [name, value] : outputs)
      if (!has(names(meta.outputs), name)) {
        const std::string fix = did_you_mean(name, names(meta.outputs));
        problems.push_back(tell(
            "unknown direction",
            {{"word", "output"}, {"name", name}, {"fix", fix.empty() ? "one of: " + join(names(meta.outputs)) : fix}}));
      }
    raise_if(problems);
    for (const Variable& y : meta.outputs) outputs[y.name];
    std::vector<Written> writes;
    writes.reserve(meta.outputs.size() + meta.derivatives.size() + meta.inputs.size() + meta.parameters.size());
    for (const Variable& y : meta.outputs) writes.push_back(room(y.name, outputs[y.name], batch, y.shape()));
    if (entry == Entry::jacobian) {
      for (const Block& b : meta.derivatives) (*more)[b.output + ":" + b.input];
      for (const Block& b : meta.derivatives)
        writes.push_back(room(b.output + ":" + b.input, (*more)[b.output + ":" + b.input], batch, block_shape(b)));
    } else if (entry == Entry::vjp) {
      for (const Variable* x : known_inputs()) (*more)[x->name];
      for (const Variable* x : known_inputs()) writes.push_back(room(x->name, (*more)[x->name], batch, x->shape()));
    }
    bool together = false;
    for (const Solver& s : meta.solvers) together |= s.rules.stop == stop_batch;
    if (points) check_overlaps(writes, held, read_names, points, together);

    Task task;
    task.entry = entry, task.points = points, task.threads = core_->threads, task.stream = with.stream;
    for (const Flat& x : held)
      task.given.push_back({x.data, 0, x.points == 1 && points != 1 ? 0 : x.point, x.component, 0});
    for (const Written& y : writes) task.gives.push_back({y.flat.data, 0, y.flat.point, y.flat.component});
    for (const Solver& s : meta.solvers) task.rules.push_back(s.rules);
    const bool reports = with.status || failed || together;
    Tables tables(meta, reports ? points : 0, 1, 0);
    if (reports) task.reports = tables.rows;
    if (points) core_->backend->run(task);
    std::vector<Status> told = tables.finish();
    for (Written& y : writes)
      if (y.staged.address() && points) scatter(y, with.stream);
    if (failed) {
      failed->assign(size_t(points), false);
      bool any = false;
      for (const Status& s : told)
        for (size_t i = 0; i < s.reason.size(); ++i)
          if (s.reason[i] != Status::converged) (*failed)[i] = any = true;
      if (!any) failed->clear();
    }
    if (with.status) *with.status = std::move(told);
  }

  void scatter(Written& y, void* stream) const {
    using namespace detail;
    const Array from = core_->backend->to_host(y.staged, stream);
    by_dtype(core_->dtype, [&](auto real) {
      using T = decltype(real);
      const std::vector<T> numbers = from.to_vector<T>();
      T* to = static_cast<T*>(y.array->address());
      y.array->each([&](int64_t at, int64_t place) { to[place] = numbers[size_t(at)]; });
    });
  }

  void check_overlaps(const std::vector<Written>& writes, std::vector<detail::Flat>& held,
                      const std::vector<std::string>& read_names, int64_t points, bool together) const {
    using namespace detail;
    std::vector<Problem> problems;
    for (size_t o = 0; o < writes.size(); ++o) {
      const Flat& out = writes[o].flat;
      for (size_t i = 0; i < o; ++i)
        if (meets(out, writes[i].flat, points))
          problems.push_back(tell("overlap", {{"name", writes[o].name}, {"other", writes[i].name}}));
      for (size_t i = 0; i < held.size(); ++i) {
        const Flat& in = held[i];
        const bool in_place = in.data == out.data && in.point == out.point && in.component == out.component &&
                              in.width == out.width && (in.points == 1) == (out.points == 1) && !together;
        if (!in_place && meets(out, in, points))
          problems.push_back(tell("overlap", {{"name", writes[o].name}, {"other", read_names[i]}}));
      }
    }
    raise_if(problems);
  }

  // derivatives

  bool has_pair(const std::string& y, const std::string& x) const {
    for (const Block& b : core_->meta.derivatives)
      if (b.output == y && b.input == x) return true;
    return false;
  }
  std::string or_train(const std::string& what = "") const {
    if (core_->meta.adjoints) return "; or load the package with backend='kernel', which has adjoints";
    return ", or with " + detail::spell(core_->meta, "train") + what;
  }
  void require_derivatives(bool backwards) const {
    const bool adjoints = core_->backend->has_adjoints();
    if (!core_->meta.derivatives.empty() || (backwards && adjoints)) return;
    std::string fix = "compile with " + detail::spell(core_->meta, "derivative", "OUT:IN") + ", or " +
                      detail::spell(core_->meta, "derivative", ":") + " for all pairs";
    if (backwards) fix += or_train(" for all gradients");
    throw detail::refuse("no derivatives", {{"what", adjoints ? "derivative pairs" : "derivatives"}, {"fix", fix}});
  }
  [[noreturn]] void refuse_pair(const std::string& y, const std::string& x, const std::string& remedy) const {
    throw detail::refuse("no pair", {{"output", y},
                                     {"input", x},
                                     {"spelled", detail::spell(core_->meta, "derivative", y + ":" + x)},
                                     {"remedy", remedy}});
  }
  std::string first_missing_by(const std::vector<std::pair<std::string, const Array*>>& along,
                               const std::string& y) const {
    for (const auto& [x, value] : along)
      if (!has_pair(y, x)) return x;
    return "";
  }

  // Outputs and blocks of a call, on the host; where an output is NaN at a point that failed, so are
  // the rows of its blocks.
  Both evaluate(const Call& call, With with) const {
    using namespace detail;
    Both made;
    Arrays outputs, blocks;
    made.batch = batch_of_call(call, {});
    compute(call, Entry::jacobian, {}, outputs, &blocks, &made.failed, with);
    for (const auto& [name, value] : outputs) made.outputs[name] = row_major_copy(value, with.stream);
    for (const auto& [name, value] : blocks) made.blocks[name] = row_major_copy(value, with.stream);
    if (!made.failed.empty())
      for (const Block& b : core_->meta.derivatives)
        spoil(made.blocks[b.output + ":" + b.input], made.outputs[b.output], made.failed, output(b.output),
              variable(b.input));
    return made;
  }

  Array row_major_copy(const Array& x, void* stream) const {
    const Array host = core_->backend->to_host(x, stream);
    if (host.strides() == row_major(host.shape())) return host;
    Array made = Array::empty(host.dtype(), host.shape());
    detail::by_dtype(host.dtype(), [&](auto real) { detail::gather(host, made.data<decltype(real)>()); });
    return made;
  }

  // The place of an entry of a block at a point, by the components of its output and input.
  struct Place {
    int64_t IS, OB, IB;
    Place(const Variable& y, const Variable& x)
        : IS(detail::product(x.sub_batch)), OB(detail::product(y.base)), IB(detail::product(x.base)) {}
    int64_t operator()(int64_t out, int64_t in) const {
      return (((out / OB) * IS + in / IB) * OB + out % OB) * IB + in % IB;
    }
  };

  // `block` may lie in any way; output row-major on the host.
  void spoil(Array& block, const Array& of, const std::vector<bool>& failed, const Variable& y,
             const Variable& x) const {
    detail::by_dtype(core_->dtype, [&](auto real) {
      using T = decltype(real);
      const T* value = of.data<T>();
      T* to = block.data<T>();
      const Place place(y, x);
      for (size_t p = 0; p < failed.size(); ++p)
        for (int64_t out = 0; failed[p] && out < y.size; ++out)
          if (std::isnan(value[int64_t(p) * y.size + out]))
            for (int64_t in = 0; in < x.size; ++in)
              to[int64_t(p) * y.size * x.size + place(out, in)] = std::numeric_limits<T>::quiet_NaN();
    });
  }

  void blocks_by(const Arrays& inputs, const std::vector<std::string>& by, Arrays& outputs, Blocks& blocks,
                 With with) const {
    using namespace detail;
    const Call call = checked(inputs);
    require_derivatives(false);
    std::vector<Problem> problems;
    std::vector<std::string> pairs;
    for (const Block& b : core_->meta.derivatives)
      if (has(by, b.input)) pairs.push_back(b.output + ":" + b.input);
    for (const auto& [name, value] : blocks.all())
      if (!has(pairs, name))
        problems.push_back(
            tell("unknown direction", {{"word", "block"},
                                       {"name", name},
                                       {"fix", pairs.empty() ? "compile with -d" : "one of: " + join(pairs)}}));
    raise_if(problems);
    Arrays all;
    for (const Block& b : core_->meta.derivatives) {
      const std::string name = b.output + ":" + b.input;
      const Array* given = blocks.all().find(name);
      if (!given) continue;
      if (!b.batch_independent) {
        all[name] = *given;
        continue;
      }
      Array copy = *given;  // one that is the same for all points is computed for each, and kept once
      if (copy.address() || !copy.shape().empty()) room(name, copy, {}, block_shape(b));
    }
    std::vector<bool> failed;
    compute(call, Entry::jacobian, {}, outputs, &all, &failed, with);
    const Shape batch = batch_of_call(call, {});
    const int64_t points = product(batch);
    if (!failed.empty())
      for (const Block& b : core_->meta.derivatives) {
        if (b.batch_independent || !has(by, b.input)) continue;
        Array &to = all[b.output + ":" + b.input], host = row_major_copy(to, with.stream);
        spoil(host, row_major_copy(outputs.at(b.output), with.stream), failed, output(b.output), variable(b.input));
        put(host, to, with.stream);
      }
    Arrays somewhere;
    for (const Block& b : core_->meta.derivatives) {
      if (!has(by, b.input)) continue;
      const std::string name = b.output + ":" + b.input;
      if (!b.batch_independent) {
        blocks.put(b.output, b.input, all[name]);
        continue;
      }
      if (!points && somewhere.empty()) somewhere = anywhere(with);
      Array first = row_major_copy(points ? all[name] : somewhere[name], with.stream);
      const Shape shape = block_shape(b);
      Array one = Array::empty(core_->dtype, shape);
      std::memcpy(one.address(), first.address(), size_t(product(shape) * size_of(core_->dtype)));
      Array& to = blocks.all()[name];
      if (to.address()) put(one, to, with.stream);
      else to = core_->backend->to_device(one, with.stream);
    }
  }

  // Writes row-major numbers of the host to where an array lies.
  void put(const Array& from, Array& to, void* stream) const {
    if (to.device() != "cpu") {
      to = core_->backend->to_device(from, stream);
      return;
    }
    detail::by_dtype(core_->dtype, [&](auto real) {
      using T = decltype(real);
      const T* numbers = from.data<T>();
      T* place = to.data<T>();
      to.each([&](int64_t at, int64_t where) { place[where] = numbers[at]; });
    });
  }

  // The blocks at one point, for those that are the same at all where there is none.
  Arrays anywhere(With with) const {
    std::vector<Array> ones;
    Call call;
    const auto one = [&](const Variable& v) {
      Array host = Array::empty(core_->dtype, v.shape());
      detail::by_dtype(core_->dtype,
                       [&](auto real) { std::fill_n(host.data<decltype(real)>(), v.size, decltype(real)(1)); });
      return core_->backend->to_device(host, with.stream);
    };
    for (const Variable& v : core_->meta.inputs) ones.push_back(one(v));
    for (const Array& x : ones) call.inputs.push_back(&x);
    auto fixed = std::make_shared<std::vector<Array>>();
    const auto now = held();
    for (size_t i = 0; i < now->size(); ++i)
      fixed->push_back((*now)[i].shape() == core_->meta.parameters[i].variable.shape()
                           ? (*now)[i]
                           : one(core_->meta.parameters[i].variable));
    call.parameters = fixed;
    Arrays outputs, blocks;
    compute(call, detail::Entry::jacobian, {}, outputs, &blocks, nullptr, {nullptr, with.stream});
    return blocks;
  }

  Array zeros(const Shape& batch, const Variable& v) const {
    Array made = Array::empty(core_->dtype, plus(batch, v.shape()));
    std::memset(made.address(), 0, size_t(made.size() * size_of(core_->dtype)));
    return made;
  }

  Shape spread_batch(const Shape& batch, const Both& both) const { return detail::join_batches({batch, both.batch}); }

  // Adds a block times a tangent of its input or, turned, times a cotangent of its output.
  void multiply(const Both& both, const std::string& y, const std::string& x, const Array& along, Array& sum,
                const Shape& batch, bool turned) const {
    using namespace detail;
    const Variable &out = output(y), &in = variable(x), &side = turned ? out : in;
    const Array& block = both.blocks.at(y + ":" + x);
    const size_t axes = out.sub_batch.size() + in.sub_batch.size() + out.base.size() + in.base.size();
    const Array wide = expand(block, batch, axes),
                vector = row_major_copy(expand(core_->backend->to_host(along, nullptr), batch, rank(side)), nullptr);
    const Array matrix = row_major_copy(wide, nullptr);
    by_dtype(core_->dtype, [&](auto real) {
      using T = decltype(real);
      const T *a = matrix.data<T>(), *v = vector.data<T>();
      T* to = sum.data<T>();
      const Place place(out, in);
      const int64_t points = product(batch);
      for (int64_t p = 0; p < points; ++p)
        for (int64_t i = 0; i < (turned ? in.size : out.size); ++i) {
          T total = 0;
          for (int64_t k = 0; k < side.size; ++k)
            total += a[p * out.size * in.size + (turned ? place(k, i) : place(i, k))] * v[p * side.size + k];
          to[p * (turned ? in.size : out.size) + i] += total;
        }
    });
  }

  Arrays gradient(const Arrays& inputs, const Arrays& cotangents, const std::vector<std::string>& by, With with) const {
    using namespace detail;
    const Call call = checked(inputs);
    require_derivatives(true);
    std::vector<const Variable*> known;
    for (const Variable& v : core_->meta.outputs) known.push_back(&v);
    const Along along = directions(cotangents, known, "output", call);
    Arrays made;
    std::vector<bool> failed;
    Shape batch;
    Both both;
    if (core_->backend->has_adjoints()) {
      Arrays outputs, pulled;
      batch = batch_of_call(call, along.values);
      compute(call, Entry::vjp, along.values, outputs, &pulled, &failed, with);
      for (const auto& [name, value] : outputs)
        both.outputs[name] = failed.empty() ? value : row_major_copy(value, with.stream);
      for (const std::string& x : by)
        made[x] = failed.empty() ? pulled.at(x) : row_major_copy(pulled.at(x), with.stream);
    } else {
      both = evaluate(call, with);
      failed = both.failed;
      std::vector<std::string> whole;
      for (const std::string& x : by) {
        bool all = true;
        for (const auto& [y, value] : along.values) all &= has_pair(y, x);
        if (all) whole.push_back(x);
      }
      if (whole.empty() && !by.empty())
        for (const auto& [y, value] : along.values)
          if (!has_pair(y, by[0])) refuse_pair(y, by[0], or_train());
      batch = spread_batch(along.batch, both);
      for (const std::string& x : whole) {
        Array sum = zeros(batch, variable(x));
        for (const auto& [y, value] : along.values) multiply(both, y, x, *value, sum, batch, true);
        if (!along.values.empty()) made[x] = std::move(sum);
      }
    }
    if (!failed.empty()) silence(made, along, both, failed, batch);
    for (auto& [x, value] : made)
      if (value.device() == "cpu") value = core_->backend->to_device(value, with.stream);
    return made;
  }

  // At a point that failed adjoints are NaN, unless all its cotangents are zero: then they are zero.
  void silence(Arrays& made, const Along& along, const Both& both, const std::vector<bool>& failed,
               const Shape& batch) const {
    using namespace detail;
    by_dtype(core_->dtype, [&](auto real) {
      using T = decltype(real);
      std::vector<bool> heard(failed.size(), false), lost(failed.size(), false);
      for (const auto& [y, value] : along.values) {
        const Variable& v = output(y);
        const Array bar = row_major_copy(expand(core_->backend->to_host(*value, nullptr), batch, rank(v)), nullptr);
        const Array of = row_major_copy(expand(both.outputs.at(y), batch, rank(v)), nullptr);
        for (size_t p = 0; p < failed.size(); ++p)
          for (int64_t i = 0; i < v.size; ++i) {
            const size_t at = p * size_t(v.size) + size_t(i);
            if (bar.data<T>()[at] == 0) continue;
            heard[p] = true;
            if (std::isnan(of.data<T>()[at])) lost[p] = true;
          }
      }
      for (auto& [x, value] : made) {
        const int64_t size = variable(x).size;
        T* to = value.template data<T>();
        for (size_t p = 0; p < failed.size(); ++p) {
          if (!failed[p] || (heard[p] && !lost[p])) continue;
          std::fill_n(to + int64_t(p) * size, size, heard[p] ? std::numeric_limits<T>::quiet_NaN() : T(0));
        }
      }
    });
  }

  // The sum over axes that a shape has not, or of one entry.
  Array summed_to(const Array& x, const Shape& shape, void* stream) const {
    const Array from = row_major_copy(x, stream);
    if (from.shape() == shape) return x;
    Array made = Array::empty(core_->dtype, shape);
    detail::by_dtype(core_->dtype, [&](auto real) {
      using T = decltype(real);
      const T* numbers = from.data<T>();
      T* to = made.data<T>();
      std::fill_n(to, made.size(), T(0));
      const size_t lead = from.shape().size() - shape.size();
      const Shape own = row_major(shape);
      Shape strides(from.shape().size(), 0);
      for (size_t i = 0; i < shape.size(); ++i) strides[lead + i] = shape[i] == 1 ? 0 : own[i];
      const Array places(to, core_->dtype, from.shape(), strides.empty() ? Shape{} : strides, true, "cpu");
      places.each([&](int64_t at, int64_t place) { to[place] += numbers[at]; });
    });
    return core_->backend->to_device(made, stream);
  }
};

inline History Model::transient(const Transient& given, With with) const {
  using namespace detail;
  const Metadata& meta = core_->meta;
  const auto now = held();
  std::map<std::string, const Variable*> known;
  std::vector<std::string> order;
  const auto learn = [&](const Variable& v) {
    std::string base;
    int64_t back = 0;
    parse_lag(v.name, base, back);
    if (!known.count(base)) order.push_back(base);
    known[base] = &v;
  };
  for (const Variable& v : meta.outputs) learn(v);
  for (const Variable& v : meta.inputs) learn(v);
  std::vector<Problem> problems;
  const auto examine = [&](const Arrays& values, bool steps) {
    std::set<std::string> seen;
    for (const auto& [name, x] : values) {
      if (!seen.insert(name).second) problems.push_back(tell("named twice", {{"name", name}}));
      if (!known.count(name)) {
        const std::string fix = did_you_mean(name, order);
        problems.push_back(
            tell("unknown input", {{"name", name}, {"fix", fix.empty() ? "one of: " + join(order) : fix}}));
      } else if (check_layout(name, x, problems)) {
        if (steps && (x.shape().empty() || x.shape()[0] != given.steps)) {
          problems.push_back(
              tell("steps", {{"name", name}, {"shape", tuple(x.shape())}, {"steps", std::to_string(given.steps)}}));
          continue;
        }
        Variable v = *known[name];
        v.name = name;
        const bool real = x.dtype() == DType::float64 || x.dtype() == DType::float32;
        const size_t cut = steps ? 1 : 0;
        misfits(v,
                Array(const_cast<void*>(x.address()), real ? core_->dtype : x.dtype(),
                      Shape(x.shape().begin() + std::ptrdiff_t(cut), x.shape().end()),
                      Shape(x.strides().begin() + std::ptrdiff_t(cut), x.strides().end()), false, x.device()),
                problems);
      }
    }
  };
  if (given.steps < 1) throw refuse("no steps", {{"steps", std::to_string(given.steps)}});
  examine(given.prescribed, true);
  examine(given.initial, false);
  // what would be zero at every step; a first guess of a solve may be
  std::set<std::string> fed;
  for (const auto& [name, x] : given.prescribed) fed.insert(name);
  for (const Variable& v : meta.outputs) fed.insert(v.name);
  for (const Solver& s : meta.solvers) fed.insert(s.unknowns.begin(), s.unknowns.end());
  for (const Variable& v : meta.inputs) {
    std::string base;
    int64_t back = 0;
    parse_lag(v.name, base, back);
    if (fed.insert(base).second) problems.push_back(tell("missing steps", {{"name", base}}));
  }
  raise_if(problems);
  const auto own = [&](const Array& x) {
    if (x.dtype() == core_->dtype) return x;
    return by_dtype(core_->dtype, [&](auto real) {
      using T = decltype(real);
      std::vector<T> made(size_t(x.size()));
      if (x.dtype() == DType::float64)
        x.each([&](int64_t at, int64_t place) { made[size_t(at)] = T(x.data<double>()[place]); });
      else x.each([&](int64_t at, int64_t place) { made[size_t(at)] = T(x.data<float>()[place]); });
      return Array(std::move(made), x.shape());
    });
  };
  const auto tail = [](const Array& x) {
    Array made(const_cast<void*>(x.address()), x.dtype(), Shape(x.shape().begin() + 1, x.shape().end()),
               Shape(x.strides().begin() + 1, x.strides().end()), false, x.device());
    made.keep(x.owner());
    return made;
  };
  // the batch of all that is known before the first step
  std::vector<Shape> shapes;
  for (const Variable& v : meta.inputs) {
    std::string base;
    int64_t back = 0;
    parse_lag(v.name, base, back);
    if (const Array* x = given.prescribed.find(base)) shapes.push_back(batch_of(tail(*x), rank(v)));
  }
  for (const auto& [name, x] : given.initial)
    if (has(names(meta.outputs), name)) shapes.push_back(batch_of(x, rank(output(name))));
  for (size_t i = 0; i < now->size(); ++i) shapes.push_back(batch_of((*now)[i], rank(meta.parameters[i].variable)));
  for (size_t i = 0; i < core_->constants.size(); ++i)
    shapes.push_back(batch_of(core_->constants[i], rank(meta.constants[i].variable)));
  const Shape batch = join_batches(shapes);
  const int64_t points = product(batch);

  History made;
  std::vector<Gives> gives;
  std::vector<Array> keep;
  Shape whole = {given.steps};
  whole.insert(whole.end(), batch.begin(), batch.end());
  for (const Variable& y : meta.outputs) {
    Array history = zeros(whole, y);
    const Array* first = given.initial.find(y.name);
    const Array* prescribed = given.prescribed.find(y.name);
    if (given.steps > 0 && points && (first || prescribed)) {
      const Array value =
          row_major_copy(expand(first ? own(*first) : tail(own(*prescribed)), batch, rank(y)), with.stream);
      std::memcpy(history.address(), value.address(), size_t(points * y.size * size_of(core_->dtype)));
    }
    history = core_->backend->to_device(history, with.stream);
    gives.push_back({history.address(), points * y.size, y.size, 1});
    made.outputs[y.name] = history;
  }
  Task task;
  const auto fixed = [&](const Array& x, const Variable& v) {
    const Flat flat = lay_out(x, v, batch, points, with.stream);
    Array holder;
    holder.keep(flat.owner);
    keep.push_back(holder), keep.push_back(x);
    task.given.push_back({flat.data, 0, flat.points == 1 && points != 1 ? 0 : flat.point, flat.component, 0});
  };
  for (const Variable& v : meta.inputs) {
    std::string base;
    int64_t back = 0;
    parse_lag(v.name, base, back);
    const auto place =
        std::find_if(meta.outputs.begin(), meta.outputs.end(), [&](const Variable& y) { return y.name == base; });
    if (back && place != meta.outputs.end()) {
      const Gives& y = gives[size_t(place - meta.outputs.begin())];
      task.given.push_back({y.data, y.step, y.point, y.component, back});
    } else if (const Array* found = given.prescribed.find(base)) {
      const Array x = own(*found);
      Flat flat;
      const Array spread = expand(tail(x), batch, rank(v));
      if (flatten(spread, rank(v), flat)) {
        keep.push_back(x);
        task.given.push_back({flat.data, x.strides()[0], flat.point, flat.component, back});
      } else {
        Array copy = Array::empty(core_->dtype, plus(whole, v.shape()));
        for (int64_t k = 0; k < given.steps; ++k) {
          Array row(shifted(x.address(), k * x.strides()[0], size_of(core_->dtype)), x.dtype(), spread.shape(),
                    spread.strides(), false, x.device());
          const Array flatrow = row_major_copy(row, with.stream);
          std::memcpy(shifted(copy.address(), k * points * v.size, size_of(core_->dtype)), flatrow.address(),
                      size_t(points * v.size * size_of(core_->dtype)));
        }
        copy = core_->backend->to_device(copy, with.stream);
        keep.push_back(copy);
        task.given.push_back({copy.address(), points * v.size, v.size, 1, back});
      }
    } else if (const Array* first = given.initial.find(base); back && first) {
      Array rows = zeros(whole, v);
      const Array value = row_major_copy(expand(own(*first), batch, rank(v)), with.stream);
      if (given.steps > 0 && points)
        std::memcpy(rows.address(), value.address(), size_t(points * v.size * size_of(core_->dtype)));
      rows = core_->backend->to_device(rows, with.stream);
      keep.push_back(rows);
      task.given.push_back({rows.address(), points * v.size, v.size, 1, back});
    } else {
      const Array none = core_->backend->to_device(zeros({}, v), with.stream);
      keep.push_back(none);
      task.given.push_back({none.address(), 0, 0, 1, 0});
    }
  }
  for (size_t i = 0; i < now->size(); ++i) fixed((*now)[i], meta.parameters[i].variable);
  for (size_t i = 0; i < core_->constants.size(); ++i) fixed(core_->constants[i], meta.constants[i].variable);
  task.gives = gives, task.points = points, task.first = 1, task.steps = std::max<int64_t>(given.steps - 1, 0);
  task.threads = core_->threads, task.stream = with.stream;
  for (const Solver& s : meta.solvers) task.rules.push_back(s.rules);
  Tables tables(meta, points, task.steps, 1);
  task.reports = tables.rows;
  if (points && task.steps) core_->backend->run(task);
  made.status = tables.finish();
  if (with.status) *with.status = made.status;
  return made;
}

}  // namespace ingot
