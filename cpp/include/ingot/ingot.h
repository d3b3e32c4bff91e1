// Compiled models of Ingot, called from C++: `ingot::Model::load(place)`. Nothing but a C++17 library is
// needed; include ingot/torch.h, too, for packages of graphs, and link libtorch.
#pragma once
#include "dispatcher.h"
#include "model.h"
