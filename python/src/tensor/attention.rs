//! Scaled dot-product attention.

use pyo3::prelude::*;
use selvedge::attention::Band;
use selvedge::tensor::{AttentionOptions, SequenceLengths};

use super::PyTensor;
use crate::arguments::{InRange, Sizes, TensorArgument};
use crate::error::{Result, invalid};
use crate::random::PyGenerator;

const OPERATION: &str = "scaled_dot_product_attention";

/// The numbers of keys before and after its own position that a query reads, `None` for all.
type Window = (Option<InRange<usize>>, Option<InRange<usize>>);

/// Returns the lengths of sequences, which are packed or padded.
fn lengths(
    [queries, keys]: [Option<TensorArgument>; 2],
    offsets: [Option<Sizes>; 2],
) -> Result<Option<SequenceLengths>> {
    match (queries.is_some() || keys.is_some(), offsets) {
        (false, [None, None]) => Ok(None),
        (true, [None, None]) => Ok(Some(SequenceLengths::Padded {
            queries: queries.map(|lengths| lengths.0),
            keys: keys.map(|lengths| lengths.0),
        })),
        (false, [Some(queries), Some(keys)]) => {
            Ok(Some(SequenceLengths::Packed { query_offsets: queries.0, key_offsets: keys.0 }))
        }
        (true, _) => Err(invalid(
            OPERATION,
            "lengths and offsets",
            "lengths of padded sequences or offsets of packed ones",
        )
        .into()),
        (false, _) => Err(invalid(OPERATION, "offsets of one side", "query_offsets and key_offsets").into()),
    }
}

#[pymethods]
impl PyTensor {
    #[doc = doc!(scaled_dot_product_attention)]
    #[pyo3(signature = (key, value, attn_mask=None, dropout_p=InRange(0.0), is_causal=false, *, scale=None, enable_gqa=true, window=None, soft_cap=None, generator=None, query_lengths=None, key_lengths=None, query_offsets=None, key_offsets=None), text_signature = "($self, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=True, window=None, soft_cap=None, generator=None, query_lengths=None, key_lengths=None, query_offsets=None, key_offsets=None)")]
    #[allow(clippy::too_many_arguments, reason = "the keywords of the operation")]
    fn scaled_dot_product_attention(
        &self,
        py: Python<'_>,
        key: TensorArgument,
        value: TensorArgument,
        attn_mask: Option<TensorArgument>,
        dropout_p: InRange<f64>,
        is_causal: bool,
        scale: Option<InRange<f64>>,
        enable_gqa: bool,
        window: Option<Window>,
        soft_cap: Option<InRange<f64>>,
        generator: Option<&Bound<'_, PyGenerator>>,
        query_lengths: Option<TensorArgument>,
        key_lengths: Option<TensorArgument>,
        query_offsets: Option<Sizes>,
        key_offsets: Option<Sizes>,
    ) -> Result<PyTensor> {
        let (before, after) = window.unwrap_or_default();
        let options = AttentionOptions {
            mask: attn_mask.map(|mask| mask.0),
            is_causal,
            window: Band { before: before.map(|keys| keys.0), after: after.map(|keys| keys.0) },
            scale: scale.map(|scale| scale.0),
            soft_cap: soft_cap.map(|limit| limit.0),
            dropout: dropout_p.0,
            generator: generator.map(|generator| generator.get().generator().clone()),
            lengths: lengths([query_lengths, key_lengths], [query_offsets, key_offsets])?,
        };
        self.run(py, |query| {
            let heads = [query, &key.0].map(|tensor| tensor.shape().get(1).copied());
            if !enable_gqa && heads[0] != heads[1] {
                let found = format!("queries of shape {:?} and keys of {:?}", query.shape(), key.0.shape());
                return Err(invalid(OPERATION, found, "as many heads, or enable_gqa=True"));
            }
            query.scaled_dot_product_attention(&key.0, &value.0, &options)
        })
        .map(PyTensor::from)
    }
}
