//! [`OptimizerCore`], the parameters of an optimizer, their states, and the loop of a step.
//!
//! Parameters with slots in one storage of [`Parameters`](crate::nn::Parameters) are a group, whose states are one tensor
//! each; any other parameter is a group of its own, and so is each one whose step reads it as a whole. A step launches its
//! function once for each run: neighbours with a gradient, equal numbers of steps and the same decay. The function reads its numbers from device memory, so a captured step
//! can be given new ones.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::nn::Variable;
use crate::nn::autograd::{FlatSlot, gradient_run, in_shape, no_grad, update_run};
use crate::nn::checks::check_non_negative;
use crate::nn::precision::{wide_dtype, widened};
use crate::tensor::{Device, Fused, Tensor, TensorMut, TensorOperand};
use crate::types::{DType, Shape};

/// The numbers of a step that its function reads.
pub(super) const HYPERPARAMETERS: usize = 3;

/// The operands of a conditional step.
#[derive(Clone, Copy)]
pub(super) struct Guard<'a> {
    /// A bool tensor. The step changes nothing if its element is false.
    pub condition: &'a Tensor,
    /// The gradients are multiplied by it.
    pub factor: TensorOperand<'a>,
}

impl<'a> Guard<'a> {
    /// Returns the condition and the factor of a guard; true and 1 without one.
    pub fn operands(guard: Option<Guard<'a>>) -> (TensorOperand<'a>, TensorOperand<'a>) {
        match guard {
            None => (true.into(), 1.0.into()),
            Some(Guard { condition, factor }) => (condition.into(), factor),
        }
    }
}

/// Replaces a state by a new one where the condition of a [`Guard`] is true.
///
/// # Errors
///
/// As [`Fused::run_in_place`].
pub(super) fn replace_state(state: TensorMut<'_>, new: &Tensor, condition: TensorOperand<'_>) -> Result<()> {
    static FUNCTION: OnceLock<Fused<3>> = OnceLock::new();
    let function =
        FUNCTION.get_or_init(|| Fused::new(|[state, new, condition]| condition.choose(new, state)));
    function.run_in_place([state], [new.into(), condition])
}

/// Returns a gradient times the factor of a [`Guard`], in the dtype that steps are computed in.
pub(super) fn scaled<'g>(gradient: Expr<'g>, factor: Expr<'g>) -> Expr<'g> {
    let gradient = widened(gradient);
    gradient * factor.cast(gradient.dtype())
}

/// The function of an optimizer's step.
pub(super) trait StepRule {
    /// The optimizer's name.
    const NAME: &'static str;
    /// True if the state counts steps.
    const COUNTS_STEPS: bool;
    /// True if an element's step depends on the parameter's other elements, so that each parameter has a step of its own.
    const IS_WHOLE: bool = false;

    /// Returns PyTorch's names and the shapes of the states of a parameter, which have the dtype that steps are computed in. The
    /// shapes are the parameter's, unless [`IS_WHOLE`](Self::IS_WHOLE).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a shape that is none.
    fn states(shape: &Shape) -> Result<Vec<(&'static str, Shape)>>;

    /// Returns whether a step reads and writes the states.
    fn uses_states(&self) -> bool;

    /// Returns the numbers of a step, counted from 1.
    fn hyperparameters(&self, learning_rate: f64, weight_decay: f64, step: i32) -> [f64; HYPERPARAMETERS];

    /// Changes a parameter and its used states, in this order, by a gradient of the same shape, as a guard says if there is one.
    ///
    /// # Errors
    ///
    /// As [`Fused::run_in_place`]. Nothing has changed then, unless it is a driver error.
    fn run(
        &self,
        outputs: Vec<TensorMut<'_>>,
        gradient: &Tensor,
        hyperparameters: &[Tensor; HYPERPARAMETERS],
        guard: Option<Guard<'_>>,
    ) -> Result<()>;
}

/// A parameter with its state.
#[derive(Debug)]
pub(super) struct Member {
    /// The position in the optimizer's list.
    pub position: usize,
    pub variable: Variable,
    slot: Option<FlatSlot>,
    /// True from the first step or the loaded state on.
    pub has_state: bool,
    pub steps: i32,
}

/// Parameters whose states are parts of the same tensors.
#[derive(Debug)]
pub(super) struct Group {
    /// In the order of their slots.
    pub members: Vec<Member>,
    /// Empty until the first step that uses them.
    pub states: Vec<Tensor>,
}

/// Members of a group that one launch changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    group: usize,
    members: Range<usize>,
    /// The row of its numbers.
    row: usize,
}

/// Runs with equal keys have equal numbers: their dtype and device, the steps before, and whether the weight decays.
type NumbersKey = (DType, Device, i32, bool);

/// The numbers of a step in device memory.
#[derive(Debug)]
struct HyperparameterRow {
    hyperparameters: Tensor,
    /// 0, 1, 2: the positions of the numbers.
    positions: Tensor,
}

/// An optimizer.
#[derive(Debug)]
pub(super) struct OptimizerCore<R> {
    pub rule: R,
    /// Each once, by position.
    pub variables: Vec<Variable>,
    pub learning_rate: f64,
    pub weight_decay: f64,
    /// Parameters of fewer dimensions do not decay.
    pub min_decay_rank: usize,
    pub groups: Vec<Group>,
    runs: Vec<Run>,
    rows: Vec<HyperparameterRow>,
    /// True if the steps of `runs` are counted.
    is_counted: bool,
    /// Grows if the runs, the states' memory or the rows' memory change.
    pub capture_key: u64,
}

impl HyperparameterRow {
    fn new(dtype: DType, device: &Device) -> Result<HyperparameterRow> {
        let positions = Tensor::arange(0i64, HYPERPARAMETERS as i64, 1i64, dtype, device)?;
        Ok(HyperparameterRow { hyperparameters: positions.copy()?, positions })
    }

    fn is_of(&self, dtype: DType, device: &Device) -> bool {
        self.hyperparameters.dtype() == dtype && self.hyperparameters.device() == *device
    }

    fn write(&mut self, [first, second, third]: [f64; HYPERPARAMETERS]) -> Result<()> {
        static FUNCTION: OnceLock<Fused<4>> = OnceLock::new();
        let function = FUNCTION.get_or_init(|| {
            Fused::new(|[position, first, second, third]| {
                position.eq(0).choose(first, position.eq(1).choose(second, third))
            })
        });
        function.run_into((&self.positions, first, second, third), [&mut self.hyperparameters])
    }

    /// Returns the numbers as tensors without dimensions.
    fn read(&self) -> Result<[Tensor; HYPERPARAMETERS]> {
        let column = |position| self.hyperparameters.select(0, position);
        Ok([column(0)?, column(1)?, column(2)?])
    }
}

impl Group {
    fn members_mut(&mut self, run: &Run) -> &mut [Member] {
        &mut self.members[run.members.clone()]
    }

    /// Returns the positions in the states of members from the first to the last of a range.
    fn part(&self, members: &Range<usize>) -> Option<Range<usize>> {
        let base = self.members.first()?.slot.as_ref()?.start();
        let first = self.members.get(members.start)?.slot.as_ref()?.start();
        let last = self.members.get(members.end.checked_sub(1)?)?.slot.as_ref()?.end();
        Some(first - base..last - base)
    }

    /// Creates the states, if they are not there.
    pub fn create_states<R: StepRule>(&mut self) -> Result<()> {
        if !self.states.is_empty() {
            return Ok(());
        }
        let Some(first) = self.members.first() else { return Ok(()) };
        let (dtype, device) = (wide_dtype(first.variable.dtype()), first.variable.device());
        let shape = match self.part(&(0..self.members.len())) {
            Some(part) => Shape::new(&[part.len()])?,
            None => first.variable.shape(),
        };
        let states = R::states(&shape)?.into_iter();
        self.states = states
            .map(|(_, shape)| Tensor::zeros(&shape, dtype, &device))
            .collect::<Result<Vec<Tensor>>>()?;
        Ok(())
    }

    /// Returns the states of members in place.
    pub fn states_of(&mut self, members: &Range<usize>) -> Result<Vec<TensorMut<'_>>> {
        let part = self.part(members);
        let states = self.states.iter_mut().map(|state| match &part {
            Some(part) => state.in_place().narrow(0, part.start, part.len()),
            None => Ok(state.in_place()),
        });
        states.collect()
    }

    /// Returns a state of a member, which later steps do not change.
    pub fn state_of(&self, member: usize, state: &Tensor) -> Result<Tensor> {
        let Some((part, member)) = self.part(&(member..member + 1)).zip(self.members.get(member)) else {
            return state.copy();
        };
        let shape = member.variable.shape();
        in_shape(&state.narrow(0, part.start, shape.count())?, &shape)?.copy()
    }
}

impl<R: StepRule> OptimizerCore<R> {
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a learning rate that is negative or not finite, for no parameters, and for a parameter
    /// that is no leaf with a gradient.
    pub fn new(rule: R, parameters: Vec<Variable>, learning_rate: f64) -> Result<OptimizerCore<R>> {
        check_non_negative(R::NAME, "a learning rate", learning_rate)?;
        if parameters.is_empty() {
            return Err(Error::invalid(R::NAME, "no parameters", "at least one"));
        }
        let mut variables: Vec<Variable> = Vec::with_capacity(parameters.len());
        for (position, parameter) in parameters.into_iter().enumerate() {
            if !parameter.requires_grad() || !parameter.is_leaf() {
                let found = format!("{parameter:?} as parameter {position}");
                return Err(Error::invalid(R::NAME, found, "a leaf that requires a gradient"));
            }
            if !variables.iter().any(|known| known.is_same(&parameter)) {
                variables.push(parameter);
            }
        }
        let mut groups: Vec<Group> = Vec::new();
        for (position, variable) in variables.iter().enumerate() {
            let (variable, slot) = (variable.clone(), variable.slot().filter(|_| !R::IS_WHOLE));
            let member = Member { position, variable, slot, has_state: false, steps: 0 };
            let group = member.slot.as_ref().and_then(|slot| {
                groups.iter_mut().find(|group| {
                    let first = group.members.first().and_then(|first| first.slot.as_ref());
                    first.is_some_and(|first| Arc::ptr_eq(first.storage(), slot.storage()))
                })
            });
            match group {
                Some(group) => group.members.push(member),
                None => groups.push(Group { members: vec![member], states: Vec::new() }),
            }
        }
        for group in &mut groups {
            group.members.sort_by_key(|member| member.slot.as_ref().map(FlatSlot::start));
        }
        Ok(OptimizerCore {
            rule,
            variables,
            learning_rate,
            weight_decay: 0.0,
            min_decay_rank: 0,
            groups,
            runs: Vec::new(),
            rows: Vec::new(),
            is_counted: false,
            capture_key: 0,
        })
    }

    /// Returns the optimizer's name.
    pub fn name(&self) -> &'static str {
        R::NAME
    }

    fn decays(&self, member: &Member) -> bool {
        member.variable.shape().rank() >= self.min_decay_rank
    }

    /// Returns the members with a gradient as runs, with the key of each one's numbers.
    fn plan(&self) -> (Vec<Run>, Vec<NumbersKey>) {
        let (mut runs, mut keys): (Vec<Run>, Vec<NumbersKey>) = (Vec::new(), Vec::new());
        for (at, group) in self.groups.iter().enumerate() {
            let mut before: Option<&Member> = None;
            for (index, member) in group.members.iter().enumerate() {
                if !member.variable.has_gradient() {
                    before = None;
                    continue;
                }
                let slots = before.and_then(|before| before.slot.as_ref().zip(member.slot.as_ref()));
                let continues = slots.is_some_and(|(before, slot)| before.is_before(slot))
                    && before.is_some_and(|before| before.steps == member.steps)
                    && before.is_some_and(|before| self.decays(before) == self.decays(member));
                before = Some(member);
                if continues {
                    if let Some(run) = runs.last_mut() {
                        run.members.end = index + 1;
                    }
                    continue;
                }
                let variable = &member.variable;
                let dtype = wide_dtype(variable.dtype()).part();
                let key = (dtype, variable.device(), member.steps, self.decays(member));
                let row = keys.iter().position(|known| *known == key).unwrap_or(keys.len());
                if row == keys.len() {
                    keys.push(key);
                }
                runs.push(Run { group: at, members: index..index + 1, row });
            }
        }
        (runs, keys)
    }

    /// Counts a step of each parameter with a gradient, creates its state, and writes the numbers of the step to device memory.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a learning rate that is negative or not finite, [`Error::OutOfMemory`] and driver errors. No
    /// step is counted then.
    pub fn advance(&mut self) -> Result<()> {
        check_non_negative(R::NAME, "a learning rate", self.learning_rate)?;
        let (runs, keys) = self.plan();
        let mut has_moved = runs != self.runs;
        for (row, (dtype, device, steps, decays)) in keys.into_iter().enumerate() {
            let hyperparameters = match self.rows.get_mut(row).filter(|known| known.is_of(dtype, &device)) {
                Some(known) => known,
                None => {
                    has_moved = true;
                    self.rows.truncate(row);
                    self.rows.push(HyperparameterRow::new(dtype, &device)?);
                    let Some(fresh) = self.rows.last_mut() else { continue };
                    fresh
                }
            };
            let decay = if decays { self.weight_decay } else { 0.0 };
            hyperparameters.write(self.rule.hyperparameters(
                self.learning_rate,
                decay,
                steps.saturating_add(1),
            ))?;
        }
        let uses_states = self.rule.uses_states();
        if uses_states {
            for group in runs.iter().map(|run| run.group).collect::<BTreeSet<usize>>() {
                has_moved |= self.groups[group].states.is_empty();
                self.groups[group].create_states::<R>()?;
            }
        }
        for run in &runs {
            for member in self.groups[run.group].members_mut(run) {
                member.steps = member.steps.saturating_add(1);
                member.has_state |= uses_states;
            }
        }
        self.runs = runs;
        self.is_counted = true;
        self.capture_key += u64::from(has_moved);
        Ok(())
    }

    /// Takes back the step that the last [`advance`](Self::advance) has counted.
    pub fn withdraw(&mut self) {
        // The runs stay: the next step's are compared with them.
        if std::mem::take(&mut self.is_counted) {
            for run in &self.runs {
                self.groups[run.group].members_mut(run).iter_mut().for_each(|member| member.steps -= 1);
            }
        }
    }

    /// Changes the parameters that the last [`advance`](Self::advance) has counted, as a guard says if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a parameter that has lost its gradient since, or whose storage another tensor shares;
    /// driver errors. Parameters of earlier runs have changed, those of later ones have not, and their steps do not count.
    pub fn apply(&mut self, guard: Option<Guard<'_>>) -> Result<()> {
        let count = if self.is_counted { self.runs.len() } else { 0 };
        for at in 0..count {
            let run = self.runs[at].clone();
            if let Err(error) = no_grad(|| self.apply_run(&run, guard)) {
                for run in &self.runs[at..] {
                    self.groups[run.group].members_mut(run).iter_mut().for_each(|member| member.steps -= 1);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn apply_run(&mut self, run: &Run, guard: Option<Guard<'_>>) -> Result<()> {
        let OptimizerCore { rule, groups, rows, .. } = self;
        let (group, hyperparameters) = (&mut groups[run.group], rows[run.row].read()?);
        let variables: Vec<Variable> =
            group.members[run.members.clone()].iter().map(|member| member.variable.clone()).collect();
        let is_flat = group.part(&run.members).is_some();
        // The gradient of a whole parameter has its shape.
        let gradient = match variables.first() {
            Some(variable) if !is_flat => variable.grad(),
            _ => gradient_run(&variables)?,
        };
        let gradient = gradient.ok_or_else(|| {
            let wanted = "the gradients that it had when the step was counted";
            Error::invalid(R::NAME, "a parameter without a gradient", wanted)
        })?;
        let mut states = if rule.uses_states() { group.states_of(&run.members)? } else { Vec::new() };
        let change = |elements: &mut TensorMut<'_>| {
            let states = states.iter_mut().map(TensorMut::reborrow);
            let outputs = std::iter::once(elements.reborrow()).chain(states).collect();
            rule.run(outputs, &gradient, &hyperparameters, guard)
        };
        match variables.first() {
            Some(variable) if !is_flat => variable.update(change),
            _ => update_run(&variables, change),
        }
    }
}

/// Checks that no parameter is complex.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for one that is.
pub(super) fn check_real<R: StepRule>(parameters: &[Variable]) -> Result<()> {
    match parameters.iter().find(|parameter| parameter.dtype().is_complex()) {
        Some(parameter) => {
            let (wanted, found) = ("parameters of floats".to_owned(), parameter.dtype().to_string());
            Err(Error::DTypeMismatch { operation: R::NAME, wanted, found })
        }
        None => Ok(()),
    }
}

/// Returns the states of a parameter that have its shape.
pub(super) fn shaped(names: &[&'static str], shape: &Shape) -> Vec<(&'static str, Shape)> {
    names.iter().map(|name| (*name, *shape)).collect()
}

/// Returns an optimizer's outputs as an array.
///
/// # Errors
///
/// [`Error::LengthMismatch`] for another number of outputs.
pub(super) fn outputs<const COUNT: usize>(outputs: Vec<TensorMut<'_>>) -> Result<[TensorMut<'_>; COUNT]> {
    let found = outputs.len();
    outputs.try_into().map_err(|_| Error::LengthMismatch { operation: "step", wanted: COUNT, found })
}
