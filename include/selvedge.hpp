// selvedge in C++17: tensors, devices, kernels, graphs and spiking networks as classes over selvedge.h.
//
// Every class owns its objects. A failed call throws selvedge::Error; selvedge::attempt() gives a Result instead.
// docs/cpp.md is the manual.

#ifndef SELVEDGE_HPP
#define SELVEDGE_HPP

#include "selvedge/attention.hpp"
#include "selvedge/burst.hpp"
#include "selvedge/burst_network.hpp"
#include "selvedge/catalogue.hpp"
#include "selvedge/classifier.hpp"
#include "selvedge/custom.hpp"
#include "selvedge/decoder.hpp"
#include "selvedge/device.hpp"
#include "selvedge/device_network.hpp"
#include "selvedge/evolver.hpp"
#include "selvedge/functions.hpp"
#include "selvedge/fused.hpp"
#include "selvedge/golden_exact.hpp"
#include "selvedge/gpt.hpp"
#include "selvedge/graph.hpp"
#include "selvedge/launch.hpp"
#include "selvedge/memory.hpp"
#include "selvedge/nn.hpp"
#include "selvedge/random.hpp"
#include "selvedge/srt.hpp"
#include "selvedge/symbolic.hpp"
#include "selvedge/tensor.hpp"
#include "selvedge/trace.hpp"
#include "selvedge/variable.hpp"

#endif
