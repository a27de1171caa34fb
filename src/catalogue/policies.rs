//! The expected free energy of policies, and the choice of one.
//!
//! G = risk + ambiguity - novelty, with the risk Σ (predicted observation - preferred)², the ambiguity Σ variance of the
//! observations, and the novelty ½ Σ (ln prior variance - ln posterior variance) of the states, summed over the horizon.
//!
//! Tests: `tests/catalogue/policies.rs`.

use std::sync::LazyLock;

use super::operands::{check_finite, check_floats, wide};
use crate::error::{Error, Result};
use crate::tensor::{Fused, Generator, Tensor};
use crate::types::DType;

/// Of the observations and the preferred ones.
static RISK: LazyLock<Fused<2>> = LazyLock::new(|| {
    Fused::new(|[o, preferred]| (wide(o) - wide(preferred)).square().sum_group().cast(o.dtype()))
});
static AMBIGUITY: LazyLock<Fused<1>> =
    LazyLock::new(|| Fused::new(|[variance]| wide(variance).sum_group().cast(variance.dtype())));
/// Of the variances of the states before and after the observation.
static NOVELTY: LazyLock<Fused<2>> = LazyLock::new(|| {
    Fused::new(|[before, after]| {
        ((wide(before).log() - wide(after).log()).sum_group() * 0.5).cast(before.dtype())
    })
});

/// Predictions for each policy, whose first dimension counts the policies; the others are steps of the horizon, and
/// observations or states.
#[derive(Clone, Debug)]
pub struct PolicyPredictions {
    /// The predicted observations.
    pub observations: Tensor,
    /// The variances of the predicted observations, in their shape.
    pub variances: Tensor,
    /// The variances of the states before the observation.
    pub prior_variances: Tensor,
    /// The variances of the states after the observation, in the shape of those before it.
    pub posterior_variances: Tensor,
}

/// The expected free energy of each policy and its terms, as vectors.
#[derive(Clone, Debug)]
pub struct ExpectedFreeEnergy {
    /// The distance of the observations from the preferred ones.
    pub risk: Tensor,
    /// The uncertainty of the observations.
    pub ambiguity: Tensor,
    /// The uncertainty about the states that the observations remove.
    pub novelty: Tensor,
    /// G = risk + ambiguity - novelty.
    pub total: Tensor,
}

/// Returns a tensor with one row for each policy.
fn by_policy(tensor: &Tensor, policies: usize) -> Result<Tensor> {
    let columns = tensor.count().checked_div(policies).unwrap_or(0);
    tensor.reshape(&[policies as isize, columns as isize])
}

/// Returns the expected free energy of each policy. `preferred` broadcasts to the observations of a policy.
///
/// ```
/// use selvedge::catalogue::{PolicyPredictions, choose_policy, expected_free_energy};
/// use selvedge::{Device, Tensor};
/// let of = |rows: [[f64; 2]; 3]| Tensor::new(rows, &Device::cpu());
/// let predictions = PolicyPredictions {
///     observations: of([[1.0, 0.1], [0.5, 0.5], [0.0, 1.0]])?,
///     variances: of([[0.1; 2], [0.2; 2], [0.05; 2]])?,
///     prior_variances: of([[1.0; 2]; 3])?,
///     posterior_variances: of([[0.5; 2], [0.2; 2], [0.9; 2]])?,
/// };
/// let preferred = Tensor::new([1.0f64, 0.0], &Device::cpu())?;
/// let energy = expected_free_energy(&predictions, &preferred)?;
/// assert_eq!(choose_policy(&energy.total)?, 1);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// A variance of a state that is not above 0 gives NaN or an infinity, which [`choose_policy`] refuses.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for operands that are not floats of one dtype; [`Error::InvalidArgument`] for shapes that
/// differ or do not broadcast, and no policies; [`Error::DeviceMismatch`]; errors of memory.
pub fn expected_free_energy(
    predictions: &PolicyPredictions,
    preferred: &Tensor,
) -> Result<ExpectedFreeEnergy> {
    const OPERATION: &str = "expected_free_energy";
    let PolicyPredictions { observations, variances, prior_variances, posterior_variances } = predictions;
    check_floats(OPERATION, &[observations, variances, prior_variances, posterior_variances, preferred])?;
    let Some((&policies, row)) = observations.shape().split_first().filter(|(policies, _)| **policies > 0)
    else {
        let found = format!("observations of shape {}", observations.shape());
        return Err(Error::invalid(OPERATION, found, "a first dimension that counts the policies"));
    };
    let pairs = [
        ("observations", observations, "variances", variances),
        ("prior variances", prior_variances, "posterior variances", posterior_variances),
    ];
    for (name, first, other_name, other) in pairs {
        if first.shape() != other.shape() || first.shape().first() != Some(&policies) {
            let found = format!("{name} of shape {} and {other_name} of {}", first.shape(), other.shape());
            return Err(Error::invalid(OPERATION, found, format!("one shape that begins with {policies}")));
        }
    }
    let preferred = preferred.expand(row)?.reshape(&[1, -1])?;
    let risk = RISK.run([&by_policy(observations, policies)?, &preferred])?.squeeze(-1)?;
    let ambiguity = AMBIGUITY.run([&by_policy(variances, policies)?])?.squeeze(-1)?;
    let [before, after] = [prior_variances, posterior_variances].map(|x| by_policy(x, policies));
    let novelty = NOVELTY.run([&before?, &after?])?.squeeze(-1)?;
    let total = risk.add(&ambiguity)?.sub(&novelty)?;
    Ok(ExpectedFreeEnergy { risk, ambiguity, novelty, total })
}

/// Checks a vector of expected free energies. Waits for the device.
fn check_energies(operation: &'static str, energies: &Tensor) -> Result<()> {
    check_floats(operation, &[energies])?;
    if energies.rank() != 1 || energies.count() == 0 {
        let found = format!("energies of shape {}", energies.shape());
        return Err(Error::invalid(operation, found, "a vector with one for each policy"));
    }
    if energies.is_finite()?.all_all()?.item::<bool>()? {
        return Ok(());
    }
    Err(Error::invalid(operation, "an energy that is not finite", "finite energies"))
}

/// Returns the policy with the least expected free energy, the first of equal ones. Waits for the device.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for energies that are not floats; [`Error::InvalidArgument`] for energies that are not a vector,
/// and one that is not finite; errors of memory.
pub fn choose_policy(energies: &Tensor) -> Result<usize> {
    check_energies("choose_policy", energies)?;
    Ok(energies.argmin_all()?.item::<i64>()? as usize)
}

/// Returns the probabilities softmax(-γ G) of the policies. Waits for the device.
///
/// # Errors
///
/// As [`choose_policy`]; [`Error::InvalidArgument`] for a precision γ that is negative or not finite.
pub fn policy_probabilities(energies: &Tensor, gamma: f64) -> Result<Tensor> {
    const OPERATION: &str = "policy_probabilities";
    check_energies(OPERATION, energies)?;
    check_finite(OPERATION, "gamma", gamma)?;
    if gamma < 0.0 {
        return Err(Error::invalid(OPERATION, format!("gamma = {gamma}"), "a number from 0 on"));
    }
    // Differences from the least energy, so that γ times them does not lose the small ones.
    energies
        .cast(DType::F64)?
        .sub(&energies.cast(DType::F64)?.min_all()?)?
        .mul(-gamma)?
        .softmax(-1)?
        .cast(energies.dtype())
}

/// Draws a policy by [`policy_probabilities`]. Waits for the device.
///
/// # Errors
///
/// As [`policy_probabilities`].
pub fn sample_policy(energies: &Tensor, gamma: f64, generator: &Generator) -> Result<usize> {
    let probabilities = policy_probabilities(energies, gamma)?;
    Ok(generator.multinomial(&probabilities, 1, true)?.item::<i64>()? as usize)
}
