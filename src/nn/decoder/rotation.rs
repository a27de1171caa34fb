//! Rotation of heads: [`RotaryTables`], cosines and sines by position, and [`rotate`].
//!
//! Angles, cosines and sines are computed in f64 on the host and rounded once, to f64 for f64 and to f32 for other dtypes. The
//! rotation reads each element and its partner as two views of one tensor, so it is one kernel, and so is its gradient.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::rotary::Rotary;
use crate::error::Result;
use crate::nn::Variable;
use crate::nn::autograd::{Function, FunctionContext};
use crate::nn::host_layers::row;
use crate::tensor::{DecodeAngles, Device, Fused, Tensor};
use crate::types::DType;

/// The fewest positions of a table.
const MIN_POSITIONS: usize = 64;

/// Cosines (positions, 1, 1, half) and sines (positions, 1, 2, half), the sines of the first half negative.
#[derive(Clone)]
pub(super) struct Angles {
    cosines: Tensor,
    sines: Tensor,
}

/// The tables of one rotary setting, which grow with the positions that are asked for.
pub(super) struct RotaryTables {
    rotary: Rotary,
    /// The tables of short and of long contexts.
    tables: Mutex<[Option<Angles>; 2]>,
}

impl RotaryTables {
    pub fn new(rotary: Rotary) -> RotaryTables {
        RotaryTables { rotary, tables: Mutex::new([None, None]) }
    }

    /// Returns the tables of all positions below an end, of a sequence with this total length.
    fn whole(&self, total: usize, dtype: DType, device: &Device) -> Result<Angles> {
        self.covering(total, total, dtype, device)
    }

    /// Returns the tables of at least `positions` positions, of a sequence with this total length.
    pub fn covering(&self, positions: usize, total: usize, dtype: DType, device: &Device) -> Result<Angles> {
        let is_long = self.rotary.is_long(total);
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let table = &mut tables[usize::from(is_long)];
        if let Some(found) = table
            && found.cosines.shape()[0] >= positions
            && found.cosines.dtype() == dtype
            && found.cosines.device() == *device
        {
            return Ok(found.clone());
        }
        let count = positions.next_power_of_two().max(MIN_POSITIONS);
        let frequencies = self.rotary.frequencies(is_long);
        let half = frequencies.len();
        let mut cosines = Vec::with_capacity(count * half);
        let mut sines = Vec::with_capacity(2 * count * half);
        for position in 0..count {
            let angles = frequencies.iter().map(|frequency| position as f64 * frequency);
            let (sin, cos): (Vec<f64>, Vec<f64>) = angles.map(f64::sin_cos).unzip();
            let magnitude = self.rotary.magnitude;
            cosines.extend(cos.iter().map(|x| x * magnitude));
            sines.extend(sin.iter().map(|x| -x * magnitude));
            sines.extend(sin.iter().map(|x| x * magnitude));
        }
        let cpu = Device::cpu();
        let on_device = |elements: Vec<f64>, parts| -> Result<Tensor> {
            Tensor::from_vec(elements, &[count, 1, parts, half], &cpu)?.cast(dtype)?.to(device)
        };
        let angles = Angles { cosines: on_device(cosines, 1)?, sines: on_device(sines, 2)? };
        *table = Some(angles.clone());
        Ok(angles)
    }

    /// Returns the angles of `length` positions behind `past`.
    pub fn at(&self, past: usize, length: usize, dtype: DType, device: &Device) -> Result<Angles> {
        let whole = self.whole(past + length, dtype, device)?;
        Ok(Angles {
            cosines: whole.cosines.narrow(0, past, length)?,
            sines: whole.sines.narrow(0, past, length)?,
        })
    }

    /// Returns the angles of positions of shape (batch, length) that are below `total`.
    pub fn of_positions(
        &self,
        positions: &Tensor,
        total: usize,
        dtype: DType,
        device: &Device,
    ) -> Result<Angles> {
        let whole = self.whole(total, dtype, device)?;
        let shape = positions.shape();
        let rows = positions.reshape(&[-1])?;
        let chosen = |table: &Tensor| -> Result<Tensor> {
            let sizes: Vec<isize> =
                shape.iter().chain(table.shape().iter().skip(1)).map(|&size| size as isize).collect();
            table.index_select(0, &rows)?.reshape(&sizes)
        };
        Ok(Angles { cosines: chosen(&whole.cosines)?, sines: chosen(&whole.sines)? })
    }
}

/// Returns heads (batch, length, heads, head dimension) whose first elements, as many as the angles have, are rotated.
pub(super) fn rotate(heads: &Variable, angles: &Angles) -> Result<Variable> {
    let shape = heads.shape();
    let (width, half) = (shape.last().copied().unwrap_or(0), angles.half());
    let rotated = if 2 * half < width { heads.narrow(-1, 0, 2 * half)? } else { heads.clone() };
    let rotated = rotated.unflatten(-1, &[2, half as isize])?;
    let rotated = Variable::apply(Rotation(angles.clone()), &[&rotated])?.flatten(-2, -1)?;
    if 2 * half == width {
        return Ok(rotated);
    }
    Variable::cat(&[&rotated, &heads.narrow(-1, 2 * half, width - 2 * half)?], -1)
}

impl Angles {
    /// Returns the angles as a kernel reads them that rotates by the positions in a cache; those of all positions.
    pub fn of_cache(&self) -> DecodeAngles<'_> {
        DecodeAngles { cosines: &self.cosines, sines: &self.sines, half: self.half() }
    }

    /// Rotates heads of f32 on the CPU in place by the angles of a position, of which there must be an entry.
    pub fn rotate_on_host(&self, position: usize, heads: &mut [f32], head_dim: usize) -> Result<()> {
        let half = self.half();
        let cosines = row(self.cosines.as_slice()?, half, position);
        // The sines of the first half are negative.
        let sines = row(self.sines.as_slice()?, half, 2 * position + 1);
        for head in heads.chunks_exact_mut(head_dim) {
            let (first, second) = head[..2 * half].split_at_mut(half);
            let angles = cosines.iter().zip(sines);
            for ((x, y), (cos, sin)) in first.iter_mut().zip(second).zip(angles) {
                (*x, *y) = (*x * cos - *y * sin, *y * cos + *x * sin);
            }
        }
        Ok(())
    }

    /// Returns the number of pairs that turn.
    fn half(&self) -> usize {
        self.cosines.shape().last().copied().unwrap_or(0)
    }
}

/// The rotation of pairs (…, 2, half).
struct Rotation(Angles);

impl Function for Rotation {
    fn name(&self) -> &'static str {
        "rotary positions"
    }

    fn forward(&self, _: &mut FunctionContext, inputs: &[&Tensor]) -> Result<Tensor> {
        static FUNCTION: OnceLock<Fused<4>> = OnceLock::new();
        let function = FUNCTION.get_or_init(|| {
            Fused::new(|[x, partner, cos, sin]| {
                let wide = cos.dtype();
                (x.cast(wide) * cos + partner.cast(wide) * sin).cast(x.dtype())
            })
        });
        function.run([inputs[0], &inputs[0].flip(&[-2])?, &self.0.cosines, &self.0.sines])
    }

    fn backward(&self, _: &[Tensor], gradient: &Tensor) -> Result<Vec<Option<Tensor>>> {
        static FUNCTION: OnceLock<Fused<4>> = OnceLock::new();
        let function = FUNCTION.get_or_init(|| {
            Fused::new(|[x, partner, cos, sin]| {
                let wide = cos.dtype();
                (x.cast(wide) * cos - partner.cast(wide) * sin).cast(x.dtype())
            })
        });
        let of_input = function.run([gradient, &gradient.flip(&[-2])?, &self.0.cosines, &self.0.sines])?;
        Ok(vec![Some(of_input)])
    }
}
