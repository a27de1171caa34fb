//! Random words compared with an independent Philox, which is checked against its authors' published vectors;
//! and permutations.

use selvedge::fuse::{Expr, Expression, Graph};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, on_host};
use super::classes::{CLASSES, Class, Role};
use super::operations::check;
use super::value::Value;
use crate::common::suite::Test;

pub fn tests() -> Vec<Test> {
    let mut tests = vec![
        Test::new("words::known_answers", || {
            known_answers();
            Ok(())
        }),
        Test::new("words::a_block_is_computed_once", || {
            once();
            Ok(())
        }),
        Test::new("words::blocks_of_the_processor_do_not_matter", || {
            many();
            Ok(())
        }),
        Test::new("words::bad_draws_are_errors", || {
            errors();
            Ok(())
        }),
        Test::new("words::a_stream_in_memory_gives_the_words_of_a_baked_one", || {
            from_memory();
            Ok(())
        }),
        Test::new("words::of_64_bits", || {
            wide();
            Ok(())
        }),
        Test::new("words::permutations", || {
            permutations();
            Ok(())
        }),
    ];
    for class in CLASSES {
        for words in [1, 2, 4] {
            tests.push(Test::new(format!("words::{words}::{}", class.name), move || {
                run(class, words);
                Ok(())
            }));
        }
    }
    tests
}

/// Computes Philox 4x32-10 as its paper defines it.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let first = u64::from(counter[0]) * 0xD251_1F53;
        let second = u64::from(counter[2]) * 0xCD9E_8D57;
        let high = |product: u64| (product >> 32) as u32;
        counter = [
            high(second) ^ counter[1] ^ key[0],
            second as u32,
            high(first) ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

/// Returns word `index` of a stream.
fn word(seed: u64, offset: u64, index: u64) -> u32 {
    let block = offset.wrapping_add(index / 4);
    philox([block as u32, (block >> 32) as u32, 0, 0], [seed as u32, (seed >> 32) as u32])[index as usize % 4]
}

/// Known answers from Random123, `kat_vectors`.
fn known_answers() {
    assert_eq!(philox([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
    assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
    assert_eq!(
        philox([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]),
        [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]
    );
}

fn draw(graph: &Graph, words: usize, seed: u64, offset: u64) -> Vec<Expr<'_>> {
    let [seed, offset] = [seed, offset].map(|number| graph.number(number, DType::U64));
    match words {
        1 => graph.random::<1>(DType::U32, seed, offset).to_vec(),
        2 => graph.random::<2>(DType::U32, seed, offset).to_vec(),
        _ => graph.random::<4>(DType::U32, seed, offset).to_vec(),
    }
}

fn blank(dtype: DType, layout: Layout) -> Array {
    let zero = if dtype.is_complex() { Value::Complex(0.0, 0.0) } else { Value::Integer(0) };
    Array::new(dtype, layout, &[zero], 0)
}

fn run(class: &Class, words: usize) {
    let layout = (class.layout)(1, Role::Output);
    // Carries into the second word of the counter, and out of it.
    for (seed, offset) in [(0, 0), (0x0123_4567_89ab_cdef, 5), (7, (1 << 32) - 3), (u64::MAX, u64::MAX - 1)] {
        // 8, 4, 2 lanes and one.
        for dtype in [DType::U8, DType::U32, DType::U64, DType::C128] {
            let graph = Graph::new();
            let outputs: Vec<Expr<'_>> =
                draw(&graph, words, seed, offset).into_iter().map(|word| word.cast(dtype)).collect();
            let expression = graph.expression(&outputs).expect("an expression");
            let before = vec![blank(dtype, layout); words];
            let after = check(&expression, &[], &before, offset == 5);
            for (part, array) in after.iter().enumerate() {
                for (element, found) in array.elements(&layout).into_iter().enumerate() {
                    let wanted = word(seed, offset, (element * words + part) as u64);
                    let wanted = if dtype == DType::U8 { wanted & 0xff } else { wanted };
                    assert_eq!(found.parts().0, f64::from(wanted), "word {part} of element {element}");
                }
            }
        }
    }
}

/// The seed and the offset come from memory, and the offset grows by a scalar, as in a captured step.
fn from_memory() {
    let number = |bits: u64| {
        let layout = Layout::contiguous(&[]).expect("a layout");
        Array::new(DType::U64, layout, &[Value::Integer(i128::from(bits))], 0)
    };
    // Carries into the second word of the counter, and out of it. The interpreter reads fresh memory in each run.
    for (seed, base, later) in [(0x0123_4567_89ab_cdef, 5, 3), (7, (1 << 32) - 3, 2), (u64::MAX, u64::MAX, 9)]
    {
        for words in [1, 2, 4] {
            for dtype in [DType::U8, DType::U32, DType::C128] {
                for class in CLASSES {
                    let layout = (class.layout)(1, Role::Output);
                    let graph = Graph::new();
                    let [of_seed, of_base] = [(); 2].map(|()| graph.zero_dim_input(DType::U64));
                    let offset = of_base + graph.number(later, DType::U64);
                    let drawn: Vec<Expr<'_>> = match words {
                        1 => graph.random::<1>(DType::U32, of_seed, offset).to_vec(),
                        2 => graph.random::<2>(DType::U32, of_seed, offset).to_vec(),
                        _ => graph.random::<4>(DType::U32, of_seed, offset).to_vec(),
                    };
                    let outputs: Vec<Expr<'_>> = drawn.into_iter().map(|word| word.cast(dtype)).collect();
                    let expression = graph.expression(&outputs).expect("an expression");
                    let before = vec![blank(dtype, layout); words];
                    let after = check(&expression, &[number(seed), number(base)], &before, base == 5);
                    let baked = {
                        let graph = Graph::new();
                        let drawn = draw(&graph, words, seed, base.wrapping_add(later));
                        let drawn: Vec<Expr<'_>> = drawn.into_iter().map(|word| word.cast(dtype)).collect();
                        let mut baked = before.clone();
                        on_host(&graph.expression(&drawn).expect("an expression"), &[], &[], &mut baked);
                        baked
                    };
                    for (found, wanted) in after.iter().zip(&baked) {
                        assert_eq!(found.element_bytes(), wanted.element_bytes(), "{words} words of {dtype}");
                    }
                }
            }
        }
    }
}

fn once() {
    let multiplications = |dtype: DType, words: usize, layout: Layout| {
        let graph = Graph::new();
        let words = draw(&graph, words, 1, 2);
        let sum =
            words.into_iter().map(|word| word.cast(dtype)).reduce(|sum, word| sum + word).expect("words");
        let expression = graph.expression(&[sum]).expect("an expression");
        let explanation = expression.explain(&[], &[layout], (8, 0)).expect("a plan");
        // By the factors, because coordinates are decoded by multiplication too.
        let ours = |line: &&str| {
            line.starts_with("mul.hi.u32")
                && (line.ends_with(", -766435501;") || line.ends_with(", -845247145;"))
        };
        explanation.launches[0].ptx.lines().filter(ours).count()
    };
    // The first round has one factor that is 0 in all blocks.
    let of_blocks = |blocks: usize| 19 * blocks + 1;
    let whole = Layout::contiguous(&[4096]).expect("a layout");
    let odd = Layout::contiguous(&[4099]).expect("a layout");
    for (dtype, words, blocks) in [
        (DType::F32, 1, 1),
        (DType::F16, 1, 2),
        (DType::U8, 1, 2),
        (DType::F32, 2, 2),
        (DType::F64, 2, 1),
        (DType::F64, 4, 2),
        (DType::C128, 4, 1),
        // A thread has too few neighbours.
        (DType::F64, 1, 2),
    ] {
        assert_eq!(multiplications(dtype, words, whole), of_blocks(blocks), "{words} words for {dtype}");
        assert_eq!(multiplications(dtype, words, odd), of_blocks(blocks), "{words} words for {dtype}");
    }
    // Rows that are whole groups, and rows that are not.
    let rows =
        |width| Layout::contiguous(&[64, 32]).and_then(|wide| wide.narrow(1, 0, width)).expect("a view");
    assert_eq!(multiplications(DType::F32, 1, rows(28)), of_blocks(1));
    assert_eq!(multiplications(DType::F32, 1, rows(27)), of_blocks(4));
}

/// Numbers of 64 bits are two words, the lower first.
fn wide() {
    let graph = Graph::new();
    let [seed, offset] = [5u64, 6].map(|number| graph.number(number, DType::U64));
    let [one] = graph.random(DType::U64, seed, offset);
    let pair: [Expr<'_>; 2] = graph.random(DType::U64, seed, offset);
    let expression = graph.expression(&[one, pair[0], pair[1]]).expect("an expression");
    let layout = Layout::contiguous(&[65]).expect("a layout");
    let after = check(&expression, &[], &vec![blank(DType::U64, layout); 3], true);
    let joined = |index| i128::from(word(5, 6, index)) | i128::from(word(5, 6, index + 1)) << 32;
    for (output, (step, first)) in [(2, 0), (4, 0), (4, 2)].into_iter().enumerate() {
        for (element, found) in after[output].elements(&layout).into_iter().enumerate() {
            assert_eq!(found.integer(), joined((step * element + first) as u64));
        }
    }
}

/// Several threads, and blocks of lanes that begin within a group.
fn many() {
    for words in [1, 2] {
        let graph = Graph::new();
        let drawn = draw(&graph, words, 99, 3);
        let expression = graph.expression(&drawn[words - 1..]).expect("an expression");
        let flat = |count, offset| Layout::strided(&[count], &[1], offset).expect("a layout");
        let mut large = [blank(DType::U32, flat(300_001, 0))];
        on_host(&expression, &[], &[], &mut large);
        let found = large[0].elements(&large[0].layout);
        for (element, found) in found.into_iter().enumerate().step_by(61) {
            let wanted = word(99, 3, (words * element + words - 1) as u64);
            assert_eq!(found.integer(), i128::from(wanted));
        }
    }
}

fn errors() {
    let message = |make: fn(&Graph) -> Vec<Expr<'_>>| {
        let graph = Graph::new();
        graph.expression(&make(&graph)).expect_err("an error").to_string()
    };
    let found = message(|graph| {
        let seed = graph.scalar(DType::U64);
        graph.random::<3>(DType::U32, seed, seed).to_vec()
    });
    assert!(found.contains("3 of u32 an element") && found.contains("1, 2 or 4"), "{found}");
    let found = message(|graph| {
        let seed = graph.scalar(DType::U64);
        graph.random::<1>(DType::U64, seed, graph.input(DType::U64)).to_vec()
    });
    assert!(found.contains("u64 scalars"), "{found}");
    let found = message(|graph| {
        let offset = graph.zero_dim_input(DType::U64) + graph.position().cast(DType::U64);
        graph.random::<1>(DType::U64, graph.scalar(DType::U64), offset).to_vec()
    });
    assert!(found.contains("inputs without dimensions"), "{found}");
    let graph = Graph::new();
    let offset = graph.zero_dim_input(DType::U64);
    let [word] = graph.random(DType::U32, graph.number(1u64, DType::U64), offset);
    let expression = graph.expression(&[word]).expect("an expression");
    let pair = Layout::contiguous(&[2]).expect("a layout");
    let found = expression.explain(&[pair], &[pair], (8, 0)).expect_err("an error").to_string();
    assert!(found.contains("input 0 of shape") && found.contains("one element"), "{found}");
    let found = message(|graph| {
        graph.random::<0>(DType::U32, graph.scalar(DType::U32), graph.scalar(DType::U64)).to_vec()
    });
    assert!(found.contains("u64 scalars"), "{found}");
}

fn permutation(length: u64, key: u64) -> Expression {
    let graph = Graph::new();
    let [length, key] = [length, key].map(|number| graph.number(number, DType::U64));
    graph.expression(&[graph.position().permuted(length, key)]).expect("an expression")
}

fn permutations() {
    for length in [1, 2, 3, 5, 64, 100, 129, 1000] {
        for key in [0, 1, u64::MAX] {
            let layout = Layout::contiguous(&[length]).expect("a layout");
            let after = check(&permutation(length as u64, key), &[], &[blank(DType::U64, layout)], key == 1);
            let mut found: Vec<i128> = after[0].elements(&layout).into_iter().map(Value::integer).collect();
            found.sort_unstable();
            assert!(found.into_iter().eq(0..length as i128), "length {length}, key {key}");
        }
    }
    // More than 32 bits, and more than the number of indices.
    for length in [(1 << 40) + 12345, u64::MAX, 0] {
        let layout = Layout::contiguous(&[67]).expect("a layout");
        let after = check(&permutation(length, 3), &[], &[blank(DType::U64, layout)], false);
        let found = after[0].elements(&layout).into_iter().map(Value::integer);
        let mut found: Vec<i128> = found.collect();
        assert!(found.iter().all(|place| (0..i128::from(length.max(1))).contains(place)));
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), if length == 0 { 1 } else { 67 });
    }
}
