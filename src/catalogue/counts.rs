//! Information measures from counts: bins of floats, joint histograms, mutual information, conditional and transfer entropy.
//!
//! Counts are exact integers. The measures are computed in f64; a cell whose share of the total is at most
//! [`NEGLIGIBLE`](super::NEGLIGIBLE) is dropped, and a table of zeros gives 0.
//!
//! Tests: `tests/catalogue/counts.rs`.

use std::sync::LazyLock;

use super::information::negligible;
use super::operands::check_floats;
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor, fuse};
use crate::types::DType;

/// Returns -share of a cell times a logarithm; 0 for an empty or negligible cell.
fn term<'g>(cell: Expr<'g>, total: Expr<'g>, quotient: Expr<'g>) -> Expr<'g> {
    let share = cell / total;
    // The share of an empty table is NaN.
    (cell.eq(0.0) | negligible(share)).choose(0.0, share * quotient.log())
}

/// Of the cells, the sums of rows and of columns, and the total.
static MUTUAL: LazyLock<Fused<4>> = LazyLock::new(|| {
    Fused::new(|[cell, row, column, total]| term(cell, total, (cell / row) * (total / column)).sum_group())
        .over(&[0, 1])
});
/// Of the cells, the sums of rows, and the total.
static CONDITIONAL: LazyLock<Fused<3>> = LazyLock::new(|| {
    Fused::new(|[cell, row, total]| (-term(cell, total, cell / row)).sum_group()).over(&[0, 1])
});
/// Of the cells, the sums over the next, over the source, over both, and the total.
static TRANSFER: LazyLock<Fused<5>> = LazyLock::new(|| {
    Fused::new(|[cell, pasts, targets, past, total]| {
        term(cell, total, (cell / pasts) / (targets / past)).sum_group()
    })
    .over(&[0, 1, 2])
});

/// Returns the bin of each element as i64: `bins` bins of equal width from the first to the second number of `range`.
/// Elements outside go to the first or the last bin. Without a range, the bins span the least to the greatest element; equal
/// elements are all in bin 0.
///
/// ```
/// use selvedge::catalogue::discretize;
/// use selvedge::{Device, Tensor};
/// let x = Tensor::new([0.0f32, 0.6, 1.0, -3.0, 9.0], &Device::cpu())?;
/// assert_eq!(discretize(&x, 2, Some((0.0, 1.0)))?.to_vec::<i64>()?, [0, 1, 1, 0, 1]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for elements that are not floats; [`Error::InvalidArgument`] for NaN, no bins, a range that is
/// not finite or does not increase, and, without a range, no elements or infinite ones; errors of memory.
pub fn discretize(x: &Tensor, bins: usize, range: Option<(f64, f64)>) -> Result<Tensor> {
    const OPERATION: &str = "discretize";
    check_floats(OPERATION, &[x])?;
    let (low, width) = bin_range(OPERATION, &[x], bins, range)?;
    fuse((x, low, width, bins as f64), |[x, low, width, bins]| bin(x, low, width, bins).cast(DType::I64))
}

/// Returns the bin of an element, in f64.
fn bin<'g>(x: Expr<'g>, low: Expr<'g>, width: Expr<'g>, bins: Expr<'g>) -> Expr<'g> {
    let [x, low, width, bins] = [x, low, width, bins].map(|x| x.cast(DType::F64));
    ((x - low) / width * bins).floor().clamp(0.0, bins - 1.0)
}

/// Returns the least number and the width of a range, after checks of the elements. A width of 0 becomes 1.
fn bin_range(
    operation: &'static str,
    tensors: &[&Tensor],
    bins: usize,
    range: Option<(f64, f64)>,
) -> Result<(f64, f64)> {
    if bins == 0 || bins > 1 << 31 {
        return Err(Error::invalid(operation, format!("{bins} bins"), "1 to 2^31 bins"));
    }
    let Some((low, high)) = range else {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for x in tensors {
            let (least, greatest) = x.aminmax(..)?;
            for bound in [least, greatest] {
                let bound: f64 = bound.cast(DType::F64)?.item()?;
                if !bound.is_finite() {
                    return Err(Error::invalid(operation, format!("an element {bound}"), "finite elements"));
                }
                (low, high) = (low.min(bound), high.max(bound));
            }
        }
        let width = high - low;
        if !width.is_finite() {
            return Err(Error::invalid(
                operation,
                format!("elements from {low} to {high}"),
                "a finite width",
            ));
        }
        return Ok((low, if width == 0.0 { 1.0 } else { width }));
    };
    if !(low < high && (high - low).is_finite()) {
        let found = format!("a range from {low} to {high}");
        return Err(Error::invalid(operation, found, "a finite range that increases"));
    }
    for x in tensors {
        if x.is_nan()?.any_all()?.item::<bool>()? {
            return Err(Error::invalid(operation, "an element that is NaN", "numbers"));
        }
    }
    Ok((low, high - low))
}

/// Returns the counts of pairs as i64, with a row for each bin of `x` and a column for each bin of `y`. The bins of both axes
/// are those of [`discretize`] with one common range.
///
/// # Errors
///
/// As [`discretize`]; [`Error::InvalidArgument`] for tensors of different shapes too.
pub fn histogram_2d(x: &Tensor, y: &Tensor, bins: usize, range: Option<(f64, f64)>) -> Result<Tensor> {
    const OPERATION: &str = "histogram_2d";
    check_floats(OPERATION, &[x, y])?;
    if x.shape() != y.shape() {
        let found = format!("x of shape {} and y of shape {}", x.shape(), y.shape());
        return Err(Error::invalid(OPERATION, found, "tensors of one shape"));
    }
    let (low, width) = bin_range(OPERATION, &[x, y], bins, range)?;
    let bins_of_values = fuse((x, y, low, width, bins as f64), |[x, y, low, width, bins]| {
        let row = bin(x, low, width, bins) * bins.cast(DType::F64);
        (row + bin(y, low, width, bins)).cast(DType::I64)
    })?;
    let cells = cells(OPERATION, bins, 2)?;
    bins_of_values.ravel()?.bincount(cells)?.reshape(&[bins as isize, bins as isize])
}

/// Returns the number of cells of a table.
fn cells(operation: &'static str, states: usize, axes: usize) -> Result<usize> {
    let cells = u32::try_from(axes).ok().and_then(|axes| states.checked_pow(axes));
    // Positions are exact in f64.
    cells.filter(|&cells| cells as u64 <= 1 << 53).ok_or_else(|| {
        Error::invalid(operation, format!("a table of {states}^{axes} cells"), "at most 2^53 cells")
    })
}

/// Returns a table in f64, after a check of its rank.
fn table(operation: &'static str, counts: &Tensor, rank: usize) -> Result<Tensor> {
    let dtype = counts.dtype();
    if dtype.is_complex() || dtype == DType::Bool || dtype.is_storage_only() {
        let wanted = "counts or probabilities, as integers or floats".to_owned();
        return Err(Error::DTypeMismatch { operation, wanted, found: dtype.to_string() });
    }
    if counts.rank() != rank {
        let found = format!("a table of shape {}", counts.shape());
        return Err(Error::invalid(operation, found, format!("{rank} dimensions")));
    }
    counts.cast(DType::F64)
}

/// Returns the result of a table without dimensions: in the table's dtype, or in f64 for integers.
fn measure(value: &Tensor, counts: &Tensor) -> Result<Tensor> {
    let dtype = if counts.dtype().is_float() { counts.dtype() } else { DType::F64 };
    value.squeeze_all()?.cast(dtype)
}

/// Returns the mutual information Σ p_xy ln(p_xy / (p_x p_y)) of a table of counts or joint probabilities, which it divides
/// by their sum.
///
/// ```
/// use selvedge::catalogue::mutual_information;
/// use selvedge::{Device, Tensor};
/// let joint = Tensor::new([[3i64, 0], [0, 3]], &Device::cpu())?;
/// assert!((mutual_information(&joint)?.item::<f64>()? - 2f64.ln()).abs() < 1e-15);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for elements that are neither integers nor floats; [`Error::InvalidArgument`] for another number
/// of dimensions than 2; errors of memory.
pub fn mutual_information(joint: &Tensor) -> Result<Tensor> {
    let cells = table("mutual_information", joint, 2)?;
    let (rows, columns) = (cells.sum_keepdim(1)?, cells.sum_keepdim(0)?);
    measure(&MUTUAL.run([&cells, &rows, &columns, &cells.sum_all()?])?, joint)
}

/// Returns the conditional entropy H(Y|X) = -Σ p_xy ln(p_xy / p_x) of such a table with a row for each x and a column for each
/// y.
///
/// # Errors
///
/// As [`mutual_information`].
pub fn conditional_entropy(joint: &Tensor) -> Result<Tensor> {
    let cells = table("conditional_entropy", joint, 2)?;
    measure(&CONDITIONAL.run([&cells, &cells.sum_keepdim(1)?, &cells.sum_all()?])?, joint)
}

/// Returns the rows (xₜ, xₜ₊τ, …, xₜ₊₍ₘ₋₁₎τ) of each series along the last dimension, as a view: n - (m - 1) τ rows of m values.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for an m or a τ of 0, and a series too short for a row.
pub fn time_delayed_embedding(x: &Tensor, dimension: usize, delay: usize) -> Result<Tensor> {
    const OPERATION: &str = "time_delayed_embedding";
    if dimension == 0 || delay == 0 {
        let found = format!("dimension {dimension} and delay {delay}");
        return Err(Error::invalid(OPERATION, found, "numbers of at least 1"));
    }
    let length = x.shape().last().copied().unwrap_or(0);
    let window = (dimension - 1).checked_mul(delay).and_then(|span| span.checked_add(1));
    match window {
        // Every `delay`-th value of windows that overlap.
        Some(window) if window <= length => x.unfold(-1, window, 1)?.unfold(-1, 1, delay)?.squeeze(-1),
        _ => {
            let found = format!("dimension {dimension} and delay {delay} for a series of {length}");
            Err(Error::invalid(OPERATION, found, "a series of at least (dimension - 1) delay + 1"))
        }
    }
}

/// Returns the transfer entropy from `source` to `target`, two series of states 0 to `states` - 1 of one length, with so many
/// past values of each: the information about the next value of the target that the source's past adds to the target's.
///
/// The table has `states`^(2 `history` + 1) cells. [`discretize`] gives states of floats.
///
/// ```
/// use selvedge::catalogue::transfer_entropy;
/// use selvedge::{Device, Tensor};
/// let x = Tensor::new([0i64, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1], &Device::cpu())?;
/// let y = Tensor::new([0i64, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0], &Device::cpu())?;
/// let entropy = transfer_entropy(&x, &y, 2, 1)?.item::<f64>()?;
/// assert!((entropy - 0.683994674401).abs() < 1e-12);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for elements that are not integers; [`Error::InvalidArgument`] for series that are not vectors of
/// one length, no more than `history` values, a history of 0, a state out of range, and too large a table; errors of memory.
pub fn transfer_entropy(source: &Tensor, target: &Tensor, states: usize, history: usize) -> Result<Tensor> {
    const OPERATION: &str = "transfer_entropy";
    for series in [source, target] {
        if !series.dtype().is_integer() {
            let wanted = "states as integers; discretize gives them".to_owned();
            let found = series.dtype().to_string();
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
    }
    if source.rank() != 1 || source.shape() != target.shape() {
        let found = format!("a source of shape {} and a target of shape {}", source.shape(), target.shape());
        return Err(Error::invalid(OPERATION, found, "two vectors of one length"));
    }
    if history == 0 || history >= source.count() {
        let found = format!("a history of {history} for series of {}", source.count());
        return Err(Error::invalid(OPERATION, found, "a history of at least 1, below the length"));
    }
    let too_long =
        || Error::invalid(OPERATION, format!("a history of {history}"), "a table of at most 2^53 cells");
    let axes = history.checked_mul(2).and_then(|axes| axes.checked_add(1)).ok_or_else(too_long)?;
    let cells = cells(OPERATION, states, axes)?;
    let [source, target] = [states_of(source, states)?, states_of(target, states)?];
    let samples = target.count() - history;
    // The next value, then the past of the target, then that of the source, as digits of a number.
    let mut code = target.narrow(0, history, samples)?;
    for series in [&target, &source] {
        for lag in 1..=history {
            let past = series.narrow(0, history - lag, samples)?;
            code = fuse((&code, &past, states as i64), |[code, past, states]| code * states + past)?;
        }
    }
    let pasts = states.pow(history as u32) as isize;
    let counts = code.bincount(cells)?.reshape(&[states as isize, pasts, pasts])?;
    transfer_entropy_of_counts(&counts)
}

/// Returns the states as i64, after a check of their range.
fn states_of(series: &Tensor, states: usize) -> Result<Tensor> {
    let series = series.cast(DType::I64)?;
    let is_outside =
        fuse((&series, states as i64), |[state, states]| state.lt(0) | state.ge(states))?.any_all()?;
    if is_outside.item::<bool>()? {
        let found = "a state out of range";
        return Err(Error::invalid("transfer_entropy", found, format!("states from 0 to below {states}")));
    }
    Ok(series)
}

/// Returns the transfer entropy of a table of counts or probabilities, whose axes are the next value of the target, its past,
/// and the past of the source.
///
/// # Errors
///
/// As [`mutual_information`], for another number of dimensions than 3.
pub fn transfer_entropy_of_counts(counts: &Tensor) -> Result<Tensor> {
    let cells = table("transfer_entropy_of_counts", counts, 3)?;
    let (pasts, targets) = (cells.sum_keepdim(0)?, cells.sum_keepdim(2)?);
    let past = pasts.sum_keepdim(2)?;
    measure(&TRANSFER.run([&cells, &pasts, &targets, &past, &cells.sum_all()?])?, counts)
}
