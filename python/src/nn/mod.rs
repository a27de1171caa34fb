//! `selvedge.nn`: variables, modules, layers, losses, optimizers, data loaders and training steps.

mod checkpoint;
mod data_loader;
mod function;
mod gpt;
mod language_model;
mod layers;
mod losses;
mod mode;
mod module;
mod muon;
#[allow(unsafe_op_in_unsafe_fn, reason = "PyO3 generates such code for operators that a macro names")]
mod operations;
mod optimizers;
mod pickle;
mod shape;
mod trainer;
mod training;
mod variable;

pub use module::{dict_of, value_of};
use pyo3::prelude::*;
pub use variable::{OperandArgument, PyVariable};

/// Adds the classes and functions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<variable::PyVariable>()?;
    module.add_class::<variable::PyParameter>()?;
    module.add_class::<variable::PyBuffer>()?;
    module.add_class::<module::PyNnModule>()?;
    module.add_class::<module::PyHookHandle>()?;
    module.add_class::<mode::PyNoGrad>()?;
    module.add_class::<function::PyFunction>()?;
    module.add_class::<function::PyFunctionContext>()?;
    layers::add(module)?;
    optimizers::add(module)?;
    module.add_class::<muon::PyMuon>()?;
    module.add_class::<muon::PyOptimizerPair>()?;
    module.add_class::<training::PyTrainingStep>()?;
    module.add_class::<gpt::PyGptConfig>()?;
    module.add_class::<gpt::PyGpt>()?;
    module.add_class::<trainer::PyStepReport>()?;
    module.add_class::<trainer::PyTrainer>()?;
    module.add_class::<data_loader::PyDataLoader>()?;
    macro_rules! functions {
        ($($function:path)*) => {
            $(module.add_function(wrap_pyfunction!($function, module)?)?;)*
        };
    }
    functions! {
        variable::grad mode::is_grad_enabled shape::cat shape::stack losses::mse_loss losses::binary_cross_entropy
        losses::binary_cross_entropy_with_logits losses::kl_div losses::cross_entropy losses::nll_loss
        losses::linear_cross_entropy losses::scaled_dot_product_attention losses::checkpoint optimizers::clip_grad_norm_
        checkpoint::save_checkpoint checkpoint::load_checkpoint
    }
    Ok(())
}
