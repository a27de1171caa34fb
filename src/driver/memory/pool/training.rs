//! A generator of traces that resemble training: heavy-tailed sizes, layers forward and backward, several streams.
//!
//! One model after another is created and trained for some steps. A step allocates the activations of its layers going
//! forward, with workspaces in between, and frees them going backward, where gradients live until the update. Sequence
//! lengths vary from step to step, so no two steps request quite the same sizes. Occasionally an evaluation with other
//! sizes runs, or a checkpoint is written. Small tensors (losses, metrics, masks) of any age come and go throughout.

use super::trace::{MemoryTrace, TraceEvent};

/// The streams of a trace: compute, copies, communication.
const COMPUTE: u32 = 1;
const COPIES: u32 = 2;
const COMMUNICATION: u32 = 3;

/// A small random generator (xorshift64*), so that traces are the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Pareto with exponent 1 from 512 bytes, cut at 64 MiB: every doubling is half as frequent.
    fn small(&mut self) -> u64 {
        ((512.0 / (1.0 - self.unit())) as u64).min(64 << 20)
    }

    /// Log-normal around `middle`, within a factor of 32.
    fn around(&mut self, middle: u64) -> u64 {
        let sum: f64 = (0..12).map(|_| self.unit()).sum();
        let factor = (0.6 * (sum - 6.0)).exp().clamp(1.0 / 32.0, 32.0);
        ((middle as f64 * factor) as u64).max(1)
    }
}

struct Writer {
    events: Vec<TraceEvent>,
    requests: u32,
    wanted: u32,
    random: Random,
    /// Small tensors of any age.
    dust: Vec<u32>,
}

impl Writer {
    fn done(&self) -> bool {
        self.requests >= self.wanted
    }

    fn allocate(&mut self, stream: u32, bytes: u64) -> Option<u32> {
        if self.done() {
            return None;
        }
        self.events.push(TraceEvent::Allocate { stream, bytes: bytes.max(1) });
        self.requests += 1;
        Some(self.requests - 1)
    }

    fn free(&mut self, allocation: Option<u32>) {
        if let Some(allocation) = allocation {
            self.events.push(TraceEvent::Free { allocation });
        }
    }

    fn free_all(&mut self, allocations: Vec<Option<u32>>) {
        for allocation in allocations {
            self.free(allocation);
        }
    }

    /// Allocates and frees a short-lived tensor.
    fn brief(&mut self, stream: u32, bytes: u64) {
        let allocation = self.allocate(stream, bytes);
        self.free(allocation);
    }

    /// Allocates and frees small tensors of any age.
    fn sprinkle(&mut self) {
        for _ in 0..self.random.below(4) {
            let bytes = self.random.small();
            let stream = if self.random.below(8) == 0 { COPIES } else { COMPUTE };
            let allocation = self.allocate(stream, bytes);
            self.dust.extend(allocation);
        }
        while self.dust.len() > 200 {
            let at = self.random.below(self.dust.len() as u64) as usize;
            let old = self.dust.swap_remove(at);
            self.free(Some(old));
        }
    }

    /// Generates one model: its weights, some hundred steps, its end.
    fn model(&mut self) {
        let layers = 4 + self.random.below(32);
        let width = 256 * (1 + self.random.below(10));
        let vocabulary = 1000 * (1 + self.random.below(60));
        let mut kept = vec![self.allocate(COMPUTE, vocabulary * width * 2)];
        for _ in 0..layers {
            for weight in [3 * width * width, width * width, 4 * width * width, 4 * width * width] {
                // Half precision; the optimiser stores three times that in full precision.
                kept.push(self.allocate(COMPUTE, weight * 2));
                kept.push(self.allocate(COMPUTE, weight * 12));
                kept.push(self.allocate(COMPUTE, width * 4));
            }
        }
        let steps = 50 + self.random.below(400);
        for step in 0..steps {
            if self.done() {
                break;
            }
            let batch = 1 + self.random.below(8);
            let length = self.random.around(512).clamp(16, 8192);
            let evaluates = step % 100 == 99;
            self.step(layers, width, vocabulary, (batch * length).min(16 << 10), evaluates);
        }
        self.free_all(kept);
    }

    fn step(&mut self, layers: u64, width: u64, vocabulary: u64, tokens: u64, evaluates: bool) {
        let input = self.allocate(COPIES, tokens * 8);
        let mut activations = Vec::new();
        for _ in 0..layers {
            let mut layer = Vec::new();
            for part in [2, 6, 2, 2, 8, 8, 2] {
                layer.push(self.allocate(COMPUTE, tokens * width * part));
                if self.random.below(3) == 0 {
                    let workspace = self.random.around(8 << 20);
                    self.brief(COMPUTE, workspace);
                }
            }
            layer.push(self.allocate(COMPUTE, tokens * 4));
            self.sprinkle();
            if evaluates {
                self.free_all(layer);
            } else {
                activations.push(layer);
            }
        }
        let logits = self.allocate(COMPUTE, tokens.min(4096) * vocabulary * 2);
        let mut buckets = Vec::new();
        while let Some(layer) = activations.pop() {
            let gradient = self.allocate(COMPUTE, tokens * width * 2);
            let weights: Vec<_> =
                [6, 2, 8, 8].into_iter().map(|part| self.allocate(COMPUTE, part * width * width)).collect();
            for activation in layer.into_iter().rev() {
                if self.random.below(2) == 0 {
                    let workspace = self.random.around(4 << 20);
                    self.brief(COMPUTE, workspace);
                }
                self.free(activation);
            }
            self.free(gradient);
            buckets.push(self.allocate(COMMUNICATION, 24 * width * width));
            if buckets.len() > 2 {
                let sent = buckets.remove(0);
                self.free(sent);
            }
            self.free_all(weights);
            self.sprinkle();
        }
        self.free_all(buckets);
        self.free(logits);
        self.free(input);
    }
}

impl MemoryTrace {
    /// Generates a trace that resembles training, with this many requests. The same seed gives the same trace.
    ///
    /// Sizes are heavy-tailed, from 512 bytes to gigabytes: permanent weights, activations freed in reverse order,
    /// gradients, workspaces, and lengths that vary from step to step, on a few streams, with evaluations in between.
    pub fn training_like(seed: u64, requests: u32) -> MemoryTrace {
        let mut writer = Writer {
            events: Vec::new(),
            requests: 0,
            wanted: requests,
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            dust: Vec::new(),
        };
        while !writer.done() {
            writer.model();
        }
        MemoryTrace { device: format!("training-like, seed {seed}"), events: writer.events }
    }
}
