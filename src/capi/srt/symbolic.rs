//! Symbolic expressions: trees of exact numbers, constants, inputs and functions.
//!
//! An expression does not change, so any thread may use it. The first evaluation compiles it, and later ones share its kernels.

use std::ffi::c_char;
use std::sync::{Arc, OnceLock};

use super::super::arguments::{out, slice, write_text};
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, object, sv_srt_symbolic, sv_tensor};
use super::super::tensor::{give, tensor};
use super::golden_exact::{exact, sv_srt_exact};
use super::number;
use crate::srt::{CompiledExpr, Constant, Rational, SymExpr};

/// An expression behind a handle, and its compiled form once it was evaluated.
#[derive(Clone)]
pub(in super::super) struct SymbolicObject(Arc<(SymExpr, OnceLock<CompiledExpr>)>);
object!(SymbolicObject, Symbolic);

impl SymbolicObject {
    fn find(handle: u64, name: &str) -> Result<SymbolicObject> {
        SymbolicObject::table().get(handle, name)
    }

    fn tree(&self) -> &SymExpr {
        &self.0.0
    }

    fn compiled(&self) -> Result<&CompiledExpr> {
        let (tree, compiled) = &*self.0;
        match compiled.get() {
            Some(compiled) => Ok(compiled),
            // Two threads may both compile: the first result stays.
            None => tree.compile().map(|new| compiled.get_or_init(|| new)).map_err(Failure::from),
        }
    }
}

/// pi.
pub const SV_SRT_CONSTANT_PI: i32 = 1;
/// e.
pub const SV_SRT_CONSTANT_E: i32 = 2;
/// phi.
pub const SV_SRT_CONSTANT_PHI: i32 = 3;
/// e^pi - pi, `SV_SRT_ESTAR`.
pub const SV_SRT_CONSTANT_ESTAR: i32 = 4;
/// q, `SV_SRT_Q_DEFICIT`.
pub const SV_SRT_CONSTANT_Q: i32 = 5;

/// x + y.
pub const SV_SRT_SYMBOLIC_ADD: i32 = 1;
/// x - y.
pub const SV_SRT_SYMBOLIC_SUB: i32 = 2;
/// x y.
pub const SV_SRT_SYMBOLIC_MUL: i32 = 3;
/// x/y.
pub const SV_SRT_SYMBOLIC_DIV: i32 = 4;
/// -x.
pub const SV_SRT_SYMBOLIC_NEG: i32 = 5;
/// e^x.
pub const SV_SRT_SYMBOLIC_EXP: i32 = 6;
/// The natural logarithm of x.
pub const SV_SRT_SYMBOLIC_LN: i32 = 7;
/// The gamma function of x.
pub const SV_SRT_SYMBOLIC_GAMMA: i32 = 8;
/// The sine of x.
pub const SV_SRT_SYMBOLIC_SIN: i32 = 9;
/// The cosine of x.
pub const SV_SRT_SYMBOLIC_COS: i32 = 10;

/// The most leaves and functions of an operation's result: far more than a kernel holds. Operands are copied, so `x = x * x`
/// doubles the tree, and some 30 of them would exhaust the memory.
const MAX_NODES: usize = 1 << 20;

/// Returns an error if an operation on these operands has too many nodes.
fn check_nodes(name: &str, operands: &[&SymbolicObject]) -> Result<()> {
    let nodes =
        operands.iter().fold(1, |sum: usize, operand| sum.saturating_add(operand.tree().node_count()));
    if nodes > MAX_NODES {
        let found = format!("{nodes} leaves and functions with the operation");
        return Err(Failure::argument(name, found, &format!("at most {MAX_NODES}")));
    }
    Ok(())
}

/// Runs the body of a function whose result is an expression, and writes its handle. The library has one copy of it.
///
/// # Safety
///
/// `result` is NULL or points to a `u64` that this call alone uses.
unsafe fn give_symbolic(
    function: &'static str,
    result: *mut u64,
    work: &mut dyn FnMut() -> Result<SymExpr>,
) -> i32 {
    guard::call(function, || {
        let result = out(result, "result")?;
        let object = SymbolicObject(Arc::new((work()?, OnceLock::new())));
        result.write(SymbolicObject::table().insert(object)?);
        Ok(())
    })
}

/// Creates an expression for an integer. Sums and products of integers are exact, so larger ones of up to 128 bits are made of
/// smaller ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_symbolic_integer(integer: i64, result: *mut sv_srt_symbolic) -> i32 {
    give_symbolic("sv_srt_symbolic_integer", result, &mut || Ok(integer.into()))
}

/// Creates an expression for a fraction. `SV_ERROR_DIVISION_BY_ZERO` for a denominator of 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_symbolic_rational(
    numerator: i64,
    denominator: i64,
    result: *mut sv_srt_symbolic,
) -> i32 {
    let mut work = || Ok(Rational::new(numerator.into(), denominator.into())?.into());
    give_symbolic("sv_srt_symbolic_rational", result, &mut work)
}

/// Creates an expression for an exact number a + b phi.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_symbolic_exact(
    number: *const sv_srt_exact,
    result: *mut sv_srt_symbolic,
) -> i32 {
    let mut work = || Ok(exact(number, "number")?.into());
    give_symbolic("sv_srt_symbolic_exact", result, &mut work)
}

/// Creates an expression for a constant, one of `SV_SRT_CONSTANT_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_symbolic_constant(constant: i32, result: *mut sv_srt_symbolic) -> i32 {
    let mut work = || {
        Ok(SymExpr::from(match constant {
            SV_SRT_CONSTANT_PI => Constant::Pi,
            SV_SRT_CONSTANT_E => Constant::E,
            SV_SRT_CONSTANT_PHI => Constant::Phi,
            SV_SRT_CONSTANT_ESTAR => Constant::EStar,
            SV_SRT_CONSTANT_Q => Constant::Q,
            other => return Err(Failure::argument("constant", other, "one of SV_SRT_CONSTANT_...")),
        }))
    };
    give_symbolic("sv_srt_symbolic_constant", result, &mut work)
}

/// Creates an expression for input `slot`: column `slot` of the rows of a run, from 0 to 62.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_symbolic_input(slot: usize, result: *mut sv_srt_symbolic) -> i32 {
    give_symbolic("sv_srt_symbolic_input", result, &mut || Ok(SymExpr::input(slot)))
}

/// Creates an expression for an operation, one of `SV_SRT_SYMBOLIC_...`. Operations of one operand do not read `y`.
///
/// Sums, differences, products and quotients of two integers, of two fractions or of two exact numbers are exact numbers at once,
/// unless they overflow 128 bits or divide by 0. A result has at most 1048576 leaves and functions, or the status is
/// `SV_ERROR_INVALID_ARGUMENT`: operands are copied, so x = x x doubles their number. The caller owns one reference to `*result`,
/// which keeps no handle of an operand.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_symbolic_operation(
    operation: i32,
    x: sv_srt_symbolic,
    y: sv_srt_symbolic,
    result: *mut sv_srt_symbolic,
) -> i32 {
    let mut work = || {
        let x = SymbolicObject::find(x, "x")?;
        let unary = |apply: fn(&SymExpr) -> SymExpr| {
            check_nodes("x", &[&x])?;
            Ok(apply(x.tree()))
        };
        let binary = |apply: fn(SymExpr, SymExpr) -> SymExpr| {
            let y = SymbolicObject::find(y, "y")?;
            check_nodes("x and y", &[&x, &y])?;
            Ok(apply(x.tree().clone(), y.tree().clone()))
        };
        match operation {
            SV_SRT_SYMBOLIC_ADD => binary(|x, y| x + y),
            SV_SRT_SYMBOLIC_SUB => binary(|x, y| x - y),
            SV_SRT_SYMBOLIC_MUL => binary(|x, y| x * y),
            SV_SRT_SYMBOLIC_DIV => binary(|x, y| x / y),
            SV_SRT_SYMBOLIC_NEG => unary(|x| -x.clone()),
            SV_SRT_SYMBOLIC_EXP => unary(SymExpr::exp),
            SV_SRT_SYMBOLIC_LN => unary(SymExpr::ln),
            SV_SRT_SYMBOLIC_GAMMA => unary(SymExpr::gamma),
            SV_SRT_SYMBOLIC_SIN => unary(SymExpr::sin),
            SV_SRT_SYMBOLIC_COS => unary(SymExpr::cos),
            other => Err(Failure::argument("operation", other, "one of SV_SRT_SYMBOLIC_...")),
        }
    };
    give_symbolic("sv_srt_symbolic_operation", result, &mut work)
}

/// Creates an expression for x to the power numerator/denominator. Of a negative x it is the real root if the reduced denominator
/// is odd, else NaN.
///
/// A result has at most 1048576 leaves and functions, or the status is `SV_ERROR_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_symbolic_pow(
    x: sv_srt_symbolic,
    numerator: i64,
    denominator: i64,
    result: *mut sv_srt_symbolic,
) -> i32 {
    let mut work = || {
        let x = SymbolicObject::find(x, "x")?;
        check_nodes("x", &[&x])?;
        Ok(x.tree().pow(Rational::new(numerator.into(), denominator.into())?))
    };
    give_symbolic("sv_srt_symbolic_pow", result, &mut work)
}

/// Writes the number of leaves and functions of an expression.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_symbolic_node_count(x: sv_srt_symbolic, result: *mut usize) -> i32 {
    number("sv_srt_symbolic_node_count", result, || Ok(SymbolicObject::find(x, "x")?.tree().node_count()))
}

/// Writes the number of input slots of an expression: the highest one, plus 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_symbolic_slots(x: sv_srt_symbolic, result: *mut usize) -> i32 {
    number("sv_srt_symbolic_slots", result, || Ok(SymbolicObject::find(x, "x")?.tree().slots()))
}

/// Writes 1 if two expressions are the same tree, else 0. Equal values of different trees do not count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_symbolic_is_same(
    x: sv_srt_symbolic,
    y: sv_srt_symbolic,
    result: *mut i32,
) -> i32 {
    number("sv_srt_symbolic_is_same", result, || {
        let (x, y) = (SymbolicObject::find(x, "x")?, SymbolicObject::find(y, "y")?);
        Ok(i32::from(x.tree() == y.tree()))
    })
}

/// Writes an expression as a text in UTF-8, such as `((x0^2 + 1) · π)`. `text`, `capacity` and `length` are as for
/// `sv_library_report`.
///
/// # Safety
///
/// `text` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_symbolic_text(
    x: sv_srt_symbolic,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_srt_symbolic_text", || {
        let tree = SymbolicObject::find(x, "x")?.tree().to_string();
        write_text(&tree, text, capacity, length)
    })
}

/// Evaluates an expression on the CPU for one row of `count` inputs, with the bits of `sv_srt_symbolic_run_rows`.
///
/// # Safety
///
/// `inputs` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_symbolic_evaluate(
    x: sv_srt_symbolic,
    inputs: *const f64,
    count: usize,
    result: *mut f64,
) -> i32 {
    number("sv_srt_symbolic_evaluate", result, || {
        let inputs = slice(inputs, count, "inputs")?;
        Ok(SymbolicObject::find(x, "x")?.compiled()?.evaluate(inputs)?)
    })
}

/// Evaluates an expression for each row of a matrix of `SV_DTYPE_F64`, whose columns are the input slots, on the device of the
/// matrix. `*result` gets a vector with a value for each row.
///
/// Outside its domain a function is NaN or infinite, as IEEE has it: ln 0 is -infinity, ln of a negative number NaN. An
/// expression with more than 63 slots is `SV_ERROR_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_symbolic_run_rows(
    x: sv_srt_symbolic,
    rows: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_symbolic_run_rows", result, || {
        Ok(SymbolicObject::find(x, "x")?.compiled()?.run_rows(&tensor(rows, "rows")?)?)
    })
}
