//! The host's time for the launch of a graph, beside a bare `cuGraphLaunch` of the same kernels.

use std::time::Instant;

use crate::Options;
use crate::graph::{Own, Reference};
use crate::harness::bare::Bare;
use crate::harness::bare_graph::BareGraphs;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

/// Its name, kernels, buffers that they write, launches of a round, rounds.
const SHAPES: [(&str, usize, usize, usize, usize); 3] = [
    ("1 kernel, 1 buffer", 1, 1, 32, 1000),
    ("10 kernels, 10 buffers", 10, 10, 32, 1000),
    ("1000 kernels, 1 buffer", 1000, 1, 4, 1500),
];

/// Graphs of three sizes.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "graph_launch",
        "Launch of a graph",
        "The host's time for one launch, as the mean over 32 (of 1000 kernels: 4) with the stream empty before them. \
         Beside what its kernels write, every graph names one buffer that they read. Every kernel adds a random step to \
         a total that is checked at the end.",
    )?;
    let graphs = BareGraphs::open()?;
    for (name, kernels, buffers, launches, rounds) in SHAPES {
        let mut own = Own::new(buffers)?;
        let mut reference = Reference::new(bare, &own)?;
        let executable = own.capture(kernels)?.instantiate()?;
        let captured = graphs.capture(bare, || reference.launch(kernels))?;
        let bare_executable = graphs.instantiate(&captured)?;
        let each = |start: Instant| start.elapsed().as_nanos() as f64 / launches as f64;
        let (mut own_launches, mut bare_launches) = (0, 0);
        let figure = turns(
            options.turns(20, rounds),
            &Subject {
                name,
                against: "cuGraphLaunch",
                unit: Unit::Nanoseconds,
                bytes: None,
                rule: Rule::Extra,
                goal: Some(100.0),
            },
            || {
                let start = Instant::now();
                for _ in 0..launches {
                    executable.launch(&own.stream)?;
                }
                let taken = each(start);
                own.stream.synchronize()?;
                own_launches += launches;
                Ok(taken)
            },
            || {
                let start = Instant::now();
                for _ in 0..launches {
                    graphs.launch(bare, &bare_executable)?;
                }
                let taken = each(start);
                bare.synchronize()?;
                bare_launches += launches;
                Ok(taken)
            },
        )?;
        recorder.add(figure);
        graphs.discard_executable(bare_executable)?;
        graphs.discard(captured)?;
        own.check(own_launches * kernels / buffers)?;
        reference.check(&own, bare_launches * kernels / buffers)?;
    }
    recorder.finish(&options.out)
}
