//! Voice quality by the E-model (ITU-T G.107, 06/2015) from delay, its variation and loss.
//!
//! R = Ro − Is − Id − Ie,eff + A, on a scale from 0 to 100. All parameters of G.107 that a packet
//! network does not set have their default values (table 2 there), so that R is 93.2 without delay
//! and loss. A is 0. The model is for narrow-band telephony (300 to 3,400 Hz).

use serde::{Deserialize, Serialize};

/// Send loudness rating, dB.
const SLR: f64 = 8.0;
/// Receive loudness rating, dB.
const RLR: f64 = 2.0;
/// Sidetone masking rating, dB.
const STMR: f64 = 15.0;
/// Listener sidetone rating, dB: STMR + Dr.
const LSTR: f64 = 18.0;
/// D-value of the telephone at the send side.
const DS: f64 = 3.0;
/// Talker echo loudness rating, dB.
const TELR: f64 = 65.0;
/// Weighted echo path loss, dB.
const WEPL: f64 = 110.0;
/// Circuit noise referred to the point of 0 dBr, dBm0p.
const NC: f64 = -70.0;
/// Noise floor at the receive side, dBmp.
const NFOR: f64 = -64.0;
/// Room noise at the send side, dB(A).
const PS: f64 = 35.0;
/// Room noise at the receive side, dB(A).
const PR: f64 = 35.0;
/// Minimum perceivable delay, ms; the delay sensitivity is 1.
const M_T: f64 = 100.0;

/// A codec, with the provisional planning values of ITU-T G.113, Appendix I.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// G.711 without concealment of lost packets.
    G711,
    /// G.711 with packet loss concealment (its Appendix I).
    #[default]
    G711Plc,
    /// G.729 Annex A with voice activity detection.
    G729a,
    /// G.723.1 at 6.3 kbit/s with voice activity detection.
    G7231,
    /// GSM Enhanced Full Rate.
    GsmEfr,
}

impl Codec {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::G711,
        Self::G711Plc,
        Self::G729a,
        Self::G7231,
        Self::GsmEfr,
    ];

    /// What it is called on a command line and in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::G711 => "g711",
            Self::G711Plc => "g711-plc",
            Self::G729a => "g729a",
            Self::G7231 => "g7231",
            Self::GsmEfr => "gsm-efr",
        }
    }

    /// What it is called in a sentence.
    pub const fn name(self) -> &'static str {
        match self {
            Self::G711 => "G.711 without PLC",
            Self::G711Plc => "G.711 with PLC",
            Self::G729a => "G.729A",
            Self::G7231 => "G.723.1",
            Self::GsmEfr => "GSM-EFR",
        }
    }

    /// Equipment impairment factor Ie without loss (ITU-T G.113, Appendix I; G.723.1 at 6.3 kbit/s).
    /// The values of G.729A and G.723.1 are also those of the VoIP metrics of OPAL (`voip_metrics`,
    /// RFC 3611), GSM-EFR's those of other monitors of RTP.
    const fn ie(self) -> f64 {
        match self {
            Self::G711 | Self::G711Plc => 0.0,
            Self::G729a => 11.0,
            Self::G7231 => 15.0,
            Self::GsmEfr => 5.0,
        }
    }

    /// Packet-loss robustness factor Bpl (ITU-T G.113, Appendix I, random loss).
    const fn bpl(self) -> f64 {
        match self {
            Self::G711 => 4.3,
            Self::G711Plc => 25.1,
            Self::G729a => 19.0,
            Self::G7231 => 16.1,
            Self::GsmEfr => 10.0,
        }
    }

    /// Look-ahead of the coder, or delay of the concealment, ms.
    const fn algorithm_ms(self) -> f64 {
        match self {
            Self::G711 | Self::GsmEfr => 0.0,
            Self::G711Plc => 3.75,
            Self::G729a => 5.0,
            Self::G7231 => 7.5,
        }
    }
}

/// What a path does to the packets of a voice stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VoicePath {
    /// One-way delay of the fastest packet, ns.
    pub delay_ns: u64,
    /// How much longer than that others take.
    pub variation: DelayVariation,
    /// Share of the packets that do not arrive, 0 to 1.
    pub loss_ratio: f64,
    /// Burst ratio of the losses: [`burst_ratio`].
    pub burst_ratio: f64,
}

/// Quantiles of the delay less the least delay, ns; one that too few packets tell is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayVariation {
    /// 99 % are no greater.
    pub p99_ns: Option<u64>,
    /// 99.9 % are no greater.
    pub p99_9_ns: Option<u64>,
    /// Greatest delay less the least one, ns.
    pub max_ns: u64,
}

/// Voice quality, and what it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Voice {
    /// Transmission rating R, 0 to 100.
    pub r: f64,
    /// Mean opinion score of a conversation (MOS-CQE), 1 to 4.5.
    pub mos: f64,
    /// The codec.
    pub codec: Codec,
    /// Sum of the four delays that follow, ms.
    pub mouth_to_ear_ms: f64,
    /// Speech of one packet, ms: it is complete when the packet is sent.
    pub packet_ms: f64,
    /// Look-ahead of the codec, ms.
    pub algorithm_ms: f64,
    /// One-way delay of the fastest packet, ms.
    pub path_ms: f64,
    /// Delay of the playout buffer after the fastest packet, ms.
    pub playout_ms: f64,
    /// Packets that did not arrive, %.
    pub lost_percent: f64,
    /// Packets that arrived after their time of playout, % of those that arrived.
    pub late_percent: f64,
    /// Burst ratio, 1 (random losses) to 8.
    pub burst_ratio: f64,
    /// Delay impairment factor Id = Idte + Idle + Idd.
    pub delay_impairment: f64,
    /// Effective equipment impairment factor Ie,eff.
    pub equipment_impairment: f64,
}

impl Voice {
    /// The quality of a stream of this codec with packets of `packet_ns` of speech.
    ///
    /// The playout buffer has a fixed delay after the fastest packet. Of the quantiles 99 % and
    /// 99.9 % and the maximum of the delay variation it is the one that gives the greatest R.
    /// Packets that come later count as lost: 1 %, 0.1 % or none.
    pub fn of(codec: Codec, packet_ns: u64, path: &VoicePath) -> Self {
        let DelayVariation {
            p99_ns,
            p99_9_ns,
            max_ns,
        } = path.variation;
        let buffer = |playout_ns, late| Self::with_buffer(codec, packet_ns, path, playout_ns, late);
        let mut best = buffer(max_ns, 0.0);
        for (quantile, late) in [(p99_9_ns, 0.001), (p99_ns, 0.01)] {
            let other = quantile.map(|playout_ns| buffer(playout_ns, late));
            best = other.filter(|other| other.r > best.r).unwrap_or(best);
        }
        best
    }

    fn with_buffer(
        codec: Codec,
        packet_ns: u64,
        path: &VoicePath,
        playout_ns: u64,
        late: f64,
    ) -> Self {
        let ms = |ns: u64| ns as f64 / 1e6;
        let (packet_ms, path_ms, playout_ms) = (ms(packet_ns), ms(path.delay_ns), ms(playout_ns));
        let mouth_to_ear_ms = packet_ms + codec.algorithm_ms() + path_ms + playout_ms;
        let lost = path.loss_ratio.clamp(0.0, 1.0);
        let burst_ratio = path.burst_ratio.clamp(1.0, 8.0);
        let missing = lost + (1.0 - lost) * late;
        let delay_impairment = delay_impairment(mouth_to_ear_ms);
        let equipment_impairment = equipment_impairment(codec, missing, burst_ratio);
        let r = basic_ratio() - simultaneous_impairment() - delay_impairment - equipment_impairment;
        let r = r.clamp(0.0, 100.0);
        Self {
            r,
            mos: mos_of(r),
            codec,
            mouth_to_ear_ms,
            packet_ms,
            algorithm_ms: codec.algorithm_ms(),
            path_ms,
            playout_ms,
            lost_percent: 100.0 * lost,
            late_percent: 100.0 * late,
            burst_ratio,
            delay_impairment,
            equipment_impairment,
        }
    }
}

/// BurstR of G.107, clause 7.5: the mean length of the observed runs of lost packets over that of
/// random losses of the same share p, which is 1/(1 − p). At least 1: losses that are further apart
/// than random ones count as random. 1 if nothing is lost.
///
/// `lost` of `expected` packets in `periods` runs. Above 2 the model is proved for losses of up to
/// 2 % (notes of table 2).
pub fn burst_ratio(lost: u64, periods: u64, expected: u64) -> f64 {
    if lost == 0 || periods == 0 || expected == 0 {
        return 1.0;
    }
    let mean_run = lost as f64 / periods as f64;
    let arrived = 1.0 - lost as f64 / expected as f64;
    (mean_run * arrived).clamp(1.0, 8.0)
}

/// The mean opinion score of a rating (G.107, annex B), 1 to 4.5. The polynomial is less than 1
/// below a rating of 6.5: the score is 1 there.
fn mos_of(r: f64) -> f64 {
    let r = r.clamp(0.0, 100.0);
    (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
}

/// Ie,eff = Ie + (95 − Ie) Ppl/(Ppl/BurstR + Bpl) (clause 7.5), with Ppl in %.
fn equipment_impairment(codec: Codec, missing: f64, burst_ratio: f64) -> f64 {
    let ppl = 100.0 * missing;
    codec.ie() + (95.0 - codec.ie()) * ppl / (ppl / burst_ratio + codec.bpl())
}

/// No of clause 7.2, dBm0p: circuit, room (both sides) and floor noise.
fn noise() -> f64 {
    let at_send = PS - SLR - DS - 100.0 + 0.004 * (PS - (SLR + RLR) - DS - 14.0).powi(2);
    let by_sidetone = PR + 10.0 * (1.0 + 10_f64.powf((10.0 - LSTR) / 10.0)).log10();
    let at_receive = RLR - 121.0 + by_sidetone + 0.008 * (by_sidetone - 35.0).powi(2);
    let powers = [NC, at_send, at_receive, NFOR + RLR].map(|level| 10_f64.powf(level / 10.0));
    10.0 * powers.iter().sum::<f64>().log10()
}

/// Ro of clause 7.2: the basic signal-to-noise ratio.
fn basic_ratio() -> f64 {
    15.0 - 1.5 * (SLR + noise())
}

/// Is of clause 7.3: too loud a connection, sidetone, and one unit of quantizing distortion.
/// The delay of the sidetone's echo is 0, which changes Is by less than 0.0001.
fn simultaneous_impairment() -> f64 {
    let loudness = SLR + RLR + 0.2 * (64.0 + noise() - RLR);
    let by_loudness = 20.0 * ((1.0 + (loudness / 8.0).powi(8)).powf(0.125) - loudness / 8.0);
    let sidetone = 10_f64.powf(-STMR / 10.0) + 10_f64.powf(-TELR / 10.0);
    let sidetone = -10.0 * sidetone.log10();
    let root = |ratio: f64, power: i32| (1.0 + ratio.powi(power)).powf(1.0 / f64::from(power));
    let by_sidetone = 12.0 * root((sidetone - 13.0) / 6.0, 8)
        - 28.0 * root((sidetone + 1.0) / 19.4, 35)
        - 13.0 * root((sidetone - 3.0) / 33.0, 13)
        + 29.0;
    // Q of one quantizing distortion unit.
    let q = 37.0;
    let g = 1.07 + 0.258 * q + 0.0602 * q * q;
    let y = (basic_ratio() - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
    let z = 46.0 / 30.0 - g / 40.0;
    let by_quantizing = 15.0 * (1.0 + 10_f64.powf(y) + 10_f64.powf(z)).log10();
    by_loudness + by_sidetone + by_quantizing
}

/// Id = Idte + Idle + Idd (clause 7.4), where T = Tr/2 = Ta is the one-way delay from
/// mouth to ear, ms: the echo of the default TELR and WEPL takes the same way. Idd has the delay
/// sensitivity 1 and the minimum perceivable delay 100 ms.
fn delay_impairment(ms: f64) -> f64 {
    let echo = TELR - 40.0 * ((1.0 + ms / 10.0) / (1.0 + ms / 150.0)).log10()
        + 6.0 * (-0.3 * ms * ms).exp();
    let half = (-1.5 * (noise() - RLR) - (80.0 + 2.5 * (echo - 14.0))) / 2.0;
    let by_talker_echo = match ms {
        // It is sidetone.
        ..1.0 => 0.0,
        _ => (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - (-ms).exp()),
    };
    let listener = 10.5 * (WEPL + 7.0) * (2.0 * ms + 1.0).powf(-0.25);
    let half = (basic_ratio() - listener) / 2.0;
    let by_listener_echo = half + (half * half + 169.0).sqrt();
    let by_delay = if ms <= M_T {
        0.0
    } else {
        let x = (ms / M_T).log2();
        let root = |x: f64| (1.0 + x.powi(6)).powf(1.0 / 6.0);
        25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
    };
    by_talker_echo + by_listener_echo + by_delay
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PERFECT: VoicePath = VoicePath {
        delay_ns: 0,
        variation: DelayVariation {
            p99_ns: None,
            p99_9_ns: None,
            max_ns: 0,
        },
        loss_ratio: 0.0,
        burst_ratio: 1.0,
    };

    fn near(value: f64, expected: f64, by: f64) {
        assert!((value - expected).abs() <= by, "{value}, not {expected}");
    }

    /// G.107, clause 7.7: with all default values R is 93.2, and its score is 4.41.
    #[test]
    fn the_defaults_give_the_published_rating() {
        near(basic_ratio(), 94.77, 0.005);
        near(simultaneous_impairment(), 1.41, 0.005);
        let voice = Voice::of(Codec::G711, 0, &PERFECT);
        near(voice.r, 93.2, 0.05);
        near(voice.mos, 4.41, 0.005);
    }

    /// Table B.1 of G.107, which rounds to 0.01.
    #[test]
    fn ratings_have_the_published_scores() {
        let published = [
            (90.0, 4.34),
            (80.0, 4.03),
            (70.0, 3.60),
            (60.0, 3.10),
            (50.0, 2.58),
            (100.0, 4.5),
            (0.0, 1.0),
            (-5.0, 1.0),
        ];
        for (r, mos) in published {
            near(mos_of(r), mos, 0.0065);
        }
    }

    /// By hand: 95 · 1/(1 + 25.1), 95 · 1/(1 + 4.3), 11 + 84 · 2/(2/2 + 19).
    #[test]
    fn losses_cost_what_the_codec_makes_of_them() {
        near(equipment_impairment(Codec::G711Plc, 0.01, 1.0), 3.64, 0.005);
        near(equipment_impairment(Codec::G711, 0.01, 1.0), 17.92, 0.005);
        near(equipment_impairment(Codec::G729a, 0.02, 2.0), 19.4, 1e-9);
        let free = Codec::ALL.map(|codec| equipment_impairment(codec, 0.0, 1.0));
        assert_eq!(free, [0.0, 0.0, 11.0, 15.0, 5.0]);
    }

    /// Of the pure delay: 0 up to 100 ms, and by hand with X = 1 and 2.
    #[test]
    fn delay_costs_nothing_at_first() {
        let echo = |ms: f64| delay_impairment(ms) - 25.0 * pure(ms);
        let pure_200 = 2_f64.powf(1.0 / 6.0) - 3.0 * (1.0 + 3_f64.powi(-6)).powf(1.0 / 6.0) + 2.0;
        near(pure(200.0), pure_200, 1e-12);
        near(25.0 * pure_200, 3.04, 0.005);
        // Echo alone grows without a step where the pure delay begins.
        assert!(echo(99.0) < echo(101.0) && echo(101.0) - echo(99.0) < 0.1);
        let ratings = [100, 150, 200, 300, 400].map(|ms| {
            let path = VoicePath {
                delay_ns: ms * 1_000_000,
                ..PERFECT
            };
            Voice::of(Codec::G711, 0, &path).r.round()
        });
        assert_eq!(ratings, [91.0, 90.0, 86.0, 73.0, 62.0]);
    }

    fn pure(ms: f64) -> f64 {
        let x = (ms / 100.0).log2().max(0.0);
        let root = |x: f64| (1.0 + x.powi(6)).powf(1.0 / 6.0);
        root(x) - 3.0 * root(x / 3.0) + 2.0
    }

    /// One packet of 1,000 comes 2 s late: it is better lost than waited for. Where the latest
    /// one is a little late it is waited for.
    #[test]
    fn the_buffer_is_the_best_of_three() {
        let with = |max_ms: u64| {
            let variation = DelayVariation {
                p99_ns: Some(30_000_000),
                p99_9_ns: Some(40_000_000),
                max_ns: max_ms * 1_000_000,
            };
            Voice::of(
                Codec::G711Plc,
                20_000_000,
                &VoicePath {
                    variation,
                    ..PERFECT
                },
            )
        };
        let late = with(2_000);
        assert_eq!((late.playout_ms, late.late_percent), (40.0, 0.1));
        near(late.mouth_to_ear_ms, 20.0 + 3.75 + 40.0, 1e-9);
        assert_eq!((with(45).playout_ms, with(45).late_percent), (45.0, 0.0));
    }

    /// Random losses have a ratio of 1; runs of four at 1 % have nearly 4.
    #[test]
    fn bursts_are_longer_than_random_runs() {
        assert_eq!(burst_ratio(0, 0, 100).to_bits(), 1_f64.to_bits());
        near(burst_ratio(100, 25, 10_000), 3.96, 1e-9);
        // Each alone: less than random ones would be.
        near(burst_ratio(100, 100, 1_000), 1.0, 1e-9);
        near(burst_ratio(500, 1, 1_000), 8.0, 1e-9);
    }

    proptest! {
        /// More delay, variation, loss or longer bursts never make it better.
        #[test]
        fn nothing_bad_makes_it_better(
            delay_ms in 0_u64..2_000,
            max_ms in 0_u64..500,
            loss_ratio in 0.0..1.0_f64,
            burst_ratio in 1.0..8.0_f64,
            codec in proptest::sample::select(Codec::ALL.to_vec()),
            more in 0..4,
        ) {
            let of = |delay_ms: u64, max_ms: u64, loss_ratio: f64, burst_ratio: f64| {
                let variation = DelayVariation { max_ns: max_ms * 1_000_000, ..DelayVariation::default() };
                let path = VoicePath { delay_ns: delay_ms * 1_000_000, variation, loss_ratio, burst_ratio };
                Voice::of(codec, 20_000_000, &path)
            };
            let better = of(delay_ms, max_ms, loss_ratio, burst_ratio);
            let worse = match more {
                0 => of(delay_ms + 10, max_ms, loss_ratio, burst_ratio),
                1 => of(delay_ms, max_ms + 10, loss_ratio, burst_ratio),
                2 => of(delay_ms, max_ms, (loss_ratio + 0.01).min(1.0), burst_ratio),
                _ => of(delay_ms, max_ms, loss_ratio, burst_ratio + 0.5),
            };
            prop_assert!(worse.r <= better.r + 1e-9);
            prop_assert!((0.0..=100.0).contains(&worse.r) && (1.0..=4.5).contains(&worse.mos));
        }
    }
}
