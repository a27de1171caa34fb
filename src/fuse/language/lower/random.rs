//! Random words from Philox 4x32-10: a bijection of counters, so every word of a stream is computed
//! independently.
//!
//! J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
//! 2011. The key is the seed; the lower half of the counter is the block's index in the stream, the upper
//! half 0.

use crate::fuse::ir::coordinate::Coordinate;
use crate::fuse::ir::instruction::{Instruction, RegisterKind};
use crate::fuse::ir::program::{Program, Step, Value};
use crate::types::DType;

const ROUNDS: usize = 10;
const FACTORS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// The golden ratio and sqrt(3) - 1, the increments of the key.
const STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Words of a block.
pub(crate) const BLOCK_WORDS: u32 = 4;

/// Returns the coordinate that distinguishes neighbours which each take `words` words of a block.
pub(crate) fn coordinate(words: u32) -> Coordinate {
    match BLOCK_WORDS / words {
        1 => Coordinate::Position,
        elements => Coordinate::Group(elements),
    }
}

/// Returns number `number` of the `words` (1, 2 or 4) words that an element takes from the stream of a seed,
/// starting at a block; a u64 takes two words.
pub(crate) fn number(
    program: &mut Program,
    dtype: DType,
    operand: u32,
    words: u32,
    number: u32,
    stream: [Value; 2],
) -> Value {
    if dtype.size() == 4 {
        return word(program, operand, words, number, stream);
    }
    let [low, high] = [0, 1].map(|part| {
        let word = word(program, operand, words, 2 * number + part, stream);
        program.apply(Instruction::ZeroExtend32, &[word])
    });
    let shift = program.bits32(32);
    let high = program.shift_left(high, shift);
    program.or(low, high)
}

fn word(program: &mut Program, operand: u32, words: u32, word: u32, [seed, offset]: [Value; 2]) -> Value {
    let count = BLOCK_WORDS / words;
    let group = match count {
        1 => program.step(Step::Coordinate { operand }, RegisterKind::Bits64),
        _ => program.step(Step::Group { operand, count }, RegisterKind::Bits64),
    };
    let number = program.add(offset, group);
    let [low, high] = halves(program, number);
    let key = halves(program, seed);
    let zero = program.bits32(0);
    let block = philox(program, [low, high, zero, zero], key);
    if count == 1 {
        return block[(word % BLOCK_WORDS) as usize];
    }
    // This word of each neighbour; indices past the count are unused.
    let words = [0, 1, 2, 3].map(|element| block[((element * words + word) % BLOCK_WORDS) as usize]);
    program.step(Step::Pick { operand, count, words }, RegisterKind::Bits32)
}

fn halves(program: &mut Program, x: Value) -> [Value; 2] {
    let shift = program.bits32(32);
    let high = program.shift_right_unsigned(x, shift);
    [x, high].map(|half| program.apply(Instruction::Truncate64, &[half]))
}

fn philox(program: &mut Program, mut counter: [Value; 4], mut key: [Value; 2]) -> [Value; 4] {
    for round in 0..ROUNDS {
        if round > 0 {
            for (key, step) in key.iter_mut().zip(STEPS) {
                let step = program.bits32(step);
                *key = program.add(*key, step);
            }
        }
        let product = |program: &mut Program, factor: u32, x: Value| {
            let factor = program.bits32(factor);
            (program.multiply(x, factor), program.multiply_high(x, factor))
        };
        let (low_0, high_0) = product(program, FACTORS[0], counter[0]);
        let (low_1, high_1) = product(program, FACTORS[1], counter[2]);
        let mut mixed = |high: Value, word: Value, key: Value| {
            let mixed = program.xor(high, word);
            program.xor(mixed, key)
        };
        counter = [mixed(high_1, counter[1], key[0]), low_1, mixed(high_0, counter[3], key[1]), low_0];
    }
    counter
}
