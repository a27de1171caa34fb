//! Elementwise operations by their code, into new tensors and into tensors that are there. The header has an inline function for
//! each operation, which passes its code of `operations.rs` to one of these.

use std::ffi::c_char;

use super::super::arguments::{out, slice, text, write_text};
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, sv_tensor};
use super::{Operand, TensorObject, change, enter, operands, sv_operand, sv_slice, tensor};
use crate::fuse::{Number, Operation};
use crate::tensor::{TensorOperand, apply};

/// Returns the operation of a code.
pub(in crate::capi) fn operation(code: u32) -> Result<Operation> {
    Operation::from_code(code).ok_or_else(|| Failure::argument("operation", code, "one of SV_OP_..."))
}

/// Names the operation in the failure of a function that serves all of them.
pub(in crate::capi) fn of_operation<T>(operation: Operation, result: Result<T>) -> Result<T> {
    result.map_err(|Failure { status, message }| {
        let message = format!("{}: {message}", operation.name());
        Failure { status, message }
    })
}

/// Computes an operation of tensors, and writes the handle of its result.
///
/// # Safety
///
/// `result` is NULL or points to a `u64` that this call alone uses.
unsafe fn run<const COUNT: usize>(
    operation: Operation,
    handles: &[u64; COUNT],
    result: *mut u64,
) -> Result<()> {
    let result = out(result, "result")?;
    let mut failure = None;
    let handle = match guard::in_use(|| apply_to_pinned(operation, handles, &mut failure)) {
        Some(handle) => handle,
        None => match failure {
            Some(failure) => return Err(failure),
            None => apply_to_clones(operation, handles)?,
        },
    };
    result.write(handle);
    Ok(())
}

/// The most elements of an operand that an operation uses where it is. A thread that changes the tensor waits meanwhile, so the
/// time is short; that of more elements is long beside a clone.
const MAX_PINNED: usize = 1 << 14;

/// Computes an operation of small tensors where they are, and returns the result's handle, in a register. Returns none for a
/// failure, which is kept, for larger tensors, and for those that another thread changes or that are not there.
#[inline]
fn apply_to_pinned<const COUNT: usize>(
    operation: Operation,
    handles: &[u64; COUNT],
    failure: &mut Option<Failure>,
) -> Option<u64> {
    let apply_to = |tensors: &[Option<&TensorObject>; COUNT]| {
        // An array, since every call would pay for a vector.
        let mut operands = [TensorOperand::Number(Number::Bool(false)); COUNT];
        for (operand, TensorObject(tensor)) in operands.iter_mut().zip(tensors.iter().flatten()) {
            if tensor.count() > MAX_PINNED {
                return None;
            }
            *operand = TensorOperand::Tensor(tensor);
        }
        // The result goes from here into its slot at once: each copy of a tensor takes as long as two pins.
        match apply(operation, &operands) {
            Ok(tensor) => match TensorObject::table().try_insert(TensorObject(tensor)) {
                Some(handle) => return Some(handle.get()),
                None => *failure = Some(TensorObject::table().full()),
            },
            Err(error) => *failure = Some(error.into()),
        }
        None
    };
    TensorObject::table().with_pins(handles, apply_to).flatten()
}

/// As [`apply_to_pinned`], of any tensors. Another thread that changes one meanwhile leaves this one its elements.
#[inline(never)]
fn apply_to_clones<const COUNT: usize>(operation: Operation, handles: &[u64; COUNT]) -> Result<u64> {
    let mut tensors = [const { None }; COUNT];
    for (space, (handle, name)) in tensors.iter_mut().zip(handles.iter().zip(["x", "y", "z"])) {
        *space = Some(tensor(*handle, name)?);
    }
    let mut operands = [TensorOperand::Number(Number::Bool(false)); COUNT];
    for (operand, tensor) in operands.iter_mut().zip(tensors.iter().flatten()) {
        *operand = TensorOperand::Tensor(tensor);
    }
    enter(apply(operation, &operands)?)
}

/// As [`run`], of an operation's code.
///
/// # Safety
///
/// As [`run`].
unsafe fn run_code<const COUNT: usize>(code: u32, handles: &[u64; COUNT], result: *mut u64) -> Result<()> {
    let operation = operation(code)?;
    check_arity(operation, COUNT)?;
    of_operation(operation, run(operation, handles, result))
}

/// Fails for another number of operands than the operation takes.
pub(in crate::capi) fn check_arity(operation: Operation, count: usize) -> Result<()> {
    if operation.arity() == count {
        return Ok(());
    }
    let wanted = format!("{} for {}", operation.arity(), operation.name());
    Err(Failure::argument("count", format!("{count} operands"), &wanted))
}

/// Computes an elementwise operation, one of `SV_OP_...`, on `count` operands, each a tensor or a number. At least one of them
/// is a tensor. Dtypes are promoted and shapes broadcast as in PyTorch.
///
/// # Safety
///
/// `operands` points to `count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_operation(
    operation: u32,
    operands: *const sv_operand,
    count: usize,
    result: *mut sv_tensor,
) -> i32 {
    guard::call("sv_operation", || {
        let result = out(result, "result")?;
        let operation = self::operation(operation)?;
        check_arity(operation, count)?;
        let operands = of_operation(operation, self::operands(operands, count))?;
        let operands: Vec<TensorOperand<'_>> = operands.iter().map(Operand::operand).collect();
        result.write(enter(apply(operation, &operands)?)?);
        Ok(())
    })
}

/// Computes an elementwise operation of one tensor; see `sv_operation`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_unary(operation: u32, x: sv_tensor, result: *mut sv_tensor) -> i32 {
    guard::call("sv_unary", || run_code(operation, &[x], result))
}

/// Computes an elementwise operation of two tensors; see `sv_operation`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_binary(
    operation: u32,
    x: sv_tensor,
    y: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    guard::call("sv_binary", || run_code(operation, &[x, y], result))
}

/// Computes an elementwise operation of three tensors; see `sv_operation`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_ternary(
    operation: u32,
    x: sv_tensor,
    y: sv_tensor,
    z: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    guard::call("sv_ternary", || run_code(operation, &[x, y, z], result))
}

/// Replaces a tensor's elements by an operation's result on them and `count` other operands. The result is converted to
/// their dtype, which must be able to hold it. Other tensors that shared the elements do not change.
///
/// # Safety
///
/// `others` points to `count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_operation_in_place(
    operation: u32,
    tensor: sv_tensor,
    others: *const sv_operand,
    count: usize,
) -> i32 {
    let find = || {
        let operation = self::operation(operation)?;
        check_arity(operation, count.saturating_add(1))?;
        if tensor == 0 {
            of_operation(operation, self::tensor(tensor, "tensor"))?;
        }
        Ok((operation, of_operation(operation, operands(others, count))?))
    };
    change("sv_operation_in_place", (tensor, "tensor"), find, |mut target, (operation, others)| {
        let others: Vec<TensorOperand<'_>> = others.iter().map(Operand::operand).collect();
        target.operation(operation, &others)?;
        Ok(())
    })
}

/// Writes an operation's result into a tensor that is there, to whose shape the `count` operands broadcast and whose dtype
/// must be able to hold the result. The first operand is a tensor.
///
/// Others that use the handle of `output` wait meanwhile.
///
/// # Safety
///
/// `operands` points to `count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_operation_into(
    operation: u32,
    operands: *const sv_operand,
    count: usize,
    output: sv_tensor,
) -> i32 {
    guard::call("sv_operation_into", || {
        let operation = self::operation(operation)?;
        check_arity(operation, count)?;
        let operands = of_operation(operation, self::operands(operands, count))?;
        let operands: Vec<TensorOperand<'_>> = operands.iter().map(Operand::operand).collect();
        let Some((TensorOperand::Tensor(first), others)) = operands.split_first() else {
            return Err(Failure::argument("operands", "a number first", "a tensor first"));
        };
        TensorObject::table().with_mut(output, "output", |output| {
            Ok(first.with_output(output.tensor_mut()).operation(operation, others)?)
        })
    })
}

/// Replaces a tensor's elements by those of a tensor, which is broadcast and cast, or by a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_assign(tensor: sv_tensor, value: *const sv_operand) -> i32 {
    change(
        "sv_tensor_assign",
        (tensor, "tensor"),
        || Operand::pointer(value, "value"),
        |mut target, value| {
            target.assign(value.operand())?;
            Ok(())
        },
    )
}

/// Replaces a part of a tensor's elements, as `sv_tensor_assign`: the positions that `count` slices name, one after the other.
///
/// # Safety
///
/// `slices` points to `count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_assign_slice(
    tensor: sv_tensor,
    slices: *const sv_slice,
    count: usize,
    value: *const sv_operand,
) -> i32 {
    let find = || Ok((slice(slices, count, "slices")?, Operand::pointer(value, "value")?));
    change("sv_tensor_assign_slice", (tensor, "tensor"), find, |mut target, (slices, value)| {
        for slice in slices {
            let (axis, slice) = slice.parts();
            target = target.slice(axis, slice)?;
        }
        target.assign(value.operand())?;
        Ok(())
    })
}

/// Writes the name of an operation, such as `add`. `text`, `capacity` and `length` are as for `sv_library_report`.
///
/// # Safety
///
/// `text` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_operation_name(
    operation: u32,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_operation_name", || {
        write_text(self::operation(operation)?.name(), text, capacity, length)
    })
}

/// Writes the code of the operation of a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_operation_code(name: *const c_char, operation: *mut u32) -> i32 {
    guard::call("sv_operation_code", || {
        let (name, result) = (text(name, "name")?, out(operation, "operation")?);
        let found = Operation::ALL.iter().find(|operation| operation.name() == name);
        let found = found.ok_or_else(|| Failure::argument("name", name, "the name of an operation"))?;
        result.write(found.code());
        Ok(())
    })
}

/// Writes the number of operands of an operation: 1, 2 or 3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_operation_arity(operation: u32, arity: *mut usize) -> i32 {
    guard::call("sv_operation_arity", || {
        let arity = out(arity, "arity")?;
        arity.write(self::operation(operation)?.arity());
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// Returns the text of `operations.rs`.
    fn generated() -> String {
        let mut text = "\
// Generated from the list of src/fuse/language/operation.rs by the test of src/capi/tensor/elementwise.rs; do not edit. Again with:
// scripts/generate.sh operations

//! The code of each elementwise operation, behind the number of its operands, which scripts/header reads.
"
        .to_owned();
        for operation in Operation::ALL {
            let (name, code, doc) = (operation.name(), operation.code(), operation.document());
            let (name, arity) = (name.to_uppercase(), operation.arity());
            write!(text, "\n/// {doc}\n// operands: {arity}\npub const SV_OP_{name}: u32 = {code};\n")
                .unwrap();
        }
        text
    }

    #[test]
    fn operations_are_those_of_the_list() {
        // Tests run in the repository's root, under cargo and in a bundle.
        let path = "src/capi/tensor/operations.rs";
        if std::env::var_os("SELVEDGE_WRITE_OPERATIONS").is_some() {
            std::fs::write(path, generated()).unwrap();
            return;
        }
        let found = std::fs::read_to_string(path).unwrap();
        assert!(found == generated(), "{path} is not generated from the list; its first lines say how");
    }
}
