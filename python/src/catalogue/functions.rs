//! The table of functions: the documentation of Python, the signature, the kind of the result, and the call of Rust.

use pyo3::prelude::*;
use selvedge::Result as LibraryResult;
use selvedge::catalogue::{self, StdpParameters};

use super::models::{ExpectedFreeEnergy, PolicyPredictions};
use crate::arguments::{InRange, TensorArgument};
use crate::error::Result;
use crate::random::{PyGenerator, generator_or_default};
use crate::tensor::PyTensor;

/// The least and the greatest value of bins.
type BinRange = Option<(InRange<f64>, InRange<f64>)>;

fn numbers(range: BinRange) -> Option<(f64, f64)> {
    range.map(|(least, greatest)| (least.0, greatest.0))
}

macro_rules! functions {
    ($($(#[doc = $document:literal])* $name:ident $text:literal ($($argument:ident: $type:ty $(= $default:expr)?),*) -> $result:ty { $work:expr })*) => {
        $(
            $(#[doc = $document])*
            #[pyfunction]
            #[pyo3(signature = ($($argument $(= $default)?),*), text_signature = $text)]
            #[allow(clippy::too_many_arguments, reason = "the operands of a kernel")]
            fn $name(py: Python<'_>, $($argument: $type),*) -> Result<$result> {
                let work = || -> LibraryResult<$result> { Ok(<$result>::from($work?)) };
                Ok(py.detach(work)?)
            }
        )*

        fn add_table(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

functions! {
    /// The phases (..., n) after one Euler step of the Kuramoto model, from 0 to 2 pi. `omega` has the shape of `theta` or is one row;
    /// `adjacency` is a matrix (n, n), by default of ones.
    ///
    /// >>> theta, omega = sv.Tensor([0.0, 1.0, 2.5]), sv.Tensor([0.1, 0.2, 0.3])
    /// >>> round(sv.catalogue.kuramoto_step(theta, omega, strength=1.0, dt=0.01)[0].item(), 9)
    /// 0.00579981
    kuramoto_step "(theta, omega, strength, dt, adjacency=None)" (theta: TensorArgument, omega: TensorArgument, strength: InRange<f64>, dt: InRange<f64>, adjacency: Option<TensorArgument> = None) -> PyTensor {
        catalogue::kuramoto_step(&theta.0, &omega.0, adjacency.as_ref().map(|matrix| &matrix.0), strength.0, dt.0)
    }
    /// The entropy production of each row of velocities (..., n), of shape (...).
    ///
    /// >>> sv.catalogue.entropy_production(sv.Tensor([1.0, 2.0]), temperature=0.5).item()
    /// 5.0
    entropy_production "(velocity, temperature=1.0)" (velocity: TensorArgument, temperature: InRange<f64> = InRange(1.0)) -> PyTensor {
        catalogue::entropy_production(&velocity.0, temperature.0)
    }
    /// The states tanh((1 - leak) previous + input) of a reservoir, in the shape of both.
    ///
    /// >>> sv.catalogue.reservoir_update(sv.Tensor([0.0]), sv.Tensor([0.0]), leak=0.1).tolist()
    /// [0.0]
    reservoir_update "(previous, input, leak)" (previous: TensorArgument, input: TensorArgument, leak: InRange<f64>) -> PyTensor {
        catalogue::reservoir_update(&previous.0, &input.0, leak.0)
    }
    /// The weights (post, pre) after the spikes of a step, from -1 to 1: spike-timing plasticity with the decay time `tau`. `spikes` and
    /// `times` are pairs of vectors, of the presynaptic and then of the postsynaptic neurons; spikes are bools.
    ///
    /// >>> spike = sv.Tensor([True])
    /// >>> times = sv.Tensor([0.0]), sv.Tensor([20.0])
    /// >>> round(sv.catalogue.stdp_update(sv.zeros(1, 1, dtype="f64"), (spike, spike), times, 0.1, 20.0).item(), 6)
    /// 0.036788
    stdp_update "(weights, spikes, times, learning_rate, tau)" (weights: TensorArgument, spikes: (TensorArgument, TensorArgument), times: (TensorArgument, TensorArgument), learning_rate: InRange<f64>, tau: InRange<f64>) -> PyTensor {
        catalogue::stdp_update(&weights.0, [&spikes.0.0, &spikes.1.0], [&times.0.0, &times.1.0], StdpParameters { learning_rate: learning_rate.0, tau: tau.0 })
    }
    /// The entropy of each row of probabilities (..., n), of shape (...).
    ///
    /// >>> round(sv.catalogue.shannon_entropy(sv.Tensor([0.5, 0.5])).item(), 6)
    /// 0.693147
    shannon_entropy "(p)" (p: TensorArgument) -> PyTensor { catalogue::shannon_entropy(&p.0) }
    /// The divergence of each row of probabilities q (..., n) from p, which has the shape of q or is one row, of shape (...). A term with
    /// a probability up to `NEGLIGIBLE` is 0.
    ///
    /// >>> q, p = sv.Tensor([0.2] * 5), sv.Tensor([0.7, 0.1, 0.1, 0.05, 0.05])
    /// >>> round(sv.catalogue.kl_divergence(q, p).item(), 6)
    /// 0.581224
    kl_divergence "(q, p)" (q: TensorArgument, p: TensorArgument) -> PyTensor { catalogue::kl_divergence(&q.0, &p.0) }
    /// The variational free energy of each row of beliefs q (..., n), of shape (...). `prior` and `log_likelihood` have the shape of q or
    /// are one row.
    ///
    /// >>> half = sv.Tensor([0.5, 0.5])
    /// >>> sv.catalogue.free_energy(half, half, sv.Tensor([-1.0, -3.0])).item()
    /// 2.0
    free_energy "(q, prior, log_likelihood)" (q: TensorArgument, prior: TensorArgument, log_likelihood: TensorArgument) -> PyTensor {
        catalogue::free_energy(&q.0, &prior.0, &log_likelihood.0)
    }
    /// The bin of each element, as i64 in the shape of x. `range` is the least and the greatest value, by default those of x; elements
    /// outside go to the first or the last bin.
    ///
    /// >>> sv.catalogue.discretize(sv.Tensor([0.0, 0.6, 1.0, -3.0, 9.0]), 2, (0.0, 1.0)).tolist()
    /// [0, 1, 1, 0, 1]
    discretize "(x, bins, range=None)" (x: TensorArgument, bins: InRange<usize>, range: BinRange = None) -> PyTensor {
        catalogue::discretize(&x.0, bins.0, numbers(range))
    }
    /// The counts of pairs as i64, of shape (bins, bins): a row for each bin of x and a column for each bin of y, which have one shape.
    ///
    /// >>> x = sv.Tensor([0.0, 1.0, 1.0])
    /// >>> sv.catalogue.histogram_2d(x, x, 2).tolist()
    /// [[1, 0], [0, 2]]
    histogram_2d "(x, y, bins, range=None)" (x: TensorArgument, y: TensorArgument, bins: InRange<usize>, range: BinRange = None) -> PyTensor {
        catalogue::histogram_2d(&x.0, &y.0, bins.0, numbers(range))
    }
    /// The mutual information of a matrix of counts or joint probabilities.
    ///
    /// >>> round(sv.catalogue.mutual_information(sv.Tensor([[3, 0], [0, 3]])).item(), 6)
    /// 0.693147
    mutual_information "(joint)" (joint: TensorArgument) -> PyTensor { catalogue::mutual_information(&joint.0) }
    /// The conditional entropy H(Y|X) of a matrix of counts or joint probabilities with a row for each x.
    ///
    /// >>> round(sv.catalogue.conditional_entropy(sv.Tensor([[1, 1], [1, 1]])).item(), 6)
    /// 0.693147
    conditional_entropy "(joint)" (joint: TensorArgument) -> PyTensor { catalogue::conditional_entropy(&joint.0) }
    /// Rows of `dimension` values, `delay` apart, of each series (..., n): a view of shape (..., n - (dimension - 1) delay, dimension).
    ///
    /// >>> sv.catalogue.time_delayed_embedding(sv.Tensor([1, 2, 3, 4]), 2, 1).tolist()
    /// [[1, 2], [2, 3], [3, 4]]
    time_delayed_embedding "(x, dimension, delay)" (x: TensorArgument, dimension: InRange<usize>, delay: InRange<usize>) -> PyTensor {
        catalogue::time_delayed_embedding(&x.0, dimension.0, delay.0)
    }
    /// The transfer entropy from one vector of states, integers from 0 to before `states`, to another with `history` past values of each.
    ///
    /// >>> x = sv.Tensor([0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1])
    /// >>> y = sv.Tensor([0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0])
    /// >>> round(sv.catalogue.transfer_entropy(x, y, 2).item(), 6)
    /// 0.683995
    transfer_entropy "(source, target, states, history=1)" (source: TensorArgument, target: TensorArgument, states: InRange<usize>, history: InRange<usize> = InRange(1)) -> PyTensor {
        catalogue::transfer_entropy(&source.0, &target.0, states.0, history.0)
    }
    /// The transfer entropy of a table (next, past, source past) of counts or probabilities.
    ///
    /// >>> sv.catalogue.transfer_entropy_of_counts(sv.ones(2, 2, 2)).item()
    /// 0.0
    transfer_entropy_of_counts "(counts)" (counts: TensorArgument) -> PyTensor { catalogue::transfer_entropy_of_counts(&counts.0) }
    /// The accuracy of each row of prediction errors (..., n), of shape (...). `precision` has the shape of `error` or is one row.
    ///
    /// >>> round(sv.catalogue.gaussian_accuracy(sv.Tensor([0.0]), sv.Tensor([1.0])).item(), 6)
    /// -0.918939
    gaussian_accuracy "(error, precision)" (error: TensorArgument, precision: TensorArgument) -> PyTensor {
        catalogue::gaussian_accuracy(&error.0, &precision.0)
    }
    /// The divergence of Gaussians with diagonal covariances (..., n), of shape (...). The prior's mean and variance have the shape of
    /// the others or are one row.
    ///
    /// >>> one, zero = sv.Tensor([1.0]), sv.Tensor([0.0])
    /// >>> round(sv.catalogue.gaussian_kl_divergence(one, sv.Tensor([0.25]), zero, one).item(), 6)
    /// 0.818147
    gaussian_kl_divergence "(mean, variance, prior_mean, prior_variance)" (mean: TensorArgument, variance: TensorArgument, prior_mean: TensorArgument, prior_variance: TensorArgument) -> PyTensor {
        catalogue::gaussian_kl_divergence([&mean.0, &variance.0], [&prior_mean.0, &prior_variance.0])
    }
    /// The Hadamard gate on a qubit of states (..., 2^n) of c64 or c128.
    ///
    /// >>> state = sv.catalogue.hadamard(sv.Tensor([1.0, 0.0, 0.0, 0.0], "c128"), 0)
    /// >>> bell = sv.catalogue.cnot(state, 0, 1)
    /// >>> [round(p, 6) for p in sv.catalogue.measurement_probabilities(bell).tolist()]
    /// [0.5, 0.0, 0.0, 0.5]
    hadamard "(state, qubit)" (state: TensorArgument, qubit: InRange<usize>) -> PyTensor { catalogue::hadamard(&state.0, qubit.0) }
    /// The Pauli X gate on a qubit of states (..., 2^n).
    ///
    /// >>> sv.catalogue.pauli_x(sv.Tensor([1.0, 0.0], "c64"), 0).tolist()
    /// [0j, (1+0j)]
    pauli_x "(state, qubit)" (state: TensorArgument, qubit: InRange<usize>) -> PyTensor { catalogue::pauli_x(&state.0, qubit.0) }
    /// The states (..., 2^n) with the amplitudes of a qubit of 1 turned by an angle.
    ///
    /// >>> sv.catalogue.phase_gate(sv.Tensor([1.0, 0.0], "c64"), 0, 0.5).tolist()
    /// [(1+0j), 0j]
    phase_gate "(state, qubit, angle)" (state: TensorArgument, qubit: InRange<usize>, angle: InRange<f64>) -> PyTensor {
        catalogue::phase_gate(&state.0, qubit.0, angle.0)
    }
    /// The controlled NOT of states (..., 2^n).
    ///
    /// >>> sv.catalogue.cnot(sv.Tensor([0.0, 1.0, 0.0, 0.0], "c64"), 0, 1).tolist()
    /// [0j, 0j, 0j, (1+0j)]
    cnot "(state, control, target)" (state: TensorArgument, control: InRange<usize>, target: InRange<usize>) -> PyTensor {
        catalogue::cnot(&state.0, control.0, target.0)
    }
    /// The probability of each basis state, in f32 or f64 and the shape of the states.
    ///
    /// >>> sv.catalogue.measurement_probabilities(sv.Tensor([0.0, 1j])).tolist()
    /// [0.0, 1.0]
    measurement_probabilities "(state)" (state: TensorArgument) -> PyTensor { catalogue::measurement_probabilities(&state.0) }
    /// Rotary positions: pairs of neighbouring features of x (..., length, width) turned by their position from `offset` on.
    ///
    /// >>> sv.catalogue.rope_encoding(sv.Tensor([[1.0, 0.0]])).tolist()
    /// [[1.0, 0.0]]
    rope_encoding "(x, offset=0, base=10000.0)" (x: TensorArgument, offset: InRange<usize> = InRange(0), base: InRange<f64> = InRange(10_000.0)) -> PyTensor {
        catalogue::rope_encoding(&x.0, offset.0, base.0)
    }
    /// The expected free energy of each policy. `preferred` broadcasts to the observations of a policy.
    ///
    /// >>> rows = sv.Tensor([[1.0, 0.1], [0.0, 1.0]])
    /// >>> one = sv.ones(2, 2, dtype="f64")
    /// >>> predictions = sv.catalogue.PolicyPredictions(rows, one, one, one)
    /// >>> energy = sv.catalogue.expected_free_energy(predictions, sv.Tensor([1.0, 0.0]))
    /// >>> sv.catalogue.choose_policy(energy.total)
    /// 0
    expected_free_energy "(predictions, preferred)" (predictions: Py<PolicyPredictions>, preferred: TensorArgument) -> ExpectedFreeEnergy {
        catalogue::expected_free_energy(&predictions.get().0, &preferred.0)
    }
    /// The policy with the least expected free energy of a vector, the first of equal ones.
    ///
    /// >>> sv.catalogue.choose_policy(sv.Tensor([2.0, 1.0, 1.0]))
    /// 1
    choose_policy "(energies)" (energies: TensorArgument) -> usize { catalogue::choose_policy(&energies.0) }
    /// The probabilities softmax(-gamma energies) of a vector of policies.
    ///
    /// >>> sv.catalogue.policy_probabilities(sv.Tensor([1.0, 1.0])).tolist()
    /// [0.5, 0.5]
    policy_probabilities "(energies, gamma=1.0)" (energies: TensorArgument, gamma: InRange<f64> = InRange(1.0)) -> PyTensor {
        catalogue::policy_probabilities(&energies.0, gamma.0)
    }
}

/// The length and the direction, from -pi to pi, of the mean of e^(i theta) of each row of phases (..., n): two tensors of shape (...).
///
/// >>> magnitude, phase = sv.catalogue.order_parameter(sv.Tensor([0.0, 0.0]))
/// >>> magnitude.item(), phase.item()
/// (1.0, 0.0)
#[pyfunction]
fn order_parameter(py: Python<'_>, theta: TensorArgument) -> Result<(PyTensor, PyTensor)> {
    let found = py.detach(|| catalogue::order_parameter(&theta.0))?;
    Ok((found.magnitude.into(), found.phase.into()))
}

/// The states tanh((1 - leak) state + input), and bools of the neurons that spike: those above the threshold, whose state becomes 0.
///
/// >>> state, spikes = sv.catalogue.leaky_integrate_fire(sv.Tensor([0.0, 0.5]), sv.Tensor([2.0, 0.1]), 0.2, 0.9)
/// >>> spikes.tolist()
/// [True, False]
#[pyfunction]
fn leaky_integrate_fire(
    py: Python<'_>,
    state: TensorArgument,
    input: TensorArgument,
    leak: InRange<f64>,
    threshold: InRange<f64>,
) -> Result<(PyTensor, PyTensor)> {
    let work = || catalogue::leaky_integrate_fire(&state.0, &input.0, leak.0, threshold.0);
    let (state, spikes) = py.detach(work)?;
    Ok((state.into(), spikes.into()))
}

/// Draws a policy of a vector by `policy_probabilities`, with a generator or the device's own.
///
/// >>> sv.catalogue.sample_policy(sv.Tensor([0.0, 1000.0]), generator=sv.Generator(1))
/// 0
#[pyfunction]
#[pyo3(signature = (energies, gamma=InRange(1.0), *, generator=None), text_signature = "(energies, gamma=1.0, *, generator=None)")]
fn sample_policy(
    py: Python<'_>,
    energies: TensorArgument,
    gamma: InRange<f64>,
    generator: Option<&Bound<'_, PyGenerator>>,
) -> Result<usize> {
    let generator = generator_or_default(generator, &energies.0.device());
    Ok(py.detach(|| catalogue::sample_policy(&energies.0, gamma.0, &generator))?)
}

/// Draws a token as i64 for each row of logits (rows, vocabulary), or of one vector: from softmax(logits / temperature) of the k largest.
///
/// >>> logits = sv.Tensor([[900.0, 1.0, 2.0], [0.0, -5.0, 7.0]])
/// >>> sv.catalogue.top_k_sampling(logits, 1, generator=sv.Generator(1)).tolist()
/// [0, 2]
#[pyfunction]
#[pyo3(signature = (logits, k, temperature=InRange(1.0), *, generator=None), text_signature = "(logits, k, temperature=1.0, *, generator=None)")]
fn top_k_sampling(
    py: Python<'_>,
    logits: TensorArgument,
    k: InRange<usize>,
    temperature: InRange<f64>,
    generator: Option<&Bound<'_, PyGenerator>>,
) -> Result<PyTensor> {
    let generator = generator_or_default(generator, &logits.0.device());
    Ok(py.detach(|| catalogue::top_k_sampling(&logits.0, k.0, temperature.0, &generator))?.into())
}

/// Adds the functions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_table(module)?;
    module.add_function(wrap_pyfunction!(order_parameter, module)?)?;
    module.add_function(wrap_pyfunction!(leaky_integrate_fire, module)?)?;
    module.add_function(wrap_pyfunction!(sample_policy, module)?)?;
    module.add_function(wrap_pyfunction!(top_k_sampling, module)?)
}
