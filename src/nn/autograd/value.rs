//! [`Value`], the elements of a variable with a version, and [`Saved`], a value that a backward rule reads.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::changes;
use super::flat::FlatSlot;
use super::tape::Node;
use super::variable::Variable;
use crate::error::{Error, Result};
use crate::tensor::{Tensor, TensorMut};

/// The elements of a variable.
enum Elements {
    Own(Tensor),
    /// Elements of a storage that other variables share.
    Flat(FlatSlot),
}

/// The elements of a variable, with the number of changes in place.
struct VersionedElements {
    elements: Elements,
    version: u64,
}

impl VersionedElements {
    fn tensor(&self) -> Tensor {
        match &self.elements {
            Elements::Own(tensor) => tensor.clone(),
            Elements::Flat(slot) => slot.tensor(),
        }
    }
}

/// The value of a variable.
pub(super) struct Value(RwLock<VersionedElements>);

impl Value {
    pub(super) fn new(tensor: Tensor) -> Arc<Value> {
        Arc::new(Value(RwLock::new(VersionedElements { elements: Elements::Own(tensor), version: 0 })))
    }

    fn read(&self) -> RwLockReadGuard<'_, VersionedElements> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, VersionedElements> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tensor(&self) -> Tensor {
        self.read().tensor()
    }

    /// Changes the elements, and counts the change even if it fails: some elements may have changed.
    pub(super) fn change(
        self: &Arc<Self>,
        change: impl FnOnce(&mut TensorMut<'_>) -> Result<()>,
    ) -> Result<()> {
        changes::record_value(self);
        let mut value = self.write();
        value.version += 1;
        match &mut value.elements {
            Elements::Own(tensor) => {
                let found = "a variable outside of Parameters, whose elements have no fixed address";
                changes::refuse_elsewhere("update", found)?;
                change(&mut tensor.in_place())
            }
            Elements::Flat(slot) => slot.change(change),
        }
    }

    /// Counts a change of all values, and makes it while nobody can read their versions.
    pub(super) fn with_next_versions<R>(values: &[&Arc<Value>], change: impl FnOnce() -> R) -> R {
        values.iter().for_each(|value| changes::record_value(value));
        let mut guards: Vec<_> = values.iter().map(|value| value.write()).collect();
        guards.iter_mut().for_each(|value| value.version += 1);
        change()
    }

    /// Returns the slot in the storage that the variable shares with others.
    pub(super) fn slot(&self) -> Option<FlatSlot> {
        match &self.read().elements {
            Elements::Own(_) => None,
            Elements::Flat(slot) => Some(slot.clone()),
        }
    }

    /// Returns the version, and whether the elements are in a storage that other variables share: both stay where the memory and the
    /// elements do.
    pub(super) fn state(&self) -> (u64, bool) {
        let value = self.read();
        (value.version, matches!(value.elements, Elements::Flat(_)))
    }

    /// Replaces the elements by equal ones of a slot. Their version stays.
    pub(super) fn move_to(&self, slot: FlatSlot) {
        self.write().elements = Elements::Flat(slot);
    }
}

/// A value that a backward rule reads.
#[derive(Clone)]
pub(super) struct Saved {
    value: Arc<Value>,
    version: u64,
}

impl Saved {
    pub(super) fn new(value: &Arc<Value>) -> Saved {
        Saved { value: value.clone(), version: value.read().version }
    }

    /// Returns the value.
    ///
    /// # Errors
    ///
    /// [`Error::Backward`] if it was changed in place since.
    pub(super) fn tensor(&self, operation: &'static str) -> Result<Tensor> {
        let value = self.value.read();
        if value.version == self.version {
            return Ok(value.tensor());
        }
        let subject = match &value.elements {
            Elements::Own(tensor) => format!("a value of shape {}", tensor.shape()),
            Elements::Flat(slot) => format!("the parameter '{}'", slot.name()),
        };
        let found = format!(
            "{subject} at version {}, which was changed in place since the operation ran",
            value.version
        );
        let wanted = format!("version {}; update it after the backward", self.version);
        Err(Error::Backward { operation, found, wanted })
    }

    /// Returns the value as [`tensor`](Self::tensor) does. No other tensor shares the result's elements if nothing else has the value.
    ///
    /// # Errors
    ///
    /// As [`tensor`](Self::tensor).
    pub(super) fn into_tensor(self, operation: &'static str) -> Result<Tensor> {
        let shared = self.tensor(operation)?;
        let Some(value) = Arc::into_inner(self.value) else { return Ok(shared) };
        match value.0.into_inner().unwrap_or_else(PoisonError::into_inner).elements {
            Elements::Own(tensor) => Ok(tensor),
            Elements::Flat(_) => Ok(shared),
        }
    }

    /// Returns a variable with the value and a node.
    ///
    /// # Errors
    ///
    /// As [`tensor`](Self::tensor).
    pub(super) fn variable(&self, operation: &'static str, node: Option<Arc<Node>>) -> Result<Variable> {
        self.tensor(operation)?;
        Ok(Variable::from_parts(self.value.clone(), node))
    }

    pub(super) fn is_of_same_value(&self, other: &Saved) -> bool {
        Arc::ptr_eq(&self.value, &other.value)
    }
}
