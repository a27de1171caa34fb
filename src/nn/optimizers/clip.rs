//! [`clip_grad_norm`].

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::nn::Variable;
use crate::nn::autograd::{FlatSlot, FlatStorage, change_gradient_run, gradient_run};
use crate::tensor::{Device, Tensor};
use crate::types::DType;

/// Multiplies all gradients by max_norm / (norm + 1e-6) if the norm of all of them together exceeds `max_norm`. Returns
/// the norm as a tensor without dimensions. Nothing waits for the device. A norm of NaN makes every gradient NaN, and an infinite
/// norm makes finite gradients 0 and infinite ones NaN, as PyTorch's `clip_grad_norm_` does. Squares that leave the range of the
/// dtype make no norm infinite. With an infinite `max_norm` the gradients stay as they are, unless the norm is NaN.
///
/// ```
/// use selvedge::nn::{Variable, clip_grad_norm};
/// use selvedge::{Device, Tensor};
/// let x = Variable::with_grad(Tensor::new([3.0f64, 4.0], &Device::cpu())?)?;
/// (x.square()?.sum_all()? * 0.5)?.backward()?;
/// assert_eq!(clip_grad_norm(&[x.clone()], 1.0)?.item::<f64>()?, 5.0);
/// let gradient = x.grad().map(|gradient| gradient.to_vec::<f64>()).transpose()?.unwrap_or_default();
/// assert!((gradient[0] - 0.6).abs() < 1e-6);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a `max_norm` that is negative or NaN, [`Error::DeviceMismatch`] for gradients on several
/// devices. All gradients stay as they were.
pub fn clip_grad_norm(parameters: &[Variable], max_norm: f64) -> Result<Tensor> {
    if max_norm.is_nan() || max_norm < 0.0 {
        let found = format!("a max_norm of {max_norm}");
        return Err(Error::invalid("clip_grad_norm", found, "a number that is at least 0"));
    }
    let blocks = GradientBlock::of(parameters)?;
    if blocks.is_empty() {
        return Tensor::zeros(&[], DType::F32, &Device::cpu());
    }
    let gradients: Vec<&Tensor> = blocks.iter().map(|block| &block.gradient).collect();
    let (factor, norm) = Tensor::clip_factor(&gradients, max_norm)?;
    // All that can be refused has been computed. No tensor but the gradient itself is alive then, so a buffer stays.
    for GradientBlock { variables, gradient } in blocks {
        drop(gradient);
        change_gradient_run(&variables, |elements| elements.mul(&factor).map(|_| ()))?;
    }
    Ok(norm)
}

/// Returns the norm of all gradients together as a tensor without dimensions, if there are gradients.
///
/// # Errors
///
/// [`Error::DeviceMismatch`] for gradients on several devices.
pub(in crate::nn) fn grad_norm(parameters: &[Variable]) -> Result<Option<Tensor>> {
    let blocks = GradientBlock::of(parameters)?;
    let gradients: Vec<&Tensor> = blocks.iter().map(|block| &block.gradient).collect();
    if gradients.is_empty() { Ok(None) } else { Tensor::global_norm(&gradients).map(Some) }
}

/// The gradients of variables as one tensor.
struct GradientBlock {
    variables: Vec<Variable>,
    gradient: Tensor,
}

impl GradientBlock {
    /// Returns the gradients of parameters, each once: neighbours of a buffer together. Parameters in buffers come last, in
    /// the order of their slots.
    fn of(parameters: &[Variable]) -> Result<Vec<GradientBlock>> {
        let mut each: Vec<(&Variable, Option<FlatSlot>)> = Vec::with_capacity(parameters.len());
        for parameter in parameters.iter().filter(|parameter| parameter.has_gradient()) {
            if !each.iter().any(|(known, _)| known.is_same(parameter)) {
                each.push((parameter, parameter.slot()));
            }
        }
        let storage = |slot: &FlatSlot| Arc::as_ptr(slot.storage());
        let mut storages: Vec<*const FlatStorage> = Vec::new();
        for slot in each.iter().filter_map(|(_, slot)| slot.as_ref()) {
            if !storages.contains(&storage(slot)) {
                storages.push(storage(slot));
            }
        }
        let storage_index = |slot: &FlatSlot| storages.iter().position(|known| *known == storage(slot));
        each.sort_by_key(|(_, slot)| slot.as_ref().map(|slot| (storage_index(slot), slot.start())));
        let mut blocks: Vec<(Vec<Variable>, Option<FlatSlot>)> = Vec::new();
        for (parameter, slot) in each {
            let continued = blocks.last_mut().filter(|(_, last)| {
                last.as_ref().zip(slot.as_ref()).is_some_and(|(last, slot)| last.is_before(slot))
            });
            match continued {
                Some(block) => {
                    block.0.push(parameter.clone());
                    block.1 = slot;
                }
                None => blocks.push((vec![parameter.clone()], slot)),
            }
        }
        let mut found = Vec::with_capacity(blocks.len());
        for (variables, _) in blocks {
            if let Some(gradient) = gradient_run(&variables)? {
                found.push(GradientBlock { variables, gradient });
            }
        }
        Ok(found)
    }
}
