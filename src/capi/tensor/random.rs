//! Random numbers. A generator is a place in a Philox 4x32-10 stream; 0 is the device's own generator.

use super::super::arguments::out;
use super::super::error::Result;
use super::super::guard;
use super::super::handle::{Object, object, sv_generator, sv_tensor};
use super::{Operand, device, dtype, flag, give, sizes, sv_operand, tensor};
use crate::tensor::{Device, Generator, GeneratorState};

/// A generator behind a handle.
#[derive(Clone)]
pub(crate) struct GeneratorObject(Generator);
object!(GeneratorObject, Generator);

/// Returns the generator of a handle; 0 is the device's own.
pub(in super::super) fn generator(handle: u64, device: &Device) -> Result<Generator> {
    match handle {
        0 => Ok(device.generator()),
        handle => Ok(GeneratorObject::table().get(handle, "generator")?.0),
    }
}

/// Creates a generator at the start of the stream of a seed.
///
/// Threads that draw at once get parts of the stream in an order that is theirs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_generator_create(seed: u64, generator: *mut sv_generator) -> i32 {
    guard::call("sv_generator_create", || {
        let generator = out(generator, "generator")?;
        generator.write(GeneratorObject::table().insert(GeneratorObject(Generator::new(seed)))?);
        Ok(())
    })
}

/// Writes the state of a generator: its seed and its place in the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_generator_state(
    generator: sv_generator,
    seed: *mut u64,
    offset: *mut u64,
) -> i32 {
    guard::call("sv_generator_state", || {
        let (seed, offset) = (out(seed, "seed")?, out(offset, "offset")?);
        let state = GeneratorObject::table().get(generator, "generator")?.0.state();
        seed.write(state.seed);
        offset.write(state.offset);
        Ok(())
    })
}

/// Sets the state of a generator.
#[unsafe(no_mangle)]
pub extern "C" fn sv_generator_set_state(generator: sv_generator, seed: u64, offset: u64) -> i32 {
    guard::call("sv_generator_set_state", || {
        let generator = GeneratorObject::table().get(generator, "generator")?;
        generator.0.set_state(GeneratorState { seed, offset });
        Ok(())
    })
}

/// Starts the stream of a seed for draws on a device that name no generator.
#[unsafe(no_mangle)]
pub extern "C" fn sv_manual_seed(device: i32, seed: u64) -> i32 {
    guard::call("sv_manual_seed", || {
        self::device(device)?.manual_seed(seed);
        Ok(())
    })
}

/// Draws numbers evenly from 0 to below 1.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_rand(
    generator: sv_generator,
    dtype: i32,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_rand", result, || {
        let device = self::device(device)?;
        Ok(self::generator(generator, &device)?.rand(&sizes(shape, rank)?, self::dtype(dtype)?, &device)?)
    })
}

/// Draws normally distributed numbers of mean 0 and variance 1.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_randn(
    generator: sv_generator,
    dtype: i32,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_randn", result, || {
        let device = self::device(device)?;
        Ok(self::generator(generator, &device)?.randn(&sizes(shape, rank)?, self::dtype(dtype)?, &device)?)
    })
}

/// Draws numbers evenly from 0 to below 1 in the shape and the dtype of a tensor, on its device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_rand_like(
    generator: sv_generator,
    tensor: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_rand_like", result, || {
        let like = super::tensor(tensor, "tensor")?;
        let device = like.device();
        Ok(self::generator(generator, &device)?.rand(like.shape(), like.dtype(), &device)?)
    })
}

/// Draws normally distributed numbers of mean 0 and variance 1 in the shape and the dtype of a tensor, on its device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_randn_like(
    generator: sv_generator,
    tensor: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_randn_like", result, || {
        let like = super::tensor(tensor, "tensor")?;
        let device = like.device();
        Ok(self::generator(generator, &device)?.randn(like.shape(), like.dtype(), &device)?)
    })
}

/// Draws numbers evenly from `low` to below `high`; each is a tensor that is broadcast, or a number.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_uniform(
    generator: sv_generator,
    low: *const sv_operand,
    high: *const sv_operand,
    dtype: i32,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_uniform", result, || {
        let device = self::device(device)?;
        let (low, high) = (Operand::pointer(low, "low")?, Operand::pointer(high, "high")?);
        let generator = self::generator(generator, &device)?;
        Ok(generator.uniform(
            low.operand(),
            high.operand(),
            &sizes(shape, rank)?,
            self::dtype(dtype)?,
            &device,
        )?)
    })
}

/// Draws normally distributed numbers; mean and deviation are each a tensor that is broadcast, or a number.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_normal(
    generator: sv_generator,
    mean: *const sv_operand,
    deviation: *const sv_operand,
    dtype: i32,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_normal", result, || {
        let device = self::device(device)?;
        let (mean, deviation) = (Operand::pointer(mean, "mean")?, Operand::pointer(deviation, "deviation")?);
        let generator = self::generator(generator, &device)?;
        Ok(generator.normal(
            mean.operand(),
            deviation.operand(),
            &sizes(shape, rank)?,
            self::dtype(dtype)?,
            &device,
        )?)
    })
}

/// Draws ones with a probability, and zeros. The probability is a tensor that is broadcast, or a number.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_bernoulli(
    generator: sv_generator,
    probability: *const sv_operand,
    dtype: i32,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_bernoulli", result, || {
        let device = self::device(device)?;
        let probability = Operand::pointer(probability, "probability")?;
        let generator = self::generator(generator, &device)?;
        Ok(generator.bernoulli(probability.operand(), &sizes(shape, rank)?, self::dtype(dtype)?, &device)?)
    })
}

/// Draws integers evenly from `low` to below `high`.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_randint(
    generator: sv_generator,
    low: i64,
    high: i64,
    dtype: i32,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_randint", result, || {
        let device = self::device(device)?;
        Ok(self::generator(generator, &device)?.randint(
            low,
            high,
            &sizes(shape, rank)?,
            self::dtype(dtype)?,
            &device,
        )?)
    })
}

/// Draws the integers from 0 to below `count` in a random order, as `SV_DTYPE_I64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_permutation(
    generator: sv_generator,
    count: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_permutation", result, || {
        let device = self::device(device)?;
        Ok(self::generator(generator, &device)?.permutation(count, &device)?)
    })
}

/// Draws `count` positions of the last axis by weights, as `SV_DTYPE_I64`. `replacement` is 1 to draw a position more than
/// once, or 0. A generator of 0 is the device's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_multinomial(
    generator: sv_generator,
    weights: sv_tensor,
    count: usize,
    replacement: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_multinomial", result, || {
        let (weights, replacement) = (tensor(weights, "weights")?, flag(replacement, "replacement")?);
        let generator = self::generator(generator, &weights.device())?;
        Ok(generator.multinomial(&weights, count, replacement)?)
    })
}
