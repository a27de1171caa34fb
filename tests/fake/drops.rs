//! Every order in which values in use can be dropped: on this thread, on another, at a thread's exit, and with another
//! device's context current.

use std::cell::RefCell;

use selvedge::driver::{Device, LaunchConfig};

use super::kernels::PTX;
use super::support::Fake;
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

/// Whatever is dropped.
type Held = Box<dyn std::any::Any + Send>;

thread_local! {
    static AT_EXIT: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

/// How a set of values is dropped.
#[derive(Clone, Copy, Debug)]
enum Where {
    Here,
    OtherThread,
    ThreadExit,
    OtherDeviceCurrent,
}

/// A set of values with work under way that uses each of them.
fn in_use(device: Device) -> Result<Vec<Held>, Box<dyn std::error::Error>> {
    let (first, second) = (device.stream()?, device.stream()?);
    let module = device.load(PTX.as_bytes())?;
    let (mix, make) = (module.function("mix")?, module.function("make")?);
    let mut a = first.uninitialized::<u8>(64)?;
    let mut b = second.zeros::<u8>(64)?;
    let config = LaunchConfig::new(1, 32);
    // SAFETY: the fake driver's kernels touch the bytes that their arguments name.
    unsafe {
        make.launch(&first, config, (&mut a, 64u64, 1u32))?;
        mix.launch(&second, config, (&a, &mut b, 64u64, 2u32))?;
        mix.launch(&first, config, (&a, &mut b, 64u64, 3u32))?;
    }
    let transfer = second.download_async(&b, device.pinned(64)?)?;
    Ok(vec![
        Box::new(first),
        Box::new(second),
        Box::new(a),
        Box::new(b),
        Box::new(transfer),
        Box::new((module, mix, make)),
    ])
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for rest in permutations(count - 1) {
        for place in 0..=rest.len() {
            let mut order = rest.clone();
            order.insert(place, count - 1);
            all.push(order);
        }
    }
    all
}

fn drop_in_order(held: Vec<Held>, order: &[usize]) {
    let mut held: Vec<Option<Held>> = held.into_iter().map(Some).collect();
    for &at in order {
        held[at] = None;
    }
}

/// Child: all orders in all places.
pub fn child(fake: &Fake) -> Result<(), Box<dyn std::error::Error>> {
    let (device, other) = (Device::new(0)?, Device::new(1)?);
    drop(other.stream()?);
    let orders = permutations(6);
    assert_eq!(orders.len(), 720);
    for place in [Where::Here, Where::OtherThread, Where::ThreadExit, Where::OtherDeviceCurrent] {
        for (at, order) in orders.iter().enumerate() {
            fake.set_seed(at as u64 + 1);
            fake.set_strict(at % 2 == 0);
            let held = in_use(device)?;
            match place {
                Where::Here => drop_in_order(held, order),
                Where::OtherThread => {
                    let order = order.clone();
                    std::thread::spawn(move || drop_in_order(held, &order))
                        .join()
                        .map_err(|_| "a drop panicked")?;
                }
                Where::ThreadExit => {
                    let mut held: Vec<Option<Held>> = held.into_iter().map(Some).collect();
                    let ordered: Vec<Held> = order.iter().filter_map(|&at| held[at].take()).collect();
                    let keep = move || AT_EXIT.with_borrow_mut(|at_exit| at_exit.extend(ordered));
                    std::thread::spawn(keep).join().map_err(|_| "a drop at thread exit panicked")?;
                }
                Where::OtherDeviceCurrent => {
                    fake.foreign_set(fake.foreign_context(1));
                    drop_in_order(held, order);
                    if !fake.foreign_is_current() {
                        return Err(
                            format!("{place:?} {order:?}: the other context is not current again").into()
                        );
                    }
                    fake.foreign_set(0);
                }
            }
            scenario::settle()?;
            scenario::check_end(fake).map_err(|error| format!("{place:?} {order:?}: {error}"))?;
            fake.reset();
        }
    }
    Ok(())
}

pub fn tests() -> Vec<Test> {
    ["", "plain", "none", "poison", "driver"]
        .into_iter()
        .map(|pool| {
            let name =
                format!("drops::every_order_with_pool_{}", if pool.is_empty() { "cached" } else { pool });
            Test::new(name, move || {
                let settings = [("SELVEDGE_POOL", pool)];
                children::must_succeed(&Variant::new(12040), "drops", &[], &settings).map(drop)
            })
        })
        .collect()
}
