//! Reductions of variables.
//!
//! Each is the form that keeps the folded axes, with a rule, and a view without them.

use super::recordable::recorded_linear;
use super::tape::BackwardRule;
use super::variable::Variable;
use crate::error::Result;
use crate::nn::precision::{DividedByCount, divided_by_counts, wide_dtype, widened};
use crate::tensor::{Axes, Tensor, fuse};
use crate::types::Shape;

/// Returns whether each axis is folded. The axes are those of a reduction that succeeded.
fn folded(shape: &Shape, axes: Axes<'_>) -> Result<Vec<bool>> {
    let mut is_folded = vec![axes == Axes::All; shape.rank()];
    let axes = match &axes {
        Axes::All => &[][..],
        Axes::One(axis) => std::slice::from_ref(axis),
        Axes::Of(axes) => axes,
    };
    for &axis in axes {
        is_folded[shape.axis("a reduction", axis)?] = true;
    }
    Ok(is_folded)
}

/// The elements that one result folds.
fn row(shape: &Shape, axes: Axes<'_>) -> Result<usize> {
    let is_folded = folded(shape, axes)?;
    Ok(shape.iter().zip(is_folded).filter(|(_, is_folded)| *is_folded).map(|(size, _)| *size).product())
}

/// Returns which elements are the extreme of their row: those that equal it, and the NaNs of a row whose extreme is NaN.
fn is_extreme(x: &Tensor, extreme: &Tensor) -> Result<Tensor> {
    fuse([x, extreme], |[x, extreme]| x.eq(extreme) | x.is_nan())
}

impl Variable {
    /// Records a reduction that kept its axes.
    fn reduced(
        &self,
        operation: &'static str,
        result: Tensor,
        rule: impl FnOnce(&Variable) -> BackwardRule,
    ) -> Variable {
        Variable::new(result).constant_by(self.stopped_by()).recorded(operation, vec![self.tracked()], rule)
    }

    /// Removes the folded axes from a reduction that kept them.
    fn without(&self, x: &Variable, axes: Axes<'_>) -> Result<Variable> {
        let shape = x.shape();
        let is_folded = folded(&shape, axes)?;
        let rest = shape.iter().zip(is_folded).filter(|(_, is_folded)| !is_folded);
        self.reshape(&rest.map(|(&size, _)| size as isize).collect::<Vec<_>>())
    }

    fn sum_over(&self, axes: Axes<'_>) -> Result<Variable> {
        let x = self.tensor();
        let result = x.sum_keepdim(axes)?;
        let shape = *x.shape();
        Ok(recorded_linear!(self, "sum", result, shape, |shape, gradient| gradient.expand(shape)))
    }

    fn mean_over(&self, axes: Axes<'_>) -> Result<Variable> {
        let x = self.tensor();
        let result = x.mean_keepdim(axes)?;
        let saved = (*x.shape(), row(x.shape(), axes)?);
        Ok(recorded_linear!(self, "mean", result, saved, |(shape, count), gradient| {
            gradient.divided_by_count(*count)?.expand(shape)
        }))
    }

    /// Gives equal shares of the gradient to all elements that are the extreme.
    fn extreme_over(&self, operation: &'static str, result: Tensor, axes: Axes<'_>) -> Result<Variable> {
        let axes = self.folded_axes(axes)?;
        let x = self.save();
        Ok(self.reduced(operation, result, |result| {
            let result = result.save();
            Box::new(move |gradient| {
                let (x, extreme) = (x.tensor(operation)?, result.tensor(operation)?);
                let is_extreme = is_extreme(&x, &extreme)?;
                let count = is_extreme.count_nonzero_keepdim(&axes[..])?;
                let share = divided_by_counts(gradient, &count)?;
                Ok(vec![Some(is_extreme.choose(&share, 0.0)?)])
            })
        }))
    }

    /// 2 (x - mean) / (n - correction), and for the root of it half of that over the root, 0 where that is 0.
    fn variance_over(&self, is_root: bool, axes: Axes<'_>, correction: usize) -> Result<Variable> {
        let tensor = self.tensor();
        let (operation, result) = match is_root {
            true => ("std", tensor.std_keepdim(axes, correction)?),
            false => ("var", tensor.var_keepdim(axes, correction)?),
        };
        let divisor = row(tensor.shape(), axes)? as f64 - correction as f64;
        let axes = self.folded_axes(axes)?;
        let x = self.save();
        Ok(self.reduced(operation, result, |result| {
            let root = is_root.then(|| result.save());
            Box::new(move |gradient| {
                let x = x.tensor(operation)?;
                let mean = x.unrounded_mean_keepdim(&axes[..])?;
                let wide = |x: &Tensor| x.cast(wide_dtype(x.dtype()));
                let gradient = wide(gradient)?;
                let of_elements = match &root {
                    None => fuse([&x, &mean, &(&gradient * (2.0 / divisor))?], |[x, mean, scale]| {
                        ((widened(x) - mean) * scale).cast(x.dtype())
                    })?,
                    Some(root) => {
                        let (root, scale) = (wide(&root.tensor(operation)?)?, (&gradient / divisor)?);
                        // Deviations are at most √n times the root, whatever it is.
                        fuse([&x, &mean, &root, &scale], |[x, mean, root, scale]| {
                            let share = root.eq(0.0).choose(0.0, (widened(x) - mean) / root);
                            (share * scale).cast(x.dtype())
                        })?
                    }
                };
                Ok(vec![Some(of_elements)])
            })
        }))
    }

    /// The gradient of an element times the product of the others.
    fn product_over(&self, axes: Axes<'_>) -> Result<Variable> {
        const OPERATION: &str = "prod";
        let result = self.tensor().prod_keepdim(axes)?;
        let axes = self.folded_axes(axes)?;
        let x = self.save();
        Ok(self.reduced(OPERATION, result, |_| {
            Box::new(move |gradient| Ok(vec![Some(x.tensor(OPERATION)?.prod_gradient(gradient, &axes)?)]))
        }))
    }

    /// (|x| / norm)^(p - 1) with the sign of x, and 0 for zeros. Equal extremes have equal shares.
    fn norm_over(&self, p: f64, axes: Axes<'_>) -> Result<Variable> {
        const OPERATION: &str = "norm";
        let result = self.tensor().norm_keepdim(p, axes)?;
        let axes = self.folded_axes(axes)?;
        let x = self.save();
        Ok(self.reduced(OPERATION, result, |result| {
            let norm = result.save();
            Box::new(move |gradient| {
                let (x, norm) = (x.tensor(OPERATION)?, norm.tensor(OPERATION)?);
                let found = if p == 2.0 {
                    // A quotient that is at most 1, whatever the norm.
                    let share = norm.eq(0)?.choose(0, &(&x / &norm)?)?;
                    (&share * gradient)?
                } else if p.is_infinite() {
                    let is_extreme = is_extreme(&x.abs()?, &norm)?;
                    let count = is_extreme.count_nonzero_keepdim(&axes[..])?;
                    let share = divided_by_counts(gradient, &count)?;
                    (&x.sign()? * &is_extreme.choose(&share, 0)?)?
                } else if p == 0.0 {
                    // A count is constant between jumps.
                    x.zeros_like()?
                } else {
                    let share = (&x.abs()? / &norm)?.pow(p - 1.0)?;
                    let of_others = (&x.sign()? * &(&share * gradient)?)?;
                    x.eq(0)?.choose(0, &of_others)?
                };
                Ok(vec![Some(found)])
            })
        }))
    }

    /// Returns the folded axes as a list.
    fn folded_axes(&self, axes: Axes<'_>) -> Result<Vec<isize>> {
        let is_folded = folded(&self.shape(), axes)?;
        Ok((0..is_folded.len()).filter(|&axis| is_folded[axis]).map(|axis| axis as isize).collect())
    }

    fn logsumexp_over(&self, axes: Axes<'_>) -> Result<Variable> {
        const OPERATION: &str = "logsumexp";
        let result = self.tensor().logsumexp_keepdim(axes)?;
        let axes = self.folded_axes(axes)?;
        let x = self.save();
        Ok(self.reduced(OPERATION, result, |result| {
            let result = result.save();
            Box::new(move |gradient| {
                let (x, result) = (x.tensor(OPERATION)?, result.tensor(OPERATION)?);
                // The elements that equal an infinite result share it.
                let is_infinite = fuse([&x, &result], |[x, result]| x.eq(result) & result.is_infinite())?;
                let count = is_infinite.count_nonzero_keepdim(&axes[..])?;
                let gradient = divided_by_counts(gradient, &count.maximum(1)?)?;
                let share = fuse([&x, &result, &gradient], |[x, result, gradient]| {
                    x.eq(result).choose(0.0, x - result).exp() * gradient
                })?;
                Ok(vec![Some(share)])
            })
        }))
    }
}

macro_rules! reductions {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident, $name_keepdim:ident, $name_all:ident [$($first:ident: $first_type:ty)?] [$($last:ident: $last_type:ty)?] |$x:ident, $axes:ident| $reduce:expr;
    )*) => {
        /// Reductions, in the three forms and with the axes of [`Tensor`]'s.
        ///
        /// # Errors
        ///
        /// As the same reduction of [`Tensor`].
        impl Variable {
            $(
                $(#[doc = $doc])*
                #[allow(clippy::missing_errors_doc)]
                pub fn $name<'a>(&self, $($first: $first_type,)? axes: impl Into<Axes<'a>> $(, $last: $last_type)?) -> Result<Variable> {
                    let ($x, $axes) = (self, axes.into());
                    $reduce?.without(self, $axes)
                }

                #[doc = concat!("Reduces as [`", stringify!($name), "`](Self::", stringify!($name), "), and leaves the folded axes with size 1.")]
                #[allow(clippy::missing_errors_doc)]
                pub fn $name_keepdim<'a>(&self, $($first: $first_type,)? axes: impl Into<Axes<'a>> $(, $last: $last_type)?) -> Result<Variable> {
                    let ($x, $axes) = (self, axes.into());
                    $reduce
                }

                #[doc = concat!("Reduces every axis as [`", stringify!($name), "`](Self::", stringify!($name), "), to a variable without dimensions.")]
                #[allow(clippy::missing_errors_doc)]
                pub fn $name_all(&self $(, $first: $first_type)? $(, $last: $last_type)?) -> Result<Variable> {
                    let ($x, $axes) = (self, Axes::All);
                    $reduce?.without(self, $axes)
                }
            )*
        }
    };
}

reductions! {
    /// Returns the sum.
    sum, sum_keepdim, sum_all [] [] |x, axes| x.sum_over(axes);
    /// Returns the product. Its gradient is that of the product of the other elements, whatever the product itself is.
    prod, prod_keepdim, prod_all [] [] |x, axes| x.product_over(axes);
    /// Returns the mean.
    mean, mean_keepdim, mean_all [] [] |x, axes| x.mean_over(axes);
    /// Returns the largest element. Equal ones share the gradient; if it is NaN, those that are NaN.
    max, max_keepdim, max_all [] [] |x, axes| x.extreme_over("max", x.tensor().max_keepdim(axes)?, axes);
    /// Returns the smallest element. Equal ones share the gradient; if it is NaN, those that are NaN.
    min, min_keepdim, min_all [] [] |x, axes| x.extreme_over("min", x.tensor().min_keepdim(axes)?, axes);
    /// Returns the variance, with the count less `correction` as the divisor.
    var, var_keepdim, var_all [] [correction: usize] |x, axes| x.variance_over(false, axes, correction);
    /// Returns the standard deviation. Its gradient is 0 where it is 0.
    std, std_keepdim, std_all [] [correction: usize] |x, axes| x.variance_over(true, axes, correction);
    /// Returns the p-norm (sum |x|^p)^(1/p), as [`Tensor::norm`]. Its gradient is 0 for elements that are 0; equal extremes share
    /// that of an infinite p.
    norm, norm_keepdim, norm_all [p: f64] [] |x, axes| x.norm_over(p, axes);
    /// Returns the logarithm of the sum of exponentials. Elements that equal an infinite result share its gradient.
    logsumexp, logsumexp_keepdim, logsumexp_all [] [] |x, axes| x.logsumexp_over(axes);
}
