// csrc/kernels/wgmma_wide.cuh, emulated: products are of any size.
#pragma once
#include "wgmma.cuh"
