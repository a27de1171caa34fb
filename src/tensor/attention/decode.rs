//! Attention of new positions against a cache on a device, of tensors: operands as [`attention::decode`](fn@crate::attention::decode) takes them.

use super::super::device::stream;
use super::super::kernel::Output;
use super::super::tensor::Tensor;
use super::super::traced;
use crate::attention::{
    self, Band, DecodeOperands, DecodeWorkspace, MAX_DECODE_QUERIES, NewPositions, Problem, RotaryAngles,
    Unsupported,
};
use crate::driver::{DeviceSlice, DeviceSliceMut};
use crate::error::Result;
use crate::images::DeviceProperties;
use crate::types::{DType, Layout};

const OPERATION: &str = "attention of a cache";

/// How scores become probabilities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecodeSettings {
    pub band: Band,
    pub scale: f64,
    pub soft_cap: Option<f64>,
}

/// The cosines (positions, 1, 1, half) and the sines (positions, 1, 2, half) of rotary positions, in f32.
#[derive(Clone, Copy)]
pub(crate) struct DecodeAngles<'a> {
    pub cosines: &'a Tensor,
    pub sines: &'a Tensor,
    pub half: usize,
}

impl DecodeSettings {
    /// Returns why no kernel attends to a cache of (batch, key heads, capacity, head dimension), or `None` if one does.
    ///
    /// # Errors
    ///
    /// Driver errors.
    pub fn unsupported(
        &self,
        dtype: DType,
        [batch, heads, count]: [usize; 3],
        cache: &Tensor,
    ) -> Result<Option<Unsupported>> {
        let Some(device) = cache.device().as_cuda().copied() else {
            return Ok(Some(Unsupported::Different));
        };
        if cache.dtype() != dtype {
            return Ok(Some(Unsupported::Different));
        }
        let dimension = cache.shape().last().copied().unwrap_or(0);
        let queries = Layout::contiguous(&[batch, heads, count.min(MAX_DECODE_QUERIES + 1), dimension])?;
        let problem = self.problem(dtype, queries, *cache.layout());
        Ok(attention::decode_unsupported(&problem, DeviceProperties::from_device(&device)?))
    }

    fn problem(&self, dtype: DType, queries: Layout, cache: Layout) -> Problem {
        let DecodeSettings { band, scale, soft_cap } = *self;
        Problem { band, scale, soft_cap, ..Problem::new(dtype, queries, cache, cache) }
    }

    /// Creates the memory for partial results of [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// As [`DecodeWorkspace::new`].
    pub fn workspace(&self, queries: &Tensor, cache: &Tensor) -> Result<DecodeWorkspace> {
        let stream = stream(&queries.device())?;
        DecodeWorkspace::new(&stream, &self.problem(queries.dtype(), *queries.layout(), *cache.layout()))
    }

    /// Writes new keys and values, (batch, key heads, new positions, head dimension), to the last positions of each sequence in the
    /// caches, and returns the attention of the queries (batch, heads, new positions, head dimension), in the order (batch, new
    /// positions, heads, head dimension). `lengths` counts each sequence's positions with the new ones. Queries and new keys are
    /// rotated by `angles`.
    ///
    /// # Errors
    ///
    /// As [`attention::decode`](fn@crate::attention::decode).
    pub fn run(
        &self,
        queries: &Tensor,
        new: [&Tensor; 2],
        caches: &mut [Tensor; 2],
        lengths: &Tensor,
        angles: Option<DecodeAngles<'_>>,
        workspace: &mut DecodeWorkspace,
    ) -> Result<Tensor> {
        let _traced = traced::operation(OPERATION, [queries, new[0], new[1]].into_iter(), None);
        let device = queries.device();
        let stream = stream(&device)?;
        let [keys, values] = caches;
        keys.make_unique()?;
        values.make_unique()?;
        let problem = Problem {
            values: *values.layout(),
            ..self.problem(queries.dtype(), *queries.layout(), *keys.layout())
        };
        let sizes: [usize; 4] = std::array::from_fn(|axis| queries.shape().get(axis).copied().unwrap_or(0));
        let [batch, heads, count, dimension] = sizes;
        let mut result = Output::new(&device, queries.dtype(), &[batch, count, heads, dimension])?;
        let layout = Layout::contiguous(&[batch, count, heads, dimension])?.transpose(1, 2)?;
        let operands = DecodeOperands {
            queries: memory(queries)?,
            keys: whole(keys)?,
            values: whole(values)?,
            lengths: Some(lengths.device_slice()?),
            new: Some(NewPositions {
                keys: (memory(new[0])?, new[0].layout()),
                values: (memory(new[1])?, new[1].layout()),
            }),
            angles: match angles {
                Some(DecodeAngles { cosines, sines, half }) => Some(RotaryAngles {
                    cosines: cosines.device_slice()?,
                    sines: sines.device_slice()?,
                    half,
                }),
                None => None,
            },
        };
        let mut to = result.memory_mut();
        attention::decode(
            &stream,
            &problem,
            operands,
            (to.cuda(OPERATION)?.slice_mut(..)?, &layout),
            workspace,
        )?;
        Ok(result.into_tensor())
    }
}

fn memory(tensor: &Tensor) -> Result<DeviceSlice<'_, u8>> {
    tensor.memory().cuda(OPERATION).map(DeviceSlice::from)
}

/// Returns the whole memory of a tensor that has it alone.
fn whole(tensor: &mut Tensor) -> Result<DeviceSliceMut<'_, u8>> {
    tensor.storage.unique_memory()?.into_cuda(OPERATION)?.slice_mut(..)
}
