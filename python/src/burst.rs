//! `selvedge.burst.Network`: a network of spiking neurons with its run.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use selvedge::burst::{
    Backend, Cpu, Cuda, GeneratedNetwork, MAX_NEURONS, Network, Neurons, Simulation, SynapseArrays,
    check_host_memory,
};
use selvedge::tensor::TensorOperand;
use selvedge::types::Element;
use selvedge::{DType, Device, Tensor};

use crate::arguments::{DeviceArgument, InRange};
use crate::device::device_or_default;
use crate::error::{Result, invalid};
use crate::tensor::{PyTensor, new_tensor};

/// A network of spiking neurons that runs on the CPU or a CUDA device, with the same spikes on both.
///
/// `Network(neurons, source, target, weight, psp, kind=0, *, seed=0, device=None, ...)` takes the number of neurons and the
/// synapses as arrays. Further keywords are neuron fields, each a number or an array: threshold, threshold_max, leak, rest,
/// refractory, excitability, fire_limit, snooze, accumulates, kind of neuron as neuron_kind. Spikes are recorded.
#[pyclass(name = "Network", module = "selvedge.burst", frozen)]
pub struct PyNetwork(Mutex<Run>);

/// A simulation, and the generator of its input.
struct Run {
    simulation: Simulation,
    generated: Option<GeneratedNetwork>,
    /// The first burst of the recording, less 1.
    start: u64,
}

fn backend(device: Option<DeviceArgument>) -> Result<Box<dyn Backend>> {
    Ok(match device_or_default(device).as_cuda() {
        Some(device) => Box::new(Cuda::new(*device)?),
        None => Box::new(Cpu::new()),
    })
}

/// Returns the elements of an array, which the dtype must hold, or `count` times a number.
fn vector<T: Element>(name: &'static str, data: &Bound<'_, PyAny>, count: Option<usize>) -> Result<Vec<T>> {
    let tensor = new_tensor(data, None, Some(Device::cpu()))?;
    let shape_wanted = match (tensor.rank(), count) {
        (0, Some(_)) | (1, None) => None,
        (1, Some(count)) if tensor.count() == count => None,
        (_, Some(count)) => Some(format!("a number, or an array of {count}")),
        (_, None) => Some("an array of one dimension".to_owned()),
    };
    if let Some(wanted) = shape_wanted {
        return Err(invalid(name, format!("an array of shape {:?}", tensor.shape()), wanted).into());
    }
    // Elements take long to convert, so other threads of Python run meanwhile.
    let elements = data.py().detach(|| -> selvedge::Result<Option<Vec<T>>> {
        let narrow = tensor.cast(T::DTYPE)?;
        if T::DTYPE.is_integer() && !narrow.cast(tensor.dtype())?.equal(&tensor)? {
            return Ok(None);
        }
        match count {
            Some(count) if tensor.rank() == 0 => narrow.expand(&[count])?.to_vec::<T>().map(Some),
            _ => narrow.to_vec::<T>().map(Some),
        }
    })?;
    let found = || format!("elements of {} beyond {}", tensor.dtype(), T::DTYPE);
    Ok(elements.ok_or_else(|| invalid(name, found(), format!("elements that {} holds", T::DTYPE)))?)
}

/// Returns neurons with these fields.
fn neurons(count: usize, fields: Option<&Bound<'_, PyDict>>) -> Result<Neurons> {
    if count > MAX_NEURONS {
        return Err(invalid("neurons", format!("{count}"), "at most 2^31").into());
    }
    check_host_memory(count as u64, 0)?;
    let mut neurons = Neurons::new(count);
    let Some(fields) = fields else { return Ok(neurons) };
    for (name, value) in fields {
        let name = name.cast_into::<PyString>().map_err(PyErr::from)?.to_string();
        let all = Some(count);
        match name.as_str() {
            "threshold" => neurons.threshold = vector("threshold", &value, all)?,
            "threshold_max" => neurons.threshold_max = vector("threshold_max", &value, all)?,
            "leak" => neurons.leak = vector("leak", &value, all)?,
            "rest" => neurons.rest = vector("rest", &value, all)?,
            "refractory" => neurons.refractory = vector("refractory", &value, all)?,
            "excitability" => neurons.excitability = vector("excitability", &value, all)?,
            "fire_limit" => neurons.fire_limit = vector("fire_limit", &value, all)?,
            "snooze" => neurons.snooze = vector("snooze", &value, all)?,
            "accumulates" => {
                let flags = vector::<u8>("accumulates", &value, all)?;
                neurons.accumulates = flags.into_iter().map(|flag| flag != 0).collect();
            }
            "neuron_kind" => neurons.kind = vector("neuron_kind", &value, all)?,
            _ => {
                let wanted = "threshold, threshold_max, leak, rest, refractory, excitability, fire_limit, snooze, \
                              accumulates or neuron_kind";
                return Err(invalid("a neuron field", format!("{name:?}"), wanted).into());
            }
        }
    }
    Ok(neurons)
}

impl PyNetwork {
    fn of(mut simulation: Simulation, generated: Option<GeneratedNetwork>) -> Result<PyNetwork> {
        simulation.record_spikes(true);
        let start = simulation.state()?.burst;
        Ok(PyNetwork(Mutex::new(Run { simulation, generated, start })))
    }

    /// Works on the run while other threads of Python run.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Run) -> selvedge::Result<T> + Send,
    ) -> Result<T> {
        Ok(py.detach(|| work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))?)
    }
}

/// Returns a vector on the CPU.
fn array<T: Element>(elements: &[T]) -> selvedge::Result<Tensor> {
    Tensor::from_slice(elements, &[elements.len()], &Device::cpu())
}

#[pymethods]
impl PyNetwork {
    #[new]
    #[pyo3(signature = (neurons, source, target, weight, psp, kind=None, *, seed=InRange(0), device=None, **fields), text_signature = "(neurons, source, target, weight, psp, kind=None, *, seed=0, device=None, **fields)")]
    #[allow(clippy::too_many_arguments, reason = "the arrays of a network")]
    fn new(
        py: Python<'_>,
        neurons: InRange<usize>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        weight: &Bound<'_, PyAny>,
        psp: &Bound<'_, PyAny>,
        kind: Option<&Bound<'_, PyAny>>,
        seed: InRange<u32>,
        device: Option<DeviceArgument>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> Result<PyNetwork> {
        let neurons = self::neurons(neurons.0, fields)?;
        let (source, target) =
            (vector::<u32>("source", source, None)?, vector::<u32>("target", target, None)?);
        let all = Some(source.len());
        let (weight, psp) = (vector::<u8>("weight", weight, all)?, vector::<u8>("psp", psp, all)?);
        let kind = kind.map_or(Ok(vec![0; source.len()]), |kind| vector::<u8>("kind", kind, all))?;
        check_host_memory(neurons.len() as u64, source.len() as u64)?;
        let backend = backend(device)?;
        let simulation = py.detach(|| {
            let synapses =
                SynapseArrays { source: &source, target: &target, weight: &weight, psp: &psp, kind: &kind };
            Simulation::new(Network::from_arrays(neurons, &synapses)?.into(), backend, seed.0)
        })?;
        PyNetwork::of(simulation, None)
    }

    /// A generated network: kind "G" has varied parameters, and of "S" one neuron in `every` fires in each burst.
    #[staticmethod]
    #[pyo3(signature = (kind, neurons, degree, every=InRange(50), *, seed=InRange(0), device=None), text_signature = "(kind, neurons, degree, every=50, *, seed=0, device=None)")]
    fn generated(
        py: Python<'_>,
        kind: &str,
        neurons: InRange<u32>,
        degree: InRange<u32>,
        every: InRange<u32>,
        seed: InRange<u32>,
        device: Option<DeviceArgument>,
    ) -> Result<PyNetwork> {
        let generated = match kind {
            "G" => GeneratedNetwork::g(neurons.0, degree.0),
            "S" => GeneratedNetwork::s(neurons.0, degree.0, every.0),
            _ => return Err(invalid("kind", format!("{kind:?}"), "\"G\" or \"S\"").into()),
        };
        let backend = backend(device)?;
        let simulation = py.detach(|| Simulation::new(generated.network()?.into(), backend, seed.0))?;
        PyNetwork::of(simulation, Some(generated))
    }

    /// A network with its state, of a `.burst` file.
    #[staticmethod]
    #[pyo3(signature = (path, *, device=None))]
    fn load(py: Python<'_>, path: PathBuf, device: Option<DeviceArgument>) -> Result<PyNetwork> {
        let backend = backend(device)?;
        PyNetwork::of(py.detach(|| Simulation::restore(path, backend))?, None)
    }

    /// Writes the network with its state to a `.burst` file. Recorded spikes are not part of it.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<()> {
        self.with(py, |run| run.simulation.save(path))
    }

    /// Adds potentials, a number or an array, to neurons in the next burst.
    fn inject(&self, py: Python<'_>, ids: &Bound<'_, PyAny>, potentials: &Bound<'_, PyAny>) -> Result<()> {
        let ids = vector::<u32>("ids", ids, None)?;
        let potentials = vector::<f32>("potentials", potentials, Some(ids.len()))?;
        let inputs: Vec<(u32, f32)> = ids.into_iter().zip(potentials).collect();
        self.with(py, |run| run.simulation.inject(&inputs))
    }

    /// Adds a potential to the neurons from first to before end in every burst; 0 ends it.
    fn set_power(
        &self,
        py: Python<'_>,
        first: InRange<u32>,
        end: InRange<u32>,
        potential: InRange<f32>,
    ) -> Result<()> {
        self.with(py, |run| run.simulation.set_power(first.0..end.0, potential.0))
    }

    /// Runs bursts. With `generated_input` a generated network gets its own input before each.
    #[pyo3(signature = (bursts=InRange(1), *, generated_input=false), text_signature = "($self, bursts=1, *, generated_input=False)")]
    fn run(&self, py: Python<'_>, bursts: InRange<u64>, generated_input: bool) -> Result<()> {
        self.with(py, |run| {
            if !generated_input {
                return run.simulation.run(bursts.0);
            }
            let Some(generated) = run.generated else {
                return Err(invalid("generated_input", "a network of arrays", "a generated network"));
            };
            let first = run.simulation.state()?.burst + 1;
            for burst in first..first.saturating_add(bursts.0) {
                let inputs = generated.injections(burst).into_iter();
                let inputs: Vec<(u32, f32)> =
                    inputs.map(|input| (input.id, input.thousandths as f32 / 1000.0)).collect();
                run.simulation.inject(&inputs)?;
                run.simulation.run(1)?;
            }
            Ok(())
        })
    }

    /// The recorded spikes: the bursts as u64 and the ids as u32, ascending by burst and then by id.
    #[getter]
    fn spikes(&self, py: Python<'_>) -> Result<(PyTensor, PyTensor)> {
        let (bursts, ids) = self.with(py, |run| {
            let (bursts, ids) = run.simulation.spikes();
            Ok((array(bursts)?, array(ids)?))
        })?;
        Ok((bursts.into(), ids.into()))
    }

    /// Drops the recorded spikes.
    fn clear_spikes(&self, py: Python<'_>) -> Result<()> {
        self.with(py, |run| {
            run.start = run.simulation.state()?.burst;
            run.simulation.record_spikes(true);
            Ok(())
        })
    }

    /// The recorded spikes of each neuron for each burst of the recording, as f64.
    fn rates(&self, py: Python<'_>) -> Result<PyTensor> {
        let rates = self.with(py, |run| {
            let bursts = run.simulation.state()?.burst - run.start;
            let counts = array(run.simulation.spikes().1)?.cast(DType::I64)?;
            let counts = counts.bincount(run.simulation.network().len())?.cast(DType::F64)?;
            let bursts = TensorOperand::from(bursts.max(1) as f64);
            selvedge::tensor::apply(selvedge::fuse::Operation::Div, &[(&counts).into(), bursts])
        })?;
        Ok(rates.into())
    }

    /// The potential of each neuron.
    #[getter]
    fn potentials(&self, py: Python<'_>) -> Result<PyTensor> {
        let potentials = self.with(py, |run| {
            let state = run.simulation.state()?;
            array(&state.neurons.iter().map(|neuron| neuron.potential).collect::<Vec<f32>>())
        })?;
        Ok(potentials.into())
    }

    /// The number of the last burst.
    #[getter]
    fn burst(&self, py: Python<'_>) -> Result<u64> {
        self.with(py, |run| Ok(run.simulation.state()?.burst))
    }

    /// The number of neurons.
    #[getter]
    fn neurons(&self, py: Python<'_>) -> Result<usize> {
        self.with(py, |run| Ok(run.simulation.network().len()))
    }

    /// The number of synapses.
    #[getter]
    fn synapses(&self, py: Python<'_>) -> Result<usize> {
        self.with(py, |run| Ok(run.simulation.network().synapses().len()))
    }

    /// A checksum of the state, equal on every device.
    #[getter]
    fn state_hash(&self, py: Python<'_>) -> Result<u64> {
        self.with(py, |run| Ok(run.simulation.state()?.hash()))
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        self.with(py, |run| {
            let network = run.simulation.network();
            Ok(format!("Network(neurons={}, synapses={})", network.len(), network.synapses().len()))
        })
    }
}

/// Adds the class to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyNetwork>()
}
