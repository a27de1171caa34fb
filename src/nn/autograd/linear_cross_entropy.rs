//! [`linear_cross_entropy`]: the cross-entropy of a product, by chunks of its rows.
//!
//! The logits of all rows are far larger than rows and weight: a vocabulary of 50,000 beside 768 features. A chunk has so many
//! rows that its logits take about the memory of all inputs (the rule of Liger's fused loss). With one loss for all rows, the
//! forward computes the gradients of each chunk beside its losses, and the backward multiplies them by the gradient of the
//! loss; so the logits are computed once. They are gradients of the sum of losses, whose elements are no small numbers that
//! f16 loses. With a loss for each row, the backward computes the logits again.
//!
//! Tests: `tests/nn/losses.rs`.

use std::sync::OnceLock;

use super::variable::Variable;
use crate::error::{Error, Result};
use crate::nn::precision::{wide_dtype, widened};
use crate::tensor::{CrossEntropyOptions, Device, Fused, LossReduction, Matmul, Padding, Tensor};
use crate::types::DType;

const OPERATION: &str = "linear_cross_entropy";

/// Returns a gradient times a factor that all its elements share, rounded once.
fn scaled(gradient: &Tensor, factor: &Tensor) -> Result<Tensor> {
    static FUNCTION: OnceLock<Fused<2>> = OnceLock::new();
    let product = || Fused::new(|[x, factor]| (widened(x) * widened(factor)).cast(x.dtype()));
    FUNCTION.get_or_init(product).run([gradient, factor])
}

/// The logits of a chunk on a device. Each chunk adds to the gradient of the weight, which is read and written again for it.
const DEVICE_CHUNK: usize = 1 << 29;
/// The multiple of classes, in 16 bits on a device, at which all rows of logits begin at multiples of 16 bytes and tiles of products end.
const CLASS_MULTIPLE: usize = 64;

/// Returns the rows of a chunk, whose logits take about the memory of all inputs, on a device more.
fn rows_of_chunk(rows: usize, features: usize, classes: usize, device: &Device) -> usize {
    let chunks = classes.div_ceil(features.max(1)).max(1);
    let rows = rows.div_ceil(chunks).next_power_of_two();
    match device.is_cpu() {
        true => rows,
        false => rows.max((DEVICE_CHUNK / classes.max(1)).max(1).next_power_of_two()),
    }
}

/// Returns a weight (features, classes) for products on a device: with columns of 0 behind the classes if their rows would begin anywhere.
fn padded(weight: &Tensor) -> Result<Tensor> {
    let classes = weight.shape()[1];
    let padding = classes.next_multiple_of(CLASS_MULTIPLE) - classes;
    if weight.device().is_cpu() || weight.dtype().size() != 2 || padding == 0 {
        return Ok(weight.clone());
    }
    // Rows of a transposed weight are contiguous, so they are copied as they are.
    weight.t()?.pad(&[(0, padding), (0, 0)], Padding::ZEROS)?.t()
}

/// Rows of inputs, a weight (features, classes), and a label for each row.
struct Operands<'a> {
    rows: &'a Tensor,
    weight: &'a Tensor,
    labels: &'a Tensor,
    options: CrossEntropyOptions,
}

/// The losses of rows, and the gradients of rows and weight that were wanted.
struct Chunks {
    losses: Tensor,
    of_rows: Option<Tensor>,
    of_weight: Option<Tensor>,
}

impl Operands<'_> {
    /// Returns whether each label counts.
    fn is_counted(&self) -> Result<Tensor> {
        self.labels.cast(DType::I64)?.ne(self.options.ignore_index)
    }

    /// Computes losses and wanted gradients of the sum of the losses; with `scale`, of the sum of each loss times a number, which
    /// is not read for ignored labels.
    fn run(&self, wanted: [bool; 2], scale: Option<&Tensor>) -> Result<Chunks> {
        let Operands { rows, weight, labels, .. } = *self;
        let (dtype, device) = (rows.dtype(), rows.device());
        let wide = wide_dtype(dtype);
        let (&[count, features], &[_, classes]) = (&rows.shape()[..], &weight.shape()[..]) else {
            return Err(Error::invalid(OPERATION, format!("rows of shape {}", rows.shape()), "a matrix"));
        };
        let mut losses = Tensor::zeros(&[count], wide, &device)?;
        let [mut of_rows, mut of_weight] = [None, None];
        if wanted[0] {
            of_rows = Some(Tensor::zeros(&[count, features], dtype, &device)?);
        }
        let weight = &padded(weight)?;
        let columns = weight.shape()[1];
        if wanted[1] {
            // The sums of all chunks are rounded once.
            of_weight = Some(Tensor::zeros(&[features, columns], wide, &device)?);
        }
        let options = CrossEntropyOptions { reduction: LossReduction::None, ..self.options };
        // Whole rows are read and written as vectors. Smoothing would count the columns behind the classes.
        let is_masked = columns > classes && options.label_smoothing == 0.0;
        if is_masked {
            // The program would take a column behind the classes for one.
            labels.check_classes(classes, options.ignore_index)?;
        }
        let read = if is_masked { columns } else { classes };
        // The gradient of an ignored label is 0, also times infinity.
        let scale = scale.map(|scale| self.is_counted()?.choose(&scale.cast(wide)?, 0.0)?.unsqueeze(1));
        let scale = scale.transpose()?;
        let step = rows_of_chunk(count, features, classes, &device);
        for start in (0..count).step_by(step) {
            let length = step.min(count - start);
            let chunk = |x: &Tensor| x.narrow(0, start, length);
            let (x, labels) = (chunk(rows)?, chunk(labels)?);
            let mut logits = x.matmul(weight)?;
            let range = start as isize..(start + length) as isize;
            if is_masked {
                logits.slice_mut(1, classes as isize..)?.fill(f64::NEG_INFINITY)?;
            }
            if !wanted.contains(&true) {
                let of_chunk = logits.narrow(1, 0, read)?.wide_cross_entropy(&labels, options)?;
                losses.slice_mut(0, range)?.assign(&of_chunk)?;
                continue;
            }
            // The gradients behind the classes are 0: of logits of 0 that are not read, or of -inf.
            let mut of_classes = logits.slice_mut(1, 0..read as isize)?;
            let of_chunk = of_classes.wide_cross_entropy_with_gradient(&labels, options)?;
            losses.slice_mut(0, range.clone())?.assign(&of_chunk)?;
            let mut gradient = logits;
            if let Some(scale) = &scale {
                gradient = (&gradient * &chunk(scale)?)?.cast(dtype)?;
            }
            if let Some(of_rows) = &mut of_rows {
                let target = of_rows.slice_mut(0, range)?;
                Matmul::new().add_to(target, 0, &gradient, &weight.transpose(0, 1)?)?;
            }
            if let Some(of_weight) = &mut of_weight {
                let beta = if start == 0 { 0 } else { 1 };
                Matmul::new().add_to(of_weight, beta, &x.transpose(0, 1)?, &gradient)?;
            }
        }
        let of_weight = of_weight.map(|gradient| gradient.narrow(1, 0, classes)).transpose()?;
        Ok(Chunks { losses, of_rows, of_weight })
    }
}

/// Returns [`cross_entropy`](crate::nn::cross_entropy) of the logits `input` W without holding them all: loss and gradients are
/// computed for some rows at a time, whose logits take about the memory of `input`. `weight` has shape (features, classes),
/// as that of [`Linear`](crate::nn::Linear), and the labels have the shape of `input` without its last axis. The loss of f16
/// and bf16 is computed in f32, from logits of their dtype, and is of f32.
///
/// With a loss for all rows and a gradient required, the call computes the gradients of `input` and `weight` too, and holds
/// them until the backward.
///
/// ```
/// use selvedge::nn::{CrossEntropyOptions, Variable, linear_cross_entropy};
/// use selvedge::{DType, Device, Tensor};
/// let device = Device::cpu();
/// let hidden = Variable::with_grad(Tensor::ones(&[2, 3], DType::F32, &device)?)?;
/// let head = Variable::with_grad(Tensor::zeros(&[3, 4], DType::F32, &device)?)?;
/// let labels = Tensor::new([0i64, 3], &device)?;
/// let loss = linear_cross_entropy(&hidden, &head, &labels, CrossEntropyOptions::default())?;
/// assert!((loss.tensor().item::<f32>()? - 4f32.ln()).abs() < 1e-6);
/// loss.backward()?;
/// assert_eq!(head.grad().unwrap().shape()[..], [3, 4]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for shapes that do not meet; otherwise as [`cross_entropy`](crate::nn::cross_entropy) and
/// [`Variable::matmul`].
pub fn linear_cross_entropy(
    input: &Variable,
    weight: &Variable,
    labels: &Tensor,
    options: CrossEntropyOptions,
) -> Result<Variable> {
    let (x, head) = (input.tensor(), weight.tensor());
    let (shape, of_weight) = (*x.shape(), *head.shape());
    let fits = shape.rank() > 0 && of_weight.rank() == 2 && shape.last() == of_weight.first();
    if !fits {
        let found = format!("an input of shape {shape} and a weight of shape {of_weight}");
        return Err(Error::invalid(
            OPERATION,
            found,
            "a weight (features, classes) for the input's last axis",
        ));
    }
    let leading = &shape[..shape.rank() - 1];
    if leading != &labels.shape()[..] {
        let found = format!("an input of shape {shape} and labels of shape {}", labels.shape());
        return Err(Error::invalid(OPERATION, found, "labels of the input's shape without its last axis"));
    }
    let features = of_weight[0] as isize;
    let count = leading.iter().product::<usize>() as isize;
    let matrix = move |x: &Tensor| x.reshape(&[count, features]);
    let flat = labels.reshape(&[count])?;
    let rows = matrix(&x)?;
    let operands = Operands { rows: &rows, weight: &head, labels: &flat, options };
    let parents = vec![input.tracked(), weight.tracked()];
    let wanted = [parents[0].is_some(), parents[1].is_some()];
    let sizes: Vec<isize> = shape.iter().map(|&size| size as isize).collect();
    if options.reduction == LossReduction::None {
        let losses = operands.run([false; 2], None)?.losses.reshape(&sizes[..sizes.len() - 1])?;
        let saved = (input.save(), weight.save());
        return Ok(Variable::new(losses).recorded(OPERATION, parents, |_| {
            Box::new(move |gradient| {
                let (rows, weight) = (matrix(&saved.0.tensor(OPERATION)?)?, saved.1.tensor(OPERATION)?);
                let operands = Operands { rows: &rows, weight: &weight, labels: &flat, options };
                let found = operands.run(wanted, Some(&gradient.reshape(&[count])?))?;
                let of_rows = found.of_rows.map(|gradient| gradient.reshape(&sizes)).transpose()?;
                Ok(vec![of_rows, found.of_weight])
            })
        }));
    }
    let Chunks { losses, of_rows, of_weight } = operands.run(wanted, None)?;
    let of_batch = labels.shape().first().copied().unwrap_or(1) as f64;
    let divisor = match options.reduction {
        LossReduction::Mean => Some(operands.is_counted()?.count_nonzero_all()?.cast(losses.dtype())?),
        LossReduction::BatchMean => Some(Tensor::full(&[], of_batch, losses.dtype(), &losses.device())?),
        LossReduction::Sum | LossReduction::None => None,
    };
    let sum = losses.sum_all()?;
    let result = match &divisor {
        Some(divisor) => (&sum / divisor)?,
        None => sum,
    };
    Ok(Variable::new(result).recorded(OPERATION, parents, |_| {
        Box::new(move |gradient| {
            let factor = match &divisor {
                // Without a label that counts the gradients are 0, and stay 0.
                Some(divisor) => divisor.eq(0)?.choose(0, &(gradient / divisor)?)?,
                None => gradient.clone(),
            };
            let scaled =
                |found: &Option<Tensor>| found.as_ref().map(|found| scaled(found, &factor)).transpose();
            let of_rows = scaled(&of_rows)?.map(|gradient| gradient.reshape(&sizes)).transpose()?;
            Ok(vec![of_rows, scaled(&of_weight)?])
        })
    }))
}
