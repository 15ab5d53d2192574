//! Which writer has the frames of which CPU.

use std::ops::Range;

/// The CPUs, and with them their rings, in shares one behind the other. Queues are spread
/// over CPUs by hashes: shares of as many CPUs have about as many frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    ring_cpus: Vec<u32>,
    writers: usize,
    /// By the number of the CPU.
    of_cpu: Vec<usize>,
}

impl Shares {
    /// The rings of `ring_cpus` among so many `writers`, from 1 to as many as there are rings.
    pub fn new(ring_cpus: &[u32], writers: usize) -> Self {
        let cpus = ring_cpus.iter().max().map_or(0, |last| *last as usize + 1);
        let mut of_cpu = vec![0; cpus];
        for (ring, cpu) in ring_cpus.iter().enumerate() {
            of_cpu[*cpu as usize] = ring * writers / ring_cpus.len();
        }
        Self {
            ring_cpus: ring_cpus.to_vec(),
            writers,
            of_cpu,
        }
    }

    /// One writer has all.
    pub fn all() -> Self {
        Self::new(&[], 1)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.writers
    }

    /// The rings of a writer, by their index.
    pub fn rings(&self, writer: usize) -> Range<usize> {
        let first = |writer: usize| (self.ring_cpus.len() * writer).div_ceil(self.writers);
        first(writer)..first(writer + 1)
    }

    /// The CPUs of a writer that have a ring.
    pub fn cpus(&self, writer: usize) -> &[u32] {
        &self.ring_cpus[self.rings(writer)]
    }

    /// The writer that has the frames of `cpu`. Those of a CPU without a ring, which are lost,
    /// the first one counts.
    pub fn of(&self, cpu: u32) -> usize {
        self.of_cpu.get(cpu as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ring_is_in_one_share() {
        for cpus in 1..20 {
            let ring_cpus: Vec<u32> = (0..cpus).map(|cpu| 3 * cpu).collect();
            for writers in 1..=cpus as usize {
                let shares = Shares::new(&ring_cpus, writers);
                let rings: Vec<_> = (0..writers).flat_map(|it| shares.rings(it)).collect();
                assert_eq!(rings, (0..cpus as usize).collect::<Vec<_>>());
                for writer in 0..writers {
                    assert!(!shares.rings(writer).is_empty(), "{writer} of {writers}");
                    for cpu in shares.cpus(writer) {
                        assert_eq!(shares.of(*cpu), writer, "CPU {cpu}, {writers} writers");
                    }
                }
                let lengths = (0..writers).map(|it| shares.rings(it).len());
                let (least, most) = (lengths.clone().min(), lengths.max());
                assert!(most.unwrap() - least.unwrap() <= 1);
                assert_eq!(shares.of(1), 0, "no ring");
            }
        }
        assert_eq!(Shares::all().of(7), 0);
    }
}
