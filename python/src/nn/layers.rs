//! The layers: subclasses of `selvedge.nn.Module` whose arguments have PyTorch's names.

use std::sync::RwLock;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use selvedge::nn::{
    BatchNorm1d, BatchNorm2d, Dropout, Embedding, FeedForward, FeedForwardOptions, Gelu, GeluTanh,
    Initializer, LayerNorm, Linear, Module, MultiHeadAttention, MultiHeadAttentionOptions, Relu, RmsNorm,
    Sequential, Sigmoid, Silu, Tanh, TransformerBlock, WeightDistribution,
};
use selvedge::tensor::Generator;

use super::module::{Layer, ObjectModule, PyNnModule};
use super::pickle::arguments;
use super::variable::{PyParameter, PyVariable, VariableArgument, parameter_of};
use crate::arguments::{DTypeArgument, DeviceArgument, InRange, Sizes};
use crate::device::device_or_default;
use crate::error::{Result, invalid, type_name, wrong_type};
use crate::random::PyGenerator;

/// A distribution of first values: a name, or a name and its number.
#[derive(FromPyObject)]
pub enum Weights {
    Named(String),
    WithNumber(String, f64),
}

impl Weights {
    fn distribution(&self) -> Result<WeightDistribution> {
        let (name, number) = match self {
            Weights::Named(name) => (name, None),
            Weights::WithNumber(name, number) => (name, Some(*number)),
        };
        let gain = number.unwrap_or(1.0);
        Ok(match (name.as_str(), number) {
            ("fan_in", None) => WeightDistribution::FanIn,
            ("uniform", Some(bound)) => WeightDistribution::Uniform { bound },
            ("normal", Some(deviation)) => WeightDistribution::Normal { deviation },
            ("xavier_uniform", _) => WeightDistribution::XavierUniform { gain },
            ("xavier_normal", _) => WeightDistribution::XavierNormal { gain },
            ("kaiming_uniform", _) => WeightDistribution::KaimingUniform { gain },
            ("kaiming_normal", _) => WeightDistribution::KaimingNormal { gain },
            _ => {
                let found =
                    number.map_or_else(|| format!("\"{name}\""), |number| format!("(\"{name}\", {number})"));
                let wanted = "\"fan_in\", (\"uniform\", bound), (\"normal\", deviation), or xavier_uniform, xavier_normal, \
                              kaiming_uniform or kaiming_normal with or without a gain";
                return Err(invalid("weights", found, wanted).into());
            }
        })
    }
}

/// The source of the first values of layers: their device and dtype, the generator, and the distribution of weights.
///
/// `weights` is "fan_in" (uniform in ±sqrt(2 / inputs)), ("uniform", bound), ("normal", deviation), or "xavier_uniform", "xavier_normal",
/// "kaiming_uniform" or "kaiming_normal", alone or with a gain. `residual_weights` are those of layers whose result is added to a residual.
#[pyclass(name = "Initializer", module = "selvedge.nn", frozen)]
pub struct PyInitializer(pub Initializer);

impl PyInitializer {
    /// Returns the initializer of a layer whose elements are set then.
    pub fn restored(
        device: DeviceArgument,
        dtype: DTypeArgument,
        compute_dtype: Option<DTypeArgument>,
    ) -> PyInitializer {
        let initializer = Initializer::new(&device.0).with_seed(0).with_dtype(dtype.0);
        PyInitializer(match compute_dtype {
            Some(compute_dtype) => initializer.with_compute_dtype(compute_dtype.0),
            None => initializer,
        })
    }
}

#[pymethods]
impl PyInitializer {
    #[new]
    #[pyo3(signature = (*, seed=None, generator=None, device=None, dtype=None, compute_dtype=None, weights=None, residual_weights=None))]
    fn new(
        seed: Option<InRange<u64>>,
        generator: Option<&Bound<'_, PyGenerator>>,
        device: Option<DeviceArgument>,
        dtype: Option<DTypeArgument>,
        compute_dtype: Option<DTypeArgument>,
        weights: Option<Weights>,
        residual_weights: Option<Weights>,
    ) -> Result<PyInitializer> {
        let mut initializer = Initializer::new(&device_or_default(device));
        match (seed, generator) {
            (Some(_), Some(_)) => {
                return Err(invalid("Initializer", "both seed and generator", "one of them").into());
            }
            (Some(seed), None) => initializer = initializer.with_seed(seed.0),
            (None, Some(generator)) => initializer = initializer.with_generator(generator.get().generator()),
            (None, None) => {}
        }
        if let Some(dtype) = dtype {
            initializer = initializer.with_dtype(dtype.0);
        }
        if let Some(dtype) = compute_dtype {
            initializer = initializer.with_compute_dtype(dtype.0);
        }
        if let Some(weights) = weights {
            initializer = initializer.with_weights(weights.distribution()?);
        }
        if let Some(weights) = residual_weights {
            initializer = initializer.with_residual_weights(weights.distribution()?);
        }
        Ok(PyInitializer(initializer))
    }
}

pub type InitializerArgument<'a, 'py> = Option<&'a Bound<'py, PyInitializer>>;

/// Returns the given initializer, or one of a device and a dtype.
pub fn initializer(
    layer: &'static str,
    initializer: InitializerArgument<'_, '_>,
    device: Option<DeviceArgument>,
    dtype: Option<DTypeArgument>,
) -> Result<Initializer> {
    match initializer {
        Some(_) if device.is_some() || dtype.is_some() => {
            let found = "an initializer and a device or a dtype";
            Err(invalid(layer, found, "those of the initializer").into())
        }
        Some(initializer) => Ok(initializer.get().0.clone()),
        None => {
            let new = Initializer::new(&device_or_default(device));
            Ok(match dtype {
                Some(dtype) => new.with_dtype(dtype.0),
                None => new,
            })
        }
    }
}

pub fn generator_or_default(generator: Option<&Bound<'_, PyGenerator>>) -> Generator {
    let default = || device_or_default(None).generator();
    generator.map_or_else(default, |generator| generator.get().generator().clone())
}

fn fixed(module: impl Module + 'static) -> Layer {
    Layer::Fixed(Box::new(module))
}

fn moded(module: impl Module + 'static) -> Layer {
    Layer::Moded(RwLock::new(Box::new(module)))
}

/// Makes classes of layers: their `__new__`, and an `__init__` that sets the layer of the body, which runs while other threads of Python
/// run.
macro_rules! layers {
    ($(
        $(#[doc = $document:literal])*
        $class:ident $name:literal $signature:literal
        ($($pyo3:tt)*) ($($argument:ident: $type:ty),* $(,)?) $(let $prepared:ident = $value:expr;)* => $layer:expr;
    )*) => {
        $(
            $(#[doc = $document])*
            #[pyclass(name = $name, module = "selvedge.nn", frozen, extends = PyNnModule, subclass)]
            pub struct $class;

            #[pymethods]
            impl $class {
                #[new]
                #[pyo3(signature = (*_arguments, **_keywords), text_signature = $signature)]
                fn new(
                    _arguments: &Bound<'_, PyTuple>,
                    _keywords: Option<&Bound<'_, PyDict>>,
                ) -> PyClassInitializer<$class> {
                    PyClassInitializer::from(PyNnModule::empty()).add_subclass($class)
                }

                #[pyo3(signature = ($($pyo3)*))]
                #[allow(clippy::too_many_arguments, reason = "the options of a layer")]
                fn __init__<'py>(slf: &Bound<'py, Self> $(, $argument: $type)*) -> Result<()> {
                    let py = slf.py();
                    let recorded = arguments!(py $(, $argument)*);
                    $(let $prepared = $value;)*
                    let layer: selvedge::Result<Layer> = py.detach(|| $layer);
                    PyNnModule::set_layer(slf.as_super(), &py.get_type::<$class>(), layer?, &recorded);
                    Ok(())
                }
            }
        )*

        /// Adds the classes to the module.
        pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            module.add_class::<PyInitializer>()?;
            module.add_class::<PySequential>()?;
            $(module.add_class::<$class>()?;)*
            Ok(())
        }
    };
}

layers! {
    /// x weight + bias along the last axis. The weight is (in_features, out_features), the transpose of PyTorch's.
    PyLinear "Linear" "(in_features, out_features, bias=True, *, initializer=None, device=None, dtype=None)"
    (in_features, out_features, bias=true, *, initializer=None, device=None, dtype=None)
    (
        in_features: InRange<usize>, out_features: InRange<usize>, bias: bool,
        initializer: InitializerArgument<'_, 'py>, device: Option<DeviceArgument>, dtype: Option<DTypeArgument>,
    )
    let source = self::initializer("Linear", initializer, device, dtype)?;
    => match bias {
        true => Linear::new(in_features.0, out_features.0, &source),
        false => Linear::without_bias(in_features.0, out_features.0, &source),
    }.map(fixed);

    /// Rows of a table by index.
    PyEmbedding "Embedding" "(num_embeddings, embedding_dim, *, initializer=None, device=None, dtype=None)"
    (num_embeddings, embedding_dim, *, initializer=None, device=None, dtype=None)
    (
        num_embeddings: InRange<usize>, embedding_dim: InRange<usize>,
        initializer: InitializerArgument<'_, 'py>, device: Option<DeviceArgument>, dtype: Option<DTypeArgument>,
    )
    let source = self::initializer("Embedding", initializer, device, dtype)?;
    => Embedding::new(num_embeddings.0, embedding_dim.0, &source).map(fixed);

    /// (x - mean) / sqrt(variance + eps) · weight + bias over the last axes.
    PyLayerNorm "LayerNorm" "(normalized_shape, eps=1e-5, *, initializer=None, device=None, dtype=None)"
    (normalized_shape, eps=InRange(1e-5), *, initializer=None, device=None, dtype=None)
    (
        normalized_shape: Sizes, eps: InRange<f64>,
        initializer: InitializerArgument<'_, 'py>, device: Option<DeviceArgument>, dtype: Option<DTypeArgument>,
    )
    let source = self::initializer("LayerNorm", initializer, device, dtype)?;
    => LayerNorm::new(&normalized_shape.0, &source).and_then(|layer| layer.with_eps(eps.0)).map(fixed);

    /// x / sqrt(mean(x²) + eps) · weight over the last axes. Without `eps` it is the machine epsilon of the input's dtype.
    PyRmsNorm "RMSNorm" "(normalized_shape, eps=None, *, initializer=None, device=None, dtype=None)"
    (normalized_shape, eps=None, *, initializer=None, device=None, dtype=None)
    (
        normalized_shape: Sizes, eps: Option<InRange<f64>>,
        initializer: InitializerArgument<'_, 'py>, device: Option<DeviceArgument>, dtype: Option<DTypeArgument>,
    )
    let source = self::initializer("RMSNorm", initializer, device, dtype)?;
    => RmsNorm::new(&normalized_shape.0, &source)
        .and_then(|layer| match eps {
            Some(eps) => layer.with_eps(eps.0),
            None => Ok(layer),
        })
        .map(fixed);

    /// Normalisation by channel of (N, C) or (N, C, L), by the statistics of the batch in training, else by the running ones.
    PyBatchNorm1d "BatchNorm1d" "(num_features, eps=1e-5, momentum=0.1, *, initializer=None, device=None, dtype=None)"
    (num_features, eps=InRange(1e-5), momentum=InRange(0.1), *, initializer=None, device=None, dtype=None)
    (
        num_features: InRange<usize>, eps: InRange<f64>, momentum: InRange<f64>,
        initializer: InitializerArgument<'_, 'py>, device: Option<DeviceArgument>, dtype: Option<DTypeArgument>,
    )
    let source = self::initializer("BatchNorm1d", initializer, device, dtype)?;
    => BatchNorm1d::new(num_features.0, &source)
        .and_then(|layer| layer.with_eps(eps.0)?.with_momentum(momentum.0))
        .map(moded);

    /// Normalisation by channel of (N, C, H, W), as `BatchNorm1d`.
    PyBatchNorm2d "BatchNorm2d" "(num_features, eps=1e-5, momentum=0.1, *, initializer=None, device=None, dtype=None)"
    (num_features, eps=InRange(1e-5), momentum=InRange(0.1), *, initializer=None, device=None, dtype=None)
    (
        num_features: InRange<usize>, eps: InRange<f64>, momentum: InRange<f64>,
        initializer: InitializerArgument<'_, 'py>, device: Option<DeviceArgument>, dtype: Option<DTypeArgument>,
    )
    let source = self::initializer("BatchNorm2d", initializer, device, dtype)?;
    => BatchNorm2d::new(num_features.0, &source)
        .and_then(|layer| layer.with_eps(eps.0)?.with_momentum(momentum.0))
        .map(moded);

    /// Sets elements to 0 with a probability in training, and divides the others by the rest of it.
    PyDropout "Dropout" "(p=0.5, *, generator=None)"
    (p=InRange(0.5), *, generator=None)
    (p: InRange<f64>, generator: Option<&Bound<'py, PyGenerator>>)
    let source = generator_or_default(generator);
    => Dropout::new(p.0, &source).map(moded);

    /// Attention of a sequence (batch, length, embed_dim) to itself, with one projection for queries, keys and values.
    PyMultiHeadAttention "MultiHeadAttention" "(embed_dim, num_heads, dropout=0.0, bias=True, *, num_key_value_heads=None, is_causal=False, generator=None, initializer=None, device=None, dtype=None)"
    (embed_dim, num_heads, dropout=InRange(0.0), bias=true, *, num_key_value_heads=None, is_causal=false, generator=None, initializer=None, device=None, dtype=None)
    (
        embed_dim: InRange<usize>, num_heads: InRange<usize>, dropout: InRange<f64>, bias: bool,
        num_key_value_heads: Option<InRange<usize>>, is_causal: bool, generator: Option<&Bound<'py, PyGenerator>>,
        initializer: InitializerArgument<'_, 'py>, device: Option<DeviceArgument>, dtype: Option<DTypeArgument>,
    )
    let source = self::initializer("MultiHeadAttention", initializer, device, dtype)?;
    let draws = generator_or_default(generator);
    => attention(embed_dim, [num_heads, num_key_value_heads.unwrap_or(num_heads)], is_causal, bias, dropout, &source, &draws).map(moded);

    /// Two linear layers with an activation between them: "gelu_tanh", "gelu", "relu" or "silu". `hidden` is by default 4 embed_dim.
    PyFeedForward "FeedForward" "(embed_dim, hidden=None, bias=True, *, activation='gelu_tanh', initializer=None, device=None, dtype=None)"
    (embed_dim, hidden=None, bias=true, *, activation="gelu_tanh", initializer=None, device=None, dtype=None)
    (
        embed_dim: InRange<usize>, hidden: Option<InRange<usize>>, bias: bool, activation: &str,
        initializer: InitializerArgument<'_, 'py>, device: Option<DeviceArgument>, dtype: Option<DTypeArgument>,
    )
    let source = self::initializer("FeedForward", initializer, device, dtype)?;
    => feed_forward(embed_dim, hidden, bias, activation, &source).map(moded);

    /// x + attention(norm(x)), then y + feed_forward(norm(y)), for (batch, length, embed_dim): a block of GPT-2.
    PyTransformerBlock "TransformerBlock" "(embed_dim, num_heads, dropout=0.0, bias=True, *, num_key_value_heads=None, is_causal=False, hidden=None, activation='gelu_tanh', generator=None, initializer=None, device=None, dtype=None)"
    (embed_dim, num_heads, dropout=InRange(0.0), bias=true, *, num_key_value_heads=None, is_causal=false, hidden=None, activation="gelu_tanh", generator=None, initializer=None, device=None, dtype=None)
    (
        embed_dim: InRange<usize>, num_heads: InRange<usize>, dropout: InRange<f64>, bias: bool,
        num_key_value_heads: Option<InRange<usize>>, is_causal: bool, hidden: Option<InRange<usize>>, activation: &str,
        generator: Option<&Bound<'py, PyGenerator>>,
        initializer: InitializerArgument<'_, 'py>, device: Option<DeviceArgument>, dtype: Option<DTypeArgument>,
    )
    let source = self::initializer("TransformerBlock", initializer, device, dtype)?;
    let draws = generator_or_default(generator);
    => attention(embed_dim, [num_heads, num_key_value_heads.unwrap_or(num_heads)], is_causal, bias, dropout, &source, &draws)
        .and_then(|attention| TransformerBlock::new(attention, feed_forward(embed_dim, hidden, bias, activation, &source)?, &source))
        .and_then(|block| block.with_dropout(dropout.0, &draws))
        .map(moded);

    /// max(x, 0).
    PyRelu "ReLU" "()" () () => Ok(fixed(Relu));
    /// x Φ(x) by the error function, or by tanh with approximate="tanh".
    PyGelu "GELU" "(approximate='none')" (approximate="none") (approximate: &str) => match approximate {
        "none" => Ok(fixed(Gelu)),
        "tanh" => Ok(fixed(GeluTanh)),
        other => Err(invalid("GELU", format!("approximate \"{other}\""), "\"none\" or \"tanh\"")),
    };
    /// x / (1 + e^-x).
    PySilu "SiLU" "()" () () => Ok(fixed(Silu));
    /// The hyperbolic tangent.
    PyTanh "Tanh" "()" () () => Ok(fixed(Tanh));
    /// 1 / (1 + e^-x).
    PySigmoid "Sigmoid" "()" () () => Ok(fixed(Sigmoid));
}

fn attention(
    embed_dim: InRange<usize>,
    [heads, key_value_heads]: [InRange<usize>; 2],
    is_causal: bool,
    has_bias: bool,
    dropout: InRange<f64>,
    initializer: &Initializer,
    generator: &Generator,
) -> selvedge::Result<MultiHeadAttention> {
    let mut options = MultiHeadAttentionOptions::new(heads.0);
    options.key_value_heads = key_value_heads.0;
    options.is_causal = is_causal;
    options.has_bias = has_bias;
    MultiHeadAttention::new(embed_dim.0, options, initializer)?.with_dropout(dropout.0, generator)
}

fn feed_forward(
    embed_dim: InRange<usize>,
    hidden: Option<InRange<usize>>,
    has_bias: bool,
    activation: &str,
    initializer: &Initializer,
) -> selvedge::Result<FeedForward> {
    let options = FeedForwardOptions { hidden: hidden.map(|hidden| hidden.0), has_bias };
    let layer = FeedForward::new(embed_dim.0, options, initializer)?;
    Ok(match activation {
        "gelu_tanh" => layer.with_activation(GeluTanh),
        "gelu" => layer.with_activation(Gelu),
        "relu" => layer.with_activation(Relu),
        "silu" => layer.with_activation(Silu),
        other => {
            let found = format!("the activation \"{other}\"");
            return Err(invalid("FeedForward", found, "\"gelu_tanh\", \"gelu\", \"relu\" or \"silu\""));
        }
    })
}

/// Modules one after another: `Sequential(first, second, ...)`. Linear layers in a row, each with or without an activation, are one
/// operation.
///
/// >>> model = sv.nn.Sequential(sv.nn.Linear(3, 8), sv.nn.ReLU(), sv.nn.Linear(8, 2))
/// >>> model(sv.ones(5, 3)).shape
/// (5, 2)
#[pyclass(name = "Sequential", module = "selvedge.nn", frozen, extends = PyNnModule, subclass)]
pub struct PySequential;

impl PySequential {
    /// Returns the modules, which are attributes with their positions as names.
    fn modules<'py>(slf: &Bound<'py, Self>) -> Result<Vec<Bound<'py, PyNnModule>>> {
        let attributes = slf.getattr("__dict__")?;
        let mut modules = Vec::new();
        while let Ok(module) = attributes.get_item(modules.len().to_string()) {
            modules.push(module.cast_into::<PyNnModule>().map_err(PyErr::from)?);
        }
        Ok(modules)
    }
}

#[pymethods]
impl PySequential {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords), text_signature = "(*modules)")]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PySequential> {
        PyClassInitializer::from(PyNnModule::empty()).add_subclass(PySequential)
    }

    #[pyo3(signature = (*modules))]
    fn __init__(slf: &Bound<'_, Self>, modules: &Bound<'_, PyTuple>) -> Result<()> {
        let attributes = slf.getattr("__dict__")?;
        for (position, module) in modules.iter().enumerate() {
            if !module.is_instance_of::<PyNnModule>() {
                let found = format!("{} as module {position}", type_name(&module));
                return Err(wrong_type("Sequential", found, "a selvedge.nn.Module").into());
            }
            attributes.set_item(position.to_string(), module)?;
        }
        Ok(())
    }

    /// The result of the modules for an input.
    fn forward(slf: &Bound<'_, Self>, input: VariableArgument) -> Result<PyVariable> {
        let mut model = Sequential::new();
        for module in PySequential::modules(slf)? {
            model = model.with(ObjectModule::of_forward(&module));
        }
        Ok(slf.py().detach(|| model.forward(&input.0))?.into())
    }

    fn __len__(slf: &Bound<'_, Self>) -> Result<usize> {
        Ok(PySequential::modules(slf)?.len())
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, position: InRange<isize>) -> Result<Bound<'py, PyNnModule>> {
        let mut modules = PySequential::modules(slf)?;
        let count = modules.len() as isize;
        let place = if position.0 < 0 { position.0 + count } else { position.0 };
        if !(0..count).contains(&place) {
            return Err(selvedge::Error::IndexOutOfRange {
                operation: "Sequential",
                index: position.0 as i64,
                axis: None,
                size: count as usize,
            }
            .into());
        }
        Ok(modules.swap_remove(place as usize))
    }
}

macro_rules! variables {
    ($($class:ident: $($name:ident)*;)*) => {$(
        #[pymethods]
        impl $class {
            $(
                #[doc = concat!("The ", stringify!($name), ", None without one.")]
                #[getter]
                fn $name<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyParameter>>> {
                    let (name, module) = (stringify!($name), slf.as_super());
                    let found = module.get().variable_of_layer(name);
                    found.map(|variable| parameter_of(slf.py(), variable, module.as_any(), name)).transpose()
                }
            )*
        }
    )*};
}

variables! {
    PyLinear: weight bias;
    PyEmbedding: weight;
    PyLayerNorm: weight bias;
    PyRmsNorm: weight;
    PyBatchNorm1d: weight bias;
    PyBatchNorm2d: weight bias;
}
