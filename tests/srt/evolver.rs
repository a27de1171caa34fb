//! The evolver: the worked generation, a model of it in plain loops, and its files.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use selvedge::Error;
use selvedge::srt::*;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use crate::common::*;

const SURVIVORS: [[(i64, i64); 4]; 2] =
    [[(-5, 4), (10, -6), (-10, 6), (0, 0)], [(4, -2), (2, -1), (8, -5), (0, 0)]];
const SYNTONIES: [f64; 2] = [0.9498561748020578, 0.8987245154119954];

fn points(pairs: &[(i64, i64)]) -> GoldenTensor {
    let points: Vec<GoldenInteger> = pairs.iter().map(|&pair| pair.into()).collect();
    GoldenTensor::from_slice(&points, &[points.len()], &Device::cpu()).unwrap()
}

fn pairs(points: &GoldenTensor) -> Vec<(i64, i64)> {
    points.to_vec().unwrap().iter().map(|point| (point.a, point.b)).collect()
}

fn worked_options() -> EvolverOptions {
    EvolverOptions {
        seed: 2024,
        population: 4,
        survivors: 2,
        mutation_scale: 0.5,
        bound: 10,
        ..EvolverOptions::default()
    }
}

fn worked_start() -> GoldenTensor {
    snap(&vector(&[1.0, 0.5, -0.25, 0.125]), 10).unwrap()
}

fn worked() -> Evolver {
    Evolver::new(&worked_start(), None, worked_options()).unwrap()
}

struct Candidate {
    position: usize,
    state: Vec<(i64, i64)>,
    syntony: f64,
}

/// A generation as the definition has it, in loops over numbers.
struct Model {
    options: EvolverOptions,
    n2: Vec<f64>,
    best: Vec<(i64, i64)>,
    syntony: f64,
    generation: u64,
}

fn value((a, b): (i64, i64)) -> f64 {
    a as f64 + b as f64 * PHI
}

impl Model {
    fn new(best: &[(i64, i64)], options: &EvolverOptions) -> Model {
        let n2 = (0..best.len()).map(|i| (i * i) as f64).collect();
        let mut model =
            Model { options: options.clone(), n2, best: best.to_vec(), syntony: 0.0, generation: 0 };
        model.syntony = model.syntony_of(best);
        model
    }

    fn syntony_of(&self, state: &[(i64, i64)]) -> f64 {
        let squares = || state.iter().map(|&pair| value(pair) * value(pair));
        let total: f64 = squares().sum();
        let weighted: f64 =
            squares().zip(&self.n2).map(|(square, n2)| square * (-n2 * INVERSE_PHI).exp()).sum();
        if total < 1e-15 { 0.0 } else { (weighted / total).clamp(0.0, 1.0) }
    }

    fn uniform(stream: u64, index: usize) -> f64 {
        (noise_word(stream, index as u64) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The candidates without those that overflow.
    fn candidates(&self) -> Vec<Candidate> {
        let (options, n) = (&self.options, self.best.len());
        let stream = noise_stream(options.seed, self.generation, 1);
        let candidate = |p: usize| {
            let pair = |j: usize| {
                let part = |i| (Self::uniform(stream, i) - 0.5) * options.mutation_scale;
                let i = 2 * (p * n + j);
                let mutation = GoldenInteger::snap(part(i) + part(i + 1) * PHI, options.bound).unwrap();
                let (a, b) = self.best[j];
                Some((a.checked_add(mutation.a)?, b.checked_add(mutation.b)?))
            };
            let state: Vec<(i64, i64)> = (0..n).map(pair).collect::<Option<_>>()?;
            let syntony = self.syntony_of(&state);
            Some(Candidate { position: p, state, syntony })
        };
        (0..options.population).filter_map(candidate).collect()
    }

    /// Returns the winner and its syntony.
    fn step(&mut self) -> Option<(usize, f64)> {
        let (mut survivors, n) = (self.candidates(), self.best.len());
        survivors.sort_by(|one, other| other.syntony.total_cmp(&one.syntony));
        survivors.truncate(self.options.survivors);
        let stream = noise_stream(self.options.seed, self.generation, 2);
        let mut winner: Option<Candidate> = None;
        for (rank, Candidate { position, state, syntony: s }) in survivors.into_iter().enumerate() {
            let point = |j: usize| {
                let i = 2 * (rank * n + j);
                let open = Self::uniform(stream, i) + 1.0 / (1u64 << 53) as f64;
                let angle = 2.0 * std::f64::consts::PI * Self::uniform(stream, i + 1);
                let g = (-2.0 * open.max(1e-10).ln()).sqrt() * angle.cos();
                let n2 = self.n2[j];
                let noise = self.options.sigma * (1.0 - s) * (-n2 / (4.0 * PHI)).exp() * g;
                let flux = value(state[j]) * (1.0 + INVERSE_PHI_SQUARED * (1.0 - s) * n2.sqrt()) + noise;
                let h = flux * (1.0 - INVERSE_PHI * s * (1.0 - (-n2 * INVERSE_PHI).exp()));
                let point = GoldenInteger::snap(h, self.options.bound).unwrap();
                (point.a, point.b)
            };
            let state: Vec<(i64, i64)> = (0..n).map(point).collect();
            let syntony = self.syntony_of(&state);
            if winner.as_ref().is_none_or(|winner| syntony > winner.syntony) {
                winner = Some(Candidate { position, state, syntony });
            }
        }
        self.generation += 1;
        let Candidate { position, state, syntony } = winner?;
        if syntony > self.syntony {
            (self.best, self.syntony) = (state, syntony);
        }
        Some((position, syntony))
    }
}

#[track_caller]
fn assert_winner(found: Option<(usize, f64)>, wanted: Option<(usize, f64)>) {
    assert_eq!(found.map(|winner| winner.0), wanted.map(|winner| winner.0), "{found:?}, wanted {wanted:?}");
    if let (Some((_, found)), Some((_, wanted))) = (found, wanted) {
        crate::close(found, wanted, 1e-12);
    }
}

#[test]
fn a_generation_has_the_worked_numbers() {
    assert_eq!(noise_stream(2024, 0, 1), 0x487a_96f9_b989_521b);
    assert_eq!(noise_stream(2024, 0, 2), 0x2ddb_5756_aeff_d857);
    let start = worked_start();
    assert_eq!(pairs(&start), [(1, 0), (-6, 4), (3, -2), (5, -3)]);
    let candidates = Model::new(&pairs(&start), &worked_options()).candidates();
    let wanted = [0.8491446136099946, 0.620158462030091, 0.8745681152888314, 0.8025216168566947];
    for (candidate, wanted) in candidates.iter().zip(wanted) {
        crate::close(candidate.syntony, wanted, 1e-12);
    }

    let seen = Arc::new(Mutex::new(Vec::new()));
    let values = seen.clone();
    let mut evolver = worked().with_fitness(move |survivors| {
        values.lock().unwrap().push(survivors.clone());
        Tensor::zeros(&[2], DType::F64, &Device::cpu())
    });
    crate::close(evolver.best_syntony(), 0.8653840969630858, 1e-12);
    let report = evolver.step().unwrap();
    assert_winner(report.winner, Some((2, SYNTONIES[0])));
    assert!(report.is_accepted && !report.is_converged && report.generation == 1);
    assert_eq!(pairs(evolver.best()), SURVIVORS[0]);
    assert_eq!((report.best_syntony, evolver.best_syntony()), (evolver.history()[1], evolver.history()[1]));
    let seen = seen.lock().unwrap();
    assert_worked(&syntony(&seen[0], evolver.n2()).unwrap(), &SYNTONIES);
    assert_eq!(numbers(&seen[0]), SURVIVORS.concat().into_iter().map(value).collect::<Vec<f64>>());
    // The same without a fitness.
    let mut plain = worked();
    assert_eq!(plain.step().unwrap(), report);
}

#[test]
fn generations_are_those_of_the_model() {
    for seed in 1..=3 {
        let options = EvolverOptions {
            seed,
            population: 12,
            survivors: 5,
            bound: 20,
            mutation_scale: 0.4,
            sigma: 0.05,
            ..EvolverOptions::default()
        };
        let start = snap(&vector(&sequence(6, 30 + seed)), 20).unwrap();
        let mut model = Model::new(&pairs(&start), &options);
        let mut evolver = Evolver::new(&start, None, options).unwrap();
        for _ in 0..5 {
            let before = evolver.best_syntony();
            let report = evolver.step().unwrap();
            assert_winner(report.winner, model.step());
            assert_eq!(pairs(evolver.best()), model.best);
            crate::close(report.best_syntony, model.syntony, 1e-12);
            assert_eq!(report.is_accepted, report.best_syntony > before);
            assert!(report.best_syntony >= before);
        }
        assert_eq!(evolver.generation(), 5);
    }
}

#[test]
fn candidates_that_overflow_are_dropped() {
    // About half of all mutations raise a coefficient at the end of i64.
    let start = [(i64::MAX, 0), (0, 0)];
    let options = EvolverOptions { population: 16, survivors: 16, ..worked_options() };
    let mut model = Model::new(&start, &options);
    let kept = model.candidates().len();
    assert!(0 < kept && kept < 16, "{kept} candidates without overflow");
    let mut evolver = Evolver::new(&points(&start), None, options.clone()).unwrap();
    assert_winner(evolver.step().unwrap().winner, model.step());
    assert_eq!(pairs(evolver.best()), model.best);
    // A mutation other than 0 raises one coefficient or the other.
    let start = [(i64::MAX, i64::MAX); 8];
    assert!(Model::new(&start, &options).candidates().is_empty());
    let mut evolver = Evolver::new(&points(&start), None, options).unwrap();
    let report = evolver.step().unwrap();
    assert!(report.winner.is_none() && !report.is_accepted);
    assert_eq!(pairs(evolver.best()), start);
}

#[test]
fn edges_of_the_population_and_of_the_state_are_legal() {
    let step = |start: &GoldenTensor, options| Evolver::new(start, None, options).unwrap().step().unwrap();
    // More survivors than candidates are all candidates.
    let all = step(&worked_start(), EvolverOptions { survivors: 4, ..worked_options() });
    assert_eq!(step(&worked_start(), EvolverOptions { survivors: usize::MAX, ..worked_options() }), all);
    let zeros = Evolver::new(&points(&[(0, 0); 3]), None, worked_options()).unwrap();
    assert_eq!(zeros.best_syntony(), 0.0);
    assert_eq!(zeros.n2().to_vec::<f64>().unwrap(), [0.0, 1.0, 4.0]);
    // Equal candidates: the first is the first survivor, and wins.
    let equal = EvolverOptions { mutation_scale: 0.0, sigma: 0.0, ..worked_options() };
    assert_eq!(step(&worked_start(), equal).winner.unwrap().0, 0);
    // One candidate of one element has all of its weight on the lowest mode, so it is never strictly better.
    let single = EvolverOptions { population: 1, survivors: 1, ..worked_options() };
    let report = step(&points(&[(1, 0)]), single);
    assert!(report.best_syntony == 1.0 && !report.is_accepted);
}

#[test]
fn a_fitness_changes_the_winner() {
    let winner = |fitness: [f64; 2], lambda| {
        let evolver =
            Evolver::new(&worked_start(), None, EvolverOptions { lambda, ..worked_options() }).unwrap();
        evolver.with_fitness(move |_| Tensor::new(fitness, &Device::cpu())).step().unwrap().winner
    };
    let [first, second] = [Some((2, SYNTONIES[0])), Some((0, SYNTONIES[1]))];
    assert_winner(winner([0.0, 0.01], Q_DEFICIT), second);
    assert_winner(winner([0.0, 0.01], 1.0), first);
    assert_winner(winner([0.5, 0.5], 0.0), first);
    assert_winner(winner([f64::NAN, -1.0], Q_DEFICIT), second);
    assert_winner(winner([f64::NAN; 2], Q_DEFICIT), None);

    let mut bad = worked().with_fitness(|_| Tensor::zeros(&[3], DType::F64, &Device::cpu()));
    assert_invalid(bad.step(), &["[3]", "[2]"]);
    assert_eq!((bad.generation(), pairs(bad.best())), (0, pairs(&worked_start())));
    assert_dtype_error(worked().with_fitness(|_| Tensor::zeros(&[2], DType::F32, &Device::cpu())).step());
    let failing = worked().with_fitness(|values| values.reshape(&[7])).step();
    assert!(failing.is_err());
}

#[test]
fn runs_end_by_convergence_the_limit_or_the_callback() {
    let evolver = |threshold, max_generations| {
        let options = EvolverOptions { threshold, max_generations, ..worked_options() };
        Evolver::new(&worked_start(), None, options).unwrap()
    };
    // The window needs ten entries, the first of them the start.
    let mut converged = evolver(2.0, 1000);
    let mut reports = Vec::new();
    let end = converged.run(|report| {
        reports.push((report.generation, report.is_converged));
        ControlFlow::Continue(())
    });
    assert_eq!(end.unwrap(), EvolverEnd::Converged);
    assert_eq!(reports, (1..=9).map(|i| (i, i == 9)).collect::<Vec<_>>());
    assert_eq!((converged.history().len(), converged.window().len()), (10, 10));
    converged.step().unwrap();
    assert_eq!(converged.window(), &converged.history()[1..]);

    let mut limited = evolver(0.0, 3);
    let mut stops = 0;
    let mut run = || {
        limited.run(|report| {
            stops += 1;
            if report.generation == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    };
    assert_eq!(run().unwrap(), EvolverEnd::Stopped);
    assert_eq!(run().unwrap(), EvolverEnd::GenerationLimit);
    assert_eq!(run().unwrap(), EvolverEnd::GenerationLimit);
    assert_eq!(stops, 3);
}

#[test]
fn a_restored_evolution_continues_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.evolver");
    let options = EvolverOptions { population: 10, survivors: 3, seed: 5, ..worked_options() };
    let n2 = vector(&[0.25, 2.0, 3.0, 8.0]);
    let mut whole = Evolver::new(&worked_start(), Some(&n2), options.clone()).unwrap();
    for _ in 0..3 {
        whole.step().unwrap();
    }
    whole.save(&path).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    let mut again = Evolver::restore(&path, &Device::cpu()).unwrap();
    assert_eq!(again.options(), &options);
    for _ in 0..4 {
        assert_eq!(again.step().unwrap(), whole.step().unwrap());
        assert_eq!(pairs(again.best()), pairs(whole.best()));
    }
    assert_eq!(again.history(), whole.history());
    assert_eq!(again.n2().to_vec::<f64>().unwrap(), n2.to_vec::<f64>().unwrap());
    // A file that is there is replaced.
    again.save(&path).unwrap();
    assert_eq!(Evolver::restore(&path, &Device::cpu()).unwrap().generation(), 7);
}

#[test]
fn damaged_and_newer_files_are_refused_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.evolver");
    let mut evolver = worked();
    evolver.step().unwrap();
    evolver.save(&path).unwrap();
    let good = std::fs::read(&path).unwrap();
    let error = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let error =
            Evolver::restore(&path, &Device::cpu()).map_or_else(|error| error.to_string(), |_| String::new());
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        error
    };
    assert_eq!(error(&good), "");
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    assert!(error(&changed(0, b"x")).contains("another kind of file"));
    assert!(error(&changed(8, &[2])).contains("version 2 of the format; wanted version 1"));
    // The lengths of the state and of the history, after nine options.
    for count in [u64::MAX, 1 << 40] {
        assert!(error(&changed(88, &count.to_le_bytes())).contains("bytes left"));
        assert!(error(&changed(96, &count.to_le_bytes())).contains("bytes left"));
    }
    // A history that falls.
    let last = good.len() - 40;
    assert!(error(&changed(last, &0.1f64.to_le_bytes())).contains("history of 2 numbers"));
    for at in (16..good.len()).step_by(5) {
        assert_ne!(error(&changed(at, &[good[at] ^ 0x40])), "", "byte {at}");
    }
    for length in (0..good.len()).step_by(7) {
        assert_ne!(error(&good[..length]), "", "{length} bytes");
    }
    assert_ne!(error(&[&good[..], &[0]].concat()), "");
    assert!(Evolver::restore(folder.path().join("none"), &Device::cpu()).is_err());
    assert!(matches!(
        evolver.save(folder.path().join("no/folder.evolver")),
        Err(Error::FileNotWritten { .. })
    ));
}

#[test]
fn bad_states_and_options_are_refused() {
    let new = |start: &GoldenTensor, n2: Option<&Tensor>, options| Evolver::new(start, n2, options);
    let start = worked_start();
    let refused = |change: fn(&mut EvolverOptions), texts: &[&str]| {
        let mut options = worked_options();
        change(&mut options);
        assert_invalid(new(&start, None, options), texts);
    };
    refused(|options| options.population = 0, &["population = 0"]);
    refused(|options| options.survivors = 0, &["survivors = 0"]);
    refused(|options| options.bound = -1, &["-1"]);
    refused(|options| options.bound = (1 << 20) + 1, &["1048577"]);
    refused(|options| options.mutation_scale = f64::NAN, &["mutation_scale = NaN"]);
    refused(|options| options.sigma = f64::INFINITY, &["sigma = inf"]);
    refused(|options| options.lambda = f64::NEG_INFINITY, &["lambda = -inf"]);
    refused(|options| options.threshold = f64::NAN, &["threshold = NaN"]);
    let options = worked_options;
    assert_invalid(new(&points(&[]), None, options()), &["shape [0]"]);
    let matrix = GoldenTensor::from_slice(&start.to_vec().unwrap(), &[2, 2], &Device::cpu()).unwrap();
    assert_invalid(new(&matrix, None, options()), &["shape [2, 2]"]);
    assert_invalid(new(&start, Some(&vector(&[1.0])), options()), &["[1]", "[4]"]);
    for norm in [-1.0, f64::NAN, f64::INFINITY] {
        assert_invalid(new(&start, Some(&vector(&[0.0, norm, 1.0, 2.0])), options()), &["n2 = "]);
    }
    assert_dtype_error(new(&start, Some(&tensor(&[0i64, 1, 4, 9], &[4])), options()));
    // A population that no memory holds fails and leaves the evolver as it was.
    let mut huge = new(&start, None, EvolverOptions { population: usize::MAX / 2, ..options() }).unwrap();
    assert!(huge.step().is_err());
    assert_eq!((huge.generation(), pairs(huge.best())), (0, pairs(&start)));
}
