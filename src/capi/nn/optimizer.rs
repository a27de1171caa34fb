//! Optimizers.

use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use super::super::arguments::{check_reserved, check_unused, or_default, out, structure, text};
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, object, sv_model, sv_optimizer, sv_tensor};
use super::super::tensor::{flag, give};
use super::model::{Model, ModelObject, write_entries};
use crate::nn::{
    Adafactor, Adam, AdamW, Lion, Muon, MuonRateAdjustment, Optimizer, OptimizerPair, Sgd, clip_grad_norm,
};
use crate::tensor::{Device, Tensor};

/// An optimizer behind a handle.
#[derive(Clone)]
pub(crate) struct OptimizerObject {
    optimizer: Arc<Mutex<Box<dyn Optimizer + Send>>>,
    model: Weak<RwLock<Model>>,
}
object!(OptimizerObject, Optimizer);

impl OptimizerObject {
    pub(super) fn lock(&self) -> MutexGuard<'_, Box<dyn Optimizer + Send>> {
        self.optimizer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error unless the optimizer has the parameters of this model.
    pub(super) fn check_model(&self, model: &ModelObject) -> Result<()> {
        if model.is(&self.model) {
            return Ok(());
        }
        Err(Failure::argument(
            "optimizer",
            "one of another model",
            "an optimizer of the model that is trained",
        ))
    }
}

/// Returns the optimizer of a handle.
pub(super) fn optimizer(handle: u64) -> Result<OptimizerObject> {
    OptimizerObject::table().get(handle, "optimizer")
}

/// Gradient descent, with momentum if it is not 0.
pub const SV_OPTIMIZER_SGD: i32 = 1;
/// Adam. The weight decay is added to the gradient.
pub const SV_OPTIMIZER_ADAM: i32 = 2;
/// Adam with decoupled weight decay.
pub const SV_OPTIMIZER_ADAMW: i32 = 3;
/// Gradient descent with Nesterov's momentum, which is not 0.
pub const SV_OPTIMIZER_NESTEROV: i32 = 4;
/// Lion: the sign of a momentum, with decoupled weight decay.
pub const SV_OPTIMIZER_LION: i32 = 5;

/// The settings of an optimizer. Zeros are the defaults, but for `size`, `kind` and `learning_rate`, which the caller sets. A field
/// that the kind or a flag does not use is 0.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_optimizer_options {
    /// The size of the struct in bytes.
    pub size: usize,
    /// One of `SV_OPTIMIZER_...`.
    pub kind: i32,
    /// 1 to use `weight_decay`; otherwise it is 0, and 0.01 of `SV_OPTIMIZER_ADAMW`.
    pub has_weight_decay: i32,
    /// The factor of a step, above 0. A learning rate of 0, such as that of a schedule, is one of `sv_optimizer_set_learning_rate`.
    pub learning_rate: f64,
    /// The weight decay. 0 without `has_weight_decay`.
    pub weight_decay: f64,
    /// The momentum of `SV_OPTIMIZER_SGD`, 0 for none, and of `SV_OPTIMIZER_NESTEROV`.
    pub momentum: f64,
    /// The decay of the mean of gradients of Adam, and of the one whose sign Lion takes; 0 for 0.9.
    pub beta1: f64,
    /// The decay of the mean of squares of Adam, 0 for 0.999, and of the mean of gradients that Lion keeps, 0 for 0.99.
    pub beta2: f64,
    /// The number that Adam adds to the divisor; 0 for 1e-8.
    pub eps: f64,
}

impl sv_optimizer_options {
    /// Refuses a field that the kind does not use.
    fn check_kind(&self) -> Result<()> {
        const SGD: &[i32] = &[SV_OPTIMIZER_SGD, SV_OPTIMIZER_NESTEROV];
        const ADAM: &[i32] = &[SV_OPTIMIZER_ADAM, SV_OPTIMIZER_ADAMW];
        const WITH_BETAS: &[i32] = &[SV_OPTIMIZER_ADAM, SV_OPTIMIZER_ADAMW, SV_OPTIMIZER_LION];
        let of_sgd = "the kind SV_OPTIMIZER_SGD or SV_OPTIMIZER_NESTEROV";
        let of_adam = "the kind SV_OPTIMIZER_ADAM or SV_OPTIMIZER_ADAMW";
        let of_betas = "the kind SV_OPTIMIZER_ADAM, SV_OPTIMIZER_ADAMW or SV_OPTIMIZER_LION";
        let fields = [
            ("options.momentum", self.momentum, SGD, of_sgd),
            ("options.beta1", self.beta1, WITH_BETAS, of_betas),
            ("options.beta2", self.beta2, WITH_BETAS, of_betas),
            ("options.eps", self.eps, ADAM, of_adam),
        ];
        let mut unread = fields.iter().filter(|(_, _, kinds, _)| !kinds.contains(&self.kind));
        unread.try_for_each(|(name, found, _, reads)| check_unused(name, *found, reads))
    }

    fn create(&self, parameters: Vec<crate::nn::Variable>) -> Result<Box<dyn Optimizer + Send>> {
        let rate = self.learning_rate;
        check_rate("options.learning_rate", rate)?;
        let second = if self.kind == SV_OPTIMIZER_LION { 0.99 } else { 0.999 };
        let (beta1, beta2) = (or_default(self.beta1, 0.9), or_default(self.beta2, second));
        let eps = or_default(self.eps, 1e-8);
        let decay = flag(self.has_weight_decay, "options.has_weight_decay")?;
        if !decay {
            check_unused("options.weight_decay", self.weight_decay, "options.has_weight_decay 1")?;
        }
        self.check_kind()?;
        macro_rules! adam {
            ($name:ident) => {{
                let optimizer = $name::new(parameters, rate)?.with_betas(beta1, beta2)?.with_eps(eps)?;
                Box::new(if decay { optimizer.with_weight_decay(self.weight_decay)? } else { optimizer })
            }};
        }
        Ok(match self.kind {
            SV_OPTIMIZER_SGD | SV_OPTIMIZER_NESTEROV => {
                let optimizer = Sgd::new(parameters, rate)?;
                let optimizer =
                    if self.momentum == 0.0 { optimizer } else { optimizer.with_momentum(self.momentum)? };
                let optimizer = optimizer.with_nesterov(self.kind == SV_OPTIMIZER_NESTEROV)?;
                Box::new(if decay { optimizer.with_weight_decay(self.weight_decay)? } else { optimizer })
            }
            SV_OPTIMIZER_ADAM => adam!(Adam),
            SV_OPTIMIZER_ADAMW => adam!(AdamW),
            SV_OPTIMIZER_LION => {
                let optimizer = Lion::new(parameters, rate)?.with_betas(beta1, beta2)?;
                Box::new(if decay { optimizer.with_weight_decay(self.weight_decay)? } else { optimizer })
            }
            other => return Err(Failure::argument("options.kind", other, "one of SV_OPTIMIZER_...")),
        })
    }
}

/// Refuses a learning rate that the caller has not set.
fn check_rate(name: &str, rate: f64) -> Result<()> {
    if rate == 0.0 {
        let wanted = "a number above 0; sv_optimizer_set_learning_rate sets 0 for a schedule";
        return Err(Failure::argument(name, "0, as in a struct that sets none", wanted));
    }
    Ok(())
}

/// The settings of an Adafactor, with the defaults of PyTorch. Zeros are the defaults, but for `size` and `learning_rate`, which the
/// caller sets.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_adafactor_options {
    /// The size of the struct in bytes.
    pub size: usize,
    /// 1 for steps of the size of the learning rate. Otherwise the size is at most 1 / sqrt(step), and relative to the root mean
    /// square of the parameter.
    pub fixed_step: i32,
    /// 0.
    pub reserved: i32,
    /// The factor of a step, above 0. A learning rate of 0, such as that of a schedule, is one of `sv_optimizer_set_learning_rate`.
    pub learning_rate: f64,
    /// The decoupled weight decay.
    pub weight_decay: f64,
    /// The share of new squares in the second moments is the step to this power; 0 for -0.8.
    pub beta2_decay: f64,
    /// The least root of a second moment; 0 for the machine epsilon of the parameter's dtype.
    pub variance_eps: f64,
    /// The least root mean square of a parameter for the size of its steps; 0 for 1e-3.
    pub scale_eps: f64,
    /// The root mean square to which a larger update is scaled down, from 1 on; 0 for 1.
    pub clipping_threshold: f64,
}

impl sv_adafactor_options {
    fn create(&self, parameters: Vec<crate::nn::Variable>) -> Result<Box<dyn Optimizer + Send>> {
        check_rate("options.learning_rate", self.learning_rate)?;
        check_reserved("options.reserved", self.reserved)?;
        let variance_eps = Some(self.variance_eps).filter(|eps| *eps != 0.0);
        let optimizer = Adafactor::new(parameters, self.learning_rate)?
            .with_beta2_decay(or_default(self.beta2_decay, -0.8))?
            .with_eps(variance_eps, or_default(self.scale_eps, 1e-3))?
            .with_clipping_threshold(or_default(self.clipping_threshold, 1.0))?
            .with_relative_step(!flag(self.fixed_step, "options.fixed_step")?)
            .with_weight_decay(self.weight_decay)?;
        Ok(Box::new(optimizer))
    }
}

/// A Muon's learning rate times sqrt(max(1, rows / columns)), the default.
pub const SV_MUON_RATE_ORIGINAL: i32 = 1;
/// A Muon's learning rate times 0.2 sqrt(max(rows, columns)), with which the rates of AdamW fit.
pub const SV_MUON_RATE_MATCH_RMS_ADAMW: i32 = 2;
/// A Muon's learning rate times sqrt(rows / columns).
pub const SV_MUON_RATE_SPECTRAL_UNCLAMPED: i32 = 3;

/// The settings of a Muon of a model's matrices and an AdamW of its other parameters, with the defaults of PyTorch. Zeros are the
/// defaults, but for `size` and the learning rates, which the caller sets.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_muon_options {
    /// The size of the struct in bytes.
    pub size: usize,
    /// 1 to use `weight_decay` and `adamw_weight_decay`; otherwise they are 0, and 0.1 and 0.01 are used.
    pub has_weight_decay: i32,
    /// 1 for a momentum that is not Nesterov's.
    pub without_nesterov: i32,
    /// One of `SV_MUON_RATE_...`, 0 for `SV_MUON_RATE_ORIGINAL`.
    pub rate_adjustment: i32,
    /// The number of Newton-Schulz steps, at most 99; 0 for 5.
    pub newton_schulz_steps: i32,
    /// The factor of a step of a matrix, above 0. A learning rate of 0, such as that of a schedule, is one of
    /// `sv_optimizer_set_learning_rate`.
    pub learning_rate: f64,
    /// The decoupled weight decay of matrices. 0 without `has_weight_decay`.
    pub weight_decay: f64,
    /// The decay of the momentum; 0 for 0.95.
    pub momentum: f64,
    /// The coefficients of X, X X^T X and X X^T X X^T X in a Newton-Schulz step; three zeros for 3.4445, -4.7750 and 2.0315.
    pub coefficients: [f64; 3],
    /// The least norm by which an update is divided; 0 for 1e-7.
    pub eps: f64,
    /// The learning rate of the AdamW, above 0 if the model has parameters other than matrices.
    pub adamw_learning_rate: f64,
    /// The weight decay of the AdamW. 0 without `has_weight_decay`.
    pub adamw_weight_decay: f64,
}

impl sv_muon_options {
    fn muon(&self, matrices: Vec<crate::nn::Variable>, weight_decay: f64) -> Result<Muon> {
        let coefficients = or_default(self.coefficients, [3.4445, -4.7750, 2.0315]);
        let steps = usize::try_from(or_default(self.newton_schulz_steps, 5)).map_err(|_| {
            let found = self.newton_schulz_steps;
            Failure::argument("options.newton_schulz_steps", found, "a number from 0 to 99")
        })?;
        let adjustment = match self.rate_adjustment {
            0 | SV_MUON_RATE_ORIGINAL => MuonRateAdjustment::Original,
            SV_MUON_RATE_MATCH_RMS_ADAMW => MuonRateAdjustment::MatchRmsAdamW,
            SV_MUON_RATE_SPECTRAL_UNCLAMPED => MuonRateAdjustment::SpectralUnclamped,
            other => {
                let wanted = "0, or one of SV_MUON_RATE_...";
                return Err(Failure::argument("options.rate_adjustment", other, wanted));
            }
        };
        Ok(Muon::new(matrices, self.learning_rate)?
            .with_momentum(or_default(self.momentum, 0.95))?
            .with_nesterov(!flag(self.without_nesterov, "options.without_nesterov")?)
            .with_newton_schulz(coefficients, steps)?
            .with_eps(or_default(self.eps, 1e-7))?
            .with_learning_rate_adjustment(adjustment)
            .with_weight_decay(weight_decay)?)
    }

    fn create(&self, parameters: Vec<crate::nn::Variable>) -> Result<Box<dyn Optimizer + Send>> {
        check_rate("options.learning_rate", self.learning_rate)?;
        let decays = if flag(self.has_weight_decay, "options.has_weight_decay")? {
            [self.weight_decay, self.adamw_weight_decay]
        } else {
            let reads = "options.has_weight_decay 1";
            check_unused("options.weight_decay", self.weight_decay, reads)?;
            check_unused("options.adamw_weight_decay", self.adamw_weight_decay, reads)?;
            [0.1, 0.01]
        };
        let (matrices, others): (Vec<_>, Vec<_>) =
            parameters.into_iter().partition(|parameter| parameter.shape().rank() == 2);
        if matrices.is_empty() {
            let wanted = "a model with a matrix; sv_optimizer_create makes an AdamW of others";
            return Err(Failure::argument("model", "parameters that are no matrices", wanted));
        }
        let muon = self.muon(matrices, decays[0])?;
        if others.is_empty() {
            return Ok(Box::new(muon));
        }
        check_rate("options.adamw_learning_rate", self.adamw_learning_rate)?;
        let adamw = AdamW::new(others, self.adamw_learning_rate)?.with_weight_decay(decays[1])?;
        Ok(Box::new(OptimizerPair::new(muon, adamw)?))
    }
}

/// Creates an optimizer of a model's parameters and adds it to the model.
fn create(
    model: sv_model,
    make: impl FnOnce(Vec<crate::nn::Variable>) -> Result<Box<dyn Optimizer + Send>>,
) -> Result<sv_optimizer> {
    let model = ModelObject::find(model)?;
    let mut of_model = model.write();
    let parameters = of_model.module().parameters();
    if parameters.is_empty() {
        let wanted = "a model with parameters: add its layers first, such as by sv_model_add_linear";
        return Err(Failure::argument("model", "a model without parameters", wanted));
    }
    let created = Arc::new(Mutex::new(make(parameters)?));
    of_model.add_optimizer(&created);
    let object = OptimizerObject { optimizer: created, model: model.downgrade() };
    OptimizerObject::table().insert(object)
}

/// Creates an optimizer of a model's parameters. The model has all of its layers: a model without parameters is an error here, and
/// a layer with parameters that is added while the optimizer lives is one in the function that adds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_optimizer_create(
    model: sv_model,
    options: *const sv_optimizer_options,
    optimizer: *mut sv_optimizer,
) -> i32 {
    guard::call("sv_optimizer_create", || {
        let (options, optimizer) = (structure(options, "options")?, out(optimizer, "optimizer")?);
        optimizer.write(create(model, |parameters| options.create(parameters))?);
        Ok(())
    })
}

/// Creates an Adafactor of a model's parameters, as `sv_optimizer_create`. Its second moments of a matrix are those of the rows and the
/// columns. It is that of PyTorch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_optimizer_create_adafactor(
    model: sv_model,
    options: *const sv_adafactor_options,
    optimizer: *mut sv_optimizer,
) -> i32 {
    guard::call("sv_optimizer_create_adafactor", || {
        let (options, optimizer) = (structure(options, "options")?, out(optimizer, "optimizer")?);
        optimizer.write(create(model, |parameters| options.create(parameters))?);
        Ok(())
    })
}

/// Creates a Muon of the matrices of a model, embeddings among them, and an AdamW of its other parameters, such as biases, as one
/// optimizer; as `sv_optimizer_create`. Muon makes the singular values of its momentum near 1. It is that of PyTorch.
///
/// `sv_optimizer_set_learning_rate` sets the rate of the Muon, and multiplies that of the AdamW by the same factor. In a file of
/// `sv_optimizer_save` names begin with `first.`, of the Muon, and `second.`; of a model of matrices alone they have no such prefix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_optimizer_create_muon(
    model: sv_model,
    options: *const sv_muon_options,
    optimizer: *mut sv_optimizer,
) -> i32 {
    guard::call("sv_optimizer_create_muon", || {
        let (options, optimizer) = (structure(options, "options")?, out(optimizer, "optimizer")?);
        optimizer.write(create(model, |parameters| options.create(parameters))?);
        Ok(())
    })
}

/// Changes each parameter that has a gradient.
///
/// Others that use the optimizer wait meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn sv_optimizer_step(optimizer: sv_optimizer) -> i32 {
    guard::call("sv_optimizer_step", || Ok(self::optimizer(optimizer)?.lock().step()?))
}

/// Removes the gradients of the parameters.
#[unsafe(no_mangle)]
pub extern "C" fn sv_optimizer_zero_grad(optimizer: sv_optimizer) -> i32 {
    guard::call("sv_optimizer_zero_grad", || {
        self::optimizer(optimizer)?.lock().zero_grad();
        Ok(())
    })
}

/// Sets the learning rate, such as to that of a schedule.
#[unsafe(no_mangle)]
pub extern "C" fn sv_optimizer_set_learning_rate(optimizer: sv_optimizer, learning_rate: f64) -> i32 {
    guard::call("sv_optimizer_set_learning_rate", || {
        let optimizer = self::optimizer(optimizer)?;
        if !(learning_rate.is_finite() && learning_rate >= 0.0) {
            return Err(Failure::argument("learning_rate", learning_rate, "a finite number from 0 on"));
        }
        optimizer.lock().set_learning_rate(learning_rate);
        Ok(())
    })
}

/// Multiplies all gradients of an optimizer's parameters by one factor, so that their norm together is at most `max_norm`.
/// Gives the norm before, a tensor of one element; the call does not wait for it.
///
/// Others that use the optimizer wait meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_optimizer_clip_grad_norm(
    optimizer: sv_optimizer,
    max_norm: f64,
    norm: *mut sv_tensor,
) -> i32 {
    give("sv_optimizer_clip_grad_norm", norm, || {
        let optimizer = self::optimizer(optimizer)?;
        let optimizer = optimizer.lock();
        Ok(clip_grad_norm(optimizer.parameters(), max_norm)?)
    })
}

/// Writes the learning rate and the states of an optimizer to a safetensors file, replacing the file at that path. The names
/// are the positions of the parameters and PyTorch's names of the states, such as `0.exp_avg`.
///
/// Others that use the optimizer wait meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_optimizer_save(optimizer: sv_optimizer, path: *const c_char) -> i32 {
    guard::call("sv_optimizer_save", || {
        let (optimizer, path) = (self::optimizer(optimizer)?, text(path, "path")?);
        let entries = optimizer.lock().state_dict()?;
        write_entries(path, &entries)
    })
}

/// Sets the learning rate and the states of an optimizer to those in a file of `sv_optimizer_save`, bit for bit. The file is of
/// an optimizer of the same kind and of parameters of the same shapes; otherwise nothing changes. Other settings, such as the
/// betas of Adam, stay.
///
/// Others that use the optimizer wait meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_optimizer_load(optimizer: sv_optimizer, path: *const c_char) -> i32 {
    guard::call("sv_optimizer_load", || {
        let (optimizer, path) = (self::optimizer(optimizer)?, text(path, "path")?);
        let entries = Tensor::read_safetensors(path, &Device::cpu())?.into_iter().collect();
        Ok(optimizer.lock().load_state_dict(&entries)?)
    })
}
