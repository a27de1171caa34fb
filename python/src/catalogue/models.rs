//! Models with Gaussian noise: `GaussianModel`, `LinearGaussianModel`, and their results.

use pyo3::prelude::*;
use selvedge::catalogue::{self, InferenceOptions};

use crate::arguments::{InRange, TensorArgument};
use crate::error::Result;
use crate::random::{PyGenerator, generator_or_default};
use crate::tensor::PyTensor;

/// Classes of a result of Rust with its tensors.
macro_rules! results {
    ($($(#[doc = $document:literal])* $name:ident { $($(#[doc = $field_document:literal])* $field:ident)* })*) => {$(
        $(#[doc = $document])*
        #[pyclass(module = "selvedge.catalogue", frozen)]
        pub struct $name(pub catalogue::$name);

        impl From<catalogue::$name> for $name {
            fn from(result: catalogue::$name) -> $name {
                $name(result)
            }
        }

        #[pymethods]
        impl $name {
            $($(#[doc = $field_document])*
            #[getter]
            fn $field(&self) -> PyTensor {
                self.0.$field.clone().into()
            })*
        }
    )*};
}

results! {
    /// The expected free energy of each policy and its terms, as vectors; `expected_free_energy` returns it.
    ExpectedFreeEnergy {
        /// The distance of the observations from the preferred ones.
        risk
        /// The uncertainty of the observations.
        ambiguity
        /// The uncertainty about the states that the observations remove.
        novelty
        /// risk + ambiguity - novelty.
        total
    }
    /// Predictions for each policy: `PolicyPredictions(observations, variances, prior_variances, posterior_variances)` of shape
    /// (policies, ..., observations) twice and (policies, ..., states) twice.
    PolicyPredictions {
        /// The predicted observations.
        observations
        /// The variances of the predicted observations, in their shape.
        variances
        /// The variances of the states before the observation.
        prior_variances
        /// The variances of the states after the observation.
        posterior_variances
    }
    /// Predicted states; `LinearGaussianModel.roll_out` returns them.
    StateRollout {
        /// The means (policies, steps, states).
        means
        /// The variances (steps, states), equal for all policies.
        variances
    }
    /// A belief that `GaussianModel.infer` reached.
    Inference {
        /// The mean of the belief.
        mean
    }
}

#[pymethods]
impl PolicyPredictions {
    #[new]
    fn new(
        observations: TensorArgument,
        variances: TensorArgument,
        prior_variances: TensorArgument,
        posterior_variances: TensorArgument,
    ) -> PolicyPredictions {
        PolicyPredictions(catalogue::PolicyPredictions {
            observations: observations.0,
            variances: variances.0,
            prior_variances: prior_variances.0,
            posterior_variances: posterior_variances.0,
        })
    }
}

#[pymethods]
impl Inference {
    /// The number of gradients computed.
    #[getter]
    fn iterations(&self) -> usize {
        self.0.iterations
    }

    /// True if the last step was below the tolerance.
    #[getter]
    fn converged(&self) -> bool {
        self.0.converged
    }
}

/// A linear observation of a vector of n states with Gaussian noise and a Gaussian prior.
///
/// `GaussianModel(jacobian, observation_precision, prior_mean, prior_precision)` takes a matrix (m, n) and vectors of m, n and n, of one
/// dtype of floats.
///
/// >>> one = sv.ones(1, dtype="f64")
/// >>> model = sv.catalogue.GaussianModel(sv.ones(1, 1, dtype="f64"), one, sv.zeros(1, dtype="f64"), one)
/// >>> round(model.fixed_point(sv.Tensor([4.0])).item(), 9)
/// 2.0
#[pyclass(module = "selvedge.catalogue", frozen)]
struct GaussianModel(catalogue::GaussianModel);

#[pymethods]
impl GaussianModel {
    #[new]
    fn new(
        py: Python<'_>,
        jacobian: TensorArgument,
        observation_precision: TensorArgument,
        prior_mean: TensorArgument,
        prior_precision: TensorArgument,
    ) -> Result<GaussianModel> {
        let model = py.detach(|| {
            catalogue::GaussianModel::new(
                &jacobian.0,
                &observation_precision.0,
                &prior_mean.0,
                &prior_precision.0,
            )
        })?;
        Ok(GaussianModel(model))
    }

    /// The weighted prediction error (m) of a mean (n) and an observation (m).
    fn prediction_error(
        &self,
        py: Python<'_>,
        mean: TensorArgument,
        observation: TensorArgument,
    ) -> Result<PyTensor> {
        Ok(py.detach(|| self.0.prediction_error(&mean.0, &observation.0))?.into())
    }

    /// The direction (n) in which the free energy of a mean (n) falls for an observation (m).
    fn gradient(
        &self,
        py: Python<'_>,
        mean: TensorArgument,
        observation: TensorArgument,
    ) -> Result<PyTensor> {
        Ok(py.detach(|| self.0.gradient(&mean.0, &observation.0))?.into())
    }

    /// The free energy of a mean (n) for an observation (m), a scalar.
    fn free_energy(
        &self,
        py: Python<'_>,
        mean: TensorArgument,
        observation: TensorArgument,
    ) -> Result<PyTensor> {
        Ok(py.detach(|| self.0.free_energy(&mean.0, &observation.0))?.into())
    }

    /// Descends from a mean (n) along the gradient until a step is below the tolerance.
    #[pyo3(
        signature = (observation, start, *, rate=InRange(0.01), tolerance=InRange(1e-4), iterations=InRange(100)),
        text_signature = "($self, observation, start, *, rate=0.01, tolerance=0.0001, iterations=100)"
    )]
    fn infer(
        &self,
        py: Python<'_>,
        observation: TensorArgument,
        start: TensorArgument,
        rate: InRange<f64>,
        tolerance: InRange<f64>,
        iterations: InRange<usize>,
    ) -> Result<Inference> {
        let options = InferenceOptions { rate: rate.0, tolerance: tolerance.0, iterations: iterations.0 };
        Ok(py.detach(|| self.0.infer(&observation.0, &start.0, options))?.into())
    }

    /// The precision (n, n) of the exact posterior.
    fn posterior_precision(&self, py: Python<'_>) -> Result<PyTensor> {
        Ok(py.detach(|| self.0.posterior_precision())?.into())
    }

    /// The mean (n) of the exact posterior of an observation (m), solved for in f64 on the host.
    fn fixed_point(&self, py: Python<'_>, observation: TensorArgument) -> Result<PyTensor> {
        Ok(py.detach(|| self.0.fixed_point(&observation.0))?.into())
    }
}

/// A linear model of n states and m observations with Gaussian noise.
///
/// `LinearGaussianModel(transition, observation, process_noise)` takes matrices (n, n) and (m, n) and a variance.
///
/// >>> one = sv.ones(1, 1)
/// >>> model = sv.catalogue.LinearGaussianModel(one, one, 0.0)
/// >>> model.roll_out(sv.zeros(1), sv.ones(1), sv.ones(2, 3, 1)).means[0].tolist()
/// [[1.0], [2.0], [3.0]]
#[pyclass(module = "selvedge.catalogue", frozen)]
struct LinearGaussianModel(catalogue::LinearGaussianModel);

#[pymethods]
impl LinearGaussianModel {
    #[new]
    fn new(
        py: Python<'_>,
        transition: TensorArgument,
        observation: TensorArgument,
        process_noise: InRange<f64>,
    ) -> Result<LinearGaussianModel> {
        let work = || catalogue::LinearGaussianModel::new(&transition.0, &observation.0, process_noise.0);
        Ok(LinearGaussianModel(py.detach(work)?))
    }

    /// The states under each policy, from the mean (n) and the variance (n) of the first one. `controls` have the shape
    /// (policies, steps, n).
    fn roll_out(
        &self,
        py: Python<'_>,
        mean: TensorArgument,
        variance: TensorArgument,
        controls: TensorArgument,
    ) -> Result<StateRollout> {
        Ok(py.detach(|| self.0.roll_out(&mean.0, &variance.0, &controls.0))?.into())
    }

    /// Random states (policies, steps, n) from one first state (n), with a generator or the device's own.
    #[pyo3(signature = (start, controls, *, generator=None))]
    fn sample(
        &self,
        py: Python<'_>,
        start: TensorArgument,
        controls: TensorArgument,
        generator: Option<&Bound<'_, PyGenerator>>,
    ) -> Result<PyTensor> {
        let generator = generator_or_default(generator, &start.0.device());
        Ok(py.detach(|| self.0.sample(&start.0, &controls.0, &generator))?.into())
    }

    /// The predictions for each policy. `observation_noise` has the variances (m), or those of each policy and step
    /// (policies, steps, m).
    fn predict(
        &self,
        py: Python<'_>,
        rollout: &Bound<'_, StateRollout>,
        observation_noise: TensorArgument,
    ) -> Result<PolicyPredictions> {
        let rollout = &rollout.get().0;
        Ok(py.detach(|| self.0.predict(rollout, &observation_noise.0))?.into())
    }
}

/// Adds the classes to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ExpectedFreeEnergy>()?;
    module.add_class::<PolicyPredictions>()?;
    module.add_class::<StateRollout>()?;
    module.add_class::<Inference>()?;
    module.add_class::<GaussianModel>()?;
    module.add_class::<LinearGaussianModel>()
}
