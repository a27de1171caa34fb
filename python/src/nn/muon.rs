//! Muon, and the pair of it and an optimizer of the other parameters.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use selvedge::nn::{Muon, MuonRateAdjustment, OptimizerPair};

use super::optimizers::{PyOptimizer, listed, parameters};
use super::pickle::arguments;
use crate::arguments::InRange;
use crate::error::{Result, invalid};

/// PyTorch's Muon, for matrices: a momentum whose singular values are replaced by values near 1 in ns_steps Newton-Schulz steps.
///
/// adjust_lr_fn multiplies the learning rate of a matrix: None and "original" by sqrt(max(1, rows / columns)), "match_rms_adamw" by
/// 0.2 sqrt(max(rows, columns)), with which learning rates of AdamW fit, "spectral_unclamped" by sqrt(rows / columns). Parameters
/// other than matrices are those of another optimizer; OptimizerPair makes one of both.
#[pyclass(name = "Muon", module = "selvedge.nn", frozen, extends = PyOptimizer, subclass)]
pub struct PyMuon;

fn adjustment(name: Option<&str>) -> Result<MuonRateAdjustment> {
    Ok(match name {
        None | Some("original") => MuonRateAdjustment::Original,
        Some("match_rms_adamw") => MuonRateAdjustment::MatchRmsAdamW,
        Some("spectral_unclamped") => MuonRateAdjustment::SpectralUnclamped,
        Some(other) => {
            let wanted = "None, \"original\", \"match_rms_adamw\" or \"spectral_unclamped\"";
            return Err(invalid("Muon", format!("an adjust_lr_fn of \"{other}\""), wanted).into());
        }
    })
}

#[pymethods]
impl PyMuon {
    #[new]
    #[pyo3(
        signature = (params, lr=InRange(1e-3), weight_decay=InRange(0.1), momentum=InRange(0.95), nesterov=true, ns_coefficients=(InRange(3.4445), InRange(-4.775), InRange(2.0315)), eps=InRange(1e-7), ns_steps=InRange(5), adjust_lr_fn=None),
        text_signature = "(params, lr=0.001, weight_decay=0.1, momentum=0.95, nesterov=True, ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None)"
    )]
    #[allow(clippy::too_many_arguments)]
    fn new(
        params: &Bound<'_, PyAny>,
        lr: InRange<f64>,
        weight_decay: InRange<f64>,
        momentum: InRange<f64>,
        nesterov: bool,
        ns_coefficients: (InRange<f64>, InRange<f64>, InRange<f64>),
        eps: InRange<f64>,
        ns_steps: InRange<usize>,
        adjust_lr_fn: Option<&str>,
    ) -> Result<PyClassInitializer<PyMuon>> {
        let params = &listed(params)?;
        let options = arguments!(
            params.py(),
            lr,
            weight_decay,
            momentum,
            nesterov,
            ns_coefficients,
            eps,
            ns_steps,
            adjust_lr_fn
        );
        let (parameters, adjustment) = (parameters(params)?, adjustment(adjust_lr_fn)?);
        let (a, b, c) = ns_coefficients;
        let optimizer = params.py().detach(|| {
            let optimizer = Muon::new(parameters, lr.0)?.with_momentum(momentum.0)?.with_nesterov(nesterov);
            let optimizer = optimizer.with_newton_schulz([a.0, b.0, c.0], ns_steps.0)?.with_eps(eps.0)?;
            let optimizer = optimizer.with_learning_rate_adjustment(adjustment);
            optimizer.with_weight_decay(weight_decay.0)
        })?;
        Ok(PyClassInitializer::from(PyOptimizer::new(params, optimizer, options)?).add_subclass(PyMuon))
    }
}

/// Two optimizers of different parameters as one, such as a Muon of the matrices and an AdamW of the others, for a TrainingStep.
///
/// lr is the first's, and setting it multiplies the second's by the same factor. The names in state_dict() begin with "first." and
/// "second.". A step of the pair is one of each of the two objects, which share their states with it.
///
/// >>> model = sv.nn.Linear(4, 2)
/// >>> muon = sv.nn.Muon([p for p in model.parameters() if p.ndim == 2], lr=0.02)
/// >>> adamw = sv.nn.AdamW([p for p in model.parameters() if p.ndim != 2], lr=1e-3)
/// >>> pair = sv.nn.OptimizerPair(muon, adamw)
/// >>> pair.lr = 0.01
/// >>> adamw.lr
/// 0.0005
#[pyclass(name = "OptimizerPair", module = "selvedge.nn", frozen, extends = PyOptimizer, subclass)]
pub struct PyOptimizerPair;

#[pymethods]
impl PyOptimizerPair {
    #[new]
    fn new(
        first: &Bound<'_, PyOptimizer>,
        second: &Bound<'_, PyOptimizer>,
    ) -> Result<PyClassInitializer<PyOptimizerPair>> {
        let py = first.py();
        let handles = (first.get().handle(), second.get().handle());
        let pair = py.detach(|| OptimizerPair::new(handles.0, handles.1))?;
        let options = PyDict::new(py);
        options.set_item(PyOptimizer::SECOND, second)?;
        let base = PyOptimizer::new(first.as_any(), pair, options)?;
        Ok(PyClassInitializer::from(base).add_subclass(PyOptimizerPair))
    }
}
