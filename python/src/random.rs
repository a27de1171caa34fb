//! `selvedge.Generator`, and random tensors.

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use selvedge::DType;
use selvedge::tensor::{Generator, GeneratorState};

use crate::arguments::{DTypeArgument, DeviceArgument, InRange, Operand, Sizes, SizesAndOthers};
use crate::creation::dtype_or_default;
use crate::device::device_or_default;
use crate::error::Result;
use crate::tensor::PyTensor;

/// A random number generator: `Generator(seed)`; without a seed an unpredictable one.
#[pyclass(name = "Generator", module = "selvedge", frozen)]
pub struct PyGenerator(Generator);

impl From<Generator> for PyGenerator {
    fn from(generator: Generator) -> PyGenerator {
        PyGenerator(generator)
    }
}

impl PyGenerator {
    /// Returns the generator of Rust.
    pub fn generator(&self) -> &Generator {
        &self.0
    }
}

/// Returns the given generator, or the device's own.
pub fn generator_or_default(
    generator: Option<&Bound<'_, PyGenerator>>,
    device: &selvedge::Device,
) -> Generator {
    generator.map_or_else(|| device.generator(), |generator| generator.get().0.clone())
}

macro_rules! draws_of_sizes {
    ($($name:ident $document:literal)*) => {$(
        #[doc = $document]
        #[pyfunction]
        #[pyo3(
            signature = (*sizes, shape=None, dtype=None, device=None, generator=None),
            text_signature = "(*shape, dtype=None, device=None, generator=None)"
        )]
        pub fn $name<'py>(
            sizes: &Bound<'py, PyTuple>,
            shape: Option<Sizes>,
            dtype: Option<DTypeArgument>,
            device: Option<DeviceArgument>,
            generator: Option<Bound<'py, PyGenerator>>,
        ) -> Result<PyTensor> {
            let mut arguments = SizesAndOthers::new(stringify!($name), sizes, shape)?;
            let dtype = dtype_or_default(arguments.next("dtype", dtype)?);
            let device = device_or_default(arguments.next("device", device)?);
            let generator = generator_or_default(arguments.next("generator", generator)?.as_ref(), &device);
            let shape = arguments.shape()?.map_or_else(Vec::new, |shape| shape.0);
            Ok(sizes.py().detach(|| generator.$name(&shape, dtype, &device))?.into())
        }
    )*};
}

draws_of_sizes! {
    rand "Uniform random numbers from 0 to before 1: `rand(2, 3)` or `rand((2, 3))`."
    randn "Normal random numbers of mean 0 and deviation 1: `randn(2, 3)` or `randn((2, 3))`."
}

macro_rules! draws {
    ($($(#[doc = $document:literal])* $name:ident $text:literal ($($argument:ident: $type:ty = $default:expr),+) |$generator:ident, $shape:ident, $dtype:ident, $device:ident| $work:expr;)*) => {$(
        $(#[doc = $document])*
        #[pyfunction]
        #[pyo3(signature = ($($argument = $default,)+ shape=Sizes(Vec::new()), dtype=None, device=None, generator=None), text_signature = $text)]
        pub fn $name(
            py: Python<'_>,
            $($argument: $type,)+
            shape: Sizes,
            dtype: Option<DTypeArgument>,
            device: Option<DeviceArgument>,
            generator: Option<&Bound<'_, PyGenerator>>,
        ) -> Result<PyTensor> {
            let ($dtype, $device) = (dtype_or_default(dtype), device_or_default(device));
            let ($generator, $shape) = (generator_or_default(generator, &$device), shape.0);
            Ok(py.detach(|| $work)?.into())
        }
    )*};
}

draws! {
    /// Uniform random numbers from low to before high.
    uniform "(low=0.0, high=1.0, shape=(), dtype=None, device=None, generator=None)" (low: Operand = Operand::Number(0.0.into()), high: Operand = Operand::Number(1.0.into()))
        |generator, shape, dtype, device| generator.uniform(low.operand(), high.operand(), &shape, dtype, &device);
    /// Normal random numbers.
    normal "(mean=0.0, deviation=1.0, shape=(), dtype=None, device=None, generator=None)" (mean: Operand = Operand::Number(0.0.into()), deviation: Operand = Operand::Number(1.0.into()))
        |generator, shape, dtype, device| generator.normal(mean.operand(), deviation.operand(), &shape, dtype, &device);
    /// Ones with a probability, otherwise zeros.
    bernoulli "(probability=0.5, shape=(), dtype=None, device=None, generator=None)" (probability: Operand = Operand::Number(0.5.into()))
        |generator, shape, dtype, device| generator.bernoulli(probability.operand(), &shape, dtype, &device);
}

/// Random integers from low to before high, which may be one past the greatest of the dtype.
#[pyfunction]
#[pyo3(signature = (low, high, shape, dtype=None, device=None, generator=None))]
pub fn randint(
    py: Python<'_>,
    low: InRange<i128>,
    high: InRange<i128>,
    shape: Sizes,
    dtype: Option<DTypeArgument>,
    device: Option<DeviceArgument>,
    generator: Option<&Bound<'_, PyGenerator>>,
) -> Result<PyTensor> {
    let (dtype, device) = (dtype.map_or(DType::I64, |dtype| dtype.0), device_or_default(device));
    let generator = generator_or_default(generator, &device);
    Ok(py.detach(|| generator.randint(low.0, high.0, &shape.0, dtype, &device))?.into())
}

/// The integers from 0 to before count in a random order.
#[pyfunction]
#[pyo3(signature = (count, device=None, generator=None))]
pub fn permutation(
    py: Python<'_>,
    count: InRange<usize>,
    device: Option<DeviceArgument>,
    generator: Option<&Bound<'_, PyGenerator>>,
) -> Result<PyTensor> {
    let device = device_or_default(device);
    let generator = generator_or_default(generator, &device);
    Ok(py.detach(|| generator.permutation(count.0, &device))?.into())
}

/// Sets the seed of the default generator of a device.
#[pyfunction]
#[pyo3(signature = (seed, device=None))]
pub fn manual_seed(seed: InRange<u64>, device: Option<DeviceArgument>) {
    device_or_default(device).manual_seed(seed.0);
}

#[pymethods]
impl PyGenerator {
    #[new]
    #[pyo3(signature = (seed=None))]
    fn new(seed: Option<InRange<u64>>) -> PyGenerator {
        PyGenerator(seed.map_or_else(Generator::unpredictable, |seed| Generator::new(seed.0)))
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed()
    }

    /// The seed and the position, from which `set_state` continues.
    #[getter]
    fn state(&self) -> (u64, u64) {
        let GeneratorState { seed, offset } = self.0.state();
        (seed, offset)
    }

    fn set_state(&self, state: (InRange<u64>, InRange<u64>)) {
        self.0.set_state(GeneratorState { seed: state.0.0, offset: state.1.0 });
    }

    /// Restores a pickled generator.
    #[classmethod]
    fn _at(_class: &Bound<'_, PyType>, seed: InRange<u64>, offset: InRange<u64>) -> PyGenerator {
        PyGenerator(Generator::at(GeneratorState { seed: seed.0, offset: offset.0 }))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (u64, u64))> {
        Ok((py.get_type::<PyGenerator>().getattr("_at")?, self.state()))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}
