// Does what a test in Python asks for, one JSON document a line, and answers likewise; numbers of
// arrays are in files. With TORCH it runs graphs, too.
#include <ingot/ingot.h>
#ifdef TORCH
#include <ingot/torch.h>
#endif

#include <fstream>
#include <iostream>

using ingot::Array;
using ingot::Arrays;
using ingot::DType;
using ingot::Model;
using ingot::detail::Json;

using ingot::detail::write_text;

static DType dtype_named(const std::string& name) {
  for (int i = 0; i < 8; ++i)
    if (name == ingot::name_of(DType(i))) return DType(i);
  return DType::float64;
}

static ingot::Shape shape_of(const Json& json) {
  ingot::Shape made;
  for (const Json& each : json.items) made.push_back(each.whole());
  return made;
}

// Arrays that lie in a file, as {name: {dtype, shape, strides, offset}}; offset -1 is a null pointer.
static Arrays arrays_of(const Json* json, std::string& bytes) {
  Arrays made;
  if (!json) return made;
  for (size_t i = 0; i < json->keys.size(); ++i) {
    const Json& x = json->items[i];
    const int64_t offset = x.find("offset")->whole();
    const Json* device = x.find("device");
    made[json->keys[i]] =
        Array(offset < 0 ? nullptr : bytes.data() + offset, dtype_named(x.find("dtype")->text),
              shape_of(*x.find("shape")), shape_of(*x.find("strides")), true, device ? device->text : "cpu");
  }
  return made;
}

static std::string tell(const Arrays& arrays, std::ofstream& to, int64_t& at) {
  std::string made = "{";
  for (const auto& [name, x] : arrays) {
    if (made.size() > 1) made += ", ";
    made += write_text(name) + ": {\"dtype\": \"" + ingot::name_of(x.dtype()) + "\", \"offset\": " + std::to_string(at) +
            ", \"shape\": [";
    for (size_t i = 0; i < x.shape().size(); ++i) made += (i ? ", " : "") + std::to_string(x.shape()[i]);
    made += "]}";
    const int64_t wide = ingot::size_of(x.dtype());
    x.each([&](int64_t, int64_t place) { to.write(static_cast<const char*>(x.address()) + place * wide, wide); });
    at += x.size() * wide;
  }
  return made + "}";
}

static std::string tell(const std::vector<ingot::Status>& all) {
  std::string made = "[";
  for (const ingot::Status& s : all) {
    if (made.size() > 1) made += ", ";
    made += "{\"solve\": " + write_text(s.solve) + ", \"failed\": " + std::to_string(s.failed());
    const auto row = [&](const char* name, const auto& values) {
      made += std::string(", \"") + name + "\": [";
      for (size_t i = 0; i < values.size(); ++i) made += (i ? ", " : "") + std::to_string(int(values[i]));
      made += "]";
    };
    row("reason", s.reason), row("iterations", s.iterations), row("pivoted", s.pivoted), row("accepted", s.accepted);
    const auto told = s.problems();
    made += ", \"told\": " + write_text(told.empty() ? "" : told[0].text()) + "}";
  }
  return made + "]";
}

static std::string answer(const Json& ask, std::map<std::string, Model>& models) {
  const std::string what = ask.find("do")->text;
  if (what == "load") {
    ingot::Options options;
    options.device = ask.find("device")->text, options.backend = ask.find("backend")->text,
    options.dtype = ask.find("dtype")->text;
    options.threads = int(ask.find("threads")->whole());
    if (const Json* rules = ask.find("rules"))
      for (size_t i = 0; i < rules->keys.size(); ++i) {
        ingot::Rules& made = options.rules[rules->keys[i]];
        for (size_t k = 0; k < rules->items[i].keys.size(); ++k) {
          const std::string& name = rules->items[i].keys[k];
          const double value = rules->items[i].items[k].real();
          if (double* real = ingot::detail::real_rule(made, name)) *real = value;
          else *ingot::detail::whole_rule(made, name) = int32_t(value);
        }
      }
    const Model model = Model::load(ask.find("place")->text, options);
    models.insert_or_assign(ask.find("key")->text, model);
    return "{\"ok\": true, \"backend\": \"" + model.backend() + "\", \"device\": \"" + model.device() + "\"}";
  }
  Model& model = models.at(ask.find("key")->text);
  std::string bytes;
  ingot::detail::read_file(ask.find("file")->text, bytes);
  std::ofstream to(ask.find("to")->text, std::ios::binary);
  int64_t at = 0;
  const Arrays inputs = arrays_of(ask.find("inputs"), bytes), along = arrays_of(ask.find("along"), bytes);
  std::vector<std::string> params;
  if (const Json* asked = ask.find("params"))
    for (const Json& each : asked->items) params.push_back(each.text);
  std::vector<ingot::Status> status;
  Arrays made;
  if (what == "set") {
    for (const auto& [name, value] : inputs) model.set_parameter(name, value);
  } else if (what == "parameters") {
    for (const std::string& name : model.parameters()) made[name] = model.parameter(name);
  } else if (what == "forward") {
    made = model.forward(inputs, {&status});
  } else if (what == "into") {
    made = along;
    model.forward(inputs, made, {&status});
  } else if (what == "jacobian") {
    made = model.jacobian(inputs, {&status}).all();
  } else if (what == "param_jacobian") {
    made = model.param_jacobian(inputs, params, {&status}).all();
  } else if (what == "jvp") {
    made = model.jvp(inputs, along, {&status});
  } else if (what == "vjp") {
    made = model.vjp(inputs, along, {&status});
  } else if (what == "param_vjp") {
    made = model.param_vjp(inputs, along, params, {&status});
  } else if (what == "transient") {
    const ingot::History history = model.transient({ask.find("steps")->whole(), inputs, along});
    made = history.outputs, status = history.status;
  } else {
    return "{\"ok\": false, \"error\": \"no such call\", \"codes\": []}";
  }
  const std::string told = tell(made, to, at);
  return "{\"ok\": true, \"arrays\": " + told + ", \"status\": " + tell(status) + "}";
}

int main() {
  std::map<std::string, Model> models;
  std::string row;
  while (std::getline(std::cin, row)) {
    std::string said;
    try {
      said = answer(ingot::detail::JsonReader(row).read(), models);
    } catch (const ingot::Error& error) {
      said = "{\"ok\": false, \"error\": " + write_text(error.what()) + ", \"codes\": [";
      for (size_t i = 0; i < error.problems().size(); ++i) said += (i ? ", " : "") + write_text(error.problems()[i].code);
      said += "]}";
    }
    std::cout << said << std::endl;
  }
  return 0;
}
