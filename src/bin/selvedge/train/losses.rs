//! The losses of a run in `losses.csv` of its folder, so that the picture of a resumed run has all of them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::report::Evaluation;
use super::run::Course;
use crate::failure::Failure;
use crate::files;

const FILE: &str = "losses.csv";
const HEAD: &str = "step,training,validation\n";

/// The file, and the step up to which it has the losses.
pub struct LossFile {
    path: PathBuf,
    written: Option<u64>,
}

impl LossFile {
    /// Starts the file of a run that has taken `steps`, and adds the losses of these steps to the course.
    pub fn open(folder: &Path, steps: u64, course: &mut Course) -> Result<LossFile, Failure> {
        let path = folder.join(FILE);
        if steps > 0 {
            // A run of an older version has no file, and a line that is cut has no use.
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            text.lines().skip(1).for_each(|line| add(line, steps, course));
        }
        let mut file = LossFile { path, written: None };
        files::write(&file.path, format!("{HEAD}{}", file.lines(course)))?;
        file.written = course.last();
        Ok(file)
    }

    /// Appends the losses since the last call.
    pub fn append(&mut self, course: &Course) -> Result<(), Failure> {
        let lines = self.lines(course);
        std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path)
            .and_then(|mut file| file.write_all(lines.as_bytes()))
            .map_err(|error| {
                Failure::failed(format!("{} cannot be written: {error}", self.path.display()))
            })?;
        self.written = course.last();
        Ok(())
    }

    /// Returns the lines of the steps that the file does not have.
    fn lines(&self, course: &Course) -> String {
        let is_new = |step: u64| self.written.is_none_or(|written| step > written);
        let mut text = String::new();
        let mut evaluations =
            course.evaluations.iter().filter(|evaluation| is_new(evaluation.step)).peekable();
        // Writing to a `String` cannot fail.
        while let Some(first) = evaluations.next_if(|evaluation| evaluation.step == 0) {
            let _ = writeln!(text, "0,,{}", first.validation);
        }
        for (step, loss) in course.losses.iter().filter(|(step, _)| is_new(*step)) {
            let _ = write!(text, "{step},{loss},");
            while let Some(evaluation) = evaluations.next_if(|evaluation| evaluation.step <= *step) {
                if evaluation.step == *step {
                    let _ = write!(text, "{}", evaluation.validation);
                }
            }
            text.push('\n');
        }
        text
    }
}

/// Adds a line of at most this step.
fn add(line: &str, steps: u64, course: &mut Course) {
    let cells: Vec<&str> = line.split(',').collect();
    let [step, training, validation] = cells[..] else { return };
    let Ok(step) = step.parse::<u64>() else { return };
    if step > steps {
        return;
    }
    if let Ok(loss) = training.parse() {
        course.losses.push((step, loss));
    }
    if let Ok(validation) = validation.parse() {
        course.evaluations.push(Evaluation::of_validation(step, validation));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_losses_come_back_up_to_a_step() {
        let folder = std::env::temp_dir().join(format!("selvedge-losses-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut course = Course::default();
        let mut file = LossFile::open(&folder, 0, &mut course).unwrap();
        course.evaluations.push(Evaluation::of_validation(0, 4.5));
        course.losses.extend([(1, 4.0), (2, 3.5)]);
        course.evaluations.push(Evaluation::of_validation(2, 3.25));
        file.append(&course).unwrap();
        course.losses.push((3, 3.0));
        file.append(&course).unwrap();
        let text = std::fs::read_to_string(folder.join(FILE)).unwrap();
        assert_eq!(text, "step,training,validation\n0,,4.5\n1,4,\n2,3.5,3.25\n3,3,\n");
        let mut resumed = Course::default();
        LossFile::open(&folder, 2, &mut resumed).unwrap();
        assert_eq!(resumed.losses, [(1, 4.0), (2, 3.5)]);
        let steps: Vec<_> = resumed.evaluations.iter().map(|e| (e.step, e.validation)).collect();
        assert_eq!(steps, [(0, 4.5), (2, 3.25)]);
        let text = std::fs::read_to_string(folder.join(FILE)).unwrap();
        assert_eq!(text, "step,training,validation\n0,,4.5\n1,4,\n2,3.5,3.25\n");
        let mut anew = Course::default();
        LossFile::open(&folder, 0, &mut anew).unwrap();
        assert!(anew.losses.is_empty());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
