//! `selvedge tune`: measures on this device what the library chooses by a committed table.

use std::fmt;

use selvedge::Error;
use selvedge::driver::Device;
use selvedge::gemm::{Engine, Machine, Plan, Product, TunedChoice, Way};
use selvedge::types::DType;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::files;
use crate::options::{Stored, TuneGemmOptions, TuneOptions, Tuned};
use crate::output::{self, Progress, Report, Style, Table};
use measure::{AnyOperands, Timed};

mod measure;
mod roofline;

/// What a way must win by, to be chosen over one that is taken without a table.
const WIN: f64 = 1.03;
/// Lines that are shown; all of them are in the results.
const SHOWN: usize = 20;

/// Measures one thing.
pub fn tune(options: &TuneOptions) -> Result<Report, Failure> {
    let Tuned::Gemm(options) = &options.what;
    gemm(options)
}

/// A product whose ways were timed.
pub struct Measured {
    dtype: DType,
    layout: Stored,
    product: Product,
    /// The way that is taken without a table.
    estimated: Way,
    times: Vec<Timed>,
}

impl fmt::Display for Measured {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {}", self.product, self.dtype)
    }
}

impl Measured {
    fn fastest(&self, wanted: impl Fn(&Timed) -> bool) -> Option<&Timed> {
        self.times
            .iter()
            .filter(|timed| wanted(timed))
            .min_by(|one, other| one.seconds.total_cmp(&other.seconds))
    }

    /// The fastest way of this library.
    fn own(&self) -> Option<&Timed> {
        self.fastest(|timed| timed.way.engine().is_own())
    }

    fn cublas(&self) -> Option<&Timed> {
        self.fastest(|timed| timed.way.engine() == Engine::Cublas)
    }

    fn operations(&self) -> f64 {
        self.product.operations()
    }

    /// Bytes of operands and result, each moved once.
    fn bytes(&self) -> f64 {
        let (m, n, k) = (self.product.m() as f64, self.product.n() as f64, self.product.k() as f64);
        (m * k + k * n + m * n) * self.dtype.size() as f64
    }

    /// What the table would say, and whether it needs to.
    fn choice(&self, machine: Machine) -> Option<(TunedChoice, bool)> {
        let best = self.own()?;
        let estimated = self.fastest(|timed| timed.way == self.estimated);
        let better = estimated.is_none_or(|estimated| estimated.seconds > WIN * best.seconds);
        let cublas = self.cublas().is_some_and(|cublas| best.seconds > WIN * cublas.seconds);
        let way = if better { best.way } else { self.estimated };
        let line = TunedChoice::new(&self.product, self.dtype, self.dtype, machine, way, cublas);
        Some((line, better || cublas))
    }

    fn json(&self) -> Value {
        let times: Vec<Value> = self
            .times
            .iter()
            .map(|timed| json!({ "way": timed.way.to_string(), "microseconds": timed.seconds * 1e6 }))
            .collect();
        json!({
            "dtype": self.dtype.to_string(),
            "layout": format!("{:?}", self.layout).to_lowercase(),
            "m": self.product.m(),
            "n": self.product.n(),
            "k": self.product.k(),
            "estimated": self.estimated.to_string(),
            "times": times,
        })
    }
}

/// Everything that was measured.
pub struct Tuning {
    device: String,
    /// Bytes a second of a copy on the device.
    bandwidth: f64,
    dtypes: Vec<DType>,
    measured: Vec<Measured>,
}

/// The products that are to be measured, of one dtype, with all their ways.
fn products(
    options: &TuneGemmOptions,
    dtype: DType,
    machine: Machine,
) -> Result<Vec<(Stored, Product, Vec<Way>)>, Failure> {
    let mut all = Vec::new();
    for &layout in &options.layouts {
        let (of_a, of_b) = layout.operations();
        for (&m, &n, &k) in options.sizes.iter().flat_map(|m| {
            options.sizes.iter().flat_map(move |n| options.sizes.iter().map(move |k| (m, n, k)))
        }) {
            let product = Product::new(m, n, k).a(of_a).b(of_b);
            if product.operations() > options.most_gigaflop * 1e9 {
                continue;
            }
            let mut ways = Plan::ways(&product, dtype, dtype, machine)?;
            ways.retain(|way| !options.own || way.engine().is_own());
            // Of one way there is nothing to choose.
            if ways.len() > 1 {
                all.push((layout, product, ways));
            }
        }
    }
    Ok(all)
}

fn gemm(options: &TuneGemmOptions) -> Result<Report, Failure> {
    for path in [&options.results, &options.picture, &options.write].into_iter().flatten() {
        files::check_writable(path)?;
    }
    let table = match &options.write {
        Some(path) if path.exists() => Some(files::read_text(path, "a table of choices")?),
        Some(_) => Some(String::new()),
        None => None,
    };
    let device = Device::new(options.device)?;
    let machine = Machine::of(&device)?;
    let stream = device.stream()?;
    let mut plans = Vec::new();
    for &dtype in &options.dtypes {
        plans.push((dtype, products(options, dtype, machine)?));
    }
    let count: usize = plans.iter().map(|(_, products)| products.len()).sum();
    let progress = Progress::of_steps("tuning", count as u64);
    let mut tuning = Tuning {
        device: device.name().to_owned(),
        bandwidth: measure::bandwidth(&stream)?,
        dtypes: options.dtypes.clone(),
        measured: Vec::with_capacity(count),
    };
    for (dtype, products) in plans {
        let most =
            |of: fn(&Product) -> usize| products.iter().map(|(_, product, _)| of(product)).max().unwrap_or(0);
        let elements = [most(|p| p.m() * p.k()), most(|p| p.k() * p.n()), most(|p| p.m() * p.n())];
        let Some(mut operands) = AnyOperands::new(&stream, dtype, elements)? else {
            let wanted = "f16, bf16, f32, f64, c64 or c128";
            return Err(Error::DTypeMismatch {
                operation: "tune gemm",
                wanted: wanted.to_owned(),
                found: dtype.to_string(),
            }
            .into());
        };
        for (layout, product, ways) in products {
            let times = operands.time(&product, &ways, options.rounds)?;
            let estimated = ways.first().copied().unwrap_or(Way::of(Engine::Simt));
            tuning.measured.push(Measured { dtype, layout, product, estimated, times });
            progress.set(tuning.measured.len() as u64);
        }
    }
    drop(progress);
    let choices: Vec<(TunedChoice, bool)> =
        tuning.measured.iter().filter_map(|measured| measured.choice(machine)).collect();
    let json = json!({
        "device": tuning.device,
        "compute_capability": format!("{}.{}", machine.capability.0, machine.capability.1),
        "multiprocessors": machine.multiprocessors,
        "bytes_per_second": tuning.bandwidth,
        "rounds": options.rounds,
        "choices": choices.iter().filter(|(_, needed)| *needed).map(|(choice, _)| choice.to_string()).collect::<Vec<_>>(),
        "measured": tuning.measured.iter().map(Measured::json).collect::<Vec<_>>(),
    });
    if let Some(path) = &options.results {
        files::write(path, &format!("{json:#}\n"))?;
    }
    if let Some(path) = &options.picture {
        files::write(path, &roofline::draw(&tuning))?;
    }
    if let (Some(path), Some(table)) = (&options.write, table) {
        files::write(path, &merged(&table, &choices))?;
    }
    Ok(Report { text: text(&tuning, machine), json })
}

/// The table with these choices in the place of those for the same products.
fn merged(table: &str, choices: &[(TunedChoice, bool)]) -> String {
    let stays = |line: &&str| match line.parse::<TunedChoice>() {
        Ok(old) => !choices.iter().any(|(choice, _)| choice.is_for_what(&old)),
        // Comments.
        Err(_) => true,
    };
    let (comments, mut lines): (Vec<String>, Vec<String>) = table
        .lines()
        .filter(stays)
        .map(str::to_owned)
        .chain(choices.iter().filter(|(_, needed)| *needed).map(|(choice, _)| choice.to_string()))
        .partition(|line| line.starts_with('#'));
    lines.sort();
    [comments, lines].concat().iter().map(|line| format!("{line}\n")).collect()
}

fn text(tuning: &Tuning, machine: Machine) -> String {
    let mut table = Table::with_head("<<>>>", ["product", "fastest", "time", "estimated", "cuBLAS"]);
    let mut shown = 0;
    let needed = tuning.measured.iter().filter(|one| one.choice(machine).is_some_and(|(_, needed)| needed));
    for measured in needed.clone().take(SHOWN) {
        let Some(best) = measured.own() else { continue };
        let against = |timed: Option<&Timed>| {
            timed.map_or("-".to_owned(), |timed| format!("{:.2} x", timed.seconds / best.seconds))
        };
        table.row([
            measured.to_string(),
            best.way.to_string(),
            output::seconds(best.seconds),
            against(measured.fastest(|timed| timed.way == measured.estimated)),
            against(measured.cublas()),
        ]);
        shown += 1;
    }
    let all = needed.count();
    let measured = output::counted(tuning.measured.len() as u64, "product");
    let rest = if all > shown { format!("  and {} more\n", all - shown) } else { String::new() };
    let lines = output::counted(all as u64, "line");
    format!(
        "{}: {measured} measured, {lines} of the table differ from the estimates\n{}{rest}",
        tuning.device,
        table.render(Style::of_stdout())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(times: &[(&str, f64)]) -> Measured {
        let times =
            times.iter().map(|&(way, seconds)| Timed { way: way.parse().unwrap(), seconds }).collect();
        let product = Product::new(64, 64, 64);
        let estimated = "wgmma/pairs/64".parse().unwrap();
        Measured { dtype: DType::BF16, layout: Stored::Nn, product, estimated, times }
    }

    fn line(times: &[(&str, f64)]) -> (String, bool) {
        let (choice, needed) = measured(times).choice(Machine::typical((9, 0))).unwrap();
        (choice.to_string(), needed)
    }

    #[test]
    fn a_way_must_win_by_enough() {
        let head = "9.0 132 bf16 bf16 nn 64 64 64 1";
        let said = |way: &str, needed| (format!("{head} {way}"), needed);
        let pairs = ("wgmma/pairs/64", 1.00);
        assert_eq!(line(&[pairs, ("simt", 0.98)]), said("wgmma/pairs/64", false));
        assert_eq!(line(&[pairs, ("simt", 0.90)]), said("simt", true));
        assert_eq!(line(&[pairs, ("cublas", 0.90)]), said("wgmma/pairs/64 cublas", true));
        assert_eq!(line(&[pairs, ("cublas", 0.99)]), said("wgmma/pairs/64", false));
        assert_eq!(line(&[pairs, ("simt", 0.9), ("cublas", 0.8)]), said("simt cublas", true));
        // The estimate itself could not be run.
        assert_eq!(line(&[("simt", 1.0)]), said("simt", true));
        assert!(measured(&[("cublas", 1.0)]).choice(Machine::typical((9, 0))).is_none());
    }

    #[test]
    fn lines_take_the_place_of_those_for_the_same_products() {
        let old = "# comment\n9.0 132 bf16 bf16 nn 64 64 64 1 simt\n9.0 132 bf16 bf16 nt 64 64 64 1 simt\n";
        let better =
            measured(&[("wgmma/pairs/64", 1.0), ("wgmma/pairs/128", 0.5)]).choice(Machine::typical((9, 0)));
        let table = merged(old, &[better.unwrap()]);
        assert_eq!(
            table,
            "# comment\n9.0 132 bf16 bf16 nn 64 64 64 1 wgmma/pairs/128\n9.0 132 bf16 bf16 nt 64 64 64 1 simt\n"
        );
        // What needs no line any more has none.
        let same = measured(&[("wgmma/pairs/64", 1.0)]).choice(Machine::typical((9, 0)));
        assert_eq!(merged(old, &[same.unwrap()]), "# comment\n9.0 132 bf16 bf16 nt 64 64 64 1 simt\n");
    }
}
