//! The objects behind the handles of Gaussian models: those of beliefs, of linear dynamics, and of the classes of a classifier.

use std::any::Any;
use std::sync::Arc;

use super::super::error::{Failure, Result};
use super::super::handle::{Object, object};

/// A model behind a handle. Models of all types have one table, and nothing changes them.
#[derive(Clone)]
pub(in super::super) struct GaussianModelObject(Arc<dyn Any + Send + Sync>);
object!(GaussianModelObject, GaussianModel);

/// Enters a model and returns its handle.
pub(in super::super) fn enter(model: impl Any + Send + Sync) -> Result<u64> {
    GaussianModelObject::table().insert(GaussianModelObject(Arc::new(model)))
}

/// Returns the model of a handle that the function `creator` gave.
pub(in super::super) fn model<T: Any + Send + Sync>(handle: u64, creator: &str) -> Result<Arc<T>> {
    let GaussianModelObject(model) = GaussianModelObject::table().get(handle, "model")?;
    model.downcast().map_err(|_| {
        let wanted = format!("a model of {creator}");
        Failure::argument("model", "a Gaussian model of another function", &wanted)
    })
}
