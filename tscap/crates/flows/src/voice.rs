//! Voice quality of a flow from its figures.

use super::rtp::Rtp;
use super::schema::{Figures, Loss, PathDelay, VoiceFigures};
use tscap_statistics::{Codec, DelayVariation, Voice, VoicePath, burst_ratio};

/// What is assumed of voice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoiceOptions {
    /// The codec of all flows; `None`: the payload type of RTP tells it, or there is no figure.
    pub codec: Option<Codec>,
    /// The one-way delay of the fastest packet, ns, where it is not measured.
    pub delay_ns: Option<u64>,
}

/// That of a source of RTP, whose delay is not measured.
pub(super) fn of_rtp(
    rtp: &Rtp,
    loss: Option<Loss>,
    variation: Option<Figures>,
    options: &VoiceOptions,
) -> Option<VoiceFigures> {
    let codec = options.codec.or_else(|| rtp.codec())?;
    quality(
        codec,
        rtp.packet_ns()?,
        &variation?,
        loss?,
        (options.delay_ns, None),
    )
}

/// That of a stream of `tscap gen`, which stands for voice where a codec is given. Its packets are
/// as long as the mean gap. Its delay counts where it has a bound.
pub(super) fn of_gen(
    gap_ns: Option<f64>,
    loss: Option<Loss>,
    (delay, variation): (Option<Figures>, Option<Figures>),
    options: &VoiceOptions,
) -> Option<VoiceFigures> {
    let measured = delay.filter(|it| it.bound_ns.is_some());
    let measured = measured.map(|it| it.min_ns.max(0).unsigned_abs());
    let delays = (options.delay_ns, measured);
    quality(options.codec?, gap_ns? as u64, &variation?, loss?, delays)
}

fn quality(
    codec: Codec,
    packet_ns: u64,
    variation: &Figures,
    loss: Loss,
    (given, measured): (Option<u64>, Option<u64>),
) -> Option<VoiceFigures> {
    let (delay_ns, path) = match (measured, given) {
        (Some(delay_ns), _) => (delay_ns, PathDelay::Measured),
        (None, Some(delay_ns)) => (delay_ns, PathDelay::Given),
        (None, None) => (0, PathDelay::Unknown),
    };
    let expected = loss.distinct + loss.lost;
    let positive = |ns: i64| ns.max(0).unsigned_abs();
    let path_to = VoicePath {
        delay_ns,
        variation: DelayVariation {
            p99_ns: variation.p99_ns.map(positive),
            p99_9_ns: variation.p99_9_ns.map(positive),
            max_ns: positive(variation.max_ns),
        },
        loss_ratio: loss.lost as f64 / expected.max(1) as f64,
        burst_ratio: burst_ratio(loss.lost, loss.loss_periods, expected),
    };
    (expected > 0).then(|| VoiceFigures {
        voice: Voice::of(codec, packet_ns, &path_to),
        path,
    })
}
