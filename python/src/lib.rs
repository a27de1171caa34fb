//! The native part of the Python package `selvedge`; see docs/python.md.
//!
//! It binds the public Rust API and holds no logic: arguments are converted, work runs detached from the interpreter, and
//! results and errors are converted back.

#![deny(clippy::undocumented_unsafe_blocks)]
#![allow(
    clippy::doc_lazy_continuation,
    reason = "docstrings have examples of Python, whose prompt Markdown takes for a quote"
)]

/// The docstring of a method, which `build.rs` writes from its Rust documentation.
macro_rules! doc {
    ($name:ident) => {
        include_str!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".txt"))
    };
}

mod arguments;
mod buffer;
mod burst;
mod catalogue;
mod classifier;
mod creation;
mod decoder;
mod device;
mod dlpack;
mod dtype;
mod error;
mod exchange;
mod fuse;
mod graph;
mod host_function;
mod io;
mod kernel;
mod messages;
mod nested;
mod nn;
mod program;
mod random;
mod srt;
mod stream;
mod tensor;
mod tokenizer;
mod trace;

use pyo3::prelude::*;
use selvedge::DType;

/// Sets the number of threads of operations on the CPU.
#[pyfunction]
fn set_threads(count: arguments::InRange<usize>) {
    selvedge::set_threads(count.0);
}

/// Returns the number of threads of operations on the CPU.
#[pyfunction]
fn thread_count() -> usize {
    selvedge::thread_count()
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    messages::install(module.py())?;
    module.add_class::<tensor::PyTensor>()?;
    module.add_class::<dtype::PyDType>()?;
    module.add_class::<device::PyDevice>()?;
    module.add_class::<random::PyGenerator>()?;
    module.add_class::<fuse::PyExpression>()?;
    module.add_class::<fuse::PyFused>()?;
    module.add_class::<kernel::PyKernel>()?;
    module.add_class::<kernel::PyKernelOutput>()?;
    module.add_class::<stream::PyStream>()?;
    module.add_class::<stream::PyEvent>()?;
    module.add_class::<graph::PyGraph>()?;
    module.add_class::<graph::PyExecutableGraph>()?;
    module.add_class::<decoder::PyDecoder>()?;
    module.add_class::<tokenizer::PyTokenizer>()?;
    module.add_class::<tokenizer::PyStreamDecoder>()?;
    module.add_class::<trace::PyTrace>()?;
    module.add_class::<trace::PyTraceRange>()?;
    for dtype in DType::ALL {
        module.add(dtype.name(), dtype::PyDType(dtype))?;
    }
    for (name, exception) in error::exceptions(module.py())? {
        module.add(*name, exception)?;
    }
    macro_rules! functions {
        ($($function:path)*) => {
            $(module.add_function(wrap_pyfunction!($function, module)?)?;)*
        };
    }
    functions! {
        creation::zeros creation::ones creation::empty creation::full creation::arange creation::linspace
        creation::logspace creation::eye creation::zeros_like creation::ones_like creation::empty_like creation::rand_like creation::randn_like
        creation::full_like creation::asarray creation::cat creation::stack creation::meshgrid creation::choose
        creation::from_dlpack fuse::fuse
        random::rand random::randn random::uniform random::normal random::bernoulli random::randint random::permutation random::manual_seed
        set_threads thread_count
    }
    // Attributes without an entry in `__all__`: the package has modules of these names.
    type Add = fn(&Bound<'_, PyModule>) -> PyResult<()>;
    let modules: [(&str, &str, Add); 6] = [
        ("_srt", "selvedge.srt", srt::add),
        ("_burst", "selvedge.burst", burst::add),
        ("_catalogue", "selvedge.catalogue", catalogue::add),
        ("_classifier", "selvedge.classifier", classifier::add),
        ("_nn", "selvedge.nn", nn::add),
        ("_io", "selvedge.io", io::add),
    ];
    for (attribute, name, add) in modules {
        let inner = PyModule::new(module.py(), name)?;
        add(&inner)?;
        module.setattr(attribute, inner)?;
    }
    module.setattr("_run_program", wrap_pyfunction!(program::run, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
