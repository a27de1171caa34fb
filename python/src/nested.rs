//! Tensors of nested lists of numbers, in one pass over the list.
//!
//! The elements are collected in a vector of the narrowest kind so far (bool, integer, real, complex), which becomes one of a
//! wider kind when the first such element comes. A bool beside numbers is refused, as are rows of several lengths; the error
//! names the place.

use num_complex::Complex;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyTuple};
use selvedge::types::{Bool, MAX_RANK};
use selvedge::{DType, Device, Error, Tensor};

use crate::error::{Result, invalid, type_name};

const ARGUMENT: &str = "data";

/// The elements of one kind.
enum Elements {
    /// No element and no dtype say which kind.
    Unknown,
    Bool(Vec<Bool>),
    Integer(Vec<i64>),
    /// Only if the caller asks for u64.
    Unsigned(Vec<u64>),
    Real(Vec<f64>),
    Complex(Vec<Complex<f64>>),
}

struct Collector {
    elements: Elements,
    /// The sizes of the dimensions that the first rows have.
    sizes: Vec<usize>,
    /// The position in each dimension, for errors.
    place: Vec<usize>,
}

/// Returns whether an object is a list or a tuple.
pub fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()
}

/// Creates a tensor of nested lists or tuples of numbers, or of one number. Without a dtype it is that of the widest
/// element: bool, i64, f64 or c128; f64 without elements.
pub fn tensor(data: &Bound<'_, PyAny>, dtype: Option<DType>, device: &Device) -> Result<Tensor> {
    let elements = match dtype {
        Some(DType::U64) => Elements::Unsigned(Vec::new()),
        Some(dtype) if dtype.is_complex() => Elements::Complex(Vec::new()),
        Some(dtype) if dtype.is_float() => Elements::Real(Vec::new()),
        _ => Elements::Unknown,
    };
    let mut collector = Collector { elements, sizes: Vec::new(), place: Vec::new() };
    let mut first = data.clone();
    while is_sequence(&first) {
        if collector.sizes.len() == MAX_RANK {
            return Err(collector.error("lists deeper than that".to_owned(), "at most 16 dimensions").into());
        }
        collector.sizes.push(first.len()?);
        match first.get_item(0) {
            Ok(item) => first = item,
            Err(_) => break,
        }
    }
    let count = collector.sizes.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
    match (&mut collector.elements, count) {
        (Elements::Real(elements), Some(count)) => reserve(elements, count)?,
        (Elements::Complex(elements), Some(count)) => reserve(elements, count)?,
        _ => {}
    }
    collector.collect(data, 0)?;
    let Collector { elements, sizes, .. } = collector;
    data.py().detach(|| {
        let made = match elements {
            Elements::Unknown => Tensor::zeros(&sizes, dtype.unwrap_or(DType::F64), device),
            Elements::Bool(elements) => Tensor::from_vec(elements, &sizes, device),
            Elements::Integer(elements) => return integers(&elements, &sizes, dtype, device),
            Elements::Unsigned(elements) => Tensor::from_vec(elements, &sizes, device),
            Elements::Real(elements) => Tensor::from_vec(elements, &sizes, device),
            Elements::Complex(elements) => Tensor::from_vec(elements, &sizes, device),
        }?;
        Ok(dtype.map_or(Ok(made.clone()), |dtype| made.cast(dtype))?)
    })
}

fn reserve<T>(elements: &mut Vec<T>, count: usize) -> Result<()> {
    let refused = |_| invalid(ARGUMENT, format!("{count} elements"), "elements that memory holds");
    Ok(elements.try_reserve_exact(count).map_err(refused)?)
}

/// Creates a tensor of integers, which the dtype must hold.
fn integers(elements: &[i64], sizes: &[usize], dtype: Option<DType>, device: &Device) -> Result<Tensor> {
    let dtype = dtype.unwrap_or(DType::I64);
    let is_integer = dtype.is_integer();
    let refused =
        elements.iter().find(|element| is_integer && !selvedge::fuse::Number::from(**element).fits(dtype));
    match refused {
        Some(element) => {
            Err(invalid(ARGUMENT, format!("the integer {element}"), format!("integers that {dtype} holds"))
                .into())
        }
        None => Ok(Tensor::from_slice(elements, sizes, device)?.cast(dtype)?),
    }
}

impl Collector {
    #[cold]
    fn error(&self, found: String, wanted: impl Into<String>) -> Error {
        let place: String = self.place.iter().map(|position| format!("[{position}]")).collect();
        let place = if place.is_empty() { String::new() } else { format!(" at {ARGUMENT}{place}") };
        invalid(ARGUMENT, format!("{found}{place}"), wanted)
    }

    /// Adds the elements of a row of dimension `depth`, or one element.
    fn collect(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        let Some(&size) = self.sizes.get(depth) else { return self.element(object) };
        let wanted = || format!("a row of {size}");
        if let Ok(list) = object.cast::<PyList>() {
            return self.row(list.len(), size, list.iter(), depth);
        }
        match object.cast::<PyTuple>() {
            Ok(tuple) => self.row(tuple.len(), size, tuple.iter(), depth),
            Err(_) => Err(self.error(type_name(object), wanted()).into()),
        }
    }

    fn row<'py>(
        &mut self,
        length: usize,
        size: usize,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        depth: usize,
    ) -> Result<()> {
        if length != size {
            return Err(self.error(format!("a row of {length}"), format!("rows of {size}")).into());
        }
        let mut count = 0;
        self.place.push(0);
        for item in items {
            if let Some(place) = self.place.last_mut() {
                *place = count;
            }
            self.collect(&item, depth + 1)?;
            count += 1;
        }
        self.place.pop();
        // Code that an element runs may change its list.
        if count != size {
            return Err(self.error(format!("a row of {count}"), format!("rows of {size}")).into());
        }
        Ok(())
    }

    fn element(&mut self, object: &Bound<'_, PyAny>) -> Result<()> {
        if self.number(object)? {
            return Ok(());
        }
        if is_sequence(object) {
            let wanted = format!("a number, as the first row has {} dimensions", self.sizes.len());
            return Err(self.error(type_name(object), wanted).into());
        }
        // NumPy's scalars and arrays without dimensions. An item is a number at once: other items could go on for ever.
        if let Ok(item) = object.call_method0("item")
            && self.number(&item)?
        {
            return Ok(());
        }
        Err(self.error(type_name(object), "a bool, int, float or complex number").into())
    }

    /// Adds one of Python's numbers. Returns whether the object is one.
    fn number(&mut self, object: &Bound<'_, PyAny>) -> Result<bool> {
        // The exact types first, which are a comparison of pointers.
        if object.is_exact_instance_of::<PyComplex>() {
            self.complex(object.extract()?)?;
        } else if object.is_exact_instance_of::<PyFloat>() || object.is_instance_of::<PyFloat>() {
            self.real(object.extract()?)?;
        } else if object.is_instance_of::<PyComplex>() {
            self.complex(object.extract()?)?;
        } else if object.is_instance_of::<PyBool>() {
            self.truth(object.extract()?)?;
        } else if object.is_instance_of::<PyInt>() {
            self.integer(object)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    #[cold]
    fn mixed(&self) -> Result<()> {
        Err(self.error("bools beside numbers".to_owned(), "bools alone, or numbers alone").into())
    }

    fn truth(&mut self, value: bool) -> Result<()> {
        match &mut self.elements {
            Elements::Bool(elements) => elements.push(value.into()),
            Elements::Unknown => self.elements = Elements::Bool(vec![value.into()]),
            _ => return self.mixed(),
        }
        Ok(())
    }

    fn integer(&mut self, object: &Bound<'_, PyAny>) -> Result<()> {
        match &mut self.elements {
            Elements::Real(_) => return self.real(object.extract()?),
            Elements::Complex(_) => {
                return self.complex(Complex::new(object.extract()?, 0.0));
            }
            Elements::Bool(_) => return self.mixed(),
            Elements::Unsigned(elements) => match object.extract() {
                Ok(value) => elements.push(value),
                Err(_) => {
                    return Err(self.error(format!("the number {object}"), "integers that u64 holds").into());
                }
            },
            Elements::Integer(_) | Elements::Unknown => {
                let Ok(value) = object.extract::<i64>() else {
                    let wanted = "integers that i64 holds, or dtype=\"u64\" or \"f64\"";
                    return Err(self.error(format!("the integer {object}"), wanted).into());
                };
                match &mut self.elements {
                    Elements::Integer(elements) => elements.push(value),
                    elements => *elements = Elements::Integer(vec![value]),
                }
            }
        }
        Ok(())
    }

    fn real(&mut self, value: f64) -> Result<()> {
        match &mut self.elements {
            Elements::Real(elements) => elements.push(value),
            Elements::Complex(elements) => elements.push(value.into()),
            Elements::Unknown => self.elements = Elements::Real(vec![value]),
            Elements::Integer(elements) => {
                let mut wider: Vec<f64> = elements.iter().map(|element| *element as f64).collect();
                wider.push(value);
                self.elements = Elements::Real(wider);
            }
            Elements::Unsigned(_) => {
                return Err(self.error(format!("the number {value}"), "integers").into());
            }
            Elements::Bool(_) => return self.mixed(),
        }
        Ok(())
    }

    fn complex(&mut self, value: Complex<f64>) -> Result<()> {
        let mut wider: Vec<Complex<f64>> = match &mut self.elements {
            Elements::Complex(elements) => {
                elements.push(value);
                return Ok(());
            }
            Elements::Unknown => Vec::new(),
            Elements::Integer(elements) => {
                elements.iter().map(|element| Complex::new(*element as f64, 0.0)).collect()
            }
            Elements::Real(elements) => elements.iter().map(|element| Complex::new(*element, 0.0)).collect(),
            Elements::Unsigned(_) => {
                return Err(self.error(format!("the number {value}"), "integers").into());
            }
            Elements::Bool(_) => return self.mixed(),
        };
        wider.push(value);
        self.elements = Elements::Complex(wider);
        Ok(())
    }
}
