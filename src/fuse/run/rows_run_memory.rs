//! [`RunMemory`], the memory in which a program runs by phases: the host's, or a device's.

use super::elementwise_device::{DeviceInput, DeviceOutput};
use super::expression::Expression;
use super::reduction::Reduction;
use super::rows_index::{check_device, check_host};
use super::rows_run::missing;
use crate::driver::{DeviceBuffer, KernelError, Stream};
use crate::error::Result;
use crate::fuse::cpu::{HostInput, HostOutput};
use crate::fuse::ir::number::Number;
use crate::fuse::plan::compiled_rows::Finish;
use crate::types::{DType, Layout, Shape};

/// Memory of one kind with its operands and the execution of expressions on them.
pub(in crate::fuse) trait RunMemory: 'static {
    type Memory: 'static;
    type Input<'a>;
    type Output<'a>;

    /// Allocates bytes that an expression or a reduction will write.
    fn allocate(&self, bytes: usize) -> Result<Self::Memory>;

    fn evaluate(
        &self,
        expression: &Expression,
        inputs: &[Self::Input<'_>],
        scalars: &[Number],
        outputs: &mut [Self::Output<'_>],
    ) -> Result<()>;

    fn reduce(
        &self,
        reduction: &Reduction,
        inputs: &[Self::Input<'_>],
        scalars: &[Number],
        output: &mut Self::Output<'_>,
    ) -> Result<()>;

    /// Reports an index of a group that is none of `size`.
    fn check(
        &self,
        error: &'static KernelError,
        indices: &Self::Memory,
        groups: Layout,
        size: usize,
    ) -> Result<()>;

    fn input(dtype: DType, memory: &Self::Memory, layout: Layout) -> Result<Self::Input<'_>>;

    fn output(dtype: DType, memory: &mut Self::Memory, layout: Layout) -> Result<Self::Output<'_>>;

    /// Returns the input, broadcast to a shape.
    fn expand<'b, 'a: 'b>(input: &Self::Input<'a>, shape: &Shape) -> Result<Self::Input<'b>>;

    fn described(input: &Self::Input<'_>) -> (DType, Layout);

    fn described_output(output: &Self::Output<'_>) -> (DType, Layout);

    /// Returns the number of the output that an in-place input reads.
    fn in_place_of(input: &Self::Input<'_>) -> Option<usize>;

    /// Returns the elements of an output as they are before the run.
    fn before<'b, 'a: 'b>(output: &Self::Output<'a>) -> Self::Input<'b>;

    fn reborrow<'a>(output: &'a mut Self::Output<'_>) -> Self::Output<'a>;

    /// Returns the inputs of the program for one expression of outputs. `given` has in-place inputs as such, and `inputs`
    /// has them with their memory.
    fn inputs_of<'b, 'a: 'b>(
        finish: &Finish,
        given: &[Self::Input<'a>],
        inputs: &[Self::Input<'a>],
        outputs: &[Self::Output<'_>],
    ) -> Result<Vec<Self::Input<'b>>>;
}

/// A run on the CPU.
pub(in crate::fuse) struct HostRun;

impl RunMemory for HostRun {
    /// Words, so that the address is aligned for any element.
    type Memory = Vec<u64>;
    type Input<'a> = HostInput<'a>;
    type Output<'a> = HostOutput<'a>;

    fn allocate(&self, bytes: usize) -> Result<Vec<u64>> {
        Ok(vec![0; bytes.div_ceil(8)])
    }

    fn evaluate(
        &self,
        expression: &Expression,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        outputs: &mut [HostOutput<'_>],
    ) -> Result<()> {
        expression.run_host(inputs, scalars, outputs)
    }

    fn reduce(
        &self,
        reduction: &Reduction,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        output: &mut HostOutput<'_>,
    ) -> Result<()> {
        reduction.run_host(inputs, scalars, output)
    }

    fn check(&self, error: &'static KernelError, indices: &Vec<u64>, _: Layout, size: usize) -> Result<()> {
        check_host(error, bytemuck::cast_slice(indices), size)
    }

    fn input(dtype: DType, memory: &Vec<u64>, layout: Layout) -> Result<HostInput<'_>> {
        HostInput::of_bytes(dtype, bytemuck::cast_slice(memory), layout)
    }

    fn output(dtype: DType, memory: &mut Vec<u64>, layout: Layout) -> Result<HostOutput<'_>> {
        HostOutput::of_bytes(dtype, bytemuck::cast_slice_mut(memory), layout)
    }

    fn expand<'b, 'a: 'b>(input: &HostInput<'a>, shape: &Shape) -> Result<HostInput<'b>> {
        input.expand(shape)
    }

    fn described(input: &HostInput<'_>) -> (DType, Layout) {
        input.described()
    }

    fn described_output(output: &HostOutput<'_>) -> (DType, Layout) {
        output.described()
    }

    fn in_place_of(input: &HostInput<'_>) -> Option<usize> {
        input.in_place_of()
    }

    fn before<'b, 'a: 'b>(output: &HostOutput<'a>) -> HostInput<'b> {
        HostInput::before(output)
    }

    fn reborrow<'a>(output: &'a mut HostOutput<'_>) -> HostOutput<'a> {
        output.reborrow()
    }

    fn inputs_of<'b, 'a: 'b>(
        _: &Finish,
        _: &[HostInput<'a>],
        inputs: &[HostInput<'a>],
        _: &[HostOutput<'_>],
    ) -> Result<Vec<HostInput<'b>>> {
        inputs.iter().map(|input| input.expand(input.layout().shape())).collect()
    }
}

impl RunMemory for Stream {
    type Memory = DeviceBuffer<u8>;
    type Input<'a> = DeviceInput<'a>;
    type Output<'a> = DeviceOutput<'a>;

    fn allocate(&self, bytes: usize) -> Result<DeviceBuffer<u8>> {
        self.uninitialized(bytes)
    }

    fn evaluate(
        &self,
        expression: &Expression,
        inputs: &[DeviceInput<'_>],
        scalars: &[Number],
        outputs: &mut [DeviceOutput<'_>],
    ) -> Result<()> {
        expression.run(self, inputs, scalars, outputs)
    }

    fn reduce(
        &self,
        reduction: &Reduction,
        inputs: &[DeviceInput<'_>],
        scalars: &[Number],
        output: &mut DeviceOutput<'_>,
    ) -> Result<()> {
        reduction.run(self, inputs, scalars, output)
    }

    fn check(
        &self,
        error: &'static KernelError,
        indices: &DeviceBuffer<u8>,
        groups: Layout,
        size: usize,
    ) -> Result<()> {
        let found = DeviceInput::of_bytes(DType::I64, indices, groups)?;
        let memory = found.memory().ok_or_else(|| missing("memory of an index"))?;
        check_device(error, self, memory, groups.count(), size)
    }

    fn input(dtype: DType, memory: &DeviceBuffer<u8>, layout: Layout) -> Result<DeviceInput<'_>> {
        DeviceInput::of_bytes(dtype, memory, layout)
    }

    fn output(dtype: DType, memory: &mut DeviceBuffer<u8>, layout: Layout) -> Result<DeviceOutput<'_>> {
        DeviceOutput::of_bytes(dtype, memory, layout)
    }

    fn expand<'b, 'a: 'b>(input: &DeviceInput<'a>, shape: &Shape) -> Result<DeviceInput<'b>> {
        input.expand(shape)
    }

    fn described(input: &DeviceInput<'_>) -> (DType, Layout) {
        input.described()
    }

    fn described_output(output: &DeviceOutput<'_>) -> (DType, Layout) {
        output.described()
    }

    fn in_place_of(input: &DeviceInput<'_>) -> Option<usize> {
        input.in_place_of()
    }

    fn before<'b, 'a: 'b>(output: &DeviceOutput<'a>) -> DeviceInput<'b> {
        DeviceInput::before(output)
    }

    fn reborrow<'a>(output: &'a mut DeviceOutput<'_>) -> DeviceOutput<'a> {
        output.reborrow()
    }

    /// The expression reads an element where it writes it, so it reads in-place inputs as such.
    fn inputs_of<'b, 'a: 'b>(
        finish: &Finish,
        given: &[DeviceInput<'a>],
        inputs: &[DeviceInput<'a>],
        outputs: &[DeviceOutput<'_>],
    ) -> Result<Vec<DeviceInput<'b>>> {
        finish.inputs_in_place(given, inputs, outputs)
    }
}
