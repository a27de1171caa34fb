//! `selvedge.kernel`: kernels of CUDA C++ or of an image that are called with tensors.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};
use selvedge::driver::{self, Argument, Dim3, Function, LaunchConfig, LinkInput, ModuleOptions};
use selvedge::launcher::{Definition, Launcher};
use selvedge::nvrtc::Program;
use selvedge::tensor::StreamGuard;
use selvedge::tensor::kernel::{Output, run_addresses};
use selvedge::{DType, Device, Tensor};

use crate::arguments::{DTypeArgument, InRange};
use crate::error::{Result, invalid, type_name, wrong_type};
use crate::nested::is_sequence;
use crate::stream::{PyStream, cuda_device};
use crate::tensor::PyTensor;

const OPERATION: &str = "a kernel";

/// The place of a kernel's argument that it writes: the dtype and the shape of a new tensor.
#[pyclass(name = "KernelOutput", module = "selvedge", frozen)]
pub struct PyKernelOutput {
    shape: Vec<usize>,
    dtype: DType,
}

#[pymethods]
impl PyKernelOutput {
    #[new]
    #[pyo3(signature = (shape, dtype))]
    fn new(shape: Vec<InRange<usize>>, dtype: DTypeArgument) -> PyKernelOutput {
        PyKernelOutput { shape: shape.into_iter().map(|size| size.0).collect(), dtype: dtype.0 }
    }

    fn __repr__(&self) -> String {
        format!("output({:?}, {})", self.shape, self.dtype)
    }
}

/// A kernel of CUDA C++, which NVRTC compiles at the first launch on a device: `selvedge.kernel(source, name, *, options=())`.
///
/// `name` is that of an `extern "C"` kernel, or an instance of a template such as "scale<float>". `options` are those of NVRTC. A call takes
/// the kernel's arguments in their order: tensors that it reads, `selvedge.output(shape, dtype)` for each that it writes, and numbers, which
/// become integers or floats of the parameter's size. It returns the outputs: one tensor, or a tuple of several.
///
/// Sizes of the grid, the block and the cluster are one, two or three integers; `shared` are the bytes of dynamic shared memory. The launch goes
/// to `stream`, or to this thread's stream of operations on the device.
///
///     scale = sv.kernel(source, "scale")
///     y = scale(x, sv.output(x.shape, "f32"), 2.0, x.size, grid=(x.size + 255) // 256, block=256)
#[pyclass(name = "Kernel", module = "selvedge", frozen)]
pub struct PyKernel {
    name: String,
    code: KernelCode,
    /// By the device, which a reset makes another one.
    compiled: Mutex<HashMap<driver::Device, Function>>,
}

/// The code of a kernel.
enum KernelCode {
    Source {
        text: String,
        options: Vec<String>,
    },
    Image(Vec<u8>),
    /// Images that the driver's linker makes one of.
    Images(Vec<Vec<u8>>),
}

impl KernelCode {
    fn function(&self, name: &str, device: &driver::Device) -> selvedge::Result<Function> {
        let definition = Definition::new(name);
        let definition = match self {
            KernelCode::Images(images) => {
                let names: Vec<String> = (0..images.len()).map(|at| format!("image {at}")).collect();
                let inputs = names.iter().zip(images);
                let inputs: Vec<_> = inputs.map(|(name, image)| LinkInput { name, image }).collect();
                return device.link(&inputs, &ModuleOptions::default())?.function(name);
            }
            KernelCode::Image(image) => definition.image(image.as_slice()),
            KernelCode::Source { text, options } => {
                let file = name.split('<').next().unwrap_or(name);
                let program = Program::new(format!("{file}.cu"), text.as_str());
                let program = options.iter().fold(program, |program, option| program.option(option.as_str()));
                match name.contains('<') {
                    true => definition.program(program.expression(name)).entry(name),
                    false => definition.program(program),
                }
            }
        };
        Ok(Launcher::new(device)?.define(definition)?.function()?.clone())
    }
}

/// Returns the bytes of an image.
fn image_of(image: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
    if let Ok(text) = image.cast::<PyString>() {
        return Ok(text.to_string().into_bytes());
    }
    let wanted = "PTX as str, or an image as bytes";
    let bytes = image.cast::<PyBytes>().map_err(|_| wrong_type(OPERATION, type_name(image), wanted))?;
    Ok(bytes.as_bytes().to_vec())
}

/// The sizes of a grid or a block.
struct Sizes(Dim3);

impl<'a, 'py> FromPyObject<'a, 'py> for Sizes {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(x) = object.extract::<u32>() {
            return Ok(Sizes(x.into()));
        }
        if let Ok((x, y)) = object.extract::<(u32, u32)>() {
            return Ok(Sizes((x, y).into()));
        }
        if let Ok(sizes) = object.extract::<(u32, u32, u32)>() {
            return Ok(Sizes(sizes.into()));
        }
        let error = wrong_type(OPERATION, type_name(&object), "a size, or a tuple of two or three");
        Err(crate::error::Failure::from(error).into())
    }
}

/// An argument of a call, without the interpreter.
#[derive(Clone, Copy)]
enum Value {
    /// The position among the inputs.
    Input(usize),
    /// The position among the outputs.
    Output(usize),
    Integer(i128),
    Float(f64),
}

impl Value {
    /// Returns the argument of a parameter, whose size is known for most kernels.
    fn argument(
        self,
        position: usize,
        size: Option<usize>,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> selvedge::Result<Argument<'static>> {
        let refused = |found: String, wanted: &str| {
            invalid(OPERATION, format!("argument {position} of {found}"), wanted)
        };
        let address = |address: Option<usize>| Argument::raw_address(address.unwrap_or(0) as u64);
        Ok(match self {
            Value::Input(at) => address(inputs.get(at).map(|input| input.expose_provenance())),
            Value::Output(at) => address(outputs.get(at).map(|output| output.expose_provenance())),
            // The bits of both signs are the same, so the range is that of either.
            Value::Integer(number) => {
                let size = size.unwrap_or(4);
                let bits = 8 * size as u32;
                if !matches!(size, 1 | 2 | 4 | 8) {
                    return Err(refused(
                        format!("the integer {number}"),
                        &format!("what fits a parameter of {size} bytes"),
                    ));
                }
                if number < -(1 << (bits - 1)) || number >= 1 << bits {
                    return Err(refused(number.to_string(), &format!("an integer of {bits} bits")));
                }
                match size {
                    1 => Argument::integer(number as u8),
                    2 => Argument::integer(number as u16),
                    4 => Argument::integer(number as u32),
                    _ => Argument::integer(number as u64),
                }
            }
            Value::Float(number) => match size.unwrap_or(4) {
                4 => Argument::float(number as f32),
                8 => Argument::float(number),
                size => {
                    return Err(refused(
                        format!("the float {number}"),
                        &format!("what fits a parameter of {size} bytes"),
                    ));
                }
            },
        })
    }
}

impl PyKernel {
    fn compiled(&self, device: &driver::Device) -> selvedge::Result<Function> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = compiled.get(device) {
            return Ok(function.clone());
        }
        let function = self.code.function(&self.name, device)?;
        compiled.insert(*device, function.clone());
        Ok(function)
    }

    fn launch(
        &self,
        device: &Device,
        (values, inputs): (&[Value], &[Tensor]),
        outputs: &mut [Output],
        config: LaunchConfig,
    ) -> selvedge::Result<()> {
        let inputs = inputs.iter().map(Tensor::contiguous).collect::<selvedge::Result<Vec<_>>>()?;
        let refused = || invalid(OPERATION, "tensors on the CPU", "tensors on a CUDA device");
        let function = self.compiled(device.as_cuda().ok_or_else(refused)?)?;
        let on_cpu = |_: &[*const u8], _: &[*mut u8]| Err(refused());
        run_addresses(OPERATION, &inputs, outputs, on_cpu, |stream, inputs, outputs| {
            let parameters = function.parameters();
            let size = |at: usize| parameters.and_then(|all| all.get(at)).map(|parameter| parameter.size);
            let arguments: Vec<Argument<'_>> = values
                .iter()
                .enumerate()
                .map(|(at, value)| value.argument(at, size(at), inputs, outputs))
                .collect::<selvedge::Result<_>>()?;
            // SAFETY: the addresses are those of operands that are held during the launch; the caller in Python vouches for the
            // kernel, as the documentation says.
            unsafe { function.launch(stream, config, &arguments[..]) }
        })
    }
}

#[pymethods]
impl PyKernel {
    #[new]
    #[pyo3(signature = (source, name, *, options=Vec::new()), text_signature = "(source, name, *, options=())")]
    fn new(source: String, name: String, options: Vec<String>) -> PyKernel {
        PyKernel { name, code: KernelCode::Source { text: source, options }, compiled: Mutex::default() }
    }

    /// A kernel of an image, which the driver loads at the first launch on a device: PTX, as text or bytes, a cubin or a fatbin.
    ///
    /// The driver links a list of images: kernels of one may call functions of another.
    ///
    ///     scale = sv.kernel.from_image(pathlib.Path("scale.ptx").read_bytes(), "scale")
    ///     filter = sv.kernel.from_image([filter_ptx, functions_ptx], "filter")
    #[staticmethod]
    fn from_image(image: &Bound<'_, PyAny>, name: String) -> Result<PyKernel> {
        let code = if is_sequence(image) {
            let images: Vec<Vec<u8>> =
                image.try_iter()?.map(|image| image_of(&image?)).collect::<Result<_>>()?;
            if images.is_empty() {
                return Err(invalid(OPERATION, "no images", "at least one image").into());
            }
            KernelCode::Images(images)
        } else {
            KernelCode::Image(image_of(image)?)
        };
        Ok(PyKernel { name, code, compiled: Mutex::default() })
    }

    /// The name of the kernel.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    fn __repr__(&self) -> String {
        format!("kernel({:?})", self.name)
    }

    #[pyo3(signature = (*arguments, grid, block=Sizes(Dim3::from(256)), shared=InRange(0), stream=None, cluster=None, cooperative=false))]
    #[allow(clippy::too_many_arguments, reason = "the keywords of a launch")]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
        grid: Sizes,
        block: Sizes,
        shared: InRange<u32>,
        stream: Option<&Bound<'py, PyStream>>,
        cluster: Option<Sizes>,
        cooperative: bool,
    ) -> Result<Bound<'py, PyAny>> {
        let mut config = LaunchConfig::new(grid.0, block.0).shared(shared.0);
        if let Some(cluster) = cluster {
            config = config.cluster(cluster.0);
        }
        if cooperative {
            config = config.cooperative();
        }
        let (mut values, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        for (at, argument) in arguments.iter().enumerate() {
            values.push(if let Ok(tensor) = argument.cast::<PyTensor>() {
                inputs.push(tensor.get().tensor(py));
                Value::Input(inputs.len() - 1)
            } else if let Ok(output) = argument.cast::<PyKernelOutput>() {
                outputs.push((output.get().dtype, output.get().shape.clone()));
                Value::Output(outputs.len() - 1)
            } else if argument.is_instance_of::<PyFloat>() {
                Value::Float(argument.extract()?)
            } else if argument.is_instance_of::<PyBool>() {
                Value::Integer(argument.extract::<bool>()?.into())
            } else if argument.is_instance_of::<PyInt>() || argument.hasattr("__index__")? {
                let number = argument.extract::<i128>();
                Value::Integer(
                    number
                        .map_err(|_| invalid(OPERATION, format!("argument {at}"), "an integer of 64 bits"))?,
                )
            } else {
                let found = format!("argument {at} of type {}", type_name(&argument));
                return Err(wrong_type(OPERATION, found, "a tensor, an output, an integer or a float").into());
            });
        }
        if outputs.is_empty() {
            return Err(invalid(
                OPERATION,
                "no output",
                "selvedge.output(shape, dtype) for each argument that it writes",
            )
            .into());
        }
        let stream = stream.map(|stream| &stream.get().stream);
        let device = match (inputs.first(), stream) {
            (Some(input), _) => input.device(),
            (None, Some(stream)) => stream.device().into(),
            (None, None) => cuda_device(OPERATION, None)?.into(),
        };
        if let Some(stream) = stream
            && device != stream.device().into()
        {
            let found = format!("tensors on {device} and a stream of {}", Device::from(stream.device()));
            return Err(invalid(OPERATION, found, "both of one CUDA device").into());
        }
        let made = py.detach(|| -> selvedge::Result<Vec<Tensor>> {
            let _guard = stream.map(StreamGuard::new);
            let mut made = outputs
                .iter()
                .map(|(dtype, shape)| Output::new(&device, *dtype, shape))
                .collect::<selvedge::Result<Vec<_>>>()?;
            self.launch(&device, (&values, &inputs), &mut made, config)?;
            Ok(made.into_iter().map(Output::into_tensor).collect())
        })?;
        let mut made = made.into_iter().map(PyTensor::from);
        match (made.next(), made.len()) {
            (Some(only), 0) => Ok(Bound::new(py, only)?.into_any()),
            (first, _) => Ok(PyTuple::new(
                py,
                first.into_iter().chain(made).map(|one| Py::new(py, one)).collect::<PyResult<Vec<_>>>()?,
            )?
            .into_any()),
        }
    }
}
