//! [`LossScale`], the factor of a loss whose gradients are computed in f16, and [`LossScaler`], its state in device memory.
//!
//! Invariants:
//!
//! - The scale is in device memory, so a captured step reads the one of each launch, and changes it.
//! - A step whose gradients are not all finite changes no parameter, no state of the optimizer and no number of steps.
//! - Gradients are divided by the scale in the launch of the optimizer, together with clipping.
//!
//! Tests: `tests/nn/loss_scale.rs`, `tests/gpu/steps.rs`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::nn::optimizers::grad_norm;
use crate::nn::{Optimizer, Variable};
use crate::tensor::{Device, Fused, Tensor, fuse};
use crate::types::DType;

/// The entries of the state.
const SCALE: &str = "loss_scale.scale";
const GROWTH_TRACKER: &str = "loss_scale.growth_tracker";

/// The scale to which skipped steps lead at most, 2⁻¹⁴. A scale of 0 would make gradients 0 and their factor infinite; this one
/// is a normal number of each dtype that a loss can have.
const MIN_SCALE: f32 = 1.0 / 16384.0;

/// The factor of a loss for gradients in f16, whose small ones would become 0 otherwise. The rules are those of PyTorch's
/// `GradScaler`.
///
/// A step computes the gradients of the loss times the scale. If the norm of all gradients is infinite or NaN, the step is
/// skipped: it changes neither parameters nor the optimizer's state, and the scale is multiplied by the backoff, but does not
/// fall below 2⁻¹⁴, the smallest normal number of f16. After `growth_interval` steps in a row that were not skipped, the scale
/// is multiplied by the growth, unless the result is infinite.
///
/// ```
/// use selvedge::nn::{AdamW, Initializer, Linear, LossScale, Module, Parameters, Reduction, TrainingStep, Variable, mse_loss};
/// use selvedge::{DType, Device, Tensor};
/// let device = Device::best();
/// let model = Linear::new(2, 1, &Initializer::new(&device).with_compute_dtype(DType::F16))?;
/// let parameters = Parameters::new(&model)?;
/// let optimizer = AdamW::new(parameters.variables(), 0.1)?;
/// let mut step = TrainingStep::new(&parameters, optimizer, |inputs: &[Variable]| {
///     mse_loss(&model.forward(&inputs[0])?.cast(DType::F32)?, &inputs[1], Reduction::Mean)
/// })?
/// .with_loss_scale(LossScale { growth_interval: 1, ..LossScale::dynamic() })?;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &device)?;
/// let y = Tensor::new([[1.0f32], [2.0]], &device)?;
/// // The scaled gradients exceed the largest number of f16.
/// step.run(&[&x, &(&y + 1e4)?])?;
/// assert!(step.is_skipped());
/// assert_eq!(step.loss_scale()?, Some(32768.0));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LossScale {
    /// The scale of the first step, at least 2⁻¹²⁶, whose reciprocal f32 holds.
    pub initial: f64,
    /// The growth, at least 1.
    pub growth_factor: f64,
    /// The backoff, above 0 and at most 1.
    pub backoff_factor: f64,
    /// The steps from one growth to the next.
    pub growth_interval: u32,
}

impl LossScale {
    /// Returns a scale that begins at 65536, is doubled after 2000 steps in a row that were not skipped, and halved by each
    /// skipped one.
    pub const fn dynamic() -> LossScale {
        LossScale { initial: 65536.0, growth_factor: 2.0, backoff_factor: 0.5, growth_interval: 2000 }
    }

    /// Returns a scale that stays. Steps whose gradients are not finite are skipped.
    pub const fn fixed(scale: f64) -> LossScale {
        LossScale { initial: scale, growth_factor: 1.0, backoff_factor: 1.0, ..LossScale::dynamic() }
    }

    /// Checks the numbers.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] that names a number outside its range.
    pub fn check(&self) -> Result<()> {
        let is_float = |value: f64| value > 0.0 && (value as f32) > 0.0 && (value as f32).is_finite();
        let fields = [
            (
                "initial",
                self.initial,
                is_float(self.initial) && self.initial as f32 >= f32::MIN_POSITIVE,
                "a number of f32 from 2⁻¹²⁶ on, whose reciprocal is finite",
            ),
            (
                "growth_factor",
                self.growth_factor,
                is_float(self.growth_factor) && self.growth_factor >= 1.0,
                "a finite number from 1 on",
            ),
            (
                "backoff_factor",
                self.backoff_factor,
                is_float(self.backoff_factor) && self.backoff_factor <= 1.0,
                "a number above 0 and at most 1",
            ),
            (
                "growth_interval",
                self.growth_interval.into(),
                (1..=i32::MAX as u32).contains(&self.growth_interval),
                "a number from 1 to 2147483647",
            ),
        ];
        match fields.into_iter().find(|(_, _, is_valid, _)| !is_valid) {
            Some((name, value, _, wanted)) => {
                Err(Error::invalid("LossScale", format!("{name} = {value}"), wanted))
            }
            None => Ok(()),
        }
    }
}

/// The state of a [`LossScale`] on a device.
#[derive(Debug)]
pub(super) struct LossScaler {
    options: LossScale,
    /// f32 without dimensions. No other tensor shares it, so a captured step changes it where it is.
    scale: Tensor,
    /// i32: the steps since the last growth or skipped step.
    growth_tracker: Tensor,
}

/// The gradients of a step before they are divided by the scale.
#[derive(Debug, Clone)]
pub(super) struct ScaledGradients {
    /// The norm after the division and before clipping.
    pub norm: Tensor,
    /// A bool tensor that says whether the norm is finite.
    pub is_finite: Tensor,
    /// The optimizer multiplies the gradients by it.
    pub factor: Tensor,
}

impl LossScaler {
    pub fn new(options: LossScale, device: &Device) -> Result<LossScaler> {
        options.check()?;
        let scale = Tensor::full(&[], options.initial, DType::F32, device)?;
        Ok(LossScaler { options, scale, growth_tracker: Tensor::zeros(&[], DType::I32, device)? })
    }

    /// Computes the gradients of a loss times the scale.
    ///
    /// # Errors
    ///
    /// As [`Variable::backward`]; [`Error::InvalidArgument`] for a loss of f16 and a scale that begins below its normal numbers.
    pub fn backward(&self, loss: &Variable) -> Result<()> {
        let shape = loss.shape();
        if shape.count() != 1 {
            return loss.backward();
        }
        let initial = self.options.initial;
        if loss.dtype() == DType::F16 && initial < f64::from(MIN_SCALE) {
            let found = format!("a loss of f16 and a scale that begins at {initial}");
            return Err(Error::invalid(
                "LossScale",
                found,
                format!("at least {MIN_SCALE}, or a loss of f32"),
            ));
        }
        let sizes: Vec<isize> = shape.iter().map(|&size| size as isize).collect();
        // A gradient may share the memory of the first one.
        let scale = self.scale.copy()?.cast(loss.dtype())?;
        loss.backward_with(&scale.reshape(&sizes)?)
    }

    /// Returns the norm of the gradients, and the factor that divides them by the scale and clips them.
    ///
    /// # Errors
    ///
    /// Errors of the operations.
    pub fn gradients(&self, parameters: &[Variable], max_norm: Option<f64>) -> Result<ScaledGradients> {
        let norm = match grad_norm(parameters)? {
            Some(norm) => norm,
            None => Tensor::zeros(&[], DType::F32, &self.scale.device())?,
        };
        // The quotient of a finite norm can be infinite, and clips to nothing then.
        let norm = fuse([&norm, &self.scale], |[norm, scale]| norm / scale)?;
        let is_finite = fuse([&norm], |[norm]| norm.is_finite())?;
        let factor = match max_norm {
            Some(max_norm) => fuse((&norm, &self.scale, max_norm), |[norm, scale, max_norm]| {
                (max_norm / (norm + 1e-6)).minimum(1.0) / scale
            })?,
            None => self.scale.reciprocal()?,
        };
        Ok(ScaledGradients { norm, is_finite, factor })
    }

    /// Changes the parameters unless the gradients are not finite, and then the scale.
    ///
    /// # Errors
    ///
    /// As [`Optimizer::apply_scaled`].
    pub fn apply(
        &mut self,
        optimizer: &mut dyn Optimizer,
        is_finite: &Tensor,
        factor: &Tensor,
    ) -> Result<()> {
        static UPDATE: OnceLock<Fused<6, 2>> = OnceLock::new();
        optimizer.apply_scaled(is_finite, factor)?;
        let update = UPDATE.get_or_init(|| {
            Fused::with_outputs(|[scale, tracker, is_finite, growth, backoff, interval]| {
                let (steps, grown) = (tracker + 1, scale * growth);
                let is_grown = steps.eq(interval);
                let larger = is_grown.choose(grown.is_finite().choose(grown, scale), scale);
                // A smaller scale is the caller's, and stays.
                let smaller = (scale * backoff).maximum(scale.minimum(MIN_SCALE));
                let scale = is_finite.choose(larger, smaller);
                [scale, is_finite.choose(is_grown.choose(0, steps), 0)]
            })
        });
        let LossScaler { options, scale, growth_tracker } = self;
        let others = [
            is_finite.into(),
            options.growth_factor.into(),
            options.backoff_factor.into(),
            (options.growth_interval as i32).into(),
        ];
        update.run_in_place([scale.in_place(), growth_tracker.in_place()], others)
    }

    /// Returns the scale of the next step.
    ///
    /// # Errors
    ///
    /// Driver errors.
    pub fn scale(&self) -> Result<f64> {
        self.scale.item::<f32>().map(f64::from)
    }

    /// Adds the state to an optimizer's, which has no names with this beginning.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn add_state(&self, entries: &mut BTreeMap<String, Tensor>) -> Result<()> {
        entries.insert(SCALE.to_owned(), self.scale.copy()?);
        entries.insert(GROWTH_TRACKER.to_owned(), self.growth_tracker.copy()?);
        Ok(())
    }

    /// Sets the state.
    ///
    /// # Errors
    ///
    /// Driver errors.
    fn load(&mut self, (scale, growth_tracker): (f32, i32)) -> Result<()> {
        self.scale.in_place().fill(scale)?;
        self.growth_tracker.in_place().fill(growth_tracker).map(|_| ())
    }
}

/// Returns the state of an optimizer and a loss scale.
///
/// # Errors
///
/// [`Error::OutOfMemory`].
pub(super) fn state_dict(
    optimizer: &dyn Optimizer,
    scaler: Option<&LossScaler>,
) -> Result<BTreeMap<String, Tensor>> {
    let mut entries = optimizer.state_dict()?;
    if let Some(scaler) = scaler {
        scaler.add_state(&mut entries)?;
    }
    Ok(entries)
}

/// Sets the state of an optimizer and a loss scale.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for entries of a loss scale that are missing, of another dtype or shape or out of range, or that no
/// loss scale of this step takes; then nothing changes. Otherwise as [`Optimizer::load_state_dict`].
pub(super) fn load_state_dict(
    operation: &'static str,
    optimizer: &mut dyn Optimizer,
    scaler: Option<&mut LossScaler>,
    entries: &BTreeMap<String, Tensor>,
) -> Result<()> {
    let Some(scaler) = scaler else {
        if entries.contains_key(SCALE) {
            let wanted = "a step with a loss scale, or a state without one";
            return Err(Error::invalid(operation, format!("'{SCALE}'"), wanted));
        }
        return optimizer.load_state_dict(entries);
    };
    let entry = |name: &str, dtype: DType| match entries.get(name) {
        Some(entry) if entry.dtype() == dtype && entry.rank() == 0 => Ok(entry),
        Some(entry) => {
            let found = format!("'{name}' of {} and shape {}", entry.dtype(), entry.shape());
            Err(Error::invalid(operation, found, format!("{dtype} of shape []")))
        }
        None => {
            Err(Error::invalid(operation, format!("no '{name}'"), "the state of a step with a loss scale"))
        }
    };
    let scale = entry(SCALE, DType::F32)?.item::<f32>()?;
    let tracker = entry(GROWTH_TRACKER, DType::I32)?.item::<i32>()?;
    if !(scale.is_finite() && scale >= f32::MIN_POSITIVE && tracker >= 0) {
        let found = format!("a scale of {scale} after {tracker} steps");
        return Err(Error::invalid(operation, found, "a number from 2⁻¹²⁶ on and a count"));
    }
    let mut others = entries.clone();
    others.retain(|name, _| name != SCALE && name != GROWTH_TRACKER);
    optimizer.load_state_dict(&others)?;
    scaler.load((scale, tracker))
}
