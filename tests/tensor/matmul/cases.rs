//! Products of tensors against the definition, element by element, on any device: whole numbers, so that every dtype is
//! exact, in operands that are views of all kinds.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::gemm::Activation;
use selvedge::tensor::{Device, Matmul, Tensor};
use selvedge::types::{DType, Element, Slice};

/// The result of a check: the difference, or the library's error.
pub type Checked = Result<(), String>;

/// Numbers that look random: a linear congruential generator's upper half.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// A whole number, complex for all dtypes alike.
type Whole = Complex<i64>;

/// The element types of products.
trait Number: Element {
    fn of(whole: Whole) -> Self;
    fn whole(self) -> Whole;
}

macro_rules! numbers {
    ($($type:ty, $of:expr, $whole:expr;)*) => {$(
        impl Number for $type {
            fn of(whole: Whole) -> $type {
                $of(whole)
            }
            fn whole(self) -> Whole {
                $whole(self)
            }
        }
    )*};
}

macro_rules! integers {
    ($($type:ty, $signed:ty;)*) => {
        // Small numbers keep their sign in unsigned types too, whose sums have the same bits.
        numbers! { $($type, |x: Whole| x.re as $type, |x: $type| Complex::new(i64::from(x as $signed), 0);)* }
    };
}

integers! { u8, i8; i8, i8; u16, i16; i16, i16; u32, i32; i32, i32; u64, i64; i64, i64; }
numbers! {
    f16, |x: Whole| f16::from_f32(x.re as f32), |x: f16| Complex::new(x.to_f32() as i64, 0);
    bf16, |x: Whole| bf16::from_f32(x.re as f32), |x: bf16| Complex::new(x.to_f32() as i64, 0);
    f32, |x: Whole| x.re as f32, |x: f32| Complex::new(x as i64, 0);
    f64, |x: Whole| x.re as f64, |x: f64| Complex::new(x as i64, 0);
    Complex<f32>, |x: Whole| Complex::new(x.re as f32, x.im as f32), |x: Complex<f32>| Complex::new(x.re as i64, x.im as i64);
    Complex<f64>, |x: Whole| Complex::new(x.re as f64, x.im as f64), |x: Complex<f64>| Complex::new(x.re as i64, x.im as i64);
}

/// A tensor of this shape with numbers from -3 to 3, in some memory layout: in another order of dimensions, with
/// steps, backwards, from somewhere on.
fn some<T: Number>(numbers: &mut Numbers, sizes: &[usize], device: &Device) -> selvedge::Result<Tensor> {
    let rank = sizes.len();
    // Mostly the last two dimensions change places or none do.
    let mut order: Vec<usize> = (0..rank).collect();
    match numbers.below(4) {
        0 if rank > 1 => order.swap(rank - 1, rank - 2),
        1 => order.sort_by_key(|_| numbers.below(100)),
        _ => {}
    }
    // (gap before, step, gap behind) of each dimension of the memory; negative steps are backwards.
    let spans: Vec<(usize, isize, usize)> = order
        .iter()
        .map(|_| {
            let step = numbers.one_of(&[1, 1, 1, 1, 1, 2, -1]);
            (numbers.one_of(&[0, 0, 0, 1]), step, numbers.one_of(&[0, 0, 3]))
        })
        .collect();
    let memory: Vec<usize> = order
        .iter()
        .zip(&spans)
        .map(|(&axis, (before, step, behind))| before + sizes[axis] * step.unsigned_abs() + behind)
        .collect();
    let elements: Vec<T> = (0..memory.iter().product::<usize>())
        .map(|_| {
            let mut part = || numbers.below(7) as i64 - 3;
            T::of(Complex::new(part(), part()))
        })
        .collect();
    let mut tensor = Tensor::from_vec(elements, &memory, device)?;
    for (axis, (&from, (before, step, _))) in order.iter().zip(&spans).enumerate() {
        let length = sizes[from] * step.unsigned_abs();
        tensor = tensor.narrow(axis as isize, *before, length)?;
        tensor = tensor.slice(axis as isize, Slice::from(..).step(*step))?;
    }
    let mut back = vec![0isize; rank];
    for (place, &axis) in order.iter().enumerate() {
        back[axis] = place as isize;
    }
    tensor.permute(&back)
}

/// The elements as the definition takes them: by batch, row and column.
struct Model {
    sizes: Vec<usize>,
    elements: Vec<Whole>,
}

impl Model {
    fn of<T: Number>(tensor: &Tensor) -> selvedge::Result<Model> {
        let elements = tensor.to_vec::<T>()?.into_iter().map(T::whole).collect();
        Ok(Model { sizes: tensor.shape().to_vec(), elements })
    }

    /// The element at a batch index, which is broadcast, and a row and column.
    fn at(&self, batch: &[usize], row: usize, column: usize) -> Whole {
        let own = self.sizes.len() - 2;
        let batch = &batch[batch.len() - own..];
        let place = batch
            .iter()
            .zip(&self.sizes)
            .fold(0, |place, (&index, &size)| place * size + if size == 1 { 0 } else { index });
        let (rows, columns) = (self.sizes[own], self.sizes[own + 1]);
        self.elements[(place * rows + row) * columns + column]
    }
}

fn product(a: &Model, b: &Model, shape: &[usize], conjugate: (bool, bool)) -> Vec<Whole> {
    let inner = a.sizes[a.sizes.len() - 1];
    let seen = |value: Whole, conjugate: bool| if conjugate { value.conj() } else { value };
    let mut index = vec![0; shape.len()];
    let mut elements = Vec::new();
    for _ in 0..shape.iter().product::<usize>() {
        let (batch, last) = index.split_at(shape.len() - 2);
        let sum: Whole = (0..inner)
            .map(|p| seen(a.at(batch, last[0], p), conjugate.0) * seen(b.at(batch, p, last[1]), conjugate.1))
            .sum();
        elements.push(sum);
        for (place, &size) in index.iter_mut().zip(shape).rev() {
            *place += 1;
            if *place < size {
                break;
            }
            *place = 0;
        }
    }
    elements
}

/// Shapes of operands that meet, with those that have the dimensions of vectors; and the result's, as matrices.
fn shapes(numbers: &mut Numbers) -> [Vec<usize>; 3] {
    let mut size = |limit: usize| numbers.below(limit + 1);
    let (m, n, k) = (1 + size(8), 1 + size(8), size(9));
    let batch: Vec<usize> = (0..size(3)).map(|_| 1 + size(2)).collect();
    let mut part = |inner: [usize; 2]| {
        let skip = numbers.below(batch.len() + 1);
        let dimensions = batch[skip..].iter().map(|&size| if numbers.below(3) == 0 { 1 } else { size });
        dimensions.chain(inner).collect::<Vec<usize>>()
    };
    let (a, b) = (part([m, k]), part([k, n]));
    let rank = a.len().max(b.len());
    let padded = |sizes: &[usize]| [vec![1; rank - sizes.len()], sizes.to_vec()].concat();
    let (wide_a, wide_b) = (padded(&a), padded(&b));
    let mut result: Vec<usize> =
        wide_a.iter().zip(&wide_b).map(|(&x, &y)| if x == 1 { y } else { x }).collect();
    (result[rank - 2], result[rank - 1]) = (m, n);
    [a, b, result]
}

fn described(error: selvedge::Error) -> String {
    error.to_string()
}

fn compare<T: Number>(found: &Tensor, wanted: &[Whole], what: &str) -> Checked {
    let found = found.to_vec::<T>().map_err(described)?;
    let wanted: Vec<T> = wanted.iter().map(|&whole| T::of(whole)).collect();
    if bytemuck::cast_slice::<T, u8>(&found) == bytemuck::cast_slice::<T, u8>(&wanted) {
        return Ok(());
    }
    // Zeros have two signs.
    match found.iter().zip(&wanted).position(|(x, y)| x.whole() != y.whole()) {
        None => Ok(()),
        Some(at) => Err(format!("{what}: element {at} is {:?}, wanted {:?}", found[at], wanted[at])),
    }
}

fn random<T: Number>(seed: u64, device: &Device) -> Checked {
    let numbers = &mut Numbers(seed);
    let [of_a, of_b, shape] = shapes(numbers);
    let a = some::<T>(numbers, &of_a, device).map_err(described)?;
    let b = some::<T>(numbers, &of_b, device).map_err(described)?;
    let what = format!("seed {seed}, {}: {:?} times {:?}", T::DTYPE, a.layout(), b.layout());
    let failed = |error: selvedge::Error| format!("{what}: {error}");
    let conjugate = (numbers.below(3) == 0, numbers.below(3) == 0);
    let mut matmul = Matmul::new();
    if conjugate.0 {
        matmul = matmul.conjugate_left();
    }
    if conjugate.1 {
        matmul = matmul.conjugate_right();
    }
    let (model_a, model_b) = (Model::of::<T>(&a).map_err(failed)?, Model::of::<T>(&b).map_err(failed)?);
    let plain = product(&model_a, &model_b, &shape, conjugate);
    let c = matmul.of(&a, &b).map_err(failed)?;
    if c.shape()[..] != shape[..] {
        return Err(format!("{what}: a result of {}, wanted {shape:?}", c.shape()));
    }
    compare::<T>(&c, &plain, &what)?;

    // Into an existing tensor, in some layout too, with factors.
    let (alpha, beta) = (numbers.one_of(&[1i8, 2, -1]), numbers.one_of(&[0i8, 1, -2]));
    // Unsigned integers hold no negative factor.
    let is_unsigned = T::DTYPE.is_integer() && !T::DTYPE.is_signed_integer();
    let (alpha, beta) = if is_unsigned { (alpha.abs(), beta.abs()) } else { (alpha, beta) };
    let mut into = some::<T>(numbers, &shape, device).map_err(failed)?;
    let before = Model::of::<T>(&into).map_err(failed)?.elements;
    let other = into.clone();
    if numbers.below(2) == 0 {
        // Alone with its memory; else another one shares it, which must not see anything.
        drop(other);
        matmul.alpha(alpha).add_to(&mut into, beta, &a, &b).map_err(failed)?;
    } else {
        matmul.alpha(alpha).add_to(&mut into, beta, &a, &b).map_err(failed)?;
        compare::<T>(&other, &before, &format!("{what}, shared"))?;
    }
    let scaled = |factor: i8, whole: &Whole| whole * i64::from(factor);
    let wanted: Vec<Whole> =
        plain.iter().zip(&before).map(|(sum, old)| scaled(alpha, sum) + scaled(beta, old)).collect();
    compare::<T>(&into, &wanted, &format!("{what}, into {:?}", into.layout()))
}

/// Shapes, views, factors and conjugation at random, in every dtype.
pub fn every_dtype(seeds: std::ops::Range<u64>, device: &Device) -> Checked {
    for seed in seeds {
        random::<f32>(seed, device)?;
        random::<Complex<f64>>(seed, device)?;
        match seed % 6 {
            0 => random::<f64>(seed, device).and_then(|()| random::<u8>(seed, device))?,
            1 => random::<f16>(seed, device).and_then(|()| random::<i8>(seed, device))?,
            2 => random::<bf16>(seed, device).and_then(|()| random::<u16>(seed, device))?,
            3 => random::<Complex<f32>>(seed, device).and_then(|()| random::<i16>(seed, device))?,
            4 => random::<i32>(seed, device).and_then(|()| random::<u32>(seed, device))?,
            _ => random::<i64>(seed, device).and_then(|()| random::<u64>(seed, device))?,
        }
    }
    Ok(())
}

/// Indices of a shape in row-major order.
fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..shape.iter().product::<usize>()).map(|place| {
        let mut rest = place;
        let mut index: Vec<usize> = shape
            .iter()
            .rev()
            .map(|&size| {
                let at = rest % size;
                rest /= size;
                at
            })
            .collect();
        index.reverse();
        index
    })
}

/// The elements of a tensor that is broadcast to a shape.
fn spread<T: Number>(tensor: &Tensor, shape: &[usize]) -> selvedge::Result<Vec<Whole>> {
    let own = tensor.shape().to_vec();
    let elements = tensor.to_vec::<T>()?;
    let place = |index: Vec<usize>| {
        let index = &index[index.len() - own.len()..];
        let pairs = index.iter().zip(&own);
        pairs.fold(0, |place, (&at, &size)| place * size + if size == 1 { 0 } else { at })
    };
    Ok(indices(shape).map(|index| elements[place(index)].whole()).collect())
}

/// Epilogues of whole numbers: bias, relu, residual and aux output, in views of all kinds.
fn random_fused<T: Number, C: Number>(seed: u64, device: &Device) -> Checked {
    let numbers = &mut Numbers(seed);
    let [of_a, of_b, shape] = shapes(numbers);
    let (a, b) = (some::<T>(numbers, &of_a, device), some::<T>(numbers, &of_b, device));
    let (a, b) = (a.map_err(described)?, b.map_err(described)?);
    let what = format!("seed {seed}, {} into {}: {of_a:?} times {of_b:?}", T::DTYPE, C::DTYPE);
    let failed = |error: selvedge::Error| format!("{what}: {error}");
    let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    // One number for all, for each column, for each row; or none.
    let of_bias = match numbers.below(6) {
        0 => None,
        1 => Some(vec![]),
        2 => Some(vec![m, 1]),
        3 => Some(vec![1, n]),
        _ => Some(vec![n]),
    };
    let of_residual = match numbers.below(5) {
        0 | 1 => None,
        2 => Some(vec![m, n]),
        3 => Some(vec![n]),
        _ => Some(shape.clone()),
    };
    let mut make =
        |sizes: Option<Vec<usize>>| sizes.map(|sizes| some::<C>(numbers, &sizes, device)).transpose();
    let (bias, residual) = (make(of_bias).map_err(failed)?, make(of_residual).map_err(failed)?);
    let mut matmul = Matmul::new().alpha(2).result(C::DTYPE);
    if let Some(bias) = &bias {
        matmul = matmul.bias(bias);
    }
    if let Some(residual) = &residual {
        matmul = matmul.residual(residual);
    }
    let activated = numbers.below(2) == 0;
    if activated {
        matmul = matmul.activation(Activation::Relu);
    }
    let zeros = vec![Whole::default(); shape.iter().product()];
    let of = |tensor: &Option<Tensor>| match tensor {
        Some(tensor) => spread::<C>(tensor, &shape),
        None => Ok(zeros.clone()),
    };
    let (biases, residuals) = (of(&bias).map_err(failed)?, of(&residual).map_err(failed)?);
    let models = (Model::of::<T>(&a).map_err(failed)?, Model::of::<T>(&b).map_err(failed)?);
    let sums = product(&models.0, &models.1, &shape, (false, false));
    let finished = |before: &[Whole]| -> Vec<Whole> {
        let relu = |x: Whole| if activated { Complex::new(x.re.max(0), 0) } else { x };
        before.iter().zip(&residuals).map(|(x, residual)| relu(*x) + residual).collect()
    };
    let before: Vec<Whole> = sums.iter().zip(&biases).map(|(sum, bias)| sum * 2 + bias).collect();
    let (c, kept) = matmul.of_with_aux(&a, &b).map_err(failed)?;
    compare::<C>(&kept, &before, &format!("{what}, kept"))?;
    compare::<C>(&c, &finished(&before), &what)?;
    compare::<C>(&matmul.of(&a, &b).map_err(failed)?, &finished(&before), &what)?;

    // Into what is there.
    let mut into = some::<C>(numbers, &shape, device).map_err(failed)?;
    let old = Model::of::<C>(&into).map_err(failed)?.elements;
    matmul.add_to(&mut into, -1, &a, &b).map_err(failed)?;
    let before: Vec<Whole> = before.iter().zip(&old).map(|(x, old)| x - old).collect();
    compare::<C>(&into, &finished(&before), &format!("{what}, into {:?}", into.layout()))
}

/// As [`every_dtype`], of products with a bias, an activation and a residual.
pub fn every_fused(seeds: std::ops::Range<u64>, device: &Device) -> Checked {
    for seed in seeds {
        random_fused::<f32, f32>(seed, device)?;
        match seed % 5 {
            0 => random_fused::<f64, f64>(seed, device)?,
            1 => random_fused::<f16, f16>(seed, device)?,
            2 => random_fused::<f16, f32>(seed, device)?,
            3 => random_fused::<bf16, f32>(seed, device)?,
            _ => random_fused::<bf16, bf16>(seed, device)?,
        }
    }
    Ok(())
}

/// Gelu of aux, and vectors, whose shapes are the result's.
pub fn layers(device: &Device) -> Checked {
    let run = || -> selvedge::Result<Vec<(Vec<f32>, Vec<f32>)>> {
        let weights = Tensor::new([[0.5f32, -1.0, 2.0], [1.5, 0.25, -0.75]], device)?;
        let x = Tensor::new([1.0f32, -0.5], device)?;
        let bias = Tensor::new([0.125f32, -2.0, 0.0], device)?;
        let layer = Matmul::new().bias(&bias).activation(Activation::GeluTanh);
        let (from_row, kept) = layer.of_with_aux(&x, &weights)?;
        let from_column = layer.of(&weights.transpose(0, 1)?, &x)?;
        let dot = Matmul::new().bias(&bias.select(0, 0)?).of(&x, &x)?;
        let gelu = |x: &f32| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh());
        let before = vec![-0.125f32, -3.125, 2.375];
        let after: Vec<f32> = before.iter().map(gelu).collect();
        Ok(vec![
            (kept.to_vec()?, before),
            (from_row.to_vec()?, after.clone()),
            (from_column.to_vec()?, after),
            (dot.to_vec()?, vec![1.375]),
        ])
    };
    for (index, (found, wanted)) in run().map_err(described)?.into_iter().enumerate() {
        let near = found.iter().zip(&wanted).all(|(x, y)| (x - y).abs() <= 4e-6 * y.abs().max(0.1));
        if found.len() != wanted.len() || !near {
            return Err(format!("case {index}: {found:?}, wanted {wanted:?}"));
        }
    }
    Ok(())
}

/// A result, and the shape and elements that are wanted.
type Wanted = (Tensor, Vec<usize>, Vec<f32>);

/// Vectors: their dimension is left out of the result.
pub fn vectors(device: &Device) -> Checked {
    let run = || -> selvedge::Result<Vec<Wanted>> {
        let matrix = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], device)?;
        let (x, y) = (Tensor::new([1.0f32, -1.0, 2.0], device)?, Tensor::new([3.0f32, 5.0], device)?);
        let steps = Tensor::new([1.0f32, 9.0, -1.0, 9.0, 2.0], device)?.slice(0, Slice::from(..).step(2))?;
        let batch = Tensor::new([[[1.0f32], [2.0], [3.0]], [[4.0], [5.0], [6.0]]], device)?;
        Ok(vec![
            (x.dot(&x)?, vec![], vec![6.0]),
            (x.matmul(&steps)?, vec![], vec![6.0]),
            (matrix.gemv(&x)?, vec![2], vec![5.0, 11.0]),
            (matrix.gemv(&steps)?, vec![2], vec![5.0, 11.0]),
            (y.matmul(&matrix)?, vec![3], vec![23.0, 31.0, 39.0]),
            (matrix.transpose(0, 1)?.gemv(&y)?, vec![3], vec![23.0, 31.0, 39.0]),
            (y.outer(&x)?, vec![2, 3], vec![3.0, -3.0, 6.0, 5.0, -5.0, 10.0]),
            (steps.matmul(&batch)?, vec![2, 1], vec![5.0, 11.0]),
            (batch.transpose(1, 2)?.gemv(&x)?, vec![2, 1], vec![5.0, 11.0]),
        ])
    };
    for (index, (found, shape, elements)) in run().map_err(described)?.into_iter().enumerate() {
        let values = found.to_vec::<f32>().map_err(described)?;
        if found.shape()[..] != shape[..] || values != elements {
            return Err(format!("case {index}: {} {values:?}, wanted {shape:?} {elements:?}", found.shape()));
        }
    }
    Ok(())
}

/// Sums of narrow floats stay in f32 where that is asked for, and empty sums are zeros.
pub fn results(device: &Device) -> Checked {
    let run = || -> selvedge::Result<(Vec<f32>, Vec<bf16>, Vec<f64>)> {
        let a = Tensor::full(&[2, 300], 1.0, DType::BF16, device)?;
        let b = a.transpose(0, 1)?;
        let wide = Matmul::new().result(DType::F32).of(&a, &b)?.to_vec::<f32>()?;
        let narrow = a.matmul(&b)?.to_vec::<bf16>()?;
        let empty = Tensor::zeros(&[2, 0], DType::F64, device)?;
        let zeros = empty.matmul(&Tensor::zeros(&[0, 3], DType::F64, device)?)?.to_vec::<f64>()?;
        Ok((wide, narrow, zeros))
    };
    let (wide, narrow, zeros) = run().map_err(described)?;
    // 300 is no bf16.
    if wide != [300.0; 4] || narrow != [bf16::from_f32(300.0); 4] || zeros != [0.0; 6] {
        return Err(format!("{wide:?}, {narrow:?}, {zeros:?}"));
    }
    Ok(())
}
