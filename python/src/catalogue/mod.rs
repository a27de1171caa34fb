//! `selvedge.catalogue`: functions of oscillators, spiking neurons, information measures, beliefs, policies and quantum gates.
//!
//! | file | contents |
//! |---|---|
//! | `functions` | the table of functions, and those that draw random numbers |
//! | `models` | `GaussianModel` and `LinearGaussianModel`, with their results |

mod functions;
mod models;

use pyo3::prelude::*;

/// Adds the functions and classes to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("NEGLIGIBLE", selvedge::catalogue::NEGLIGIBLE)?;
    functions::add(module)?;
    models::add(module)
}
