// The activations of epilogues. The test `the_header_of_the_kernels_is_written_from_the_table` of
// src/gemm/activation.rs writes this file from the table there if SELVEDGE_WRITE_ACTIVATIONS is set.
#pragma once
#include "numbers.cuh"

// Each row is the name of a function of epilogue.cuh.
#define ACTIVATIONS(ROW) ROW(relu) ROW(gelu) ROW(silu)

// The values of `Epilogue::activation`: the function of a sum, or a sum times the derivative at the pre-activation.
enum ActivationCode : i32 {
    no_activation = 0,
    relu_code = 1,
    gelu_code = 2,
    silu_code = 3,
    relu_derivative_code = 4,
    gelu_derivative_code = 5,
    silu_derivative_code = 6,
    first_derivative_code = relu_derivative_code,
};
