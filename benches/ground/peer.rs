//! A copy between two devices, beside `cuMemcpyPeerAsync`.

use std::time::Instant;

use selvedge::driver::Device;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

const BYTES: usize = 1 << 30;

/// 1 GiB from device 0 to device 1, put on a stream of device 0.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "peer",
        "Copy between two devices",
        "The host's time from the call to the end of the copy, waited for, of random data that is compared at the \
         end. Peer access is on in both directions for both sides, because they share the primary contexts.",
    )?;
    if bare.device_count()? < 2 {
        recorder.skip("a copy between devices: this machine has one device.");
        return recorder.finish(&options.out);
    }
    let (near, far) = (Device::new(0)?, Device::new(1)?);
    let bare_far = Bare::open(1)?;
    if near.can_access_peer(&far)? && far.can_access_peer(&near)? {
        near.enable_peer_access(&far)?;
        far.enable_peer_access(&near)?;
    } else {
        recorder
            .skip("a direct copy: the devices cannot reach each other, so both sides go through the host.");
    }

    let mut data = vec![0u64; BYTES / 8];
    Random::new(3).fill(&mut data);
    let (stream, far_stream) = (near.stream()?, far.stream()?);
    let source = stream.upload(&data)?;
    let mut target = far_stream.zeros::<u64>(data.len())?;
    far_stream.synchronize()?;
    stream.copy(&source, &mut target)?;
    if far_stream.download(&target)? != data {
        return Err("own peer copy: the far device holds other data".into());
    }

    bare_far.make_current()?;
    let bare_target = bare_far.allocate(BYTES)?;
    bare.make_current()?;
    let bare_source = bare.allocate(BYTES)?;
    let mut pinned = bare.pinned(BYTES)?;
    pinned.words().copy_from_slice(&data);
    bare.upload(bare_source, &pinned)?;
    bare.synchronize()?;
    pinned.words().fill(0);

    let figure = turns(
        options.turns(5, 40),
        &Subject {
            name: "peer copy 1 GiB",
            against: "cuMemcpyPeerAsync",
            unit: Unit::Microseconds,
            bytes: Some((BYTES as u64, BYTES as u64)),
            rule: Rule::Speed,
            goal: Some(0.97),
        },
        || {
            let start = Instant::now();
            stream.copy(&source, &mut target)?;
            stream.synchronize()?;
            Ok(start.elapsed().as_secs_f64() * 1e6)
        },
        || {
            let start = Instant::now();
            bare.copy_peer((bare_target, &bare_far), (bare_source, bare), BYTES)?;
            bare.synchronize()?;
            Ok(start.elapsed().as_secs_f64() * 1e6)
        },
    )?;

    if far_stream.download(&target)? != data {
        return Err("own peer copy: the far device holds other data".into());
    }
    bare_far.make_current()?;
    bare_far.download(&mut pinned, bare_target)?;
    bare_far.synchronize()?;
    if pinned.words() != &data[..] {
        return Err("bare peer copy: the far device holds other data".into());
    }
    bare_far.free(bare_target)?;
    bare.make_current()?;
    bare.free(bare_source)?;
    bare.free_pinned(pinned)?;
    recorder.add(figure);
    recorder.finish(&options.out)
}
