//! Tests of the benchmarks' PyTorch side without PyTorch: the Python program runs on a stand-in (torch.py
//! here), and the Rust side talks to it as on a machine with a device.

#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code, reason = "the benchmarks use the rest of it")]
#[path = "../../benches/harness/mod.rs"]
mod harness;

use std::process::Command;
use std::time::Duration;

use harness::machine::Recorder;
use harness::python::PythonProcess;
use harness::pytorch::{Clock, Operand, PyTorch, Work};
use harness::pytorch_on_cpu::PyTorchOnCpu;
use harness::report::{Failure, Figure, Notes, Report, Rule, Unit, Verdict, page, plot, read_all};
use harness::turns::{Goal, Subject, Turns, geometric_mean, measure, speed};
use selvedge::fuse::Operation;
use selvedge::types::{DType, Layout, Slice};
use serde_json::json;

type Outcome = Result<(), Failure>;

/// Returns an interpreter that finds the stand-in, with a named fault if one is given.
fn interpreter(mishap: &str) -> Command {
    let mut python = Command::new("python3");
    let folder = common::repository().join("tests/pytorch");
    python.env("PYTHONPATH", folder).env("PYTHONDONTWRITEBYTECODE", "1").env("FAKE_TORCH_MISHAP", mishap);
    python
}

/// Returns the call that would run; the stand-in has checked the operands by then.
fn call(pytorch: &mut PyTorch, work: &Work) -> Result<Option<String>, String> {
    let call = pytorch.prepare(work)?;
    if call.is_some() {
        assert_eq!(pytorch.time(Clock::Device)?, 0.5e-3, "{}", work.operation);
        assert!(pytorch.time(Clock::Host(8))? > 0.0);
    }
    Ok(call)
}

fn array(dtype: DType, sizes: &[usize]) -> Result<Operand, Failure> {
    Ok(Operand::numbers(dtype, Layout::contiguous(sizes)?))
}

/// Returns a figure of `name` beside a reference, as the benchmarks have it before PyTorch's turn.
fn figure(name: &str) -> Result<Figure, Failure> {
    let subject = Subject {
        name,
        against: "copy",
        unit: Unit::Microseconds,
        bytes: None,
        rule: Rule::Speed,
        goal: None,
    };
    measure(Turns { warm_up: 0, rounds: 20 }, &subject, || Ok(450.0), || Ok(400.0))
}

/// Returns the report that `beside` produces for figures of these operations, with the crate's own time in
/// microseconds.
fn report(pytorch: &mut PyTorch, own: f64, operations: &[&str]) -> Result<Report, Failure> {
    let mut recorder = Recorder::on_host("test", "A test", "None.");
    for operation in operations {
        let mut figure = figure(operation)?;
        let (operands, output) =
            ([array(DType::F32, &[64])?], Operand::nothing(DType::F32, Layout::contiguous(&[64])?));
        let work = Work { operation, operands: &operands, output: Some(output), axes: &[] };
        pytorch.beside(&mut recorder, &mut figure, &work, Clock::Device, || Ok(own))?;
        recorder.add(figure);
    }
    let folder = tempfile::tempdir()?;
    recorder.finish(folder.path())?;
    read_all(folder.path())?.pop().ok_or_else(|| "no report".into())
}

#[test]
fn the_table_has_every_function_of_the_list_but_one() -> Outcome {
    let mut pytorch = PyTorch::by(interpreter(""));
    let mut lacking = Vec::new();
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128] {
        for operation in Operation::ALL {
            if operation.arity() != 1 || !operation.dtypes().contains(dtype) || operation.ulp() == 0 {
                continue;
            }
            let result = operation.signature(&[dtype])?.result;
            let output = Operand::nothing(result, Layout::contiguous(&[128])?);
            let operands = [array(dtype, &[128])?];
            let work =
                Work { operation: operation.name(), operands: &operands, output: Some(output), axes: &[] };
            if call(&mut pytorch, &work)?.is_none() && !lacking.contains(&operation.name()) {
                lacking.push(operation.name());
            }
        }
    }
    assert_eq!(lacking, ["cbrt"]);
    Ok(())
}

#[test]
fn operands_come_in_the_layouts_of_the_benchmarks() -> Outcome {
    let mut pytorch = PyTorch::by(interpreter(""));
    let square = Layout::contiguous(&[64, 64])?;
    let numbers = |layout| Operand::numbers(DType::F32, layout);
    let matrix = numbers(square);
    let into = Some(Operand::nothing(DType::F32, square));
    let every_other = Layout::contiguous(&[64, 128])?.slice(1, Slice::from(1..).step(2))?;
    let permuted = Layout::contiguous(&[4, 16, 2, 32])?.permute(&[0, 2, 1, 3])?;
    let plain = Layout::from_shape(*permuted.shape());
    for (operation, operands, output) in [
        ("add", vec![matrix, matrix], into),
        ("mul", vec![matrix, numbers(Layout::contiguous(&[64])?)], into),
        ("div", vec![matrix, numbers(Layout::contiguous(&[64, 1])?)], into),
        ("add", vec![matrix, numbers(every_other)], into),
        ("add", vec![matrix, numbers(square.transpose(0, 1)?)], into),
        ("add", vec![numbers(plain), numbers(permuted)], Some(Operand::nothing(DType::F32, plain))),
        ("copy", vec![numbers(square.transpose(0, 1)?)], into),
        ("copy", vec![matrix], Some(Operand::nothing(DType::BF16, square))),
        ("relu(a * b + c)", vec![matrix; 3], into),
        ("a + b", vec![matrix; 2], None),
        ("a * 0.25", vec![matrix], None),
    ] {
        let work = Work { operation, operands: &operands, output, axes: &[] };
        assert!(call(&mut pytorch, &work)?.is_some(), "{operation}");
    }
    let (whole, order) = (array(DType::F32, &[4096])?, Operand::permutation(64)?);
    for (operation, operands, axes) in [
        ("sum", vec![whole], &[][..]),
        ("sum", vec![matrix], &[1]),
        ("sum", vec![array(DType::BF16, &[64, 64])?], &[0]),
        ("max", vec![matrix], &[1]),
        ("argmax", vec![matrix], &[0]),
        ("norm", vec![whole], &[]),
        ("any", vec![whole], &[]),
        ("cumsum", vec![array(DType::F32, &[1, 4096])?], &[1]),
        ("index_select", vec![matrix, order], &[0]),
        ("index_copy", vec![matrix, order, matrix], &[0]),
        ("take", vec![whole, order], &[0]),
        ("put", vec![array(DType::F32, &[64])?, order, array(DType::F32, &[64])?], &[0]),
    ] {
        let work = Work { operation, operands: &operands, output: None, axes };
        assert!(call(&mut pytorch, &work)?.is_some(), "{operation}");
    }
    // The stand-in refuses an output of another shape, and timing of an operation that is not prepared.
    let wrong = Some(Operand::nothing(DType::F32, Layout::contiguous(&[64])?));
    let work = Work { operation: "add", operands: &[matrix, matrix], output: wrong, axes: &[] };
    assert!(pytorch.prepare(&work).is_err_and(|why| why.starts_with("AssertionError")));
    assert!(pytorch.time(Clock::Device).is_err_and(|why| why.contains("nothing is prepared")));
    Ok(())
}

#[test]
fn attention_runs_by_each_backend_forward_and_backward() -> Outcome {
    let mut pytorch = PyTorch::by(interpreter(""));
    let layout = Layout::contiguous(&[2, 64, 4, 32])?.transpose(1, 2)?;
    let operands = [Operand::normal(DType::BF16, layout); 4];
    for mask in ["full", "causal"] {
        for (operation, count, name) in [
            ("attention, cuDNN", 3, "cuDNN 9.19.0"),
            ("attention, flash", 3, "flash"),
            ("attention_backward, cuDNN", 4, "cuDNN 9.19.0"),
            ("attention_backward, flash", 4, "flash"),
            ("attention_backward, deterministic flash", 4, "deterministic flash"),
        ] {
            let operation = format!("{operation}, {mask}");
            let work = Work { operation: &operation, operands: &operands[..count], output: None, axes: &[] };
            let found = call(&mut pytorch, &work)?.ok_or_else(|| format!("there is no {operation}"))?;
            assert_eq!(found, format!("{name} by PyTorch 9.9+fake"), "{operation}");
            assert_eq!(pytorch.time(Clock::Queued(3))?, 0.5e-3, "{operation}");
        }
    }
    Ok(())
}

#[test]
fn a_rate_of_operations_is_on_the_page() -> Outcome {
    let pairs = [(250.0, 500.0); 20];
    let goal = Some(Goal(2.5, 1.5));
    let mut found = speed("attention", "flash", &pairs, goal)?;
    assert_eq!((found.comparison.median, found.verdict()), (2.0, Verdict::Close));
    found.operations = Some(1e11);
    let mut recorder = Recorder::on_host("test", "A test", "None.");
    recorder.add(found);
    let folder = tempfile::tempdir()?;
    recorder.finish(folder.path())?;
    let page = page::render(&read_all(folder.path())?, &Notes::new(), None);
    let row = "| attention | 250.0 us (250.0 to 250.0), 400.0 TFLOP/s | flash: 500.0 us (500.0 to 500.0), 200.0 TFLOP/s |";
    assert!(page.contains(row), "{page}");
    Ok(())
}

#[test]
fn a_geometric_mean_is_taken_round_by_round() {
    let mean = geometric_mean(&[vec![(1.0, 8.0), (2.0, 2.0)], vec![(4.0, 2.0), (8.0, 2.0), (1.0, 1.0)]]);
    let wanted = [(2.0, 4.0), (4.0, 2.0)];
    assert_eq!(mean.len(), wanted.len(), "{mean:?}");
    for ((own, reference), (wanted_own, wanted_reference)) in mean.iter().zip(wanted) {
        assert!((own - wanted_own).abs() < 1e-12 && (reference - wanted_reference).abs() < 1e-12, "{mean:?}");
    }
}

#[test]
fn attention_on_the_cpu_runs_forward_and_backward() -> Outcome {
    let mut pytorch = PyTorchOnCpu::by(&mut interpreter(""))?;
    assert_eq!(pytorch.library, "PyTorch 9.9+fake, 2 threads");
    for is_causal in [false, true] {
        for has_backward in [false, true] {
            let arguments = [json!(16), json!(2), json!(8), json!(is_causal), json!(has_backward)];
            assert!(pytorch.microseconds("attention", &arguments, 3)? > 0.0);
        }
    }
    assert!(pytorch.microseconds("nothing", &[], 1).is_err_and(|why| why.contains("the child ended")));
    let absent = PyTorchOnCpu::by(&mut interpreter("absent")).err().ok_or("PyTorch was found")?;
    assert!(absent.ends_with("has no PyTorch (No module named 'torch')"), "{absent}");
    Ok(())
}

#[test]
fn operands_are_made_once_a_dtype_and_given_up_at_the_end() -> Outcome {
    #[derive(serde::Deserialize)]
    struct Account {
        held: usize,
        peak: usize,
        made: usize,
    }
    let file = tempfile::NamedTempFile::new()?;
    let mut python = interpreter("");
    python.env("FAKE_TORCH_ACCOUNT", file.path());
    let mut pytorch = PyTorch::by(python);
    let count = 1 << 16;
    for (dtype, count) in [(DType::F32, count), (DType::F64, count / 2)] {
        let output = Some(Operand::nothing(dtype, Layout::contiguous(&[count])?));
        for operation in ["add", "exp", "log", "sin"] {
            let operands = vec![array(dtype, &[count])?; if operation == "add" { 2 } else { 1 }];
            let work = Work { operation, operands: &operands, output, axes: &[] };
            assert_eq!(call(&mut pytorch, &work)?, Some(format!("torch.{operation}")));
        }
    }
    pytorch.drop_operands();
    let Account { held, peak, made } = serde_json::from_str(&std::fs::read_to_string(file.path())?)?;
    assert_eq!(held, 0);
    assert_eq!(peak, 3 * 4 * count, "the sum's operands and its output, and never two dtypes at once");
    assert_eq!(made, 2 * 3);
    Ok(())
}

#[test]
fn a_figure_has_its_comparison_in_the_report_and_on_the_page() -> Outcome {
    let mut pytorch = PyTorch::by(interpreter("noise"));
    let report = report(&mut pytorch, 450.0, &["exp", "cbrt"])?;
    assert_eq!(report.library.as_deref(), Some("PyTorch 9.9+fake"));
    assert_eq!(report.skipped, Vec::<String>::new());
    let [exp, cbrt] = report.figures.as_slice() else { return Err("two figures are wanted".into()) };
    assert!(cbrt.beside.is_none(), "PyTorch has none");
    let beside = exp.beside.as_deref().ok_or("nothing beside")?;
    assert_eq!((beside.name.as_str(), beside.against.as_str()), ("exp, beside PyTorch", "torch.exp"));
    assert_eq!((beside.rounds, beside.own.median, beside.reference.median), (10, 450.0, 500.0));
    assert_eq!(beside.comparison.median, 500.0 / 450.0);
    assert_eq!(beside.verdict(), Verdict::Met);

    let reports = [report];
    let page = page::render(&reports, &Notes::new(), None);
    let row = "| exp | 450.0 us (450.0 to 450.0) | copy: 400.0 us (400.0 to 400.0) | 0.889 of its speed (0.889 to 0.889) | \
               none | for information | torch.exp: 500.0 us, 1.111 of its speed (1.111 to 1.111), met |\n";
    assert!(page.contains(row), "{page}");
    assert!(page.contains("| verdict | in turns with PyTorch |\n|---|---|---|---|---|---|---|\n"), "{page}");
    assert!(page.contains("| none | for information | |\n"), "{page}");
    assert!(page.contains("In the last column: PyTorch 9.9+fake in turns with own, 10 rounds"), "{page}");
    assert!(page.contains("goal at least 1, resolved at 0.99."), "{page}");
    let pictures = plot::render(&reports);
    let files: Vec<&str> = pictures.iter().map(|picture| picture.file.as_str()).collect();
    assert_eq!(files, ["speed.svg", "speed-other.svg"]);
    assert_eq!(pictures[1].svg.matches("<circle").count(), 1);
    assert!(pictures[0].svg.contains(">1.11 of PyTorch 9.9, 1 of 2 figures<"), "{}", pictures[0].svg);
    Ok(())
}

#[test]
fn a_difference_within_the_noise_is_no_miss_and_a_greater_one_is_owned_up_to() -> Outcome {
    let mut pytorch = PyTorch::by(interpreter(""));
    for (own, verdict) in [(503.0, Verdict::Close), (1000.0, Verdict::Missed(0.5))] {
        let report = report(&mut pytorch, own, &["exp"])?;
        let beside = report.figures[0].beside.as_deref().ok_or("nothing beside")?;
        assert_eq!(beside.verdict(), verdict);
        let missed = matches!(verdict, Verdict::Missed(_));
        let page = page::render(&[report], &Notes::new(), None);
        assert_eq!(page.contains("**exp, beside PyTorch**: missed; why is not known yet."), missed, "{page}");
    }
    Ok(())
}

#[test]
fn where_there_is_no_pytorch_the_report_says_so_once() -> Outcome {
    for (python, why) in [
        (Command::new("/nowhere/python3"), "/nowhere/python3 could not be started ("),
        (interpreter("absent"), "python3 has no PyTorch (No module named 'torch')."),
        (interpreter("no device"), "PyTorch 9.9+fake finds no device."),
        (Command::new("true"), "the child ended (exit status: 0)."),
        (Command::new("echo"), "the child said '-c "),
    ] {
        let report = report(&mut PyTorch::by(python), 450.0, &["exp", "log"])?;
        assert!(report.figures.iter().all(|figure| figure.beside.is_none()));
        let [skipped] = report.skipped.as_slice() else { return Err(format!("{:?}", report.skipped).into()) };
        assert!(skipped.starts_with(&format!("beside PyTorch: {why}")), "{skipped}");
        assert!(
            page::render(&[report], &Notes::new(), None)
                .contains("Not measured in this run: beside PyTorch: ")
        );
    }
    Ok(())
}

#[test]
fn what_pytorch_refuses_is_named_and_the_rest_goes_on() -> Outcome {
    let report = report(&mut PyTorch::by(interpreter("refusal")), 450.0, &["exp", "erf", "log"])?;
    let beside: Vec<bool> = report.figures.iter().map(|figure| figure.beside.is_some()).collect();
    assert_eq!(beside, [true, false, true]);
    assert_eq!(
        report.skipped,
        ["erf, beside PyTorch: RuntimeError: \"erf_cuda\" not implemented for 'Half'."]
    );
    Ok(())
}

#[test]
fn a_child_that_ends_or_hangs_takes_no_figure_with_it() -> Outcome {
    for (mishap, patience, why) in [
        ("end", 60, "the child ended (exit status: 7)"),
        // Longer than its start on a busy machine.
        ("hang", 5, "the child did not answer within 5s"),
    ] {
        let mut pytorch = PyTorch::by(interpreter(mishap));
        pytorch.patience = Duration::from_secs(patience);
        let report = report(&mut pytorch, 450.0, &["exp", "erf", "log"])?;
        let beside: Vec<bool> = report.figures.iter().map(|figure| figure.beside.is_some()).collect();
        assert_eq!(beside, [true, false, false]);
        assert_eq!(report.skipped, [format!("beside PyTorch: {why}.")]);
    }
    Ok(())
}

#[test]
fn what_cannot_be_compiled_runs_as_two_kernels_and_says_so() -> Outcome {
    let operands = [array(DType::F32, &[64])?; 3];
    let output = Some(Operand::nothing(DType::F32, Layout::contiguous(&[64])?));
    let work = Work { operation: "relu(a * b + c)", operands: &operands, output, axes: &[] };
    let call = |mishap| PyTorch::by(interpreter(mishap)).prepare(&work);
    assert_eq!(call("")?.as_deref(), Some("torch.compile of relu(a * b + c)"));
    assert_eq!(
        call("compiler")?.as_deref(),
        Some("torch.addcmul and relu_ (torch.compile gives RuntimeError)")
    );
    Ok(())
}

#[test]
fn our_own_failure_is_the_benchmarks() -> Outcome {
    let mut recorder = Recorder::on_host("test", "A test", "None.");
    let mut figure = figure("exp")?;
    let operands = [array(DType::F32, &[64])?];
    let output = Some(Operand::nothing(DType::F32, Layout::contiguous(&[64])?));
    let work = Work { operation: "exp", operands: &operands, output, axes: &[] };
    let mut pytorch = PyTorch::by(interpreter(""));
    let outcome = pytorch.beside(&mut recorder, &mut figure, &work, Clock::Device, || Err("ours".into()));
    assert!(outcome.is_err_and(|why| why.to_string() == "ours"));
    assert!(figure.beside.is_none());
    Ok(())
}

#[test]
fn the_side_of_training_says_why_it_is_absent() -> Outcome {
    let program = include_str!("../../benches/training/pytorch_gpt.py");
    let mut python =
        PythonProcess::start(&mut interpreter("absent"), program, &["--serve"], Duration::from_secs(60))?;
    let answer: serde_json::Value = python.answer()?;
    assert_eq!(answer["absent"], "python3 has no PyTorch (No module named 'torch')");
    Ok(())
}

#[test]
fn a_run_continues_the_report_of_its_own_commit_alone() -> Outcome {
    let folder = tempfile::tempdir()?;
    let recorder = || Recorder::on_host("test", "A test", "None.");
    assert!(recorder().earlier_figures(folder.path())?.is_empty());
    let mut first = recorder();
    first.add(figure("one")?);
    first.finish(folder.path())?;
    let mut second = recorder();
    for figure in second.earlier_figures(folder.path())? {
        second.keep(figure);
    }
    second.add(figure("two")?);
    second.finish(folder.path())?;
    let report = read_all(folder.path())?.pop().ok_or("no report")?;
    assert_eq!(report.figures.iter().map(|figure| figure.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    let other = Report { commit: "another".to_owned(), ..report };
    std::fs::write(folder.path().join("test.json"), serde_json::to_string(&other)?)?;
    assert!(recorder().earlier_figures(folder.path())?.is_empty());
    Ok(())
}
