//! The native part of the Python package `selvedge`; see docs/python.md.
//!
//! It binds the public Rust API and holds no logic: arguments are converted, work runs detached from the interpreter, and
//! results and errors are converted back.

#![deny(clippy::undocumented_unsafe_blocks)]

mod arguments;
mod buffer;
mod creation;
mod device;
mod dlpack;
mod dtype;
mod error;
mod nested;
mod random;
mod tensor;

use pyo3::prelude::*;
use selvedge::DType;

/// Sets the number of threads of operations on the CPU.
#[pyfunction]
fn set_threads(count: usize) {
    selvedge::set_threads(count);
}

/// Returns the number of threads of operations on the CPU.
#[pyfunction]
fn thread_count() -> usize {
    selvedge::thread_count()
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<tensor::PyTensor>()?;
    module.add_class::<dtype::PyDType>()?;
    module.add_class::<device::PyDevice>()?;
    module.add_class::<random::PyGenerator>()?;
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
        creation::zeros creation::ones creation::empty creation::full creation::arange creation::linspace creation::eye
        creation::zeros_like creation::ones_like creation::empty_like creation::rand_like creation::randn_like
        creation::full_like creation::asarray creation::cat creation::stack creation::meshgrid creation::choose
        creation::from_dlpack
        random::rand random::randn random::uniform random::normal random::randint random::permutation random::manual_seed
        set_threads thread_count
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
