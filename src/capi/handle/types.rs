//! The types of handles in the C ABI: one for each kind of object, so that a C compiler refuses a handle in the place of another.
//!
//! The header declares each as a pointer to a struct that nobody defines, and `sv_object` as `void *`, which every handle
//! converts to. Here all are numbers; the targets of the library pass both the same way.

#![allow(non_camel_case_types)]

/// An object of any kind.
pub type sv_object = u64;

/// A tensor.
pub type sv_tensor = u64;

/// A generator of random numbers.
pub type sv_generator = u64;

/// A node of an expression.
pub type sv_expression = u64;

/// A function of tensors that was built from expressions.
pub type sv_fused = u64;

/// A tensor that gradients are computed for, or the result of an operation on one.
pub type sv_variable = u64;

/// A model: a list of layers, or a transformer.
pub type sv_model = u64;

/// An optimizer of a model's parameters.
pub type sv_optimizer = u64;

/// A tokenizer.
pub type sv_tokenizer = u64;

/// A decoder-only transformer of a published model.
pub type sv_decoder = u64;

/// A run of training.
pub type sv_gpt_trainer = u64;

/// An active-inference classifier.
pub type sv_classifier = u64;

/// A model of Gaussian classes.
pub type sv_generative_model = u64;

/// A model of Gaussian beliefs.
pub type sv_gaussian_model = u64;

/// A model of linear dynamics with Gaussian noise.
pub type sv_linear_gaussian_model = u64;

/// A spiking network.
pub type sv_network = u64;

/// A spiking network that runs.
pub type sv_simulation = u64;

/// A spiking network in the memory of a CUDA device, without a simulation.
pub type sv_device_network = u64;

/// A symbolic expression.
pub type sv_srt_symbolic = u64;

/// An evolver of golden-ratio states.
pub type sv_srt_evolver = u64;

/// A stream of a CUDA device.
pub type sv_stream = u64;

/// An event of a CUDA device.
pub type sv_event = u64;

/// Bytes in the memory of a CUDA device.
pub type sv_buffer = u64;

/// Bytes of the host that a CUDA device copies from and to.
pub type sv_pinned = u64;

/// Kernels that were loaded.
pub type sv_module = u64;

/// A kernel of a module.
pub type sv_function = u64;

/// A program of CUDA C++.
pub type sv_program = u64;

/// A graph of work.
pub type sv_graph = u64;

/// A graph that can be launched.
pub type sv_executable_graph = u64;
