//! [`Plan`], how an attention would be computed.

use std::fmt;

use super::planned_kernel::PlannedKernel;
use super::{Pass, Problem, Unsupported, decode, hopper};
use crate::error::Result;
use crate::images::DeviceProperties;

/// How an attention of operands at aligned addresses would be computed, and why not by an engine. The device need not be there.
///
/// ```
/// use selvedge::attention::{Pass, Plan, Problem};
/// use selvedge::types::{DType, Layout};
/// use selvedge::gemm::DeviceProperties;
/// let x = Layout::contiguous(&[2, 12, 1024, 64])?;
/// let problem = |dtype| Problem::new(dtype, x, x, x);
/// let plan = Plan::explain(&problem(DType::BF16), Pass::Forward, DeviceProperties::reference((9, 0)))?;
/// assert_eq!((plan.kernels()[0].name, plan.kernels()[0].tile), ("attention_forward_bf16_64_full", (192, 128)));
/// let plan = Plan::explain(&problem(DType::F32), Pass::Forward, DeviceProperties::reference((9, 0)))?;
/// assert!(plan.kernels().is_empty() && plan.to_string().contains("f32"));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    head: String,
    engine: &'static str,
    kernels: Vec<PlannedKernel>,
    unsupported: Option<Unsupported>,
    probabilities: usize,
}

impl Plan {
    /// Explains a problem.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for shapes that do not meet.
    pub fn explain(problem: &Problem, pass: Pass, properties: DeviceProperties) -> Result<Plan> {
        let passes = match pass {
            Pass::Forward => "forward",
            Pass::Backward => "forward and backward",
        };
        Plan::new(problem, passes, "wgmma", hopper::plan(problem, pass, properties), properties)
    }

    /// Explains [`decode`](fn@super::decode) of a problem, whose keys are the cache.
    ///
    /// # Errors
    ///
    /// As [`explain`](Self::explain).
    pub fn explain_decode(problem: &Problem, properties: DeviceProperties) -> Result<Plan> {
        let planned = decode::plan(problem, properties).map(|kernel| vec![kernel]);
        Plan::new(problem, "decoding", "mma", planned, properties)
    }

    fn new(
        problem: &Problem,
        passes: &str,
        engine: &'static str,
        planned: std::result::Result<Vec<PlannedKernel>, Unsupported>,
        properties: DeviceProperties,
    ) -> Result<Plan> {
        let sizes = problem.sizes()?;
        let (kernels, unsupported) = match planned {
            Ok(kernels) => (kernels, None),
            Err(reason) => (Vec::new(), Some(reason)),
        };
        let (major, minor) = properties.capability;
        let head = format!(
            "{passes} of queries {}, keys {} and values {} of {}, compute capability {major}.{minor}, {} multiprocessors",
            problem.queries.shape(),
            problem.keys.shape(),
            problem.values.shape(),
            problem.dtype,
            properties.multiprocessors
        );
        let probabilities = [sizes.heads, sizes.queries, sizes.keys]
            .iter()
            .fold(sizes.batch, |all, count| all.saturating_mul(*count));
        Ok(Plan { head, engine, kernels, unsupported, probabilities })
    }

    /// The kernels, in the order of their launches; none where no engine computes the problem.
    pub fn kernels(&self) -> &[PlannedKernel] {
        &self.kernels
    }

    /// The reason why no engine computes the problem.
    pub fn unsupported(&self) -> Option<&Unsupported> {
        self.unsupported.as_ref()
    }

    /// The name of what computes the problem: `wgmma` for the tensor cores of compute capability 9.0, `mma` for decoding, `composed` for two products and a
    /// softmax, which store the probabilities.
    pub fn engine(&self) -> &'static str {
        if self.unsupported.is_none() { self.engine } else { "composed" }
    }

    /// The number of probabilities that are stored: batch · heads · queries · keys without an engine, else 0.
    pub fn stored_probabilities(&self) -> usize {
        if self.unsupported.is_none() { 0 } else { self.probabilities }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.head, self.engine())?;
        for PlannedKernel { name, tile: (queries, keys), blocks } in &self.kernels {
            write!(
                formatter,
                "\n  kernel {name}: tiles of {queries} queries by blocks of {keys} keys, {blocks} blocks"
            )?;
        }
        match &self.unsupported {
            None => write!(formatter, "\n  no scores are stored"),
            Some(reason) => write!(
                formatter,
                "\n  two products and a softmax, which store {} probabilities\n  not {}: {reason}",
                self.probabilities, self.engine
            ),
        }
    }
}
