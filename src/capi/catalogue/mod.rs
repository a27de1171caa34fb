//! Models of the catalogue: oscillators, neurons, measures of information, beliefs, policies, quantum gates, and sampling.

pub mod beliefs;
pub mod gates;
pub mod information;
pub mod models;
pub mod neurons;
pub mod policies;
pub mod sampling;

use std::sync::Arc;

use super::error::Result;
use super::handle::sv_tensor;
use super::tensor::{give, give_all, tensor};
use crate::catalogue::{self, OrderParameter};
use crate::tensor::Tensor;

/// Returns the tensors of handles, each with the name of its argument.
fn find(operands: &[(u64, &str)]) -> Result<Vec<Tensor>> {
    operands.iter().map(|&(handle, name)| tensor(handle, name)).collect()
}

/// Returns the tensors that [`find`] returned for `COUNT` handles.
fn each<const COUNT: usize>(found: &[Tensor]) -> [&Tensor; COUNT] {
    std::array::from_fn(|at| &found[at])
}

/// Runs a function of tensors whose result is a tensor, and writes its handle. The library has one copy for each number of
/// operands.
///
/// # Safety
///
/// As [`give`].
unsafe fn give_of<const COUNT: usize>(
    function: &'static str,
    operands: [(u64, &str); COUNT],
    result: *mut u64,
    work: &dyn Fn([&Tensor; COUNT]) -> crate::Result<Tensor>,
) -> i32 {
    give(function, result, || Ok(work(each(&find(&operands)?))?))
}

/// Returns the model of a handle.
type FindModel<M> = fn(u64) -> Result<Arc<M>>;

/// Runs a function of a model and tensors whose result is a tensor, and writes its handle. `model` is a handle and the function
/// that finds the model.
///
/// # Safety
///
/// As [`give`].
pub(super) unsafe fn give_of_model<M, const COUNT: usize>(
    function: &'static str,
    (handle, model): (u64, FindModel<M>),
    operands: [(u64, &str); COUNT],
    result: *mut u64,
    work: &dyn Fn(&M, [&Tensor; COUNT]) -> crate::Result<Tensor>,
) -> i32 {
    give(function, result, || Ok(work(&*model(handle)?, each(&find(&operands)?))?))
}

/// Gives the phases after one Euler step of the Kuramoto model, from 0 to below 2 pi. `theta` is a vector of n phases or rows
/// of them, `omega` has its shape or is one row, and `adjacency` is an n x n matrix, or 0 for ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_kuramoto_step(
    theta: sv_tensor,
    omega: sv_tensor,
    adjacency: sv_tensor,
    strength: f64,
    dt: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_kuramoto_step", result, || {
        let (theta, omega) = (tensor(theta, "theta")?, tensor(omega, "omega")?);
        let adjacency = if adjacency == 0 { None } else { Some(tensor(adjacency, "adjacency")?) };
        Ok(catalogue::kuramoto_step(&theta, &omega, adjacency.as_ref(), strength, dt)?)
    })
}

/// Writes the length and the direction of the mean of e^(i theta) of each row of phases.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_order_parameter(
    theta: sv_tensor,
    magnitude: *mut sv_tensor,
    phase: *mut sv_tensor,
) -> i32 {
    give_all("sv_order_parameter", [(magnitude, "magnitude"), (phase, "phase")], || {
        let OrderParameter { magnitude, phase } = catalogue::order_parameter(&tensor(theta, "theta")?)?;
        Ok([magnitude, phase])
    })
}

/// Gives the entropy production, the sum of v^2 / (2 T), of each row of velocities v at a temperature T.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_entropy_production(
    velocity: sv_tensor,
    temperature: f64,
    result: *mut sv_tensor,
) -> i32 {
    give_of("sv_entropy_production", [(velocity, "velocity")], result, &|[velocity]| {
        catalogue::entropy_production(velocity, temperature)
    })
}
