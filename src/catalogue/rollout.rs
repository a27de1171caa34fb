//! Roll-outs of policies in a linear Gaussian model, and the predictions that [`expected_free_energy`] takes.
//!
//! A state develops as xₜ₊₁ = A xₜ + uₜ + noise of variance q, and is observed as o = C x + noise of variance r. Means are
//! exact. Variances are those of the states alone, without their covariances: var(xₜ₊₁) = A² var(xₜ) + q and
//! var(o) = C² var(x) + r with squares by element.
//!
//! [`expected_free_energy`]: super::expected_free_energy
//!
//! Tests: `tests/catalogue/policies.rs`.

use super::operands::{check_floats, check_shape, wide};
use super::policies::PolicyPredictions;
use crate::error::{Error, Result};
use crate::tensor::{Generator, Tensor, fuse};

/// A linear model of states and observations with Gaussian noise.
#[derive(Clone, Debug)]
pub struct LinearGaussianModel {
    transition: Tensor,
    observation: Tensor,
    process_noise: f64,
}

/// Predicted states, which [`LinearGaussianModel::roll_out`] returns.
#[derive(Clone, Debug)]
pub struct StateRollout {
    /// The means of the states by policy, step and state.
    pub means: Tensor,
    /// The variances of the states by step and state, equal for all policies.
    pub variances: Tensor,
}

impl LinearGaussianModel {
    /// A model of a square matrix A, a matrix C with a row for each observation, and the variance q.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for matrices that are not floats of one dtype; [`Error::InvalidArgument`] for shapes that
    /// differ, no states or observations, and a variance that is negative or not finite.
    pub fn new(transition: &Tensor, observation: &Tensor, process_noise: f64) -> Result<LinearGaussianModel> {
        const OPERATION: &str = "LinearGaussianModel::new";
        check_floats(OPERATION, &[transition, observation])?;
        match (&transition.shape()[..], &observation.shape()[..]) {
            (&[rows, columns], &[observations, states])
                if rows == columns && columns == states && rows * observations > 0 => {}
            _ => {
                let found = format!(
                    "a transition of shape {} and an observation of shape {}",
                    transition.shape(),
                    observation.shape()
                );
                return Err(Error::invalid(
                    OPERATION,
                    found,
                    "a square matrix, and one with as many columns",
                ));
            }
        }
        if !(process_noise.is_finite() && process_noise >= 0.0) {
            let found = format!("process_noise = {process_noise}");
            return Err(Error::invalid(OPERATION, found, "a finite variance of at least 0"));
        }
        Ok(LinearGaussianModel {
            transition: transition.clone(),
            observation: observation.clone(),
            process_noise,
        })
    }

    fn states(&self) -> usize {
        self.transition.shape()[0]
    }

    /// Returns the number of policies and steps of controls, after checks.
    fn check(&self, operation: &'static str, mean: &Tensor, controls: &Tensor) -> Result<[usize; 2]> {
        check_floats(operation, &[&self.transition, mean, controls])?;
        check_shape(operation, "mean", mean, &[self.states()])?;
        match controls.shape()[..] {
            [policies, steps, states] if policies > 0 && steps > 0 && states == self.states() => {
                Ok([policies, steps])
            }
            _ => {
                let found = format!("controls of shape {}", controls.shape());
                let wanted = format!("policies, steps and {} states", self.states());
                Err(Error::invalid(operation, found, wanted))
            }
        }
    }

    /// Returns the states by policy, step and state, with noise of the given standard deviation from the generator.
    fn trajectories(
        &self,
        mean: &Tensor,
        controls: &Tensor,
        noise: Option<(&Generator, f64)>,
    ) -> Result<Tensor> {
        let mut state = mean.unsqueeze(0)?;
        let mut states = Vec::new();
        for control in controls.unbind(1)? {
            state = state.matmul(&self.transition.t()?)?.add(&control)?;
            if let Some((generator, deviation)) = noise {
                let draws = generator.randn(state.shape(), state.dtype(), &state.device())?;
                state = state.add(&draws.mul(deviation)?)?;
            }
            states.push(state.clone());
        }
        Tensor::stack(&states.iter().collect::<Vec<_>>(), 1)
    }

    /// Returns the means and variances of the states under each policy, from the mean and the variance of the first state.
    /// `controls` are the inputs u by policy, step and state.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for operands of another dtype than the model's; [`Error::InvalidArgument`] for shapes that
    /// differ, and no policies or steps; [`Error::DeviceMismatch`]; errors of memory.
    pub fn roll_out(&self, mean: &Tensor, variance: &Tensor, controls: &Tensor) -> Result<StateRollout> {
        const OPERATION: &str = "roll_out";
        let [_, steps] = self.check(OPERATION, mean, controls)?;
        check_floats(OPERATION, &[&self.transition, variance])?;
        check_shape(OPERATION, "variance", variance, &[self.states()])?;
        let squares = self.transition.square()?;
        let (mut variance, mut variances) = (variance.clone(), Vec::new());
        for _ in 0..steps {
            variance = squares.gemv(&variance)?.add(self.process_noise)?;
            variances.push(variance.clone());
        }
        Ok(StateRollout {
            means: self.trajectories(mean, controls, None)?,
            variances: Tensor::stack(&variances.iter().collect::<Vec<_>>(), 0)?,
        })
    }

    /// Returns random states by policy, step and state, from one first state, with noise from the generator.
    ///
    /// # Errors
    ///
    /// As [`roll_out`](Self::roll_out).
    pub fn sample(&self, start: &Tensor, controls: &Tensor, generator: &Generator) -> Result<Tensor> {
        self.check("sample", start, controls)?;
        self.trajectories(start, controls, Some((generator, self.process_noise.sqrt())))
    }

    /// Returns the predictions for each policy. `observation_noise` has the variances r of the observations, above 0, which all
    /// policies share, or by policy, step and observation, such as for policies that look at different positions.
    ///
    /// The variance of a state after the observation is 1 / (1/var(x) + Σ C²/r).
    ///
    /// # Errors
    ///
    /// As [`roll_out`](Self::roll_out).
    pub fn predict(&self, rollout: &StateRollout, observation_noise: &Tensor) -> Result<PolicyPredictions> {
        const OPERATION: &str = "predict";
        let StateRollout { means, variances } = rollout;
        check_floats(OPERATION, &[&self.transition, means, variances, observation_noise])?;
        let (&[policies, steps, states], observations) = (&means.shape()[..], self.observation.shape()[0])
        else {
            let found = format!("means of shape {}", means.shape());
            return Err(Error::invalid(OPERATION, found, "policies, steps and states"));
        };
        check_shape(OPERATION, "means", means, &[policies, steps, self.states()])?;
        check_shape(OPERATION, "variances", variances, &[steps, self.states()])?;
        let by_policy = [policies, steps, observations];
        if observation_noise.shape()[..] != [observations] {
            check_shape(OPERATION, "observation_noise", observation_noise, &by_policy)?;
        }
        let noise = observation_noise.expand(&by_policy)?;
        let squares = self.observation.square()?;
        let prior = variances.unsqueeze(0)?.expand(&[policies, steps, states])?;
        let information = noise.reciprocal()?.matmul(&squares)?;
        let posterior = fuse([&prior, &information], |[prior, information]| {
            let (wide_prior, information) = (wide(prior), wide(information));
            (wide_prior / (wide_prior * information + 1.0)).cast(prior.dtype())
        })?;
        Ok(PolicyPredictions {
            observations: means.matmul(&self.observation.t()?)?,
            variances: variances.matmul(&squares.t()?)?.add(&noise)?,
            prior_variances: prior,
            posterior_variances: posterior,
        })
    }
}
