//! [`Norm`] and [`Projection`], the layers of parameters, and [`specifications`], the list of a model's parameters.

use super::config::{DecoderConfig, NormConfig, NormKind};
use super::lora::Adapter;
use crate::error::Result;
use crate::nn::host_layers::HostNorm;
use crate::nn::layers::linear;
use crate::nn::precision::{in_compute_dtype, widened_variable};
use crate::nn::{Activation, LinearLayer, Variable, linear_layers};
use crate::tensor::{Device, Tensor};
use crate::types::DType;

/// The first values of a new parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterRole {
    /// A table or the weight of a product.
    Matrix,
    /// The weight of a product whose result a residual takes.
    Residual,
    /// Elements of 1.
    One,
    /// Elements of 0.
    Zero,
}

/// A parameter's name in files, its shape and its role.
#[derive(Debug, Clone)]
pub(super) struct Specification {
    pub name: String,
    pub shape: Vec<usize>,
    pub role: ParameterRole,
}

/// A source of parameters.
pub(super) type Source<'a> = &'a mut dyn FnMut(Specification) -> Result<Variable>;

/// Returns the parameters of a model, in its order.
pub(super) fn specifications(config: &DecoderConfig) -> Vec<Specification> {
    let mut found = Vec::new();
    let mut record = |specification: Specification| {
        found.push(specification);
        Ok(Variable::new(Tensor::zeros(&[0], DType::F32, &Device::cpu())?))
    };
    // Tensors without elements do not fail.
    let _ = super::model::Weights::new(config, None, &mut record);
    found
}

/// The normalisation of the last axis.
pub(super) struct Norm {
    weight: Variable,
    bias: Option<Variable>,
    config: NormConfig,
    width: usize,
}

impl Norm {
    pub fn new(name: &str, width: usize, config: NormConfig, source: Source<'_>) -> Result<Norm> {
        let mut parameter = |end: &str, role| {
            source(Specification { name: format!("{name}.{end}"), shape: vec![width], role })
        };
        let weight =
            parameter("weight", if config.has_offset { ParameterRole::Zero } else { ParameterRole::One })?;
        let bias = match config.kind {
            NormKind::Layer => Some(parameter("bias", ParameterRole::Zero)?),
            NormKind::Rms => None,
        };
        Ok(Norm { weight, bias, config, width })
    }

    pub fn config(&self) -> NormConfig {
        self.config
    }

    pub fn weight(&self) -> &Variable {
        &self.weight
    }

    pub fn bias(&self) -> Option<&Variable> {
        self.bias.as_ref()
    }

    /// Returns the norm of f32 on the CPU.
    pub fn on_host(&self) -> HostNorm<'_> {
        let NormConfig { kind, eps, has_offset } = self.config;
        let has_mean = kind == NormKind::Layer;
        HostNorm { weight: &self.weight, bias: self.bias.as_ref(), eps, has_mean, has_offset }
    }

    pub fn forward(&self, x: &Variable) -> Result<Variable> {
        let shape = [self.width];
        let NormConfig { kind, eps, has_offset } = self.config;
        match kind {
            NormKind::Layer => x.layer_norm(&shape, Some(&self.weight), self.bias.as_ref(), eps),
            NormKind::Rms if has_offset => in_compute_dtype(
                &x.rms_norm(&shape, Some(&self.offset_weight()?), Some(eps))?,
                Some(x.dtype()),
            ),
            NormKind::Rms => x.rms_norm(&shape, Some(&self.weight), Some(eps)),
        }
    }

    /// Returns the sum of both, and the norm of the sum.
    pub fn forward_sum(&self, x: &Variable, other: &Variable) -> Result<[Variable; 2]> {
        let shape = [self.width];
        let NormConfig { kind, eps, has_offset } = self.config;
        match kind {
            NormKind::Layer => x.add_layer_norm(other, &shape, Some(&self.weight), self.bias.as_ref(), eps),
            NormKind::Rms if has_offset => {
                let [sum, result] = x.add_rms_norm(other, &shape, Some(&self.offset_weight()?), Some(eps))?;
                let result = in_compute_dtype(&result, Some(x.dtype()))?;
                Ok([sum, result])
            }
            NormKind::Rms => x.add_rms_norm(other, &shape, Some(&self.weight), Some(eps)),
        }
    }

    /// Returns the weight plus 1. In 16 bits the sum would lose bits of the weight.
    fn offset_weight(&self) -> Result<Variable> {
        widened_variable(&self.weight)? + 1.0
    }
}

/// A product of the last axis and a weight, plus a bias.
pub(super) struct Projection {
    weight: Variable,
    bias: Option<Variable>,
    /// True for a weight of shape (inputs, outputs), false for one of shape (outputs, inputs).
    is_input_major: bool,
    compute_dtype: Option<DType>,
    slot: Box<AdapterSlot>,
}

/// The name of a projection and its adapter, apart from the parts that each forward reads.
struct AdapterSlot {
    /// The name in files, without `.weight`.
    name: String,
    adapter: Option<Adapter>,
}

/// The sizes of a projection, whether it has a bias, and its weight's role.
pub(super) struct ProjectionForm {
    pub inputs: usize,
    pub outputs: usize,
    pub has_bias: bool,
    pub role: ParameterRole,
}

impl Projection {
    pub fn new(
        name: &str,
        form: ProjectionForm,
        config: &DecoderConfig,
        compute_dtype: Option<DType>,
        source: Source<'_>,
    ) -> Result<Projection> {
        let ProjectionForm { inputs, outputs, has_bias, role } = form;
        let is_input_major = config.is_input_major;
        let shape = if is_input_major { vec![inputs, outputs] } else { vec![outputs, inputs] };
        let weight = source(Specification { name: format!("{name}.weight"), shape, role })?;
        let bias = match has_bias {
            true => Some(source(Specification {
                name: format!("{name}.bias"),
                shape: vec![outputs],
                role: ParameterRole::Zero,
            })?),
            false => None,
        };
        let slot = Box::new(AdapterSlot { name: name.to_owned(), adapter: None });
        Ok(Projection { weight, bias, is_input_major, compute_dtype, slot })
    }

    pub fn name(&self) -> &str {
        &self.slot.name
    }

    pub fn adapter(&self) -> Option<&Adapter> {
        self.slot.adapter.as_ref()
    }

    pub fn set_adapter(&mut self, adapter: Adapter) {
        self.slot.adapter = Some(adapter);
    }

    pub fn weight(&self) -> &Variable {
        &self.weight
    }

    pub fn bias(&self) -> Option<&Variable> {
        self.bias.as_ref()
    }

    pub fn is_input_major(&self) -> bool {
        self.is_input_major
    }

    /// Returns the numbers of inputs and outputs.
    pub fn sizes(&self) -> [usize; 2] {
        let shape = self.weight.shape();
        if self.is_input_major { [shape[0], shape[1]] } else { [shape[1], shape[0]] }
    }

    /// Returns weight and bias as they are stored, if the product has this dtype and no adapter.
    pub fn plain(&self, dtype: DType) -> Option<(Tensor, Option<Tensor>)> {
        let is_plain = self.adapter().is_none() && self.weight.dtype() == dtype;
        is_plain.then(|| (self.weight.tensor(), self.bias.as_ref().map(Variable::tensor)))
    }

    /// Returns weight (inputs, outputs) and bias in the dtype of the product.
    fn operands(&self) -> Result<(Variable, Option<Variable>)> {
        let cast = |x: &Variable| in_compute_dtype(x, self.compute_dtype);
        let weight = cast(&self.weight)?;
        let weight = if self.is_input_major { weight } else { weight.t()? };
        Ok((weight, self.bias.as_ref().map(cast).transpose()?))
    }

    pub fn forward(&self, x: &Variable) -> Result<Variable> {
        let (weight, bias) = self.operands()?;
        let y = linear(x, &weight, bias.as_ref())?;
        match self.adapter() {
            Some(adapter) => y + adapter.forward(x, weight.dtype())?,
            None => Ok(y),
        }
    }

    /// Returns the result of this projection, an activation, and another projection, as one operation.
    pub fn forward_joined(
        &self,
        activation: Activation,
        next: &Projection,
        x: &Variable,
    ) -> Result<Variable> {
        if self.adapter().is_some() || next.adapter().is_some() {
            return next.forward(&activation.forward(&self.forward(x)?)?);
        }
        let ((weight, bias), (next_weight, next_bias)) = (self.operands()?, next.operands()?);
        let first = LinearLayer { weight: &weight, bias: bias.as_ref(), activation: Some(activation) };
        let second = LinearLayer { weight: &next_weight, bias: next_bias.as_ref(), activation: None };
        linear_layers(x, &[first, second])
    }
}
