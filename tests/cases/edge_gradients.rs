//! Gradients of products, logarithms of sums and constant operands, where a product or a sum overflows, underflows or is infinite.

use selvedge::nn::{FusedFunction, Variable};
use selvedge::{Complex, DType, Device, Result, Tensor};

type Function = fn(&Variable) -> Result<Variable>;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Compares the gradients of Σ f(x) with the wanted ones, to within `error` of each.
fn check(
    name: &str,
    x: &[f64],
    wanted: &[f64],
    dtype: DType,
    error: f64,
    device: &Device,
    function: Function,
) {
    let input = Tensor::from_slice(x, &[x.len()], device).and_then(|x| x.cast(dtype)).unwrap();
    let leaf = Variable::with_grad(input).unwrap();
    function(&leaf).and_then(|y| y.sum_all()).and_then(|sum| sum.backward()).unwrap();
    let found = leaf.grad().unwrap().cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let is_right = |found: f64, wanted: f64| {
        found == wanted
            || (found.is_nan() && wanted.is_nan())
            || (found - wanted).abs() <= error * wanted.abs()
    };
    let all = found.len() == wanted.len() && found.iter().zip(wanted).all(|(f, w)| is_right(*f, *w));
    assert!(all, "{name} of {x:?}, {dtype}: {found:?}, wanted {wanted:?}");
}

fn fused_product(x: &Variable) -> Result<Variable> {
    FusedFunction::new(|[x]| x.prod_group()).run([x])
}

pub fn gradients_of_products_are_products_of_the_others(device: &Device) {
    let single: &[(&[f64], &[f64])] = &[
        (&[1e-30, 1e-30], &[1e-30, 1e-30]),
        (&[1e30, 1e30], &[1e30, 1e30]),
        (&[1e30, 1e30, 1e-30, 1e-30], &[1e-30, 1e-30, 1e30, 1e30]),
        (&[1e-40, 2.0], &[2.0, 1e-40]),
        (&[INF, 2.0], &[2.0, INF]),
        (&[-INF, 2.0, -3.0], &[-6.0, INF, -INF]),
        (&[INF, INF, 2.0], &[INF, INF, INF]),
        (&[0.0, 2.0, 3.0], &[6.0, 0.0, 0.0]),
        (&[0.0, 0.0, 3.0], &[0.0, 0.0, 0.0]),
        (&[0.0, INF], &[INF, 0.0]),
        (&[0.0, INF, 2.0], &[INF, 0.0, NAN]),
        (&[NAN, 2.0], &[2.0, NAN]),
        (&[-0.5, 4.0, 3.0], &[12.0, -1.5, -2.0]),
        (&[7.0], &[1.0]),
    ];
    let functions: [(&str, Function); 2] = [("prod", |x| x.prod_all()), ("a fused product", fused_product)];
    for (name, function) in functions {
        for (x, wanted) in single {
            check(name, x, wanted, DType::F32, 1e-5, device, function);
        }
        check(name, &[1e-200, 1e-200], &[1e-200, 1e-200], DType::F64, 1e-14, device, function);
        check(name, &[5e-324, 1e300], &[1e300, 5e-324], DType::F64, 1e-14, device, function);
        check(
            name,
            &[0.001953125, 0.0009765625, 4096.0],
            &[4.0, 8.0, 1.9e-6],
            DType::F16,
            0.02,
            device,
            function,
        );
        // The mantissas alone would overflow in f32.
        let long: Vec<f64> = (0..900).map(|at| if at % 3 == 0 { 0.5 } else { 1.375 }).collect();
        let product: f64 = long.iter().product();
        let wanted: Vec<f64> = long.iter().map(|x| product / x).collect();
        check(name, &long, &wanted, DType::F64, 1e-11, device, function);
    }
    let z = Tensor::new([Complex::new(0.0f64, 1e-200), Complex::new(2e-200, 0.0)], device).unwrap();
    let leaf = Variable::with_grad(z).unwrap();
    leaf.prod_all().and_then(|y| y.real()).and_then(|y| y.backward()).unwrap();
    let found = leaf.grad().unwrap().to_vec::<Complex<f64>>().unwrap();
    let wanted = [Complex::new(2e-200, 0.0), Complex::new(0.0, -1e-200)];
    assert!(found.iter().zip(wanted).all(|(f, w)| (f - w).norm() < 1e-213), "{found:?}");
}

pub fn gradients_of_cumulative_products_are_products_of_the_others(device: &Device) {
    let rows: &[(&[f64], &[f64])] = &[
        (&[1e-30, 1e-30, 1e30], &[2.0, 1.0, 0.0]),
        (&[INF, 2.0], &[3.0, INF]),
        (&[2.0, 3.0, 4.0, 5.0], &[1.0 + 3.0 + 12.0 + 60.0, 2.0 + 8.0 + 40.0, 6.0 + 30.0, 24.0]),
        (&[2.0, 0.0, 4.0, 5.0], &[1.0, 2.0 + 8.0 + 40.0, 0.0, 0.0]),
        (&[0.0, 0.0, 4.0], &[1.0, 0.0, 0.0]),
        (&[7.0], &[1.0]),
    ];
    for (x, wanted) in rows {
        check("cumprod", x, wanted, DType::F32, 1e-5, device, |x| x.cumprod(0));
    }
    check("cumprod", &[1e-200, 1e-200, 1e200], &[2.0, 1.0, 0.0], DType::F64, 1e-14, device, |x| x.cumprod(0));
    // Products that no gradient reaches.
    check("cumprod", &[1e30, 1e30, 1e30], &[1.0, 0.0, 0.0], DType::F32, 0.0, device, |x| {
        x.cumprod(0)?.narrow(0, 0, 1)
    });
    let ones = [1.0; 37];
    let counts: Vec<f64> = (0..37).map(|at| f64::from(37 - at)).collect();
    check("cumprod", &ones, &counts, DType::F16, 0.0, device, |x| x.cumprod(-1));
}

pub fn elements_that_equal_an_infinite_logsumexp_share_its_gradient(device: &Device) {
    let rows: &[(&[f64], &[f64])] = &[
        (&[-INF, -INF], &[0.5, 0.5]),
        (&[INF, 0.0], &[1.0, 0.0]),
        (&[INF, INF, 3.0, -INF], &[0.5, 0.5, 0.0, 0.0]),
        (&[-INF, 3.0], &[0.0, 1.0]),
        (&[1.0, 1.0], &[0.5, 0.5]),
        (&[1e30, -1e30], &[1.0, 0.0]),
        (&[NAN, 1.0], &[NAN, NAN]),
    ];
    for (x, wanted) in rows {
        for (dtype, error) in [(DType::F64, 1e-14), (DType::F32, 1e-6), (DType::BF16, 1e-2)] {
            check("logsumexp", x, wanted, dtype, error, device, |x| x.logsumexp(0));
        }
    }
    // More elements than f16 counts.
    let share = 1.0 / 70000.0;
    check("logsumexp", &[-INF; 70000], &[share; 70000], DType::F16, 0.01, device, |x| x.logsumexp(0));
}

pub fn operands_of_which_only_the_sign_counts_have_gradients_of_zeros(device: &Device) {
    let x = Tensor::new([1.0f32, -2.0, 0.0], device).unwrap();
    let sign = Variable::with_grad(Tensor::new([-1.0f32, 3.0, -0.0], device).unwrap()).unwrap();
    Variable::new(x).copysign(&sign).and_then(|y| y.sum_all()).and_then(|y| y.backward()).unwrap();
    assert_eq!(sign.grad().unwrap().to_vec::<f32>().unwrap(), [0.0; 3]);
    check("copysign of itself", &[1.0, -2.0, 0.0], &[1.0, 1.0, 0.0], DType::F32, 0.0, device, |x| {
        x.copysign(x)
    });
    check("sign", &[1.0, -2.0, 0.0], &[0.0; 3], DType::F32, 0.0, device, |x| x.sign());
}
