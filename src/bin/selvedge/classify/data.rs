//! Rows and labels from `.npy` and CSV files.

use std::path::Path;

use selvedge::{DType, Device, Error, Tensor};

use crate::failure::Failure;
use crate::files;

/// Rows, on the CPU.
#[derive(Debug)]
pub struct Rows {
    /// The features, of f32 and of shape (rows, features).
    pub features: Tensor,
    /// The class of each row, if the file has it.
    pub labels: Option<Tensor>,
}

/// The columns of a CSV file.
#[derive(Debug, Clone, Copy)]
pub enum Columns {
    /// Features alone.
    Features,
    /// Features and, last, the class.
    Labelled,
    /// So many features, and perhaps the class.
    Known(usize),
}

fn refusal(path: &Path, found: impl ToString, wanted: impl Into<String>) -> Failure {
    let path = path.display().to_string();
    Error::File { path, found: found.to_string(), wanted: wanted.into() }.into()
}

/// Reads the rows of a file. The name's ending chooses the format.
pub fn read(path: &Path, columns: Columns) -> Result<Rows, Failure> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("npy") => Ok(Rows { features: read_features(path)?, labels: None }),
        Some("csv") => read_csv(path, columns),
        _ => Err(refusal(path, "a name with another ending", ".npy or .csv")),
    }
}

/// Reads labels, of any integer type.
pub fn read_labels(path: &Path) -> Result<Tensor, Failure> {
    let labels = Tensor::read_npy(path, &Device::cpu())?;
    if !labels.dtype().is_integer() || labels.rank() != 1 {
        let found = format!("an array of {} of shape {}", labels.dtype(), labels.shape());
        return Err(refusal(path, found, "one dimension of integers"));
    }
    Ok(labels)
}

/// Reads a matrix of finite numbers as f32.
pub fn read_features(path: &Path) -> Result<Tensor, Failure> {
    let features = Tensor::read_npy(path, &Device::cpu())?;
    let dtype = features.dtype();
    if !(dtype.is_float() || dtype.is_integer()) || features.rank() != 2 {
        let found = format!("an array of {dtype} of shape {}", features.shape());
        return Err(refusal(path, found, "a matrix of real numbers"));
    }
    if features.count() == 0 {
        return Err(refusal(path, format!("an array of shape {}", features.shape()), "at least one row"));
    }
    let features = features.cast(DType::F32)?.contiguous()?;
    let (values, width) = (features.as_slice::<f32>()?, features.shape()[1]);
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        let found = format!("{} in row {}, feature {}", values[at], at / width, at % width);
        return Err(refusal(path, found, "finite features"));
    }
    Ok(features)
}

fn read_csv(path: &Path, columns: Columns) -> Result<Rows, Failure> {
    let text = files::read_text(path, "a CSV file")?;
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let mut lines = lines.filter(|(_, line)| !line.trim().is_empty()).peekable();
    // A first line without any number has the names.
    if lines.peek().is_some_and(|(_, line)| line.split(',').all(|cell| cell.trim().parse::<f64>().is_err())) {
        lines.next();
    }
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    let (mut first, mut rows) = (None, 0);
    for (number, line) in lines {
        let count = line.split(',').count();
        let &mut (wanted, first_line) = first.get_or_insert((count, number));
        if count != wanted {
            let found = format!("{count} cells in line {number}");
            return Err(refusal(path, found, format!("{wanted}, as in line {first_line}")));
        }
        let has_label = match columns {
            Columns::Features => false,
            Columns::Labelled => true,
            Columns::Known(features) if count == features => false,
            Columns::Known(features) if count == features + 1 => true,
            Columns::Known(features) => {
                let wanted = format!("{features} features, and perhaps the class");
                return Err(refusal(path, format!("{count} cells in line {number}"), wanted));
            }
        };
        if has_label && count < 2 {
            return Err(refusal(path, format!("1 cell in line {number}"), "features and, last, the class"));
        }
        for (column, cell) in line.split(',').enumerate() {
            let cell = cell.trim();
            let bad = |wanted: &str| {
                refusal(path, format!("'{cell}' in line {number}, column {}", column + 1), wanted)
            };
            if has_label && column + 1 == count {
                labels.push(cell.parse::<i64>().map_err(|_| bad("a class, as a whole number"))?);
            } else {
                let value = cell.parse::<f32>().ok().filter(|value| value.is_finite());
                features.push(value.ok_or_else(|| bad("a finite number"))?);
            }
        }
        rows += 1;
    }
    let Some(width) = features.len().checked_div(rows) else {
        return Err(refusal(path, "no rows", "at least one line of numbers"));
    };
    let labels = (!labels.is_empty()).then(|| Tensor::from_slice(&labels, &[rows], &Device::cpu()));
    Ok(Rows {
        features: Tensor::from_slice(&features, &[rows, width], &Device::cpu())?,
        labels: labels.transpose()?,
    })
}
