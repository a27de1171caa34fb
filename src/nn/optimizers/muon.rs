//! [`Muon`].
//!
//! Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024, in the form of `torch.optim.Muon`; the
//! adjustments of the learning rate of Liu et al., "Muon is Scalable for LLM Training", 2025, and of Bernstein, "Deriving Muon", 2025.

use std::collections::BTreeMap;

use super::Optimizer;
use super::core::{
    Guard, HYPERPARAMETERS, OptimizerCore, StepRule, check_real, outputs, replace_state, scaled, shaped,
};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::nn::Variable;
use crate::nn::checks::{check_fraction, check_non_negative};
use crate::nn::precision::widened;
use crate::tensor::{Fused, Matmul, Tensor, TensorMut};
use crate::types::{DType, Shape};

const NAME: &str = "Muon";

/// The largest number of Newton-Schulz steps, PyTorch's.
const MAX_NEWTON_SCHULZ_STEPS: usize = 99;

/// The factor r by which [`Muon`] multiplies the learning rate of a matrix. Its update has singular values near 1, so the root mean
/// square of the update depends on the shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MuonRateAdjustment {
    /// sqrt(max(1, rows / columns)), as in the original.
    #[default]
    Original,
    /// 0.2 sqrt(max(rows, columns)): the root mean square of an update is about [`AdamW`](super::AdamW)'s, so its learning rate and
    /// weight decay fit.
    MatchRmsAdamW,
    /// sqrt(rows / columns), which bounds the spectral norm of an update from a layer's outputs to its inputs.
    SpectralUnclamped,
}

impl MuonRateAdjustment {
    fn factor(self, rows: usize, columns: usize) -> f64 {
        let (rows, columns) = (rows as f64, columns as f64);
        match self {
            MuonRateAdjustment::Original => (rows / columns).max(1.0).sqrt(),
            MuonRateAdjustment::MatchRmsAdamW => 0.2 * rows.max(columns).sqrt(),
            MuonRateAdjustment::SpectralUnclamped => (rows / columns).sqrt(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Settings {
    momentum: f64,
    is_nesterov: bool,
    coefficients: [f64; 3],
    steps: usize,
    eps: f64,
    adjustment: MuonRateAdjustment,
}

/// The step. The numbers are lr and 1 - lr λ.
#[derive(Debug)]
struct MuonRule {
    settings: Settings,
    /// A momentum, a gradient and its factor to the new momentum and the update.
    moved: Fused<3, 2>,
    /// An update and its norm to the first X.
    normalized: Fused<2>,
    /// The parameter, X, lr, 1 - lr λ, r and a condition.
    applied: Fused<6>,
}

fn mixed<'g>(from: Expr<'g>, to: Expr<'g>, share: f64) -> Expr<'g> {
    from + (to - from) * share
}

impl MuonRule {
    fn new(settings: Settings) -> MuonRule {
        let Settings { momentum: decay, is_nesterov, .. } = settings;
        // The divisor is never 0, so X of zeros is 0.
        let eps = settings.eps.max(f32::MIN_POSITIVE.into());
        MuonRule {
            settings,
            moved: Fused::with_outputs(move |[momentum, g, factor]| {
                let g = scaled(g, factor);
                let momentum = mixed(momentum, g, 1.0 - decay);
                [momentum, if is_nesterov { mixed(g, momentum, decay) } else { momentum }]
            }),
            normalized: Fused::new(move |[update, norm]| (update / norm.maximum(eps)).cast(DType::BF16)),
            applied: Fused::new(|[p, x, rate, decay, adjustment, condition]| {
                let p = widened(p);
                condition.choose(p * decay - x.cast(p.dtype()) * (rate * adjustment), p)
            }),
        }
    }

    /// Returns, in bf16, a matrix with the singular vectors of the update, whose singular values are near 1.
    fn orthogonalized(&self, update: &Tensor, is_tall: bool) -> Result<Tensor> {
        let [linear, cubic, quintic] = self.settings.coefficients;
        let norm = update.norm_all(2.0)?;
        // The Gram matrix has the size of the shorter side.
        let update = if is_tall { update.t()? } else { update.clone() };
        let mut x = self.normalized.run([&update, &norm])?;
        for _ in 0..self.settings.steps {
            let gram = x.matmul(&x.t()?)?;
            let mut polynomial = gram.copy()?;
            Matmul::new().alpha(quintic).add_to(&mut polynomial, cubic, &gram, &gram)?;
            let mut next = x.copy()?;
            Matmul::new().add_to(&mut next, linear, &polynomial, &x)?;
            x = next;
        }
        if is_tall { x.t() } else { Ok(x) }
    }
}

impl StepRule for MuonRule {
    const NAME: &'static str = NAME;
    const COUNTS_STEPS: bool = false;
    const IS_WHOLE: bool = true;

    fn states(shape: &Shape) -> Result<Vec<(&'static str, Shape)>> {
        Ok(shaped(&["momentum_buffer"], shape))
    }

    fn uses_states(&self) -> bool {
        true
    }

    fn hyperparameters(&self, learning_rate: f64, weight_decay: f64, _: i32) -> [f64; HYPERPARAMETERS] {
        [learning_rate, 1.0 - learning_rate * weight_decay, 0.0]
    }

    fn run(
        &self,
        elements: Vec<TensorMut<'_>>,
        gradient: &Tensor,
        [rate, decay, _]: &[Tensor; HYPERPARAMETERS],
        guard: Option<Guard<'_>>,
    ) -> Result<()> {
        let [parameter, buffer] = outputs::<2>(elements)?;
        let (rows, columns) = match **parameter.shape() {
            [rows, columns] if rows > 0 && columns > 0 => (rows, columns),
            _ => return Ok(()),
        };
        let (condition, factor) = Guard::operands(guard);
        // All that needs memory comes before the first change.
        let [momentum, update] = self.moved.run_all((&buffer.current(), gradient, factor))?;
        let x = self.orthogonalized(&update, rows > columns)?;
        let adjustment = self.settings.adjustment.factor(rows, columns);
        let others = [(&x).into(), rate.into(), decay.into(), adjustment.into(), condition];
        self.applied.run_in_place([parameter], others)?;
        replace_state(buffer, &momentum, condition)
    }
}

/// Muon: a momentum whose singular values are replaced by values near 1, with decoupled weight decay, for the matrices of hidden
/// layers. It is PyTorch's `torch.optim.Muon`. Its state is half of Adam's.
///
/// With the gradient G and the momentum B, which begins with 0:
///
/// - B = B + (1 - μ) (G - B); U = G + μ (B - G), or B without Nesterov's momentum
/// - X = U / max(‖U‖, ε), transposed if it has more rows than columns; then five Newton-Schulz steps:
///   A = X Xᵀ, X = a X + (b A + c A²) X. X and A are in bf16, and sums of products in f32
/// - p = p (1 - lr λ) - lr r X, with r of [`MuonRateAdjustment`]
///
/// Each parameter has a step of its own, of some 30 launches. A model's biases and norms, and best its embedding and its head
/// too, are those of another optimizer. An [`OptimizerPair`](super::OptimizerPair) makes one of both.
///
/// ```
/// use selvedge::nn::{Muon, Optimizer, Variable};
/// use selvedge::{Device, Tensor};
/// let x = Variable::with_grad(Tensor::new([[3.0f32, 1.0], [-1.0, 2.0]], &Device::cpu())?)?;
/// let mut optimizer = Muon::new(vec![x.clone()], 0.1)?;
/// x.square()?.sum_all()?.backward()?;
/// optimizer.step()?;
/// assert!(x.square()?.sum_all()?.tensor().item::<f32>()? < 15.0);
/// assert_eq!(optimizer.state_dict()?["0.momentum_buffer"].shape().to_vec(), [2, 2]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug)]
pub struct Muon(OptimizerCore<MuonRule>);

impl Muon {
    /// Creates an optimizer with a momentum of 0.95, Nesterov's, a weight decay of 0.1, five Newton-Schulz steps of the coefficients
    /// 3.4445, -4.7750 and 2.0315, an ε of 1e-7, and [`MuonRateAdjustment::Original`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a learning rate that is negative or not finite, for no parameters, for parameters other than
    /// leaves with a gradient, and for a parameter that is no matrix; [`Error::DTypeMismatch`] for complex ones.
    pub fn new(parameters: Vec<Variable>, learning_rate: f64) -> Result<Muon> {
        check_real::<MuonRule>(&parameters)?;
        if let Some(at) = parameters.iter().position(|parameter| parameter.shape().rank() != 2) {
            let found = format!("parameter {at} of shape {}", parameters[at].shape());
            let wanted = "matrices; give other parameters to an AdamW, such as in an OptimizerPair";
            return Err(Error::invalid(NAME, found, wanted));
        }
        let rule = MuonRule::new(Settings {
            momentum: 0.95,
            is_nesterov: true,
            coefficients: [3.4445, -4.7750, 2.0315],
            steps: 5,
            eps: 1e-7,
            adjustment: MuonRateAdjustment::Original,
        });
        let mut core = OptimizerCore::new(rule, parameters, learning_rate)?;
        core.weight_decay = 0.1;
        Ok(Muon(core))
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Muon {
        let mut settings = self.0.rule.settings;
        change(&mut settings);
        self.0.rule = MuonRule::new(settings);
        self
    }

    /// Sets the decay μ of the momentum.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number outside 0 to 1, without 1.
    pub fn with_momentum(self, momentum: f64) -> Result<Muon> {
        check_fraction(NAME, "a momentum", momentum)?;
        Ok(self.with(|settings| settings.momentum = momentum))
    }

    /// Sets whether the update is Nesterov's: a mean of the gradient and the new momentum.
    #[must_use]
    pub fn with_nesterov(self, is_nesterov: bool) -> Muon {
        self.with(|settings| settings.is_nesterov = is_nesterov)
    }

    /// Sets the coefficients a, b and c of a Newton-Schulz step, and the number of steps. Without steps an update is
    /// U / max(‖U‖, ε).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a coefficient that is not finite, and for more than 99 steps.
    pub fn with_newton_schulz(self, coefficients: [f64; 3], steps: usize) -> Result<Muon> {
        if let Some(coefficient) = coefficients.iter().find(|coefficient| !coefficient.is_finite()) {
            let found = format!("a Newton-Schulz coefficient of {coefficient}");
            return Err(Error::invalid(NAME, found, "a finite number"));
        }
        if steps > MAX_NEWTON_SCHULZ_STEPS {
            let wanted = format!("at most {MAX_NEWTON_SCHULZ_STEPS}");
            return Err(Error::invalid(NAME, format!("{steps} Newton-Schulz steps"), wanted));
        }
        Ok(self.with(|settings| (settings.coefficients, settings.steps) = (coefficients, steps)))
    }

    /// Sets ε, the least divisor of an update.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number that is negative or not finite.
    pub fn with_eps(self, eps: f64) -> Result<Muon> {
        check_non_negative(NAME, "an eps", eps)?;
        Ok(self.with(|settings| settings.eps = eps))
    }

    /// Sets the factor of the learning rate, which depends on the shape of a matrix.
    #[must_use]
    pub fn with_learning_rate_adjustment(self, adjustment: MuonRateAdjustment) -> Muon {
        self.with(|settings| settings.adjustment = adjustment)
    }

    /// Sets the weight decay λ.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number that is negative or not finite.
    pub fn with_weight_decay(mut self, weight_decay: f64) -> Result<Muon> {
        check_non_negative(NAME, "a weight decay", weight_decay)?;
        self.0.weight_decay = weight_decay;
        Ok(self)
    }
}

super::optimizer!(Muon);
