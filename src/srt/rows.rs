//! Operations on rows of eight numbers: the check of an operand, its columns, and the driver of row kernels.
//!
//! A row kernel maps each row to a row of eight numbers. The CPU's closure and the kernel of `csrc/kernels/e8.cu` do the
//! same operations in the same order in f64, without fma, so their results have the same bits; rows of f32 are widened
//! before and rounded once after.

use std::sync::{Mutex, PoisonError};

use crate::driver::{KernelArgument, LaunchConfig, Stream};
use crate::error::{Error, Result};
use crate::images::{self, Entry};
use crate::tensor::Tensor;
use crate::tensor::kernel::{self, DeviceInput, DeviceOutput, HostInput, HostOutput, Output};
use crate::threads::{run_on_threads, thread_count};
use crate::types::{DType, Element};

/// Numbers in a row: the dimension of E8.
pub(super) const WIDTH: usize = 8;

/// A row in the precision of all row kernels.
pub(super) type Row = [f64; WIDTH];

const FAMILY: &str = "e8";
const THREADS: usize = 256;
/// Rows that a thread of the CPU takes at a time.
const ROWS_OF_A_CHUNK: usize = 1 << 10;

/// Checks that `v` has rows of eight f32 or f64 in its last dimension.
pub(super) fn check(operation: &'static str, v: &Tensor) -> Result<()> {
    if v.shape().last() != Some(&WIDTH) {
        return Err(Error::invalid(
            operation,
            format!("v of shape {:?}", v.shape()),
            "a last dimension of 8",
        ));
    }
    match v.dtype() {
        DType::F32 | DType::F64 => Ok(()),
        other => Err(Error::DTypeMismatch {
            operation,
            wanted: "v of f32 or f64".to_owned(),
            found: other.to_string(),
        }),
    }
}

/// Returns the eight columns of `v` as views, after [`check`].
pub(super) fn columns(operation: &'static str, v: &Tensor) -> Result<[Tensor; WIDTH]> {
    check(operation, v)?;
    let columns = v.unbind(-1)?;
    let found = columns.len();
    columns.try_into().map_err(|_| Error::LengthMismatch { operation, wanted: WIDTH, found })
}

/// A row operation of `csrc/kernels/e8.cu`.
pub(super) struct RowKernel {
    /// Its name in errors.
    pub operation: &'static str,
    /// Its entries for rows of f32 and of f64.
    pub entries: [&'static str; 2],
}

/// Applies a row operation to each row of `v`. `row` computes it on the CPU; `constants` is the last argument of the
/// kernel.
pub(super) fn map<C: KernelArgument + Copy>(
    kernel: &RowKernel,
    v: &Tensor,
    constants: C,
    row: impl Fn(&Row) -> Row + Sync,
) -> Result<Tensor> {
    check(kernel.operation, v)?;
    let v = v.contiguous()?;
    let mut output = Output::new(&v.device(), v.dtype(), v.shape())?;
    let is_f32 = v.dtype() == DType::F32;
    kernel::run(
        kernel.operation,
        [&v],
        [&mut output],
        |[v], [mut output]| {
            if is_f32 {
                map_host::<f32>(&v, &mut output, &row)
            } else {
                map_host::<f64>(&v, &mut output, &row)
            }
        },
        |stream, [v], [output]| {
            if is_f32 {
                launch::<f32, C>(stream, kernel.entries[0], &v, output, constants)
            } else {
                launch::<f64, C>(stream, kernel.entries[1], &v, output, constants)
            }
        },
    )?;
    Ok(output.into_tensor())
}

/// A number that rows are made of.
trait RowElement: Element {
    fn widen(self) -> f64;
    /// Rounds to nearest even.
    fn round(number: f64) -> Self;
}

impl RowElement for f32 {
    fn widen(self) -> f64 {
        self.into()
    }

    fn round(number: f64) -> f32 {
        number as f32
    }
}

impl RowElement for f64 {
    fn widen(self) -> f64 {
        self
    }

    fn round(number: f64) -> f64 {
        number
    }
}

fn map_host<T: RowElement>(
    v: &HostInput<'_>,
    output: &mut HostOutput<'_>,
    row: &(dyn Fn(&Row) -> Row + Sync),
) -> Result<()> {
    const SIZE: usize = ROWS_OF_A_CHUNK * WIDTH;
    let (from, to) = (v.as_slice::<T>()?, output.as_slice_mut::<T>()?);
    let threads = thread_count().min(from.len().div_ceil(SIZE));
    let chunks = Mutex::new(from.chunks(SIZE).zip(to.chunks_mut(SIZE)));
    run_on_threads(threads, &|| {
        loop {
            let chunk = chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((from, to)) = chunk else { return };
            for (from, to) in from.chunks_exact(WIDTH).zip(to.chunks_exact_mut(WIDTH)) {
                let mut v = [0.0; WIDTH];
                v.iter_mut().zip(from).for_each(|(wide, number)| *wide = number.widen());
                to.iter_mut().zip(row(&v)).for_each(|(number, wide)| *number = T::round(wide));
            }
        }
    });
    Ok(())
}

fn launch<T: Element, C: KernelArgument>(
    stream: &Stream,
    entry: &'static str,
    v: &DeviceInput<'_>,
    mut output: DeviceOutput<'_>,
    constants: C,
) -> Result<()> {
    let rows = v.layout().count() / WIDTH;
    if rows == 0 {
        return Ok(());
    }
    let function = images::kernel(&stream.device(), FAMILY, Entry::Name(entry))?;
    // The kernel loops, so a grid that is cut off is right too.
    let config = LaunchConfig::new(rows.div_ceil(THREADS).min(i32::MAX as usize) as u32, THREADS as u32);
    let arguments = (v.as_slice::<T>()?, output.as_slice_mut::<T>()?, rows as u64, constants);
    // SAFETY: the kernel reads and writes that many rows of eight elements.
    unsafe { function.launch(stream, config, arguments) }
}
