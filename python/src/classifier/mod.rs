//! `selvedge.classifier`: the active-inference classifier with its generative model, reports and functions.
//!
//! | file | contents |
//! |---|---|
//! | `model` | `Classifier` |
//! | `generative` | `GenerativeModel`, `SyntheticData`, and the functions |
//! | `reports` | the results of rows and of trainings |

mod generative;
mod model;
mod reports;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use selvedge::classifier as library;

/// Adds the constants, classes and functions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("DEFAULT_PRIOR", PyTuple::new(module.py(), library::DEFAULT_PRIOR)?)?;
    module.add("HISTORY_LENGTH", library::HISTORY_LENGTH)?;
    module.add("SYNTHETIC_FEATURES", library::SYNTHETIC_FEATURES)?;
    module.add("SYNTHETIC_DEVIATION", library::SYNTHETIC_DEVIATION)?;
    module.add_class::<model::PyClassifier>()?;
    reports::add(module)?;
    generative::add(module)
}
