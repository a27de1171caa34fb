//! The `state_dict` of an [`OptimizerCore`].

use std::collections::{BTreeMap, BTreeSet};

use super::core::{Group, Member, OptimizerCore, StepRule};
use crate::error::{Error, Result};
use crate::nn::precision::wide_dtype;
use crate::tensor::{Device, Tensor};
use crate::types::{DType, Shape};

/// The entry with the learning rate.
const LEARNING_RATE: &str = "learning_rate";
/// The entry of a parameter's state with its number of steps.
const STEP: &str = "step";

/// The checked state of a parameter.
type Loaded = Option<(Vec<Tensor>, i32)>;

/// The checked entries of a `state_dict`.
pub(super) struct CheckedStates {
    learning_rate: f64,
    /// By the parameter's position.
    states: Vec<Loaded>,
}

impl<R: StepRule> OptimizerCore<R> {
    /// Returns the states by the parameter's position and the field, and the learning rate.
    pub fn state_dict(&self) -> Result<BTreeMap<String, Tensor>> {
        let rate = Tensor::new(self.learning_rate, &Device::cpu())?;
        let mut entries = BTreeMap::from([(LEARNING_RATE.to_owned(), rate)]);
        for group in &self.groups {
            for (at, member) in group.members.iter().enumerate().filter(|(_, member)| member.has_state) {
                for ((name, _), state) in R::states(&member.variable.shape())?.iter().zip(&group.states) {
                    entries.insert(format!("{}.{name}", member.position), group.state_of(at, state)?);
                }
                if R::COUNTS_STEPS {
                    let steps = Tensor::new(i64::from(member.steps), &Device::cpu())?;
                    entries.insert(format!("{}.{STEP}", member.position), steps);
                }
            }
        }
        Ok(entries)
    }

    /// Returns the states and the learning rate of a `state_dict`. A parameter without entries has no state.
    ///
    /// # Errors
    ///
    /// One [`Error::InvalidArgument`] that names every entry that is missing, extra, or of another shape or dtype.
    pub fn checked(
        &self,
        operation: &'static str,
        entries: &BTreeMap<String, Tensor>,
    ) -> Result<CheckedStates> {
        let mut faults: Vec<String> = Vec::new();
        let mut known = BTreeSet::from([LEARNING_RATE.to_owned()]);
        let mut rate = 0.0;
        match entries.get(LEARNING_RATE) {
            Some(entry) if entry.dtype() == DType::F64 && entry.count() == 1 => {
                rate = entry.item::<f64>()?;
                if !rate.is_finite() || rate < 0.0 {
                    faults.push(format!("'{LEARNING_RATE}' is {rate}"));
                }
            }
            Some(entry) => faults.push(format!("'{LEARNING_RATE}' is {}", described(entry))),
            None => faults.push(format!("'{LEARNING_RATE}' is missing")),
        }
        let mut states = Vec::with_capacity(self.variables.len());
        for position in 0..self.variables.len() {
            states.push(self.loaded(operation, position, entries, &mut known, &mut faults)?);
        }
        let extra = entries.keys().filter(|&name| !known.contains(name));
        faults.extend(extra.map(|name| format!("'{name}' is extra")));
        if !faults.is_empty() {
            let wanted = format!("the state_dict of this optimizer, of {} parameters", self.variables.len());
            return Err(Error::invalid(operation, faults.join(", "), wanted));
        }
        Ok(CheckedStates { learning_rate: rate, states })
    }

    /// Sets the states and the learning rate.
    ///
    /// # Errors
    ///
    /// As [`checked`](Self::checked). All states stay then.
    pub fn load_state_dict(
        &mut self,
        operation: &'static str,
        entries: &BTreeMap<String, Tensor>,
    ) -> Result<()> {
        let CheckedStates { learning_rate, states } = self.checked(operation, entries)?;
        for group in &mut self.groups {
            group.load::<R>(&states)?;
        }
        self.learning_rate = learning_rate;
        Ok(())
    }

    /// Returns the state of a parameter on its device, if it has entries.
    fn loaded(
        &self,
        operation: &'static str,
        position: usize,
        entries: &BTreeMap<String, Tensor>,
        known: &mut BTreeSet<String>,
        faults: &mut Vec<String>,
    ) -> Result<Loaded> {
        let parameter = &self.variables[position];
        let mut fields = R::states(&parameter.shape())?;
        if R::COUNTS_STEPS {
            fields.push((STEP, Shape::new(&[])?));
        }
        let names: Vec<(bool, String, Shape)> = fields
            .into_iter()
            .map(|(field, shape)| (field == STEP, format!("{position}.{field}"), shape))
            .collect();
        known.extend(names.iter().map(|(_, name, _)| name.clone()));
        if !names.iter().any(|(_, name, _)| entries.contains_key(name)) {
            return Ok(None);
        }
        let (mut tensors, mut steps) = (Vec::with_capacity(names.len()), 0);
        for (is_step, name, shape) in names {
            let Some(entry) = entries.get(&name) else {
                faults.push(format!("'{name}' is missing"));
                continue;
            };
            let dtype = if is_step { DType::I64 } else { wide_dtype(parameter.dtype()) };
            if entry.dtype() != dtype || *entry.shape() != shape {
                let found = described(entry);
                faults.push(format!("'{name}' is {found} in place of {dtype} of shape {shape}"));
            } else if is_step {
                let found = entry.item::<i64>()?;
                steps = i32::try_from(found).ok().filter(|steps| *steps >= 0).ok_or_else(|| {
                    let wanted = format!("a number from 0 to {}", i32::MAX);
                    Error::invalid(operation, format!("{found} steps of a parameter"), wanted)
                })?;
            } else {
                tensors.push(entry.to(&parameter.device())?);
            }
        }
        Ok(Some((tensors, steps)))
    }
}

impl Group {
    /// Sets the states of the members, given those of each position. The tensors stay.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] and driver errors.
    fn load<R: StepRule>(&mut self, states: &[Loaded]) -> Result<()> {
        let is_loaded = |member: &Member| matches!(states.get(member.position), Some(Some(_)));
        if self.members.iter().any(is_loaded) {
            self.create_states::<R>()?;
        }
        for at in 0..self.members.len() {
            let loaded = self.members.get(at).and_then(|member| states.get(member.position)?.as_ref());
            let shape = self.members[at].variable.shape();
            for (index, mut state) in self.states_of(&(at..at + 1))?.into_iter().enumerate() {
                match loaded.and_then(|(tensors, _)| tensors.get(index)) {
                    Some(tensor) if state.shape() == tensor.shape() => state.assign(tensor)?,
                    Some(tensor) => {
                        let flat = tensor.contiguous()?.reshape(&[-1])?;
                        state.narrow(0, 0, shape.count())?.assign(&flat)?;
                        continue;
                    }
                    None => state.fill(0.0)?,
                };
            }
            let member = &mut self.members[at];
            member.has_state = loaded.is_some();
            member.steps = loaded.map_or(0, |(_, steps)| *steps);
        }
        Ok(())
    }
}

fn described(entry: &Tensor) -> String {
    format!("{} of shape {}", entry.dtype(), entry.shape())
}
