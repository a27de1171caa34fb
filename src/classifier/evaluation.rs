//! [`Evaluation`]: classes beside labels.

use crate::error::{Error, Result};

/// The bins of a calibration curve.
const BINS: usize = 10;

/// The rows whose confidence is in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CalibrationBin {
    /// The rows.
    pub count: u64,
    /// The mean confidence; 0 without rows.
    pub confidence: f64,
    /// The part of right classes; 0 without rows.
    pub accuracy: f64,
}

/// A confusion matrix and a calibration curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    confusion: Vec<Vec<u64>>,
    calibration: Vec<CalibrationBin>,
}

impl Evaluation {
    /// Counts the classes that were found beside the labels.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for different lengths, for a class or label outside the classes, and for a confidence
    /// outside 0 to 1, with the row.
    pub fn new(found: &[i64], confidences: &[f64], labels: &[i64], classes: usize) -> Result<Evaluation> {
        const OPERATION: &str = "Evaluation";
        if found.len() != labels.len() || found.len() != confidences.len() {
            let (a, b, c) = (found.len(), confidences.len(), labels.len());
            let found = format!("{a} classes, {b} confidences and {c} labels");
            return Err(Error::invalid(OPERATION, found, "equal numbers"));
        }
        let mut confusion = vec![vec![0u64; classes]; classes];
        let mut sums = [(0u64, 0.0, 0u64); BINS];
        for (row, ((&class, &confidence), &label)) in found.iter().zip(confidences).zip(labels).enumerate() {
            let at = |index: i64| usize::try_from(index).ok();
            let cell = at(label).and_then(|label| confusion.get_mut(label));
            let Some(cell) = cell.zip(at(class)).and_then(|(line, class)| line.get_mut(class)) else {
                let found = format!("class {class} and label {label} in row {row}");
                return Err(Error::invalid(OPERATION, found, format!("numbers below {classes}")));
            };
            if !(0.0..=1.0 + 1e-6).contains(&confidence) {
                let found = format!("a confidence of {confidence} in row {row}");
                return Err(Error::invalid(OPERATION, found, "one from 0 to 1"));
            }
            *cell += 1;
            let (count, sum, right) = &mut sums[((confidence * BINS as f64) as usize).min(BINS - 1)];
            *count += 1;
            *sum += confidence;
            *right += u64::from(class == label);
        }
        let mean = |sum: f64, count: u64| if count == 0 { 0.0 } else { sum / count as f64 };
        let bin = |&(count, sum, right): &(u64, f64, u64)| CalibrationBin {
            count,
            confidence: mean(sum, count),
            accuracy: mean(right as f64, count),
        };
        Ok(Evaluation { confusion, calibration: sums.iter().map(bin).collect() })
    }

    /// Returns the counts: a row for each label, a column for each class that was found.
    pub fn confusion(&self) -> &[Vec<u64>] {
        &self.confusion
    }

    /// Returns ten bins of confidence, of width 0.1.
    pub fn calibration(&self) -> &[CalibrationBin] {
        &self.calibration
    }

    /// Returns the rows.
    pub fn count(&self) -> u64 {
        self.confusion.iter().flatten().sum()
    }

    /// Returns the part of right classes; 0 without rows.
    pub fn accuracy(&self) -> f64 {
        let right: u64 = self.confusion.iter().enumerate().filter_map(|(at, line)| line.get(at)).sum();
        if self.count() == 0 { 0.0 } else { right as f64 / self.count() as f64 }
    }

    /// Returns the expected calibration error: the mean of |accuracy - confidence| over the bins, weighted by their rows.
    pub fn calibration_error(&self) -> f64 {
        let weighted = |bin: &CalibrationBin| bin.count as f64 * (bin.accuracy - bin.confidence).abs();
        let sum: f64 = self.calibration.iter().map(weighted).sum();
        if self.count() == 0 { 0.0 } else { sum / self.count() as f64 }
    }
}
