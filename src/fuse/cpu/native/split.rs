//! Programs with coordinates, split into kernels that read contiguous elements alone.
//!
//! A coordinate's number becomes an operand of u64, and a random word that an element picks from its group an operand of
//! u32; [`prepare`](super::prepare) writes both for each block. Two kernels compute the words once a group of neighbours:
//! one of 64-bit lanes the halves of the counters from the groups' numbers, and one of 32-bit lanes the words from these.
//! All of them are the program's own steps with other sources and outputs, so there is no second text of a formula.

use super::Unsupported;
use crate::fuse::ir::instruction::{Instruction, RegisterKind};
use crate::fuse::ir::program::{Program, Step, Value};
use crate::fuse::plan::compiled_expression::CompiledExpression;
use crate::types::DType;

/// An operand that a run computes for each block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prepared {
    /// The numbers that a coordinate gives.
    Number { operand: usize },
    /// The element's word among these of its group, of which there are as many as neighbours.
    Word { group: usize, words: [usize; 4] },
}

/// The code that computes the random words of groups, as programs, drafts or kernels.
#[derive(Debug)]
pub(super) struct WordGroup<C> {
    /// The coordinate that numbers the groups.
    pub(super) operand: usize,
    /// The neighbours of a group.
    pub(super) size: usize,
    /// The inputs without dimensions that seeds and offsets depend on.
    pub(super) streams: Vec<usize>,
    pub(super) halves: usize,
    pub(super) words: usize,
    /// From the number and the streams to the halves of counters.
    pub(super) counters: C,
    /// From these halves to the words.
    pub(super) cipher: C,
}

/// A program of a group and the dtypes of its inputs; its outputs are u32.
#[derive(Debug)]
pub(super) struct GroupProgram {
    pub(super) program: Program,
    pub(super) inputs: Vec<DType>,
    pub(super) outputs: Vec<DType>,
}

impl<C> WordGroup<C> {
    /// Returns the group with other code, made from its code.
    pub(super) fn try_map<D>(
        self,
        mut map: impl FnMut(C) -> Result<D, Unsupported>,
    ) -> Result<WordGroup<D>, Unsupported> {
        let WordGroup { operand, size, streams, halves, words, counters, cipher } = self;
        let (counters, cipher) = (map(counters)?, map(cipher)?);
        Ok(WordGroup { operand, size, streams, halves, words, counters, cipher })
    }

    pub(super) fn as_ref(&self) -> WordGroup<&C> {
        WordGroup {
            operand: self.operand,
            size: self.size,
            streams: self.streams.clone(),
            halves: self.halves,
            words: self.words,
            counters: &self.counters,
            cipher: &self.cipher,
        }
    }
}

/// The programs of an expression with coordinates.
#[derive(Debug)]
pub(super) struct Split {
    /// The program with prepared operands as inputs.
    pub(super) program: Program,
    /// The dtypes of its inputs: those of the expression, then the prepared ones.
    pub(super) inputs: Vec<DType>,
    pub(super) prepared: Vec<Prepared>,
    pub(super) groups: Vec<WordGroup<GroupProgram>>,
}

/// Returns a program of the same steps with other outputs.
fn with_outputs(program: &Program, outputs: Vec<[Value; 2]>) -> Program {
    Program { steps: program.steps.clone(), outputs, rares: program.rares.clone(), ..Program::default() }
}

impl Split {
    /// Splits an expression's program, if it has coordinates.
    ///
    /// # Errors
    ///
    /// [`Unsupported::Coordinates`] if words of a group depend on more than its number and the stream.
    pub(super) fn new(compiled: &CompiledExpression) -> Result<Option<Split>, Unsupported> {
        if compiled.coordinates.is_empty() {
            return Ok(None);
        }
        let whole = &compiled.program;
        let mut program = with_outputs(whole, whole.outputs.clone());
        let live = whole.live(whole.outputs.iter().flatten().copied());
        let (mut prepared, mut inputs) = (Vec::new(), compiled.inputs.clone());
        // The words of each group of neighbours.
        let mut words_of: Vec<((usize, usize), Vec<Value>)> = Vec::new();
        for (index, &(step, _)) in whole.steps.iter().enumerate().filter(|(index, _)| live[*index]) {
            let (operand, dtype) = match step {
                Step::Coordinate { operand } => (Prepared::Number { operand: operand as usize }, DType::U64),
                Step::Pick { operand, count, words } => {
                    let key = (operand as usize, count as usize);
                    let group = position(&mut words_of, |(known, _)| *known == key, || (key, Vec::new()));
                    let all = &mut words_of[group].1;
                    let mut indices = [0; 4];
                    for (word_index, word) in indices.iter_mut().zip(&words[..key.1]) {
                        *word_index = position(all, |known| known == word, || *word);
                    }
                    (Prepared::Word { group, words: indices }, DType::U32)
                }
                _ => continue,
            };
            program.steps[index].0 = Step::Load { input: inputs.len() as u32, part: 0 };
            prepared.push(operand);
            inputs.push(dtype);
        }
        let group = |((operand, size), words): &((usize, usize), Vec<Value>)| {
            group_programs(whole, &compiled.inputs, (*operand, *size), words)
        };
        let groups = words_of.iter().map(group).collect::<Result<_, _>>()?;
        Ok(Some(Split { program, inputs, prepared, groups }))
    }
}

/// Returns the position of the element that `is` selects, which is added if there is none.
fn position<T>(elements: &mut Vec<T>, is: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> usize {
    let known = elements.iter().position(is);
    known.unwrap_or_else(|| {
        elements.push(new());
        elements.len() - 1
    })
}

/// Returns the programs that compute words of a group: up to the 32-bit halves of 64-bit values, and from there on.
fn group_programs(
    program: &Program,
    dtypes: &[DType],
    (operand, size): (usize, usize),
    words: &[Value],
) -> Result<WordGroup<GroupProgram>, Unsupported> {
    let needed = program.live(words.iter().copied());
    let uniform = program.uniform(|_| false);
    let is_half = |index: usize| {
        let is_truncated = matches!(program.steps[index].0, Step::Apply(Instruction::Truncate64, _));
        needed[index] && !uniform[index] && is_truncated
    };
    let halves: Vec<usize> = (0..needed.len()).filter(|&index| is_half(index)).collect();
    let both = |index: usize| [Value(index as u32); 2];
    let mut counters = with_outputs(program, halves.iter().map(|&half| both(half)).collect());
    let mut cipher = with_outputs(program, words.iter().map(|&word| [word; 2]).collect());
    let (mut streams, mut sources) = (Vec::new(), Vec::new());
    for (index, &(step, _)) in program.steps.iter().enumerate().filter(|(index, _)| needed[*index]) {
        let input = match step {
            Step::Group { operand: of, count } if (of as usize, count as usize) == (operand, size) => 0,
            Step::Load { input, part: 0 } => {
                1 + position(&mut streams, |&known| known == input as usize, || input as usize)
            }
            Step::Constant(_) | Step::Parameter { .. } | Step::Apply(..) => continue,
            _ => return Err(Unsupported::Coordinates),
        };
        counters.steps[index].0 = Step::Load { input: input as u32, part: 0 };
        sources.push(index);
    }
    for (input, &half) in halves.iter().enumerate() {
        cipher.steps[half] = (Step::Load { input: input as u32, part: 0 }, RegisterKind::Bits32);
    }
    let read = cipher.live(words.iter().copied());
    if sources.iter().any(|&source| read[source]) {
        return Err(Unsupported::Coordinates);
    }
    let of_streams = streams.iter().map(|&input| dtypes[input]);
    let (of_halves, of_words) = (vec![DType::U32; halves.len()], vec![DType::U32; words.len()]);
    let counters = GroupProgram {
        program: counters,
        inputs: [DType::U64].into_iter().chain(of_streams).collect(),
        outputs: of_halves.clone(),
    };
    let cipher = GroupProgram { program: cipher, inputs: of_halves, outputs: of_words };
    Ok(WordGroup { operand, size, streams, halves: halves.len(), words: words.len(), counters, cipher })
}
