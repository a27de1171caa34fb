//! Statistics, diagonals, draws by weights and views as another dtype, against straightforward references.

use num_complex::Complex;
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::{DType, Result, f16};

fn cpu() -> Device {
    Device::cpu()
}

fn numbers(x: &Tensor) -> Result<Vec<f64>> {
    x.cast(DType::F64)?.to_vec()
}

fn text<T>(result: Result<T>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn extremes_come_with_the_first_position_and_nan_wins() -> Result<()> {
    let x = Tensor::new([[2.0f32, 7.0, 7.0], [f32::NAN, 1.0, f32::NAN], [-0.0, 0.0, -1.0]], &cpu())?;
    let (most, at_most) = x.max_with_indices(-1)?;
    let (least, at_least) = x.min_with_indices(1)?;
    assert_eq!(at_most.to_vec::<i64>()?, x.argmax(1)?.to_vec::<i64>()?);
    assert_eq!((at_most.to_vec::<i64>()?, at_least.to_vec::<i64>()?), (vec![1, 0, 0], vec![0, 0, 2]));
    let (most, least) = (most.to_vec::<f32>()?, least.to_vec::<f32>()?);
    assert!(most[0] == 7.0 && most[1].is_nan() && most[2] == 0.0, "{most:?}");
    assert!(least[0] == 2.0 && least[1].is_nan() && least[2] == -1.0, "{least:?}");
    let (values, indices) = x.max_with_indices(0)?;
    assert!(values.to_vec::<f32>()?[0].is_nan());
    assert_eq!(indices.to_vec::<i64>()?, [1, 0, 1]);
    let whole = Tensor::new([[3u8, 1], [2, 9]], &cpu())?;
    let (least, most) = whole.aminmax(..)?;
    assert_eq!((least.item::<u8>()?, most.item::<u8>()?), (1, 9));
    assert!(text(x.max_with_indices(2)).contains('2'));
    assert!(!text(Tensor::zeros(&[2, 0], DType::F32, &cpu())?.max_with_indices(1)).is_empty());
    Ok(())
}

#[test]
fn moments_in_pairs_are_those_of_the_single_reductions() -> Result<()> {
    let x = Generator::new(1).randn(&[4, 50], DType::F32, &cpu())?;
    let ((variance, mean), (deviation, same)) = (x.var_mean(1, 1)?, x.std_mean(&[1], 1)?);
    assert!(variance.equal(&x.var(1, 1)?)? && deviation.equal(&x.std(1, 1)?)?);
    assert!(mean.equal(&x.mean(1)?)? && same.equal(&mean)?);
    Ok(())
}

#[test]
fn nan_is_left_out_or_replaced() -> Result<()> {
    let nan = f64::NAN;
    let rows = [[1.0, nan, 3.0], [nan, nan, nan], [f64::INFINITY, 1.0, f64::NEG_INFINITY]];
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let x = Tensor::new(rows, &cpu())?.cast(dtype)?;
        let (sums, means) = (x.nansum(1)?, x.nanmean(1)?);
        assert_eq!((sums.dtype(), means.dtype()), (dtype, dtype));
        let (sums, means) = (numbers(&sums)?, numbers(&means)?);
        assert_eq!((&sums[..2], sums[2].is_nan()), (&[4.0, 0.0][..], true), "{dtype}");
        assert_eq!((means[0], means[1].is_nan()), (2.0, true), "{dtype}");
        let most = match dtype {
            DType::F16 => f64::from(f16::MAX),
            DType::BF16 => f64::from(half::bf16::MAX),
            DType::F32 => f64::from(f32::MAX),
            _ => f64::MAX,
        };
        let replaced = numbers(&x.nan_to_num(-5.0, None, None)?)?;
        assert_eq!(replaced, [1.0, -5.0, 3.0, -5.0, -5.0, -5.0, most, 1.0, -most], "{dtype}");
        let replaced = numbers(&x.nan_to_num(0.0, Some(8.0), Some(nan))?)?;
        assert!(replaced[6] == 8.0 && replaced[8].is_nan());
    }
    let whole = Tensor::new([1, 2, 4], &cpu())?;
    assert_eq!(whole.nansum(0)?.item::<i64>()?, 7);
    assert_eq!(whole.nan_to_num(0.0, None, None)?.to_vec::<i32>()?, [1, 2, 4]);
    let z = Tensor::new([Complex::new(f32::NAN, 2.0), Complex::new(1.0, 3.0)], &cpu())?;
    assert_eq!(z.nan_to_num(9.0, None, None)?.to_vec::<Complex<f32>>()?[0], Complex::new(9.0, 2.0));
    assert_eq!(z.nanmean(0)?.item::<Complex<f32>>()?, Complex::new(1.0, 3.0));
    assert!(text(Tensor::ones(&[1], DType::F16, &cpu())?.nan_to_num(1e9, None, None)).contains("f16"));
    Ok(())
}

#[test]
fn diff_subtracts_neighbours_along_any_axis() -> Result<()> {
    let x = Tensor::new([[1i32, 4, 9, 16], [0, 1, 0, 1]], &cpu())?;
    let table: [(usize, isize, Vec<usize>, Vec<i32>); 6] = [
        (0, 1, vec![2, 4], x.to_vec()?),
        (1, 1, vec![2, 3], vec![3, 5, 7, 1, -1, 1]),
        (3, -1, vec![2, 1], vec![0, 4]),
        (4, 1, vec![2, 0], vec![]),
        (9, 1, vec![2, 0], vec![]),
        (1, 0, vec![1, 4], vec![-1, -3, -9, -15]),
    ];
    for (order, axis, shape, wanted) in table {
        let found = x.diff(order, axis)?;
        assert_eq!((found.shape()[..].to_vec(), found.to_vec::<i32>()?), (shape, wanted), "{order} {axis}");
    }
    let bools = Tensor::new([true, true, false], &cpu())?;
    assert_eq!(bools.diff(1, 0)?.to_vec::<bool>()?, [false, true]);
    assert_eq!(Tensor::new([3u8, 1], &cpu())?.diff(1, 0)?.to_vec::<u8>()?, [254]);
    assert!(text(x.diff(1, 2)).contains('2'));
    Ok(())
}

#[test]
fn covariances_are_those_of_the_definition() -> Result<()> {
    let x = Generator::new(2).randn(&[3, 20], DType::F64, &cpu())?;
    let rows = x.to_vec::<f64>()?;
    let centred: Vec<Vec<f64>> =
        rows.chunks(20).map(|row| row.iter().map(|x| x - row.iter().sum::<f64>() / 20.0).collect()).collect();
    let covariance =
        |i: usize, j: usize| centred[i].iter().zip(&centred[j]).map(|(x, y)| x * y).sum::<f64>() / 19.0;
    let (cov, corrcoef) = (x.cov(1)?.to_vec::<f64>()?, x.corrcoef()?.to_vec::<f64>()?);
    for at in 0..9 {
        let (i, j) = (at / 3, at % 3);
        let wanted = covariance(i, j);
        assert!((cov[at] - wanted).abs() < 1e-14, "{i} {j}");
        let wanted = wanted / (covariance(i, i) * covariance(j, j)).sqrt();
        assert!((corrcoef[at] - wanted).abs() < 1e-14, "{i} {j}");
    }
    let row = Tensor::new([1, 2, 3], &cpu())?;
    assert_eq!((row.cov(1)?.item::<f32>()?, row.cov(0)?.item::<f32>()?), (1.0, 2.0 / 3.0));
    assert_eq!((row.cov(1)?.rank(), row.corrcoef()?.item::<f32>()?), (0, 1.0));
    let z = Tensor::new([[Complex::new(0.0, 1.0), Complex::new(0.0, -1.0)]], &cpu())?;
    assert_eq!(z.cov(1)?.to_vec::<Complex<f64>>()?, [Complex::new(2.0, 0.0)]);
    assert!(row.cov(3)?.item::<f32>()?.is_infinite());
    // A matrix of one row is one variable too.
    let matrix = row.unsqueeze(0)?;
    assert_eq!((matrix.cov(1)?.rank(), matrix.corrcoef()?.rank()), (0, 0));
    assert_eq!((matrix.cov(1)?.item::<f32>()?, matrix.corrcoef()?.item::<f32>()?), (1.0, 1.0));
    assert!(text(Tensor::zeros(&[1, 1, 1], DType::F32, &cpu())?.corrcoef()).contains("[1, 1, 1]"));
    assert_eq!(Tensor::zeros(&[2, 0], DType::F32, &cpu())?.cov(1)?.shape()[..], [2, 2]);
    Ok(())
}

#[test]
fn cdist_measures_each_pair_of_rows() -> Result<()> {
    let generator = Generator::new(3);
    let x = generator.randn(&[2, 4, 3], DType::F64, &cpu())?;
    let y = generator.randn(&[5, 3], DType::F64, &cpu())?;
    let (own, others) = (x.to_vec::<f64>()?, y.to_vec::<f64>()?);
    for p in [0.0, 1.0, 2.0, 3.0, f64::INFINITY] {
        let found = x.cdist(&y, p)?;
        assert_eq!(found.shape()[..], [2, 4, 5]);
        for (at, found) in found.to_vec::<f64>()?.into_iter().enumerate() {
            let pairs = own[at / 5 * 3..].iter().zip(&others[at % 5 * 3..at % 5 * 3 + 3]);
            let distances: Vec<f64> = pairs.map(|(x, y)| (x - y).abs()).collect();
            let wanted = match p {
                0.0 => 3.0,
                f64::INFINITY => distances.iter().copied().fold(0.0, f64::max),
                _ => distances.iter().map(|x| x.powf(p)).sum::<f64>().powf(1.0 / p),
            };
            assert!((found - wanted).abs() < 1e-14, "{p} {at}: {found} {wanted}");
        }
    }
    assert_eq!(x.narrow(1, 0, 0)?.cdist(&y, 2.0)?.shape()[..], [2, 0, 5]);
    assert!(text(x.cdist(&y.narrow(1, 0, 1)?, 2.0)).contains("[5, 1]"));
    assert!(!text(y.select(0, 0)?.cdist(&y, 2.0)).is_empty());
    assert!(text(x.cdist(&y, f64::NAN)).contains("NaN"));
    Ok(())
}

#[test]
fn diagonals_and_blocks_have_their_places() -> Result<()> {
    let x = Tensor::new([1, 2], &cpu())?;
    let table =
        [(0, vec![1, 0, 0, 2]), (1, vec![0, 1, 0, 0, 0, 2, 0, 0, 0]), (-1, vec![0, 0, 0, 1, 0, 0, 0, 2, 0])];
    for (offset, wanted) in table {
        let matrix = x.diag(offset)?;
        assert_eq!(matrix.to_vec::<i32>()?, wanted);
        assert_eq!(matrix.diag(offset)?.to_vec::<i32>()?, [1, 2]);
    }
    assert_eq!(x.narrow(0, 0, 0)?.diag(2)?.to_vec::<i32>()?, [0; 4]);
    assert!(text(x.unsqueeze(0)?.unsqueeze(0)?.diag(0)).contains("[1, 1, 2]"));
    let wide = Tensor::new([[1, 2, 3], [4, 5, 6]], &cpu())?;
    assert_eq!(wide.trace()?.item::<i64>()?, 6);
    assert!(text(x.trace()).contains("[2]"));
    let blocks = wide.kron(&x)?;
    assert_eq!(blocks.shape()[..], [2, 6]);
    assert_eq!(blocks.to_vec::<i32>()?, [1, 2, 2, 4, 3, 6, 4, 8, 5, 10, 6, 12]);
    assert_eq!(Tensor::new(3, &cpu())?.kron(&Tensor::new(4, &cpu())?)?.item::<i32>()?, 12);
    Ok(())
}

#[test]
fn grids_ranges_and_shapes_are_those_of_numpy() -> Result<()> {
    let (x, y) = (Tensor::new([1, 2], &cpu())?, Tensor::new(7.5f32, &cpu())?);
    let grid = Tensor::meshgrid(&[&x, &y, &x])?;
    let shapes: Vec<&[usize]> = grid.iter().map(|x| &x.shape()[..]).collect();
    assert_eq!(shapes, [[2, 1, 2]; 3]);
    assert_eq!((grid[0].to_vec::<i32>()?, grid[2].to_vec::<i32>()?), (vec![1, 1, 2, 2], vec![1, 2, 1, 2]));
    assert!(Tensor::meshgrid(&[])?.is_empty());
    assert!(text(Tensor::meshgrid(&[&x.unsqueeze(0)?])).contains("[1, 2]"));
    assert!(text(Tensor::meshgrid(&[&x; 17])).contains("17"));

    let powers = Tensor::logspace(-2.0, 2.0, 5, 10.0, DType::F64, &cpu())?.to_vec::<f64>()?;
    powers.iter().zip([0.01, 0.1, 1.0, 10.0, 100.0]).for_each(|(x, y)| assert!((x / y - 1.0).abs() < 1e-14));
    assert!(text(Tensor::logspace(0.0, 1.0, 2, 2.0, DType::I32, &cpu())).contains("i32"));

    let z = Tensor::zeros(&[2, 12, 3], DType::F32, &cpu())?;
    assert_eq!(z.unflatten(-2, &[2, -1, 3])?.shape()[..], [2, 2, 2, 3, 3]);
    assert!(!text(z.unflatten(1, &[5, -1])).is_empty());
    assert_eq!(Tensor::new(1, &cpu())?.ravel()?.shape()[..], [1]);
    for dtype in DType::ALL {
        let fresh = Tensor::empty(&[2, 3], dtype, &cpu())?;
        assert_eq!((fresh.dtype(), fresh.empty_like()?.shape()[..].to_vec()), (dtype, vec![2, 3]));
    }
    let (a, b) = (Tensor::new([0.0f32, f32::NAN], &cpu())?, Tensor::new([-0.0f64], &cpu())?);
    assert!(!a.equal(&a)? && a.narrow(0, 0, 1)?.equal(&b)? && !a.equal(&b)?);
    assert!(a.narrow(0, 0, 0)?.equal(&b.narrow(0, 0, 0)?)?);
    Ok(())
}

#[test]
fn bytes_show_as_elements_of_every_size() -> Result<()> {
    let bytes: Vec<u8> = (0..48).collect();
    let x = Tensor::from_bytes(&bytes, DType::U16, &[2, 3, 4], &cpu())?;
    for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bool && dtype.size() <= 8) {
        let view = x.view_dtype(dtype)?;
        assert_eq!(view.shape()[..], [2, 3, 8 / dtype.size()], "{dtype}");
        assert_eq!(view.to_bytes()?, bytes, "{dtype}");
        assert_eq!(view.view_dtype(DType::U16)?.to_bytes()?, bytes, "{dtype}");
    }
    // Parts and other orders.
    let part = x.narrow(2, 2, 2)?.transpose(0, 1)?;
    let words = part.view_dtype(DType::U32)?;
    assert_eq!((words.shape()[..].to_vec(), words.to_bytes()?), (vec![3, 2, 1], part.to_bytes()?));
    assert_eq!(part.view_dtype(DType::U8)?.to_bytes()?, part.to_bytes()?);
    // A vector of bytes can begin at any address.
    for start in 0..4 {
        let bytes = Tensor::from_vec((0u8..40).collect(), &[40], &cpu())?.narrow(0, start * 8, 8)?;
        assert_eq!(bytes.view_dtype(DType::F64)?.to_bytes()?, bytes.to_bytes()?);
    }
    let table = [
        (text(x.view_dtype(DType::Bool)), "bool"),
        (text(x.narrow(2, 1, 2)?.view_dtype(DType::U32)), "2 divides"),
        (text(x.narrow(2, 0, 3)?.view_dtype(DType::U32)), "2 divides"),
        (text(x.transpose(1, 2)?.view_dtype(DType::U8)), "neighbours"),
        (text(x.view_dtype(DType::C128)), "8 divides"),
        (text(x.get(&[0, 0, 0])?.view_dtype(DType::U8)), "a last dimension"),
    ];
    for (error, wanted) in table {
        assert!(error.contains(wanted), "{error}; wanted {wanted}");
    }
    Ok(())
}

#[test]
fn draws_follow_the_weights_and_never_take_a_weight_of_zero() -> Result<()> {
    let weights = Tensor::new([[1.0f32, 0.0, 3.0, 4.0, 0.0], [0.0, 0.0, 0.1, 0.0, 0.0]], &cpu())?;
    let drawn = Generator::new(5).multinomial(&weights, 8000, true)?;
    assert_eq!((drawn.shape()[..].to_vec(), drawn.dtype()), (vec![2, 8000], DType::I64));
    let counts = drawn.select(0, 0)?.bincount(5)?.to_vec::<i64>()?;
    for (count, wanted) in counts.iter().zip([1000, 0, 3000, 4000, 0]) {
        assert!((count - wanted).abs() <= wanted.min(200), "{counts:?}");
    }
    assert_eq!(drawn.select(0, 1)?.bincount(5)?.to_vec::<i64>()?, [0, 0, 8000, 0, 0]);
    let again = Generator::new(5).multinomial(&weights, 8000, true)?;
    assert!(drawn.equal(&again)?);

    // Without replacement the first draw follows the weights, too.
    let many = weights.narrow(0, 0, 1)?.expand(&[4000, 5])?;
    let drawn = Generator::new(6).multinomial(&many, 3, false)?;
    let firsts = drawn.select(1, 0)?.bincount(5)?.to_vec::<i64>()?;
    for (count, wanted) in firsts.iter().zip([500, 0, 1500, 2000, 0]) {
        assert!((count - wanted).abs() <= wanted.min(150), "{firsts:?}");
    }
    for row in drawn.to_vec::<i64>()?.chunks_mut(3) {
        row.sort_unstable();
        assert_eq!(row, [0, 2, 3]);
    }
    let vector = weights.select(0, 0)?;
    assert_eq!(vector.multinomial(0, false)?.shape()[..], [0]);
    let table = [
        (text(vector.multinomial(4, false)), "a row of 3 weights above 0; wanted at least 4"),
        (text(vector.sub(0.5)?.multinomial(1, true)), "negative"),
        (text(vector.div(0.0)?.multinomial(1, true)), "not finite"),
        (text(vector.mul(0.0)?.multinomial(1, true)), "a row of 0 weights"),
        (text(vector.cast(DType::I32)?.multinomial(1, true)), "i32"),
        (text(weights.unsqueeze(0)?.multinomial(1, true)), "[1, 2, 5]"),
        (text(Tensor::full(&[2], 1e308, DType::F64, &cpu())?.multinomial(1, true)), "overflows"),
    ];
    for (error, wanted) in table {
        assert!(error.contains(wanted), "{error}; wanted {wanted}");
    }
    let like = weights.rand_like()?;
    assert_eq!((like.shape(), like.dtype()), (weights.shape(), DType::F32));
    assert!(!like.equal(&weights.randn_like()?)?);
    Ok(())
}
