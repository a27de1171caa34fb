//! [`synthetic()`]: neutral data with a known Bayes rule.

use super::generative::GenerativeModel;
use super::options::DEFAULT_PRIOR;
use crate::burst::pcg;
use crate::error::{Error, Result};
use crate::tensor::{Device, Generator, GeneratorState, Tensor};
use crate::types::DType;

/// The features of a row of synthetic data.
pub const SYNTHETIC_FEATURES: usize = 100;

/// The deviation of the noise of synthetic data.
pub const SYNTHETIC_DEVIATION: f64 = 3.0;

/// The key of the first class's centre.
const FIRST_KEY: u32 = 400;

/// The block at which the noise of a stream begins. The draws of the classes end before.
const NOISE_OFFSET: u64 = 1 << 40;

/// Rows with their classes.
#[derive(Debug, Clone)]
pub struct SyntheticData {
    /// The features, of f32 and of shape (rows, 100).
    pub features: Tensor,
    /// The class of each row, as i64.
    pub labels: Tensor,
    /// The model that the rows were drawn from, of f32.
    pub model: GenerativeModel,
}

/// Returns a number in [-1, 1] of a position and a key.
fn hashed(position: u32, key: u32) -> f32 {
    (2.0 * f64::from(pcg(position ^ pcg(key))) / 2f64.powi(32) - 1.0) as f32
}

/// Draws rows of five classes: a class by [`DEFAULT_PRIOR`], and its centre plus normal noise of deviation 3. The Bayes rule
/// of [`SyntheticData::model`] is right for 86 % of them.
///
/// The numbers of a row follow from the seed and the row's position alone, and are the same on every device.
///
/// ```
/// use selvedge::Device;
/// use selvedge::classifier::synthetic;
/// let data = synthetic(8, 1, &Device::best())?;
/// assert_eq!((&data.features.shape()[..], &data.labels.shape()[..]), (&[8, 100][..], &[8][..]));
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for 2⁴⁰ rows or more; errors of memory.
pub fn synthetic(count: usize, seed: u64, device: &Device) -> Result<SyntheticData> {
    if count as u64 >= NOISE_OFFSET {
        return Err(Error::invalid("synthetic", format!("{count} rows"), "fewer than 2^40"));
    }
    let classes = DEFAULT_PRIOR.len();
    let mut centres = Vec::with_capacity(classes * SYNTHETIC_FEATURES);
    for class in 0..classes as u32 {
        centres.extend((0..SYNTHETIC_FEATURES as u32).map(|feature| hashed(feature, FIRST_KEY + class)));
    }
    let centres = Tensor::from_vec(centres, &[classes, SYNTHETIC_FEATURES], device)?;

    // The upper bounds of the classes but the last one, so that every draw has a class.
    let mut bounds = Vec::with_capacity(classes);
    let mut sum = 0.0;
    for p in &DEFAULT_PRIOR[..classes - 1] {
        sum += p;
        bounds.push(sum);
    }
    let bounds = Tensor::from_vec(bounds, &[classes - 1], device)?;
    let draws = Generator::new(seed).rand(&[count], DType::F64, device)?;
    let labels = bounds.searchsorted(&draws, true)?;
    let generator = Generator::at(GeneratorState { seed, offset: NOISE_OFFSET });
    let shape = [count, SYNTHETIC_FEATURES];
    let noise = generator.normal(0.0, SYNTHETIC_DEVIATION, &shape, DType::F32, device)?;
    let features = (centres.index_select(0, &labels)? + noise)?;
    Ok(SyntheticData { features, labels, model: GenerativeModel::new(centres, SYNTHETIC_DEVIATION)? })
}
