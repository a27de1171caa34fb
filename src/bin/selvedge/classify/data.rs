//! Rows and labels from `.npy` and CSV files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use selvedge::{DType, Device, Error, Tensor};

use crate::failure::Failure;
use crate::files;

/// Rows, on the CPU.
#[derive(Debug)]
pub struct Rows {
    /// The features, of f32 and of shape (rows, features).
    pub features: Tensor,
    /// The class of each row, if the file has it.
    pub labels: Option<LabelSource>,
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
pub fn read_labels(path: &Path) -> Result<LabelSource, Failure> {
    let labels = Tensor::read_npy(path, &Device::cpu())?;
    if !labels.dtype().is_integer() || labels.rank() != 1 {
        let found = format!("an array of {} of shape {}", labels.dtype(), labels.shape());
        return Err(refusal(path, found, "one dimension of integers"));
    }
    // A u64 beyond i64 becomes negative, which no class is.
    let labels = Labels::Numbers(labels.cast(DType::I64)?.to_vec::<i64>()?);
    Ok(LabelSource { labels, path: path.to_owned(), lines: Vec::new() })
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

/// The labels of rows, before their classes are known.
#[derive(Debug)]
pub enum Labels {
    Numbers(Vec<i64>),
    Names(Vec<String>),
}

/// The labels of rows, and where they were read.
#[derive(Debug)]
pub struct LabelSource {
    pub labels: Labels,
    path: PathBuf,
    /// The line of each label of a CSV file.
    lines: Vec<usize>,
}

impl LabelSource {
    /// Returns the location of a row's label.
    fn label_location(&self, row: usize) -> String {
        match self.lines.get(row) {
            Some(line) => format!("in line {line}"),
            None => format!("in row {row}"),
        }
    }

    /// Returns the classes as numbers. `classes` is their number, and `names` has their names, if they have any.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with the line or the row of a label that is no class, and for a number of labels other than `rows`.
    pub fn resolve(&self, rows: usize, classes: usize, names: &[String]) -> Result<Tensor, Failure> {
        let wanted = || match names {
            [] => format!("a class from 0 to {}", classes.saturating_sub(1)),
            names => format!("one of the classes {}", names.join(", ")),
        };
        let number_of = |name: &String| names.iter().position(|known| known == name).map(|at| at as i64);
        let resolved: Vec<Option<i64>> = match &self.labels {
            Labels::Numbers(numbers) => {
                let class = |number: i64| Some(number).filter(|number| (0..classes as i64).contains(number));
                numbers.iter().map(|&number| class(number)).collect()
            }
            Labels::Names(labels) => labels.iter().map(number_of).collect(),
        };
        if let Some(row) = resolved.iter().position(Option::is_none) {
            let label = match &self.labels {
                Labels::Numbers(numbers) => numbers[row].to_string(),
                Labels::Names(labels) => format!("'{}'", labels[row]),
            };
            return Err(refusal(&self.path, format!("label {label} {}", self.label_location(row)), wanted()));
        }
        if resolved.len() != rows {
            let found = format!("{} labels", resolved.len());
            return Err(refusal(&self.path, found, format!("{rows}, one a row")));
        }
        let resolved: Vec<i64> = resolved.into_iter().flatten().collect();
        Ok(Tensor::from_slice(&resolved, &[rows], &Device::cpu())?)
    }

    /// Returns the distinct names in their order, none for numbers.
    pub fn names(&self) -> Vec<String> {
        match &self.labels {
            Labels::Numbers(_) => Vec::new(),
            Labels::Names(labels) => BTreeSet::from_iter(labels).into_iter().cloned().collect(),
        }
    }
}

/// Returns the cells of a line. A cell in quotes may contain commas, and a doubled quote as a quote.
fn cells(line: &str) -> Result<Vec<String>, String> {
    let (mut cells, mut rest) = (Vec::new(), line);
    loop {
        let trimmed = rest.trim_start();
        let Some(mut quoted) = trimmed.strip_prefix('"') else {
            match rest.split_once(',') {
                Some((cell, after)) => {
                    cells.push(cell.trim().to_owned());
                    rest = after;
                    continue;
                }
                None => {
                    cells.push(rest.trim().to_owned());
                    return Ok(cells);
                }
            }
        };
        let mut cell = String::new();
        loop {
            let (part, after) = quoted.split_once('"').ok_or("a quote without its end")?;
            cell += part;
            match after.strip_prefix('"') {
                Some(after) => {
                    cell.push('"');
                    quoted = after;
                }
                None => {
                    quoted = after.trim_start();
                    break;
                }
            }
        }
        cells.push(cell.trim().to_owned());
        match quoted.strip_prefix(',') {
            Some(after) => rest = after,
            None if quoted.is_empty() => return Ok(cells),
            None => return Err(format!("'{quoted}' after a quoted cell")),
        }
    }
}

fn read_csv(path: &Path, columns: Columns) -> Result<Rows, Failure> {
    let text = files::read_text(path, "a CSV file")?;
    // Spreadsheets begin a file with a byte-order mark.
    let text = text.trim_start_matches('\u{feff}');
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let (mut features, mut labels, mut label_lines) = (Vec::new(), Vec::new(), Vec::new());
    let (mut first, mut rows, mut is_first_line) = (None, 0, true);
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let cells = cells(line).map_err(|found| {
            refusal(path, format!("{found} in line {number}"), "cells between commas, in quotes or without")
        })?;
        // A first line without any number has the names.
        if std::mem::take(&mut is_first_line) && cells.iter().all(|cell| cell.parse::<f64>().is_err()) {
            continue;
        }
        let count = cells.len();
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
        for (column, cell) in cells.into_iter().enumerate() {
            let column = column + 1;
            if has_label && column == count {
                labels.push(cell);
                label_lines.push(number);
            } else {
                let value = cell.parse::<f32>().ok().filter(|value| value.is_finite());
                features.push(value.ok_or_else(|| {
                    refusal(path, format!("'{cell}' in line {number}, column {column}"), "a finite number")
                })?);
            }
        }
        rows += 1;
    }
    let Some(width) = features.len().checked_div(rows) else {
        return Err(refusal(path, "no rows", "at least one line of numbers"));
    };
    let labels = match labels.is_empty() {
        true => None,
        false => Some(csv_labels(path, labels, label_lines, width + 1)?),
    };
    Ok(Rows { features: Tensor::from_slice(&features, &[rows, width], &Device::cpu())?, labels })
}

/// Returns the labels of a column: whole numbers, or names of which none is a number.
fn csv_labels(
    path: &Path,
    cells: Vec<String>,
    lines: Vec<usize>,
    column: usize,
) -> Result<LabelSource, Failure> {
    let bad = |row: usize, wanted: String| {
        refusal(path, format!("'{}' in line {}, column {column}", cells[row], lines[row]), wanted)
    };
    let numbers: Vec<Option<i64>> = cells.iter().map(|cell| cell.parse().ok()).collect();
    let number = cells.iter().position(|cell| cell.parse::<f64>().is_ok());
    let labels = match (numbers.iter().position(Option::is_none), number) {
        (None, _) => Labels::Numbers(numbers.into_iter().flatten().collect()),
        (Some(row), Some(number)) => {
            let wanted = format!("a class, as a whole number, for line {} has a number", lines[number]);
            return Err(bad(row, wanted));
        }
        (Some(_), None) => match cells.iter().position(String::is_empty) {
            Some(row) => return Err(bad(row, "the name of a class".to_owned())),
            None => Labels::Names(cells),
        },
    };
    Ok(LabelSource { labels, path: path.to_owned(), lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_cells_may_have_commas_and_quotes() {
        for (line, wanted) in [
            ("1, 2,a", &["1", "2", "a"][..]),
            (r#""1","2", "a, b" ,c"#, &["1", "2", "a, b", "c"]),
            (r#""a ""b""",2"#, &[r#"a "b""#, "2"]),
            ("1,,", &["1", "", ""]),
            (r#""""#, &[""]),
        ] {
            assert_eq!(cells(line).unwrap(), wanted, "{line}");
        }
        assert!(cells(r#"1,"a"#).unwrap_err().contains("without its end"));
        assert!(cells(r#""a"b,1"#).unwrap_err().contains("'b,1' after"));
    }
}
