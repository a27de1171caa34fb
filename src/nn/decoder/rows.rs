//! A layer's products for one new position of a few sequences: each with the norm before it, and the gate, activation and residual behind it,
//! in one kernel ([`TensorRows`]).

use super::block::{Block, CachedPass, FeedForward, FeedForwardForm, Pass, normalized};
use super::config::NormKind;
use super::parameters::{Norm, Projection};
use crate::error::Result;
use crate::gemm;
use crate::nn::Variable;
use crate::tensor::{Tensor, TensorRows, TensorRowsNorm};

impl Norm {
    fn of_rows(&self) -> TensorRowsNorm {
        let config = self.config();
        TensorRowsNorm {
            is_layer_norm: config.kind == NormKind::Layer,
            weight: self.weight().tensor(),
            offset: if config.has_offset { 1.0 } else { 0.0 },
            bias: self.bias().map(Variable::tensor),
            eps: config.eps,
        }
    }
}

/// Products of the same inputs.
struct Products<'a> {
    norm: Option<&'a Norm>,
    projections: &'a [Projection],
    activation: gemm::Activation,
    is_gated: bool,
    residual: Option<&'a Tensor>,
}

impl<'a> Products<'a> {
    /// Returns products alone.
    fn new(projections: &'a [Projection]) -> Products<'a> {
        let activation = gemm::Activation::None;
        Products { norm: None, projections, activation, is_gated: false, residual: None }
    }

    /// Returns the results behind each other, or `None` if no kernel computes them.
    fn run(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let Some(first) = self.projections.first() else { return Ok(None) };
        let mut matrices = Vec::with_capacity(self.projections.len());
        for projection in self.projections {
            match projection.plain(x.dtype()) {
                Some(matrix) => matrices.push(matrix),
                None => return Ok(None),
            }
        }
        self.run_matrices(x, &matrices, first.is_input_major())
    }

    fn run_matrices(
        &self,
        x: &Tensor,
        matrices: &[(Tensor, Option<Tensor>)],
        is_input_major: bool,
    ) -> Result<Option<Tensor>> {
        TensorRows {
            x,
            norm: self.norm.map(Norm::of_rows),
            matrices,
            is_input_major,
            activation: self.activation,
            is_gated: self.is_gated,
            residual: self.residual,
        }
        .run()
    }
}

/// Returns the result of a norm and a product of a head (vocabulary, inputs), or `None` if no kernel computes it.
pub(super) fn head_of_rows(x: &Tensor, norm: &Norm, head: &Tensor) -> Result<Option<Tensor>> {
    let products = Products { norm: Some(norm), ..Products::new(&[]) };
    products.run_matrices(x, &[(head.clone(), None)], false)
}

impl Block {
    /// Returns the layer's result for one new position of each sequence (batch, 1, width), or `None` if its products are operations
    /// on tensors.
    pub(super) fn forward_rows(&self, x: &Variable, pass: &mut Pass<'_>) -> Result<Option<Variable>> {
        if !matches!(&pass.cached, Some(CachedPass { decoding: Some(_), .. })) {
            return Ok(None);
        }
        let x = x.tensor();
        let products =
            Products { norm: Some(&self.attention_norm), ..Products::new(self.projections.list()) };
        let Some(packed) = products.run(&x)? else { return Ok(None) };
        let heads = self.attend_packed(&Variable::new(packed), pass)?.flatten(2, 3)?.tensor();
        let x = self.added(&x, &self.output, self.after_attention.as_ref(), &heads)?;
        let form = &self.feed_forward;
        let result = match form.hidden_rows(&x, &self.feed_forward_norm)? {
            Some(hidden) => self.added(&x, &form.down, self.after_feed_forward.as_ref(), &hidden)?,
            None => {
                let x = Variable::new(x);
                let result = form.forward(&self.feed_forward_norm.forward(&x)?)?;
                (&x + &normalized(self.after_feed_forward.as_ref(), result)?)?.tensor()
            }
        };
        Ok(Some(Variable::new(result)))
    }

    /// Returns x + norm(projection(input)).
    fn added(
        &self,
        x: &Tensor,
        projection: &Projection,
        norm: Option<&Norm>,
        input: &Tensor,
    ) -> Result<Tensor> {
        // A norm behind the product is before the residual.
        let residual = norm.is_none().then_some(x);
        let result =
            match (Products { residual, ..Products::new(std::slice::from_ref(projection)) }).run(input)? {
                Some(result) if norm.is_none() => return Ok(result),
                Some(result) => Variable::new(result),
                None => projection.forward(&Variable::new(input.clone()))?,
            };
        x + &normalized(norm, result)?.tensor()
    }
}

impl FeedForward {
    /// Returns the activations of the norm of x, or `None` if no kernel computes them.
    fn hidden_rows(&self, x: &Tensor, norm: &Norm) -> Result<Option<Tensor>> {
        let Some(activation) = self.activation.epilogue() else { return Ok(None) };
        let is_gated = !matches!(&self.form, FeedForwardForm::Plain(_));
        let products = Products { norm: Some(norm), activation, is_gated, ..Products::new(self.form.list()) };
        match &self.form {
            FeedForwardForm::Plain(_) | FeedForwardForm::Gate(_) => products.run(x),
            FeedForwardForm::PackedGate(both) => {
                // The rows of the gate are those of the first half.
                let Some((weight, bias)) = both.plain(x.dtype()).filter(|_| !both.is_input_major()) else {
                    return Ok(None);
                };
                let hidden = weight.shape()[0] / 2;
                let half = |index: usize| -> Result<(Tensor, Option<Tensor>)> {
                    let part = |x: &Tensor| x.narrow(0, index * hidden, hidden);
                    Ok((part(&weight)?, bias.as_ref().map(part).transpose()?))
                };
                products.run_matrices(x, &[half(0)?, half(1)?], false)
            }
        }
    }
}
