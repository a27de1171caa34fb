//! Random tensors: the stream that their documents say, element by element, and the distributions, with fixed seeds.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::Error;
use selvedge::fuse::{Graph, HostInput, HostOutput};
use selvedge::tensor::{Device, Generator, GeneratorState, Tensor};
use selvedge::types::{Bool, DType, Element, Layout};

const CPU: Device = Device::cpu();

/// Word `index` of the stream of a seed, from a block on: Philox 4x32-10 as its paper has it.
fn word(seed: u64, offset: u64, index: usize) -> u32 {
    let block = offset.wrapping_add(index as u64 / 4);
    let (mut counter, mut key) =
        ([block as u32, (block >> 32) as u32, 0, 0], [seed as u32, (seed >> 32) as u32]);
    for _ in 0..10 {
        let [first, second] = [u64::from(counter[0]) * 0xD251_1F53, u64::from(counter[2]) * 0xCD9E_8D57];
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter[index % 4]
}

fn pair(seed: u64, offset: u64, index: usize) -> u64 {
    u64::from(word(seed, offset, 2 * index)) | u64::from(word(seed, offset, 2 * index + 1)) << 32
}

/// A draw of a few hundred elements, which are `wanted` of seed, first block and index, and take so many words each.
#[track_caller]
fn assert_drawn<T: Element + PartialEq>(
    words: usize,
    draw: impl Fn(&Generator, &[usize]) -> selvedge::Result<Tensor>,
    wanted: impl Fn(u64, u64, usize) -> T,
) {
    for (seed, offset) in [(0, 0), (0x0123_4567_89ab_cdef, 77), (u64::MAX, (1 << 32) - 2)] {
        let generator = Generator::at(GeneratorState { seed, offset });
        for shape in [&[5, 61][..], &[], &[0, 3], &[1024]] {
            let GeneratorState { offset, .. } = generator.state();
            let drawn = draw(&generator, shape).unwrap();
            assert_eq!((&**drawn.shape(), drawn.dtype()), (shape, T::DTYPE));
            let count = drawn.count();
            for (index, found) in drawn.to_vec::<T>().unwrap().into_iter().enumerate() {
                assert!(found == wanted(seed, offset, index), "{} at {index}", T::DTYPE);
            }
            let taken = generator.state().offset - offset;
            assert_eq!(taken, (count * words).div_ceil(4) as u64, "blocks of {count} elements");
        }
    }
}

#[test]
fn even_numbers_are_the_upper_bits_of_words() {
    let rand = |dtype| move |generator: &Generator, shape: &[usize]| generator.rand(shape, dtype, &CPU);
    let single = |word: u32| (word >> 8) as f32 / 16_777_216.0;
    let double = |pair: u64| (pair >> 11) as f64 / 9_007_199_254_740_992.0;
    assert_drawn(1, rand(DType::F32), |s, o, i| single(word(s, o, i)));
    assert_drawn(2, rand(DType::F64), |s, o, i| double(pair(s, o, i)));
    assert_drawn(1, rand(DType::F16), |s, o, i| f16::from_f64(f64::from(word(s, o, i) >> 21) / 2048.0));
    assert_drawn(1, rand(DType::BF16), |s, o, i| bf16::from_f64(f64::from(word(s, o, i) >> 24) / 256.0));
    assert_drawn(2, rand(DType::C64), |s, o, i| {
        Complex::new(single(word(s, o, 2 * i)), single(word(s, o, 2 * i + 1)))
    });
    assert_drawn(4, rand(DType::C128), |s, o, i| {
        Complex::new(double(pair(s, o, 2 * i)), double(pair(s, o, 2 * i + 1)))
    });
}

/// The normal number of random bits, for which `tests/parity` has vectors.
fn normal<B: Element, T: Element>(bits: B) -> T {
    let graph = Graph::new();
    let expression = graph.expression(&[graph.input(B::DTYPE).normal()]).unwrap();
    let layout = Layout::contiguous(&[]).unwrap();
    let (bits, mut number) = ([bits], [T::zeroed()]);
    let output = HostOutput::new(&mut number, layout).unwrap();
    expression.run_host(&[HostInput::new(&bits, layout).unwrap()], &[], &mut [output]).unwrap();
    number[0]
}

#[test]
fn normal_numbers_are_those_of_their_words() {
    let randn = |dtype| move |generator: &Generator, shape: &[usize]| generator.randn(shape, dtype, &CPU);
    let single = |word: u32| normal::<u32, f32>(word);
    assert_drawn(1, randn(DType::F32), |s, o, i| single(word(s, o, i)));
    assert_drawn(2, randn(DType::F64), |s, o, i| normal::<u64, f64>(pair(s, o, i)));
    assert_drawn(1, randn(DType::F16), |s, o, i| f16::from_f32(single(word(s, o, i))));
    assert_drawn(1, randn(DType::BF16), |s, o, i| bf16::from_f32(single(word(s, o, i))));
    let half = std::f32::consts::FRAC_1_SQRT_2;
    assert_drawn(2, randn(DType::C64), |s, o, i| {
        Complex::new(single(word(s, o, 2 * i)) * half, single(word(s, o, 2 * i + 1)) * half)
    });
    let half = std::f64::consts::FRAC_1_SQRT_2;
    assert_drawn(4, randn(DType::C128), |s, o, i| {
        let [real, imaginary] = [2 * i, 2 * i + 1].map(|i| normal::<u64, f64>(pair(s, o, i)) * half);
        Complex::new(real, imaginary)
    });
    assert_drawn(
        1,
        |generator, shape| generator.normal(-3.0, 0.25, shape, DType::F32, &CPU),
        |s, o, i| single(word(s, o, i)).mul_add(0.25, -3.0),
    );
}

#[test]
fn whole_numbers_are_products_upper_halves() {
    for (low, high) in [(0i64, 10), (-7, 1), (5, 6), (-(1 << 31), 1 << 31), (0, (1 << 32) - 1)] {
        assert_drawn(
            2,
            |generator, shape| generator.randint(low, high, shape, DType::I64, &CPU),
            |s, o, i| low + ((u128::from(pair(s, o, i)) * (high - low) as u128) >> 64) as i64,
        );
    }
    // The upper 64 of 192 bits.
    let wide = |s, o, i: usize, count: u128| {
        let [rest, bits] = [2 * i, 2 * i + 1].map(|i| u128::from(pair(s, o, i)));
        (bits * count + ((rest * count) >> 64)) >> 64
    };
    for (low, high) in [(0, (1 << 32) + 1), (i64::MIN, i64::MAX), (-5, 1 << 60)] {
        let count = (i128::from(high) - i128::from(low)) as u128;
        assert_drawn(
            4,
            |generator, shape| generator.randint(low, high, shape, DType::I64, &CPU),
            |s, o, i| (i128::from(low) + wide(s, o, i, count) as i128) as i64,
        );
    }
    assert_drawn(
        4,
        |generator, shape| generator.randint(0u64, 1i128 << 64, shape, DType::U64, &CPU),
        |s, o, i| wide(s, o, i, 1 << 64) as u64,
    );
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_integer()) {
        let drawn = Generator::new(3).randint(1, 101, &[5000], dtype, &CPU).unwrap();
        let drawn = drawn.cast(DType::I64).unwrap().to_vec::<i64>().unwrap();
        let all = Generator::new(3).randint(1, 101, &[5000], DType::I64, &CPU).unwrap();
        assert_eq!(drawn, all.to_vec::<i64>().unwrap(), "{dtype}");
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&1), Some(&100)));
    }
    let full =
        Generator::new(3).randint(-128, 128, &[100_000], DType::I8, &CPU).unwrap().to_vec::<i8>().unwrap();
    assert_eq!((full.iter().min(), full.iter().max()), (Some(&-128), Some(&127)));
}

#[test]
fn truth_is_a_word_below_the_probability() {
    for probability in [0.0, 1.0, 0.3, 1e-9, 0.999_999_999_9] {
        let limit = (probability * 4_294_967_296.0f64).ceil() as u64;
        assert_drawn(
            1,
            |generator, shape| generator.bernoulli(probability, shape, DType::Bool, &CPU),
            |s, o, i| Bool::from(u64::from(word(s, o, i)) < limit),
        );
    }
    let of = |dtype| {
        let row =
            Tensor::new([0.0f64, 0.25, 0.5, 1.0, -3.0, 7.0, f64::NAN], &CPU).unwrap().cast(dtype).unwrap();
        let drawn = Generator::new(8).bernoulli(&row, &[2000, 7], DType::F32, &CPU).unwrap();
        drawn.to_vec::<f32>().unwrap()
    };
    let drawn = of(DType::F64);
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        assert_eq!(of(dtype), drawn, "{dtype}");
    }
    let ones = |column: usize| drawn.iter().skip(column).step_by(7).sum::<f32>();
    assert_eq!([0, 3, 4, 5, 6].map(ones), [0.0, 2000.0, 0.0, 2000.0, 0.0]);
    assert!((ones(1) - 500.0).abs() < 80.0 && (ones(2) - 1000.0).abs() < 90.0);
}

#[test]
fn permutations_hold_every_number_once() {
    let mut first = Vec::new();
    for count in [0, 1, 2, 7, 1000, 65_537] {
        let generator = Generator::new(11);
        let order = generator.permutation(count, &CPU).unwrap().to_vec::<i64>().unwrap();
        assert_eq!(generator.state().offset, 1);
        let other = generator.permutation(count, &CPU).unwrap().to_vec::<i64>().unwrap();
        assert!(count < 7 || order != other);
        for order in [&order, &other] {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..count as i64));
        }
        first = order;
    }
    // Neighbours have nothing to do with each other: the mean of their product, and few stay where they were.
    let count = first.len() as f64;
    let centered: Vec<f64> = first.iter().map(|&place| place as f64 / count - 0.5).collect();
    let product = centered.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / count;
    assert!(product.abs() < 4.0 / 12.0 / count.sqrt(), "{product}");
    let fixed = first.iter().enumerate().filter(|(index, place)| *index as i64 == **place).count();
    assert!(fixed < 8, "{fixed}");
}

#[test]
fn ends_of_a_uniform_draw() {
    for (low, high) in [(-1.0, 1.0), (3.0, 3.5), (1000.0, 1001.0), (2.0, 2.0), (0.0, 1e-7)] {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let round = |x: f64| Tensor::new(x, &CPU).unwrap().cast(dtype).unwrap().cast(DType::F64).unwrap();
            let [least, most] = [low, high].map(|end| round(end).item::<f64>().unwrap());
            let drawn = Generator::new(5).uniform(low, high, &[20_000], dtype, &CPU).unwrap();
            let drawn = drawn.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
            let inside = |x: &f64| *x >= least && (*x < most || *x == least);
            assert!(drawn.iter().all(inside), "{dtype} from {low} to {high}");
        }
    }
    let lows = Tensor::new([[0.0f32], [10.0]], &CPU).unwrap();
    let drawn = Generator::new(5).uniform(&lows, 20, &[2, 1000], DType::F32, &CPU).unwrap();
    let drawn = drawn.to_vec::<f32>().unwrap();
    assert!(drawn[1000..].iter().all(|x| (10.0..20.0).contains(x)));
    assert!(drawn[..1000].iter().any(|x| *x < 1.0));
}

/// Moments of a sample: mean, variance, skewness and excess kurtosis.
fn moments(sample: &[f64]) -> [f64; 4] {
    let count = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / count;
    let central = |power: i32| sample.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / count;
    let variance = central(2);
    [mean, variance, central(3) / variance.powf(1.5), central(4) / (variance * variance) - 3.0]
}

/// The largest distance of a sample's distribution from `cumulative`, times the root of its size (Kolmogorov and Smirnov;
/// 1.95 is passed once in a thousand).
fn distance(mut sample: Vec<f64>, cumulative: impl Fn(f64) -> f64) -> f64 {
    sample.sort_unstable_by(f64::total_cmp);
    let count = sample.len() as f64;
    let of = |(index, x): (usize, &f64)| {
        let (wanted, below) = (cumulative(*x), index as f64 / count);
        (wanted - below).abs().max((wanted - below - 1.0 / count).abs())
    };
    sample.iter().enumerate().map(of).fold(0.0, f64::max) * count.sqrt()
}

/// The normal distribution by its series, for arguments below 8.
fn below(x: f64) -> f64 {
    let (mut sum, mut term, mut k) = (0.0, x, 1.0);
    while (term / (sum + term)).abs() > 1e-17 && k < 1000.0 {
        sum += term;
        k += 2.0;
        term *= x * x / k;
    }
    0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

#[test]
fn distributions_are_what_they_say() {
    let count = 200_000;
    let root = (count as f64).sqrt();
    for (seed, dtype) in [(1, DType::F32), (2, DType::F64)] {
        let generator = Generator::new(seed);
        let list = |tensor: Tensor| tensor.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
        let even = list(generator.rand(&[count], dtype, &CPU).unwrap());
        let [mean, variance, skewness, kurtosis] = moments(&even);
        assert!(
            (mean - 0.5).abs() * root < 4.0 * (1f64 / 12.0).sqrt()
                && (variance - 1.0 / 12.0).abs() * root < 0.3
        );
        assert!(skewness.abs() * root < 10.0 && (kurtosis + 1.2).abs() * root < 10.0);
        assert!(distance(even, |x| x) < 1.95);
        let bell = list(generator.randn(&[count], dtype, &CPU).unwrap());
        let [mean, variance, skewness, kurtosis] = moments(&bell);
        assert!(mean.abs() * root < 4.0 && (variance - 1.0).abs() * root < 4.0 * 2f64.sqrt());
        assert!(skewness.abs() * root < 4.0 * 6f64.sqrt() && kurtosis.abs() * root < 4.0 * 24f64.sqrt());
        assert!(distance(bell, below) < 1.95);
    }
    // Chi squared of 99 degrees of freedom: 148.2 is passed once in a thousand.
    let dice =
        Generator::new(4).randint(0, 100, &[count], DType::I32, &CPU).unwrap().to_vec::<i32>().unwrap();
    let mut counts = [0u32; 100];
    dice.iter().for_each(|face| counts[*face as usize] += 1);
    let wanted = count as f64 / 100.0;
    let chi: f64 = counts.iter().map(|&found| (f64::from(found) - wanted).powi(2) / wanted).sum();
    assert!(chi < 148.2, "{chi}");
    // Neighbours, across the words of a block and from block to block.
    let even = Generator::new(6).rand(&[count], DType::F64, &CPU).unwrap().to_vec::<f64>().unwrap();
    for lag in [1, 2, 3, 4, 8] {
        let sum: f64 = even.iter().zip(&even[lag..]).map(|(x, y)| (x - 0.5) * (y - 0.5)).sum();
        assert!((sum / root * 12.0).abs() < 4.0, "lag {lag}");
    }
    let complex =
        Generator::new(9).randn(&[count], DType::C64, &CPU).unwrap().to_vec::<Complex<f32>>().unwrap();
    let power = complex.iter().map(|z| f64::from(z.norm_sqr())).sum::<f64>() / count as f64;
    assert!((power - 1.0).abs() * root < 4.0);
}

#[test]
fn generators_go_on_and_back() {
    let generator = Generator::new(12);
    let draw = |count: usize| generator.rand(&[count], DType::F32, &CPU).unwrap().to_vec::<f32>().unwrap();
    let parts = [draw(8), draw(4)].concat();
    generator.manual_seed(12);
    assert_eq!(draw(12), parts);
    let state = generator.state();
    assert_eq!((state.seed, state.offset, generator.seed()), (12, 3, 12));
    let next = draw(5);
    let other = Generator::at(state);
    assert_eq!(other.rand(&[5], DType::F32, &CPU).unwrap().to_vec::<f32>().unwrap(), next);
    // A clone is the same generator.
    let clone = generator.clone();
    clone.set_state(state);
    assert_eq!(draw(5), next);
    assert_eq!(format!("{clone:?}"), "Generator(seed 12, block 5)");
    assert_ne!(Generator::unpredictable().seed(), Generator::unpredictable().seed());
    // Past the last block it begins again.
    generator.set_state(GeneratorState { seed: 1, offset: u64::MAX });
    draw(8);
    assert_eq!(generator.state().offset, 1);
}

#[test]
fn threads_never_share_a_block() {
    let generator = Generator::new(1);
    let mut all: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let draw = || {
            let draw = |_| {
                generator.randint(0u64, 1i128 << 64, &[3], DType::U64, &CPU).unwrap().to_vec::<u64>().unwrap()
            };
            (0..50).map(draw).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(draw)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(generator.state().offset, 8 * 50 * 3);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 400);
}

#[test]
fn refused_draws_take_nothing() {
    let generator = Generator::new(1);
    let start = generator.state();
    let message = |result: selvedge::Result<Tensor>| result.unwrap_err().to_string();
    for dtype in [DType::Bool, DType::I32, DType::F8E4M3] {
        for result in [generator.rand(&[4], dtype, &CPU), generator.randn(&[4], dtype, &CPU)] {
            let message = message(result);
            assert!(message.contains(dtype.name()) && message.contains("f16, bf16"), "{message}");
        }
    }
    let found = message(generator.randint(0, 300, &[4], DType::U8, &CPU));
    assert!(found.contains("below 300 of u8") && found.contains("0 to 255"), "{found}");
    assert!(message(generator.randint(5, 5, &[4], DType::U8, &CPU)).contains("at least one"));
    assert!(message(generator.randint(0, 5, &[4], DType::F32, &CPU)).contains("integers"));
    assert!(
        message(generator.randint(i128::MIN, i128::MAX, &[4], DType::I64, &CPU)).contains("at least one")
    );
    assert!(message(generator.bernoulli(1.5, &[4], DType::Bool, &CPU)).contains("1.5"));
    assert!(message(generator.bernoulli(f64::NAN, &[4], DType::Bool, &CPU)).contains("NaN"));
    let whole = Tensor::new([1i32, 0], &CPU).unwrap();
    assert!(message(generator.bernoulli(&whole, &[2], DType::Bool, &CPU)).contains("i32"));
    assert!(message(generator.normal(0.0, -1.0, &[4], DType::F32, &CPU)).contains("-1"));
    assert!(message(generator.uniform(2.0, 1.0, &[4], DType::F32, &CPU)).contains("2 to 1"));
    assert!(message(generator.uniform(0.0, f64::INFINITY, &[4], DType::F32, &CPU)).contains("finite"));
    assert!(message(generator.uniform(0.0, 1.0, &[4], DType::C64, &CPU)).contains("complex"));
    let three = Tensor::new([1.0f32, 2.0, 3.0], &CPU).unwrap();
    assert!(matches!(
        generator.normal(&three, 1.0, &[2], DType::F32, &CPU),
        Err(Error::InvalidArgument { .. })
    ));
    assert!(generator.rand(&[usize::MAX, 2], DType::F32, &CPU).is_err());
    assert!(generator.rand(&[1 << 60], DType::F32, &CPU).is_err());
    assert!(generator.permutation(usize::MAX, &CPU).is_err());
    assert_eq!(generator.state(), start);
}

#[test]
fn devices_have_generators_of_their_own() {
    // The only test that uses the CPU's.
    CPU.manual_seed(99);
    let first = Tensor::randn(&[4], DType::F32, &CPU).unwrap().to_vec::<f32>().unwrap();
    let generator = Generator::new(99);
    assert_eq!(generator.randn(&[4], DType::F32, &CPU).unwrap().to_vec::<f32>().unwrap(), first);
    let order = Tensor::permutation(10, &CPU).unwrap().to_vec::<i64>().unwrap();
    assert_eq!(generator.permutation(10, &CPU).unwrap().to_vec::<i64>().unwrap(), order);
    assert_eq!(CPU.generator().state(), generator.state());
    for tensor in [
        Tensor::rand(&[3], DType::F16, &CPU),
        Tensor::uniform(0, 1, &[3], DType::F32, &CPU),
        Tensor::normal(0, 1, &[3], DType::F32, &CPU),
        Tensor::randint(0, 6, &[3], DType::U8, &CPU),
        Tensor::bernoulli(0.5, &[3], DType::Bool, &CPU),
    ] {
        assert_eq!(**tensor.unwrap().shape(), [3]);
    }
    assert_eq!(CPU.generator().state().offset, 2 + 1 + 1 + 1 + 2 + 1);
}
