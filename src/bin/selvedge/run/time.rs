//! How long a kernel takes, how its times spread, and how full it makes the device.
//!
//! Times are the device's own, between two events, and the queue is kept full, so that the host's part is not in them. An
//! event tells half a microsecond. So a launch that takes less than [`LONG`] is not timed alone: a sample is then a graph
//! of as many launches as take about that long, divided by their count. A graph, because the host needs some two
//! microseconds for a launch, and would otherwise be what is timed.

use selvedge::Result;
use selvedge::driver::{Attribute, Device, ExecutableGraph, Function, LaunchConfig, Stream};
use serde_json::{Value, json};

use super::{Uploaded, launch};
use crate::output::{self, Progress, Style, Table};

/// A sample this long, in seconds, is known to one percent.
const LONG: f64 = 50e-6;
/// The most launches of a sample.
const MAX_LAUNCHES: u32 = 64;
/// Launches, and then samples, before the timed ones.
const WARM_UP: u32 = 3;
/// Samples that are queued at once: enough to keep the device busy, few enough events.
const QUEUED: usize = 64;
/// Buckets of equal width, up to the time that [`USUAL`] of the samples keep to; the rest is in one more.
const BUCKETS: usize = 8;
const USUAL: f64 = 0.95;
/// Letters of the longest bar.
const BAR: usize = 40;

/// Times of a launch, in seconds, ascending.
#[derive(Debug)]
pub struct Times {
    samples: Vec<f64>,
    launches_per_sample: u32,
}

/// Samples from `from` on, below `to`; the last bucket ends with its `to`.
#[derive(Debug, PartialEq)]
struct Bucket {
    from: f64,
    to: f64,
    count: usize,
}

/// How many blocks of a launch a multiprocessor holds at once.
#[derive(Debug)]
pub struct Occupancy {
    blocks: u32,
    /// Of the threads that a multiprocessor can hold, 0 to 1. A block takes whole warps.
    fraction: f64,
}

/// Takes `samples` samples of this launch.
pub fn time(
    function: &Function,
    stream: &Stream,
    config: LaunchConfig,
    uploaded: &mut [Uploaded],
    samples: u32,
) -> Result<Times> {
    let progress = Progress::of_steps("timing", u64::from(samples));
    for _ in 0..WARM_UP {
        launch(function, stream, config, uploaded)?;
    }
    let mut all = || {
        for _ in 0..WARM_UP {
            launch(function, stream, config, uploaded)?;
        }
        Ok(())
    };
    let some = measured(stream, 1, &mut all)?.first().copied().unwrap_or_default();
    let launches_per_sample = launches_for(some / f64::from(WARM_UP));
    let graph = match launches_per_sample {
        1 => None,
        count => Some(graph_of(function, stream, config, uploaded, count)?),
    };
    let mut sample = || match &graph {
        None => launch(function, stream, config, uploaded),
        Some(graph) => graph.launch(stream),
    };
    for _ in 0..WARM_UP {
        sample()?;
    }
    let mut times = Vec::with_capacity(samples as usize);
    while times.len() < samples as usize {
        let queued = QUEUED.min(samples as usize - times.len());
        let measured = measured(stream, queued, &mut sample)?;
        times.extend(measured.iter().map(|time| time / f64::from(launches_per_sample)));
        progress.set(times.len() as u64);
    }
    times.sort_by(f64::total_cmp);
    Ok(Times { samples: times, launches_per_sample })
}

/// How many launches of this length make a sample.
fn launches_for(launch: f64) -> u32 {
    if launch >= LONG {
        return 1;
    }
    // A time of 0 gives the most.
    let wanted = (LONG / launch).ceil();
    if wanted >= f64::from(MAX_LAUNCHES) { MAX_LAUNCHES } else { wanted as u32 }
}

fn graph_of(
    function: &Function,
    stream: &Stream,
    config: LaunchConfig,
    uploaded: &mut [Uploaded],
    launches: u32,
) -> Result<ExecutableGraph> {
    let (graph, ()) = stream.capture(|stream| {
        for _ in 0..launches {
            launch(function, stream, config, uploaded)?;
        }
        Ok(())
    })?;
    graph.instantiate()
}

/// Returns the seconds of each of `count` runs of `work`, queued together.
fn measured(stream: &Stream, count: usize, work: &mut dyn FnMut() -> Result<()>) -> Result<Vec<f64>> {
    let device = stream.device();
    let mut events = Vec::with_capacity(count);
    for _ in 0..count {
        let (mut start, mut end) = (device.timing_event()?, device.timing_event()?);
        start.record(stream)?;
        work()?;
        end.record(stream)?;
        events.push((start, end));
    }
    stream.synchronize()?;
    events.iter().map(|(start, end)| Ok(f64::from(start.elapsed_ms(end)?) / 1e3)).collect()
}

impl Times {
    fn at(&self, part: f64) -> f64 {
        let last = self.samples.len().saturating_sub(1);
        self.samples.get((part * last as f64).round() as usize).copied().unwrap_or_default()
    }

    fn buckets(&self) -> Vec<Bucket> {
        let (least, usual, greatest) = (self.at(0.0), self.at(USUAL), self.at(1.0));
        let count = |from: f64, to: f64, with_end: bool| {
            let inside = |time: &&f64| **time >= from && (**time < to || (with_end && **time <= to));
            self.samples.iter().filter(inside).count()
        };
        let mut buckets = Vec::new();
        let width = (usual - least) / BUCKETS as f64;
        // Equal times, or so close that no number lies between.
        let equal = least + width <= least;
        let edges = if equal { 1 } else { BUCKETS };
        for index in 0..edges {
            let from = least + width * index as f64;
            let to = if index + 1 == edges { usual } else { least + width * (index + 1) as f64 };
            buckets.push(Bucket { from, to, count: count(from, to, index + 1 == edges) });
        }
        let rest = self.samples.iter().filter(|time| **time > usual).count();
        if rest > 0 {
            buckets.push(Bucket { from: usual, to: greatest, count: rest });
        }
        buckets
    }

    /// Times, rate over the bytes of all array arguments, occupancy, and the histogram.
    pub fn text(&self, bytes: u64, occupancy: &Occupancy, style: Style) -> String {
        let names = ["samples", "median", "min", "max", "rate", "over"];
        let mut table = Table::with_head(">>>>>>", names);
        table.row([
            self.samples.len().to_string(),
            output::seconds(self.at(0.5)),
            output::seconds(self.at(0.0)),
            output::seconds(self.at(1.0)),
            output::rate(bytes, self.at(0.5)),
            output::bytes(bytes),
        ]);
        let mut text = table.render(style);
        if self.launches_per_sample > 1 {
            text += &format!("  a sample is a graph of {} launches\n", self.launches_per_sample);
        }
        text += &format!(
            "  occupancy: {} on a multiprocessor, {:.0} % of its threads\n\n",
            output::counted(occupancy.blocks.into(), "block"),
            100.0 * occupancy.fraction
        );

        let buckets = self.buckets();
        let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or_default();
        let mut table = Table::with_head(">>><", ["from", "to", "samples", ""]);
        for bucket in &buckets {
            let bar = output::bar(bucket.count as f64 / most.max(1) as f64, BAR);
            table.row([
                output::seconds(bucket.from),
                output::seconds(bucket.to),
                bucket.count.to_string(),
                bar,
            ]);
        }
        text + &table.render(style)
    }

    pub fn json(&self, bytes: u64, occupancy: &Occupancy) -> Value {
        let buckets = self.buckets();
        let buckets = buckets.iter().map(
            |bucket| json!({ "from_seconds": bucket.from, "to_seconds": bucket.to, "samples": bucket.count }),
        );
        json!({
            "samples": self.samples.len(),
            "launches_per_sample": self.launches_per_sample,
            "median_seconds": self.at(0.5),
            "min_seconds": self.at(0.0),
            "max_seconds": self.at(1.0),
            "argument_bytes": bytes,
            "gigabytes_per_second": output::gigabytes_per_second(bytes, self.at(0.5)),
            "occupancy": {
                "blocks_per_multiprocessor": occupancy.blocks,
                "fraction_of_threads": occupancy.fraction,
            },
            "histogram": buckets.collect::<Vec<_>>(),
        })
    }
}

impl Occupancy {
    /// Of blocks of this shape.
    pub fn of(function: &Function, device: Device, threads: u64, shared: u32) -> Result<Occupancy> {
        let blocks = function.occupancy(u32::try_from(threads).unwrap_or(u32::MAX), shared)?;
        let warp = u64::from(device.attribute(Attribute::WARP_SIZE)?.unsigned_abs()).max(1);
        let most = device.attribute(Attribute::MAX_THREADS_PER_MULTIPROCESSOR)?;
        let taken = u64::from(blocks) * threads.div_ceil(warp) * warp;
        Ok(Occupancy { blocks, fraction: taken as f64 / f64::from(most.max(1)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(samples: &[f64]) -> Times {
        Times { samples: samples.to_vec(), launches_per_sample: 1 }
    }

    #[test]
    fn short_launches_are_timed_together() {
        assert_eq!(launches_for(1e-3), 1);
        assert_eq!(launches_for(LONG), 1);
        assert_eq!(launches_for(49e-6), 2);
        assert_eq!(launches_for(10e-6), 5);
        assert_eq!(launches_for(1e-9), MAX_LAUNCHES);
        assert_eq!(launches_for(0.0), MAX_LAUNCHES);
    }

    #[test]
    fn every_sample_is_in_one_bucket() {
        let spread: Vec<f64> = (0..1000).map(f64::from).collect();
        let buckets = times(&spread).buckets();
        assert_eq!(buckets.len(), BUCKETS + 1);
        assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<usize>(), 1000);
        assert!(buckets[..BUCKETS].iter().all(|bucket| (118..=120).contains(&bucket.count)), "{buckets:?}");
        assert!(buckets.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert_eq!((buckets[0].from, buckets[BUCKETS].to), (0.0, 999.0));
    }

    #[test]
    fn an_outlier_does_not_hide_the_rest() {
        let mut samples = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9].repeat(10);
        samples.push(1000.0);
        samples.sort_by(f64::total_cmp);
        let buckets = times(&samples).buckets();
        assert_eq!((buckets[BUCKETS].to, buckets[BUCKETS].count), (1000.0, 1));
        assert!(buckets[..BUCKETS].iter().all(|bucket| bucket.count >= 10), "{buckets:?}");
    }

    #[test]
    fn equal_times_are_one_bucket() {
        assert_eq!(times(&[2.0; 5]).buckets(), [Bucket { from: 2.0, to: 2.0, count: 5 }]);
        assert_eq!(times(&[2.0]).buckets(), [Bucket { from: 2.0, to: 2.0, count: 1 }]);
    }

    #[test]
    fn the_median_is_of_the_middle() {
        assert_eq!(times(&[1.0, 2.0, 30.0]).at(0.5), 2.0);
        assert_eq!(times(&[]).at(0.5), 0.0);
    }
}
