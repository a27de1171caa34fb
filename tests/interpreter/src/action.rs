//! The actions of instructions of interpreted kernels.

use std::collections::HashMap;

use super::kernel::{Action, Reader, Shuffle, ShuffleMode, Source, list, operands};

/// Returns the action of an instruction with these operands.
pub(super) fn action(reader: &Reader, places: &HashMap<String, usize>, mnemonic: &str, rest: &str) -> Action {
    // Loads have no caches to ask for more.
    let mnemonic = &*mnemonic.replace(".L2::128B", "");
    // Threads run one at a time, so no access is torn.
    let volatile = mnemonic.contains(".volatile.");
    let parts: Vec<&str> = mnemonic.split('.').filter(|part| *part != "volatile").collect();
    let kind = parts[parts.len() - 1];
    let bytes = || kind[1..].parse::<usize>().map_or(0, |bits| bits / 8);
    let all = operands(rest);
    let place = |text: &str| {
        let text = text.trim_matches(['[', ']']).to_owned();
        match text.split_once('+') {
            Some((base, offset)) => (base.to_owned(), offset.parse::<u64>().expect("an offset")),
            None => (text, 0),
        }
    };
    let at = |text: &str| {
        let (base, offset) = place(text);
        (reader.register(&base), offset)
    };
    match (parts[0], parts.get(1).copied()) {
        ("bra", _) => Action::Jump(usize::MAX),
        ("ret", _) => Action::Return,
        ("ld", Some("param")) => {
            let (base, offset) = place(&all[1]);
            Action::Parameter {
                result: reader.register(&all[0]),
                offset: places[&base] + offset as usize,
                bytes: bytes(),
            }
        }
        // Threads run one at a time, so their writes have an order.
        ("membar", _) => Action::Nothing,
        ("bar", Some("sync")) => {
            assert_eq!(rest, "0", "the one barrier");
            Action::Barrier(None)
        }
        ("bar", Some("red")) => {
            assert_eq!((mnemonic, &*all[1]), ("bar.red.or.pred", "0"), "the one barrier");
            Action::Barrier(Some([reader.register(&all[0]), reader.register(&all[2])]))
        }
        ("vote", _) => {
            assert_eq!((mnemonic, &*all[2]), ("vote.sync.any.pred", "-1"), "all of a warp");
            Action::Shuffle(Shuffle {
                result: reader.register(&all[0]),
                value: reader.register(&all[1]),
                which: Source::Immediate(0),
                mode: ShuffleMode::Any,
                mask: 0,
            })
        }
        ("bar", Some("warp")) => {
            assert_eq!(rest, "-1", "all of a warp");
            Action::WarpBarrier
        }
        ("barrier", Some("cluster")) => match mnemonic {
            "barrier.cluster.arrive.relaxed.aligned" | "barrier.cluster.arrive.release.aligned" => {
                Action::Arrive
            }
            "barrier.cluster.wait.aligned" | "barrier.cluster.wait.acquire.aligned" => Action::ClusterBarrier,
            _ => panic!("instruction {mnemonic}"),
        },
        ("cp", Some("async")) if mnemonic == "cp.async.wait_all" => Action::WaitForCopies(None),
        ("cp", Some("async")) if mnemonic == "cp.async.wait_group" => {
            Action::WaitForCopies(Some(rest.parse().expect("a number")))
        }
        ("cp", Some("async")) if mnemonic == "cp.async.commit_group" => Action::CommitCopies,
        ("cp", Some("async")) => {
            let bytes: usize = all[2].parse().expect("a number");
            let wanted = if bytes == 16 { "cp.async.cg.shared.global" } else { "cp.async.ca.shared.global" };
            assert!(mnemonic == wanted && matches!(bytes, 4 | 8 | 16), "{mnemonic} of {bytes}");
            let read = all.get(3).map(|name| reader.register(name));
            Action::Copy { target: at(&all[0]), source: at(&all[1]), bytes, read }
        }
        ("fence", _) => {
            assert_eq!(mnemonic, "fence.mbarrier_init.release.cluster");
            Action::FenceBarriers
        }
        ("mbarrier", _) => match mnemonic {
            "mbarrier.init.shared::cta.b64" => {
                assert_eq!(all[1], "1", "the arrivals at a barrier");
                Action::InitBarrier(at(&all[0]))
            }
            "mbarrier.arrive.expect_tx.shared::cta.b64" => {
                assert_eq!(all[0], "_");
                Action::ArriveExpect { barrier: at(&all[1]), bytes: reader.source(&all[2]) }
            }
            "mbarrier.try_wait.parity.shared::cta.b64" => Action::TryWait {
                result: reader.register(&all[0]),
                barrier: at(&all[1]),
                parity: reader.source(&all[2]),
            },
            _ => panic!("instruction {mnemonic}"),
        },
        ("st", Some("async")) => {
            let wanted = "st.async.shared::cluster.mbarrier::complete_tx::bytes.";
            assert!(mnemonic.starts_with(wanted) && matches!(bytes(), 4 | 8), "{mnemonic}");
            Action::StoreAsync {
                target: at(&all[0]),
                value: reader.source(&all[1]),
                bytes: bytes(),
                barrier: at(&all[2]),
            }
        }
        ("mapa", _) => {
            assert_eq!(mnemonic, "mapa.shared::cluster.u32");
            let (result, address) = (reader.register(&all[0]), reader.register(&all[1]));
            Action::Map { result, address, block: reader.source(&all[2]) }
        }
        ("ld", Some("global" | "shared")) => {
            let (base, offset) = place(&all[1]);
            let results: Vec<usize> = list(&all[0]).into_iter().map(|name| reader.register(name)).collect();
            check_width(&parts, results.len());
            let signed = kind.starts_with('s');
            let (address, shared) = (reader.register(&base), parts[1] == "shared");
            Action::Load { results, address, offset, bytes: bytes(), signed, shared, volatile }
        }
        ("st", Some("global" | "shared")) => {
            let (base, offset) = place(&all[0]);
            let values: Vec<Source> = list(&all[1]).into_iter().map(|name| reader.source(name)).collect();
            check_width(&parts, values.len());
            Action::Store {
                values,
                address: reader.register(&base),
                offset,
                bytes: bytes(),
                shared: parts[1] == "shared",
                volatile,
            }
        }
        ("mov", _) if all[1].starts_with('{') => {
            let names = list(&all[1]);
            let halves = [reader.register(names[0]), reader.register(names[1])];
            let bits = if kind == "b64" { 32 } else { 16 };
            Action::Pack { result: reader.register(&all[0]), halves, bits }
        }
        ("mov", _) if all[0].starts_with('{') => {
            let names = list(&all[0]);
            let results = [reader.register(names[0]), reader.register(names[1])];
            let bits = if kind == "b64" { 32 } else { 16 };
            Action::Unpack { results, whole: reader.register(&all[1]), bits }
        }
        ("shfl", _) => {
            let mode = match mnemonic {
                "shfl.sync.down.b32" => ShuffleMode::Down,
                "shfl.sync.bfly.b32" => ShuffleMode::Butterfly,
                "shfl.sync.idx.b32" => ShuffleMode::Index,
                _ => panic!("instruction {mnemonic}"),
            };
            let clamp = all[3].parse::<usize>().expect("a number");
            let is_whole = clamp == 31 || mode == ShuffleMode::Index;
            assert!(clamp % 32 == 31 && is_whole && all[4] == "-1", "all of a warp");
            Action::Shuffle(Shuffle {
                result: reader.register(&all[0]),
                value: reader.register(&all[1]),
                which: reader.source(&all[2]),
                mode,
                mask: clamp >> 8,
            })
        }
        ("atom", _) => {
            let (base, offset) = place(&all[1]);
            assert_eq!(offset, 0, "an offset");
            let (result, address) = (reader.register(&all[0]), reader.register(&base));
            let first = reader.source(&all[2]);
            match mnemonic {
                "atom.global.add.u32" => Action::Add { result, address, value: first },
                "atom.global.cas.b32" => {
                    Action::Swap { result, address, expected: first, value: reader.source(&all[3]) }
                }
                _ => panic!("instruction {mnemonic}"),
            }
        }
        _ => Action::Pure {
            result: reader.register(&all[0]),
            function: super::pure::function(mnemonic).unwrap_or_else(|| panic!("instruction {mnemonic}")),
            operands: all[1..].iter().map(|text| reader.source(text)).collect(),
        },
    }
}

/// Checks that a vector has the width that the mnemonic states.
fn check_width(parts: &[&str], found: usize) {
    let said = parts
        .iter()
        .find_map(|part| part.strip_prefix('v').and_then(|width| width.parse().ok()))
        .unwrap_or(1);
    assert_eq!(found, said, "{parts:?}");
}
