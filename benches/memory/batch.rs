//! Many small copies on the device in one call, beside as many calls.

use std::time::Instant;

use selvedge::driver::{Device, DeviceBuffer, DeviceSlice, DeviceSliceMut, Stream};

use crate::Options;
use crate::harness::bare::{Address, Bare};
use crate::harness::machine::Recorder;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

const COPIES: usize = 256;

/// Two sizes, each against a loop of ours and the driver's.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "batch",
        "256 copies on the device in one call",
        "From 256 buffers to 256 others: the host's time from the call to the end of the copies, waited for, as one call \
         of `Stream::copy_batch` and as a call for each. Random data, all of which is compared at the end.",
    )?;
    for (bytes, name) in [(4 << 10, "4 KiB"), (64 << 10, "64 KiB")] {
        size(bare, options, &mut recorder, bytes, name)?;
    }
    recorder.finish(&options.out)
}

/// Buffers with data, and buffers for it.
struct Buffers {
    data: Vec<Vec<u64>>,
    from: Vec<DeviceBuffer<u64>>,
    to: Vec<DeviceBuffer<u64>>,
}

type Pairs<'a> = Vec<(DeviceSlice<'a, u64>, DeviceSliceMut<'a, u64>)>;

impl Buffers {
    fn new(stream: &Stream, bytes: usize, seed: u64) -> Result<Buffers, Failure> {
        let (mut random, mut buffers) =
            (Random::new(seed), Buffers { data: Vec::new(), from: Vec::new(), to: Vec::new() });
        for _ in 0..COPIES {
            let mut words = vec![0; bytes / 8];
            random.fill(&mut words);
            buffers.from.push(stream.upload(&words)?);
            buffers.to.push(stream.zeros(bytes / 8)?);
            buffers.data.push(words);
        }
        stream.synchronize()?;
        Ok(buffers)
    }

    fn pairs(&mut self) -> Result<Pairs<'_>, Failure> {
        let both = self.from.iter().zip(&mut self.to);
        Ok(both
            .map(|(from, to)| Ok((from.slice(..)?, to.slice_mut(..)?)))
            .collect::<selvedge::Result<_>>()?)
    }

    fn check(&self, stream: &Stream) -> Result<(), Failure> {
        for (to, data) in self.to.iter().zip(&self.data) {
            if stream.download(to)? != *data {
                return Err("a copy brought other data".into());
            }
        }
        Ok(())
    }
}

fn size(
    bare: &Bare,
    options: &Options,
    recorder: &mut Recorder,
    bytes: usize,
    name: &str,
) -> Result<(), Failure> {
    let stream = Device::new(0)?.stream()?;
    let (mut batched, mut looped) = (Buffers::new(&stream, bytes, 1)?, Buffers::new(&stream, bytes, 2)?);
    let mut bare_pairs: Vec<(Address, Address)> = Vec::new();
    let mut words = bare.pinned(bytes)?;
    for data in &batched.data {
        let (from, to) = (bare.allocate(bytes)?, bare.allocate(bytes)?);
        words.words().copy_from_slice(data);
        bare.upload(from, &words)?;
        bare.synchronize()?;
        bare_pairs.push((from, to));
    }
    let moved = Some(((COPIES * bytes) as u64, (COPIES * bytes) as u64));
    let names = [format!("256 x {name}, beside own copies"), format!("256 x {name}, beside bare copies")];
    let subject = |name, against| Subject {
        name,
        against,
        unit: Unit::Microseconds,
        bytes: moved,
        rule: Rule::Time,
        goal: None,
    };
    let microseconds = |start: Instant| start.elapsed().as_secs_f64() * 1e6;

    let (mut list, mut singles) = (batched.pairs()?, looped.pairs()?);
    let mut batch = || {
        let start = Instant::now();
        stream.copy_batch(&mut list)?;
        stream.synchronize()?;
        Ok(microseconds(start))
    };
    recorder.add(turns(
        options.turns(5, 100),
        &subject(&names[0], "256 calls of Stream::copy"),
        &mut batch,
        || {
            let start = Instant::now();
            for (from, to) in &mut singles {
                stream.copy(from, to)?;
            }
            stream.synchronize()?;
            Ok(microseconds(start))
        },
    )?);
    recorder.add(turns(
        options.turns(5, 100),
        &subject(&names[1], "256 calls of cuMemcpyDtoDAsync"),
        &mut batch,
        || {
            let start = Instant::now();
            for (from, to) in &bare_pairs {
                bare.copy(*to, *from, bytes)?;
            }
            bare.synchronize()?;
            Ok(microseconds(start))
        },
    )?);

    drop((list, singles));
    batched.check(&stream)?;
    looped.check(&stream)?;
    for ((from, to), data) in bare_pairs.into_iter().zip(&batched.data) {
        bare.download(&mut words, to)?;
        bare.synchronize()?;
        if words.words() != &data[..] {
            return Err("a bare copy brought other data".into());
        }
        bare.free(from)?;
        bare.free(to)?;
    }
    bare.free_pinned(words)
}
