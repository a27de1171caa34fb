//! Networks in device memory where there is no device: their patterns and refusals. `tests/fake/emulated/burst_capi.rs` runs
//! them.

use selvedge::capi::burst::device_network::*;

use super::*;

#[test]
fn a_generated_network_tells_the_pattern_of_its_input() {
    // SAFETY: the pointers are to locals.
    unsafe {
        let steady = ok(|result| sv_network_s(100, 4, 10, result));
        for (network, wanted) in [(generated(100, 4), (100, 50, 150.5)), (steady, (100, 10, 2000.0))] {
            let (mut base, mut modulus, mut potential) = (0, 0, 0.0);
            check(sv_network_pattern(network, &mut base, &mut modulus, &mut potential));
            assert_eq!((base, modulus, potential), wanted);
            check(sv_release(network));
        }
        let chain = chain();
        let status = sv_network_pattern(chain, &mut 0, &mut 0, &mut 0.0);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "a network without an input of its own");
        check(sv_release(chain));
    }
}

#[test]
fn device_networks_refuse_the_cpu_and_handles_of_others() {
    let network = chain();
    let mut handle = 7;
    // SAFETY: the pointers are to locals.
    unsafe {
        let status = sv_device_network_create(network, CPU, 0, &mut handle);
        fails(
            status,
            SV_ERROR_INVALID_ARGUMENT,
            "a network in device memory needs a CUDA device, but this is the CPU",
        );
        let status = sv_device_network_g(100, 4, CPU, 0, &mut handle);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "needs a CUDA device, but this is the CPU");
        let status = sv_device_network_s(100, 4, 0, 0, 0, &mut handle);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "every: found 0; wanted 1 or more");
        let status = sv_device_network_bytes(network, &mut handle);
        fails(status, SV_ERROR_INVALID_HANDLE, "wanted the handle of a live device network");
    }
    assert_eq!(handle, 7);
    check(sv_release(network));
}
