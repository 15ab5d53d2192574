//! Series of delays by models whose distribution is known.

use std::collections::VecDeque;

use statrs::function::erf::erfc;

/// The delay of the logarithm 0, ns.
const UNIT_NS: f64 = 20_000.0;
/// Packets of the shortest series.
const SHORTEST: f64 = 3_000.0;

/// How delays come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Log-normal, each by itself.
    Independent,
    /// Pareto, also without a mean, each by itself.
    HeavyTailed,
    /// A first-order autoregression of the logarithm, by up to 0.999.
    Autoregressive,
    /// A Markov chain of calm and bursts, whose values are independent.
    Bursts,
    /// The same with a level for each burst.
    LevelBursts,
    /// Moving averages of the logarithm.
    MovingAverage,
    /// A load for a part of each period.
    Periodic,
}

pub const CLASSES: [Class; 7] = [
    Class::Independent,
    Class::HeavyTailed,
    Class::Autoregressive,
    Class::Bursts,
    Class::LevelBursts,
    Class::MovingAverage,
    Class::Periodic,
];

impl Class {
    pub fn depends(self) -> bool {
        !matches!(self, Self::Independent | Self::HeavyTailed)
    }
}

/// The model of the logarithm, with its state.
#[derive(Debug)]
enum Model {
    Normal {
        deviation: f64,
    },
    Exponential {
        scale: f64,
    },
    Autoregressive {
        rho: f64,
        latest: f64,
    },
    Bursts {
        /// Probabilities of a change, from calm and from a burst.
        change: [f64; 2],
        /// Of a burst, above calm.
        height: f64,
        /// Deviations: of calm, of the levels of bursts, in a burst.
        deviations: [f64; 3],
        is_burst: bool,
        level: f64,
    },
    MovingAverage {
        latest: VecDeque<f64>,
        sum: f64,
    },
    Periodic {
        period: u64,
        at: u64,
        duty: f64,
        height: f64,
    },
}

#[derive(Debug)]
pub struct Series {
    pub packets: u64,
    random: fastrand::Rng,
    model: Model,
}

impl Series {
    /// Of at most so many packets. Bursts do occur in it.
    pub fn new(class: Class, seed: u64, longest: u64) -> Self {
        let attempts = (0..).map(|attempt| Self::drawn(class, seed << 32 | attempt, longest));
        let mut attempts = attempts.filter(|series| series.count_bursts() > 0);
        attempts.next().expect("there is always one more")
    }

    fn drawn(class: Class, seed: u64, longest: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ (class as u64) << 56);
        let packets = log_uniform(&mut random, SHORTEST, longest as f64).round();
        let model = match class {
            Class::Independent => Model::Normal {
                deviation: log_uniform(&mut random, 0.01, 2.0),
            },
            Class::HeavyTailed => Model::Exponential {
                scale: log_uniform(&mut random, 0.2, 1.5),
            },
            Class::Autoregressive => Model::Autoregressive {
                rho: 1.0 - log_uniform(&mut random, 0.001, 0.5),
                latest: normal(&mut random),
            },
            Class::Bursts | Class::LevelBursts => {
                // Three to a thousand bursts, in less than half of the time.
                let bursts = log_uniform(&mut random, 3.0, 1_000.0);
                let longest = (packets / bursts / 2.0).clamp(1.0, 1_000.0);
                let length = log_uniform(&mut random, 1.0, longest);
                let change = [bursts / (packets - bursts * length), 1.0 / length];
                let deviation = log_uniform(&mut random, 0.05, 0.5);
                let deviations = match class {
                    Class::Bursts => [deviation, 0.0, deviation],
                    _ => [deviation, deviation, deviation / 10.0],
                };
                Model::Bursts {
                    is_burst: random.f64() < change[0] / (change[0] + change[1]),
                    change,
                    height: log_uniform(&mut random, 0.5, 5.0),
                    deviations,
                    level: normal(&mut random),
                }
            }
            Class::MovingAverage => {
                let window = log_uniform(&mut random, 2.0, 500.0) as usize;
                let latest: VecDeque<f64> = (0..window).map(|_| normal(&mut random)).collect();
                let sum = latest.iter().sum();
                Model::MovingAverage { latest, sum }
            }
            Class::Periodic => {
                let period = log_uniform(&mut random, 4.0, packets / 100.0) as u64;
                Model::Periodic {
                    period,
                    at: random.u64(..period),
                    duty: 0.05 + 0.5 * random.f64(),
                    height: log_uniform(&mut random, 0.1, 4.0),
                }
            }
        };
        Self {
            packets: packets as u64,
            random,
            model,
        }
    }

    /// Bursts that it will have; 1 where there are none to wait for.
    fn count_bursts(&self) -> u64 {
        let Model::Bursts {
            change, is_burst, ..
        } = self.model
        else {
            return 1;
        };
        let (mut random, mut is_burst) = (self.random.clone(), is_burst);
        let mut bursts = u64::from(is_burst);
        // As `next` draws: the state first, then the values.
        for _ in 0..self.packets {
            if random.f64() < change[usize::from(is_burst)] {
                is_burst = !is_burst;
                bursts += u64::from(is_burst);
                normal(&mut random);
            }
            normal(&mut random);
        }
        bursts
    }

    /// The next delay, ns.
    pub fn next_ns(&mut self) -> i64 {
        (UNIT_NS * self.next().exp()).round() as i64
    }

    fn next(&mut self) -> f64 {
        let random = &mut self.random;
        match &mut self.model {
            Model::Normal { deviation } => *deviation * normal(random),
            Model::Exponential { scale } => -*scale * (1.0 - random.f64()).ln(),
            Model::Autoregressive { rho, latest } => {
                *latest = *rho * *latest + (1.0 - *rho * *rho).sqrt() * normal(random);
                *latest
            }
            Model::Bursts {
                change,
                height,
                deviations,
                is_burst,
                level,
            } => {
                if random.f64() < change[usize::from(*is_burst)] {
                    *is_burst = !*is_burst;
                    *level = normal(random);
                }
                let value = normal(random);
                if !*is_burst {
                    deviations[0] * value
                } else {
                    *height + deviations[1] * *level + deviations[2] * value
                }
            }
            Model::MovingAverage { latest, sum } => {
                let value = normal(random);
                latest.push_back(value);
                *sum += value - latest.pop_front().unwrap_or_default();
                *sum / (latest.len() as f64).sqrt()
            }
            Model::Periodic {
                period,
                at,
                duty,
                height,
            } => {
                *at = (*at + 1) % *period;
                let is_loaded = (*at as f64) < *duty * *period as f64;
                0.1 * normal(random) + if is_loaded { *height } else { 0.0 }
            }
        }
    }

    /// The share of all delays that are greater, in the long run.
    pub fn share_beyond(&self, delay_ns: i64) -> f64 {
        let value = ((delay_ns as f64 + 0.5) / UNIT_NS).ln();
        match &self.model {
            Model::Normal { deviation } => beyond(value / deviation),
            Model::Exponential { scale } => (-value.max(0.0) / scale).exp(),
            Model::Autoregressive { .. } | Model::MovingAverage { .. } => beyond(value),
            Model::Bursts {
                change,
                height,
                deviations: [calm, levels, within],
                ..
            } => {
                let share = change[0] / (change[0] + change[1]);
                let burst = beyond((value - height) / levels.hypot(*within));
                share * burst + (1.0 - share) * beyond(value / calm)
            }
            Model::Periodic {
                period,
                duty,
                height,
                ..
            } => {
                let share = (duty * *period as f64).ceil() / *period as f64;
                share * beyond((value - height) / 0.1) + (1.0 - share) * beyond(value / 0.1)
            }
        }
    }
}

/// The share of the standard normal distribution beyond a value.
fn beyond(value: f64) -> f64 {
    0.5 * erfc(value / std::f64::consts::SQRT_2)
}

fn log_uniform(random: &mut fastrand::Rng, least: f64, greatest: f64) -> f64 {
    least * (greatest / least).powf(random.f64())
}

/// By Box and Muller.
fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}
