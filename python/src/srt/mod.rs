//! `selvedge.srt`: golden-ratio operations.
//!
//! | file | contents |
//! |---|---|
//! | `arguments` | modes and sets by name, and the conversions of the table |
//! | `functions` | the table of functions |
//! | `exact` | `GoldenExact` |
//! | `symbolic` | `SymExpr` |
//! | `evolver` | `Evolver` |
//! | `classes` | `GoldenTensor`, `RunningStatistics` and the norms that update it |

mod arguments;
mod classes;
mod evolver;
mod exact;
mod functions;
mod symbolic;

use pyo3::prelude::*;
use selvedge::srt;

/// Adds the constants, functions and classes to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for (name, value) in [
        ("PHI", srt::PHI),
        ("INVERSE_PHI", srt::INVERSE_PHI),
        ("INVERSE_PHI_SQUARED", srt::INVERSE_PHI_SQUARED),
        ("SQRT5", srt::SQRT5),
        ("LN_PHI", srt::LN_PHI),
        ("ESTAR", srt::ESTAR),
        ("Q_DEFICIT", srt::Q_DEFICIT),
        ("PROJECTION_NORM", srt::PROJECTION_NORM),
    ] {
        module.add(name, value)?;
    }
    module.add_class::<classes::PyGoldenTensor>()?;
    module.add_class::<classes::PyRunningStatistics>()?;
    module.add_class::<exact::PyGoldenExact>()?;
    module.add_class::<symbolic::PySymExpr>()?;
    module.add_class::<evolver::PyEvolver>()?;
    module.add_class::<evolver::PyGenerationReport>()?;
    classes::add(module)?;
    functions::add(module)
}
