// Device-side errors (selvedge/report.cuh) for kernels that the emulation compiles too: csrc/emulation has a header of the same name.
#pragma once
#include "../include/selvedge/report.cuh"
