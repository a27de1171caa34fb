//! An empty list of axes reduces nothing, as in NumPy; all axes have forms of their own.

use selvedge::tensor::{Axes, Device, Tensor};
use selvedge::types::DType;

use super::numbers;

pub fn an_empty_list_of_axes_reduces_nothing(device: &Device) {
    let x = Tensor::new([[1.0f32, -2.0], [4.0, 0.0], [0.5, -8.0]], device).unwrap();
    let same = numbers(&x);
    let size: Vec<f64> = same.iter().map(|x| x.abs()).collect();
    let truth: Vec<f64> = same.iter().map(|x| f64::from(u8::from(*x != 0.0))).collect();
    let zeros = vec![0.0; 6];
    /// The three forms of each reduction: by axes, with the axes left at size 1, of every axis.
    macro_rules! forms {
        ($x:ident, $axes:ident: $($name:literal, $by_axes:expr, $keepdim:expr, $all:expr, $wanted:expr;)*) => {
            [$((
                $name,
                (|$x, $axes| $by_axes) as Form,
                (|$x, $axes| $keepdim) as Form,
                (|$x, _| $all) as Form,
                $wanted,
            )),*]
        };
    }
    type Form = for<'a> fn(&Tensor, Axes<'a>) -> selvedge::Result<Tensor>;
    let rows: [(&str, Form, Form, Form, &[f64]); 16] = forms! { x, axes:
        "sum", x.sum(axes), x.sum_keepdim(axes), x.sum_all(), &same;
        "prod", x.prod(axes), x.prod_keepdim(axes), x.prod_all(), &same;
        "min", x.min(axes), x.min_keepdim(axes), x.min_all(), &same;
        "max", x.max(axes), x.max_keepdim(axes), x.max_all(), &same;
        "argmin", x.argmin(axes), x.argmin_keepdim(axes), x.argmin_all(), &zeros;
        "argmax", x.argmax(axes), x.argmax_keepdim(axes), x.argmax_all(), &zeros;
        "any", x.any(axes), x.any_keepdim(axes), x.any_all(), &truth;
        "all", x.all(axes), x.all_keepdim(axes), x.all_all(), &truth;
        "count_nonzero", x.count_nonzero(axes), x.count_nonzero_keepdim(axes), x.count_nonzero_all(), &truth;
        "mean", x.mean(axes), x.mean_keepdim(axes), x.mean_all(), &same;
        "var", x.var(axes, 0), x.var_keepdim(axes, 0), x.var_all(0), &zeros;
        "std", x.std(axes, 0), x.std_keepdim(axes, 0), x.std_all(0), &zeros;
        "norm 1", x.norm(1.0, axes), x.norm_keepdim(1.0, axes), x.norm_all(1.0), &size;
        "norm 2", x.norm(2.0, axes), x.norm_keepdim(2.0, axes), x.norm_all(2.0), &size;
        "norm inf", x.norm(f64::INFINITY, axes), x.norm_keepdim(f64::INFINITY, axes), x.norm_all(f64::INFINITY), &size;
        "logsumexp", x.logsumexp(axes), x.logsumexp_keepdim(axes), x.logsumexp_all(), &same;
    };
    let empty = Tensor::zeros(&[2, 0], DType::F32, device).unwrap();
    for (name, reduce, keepdim, all, wanted) in rows {
        for form in [reduce, keepdim] {
            let found = form(&x, Axes::Of(&[])).unwrap();
            assert_eq!((&found.shape()[..], numbers(&found).as_slice()), (&[3, 2][..], wanted), "{name}");
            let across = form(&x.t().unwrap(), Axes::Of(&[])).unwrap();
            assert_eq!(numbers(&across.t().unwrap()), wanted, "{name} of columns");
            let nothing = form(&empty, Axes::Of(&[])).unwrap();
            assert_eq!(nothing.shape()[..], [2, 0], "{name} of no elements");
        }
        // One axis is a list of one; all axes are `..`.
        for axis in [0, 1, -1] {
            let [one, list] = [Axes::One(axis), Axes::Of(&[axis])].map(|axes| reduce(&x, axes).unwrap());
            assert_eq!((one.shape(), numbers(&one)), (list.shape(), numbers(&list)), "{name} of axis {axis}");
            let kept = keepdim(&x, Axes::One(axis)).unwrap();
            let mut sizes = [3, 2];
            sizes[axis.rem_euclid(2) as usize] = 1;
            assert_eq!((&kept.shape()[..], numbers(&kept)), (&sizes[..], numbers(&one)), "{name} keepdim");
        }
        let (whole, general) = (all(&x, Axes::All).unwrap(), reduce(&x, Axes::All).unwrap());
        assert_eq!((whole.rank(), numbers(&whole)), (0, numbers(&general)), "{name}_all");
        assert!(reduce(&x, Axes::One(2)).is_err(), "{name} of an axis out of range");
    }
    let none: Vec<isize> = Vec::new();
    assert_eq!(x.sum(&none).unwrap().shape()[..], [3, 2]);
}
