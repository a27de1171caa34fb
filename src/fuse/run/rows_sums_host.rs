//! Sums over groups on the CPU: the terms of some groups at a time, added to the sums of their chunk.

use std::borrow::Cow;

use super::rows_sums::SumsOverGroups;
use crate::error::{Error, Result};
use crate::fuse::cpu::{HostInput, HostOutput};
use crate::fuse::ir::number::Number;
use crate::fuse::plan::compiled_rows::OPERATION;
use crate::fuse::plan::rows_shape::RowShape;
use crate::fuse::plan::rows_split::PhaseInput;
use crate::fuse::plan::rows_sums::CHUNK;
use crate::types::{DType, Layout, Shape};

/// The elements of a slab, whose terms then stay in the cache.
const SLAB: usize = 1 << 17;

/// A range of an axis: the axis, its start and its length.
type Range = (usize, usize, usize);

/// Adds boxes of neighbouring groups in row-major order, of at most `limit` groups each. `axes` are the axes of
/// groups that are left, with their sizes.
fn slabs(axes: &[(usize, usize)], limit: usize, ranges: &mut Vec<Range>, found: &mut Vec<Vec<Range>>) {
    let Some((&(axis, size), inner)) = axes.split_first() else {
        found.push(ranges.clone());
        return;
    };
    let of_inner: usize = inner.iter().map(|(_, size)| size).product();
    let (step, inner) = match of_inner <= limit {
        true => (limit / of_inner.max(1), &[][..]),
        false => (1, inner),
    };
    let step = step.clamp(1, size.max(1));
    for start in (0..size).step_by(step) {
        ranges.push((axis, start, step.min(size - start)));
        slabs(inner, limit, ranges, found);
        ranges.pop();
    }
}

/// The sums of the current chunk, and those of the chunks before it.
enum Partials {
    Single(Vec<f32>, Vec<f32>),
    Double(Vec<f64>, Vec<f64>),
}

fn add<T: Copy + std::ops::Add<Output = T>>(sums: &mut [T], terms: &[T]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum = *sum + *term;
    }
}

impl Partials {
    fn new(dtype: DType, size: usize) -> Partials {
        match dtype {
            DType::F64 => Partials::Double(vec![-0.0; size], Vec::new()),
            _ => Partials::Single(vec![-0.0; size], Vec::new()),
        }
    }

    /// Adds the terms of group `row`.
    fn add(&mut self, row: usize, terms: &[u64]) {
        match self {
            Partials::Single(sums, _) => {
                let size = sums.len();
                add(sums, &bytemuck::cast_slice(terms)[row * size..][..size]);
            }
            Partials::Double(sums, _) => {
                let size = sums.len();
                add(sums, &bytemuck::cast_slice(terms)[row * size..][..size]);
            }
        }
    }

    /// Ends the chunk.
    fn end(&mut self) {
        match self {
            Partials::Single(sums, all) => {
                all.extend_from_slice(sums);
                sums.fill(-0.0);
            }
            Partials::Double(sums, all) => {
                all.extend_from_slice(sums);
                sums.fill(-0.0);
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Partials::Single(_, all) => bytemuck::cast_slice(all),
            Partials::Double(_, all) => bytemuck::cast_slice(all),
        }
    }
}

impl SumsOverGroups {
    /// Computes the outputs of checked operands.
    pub(in crate::fuse) fn run_host(
        &self,
        shape: &RowShape,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        axes: &[isize],
        outputs: &mut [HostOutput<'_>],
    ) -> Result<()> {
        let groups = Layout::from_shape(shape.groups);
        // Words, so that the address is aligned for any element.
        let words = |count: usize, dtype: DType| vec![0u64; (count * dtype.size()).div_ceil(8)];
        let mut values: Vec<Vec<u64>> = self
            .compiled
            .values
            .iter()
            .map(|value| words(value.layout(shape).count(), value.dtype))
            .collect();
        if let Some(main) = &self.main {
            let mut of_main: Vec<HostOutput<'_>> = Vec::with_capacity(outputs.len() + values.len());
            for (at, output) in outputs.iter_mut().enumerate() {
                if self.compiled.own.contains(&at) {
                    of_main.push(output.reborrow());
                }
            }
            for (value, memory) in self.compiled.values.iter().zip(&mut values) {
                let memory = bytemuck::cast_slice_mut(memory);
                of_main.push(HostOutput::of_bytes(value.dtype, memory, value.layout(shape))?);
            }
            main.run_host(inputs, scalars, axes, &mut of_main)?;
        }
        let element_indices: Cow<'_, [i64]> = match self.element_indices.is_some() {
            true => (0..shape.size as i64).collect(),
            false => Cow::Borrowed(&[]),
        };
        let missing = || Error::invalid(OPERATION, "no input", "an operand of the program");
        let operand = |input: &PhaseInput| -> Result<HostInput<'_>> {
            let operand = match *input {
                PhaseInput::Index => HostInput::new(&element_indices, shape.element_indices()?)?,
                PhaseInput::Stored(_) => return Err(missing()),
                PhaseInput::Input(index) | PhaseInput::Group(index) => {
                    match index.checked_sub(inputs.len()) {
                        None => inputs[index].expand(&shape.elements)?,
                        Some(value) => {
                            let memory = bytemuck::cast_slice(values.get(value).ok_or_else(missing)?);
                            let value = self.compiled.values[value];
                            HostInput::of_bytes(value.dtype, memory, value.layout(shape))?
                        }
                    }
                }
            };
            operand.expand(&shape.elements)
        };
        let mut all_terms = Vec::with_capacity(self.terms.len());
        for (terms, expression) in self.compiled.terms.iter().zip(&self.terms) {
            let operands: Vec<HostInput<'_>> =
                terms.operands.inputs.iter().map(operand).collect::<Result<_>>()?;
            all_terms.push(((terms, expression), operands, terms.operands.scalars(scalars, shape)));
        }
        let dtypes: Vec<DType> = self.compiled.outputs.iter().map(|output| output.dtype).collect();
        let mut partials: Vec<Partials> =
            dtypes.iter().map(|&dtype| Partials::new(dtype, shape.size)).collect();
        let of_groups: Vec<(usize, usize)> =
            shape.groups.iter().copied().enumerate().filter(|(_, size)| *size != 1).collect();
        let mut all = Vec::new();
        slabs(&of_groups, (SLAB / shape.size.max(1)).max(1), &mut Vec::new(), &mut all);
        let mut terms: Vec<Vec<u64>> = vec![Vec::new(); dtypes.len()];
        let mut row = 0;
        for slab in &all {
            let mut sizes = shape.elements.to_vec();
            slab.iter().for_each(|&(axis, _, length)| sizes[axis] = length);
            let elements = Shape::new(&sizes)?;
            let layout = shape.by_rows(&elements)?;
            for ((of_kernel, expression), operands, scalars) in &all_terms {
                let mut narrowed = Vec::with_capacity(operands.len());
                for operand in operands {
                    narrowed.push(
                        slab.iter().try_fold(operand.expand(&shape.elements)?, |operand, range| {
                            operand.narrow(range.0 as isize, range.1, range.2)
                        })?,
                    );
                }
                let sums = of_kernel.sums();
                let mut targets = Vec::with_capacity(sums.len());
                for (terms, &dtype) in terms[sums.clone()].iter_mut().zip(&dtypes[sums]) {
                    terms.resize((elements.count() * dtype.size()).div_ceil(8), 0);
                    targets.push(HostOutput::of_bytes(dtype, bytemuck::cast_slice_mut(terms), layout)?);
                }
                expression.run_host(&narrowed, scalars, &mut targets)?;
            }
            let rows = elements.count() / shape.size.max(1);
            for at in 0..rows {
                for (partials, terms) in partials.iter_mut().zip(&terms) {
                    partials.add(at, terms);
                    if (row + 1) % CHUNK == 0 || row + 1 == groups.count() {
                        partials.end();
                    }
                }
                row += 1;
            }
        }
        let workspace = shape.workspace_of_sums()?;
        for ((fold, partials), &at) in self.folds.iter().zip(&partials).zip(&self.compiled.sums) {
            let input = HostInput::of_bytes(fold.inputs()[0], partials.bytes(), workspace)?;
            fold.run_host(&[input], &[], &mut outputs[at])?;
        }
        Ok(())
    }
}
