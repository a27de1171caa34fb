//! [`Adafactor`].
//!
//! Source: Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", 2018, with the numbers and the order of
//! operations of `torch.optim.Adafactor`.

use std::collections::BTreeMap;

use super::Optimizer;
use super::core::{
    Guard, HYPERPARAMETERS, OptimizerCore, StepRule, check_real, outputs, replace_state, scaled, shaped,
};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::nn::Variable;
use crate::nn::checks::check_non_negative;
use crate::nn::precision::{wide_dtype, widened};
use crate::tensor::{Fused, Tensor, TensorMut, TensorOperand, machine_epsilon};
use crate::types::{DType, Shape};

const NAME: &str = "Adafactor";

#[derive(Debug, Clone, Copy)]
struct Settings {
    /// The share of the new squares in step t is t to this power.
    beta2_decay: f64,
    /// ε₁. None is the machine epsilon of the parameter's dtype.
    variance_eps: Option<f64>,
    /// ε₂.
    scale_eps: f64,
    /// d.
    clipping_threshold: f64,
    is_relative: bool,
}

/// The step. The numbers are ρ, the share of the new squares, and 1 - lr λ.
#[derive(Debug)]
struct AdafactorRule {
    settings: Settings,
    /// The mean squares of the rows of a gradient times a factor.
    row_means: Fused<2>,
    /// The mean squares of its columns.
    column_means: Fused<2>,
    /// A moment, the new mean squares and their share to the new moment.
    moved: Fused<3>,
    /// A moment, a gradient, its factor and the share to the new moment.
    moved_by_squares: Fused<4>,
    /// The moments of the rows and columns, the mean of those of the rows, a gradient, its factor, ε₁, and the least square to an
    /// update.
    factored_update: Fused<7>,
    /// A moment, a gradient, its factor and the least square to an update.
    update: Fused<4>,
    /// The parameter, its update, the norms of both, the root of the number of elements, ρ, 1 - lr λ, and a condition.
    applied: Fused<8>,
}

/// The new moments of a parameter, in the order of its states, and its update before clipping.
struct Update {
    moments: Vec<Tensor>,
    direction: Tensor,
}

fn moved<'g>(moment: Expr<'g>, squares: Expr<'g>, share: Expr<'g>) -> Expr<'g> {
    moment + (squares - moment) * share
}

impl AdafactorRule {
    fn new(settings: Settings) -> AdafactorRule {
        let Settings { scale_eps, clipping_threshold, is_relative, .. } = settings;
        let means = || Fused::new(|[g, factor]| scaled(g, factor).square().mean_group());
        AdafactorRule {
            settings,
            row_means: means().over(-1),
            column_means: means().over(-2),
            moved: Fused::new(|[moment, squares, share]| moved(moment, squares, share)),
            moved_by_squares: Fused::new(|[moment, g, factor, share]| {
                moved(moment, scaled(g, factor).square(), share)
            }),
            factored_update: Fused::new(|[row, column, mean, g, factor, eps, least]| {
                (row * column / mean.maximum(eps)).maximum(least).rsqrt() * scaled(g, factor)
            }),
            update: Fused::new(|[moment, g, factor, least]| {
                moment.maximum(least).rsqrt() * scaled(g, factor)
            }),
            applied: Fused::new(move |[p, update, norm, update_norm, root, rate, decay, condition]| {
                let p = widened(p);
                let rate = if is_relative { (norm / root).maximum(scale_eps) * rate } else { rate };
                let excess = (update_norm / (root * clipping_threshold)).maximum(1.0);
                condition.choose(p * decay - update * (rate / excess), p)
            }),
        }
    }

    /// Returns ε₁ of a parameter's dtype, and the least square that an update is divided by the root of. Neither is 0, so an
    /// update of zeros is 0.
    fn least(&self, dtype: DType) -> (f64, f64) {
        let smallest =
            if wide_dtype(dtype) == DType::F64 { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE.into() };
        let eps = self.settings.variance_eps.unwrap_or_else(|| machine_epsilon(dtype));
        (eps.max(smallest), (eps * eps).max(smallest))
    }

    fn update(
        &self,
        dtype: DType,
        moments: &[TensorMut<'_>],
        gradient: &Tensor,
        factor: TensorOperand<'_>,
        share: &Tensor,
    ) -> Result<Update> {
        let (eps, least) = self.least(dtype);
        match moments {
            [rows, columns] => {
                let row_means = self.row_means.run([gradient.into(), factor])?;
                let column_means = self.column_means.run([gradient.into(), factor])?;
                let rows = self.moved.run([&rows.current(), &row_means, share])?;
                let columns = self.moved.run([&columns.current(), &column_means, share])?;
                let mean = rows.mean_keepdim(-2)?;
                let operands = [
                    (&rows).into(),
                    (&columns).into(),
                    (&mean).into(),
                    gradient.into(),
                    factor,
                    eps.into(),
                    least.into(),
                ];
                let direction = self.factored_update.run(operands)?;
                Ok(Update { moments: vec![rows, columns], direction })
            }
            [variance] => {
                let variance = variance.current();
                let operands = [(&variance).into(), gradient.into(), factor, share.into()];
                let variance = self.moved_by_squares.run(operands)?;
                let operands = [(&variance).into(), gradient.into(), factor, least.into()];
                let direction = self.update.run(operands)?;
                Ok(Update { moments: vec![variance], direction })
            }
            _ => Err(Error::LengthMismatch { operation: "step", wanted: 1, found: moments.len() }),
        }
    }
}

impl StepRule for AdafactorRule {
    const NAME: &'static str = NAME;
    const COUNTS_STEPS: bool = true;
    const IS_WHOLE: bool = true;

    fn states(shape: &Shape) -> Result<Vec<(&'static str, Shape)>> {
        if shape.rank() < 2 {
            return Ok(shaped(&["variance"], shape));
        };
        let without = |from_the_end: usize| {
            let mut sizes = shape.to_vec();
            let at = sizes.len() - from_the_end;
            sizes[at] = 1;
            Shape::new(&sizes)
        };
        Ok(vec![("row_var", without(1)?), ("col_var", without(2)?)])
    }

    fn uses_states(&self) -> bool {
        true
    }

    fn hyperparameters(&self, learning_rate: f64, weight_decay: f64, step: i32) -> [f64; HYPERPARAMETERS] {
        let (step, settings) = (f64::from(step), &self.settings);
        let rate = if settings.is_relative { learning_rate.min(1.0 / step.sqrt()) } else { learning_rate };
        [rate, step.powf(settings.beta2_decay), 1.0 - learning_rate * weight_decay]
    }

    fn run(
        &self,
        mut elements: Vec<TensorMut<'_>>,
        gradient: &Tensor,
        [rate, share, decay]: &[Tensor; HYPERPARAMETERS],
        guard: Option<Guard<'_>>,
    ) -> Result<()> {
        let count = gradient.count();
        if count == 0 || elements.is_empty() {
            return Ok(());
        }
        let (condition, factor) = Guard::operands(guard);
        let mut states = elements.split_off(1);
        let [parameter] = outputs::<1>(elements)?;
        let dtype = parameter.dtype();
        // All that needs memory comes before the first change.
        let Update { moments, direction } = self.update(dtype, &states, gradient, factor, share)?;
        let update_norm = direction.norm_all(2.0)?;
        let norm = parameter.current().cast(wide_dtype(dtype))?.norm_all(2.0)?;
        let root = (count as f64).sqrt();
        let others = [
            (&direction).into(),
            (&norm).into(),
            (&update_norm).into(),
            root.into(),
            rate.into(),
            decay.into(),
            condition,
        ];
        self.applied.run_in_place([parameter], others)?;
        for (state, moment) in states.iter_mut().zip(&moments) {
            replace_state(state.reborrow(), moment, condition)?;
        }
        Ok(())
    }
}

/// Adafactor, whose second moments of a matrix are those of its rows and columns: (rows + columns) numbers in place of
/// rows × columns. It is PyTorch's `torch.optim.Adafactor`.
///
/// With the step t, the gradient G, b = t^beta2_decay, and means over the last axis and the one before it:
///
/// - R = (1 - b) R + b mean(G², -1), C = (1 - b) C + b mean(G², -2), V = R C / max(mean(R, -2), ε₁); of a vector,
///   V = (1 - b) V + b G²
/// - U = G / sqrt(max(V, ε₁²)), ρ = min(lr, 1 / sqrt(t)), α = max(ε₂, RMS(p)) ρ
/// - p = p (1 - lr λ) - α U / max(1, RMS(U) / d)
///
/// Parameters in [`Parameters`](crate::nn::Parameters) have one step each, since the means are those of a parameter.
///
/// ```
/// use selvedge::nn::{Adafactor, Optimizer, Variable};
/// use selvedge::{Device, Tensor};
/// let x = Variable::with_grad(Tensor::new([[3.0f64, 1.0], [-1.0, 2.0]], &Device::cpu())?)?;
/// let mut optimizer = Adafactor::new(vec![x.clone()], 0.1)?;
/// x.square()?.sum_all()?.backward()?;
/// optimizer.step()?;
/// assert!(x.square()?.sum_all()?.tensor().item::<f64>()? < 15.0);
/// assert_eq!(optimizer.state_dict()?["0.row_var"].shape().to_vec(), [2, 1]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug)]
pub struct Adafactor(OptimizerCore<AdafactorRule>);

impl Adafactor {
    /// Creates an optimizer with a decay of β₂ of -0.8, an ε₁ of the machine epsilon of a parameter's dtype, an ε₂ of 1e-3, a clipping
    /// threshold of 1, relative steps and no weight decay.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a learning rate that is negative or not finite, for no parameters, and for parameters other
    /// than leaves with a gradient; [`Error::DTypeMismatch`] for complex ones.
    pub fn new(parameters: Vec<Variable>, learning_rate: f64) -> Result<Adafactor> {
        check_real::<AdafactorRule>(&parameters)?;
        let rule = AdafactorRule::new(Settings {
            beta2_decay: -0.8,
            variance_eps: None,
            scale_eps: 1e-3,
            clipping_threshold: 1.0,
            is_relative: true,
        });
        OptimizerCore::new(rule, parameters, learning_rate).map(Adafactor)
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Adafactor {
        let mut settings = self.0.rule.settings;
        change(&mut settings);
        self.0.rule = AdafactorRule::new(settings);
        self
    }

    /// Sets the power of the step that is the share of the new squares in the second moments.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number above 0 or not finite.
    pub fn with_beta2_decay(self, beta2_decay: f64) -> Result<Adafactor> {
        if !(beta2_decay.is_finite() && beta2_decay <= 0.0) {
            let found = format!("a beta2_decay of {beta2_decay}");
            return Err(Error::invalid(NAME, found, "a finite number that is at most 0"));
        }
        Ok(self.with(|settings| settings.beta2_decay = beta2_decay))
    }

    /// Sets ε₁, the least root of a second moment (`None` is the machine epsilon of the parameter's dtype), and ε₂, the least root mean
    /// square of a parameter for the size of its steps.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number that is negative or not finite.
    pub fn with_eps(self, variance_eps: Option<f64>, scale_eps: f64) -> Result<Adafactor> {
        check_non_negative(NAME, "an eps of the variance", variance_eps.unwrap_or(0.0))?;
        check_non_negative(NAME, "an eps of the scale", scale_eps)?;
        Ok(self.with(|settings| {
            settings.variance_eps = variance_eps;
            settings.scale_eps = scale_eps;
        }))
    }

    /// Sets d: an update whose root mean square exceeds it is scaled down to it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number below 1 or not finite.
    pub fn with_clipping_threshold(self, clipping_threshold: f64) -> Result<Adafactor> {
        if !(clipping_threshold.is_finite() && clipping_threshold >= 1.0) {
            let found = format!("a clipping threshold of {clipping_threshold}");
            return Err(Error::invalid(NAME, found, "a finite number that is at least 1"));
        }
        Ok(self.with(|settings| settings.clipping_threshold = clipping_threshold))
    }

    /// Sets whether the size of a step is relative: the smaller of lr and 1 / sqrt(t), times the root mean square of the parameter.
    /// Otherwise it is lr, as with `relative_step=False, scale_parameter=False` of transformers.
    #[must_use]
    pub fn with_relative_step(self, is_relative: bool) -> Adafactor {
        self.with(|settings| settings.is_relative = is_relative)
    }

    /// Sets the weight decay λ.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number that is negative or not finite.
    pub fn with_weight_decay(mut self, weight_decay: f64) -> Result<Adafactor> {
        check_non_negative(NAME, "a weight decay", weight_decay)?;
        self.0.weight_decay = weight_decay;
        Ok(self)
    }

    /// Limits the weight decay to parameters of at least so many dimensions. With 2 it leaves out biases and the weights of
    /// norms.
    #[must_use]
    pub fn with_min_decay_rank(mut self, rank: usize) -> Adafactor {
        self.0.min_decay_rank = rank;
        self
    }
}

super::optimizer!(Adafactor);
