//! [`Parameters`], the parameters of a module in one buffer for each dtype.
//!
//! The module's own buffers, such as running statistics, move into storages too, so that a captured step updates them.
//!
//! Invariants: a parameter is in one storage at most, and stays there. Its elements and its gradient have equal slots in
//! two storages. Parameters of two and more axes precede the others, so that a rule for either is one run of elements.
//!
//! Tests: `tests/nn/parameters.rs`.

use std::sync::Arc;

use super::autograd::{FlatSlot, FlatStorage, Variable};
use super::module::Module;
use crate::error::{Error, Result};
use crate::tensor::{Device, Tensor};
use crate::types::{DType, Shape};

const NAME: &str = "Parameters";

type NamedParameter = (Arc<str>, Variable);

/// The parameters of a module, whose elements are in one buffer for each dtype and device, and whose gradients are in another.
///
/// Each parameter is the variable that it was: its tensor shares the elements of the buffer. Clipping and an optimizer's step
/// are one launch for neighbouring parameters instead of one for each. The optimizer's has the same bits; the norm of all gradients
/// adds them in another order. Elements stay at their address:
/// [`Variable::update`], [`Module::load_state_dict`] and optimizers write them in place, and return an error if another tensor
/// shares them. [`Module::state_dict`] copies them. Gradients take memory until the module is dropped.
///
/// The module's buffers ([`Module::named_buffers`]) stay at their address too. They are no parameters: they have no
/// gradient, and [`buffers`](Self::buffers) leaves them out.
///
/// ```
/// use selvedge::nn::{AdamW, Initializer, Linear, Module, Optimizer, Parameters, Variable};
/// use selvedge::{DType, Device, Tensor};
/// let device = Device::cpu();
/// let model = Linear::new(3, 2, &Initializer::new(&device))?;
/// let parameters = Parameters::new(&model)?;
/// let mut optimizer = AdamW::new(parameters.variables(), 0.1)?;
/// let x = Variable::new(Tensor::ones(&[1, 3], DType::F32, &device)?);
/// model.forward(&x)?.sum_all()?.backward()?;
/// parameters.clip_grad_norm(1.0)?;
/// optimizer.step()?;
/// parameters.zero_grad();
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct Parameters {
    named: Vec<NamedParameter>,
    buffers: Vec<(Arc<FlatStorage>, Arc<FlatStorage>)>,
}

/// Checks that parameters are on one device.
///
/// # Errors
///
/// [`Error::DeviceMismatch`] with the names of two parameters and their devices.
pub(super) fn check_one_device<'a>(
    operation: &'static str,
    mut parameters: impl Iterator<Item = (&'a str, &'a Variable)>,
) -> Result<()> {
    let Some((first, parameter)) = parameters.next() else { return Ok(()) };
    let device = parameter.device();
    match parameters.find(|(_, parameter)| parameter.device() != device) {
        None => Ok(()),
        Some((other, parameter)) => {
            let left = format!("{device}, of the parameter '{first}'");
            let right = format!("{}, of the parameter '{other}'", parameter.device());
            Err(Error::DeviceMismatch { operation, left, right })
        }
    }
}

impl Parameters {
    /// Moves the parameters of a module into buffers. A parameter that the module returns twice counts once, under its first
    /// name.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a parameter that is no leaf with a gradient, or that is in a buffer already;
    /// [`Error::OutOfMemory`]. All parameters stay where they are then.
    pub fn new<M: Module + ?Sized>(module: &M) -> Result<Parameters> {
        let mut named: Vec<NamedParameter> = Vec::new();
        for (name, parameter) in module.named_parameters() {
            if !parameter.requires_grad() || !parameter.is_leaf() {
                let found = format!("{parameter:?} as parameter '{name}'");
                return Err(Error::invalid(NAME, found, "a leaf that requires a gradient"));
            }
            if parameter.slot().is_some() {
                let found = format!("parameter '{name}', which is in a buffer already");
                return Err(Error::invalid(NAME, found, "a module without Parameters"));
            }
            if !named.iter().any(|(_, known)| known.is_same(&parameter)) {
                named.push((name.into(), parameter));
            }
        }
        let mut groups: Vec<((DType, Device), Vec<&NamedParameter>)> = Vec::new();
        for entry in &named {
            let key = (entry.1.dtype(), entry.1.device());
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, members)) => members.push(entry),
                None => groups.push((key, vec![entry])),
            }
        }
        let (mut moves, mut buffers): (Vec<(&Variable, FlatSlot, FlatSlot)>, _) = (Vec::new(), Vec::new());
        for ((dtype, device), mut members) in groups {
            members.sort_by_key(|(_, parameter)| parameter.shape().rank() < 2);
            let shapes: Vec<(Arc<str>, Shape)> =
                members.iter().map(|(name, parameter)| (name.clone(), parameter.shape())).collect();
            let elements = FlatStorage::with_slots(&shapes, dtype, &device, true)?;
            let gradients = FlatStorage::with_slots(&shapes, dtype, &device, false)?;
            if let Some((elements, gradients)) = elements.first().zip(gradients.first()) {
                buffers.push((elements.storage().clone(), gradients.storage().clone()));
            }
            for (((_, parameter), elements), gradient) in members.into_iter().zip(elements).zip(gradients) {
                elements.assign(&parameter.tensor())?;
                if let Some(sum) = parameter.grad() {
                    gradient.assign(&sum)?;
                }
                moves.push((parameter, elements, gradient));
            }
        }
        let statistics = Parameters::slots_of_buffers(module.named_buffers(), &named)?;
        moves.into_iter().for_each(|(parameter, elements, gradient)| parameter.move_to(elements, gradient));
        statistics.into_iter().for_each(|(buffer, elements)| buffer.move_elements_to(elements));
        Ok(Parameters { named, buffers })
    }

    /// Returns the buffers of a module with slots in storages that have their elements.
    fn slots_of_buffers(
        found: Vec<(String, Variable)>,
        parameters: &[NamedParameter],
    ) -> Result<Vec<(Variable, FlatSlot)>> {
        let mut groups: Vec<((DType, Device), Vec<NamedParameter>)> = Vec::new();
        for (name, buffer) in found {
            let is_known = |known: &NamedParameter| known.1.is_same(&buffer);
            let members = groups.iter().flat_map(|(_, members)| members);
            if buffer.requires_grad() || parameters.iter().chain(members).any(is_known) {
                continue;
            }
            if buffer.slot().is_some() {
                let found = format!("buffer '{name}', which is in a storage already");
                return Err(Error::invalid(NAME, found, "a module without Parameters"));
            }
            let (key, entry) = ((buffer.dtype(), buffer.device()), (name.into(), buffer));
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, members)) => members.push(entry),
                None => groups.push((key, vec![entry])),
            }
        }
        let mut moves = Vec::new();
        for ((dtype, device), members) in groups {
            let shapes: Vec<(Arc<str>, Shape)> =
                members.iter().map(|(name, buffer)| (name.clone(), buffer.shape())).collect();
            let slots = FlatStorage::with_slots(&shapes, dtype, &device, true)?;
            for ((_, buffer), slot) in members.into_iter().zip(slots) {
                slot.assign(&buffer.tensor())?;
                moves.push((buffer, slot));
            }
        }
        Ok(moves)
    }

    /// Returns the parameters in the module's order, each once.
    pub fn variables(&self) -> Vec<Variable> {
        self.named.iter().map(|(_, parameter)| parameter.clone()).collect()
    }

    /// Returns the parameters with their names, in the module's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Variable)> {
        self.named.iter().map(|(name, parameter)| (&**name, parameter))
    }

    /// Returns the buffers of elements, which share them: a write of a parameter is an error until they are dropped. Places
    /// begin at multiples of 128 bytes, and the elements between them are 0.
    pub fn buffers(&self) -> Vec<Tensor> {
        self.buffers.iter().map(|(elements, _)| elements.tensor()).collect()
    }

    /// Returns the buffers of gradients in the order of [`buffers`](Self::buffers). The elements of parameters without a
    /// gradient mean nothing.
    pub fn gradient_buffers(&self) -> Vec<Tensor> {
        self.buffers.iter().map(|(_, gradients)| gradients.tensor()).collect()
    }

    /// Removes the gradients.
    pub fn zero_grad(&self) {
        self.named.iter().for_each(|(_, parameter)| parameter.zero_grad());
    }

    /// Clips the gradients by their common norm; see [`clip_grad_norm`](super::clip_grad_norm).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn clip_grad_norm(&self, max_norm: f64) -> Result<Tensor> {
        super::clip_grad_norm(&self.variables(), max_norm)
    }
}

impl std::fmt::Debug for Parameters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Parameters({} in {} buffers)", self.named.len(), self.buffers.len())
    }
}
