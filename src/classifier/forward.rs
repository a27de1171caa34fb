//! The pass of a batch, from features to decisions: a product for each layer, then one row program.

use std::sync::OnceLock;

use super::generative::GenerativeModel;
use super::inference::{divergence, full_free_energy, fused, softmax};
use super::network::Network;
use crate::error::Result;
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor};

/// The results of a batch, on its device.
#[derive(Debug, Clone)]
pub struct ClassificationBatch {
    /// The class of each row, as i64.
    pub classes: Tensor,
    /// The posterior, of shape (rows, classes).
    pub posterior: Tensor,
    /// The beliefs, of shape (rows, classes).
    pub beliefs: Tensor,
    /// The free energy of each row.
    pub free_energy: Tensor,
    /// The largest belief of each row.
    pub confidence: Tensor,
}

/// Returns the posterior, the beliefs, the free energy, the confidence and the class.
fn decisions<'g>(q: Expr<'g>, beliefs: Expr<'g>, energy: Expr<'g>) -> [Expr<'g>; 5] {
    [q, beliefs, energy, beliefs.max_group(), beliefs.argmax_group()]
}

/// The row programs of the KL mode: logits and prior.
fn kl_mode(is_fused: bool) -> &'static Fused<2, 5> {
    static PLAIN: OnceLock<Fused<2, 5>> = OnceLock::new();
    static FUSED: OnceLock<Fused<2, 5>> = OnceLock::new();
    if is_fused {
        return FUSED.get_or_init(|| {
            Fused::with_outputs(|[logits, p]| {
                let q = softmax(logits);
                decisions(q, fused(q, p), divergence(q, p))
            })
        });
    }
    PLAIN.get_or_init(|| {
        Fused::with_outputs(|[logits, p]| {
            let q = softmax(logits);
            decisions(q, q, divergence(q, p))
        })
    })
}

/// The row programs of the full mode: logits, prior and log likelihoods.
fn full_mode(is_fused: bool) -> &'static Fused<3, 5> {
    static PLAIN: OnceLock<Fused<3, 5>> = OnceLock::new();
    static FUSED: OnceLock<Fused<3, 5>> = OnceLock::new();
    if is_fused {
        return FUSED.get_or_init(|| {
            Fused::with_outputs(|[logits, p, likelihood]| {
                let q = softmax(logits);
                decisions(q, fused(q, p), full_free_energy(q, p, likelihood))
            })
        });
    }
    PLAIN.get_or_init(|| {
        Fused::with_outputs(|[logits, p, likelihood]| {
            let q = softmax(logits);
            decisions(q, q, full_free_energy(q, p, likelihood))
        })
    })
}

/// Classifies rows of checked features.
pub(super) fn forward(
    network: &Network,
    features: &Tensor,
    prior: &Tensor,
    is_fused: bool,
    model: Option<&GenerativeModel>,
) -> Result<ClassificationBatch> {
    let logits = network.logits(features)?;
    let [posterior, beliefs, free_energy, confidence, classes] = match model {
        None => kl_mode(is_fused).run_all([&logits, prior])?,
        Some(model) => full_mode(is_fused).run_all([&logits, prior, &model.log_likelihood(features)?])?,
    };
    Ok(ClassificationBatch {
        classes: classes.squeeze(-1)?,
        posterior,
        beliefs,
        free_energy: free_energy.squeeze(-1)?,
        confidence: confidence.squeeze(-1)?,
    })
}
