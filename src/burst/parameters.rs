//! Changes of neuron parameters while a network runs: queued from any thread, applied between bursts.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::neurons::Neurons;
use crate::{Error, Result};

/// A neuron parameter with its new value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NeuronField {
    /// [`Neurons::threshold`]
    Threshold(f32),
    /// [`Neurons::threshold_max`]
    ThresholdMax(f32),
    /// [`Neurons::leak`]
    Leak(f32),
    /// [`Neurons::rest`]
    Rest(f32),
    /// [`Neurons::refractory`]
    Refractory(u16),
    /// [`Neurons::excitability`]
    Excitability(f32),
    /// [`Neurons::fire_limit`]
    FireLimit(u16),
    /// [`Neurons::snooze`]
    Snooze(u16),
    /// [`Neurons::accumulates`]
    Accumulates(bool),
}

impl NeuronField {
    pub(super) fn write(self, neurons: &mut Neurons, id: usize) {
        match self {
            NeuronField::Threshold(value) => neurons.threshold[id] = value,
            NeuronField::ThresholdMax(value) => neurons.threshold_max[id] = value,
            NeuronField::Leak(value) => neurons.leak[id] = value,
            NeuronField::Rest(value) => neurons.rest[id] = value,
            NeuronField::Refractory(value) => neurons.refractory[id] = value,
            NeuronField::Excitability(value) => neurons.excitability[id] = value,
            NeuronField::FireLimit(value) => neurons.fire_limit[id] = value,
            NeuronField::Snooze(value) => neurons.snooze[id] = value,
            NeuronField::Accumulates(value) => neurons.accumulates[id] = value,
        }
    }
}

/// The neurons that a change concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NeuronSelection {
    /// A range of ids; one neuron is `id..id + 1`.
    Ids(Range<u32>),
    /// All neurons of an area.
    Area(u32),
}

/// A queue of parameter changes that threads share with a running [`Simulation`](super::Simulation). Clones are the same
/// queue.
#[derive(Debug, Clone)]
pub struct ParameterQueue {
    neurons: u32,
    areas: u32,
    changes: Arc<Mutex<Vec<(NeuronSelection, NeuronField)>>>,
}

impl ParameterQueue {
    pub(super) fn new(neurons: usize, areas: usize) -> ParameterQueue {
        ParameterQueue { neurons: neurons as u32, areas: areas as u32, changes: Arc::default() }
    }

    /// Queues a change. The simulation applies changes in order before its next burst.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a value, id or area out of range; nothing is queued.
    pub fn push(&self, neurons: NeuronSelection, field: NeuronField) -> Result<()> {
        const OPERATION: &str = "a change of parameters";
        match &neurons {
            NeuronSelection::Ids(ids) if ids.start > ids.end || ids.end > self.neurons => {
                let found = format!("ids {}..{}", ids.start, ids.end);
                return Err(Error::invalid(OPERATION, found, format!("ids up to {}", self.neurons)));
            }
            NeuronSelection::Area(area) if *area >= self.areas => {
                return Err(Error::invalid(
                    OPERATION,
                    format!("area {area}"),
                    format!("an area below {}", self.areas),
                ));
            }
            _ => {}
        }
        let mut one = Neurons::new(1);
        field.write(&mut one, 0);
        one.parameters_of(0, &"the change")?;
        self.changes.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((neurons, field));
        Ok(())
    }

    /// Returns true if the caller may not be the only holder: another may queue a change at any time.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.changes) > 1
    }

    /// Removes and returns the queued changes.
    pub(super) fn take(&self) -> Vec<(NeuronSelection, NeuronField)> {
        std::mem::take(&mut *self.changes.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}
